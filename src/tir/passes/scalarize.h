// SPDX-License-Identifier: Apache-2.0
// Rewrites vectors to scalars, lane by lane, for targets without vector units.
//
// Requires: the final form. Ensures: no expression, variable or register has lanes > 1, except adjacent bytes that are
// loaded as one word of 16 or 32 bits. Masks become conditions around single accesses, gathers and strided accesses
// single loads, shuffles and broadcasts selections of lanes, reductions their tree of operations (tir/expr.h gives the
// order). All lanes of a stored vector are computed before the first is written where one could change another. Runs
// after legalize_sub_bytes and before legalize_small_floats, so that a reduction of small floats rounds at each step.
// Test: tests/tir/scalarize.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc scalarize(PrimFunc function);

// The same, but stores of four lanes and more whose lanes are computed alike become loops over the lanes, annotated
// kLanes: compilers for processors with vectors make vectors of those, and of single statements none.
inline constexpr const char* kLanes = "lanes";
PrimFunc scalarize_by_loops(PrimFunc function);
}  // namespace tilewright::tir
