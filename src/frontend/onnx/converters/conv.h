// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools by the node's ONNX attributes, for converters of operators that extend them.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// Conv of x and weight; the bias may be null.
Expr convolution_of(NodeContext& c, Expr x, const Expr& weight, const Expr& bias);
// The values (not the indices) of MaxPool and AveragePool.
Expr largest_of_windows(NodeContext& c, const Expr& x);
Expr average_of_windows(NodeContext& c, const Expr& x);

// (batch, ..., channels) as (batch, channels, ...), and back.
Expr channels_first(NodeContext& c, const Expr& x);
Expr channels_last(NodeContext& c, const Expr& x);

}  // namespace tilewright::onnx
