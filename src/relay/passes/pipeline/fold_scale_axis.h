// SPDX-License-Identifier: Apache-2.0
// FoldScaleAxis: per-channel multiplications move into the weights of convolutions and dense layers.
// What: multiply(conv(x, w), s) -> conv(x, w * s), also through additions of constants (which are scaled), ReLU and max
//   pooling (positive scales), and average pooling (BackwardFoldScaleAxis); conv(multiply(x, s), w) -> conv(x, w * s)
//   (ForwardFoldScaleAxis). FoldScaleAxis does both.
// Requires: weights and scales are constants (run FoldConstant first); plain layouts; values used once on the way.
// Ensures: the same function up to rounding; never more operators than before.
// Why here: after SimplifyInference and FoldConstant have left a batch_norm as multiply and add.
// Test: tests/relay/passes/fold_scale_axis*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> backward_fold_scale_axis(const Module& module, PassContext& context);
Result<Module> forward_fold_scale_axis(const Module& module, PassContext& context);
Result<Module> fold_scale_axis(const Module& module, PassContext& context);
}  // namespace tilewright::relay
