// SPDX-License-Identifier: Apache-2.0
// Integers that stand for real numbers, as ONNX's quantised operators and onnxruntime's see them.
#pragma once
#include <array>

#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// A scale or zero point against a tensor: a scalar, a vector along `axis`, or blocks of `block` elements along it.
Expr along_axis(NodeContext& c, Expr v, const Expr& x, int64_t axis, int64_t block = 0);
// saturate(round(x) + zero_point) as `to`; x is float32.
Expr to_integers(NodeContext& c, const Expr& x, const Expr& zero_point, DataType to);
// (x - zero_point) * scale
Expr dequantized(NodeContext& c, const Expr& x, const Expr& scale, const Expr& zero_point, int64_t axis, int64_t block,
                 DataType to);
// Operand 0 as uint8, its scale and its zero point, by its own range.
std::array<Expr, 3> dynamically_quantized(NodeContext& c);
// x - zero_point in int32; a vector of zero points runs along `axis`.
Expr without_zero_point(NodeContext& c, const Expr& x, const Expr& zero_point, int64_t axis);
// QLinearConv of x, which stands for operand 0.
Expr quantized_convolution(NodeContext& c, const Expr& x);

}  // namespace tilewright::onnx
