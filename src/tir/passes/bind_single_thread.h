// SPDX-License-Identifier: Apache-2.0
// A kernel's share becomes the whole, for targets that run on one thread.
//
// Requires: nothing. Ensures: tid and nthreads are gone, as if 0 and 1 were given. simplify then removes the division
// of work. Test: tests/tir/bind_single_thread.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc bind_single_thread(PrimFunc function);
}  // namespace tilewright::tir
