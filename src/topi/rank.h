// SPDX-License-Identifier: Apache-2.0
// The first k of every line along an axis in sorted order (equal elements by position; NaN is largest), for short
// lines; topi/select.h has the forms for others. Many of a line: for each element is counted how many precede it, a
// vector of elements at a time beside every element (Knuth, The Art of Computer Programming 3, 5.2). Few: the first of
// those that follow the last one found, again and again (5.2.3).
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct RankProblem {
  std::vector<int64_t> shape;  // of the input
  size_t axis = 0;
  int64_t k = 0;
  bool ascending = true;
};

// Whether a line's keys and places fit on the stack.
bool can_rank(const RankProblem& problem);
// `values` and `indices` may each be null.
tir::Stmt rank(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
               const View* indices, const KernelContext& context);
Cost rank_cost(const RankProblem& problem, DataType dtype, const Target& target);

}  // namespace tilewright::topi
