// SPDX-License-Identifier: Apache-2.0
// What normalisations of ONNX and of com.microsoft share.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// 1 / sqrt(power + epsilon)
Expr inverse_root(NodeContext& c, const Expr& power, double epsilon);

struct RootMeanSquare {
  Expr y, inverse;
};
// RMS normalisation over the axes from `axis` on, in float32 or wider; the result has the type of gamma.
RootMeanSquare root_mean_square_norm(NodeContext& c, const Expr& x, int64_t axis, const Expr& gamma, double epsilon);

}  // namespace tilewright::onnx
