// SPDX-License-Identifier: Apache-2.0
// What the cost model of matrix products and their kernel must agree on.
#pragma once
#include "topi/gemm.h"

namespace tilewright::topi {

// Rows of A under a panel are shared out in such chunks; B's turned panel
// serves all of them.
constexpr int64_t kGemmChunk = 8;

// Whether `valid` columns leave the last vector at most half full: it is
// computed in half vectors then. 512-bit operations cost twice what 256-bit
// ones do where the units are 256 bits wide, and no less elsewhere.
bool ends_in_half(int64_t valid, int64_t v, const Target& target);
// Rows of the first tile under a panel, which turns the panel on its way; 0: it
// is turned before, or needs no turning.
int turning_rows(const GemmProblem& problem, const GemmConfig& config, const Target& target);
// Columns of an activation B beyond whole (half) vectors that are dearer in one
// of their own than as dot products: one to three, mostly.
int64_t columns_of_dots(const GemmProblem& problem, const GemmConfig& config, const Target& target);

}  // namespace tilewright::topi
