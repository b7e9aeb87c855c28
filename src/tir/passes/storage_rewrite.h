// SPDX-License-Identifier: Apache-2.0
// Scratch of a kernel takes less memory: stack buffers that are never in use at the same time share one, short ones
// whose places are all known become registers, unused ones go.
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

// Vectors that a buffer may become: more would be spilt to the stack again.
inline constexpr int64_t kMaxRegisterScratch = 16;

PrimFunc storage_rewrite(PrimFunc function);

// Of all the stack buffers that the function allocates.
int64_t stack_bytes(const PrimFunc& function);

}  // namespace tilewright::tir
