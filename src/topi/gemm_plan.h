// SPDX-License-Identifier: Apache-2.0
// Decisions shared by the cost model of matrix products and their kernel.
#pragma once
#include "topi/gemm.h"

namespace tilewright::topi {

// The rows of A under a panel are distributed in chunks of
// this many tiles, all of which use B's transposed panel.
constexpr int64_t kGemmChunk = 8;

// Whether `valid` columns leave the last vector at most half full, which
// is then computed with half vectors. 512-bit operations cost twice as
// much as 256-bit ones on 256-bit units, and no less elsewhere.
bool ends_in_half(int64_t valid, int64_t v, const Target& target);
// Rows of the first tile under a panel, which transposes the panel on the way; 0: it is transposed before, or need not
// be.
int turning_rows(const GemmProblem& problem, const GemmConfig& config, const Target& target);
// Whether each panel of a row-major B is copied before its tiles read it, since its lines would not stay in the first
// cache: they are too many, or so far apart that they share few of its sets.
bool copies_panels(const GemmProblem& problem, const GemmConfig& config, int64_t row_stride, const Target& target);
// The number of B's columns beyond whole (half) vectors that are cheaper as dot products than in a vector of their own:
// mostly one to three.
int64_t columns_of_dots(const GemmProblem& problem, const GemmConfig& config, const Target& target);

}  // namespace tilewright::topi
