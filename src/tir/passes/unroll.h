// SPDX-License-Identifier: Apache-2.0
// Replaces kUnrolled loops of constant extent by their iterations in sequence, the variable substituted.
//
// Requires: a verified function. Ensures: no kUnrolled loop is left; one whose extent is not a constant of at
// most kMaxUnroll becomes serial. Runs first: the substituted indices are what makes register buffers'
// indices constant, and vectorize refuses variable ones. Test: tests/tir/unroll.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
inline constexpr int64_t kMaxUnroll = 4096;
PrimFunc unroll(PrimFunc function);
}  // namespace tilewright::tir
