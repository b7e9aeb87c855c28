// SPDX-License-Identifier: Apache-2.0
// Transformations of loop nests. Each is checked: it is done and no element of any buffer changes, or it is refused
// with a sentence that says why. Loops are named by their variables. Tests: tests/tir/schedule.tir, schedule_test.cc
#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

// What thread `tid` of `nthreads` does of [0, extent): contiguous, whole units of `granule`.
struct Share {
  PrimExpr begin, end;
};
Share thread_share(const PrimExpr& tid, const PrimExpr& nthreads, int64_t extent, int64_t granule = 1);

// Errors of all: InvalidArgument.
class Schedule {
 public:
  explicit Schedule(Stmt nest) : stmt_(std::move(nest)) {}
  const Stmt& stmt() const { return stmt_; }

  // The variable of the one loop of this name.
  Result<PrimExpr> loop(std::string_view name) const;

  // `factor` iterations at a time: for v.outer: for v.inner. A rest is guarded by a condition around the innermost
  // statement.
  struct Split {
    PrimExpr outer, inner;
  };
  Result<Split> split(const PrimExpr& loop, int64_t factor);
  // Two loops, the second directly in the first, as one over their product, in which their variables are lets.
  Result<PrimExpr> fuse(const PrimExpr& outer, const PrimExpr& inner);
  // Loops of one perfect nest in a new order, outermost first; others between them stay where they are. Of two loops
  // that change places one must be independent.
  Status reorder(const std::vector<PrimExpr>& loops);
  // Requests that the passes of these names fulfil; the loop's extent must be a constant. vectorize: independent
  // iterations.
  Status unroll(const PrimExpr& loop);
  Status vectorize(const PrimExpr& loop);
  // Divides the iterations of these loops, which are independent, outermost and each directly in the one before, among
  // threads. Gives the fused loop.
  Result<PrimExpr> parallelize(const std::vector<PrimExpr>& loops, const PrimExpr& tid, const PrimExpr& nthreads);
  // Keeps the one element of `buffer` that the loop's iterations use in a register: read before the loop, written after
  // it.
  Status cache_write(const Buffer& buffer, const PrimExpr& loop);

  // No two iterations with different values of the loop's variable use one element that one of them writes.
  Status independent(const PrimExpr& loop) const;

 private:
  Result<const ForNode*> find(const PrimExpr& loop) const;
  void replace(const ForNode* loop, const Stmt& with);
  Stmt stmt_;
};

}  // namespace tilewright::tir
