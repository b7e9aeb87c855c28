// SPDX-License-Identifier: Apache-2.0
// Reduces a kernel's scratch memory: stack buffers with disjoint live ranges share memory, short ones with constant
// indices become registers, unused ones are removed.
//
// Requires: unroll, vectorize and simplify have run (they make indices constant). Ensures: every element that is read
// is the one that was written; function parameters and register buffers stay as they are. Code generation reserves all
// of a kernel's stack when it is entered, whatever scope a buffer has: kernels with a copy of their loop nest for whole
// tiles and one for the rest, or for each direction, would have the scratch of both. Sharing is first fit by falling
// size, as in Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020.
// Test: tests/tir/storage_rewrite.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {

// The most vectors that a buffer converted to registers may have: more would be spilled to the stack again.
inline constexpr int64_t kMaxRegisterScratch = 16;

PrimFunc storage_rewrite(PrimFunc function);

// The total size of the function's stack buffers.
int64_t stack_bytes(const PrimFunc& function);

}  // namespace tilewright::tir
