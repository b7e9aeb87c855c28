// SPDX-License-Identifier: Apache-2.0
// FuseComposites: fuses decomposed layer normalisations and GELUs into single operators.
// What: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * gamma + beta over the last axis -> nn.layer_norm. Gamma and
// beta may be missing. x * (1 + erf(x / sqrt(2))) / 2, its factors in any order -> nn.gelu, which needs half the
// instructions; x * (1 + tanh(u)) / 2 -> x * sigmoid(2 * u). (SiLU, hard swish stay elementwise chains: the epilogue
// compiler takes any of them.)
// Requires: float tensors; constants folded.
// Ensures: the same function up to rounding.
// Why here: after SimplifyExpr, which writes squares and roots in one way; before FoldScaleAxis, which takes the
// factors apart, and fusion.
// Test: tests/relay/passes/fuse_composites*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fuse_composites(const Module& module, PassContext& context);
}  // namespace tilewright::relay
