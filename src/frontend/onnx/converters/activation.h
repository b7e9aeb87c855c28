// SPDX-License-Identifier: Apache-2.0
// Activations that other families apply to their results.
#pragma once
#include <optional>

#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

Expr gelu_of(NodeContext& c, const Expr& x, bool tanh);
// log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|)).
Expr softplus_of(NodeContext& c, const Expr& x);

// The activation that a fused operator names, with its parameters (or the operator's defaults).
struct FusedActivation {
  std::string name;  // empty: none
  std::optional<double> alpha, beta;
};
Expr activated(NodeContext& c, const Expr& x, const FusedActivation& activation);

}  // namespace tilewright::onnx
