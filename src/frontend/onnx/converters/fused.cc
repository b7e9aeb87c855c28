// SPDX-License-Identifier: Apache-2.0
// com.microsoft: the fused operators that onnxruntime's optimiser makes of a product or convolution and its consumers.
// They are decomposed again, so that this compiler's own fusion decides what to combine.
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/converters/activation.h"
#include "frontend/onnx/converters/conv.h"
#include "frontend/onnx/converters/linear.h"

namespace tilewright::onnx {
namespace {

// A convolution's activation parameters come as a list.
FusedActivation activation_of_list(NodeContext& c) {
  const auto values = c.floats_attr("activation_params");
  auto at = [&](size_t i) { return i < values.size() ? std::optional<double>(values[i]) : std::nullopt; };
  return {c.string_attr("activation", ""), at(0), at(1)};
}

// act(conv(x) + z)
Expr fused_convolution(NodeContext& c, const Expr& x, const Expr& other) {
  Expr y = convolution_of(c, x, c.input(1), c.has(2) ? c.input(2) : Expr());
  return activated(c, other ? c.add(y, other) : y, activation_of_list(c));
}
Values fused_conv(NodeContext& c) { return {fused_convolution(c, c.input(0), c.has(3) ? c.input(3) : Expr())}; }
Values nhwc_fused_conv(NodeContext& c) {
  const Expr other = c.has(3) ? channels_first(c, c.input(3)) : Expr();
  return {channels_last(c, fused_convolution(c, channels_first(c, c.input(0)), other))};
}

Values fused_gemm(NodeContext& c) {
  auto number = [&](const char* name) {
    return c.has_attr(name) ? std::optional<double>(c.float_attr(name, 0)) : std::nullopt;
  };
  return {activated(c, gemm_of(c),
                    {c.string_attr("activation", ""), number("activation_alpha"), number("activation_beta")})};
}

// alpha * A B. trans* swaps the last two axes; transBatch* first moves the leading axis behind the other batch axes.
Values fused_matmul(NodeContext& c) {
  auto turned = [&](const Expr& e, const char* trans, const char* trans_batch) {
    const int64_t rank = c.rank(e);
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    if (rank < 2) return e;
    if (c.int_attr(trans_batch, 0) != 0) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
    if (c.int_attr(trans, 0) != 0) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return rank == 2 && axes[0] == 1 ? transposed_matrix(c, e) : c.transpose(e, axes);
  };
  const Expr a = turned(c.input(0), "transA", "transBatchA"), b = turned(c.input(1), "transB", "transBatchB");
  const Expr y = matmul_of(c, a, b);
  const double alpha = c.float_attr("alpha", 1);
  return {alpha == 1 ? y : c.mul(y, c.scalar_like(alpha, y))};
}

// Softmax of data + bias over the axes from `axis` on; a bias that is not innermost is broadcast along the axis before.
Values bias_softmax(NodeContext& c) {
  const Expr x = c.input(0), bias = c.input(1);
  const int64_t rank = c.rank(x), axis = c.axis(c.int_attr("axis", 1), rank);
  const auto d = c.dims(x);
  Expr sum;
  if (c.int_attr("is_inner_broadcast", 1) != 0) {
    sum = c.add(x, bias);
  } else {
    // A bias of shape (batch, 1, ..., columns) already has ones where data of shape (batch, heads, ..., columns) do
    // not.
    sum = c.add(x, c.rank(bias) == rank ? bias : c.expand(bias, 1, rank - c.rank(bias)));
  }
  const int64_t rows = c.product(d, 0, axis), columns = c.product(d, axis);
  Expr y = c.call("nn.softmax", {c.reshape(sum, {rows, columns})},
                  make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = 1; }));
  return {c.reshape(y, d)};
}

constexpr ConverterEntry kFused[] = {
    {"FusedConv", 1, fused_conv, "com.microsoft"},         {"NhwcFusedConv", 1, nhwc_fused_conv, "com.microsoft"},
    {"FusedGemm", 1, fused_gemm, "com.microsoft"},         {"FusedMatMul", 1, fused_matmul, "com.microsoft"},
    {"TransposeMatMul", 1, fused_matmul, "com.microsoft"}, {"BiasSoftmax", 1, bias_softmax, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> fused_converters() { return kFused; }

}  // namespace tilewright::onnx
