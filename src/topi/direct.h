// SPDX-License-Identifier: Apache-2.0
// Plain loop nests for everything without a tuned template: any dtype, any rank, one output element at a time. The
// fallback of every contraction, window and scan; simple rather than fast.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// out[i] = epilogue(sum (or maximum) over r of term(i, r)); `reduction` has the extents of r. `dtype` is the
// accumulator's.
struct DirectProblem {
  std::vector<int64_t> shape, reduction;
  DataType dtype = kFloat32;
  bool largest = false;
};
using DirectTerm = std::function<tir::PrimExpr(const Index& out, const Index& r)>;
tir::Stmt direct_reduction(const DirectProblem& problem, const DirectTerm& term, const View& out,
                           const Epilogue& epilogue, const KernelContext& context);
Cost estimate(const DirectProblem& problem, const Target& target);

// Prefix sums or products along one axis.
struct ScanProblem {
  std::vector<int64_t> shape;
  size_t axis = 0;
  bool product = false, exclusive = false, reverse = false;
};
tir::Stmt scan(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context);

// out = data; then for every update, in order: out[place(u)] = combine(out[place(u)], update(u)). `rows`: the last
// dimension of updates is the result's, and threads divide it; otherwise single-threaded.
enum class Combination { kUpdate, kAdd, kMul, kMin, kMax };
using Place = std::function<Index(const Index& update)>;  // indices inside out
tir::Stmt scatter(Combination how, const std::vector<int64_t>& updates_shape, const Operand& data,
                  const Operand& updates, const Place& place, const View& out, const KernelContext& context,
                  bool rows = false);

}  // namespace tilewright::topi
