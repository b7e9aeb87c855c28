// SPDX-License-Identifier: Apache-2.0
// Transformations of loop nests. Each is checked: either it is applied and no buffer element changes, or it is refused
// with an error that says why. Loops are named by their variables. Tests: tests/tir/schedule.tir, schedule_test.cc
#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

// The share of thread `tid` of `nthreads` in [0, extent): contiguous, in whole units of `granule`.
struct Share {
  PrimExpr begin, end;
};
Share thread_share(const PrimExpr& tid, const PrimExpr& nthreads, int64_t extent, int64_t granule = 1);

// Errors of all members: InvalidArgument.
class Schedule {
 public:
  explicit Schedule(Stmt nest) : stmt_(std::move(nest)) {}
  const Stmt& stmt() const { return stmt_; }

  // The variable of the loop with this (unique) name.
  Result<PrimExpr> loop(std::string_view name) const;

  // Strip-mines: for v.outer: for v.inner with `factor` iterations. A remainder is guarded by a condition around the
  // innermost statement.
  struct Split {
    PrimExpr outer, inner;
  };
  Result<Split> split(const PrimExpr& loop, int64_t factor);
  // Fuses two perfectly nested loops into one over their product; their variables become lets.
  Result<PrimExpr> fuse(const PrimExpr& outer, const PrimExpr& inner);
  // Reorders loops of one perfect nest, outermost first; other loops in between keep their places. Of each exchanged
  // pair one loop must be independent.
  Status reorder(const std::vector<PrimExpr>& loops);
  // Marks loops for the passes of these names; the extent must
  // be constant. vectorize requires independent iterations.
  Status unroll(const PrimExpr& loop);
  Status vectorize(const PrimExpr& loop);
  // Divides the iterations of these loops (independent, outermost and perfectly nested) among threads. Returns the
  // fused loop.
  Result<PrimExpr> parallelize(const std::vector<PrimExpr>& loops, const PrimExpr& tid, const PrimExpr& nthreads);
  // Keeps the single element of `buffer` that the loop accesses in a register: loaded before the loop, stored behind
  // it.
  Status cache_write(const Buffer& buffer, const PrimExpr& loop);

  // Whether no two different iterations of the loop access the same element with at least one write.
  Status independent(const PrimExpr& loop) const;

 private:
  Result<const ForNode*> find(const PrimExpr& loop) const;
  void replace(const ForNode* loop, const Stmt& with);
  Stmt stmt_;
};

}  // namespace tilewright::tir
