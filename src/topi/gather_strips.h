// SPDX-License-Identifier: Apache-2.0
// out[b, i, j] = table[b, places[b, i, j], j] where the table is more than the second cache: in the order of results
// each element is on another line of memory. Columns go in strips: a strip of the table is copied together, so that its
// lines do not contend for the same places of the cache, and serves all rows of results.
#pragma once
#include <functional>

#include "topi/view.h"

namespace tilewright::topi {

struct GatherProblem {
  // Of the table (batch, rows, columns) and results (batch, out_rows, columns).
  int64_t batch = 0, rows = 0, out_rows = 0, columns = 0;
  DataType dtype;
};

// Columns of a strip; 0: rows in turn are as fast.
int64_t gather_strip(const GatherProblem& problem, const Target& target);
// Scratch per thread, in the table's elements.
int64_t gather_scratch_bytes(const GatherProblem& problem, const Target& target);
// Contiguous views. `bounded` makes rows of the table of what vectors of `places`, of the results' shape, hold.
tir::Stmt gather_strips(const GatherProblem& problem, const View& table, const View& places,
                        const std::function<tir::PrimExpr(tir::PrimExpr)>& bounded, const View& out,
                        const KernelContext& context);

}  // namespace tilewright::topi
