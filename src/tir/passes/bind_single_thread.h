// SPDX-License-Identifier: Apache-2.0
// Removes the division of work among threads, for targets with one thread.
//
// Requires: nothing. Ensures: tid and nthreads are gone, replaced by 0 and 1. simplify then removes the remaining
// arithmetic. Test: tests/tir/bind_single_thread.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc bind_single_thread(PrimFunc function);
}  // namespace tilewright::tir
