// SPDX-License-Identifier: Apache-2.0
// Replaces a kVectorized loop of constant extent L by vector code: the variable becomes ramp(min, 1, L).
//
// Requires: a verified function; iterations of a kVectorized loop do not depend on each other (the request is
// that promise). Ensures: no kVectorized loop is left and results are those of the loop. Linear indices
// become ramps (stride 1 is one contiguous access, stride 0 a scalar load and a broadcast), other indices
// general vectors (gather, scatter); an if on the variable becomes masks, if_then_else a select with masked
// loads. A scalar register buffer allocated inside the loop gets L lanes. A loop that cannot become vectors
// as a whole (it accumulates into one element, already has vector values that depend on the variable, an
// inner loop whose bounds do, a stack array of its own, or an extent that is not a constant of at most
// kMaxVectorLanes) becomes serial. Runs after unroll (constant register indices) and before simplify (which
// cleans up the indices). Test: tests/tir/vectorize.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
inline constexpr int kMaxVectorLanes = 1024;
PrimFunc vectorize(PrimFunc function);
// A statement that may access multi-dimensional memory, which has no masks: statements that need one run their
// iterations one after the other.
Stmt vectorize_loops(const Stmt& s);
}  // namespace tilewright::tir
