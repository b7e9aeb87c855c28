// SPDX-License-Identifier: Apache-2.0
// Merges parallel products of one input into one wider product whose result is sliced.
// CombineParallelConv2D: at least three nn.conv2d of one input, with the same attributes but for their channel counts.
// CombineParallelDense: at least three nn.dense of one input. CombineParallelBatchMatmul: likewise over one left
// operand.
// What: weights are concatenated (constants folded later); additions of per-channel biases and equal unary operators
// that follow every sibling are combined too, so that the wide kernel keeps its epilogue; then each result is a slice.
// Requires: typed module, plain layouts, static channel counts.
// Ensures: the same function; fewer, larger products. Level 4, as in the classic stack: whether slices cost less than
// the calls saved depends on what reads them.
// Tests: tests/relay/passes/combine_parallel_*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// The least number of siblings to merge.
inline constexpr int64_t kMinBranches = 3;
// Error: InvalidArgument for fewer than two branches.
Result<Module> combine_conv2d(const Module& module, int64_t branches);
Result<Module> combine_dense(const Module& module, int64_t branches);
// Merges into one batched product over stacked operands, where the weights have equal shapes.
Result<Module> combine_dense_to_batch(const Module& module, int64_t branches);
Result<Module> combine_batch_matmul(const Module& module, int64_t branches);
Result<Module> combine_parallel_conv2d(const Module& module, PassContext& context);
Result<Module> combine_parallel_dense(const Module& module, PassContext& context);
Result<Module> combine_parallel_batch_matmul(const Module& module, PassContext& context);
}  // namespace tilewright::relay
