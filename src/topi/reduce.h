// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax and normalisation over operands computed on the fly. The shape alone fixes the order of sums:
// several vector accumulators, then a tree over lanes.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

enum class ReduceKind { kSum, kMean, kProd, kMax, kMin };

struct ReduceProblem {
  ReduceKind kind = ReduceKind::kSum;
  std::vector<int64_t> shape;  // of the input
  std::vector<int> axes;       // reduced axes, ascending, not empty
  DataType dtype = kFloat32;   // dtype of input elements; narrow ones are accumulated in accumulator_dtype
};

// out has the input's rank (reduced extents 1) or lacks the reduced axes; the epilogue's index is that of out.
tir::Stmt reduce(const ReduceProblem& problem, const Operand& input, const View& out, const Epilogue& epilogue,
                 const KernelContext& context);
Cost estimate(const ReduceProblem& problem, const Target& target);

// The minimum and the maximum of all elements, read once; both results are scalars.
tir::Stmt min_max(const std::vector<int64_t>& shape, DataType dtype, const Operand& input, const View& least,
                  const View& most, const KernelContext& context);

// Arg-reduction along one axis: index of the first or last extreme. out is an integer view, shaped as above. NaN counts
// as the extreme.
struct ArgReduceProblem {
  bool largest = true, last_index = false;
  std::vector<int64_t> shape;
  int axis = 0;
  DataType dtype = kFloat32;
};
tir::Stmt arg_reduce(const ArgReduceProblem& problem, const Operand& input, const View& out,
                     const KernelContext& context);

// The extremes and their indices; either may be null.
tir::Stmt extremes(const ArgReduceProblem& problem, const Operand& input, const View* values, const View* places,
                   const KernelContext& context);

struct SoftmaxProblem {
  std::vector<int64_t> shape;
  int axis = -1;
  bool logarithm = false;     // log_softmax
  DataType dtype = kFloat32;  // dtype of the arithmetic; narrower floats are computed in float32
};
// Out has the input's shape. Scratch per thread, of the problem's dtype.
int64_t softmax_scratch_bytes(const SoftmaxProblem& problem);
tir::Stmt softmax(const SoftmaxProblem& problem, const Operand& input, const View& out, const Epilogue& epilogue,
                  const KernelContext& context);
Cost estimate(const SoftmaxProblem& problem, const Target& target);

// (x - mean) / sqrt(variance + epsilon) over the last dimensions, `row_rank` of them; the epilogue applies scale and
// bias by the index. `rms` omits the mean (x / sqrt(mean(x^2) + epsilon)).
struct LayerNormProblem {
  std::vector<int64_t> shape;
  double epsilon = 1e-5;
  bool rms = false;
  int row_rank = 1;
};
tir::Stmt layer_norm(const LayerNormProblem& problem, const Operand& input, const View& out, const Epilogue& epilogue,
                     const KernelContext& context);
Cost estimate(const LayerNormProblem& problem, const Target& target);

}  // namespace tilewright::topi
