// SPDX-License-Identifier: Apache-2.0
// FoldScaleAxis: per-channel multiplications move into the weights of convolutions and dense layers.
// What: multiply(conv(x, w), s) -> conv(x, w * s), also through additions of a value a channel (which is scaled), ReLU
// and max pooling (positive constants), and average pooling (BackwardFoldScaleAxis); conv(multiply(x, s), w) -> conv(x,
// w * s), also through ReLU and additions (ForwardFoldScaleAxis). FoldScaleAxis does both.
// Requires: scales are constants (run FoldConstant first); plain layouts; backwards, values used once on the way;
// forwards, uses that all can take the scale.
// Ensures: the same function up to rounding; no more operators than before where weights are constants, else products
// over weights in place of those over activations.
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
