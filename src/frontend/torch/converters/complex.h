// SPDX-License-Identifier: Apache-2.0
// What converters of complex tensors share: such a tensor is a real one whose last axis has real and imaginary parts.
#pragma once
#include "frontend/torch/convert.h"

namespace tilewright::torch::complex {

struct Parts {
  Expr real, imaginary;  // imaginary: null for real tensors
};
Value as_complex(Expr e);
// The number of axes as PyTorch counts them.
int64_t axes_of(NodeContext& c, const Value& v);
Parts parts_of(NodeContext& c, const Value& v);
// A complex tensor from its parts; a missing part is zero.
Value joined(NodeContext& c, Expr real, Expr imaginary);
// Zeros of the tensor's own shape.
Expr zeros_of(NodeContext& c, const Expr& e);
// Of two parts each.
Parts times(NodeContext& c, const Parts& a, const Parts& b);
Parts exponential_of(NodeContext& c, const Parts& p);
Expr squared_length(NodeContext& c, const Parts& p);
Expr length_of(NodeContext& c, const Parts& p);
Expr angle_of(NodeContext& c, const Parts& p);

}  // namespace tilewright::torch::complex

namespace tilewright::torch {

// What complex operands are converted by beside the tables of complex.cc.
std::span<const ConverterEntry> converters_of_complex_functions();
std::span<const ConverterEntry> converters_of_complex_matrices();

}  // namespace tilewright::torch
