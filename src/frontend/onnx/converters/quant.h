// SPDX-License-Identifier: Apache-2.0
// Affine quantisation as ONNX's and onnxruntime's quantised operators define it.
#pragma once
#include <array>

#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// Reshapes a scale or zero point to broadcast against x: per tensor, per place along `axis`, or per `block` along it.
Expr along_axis(NodeContext& c, Expr v, const Expr& x, int64_t axis, int64_t block = 0);
// saturate(round(x) + zero_point) as `to`; x is float32.
Expr to_integers(NodeContext& c, const Expr& x, const Expr& zero_point, DataType to);
// (x - zero_point) * scale
Expr dequantized(NodeContext& c, const Expr& x, const Expr& scale, const Expr& zero_point, int64_t axis, int64_t block,
                 DataType to);
// x quantised to uint8 by its own range, with the scale and zero point.
std::array<Expr, 3> dynamically_quantized(NodeContext& c, const Expr& x);
// x - zero_point in int32; a vector of zero points runs along `axis`.
Expr without_zero_point(NodeContext& c, const Expr& x, const Expr& zero_point, int64_t axis);
// QLinearConv with x in place of operand 0.
Expr quantized_convolution(NodeContext& c, const Expr& x);

}  // namespace tilewright::onnx
