// SPDX-License-Identifier: Apache-2.0
// Matrix products: MatMul of any rank, Gemm, Einsum; their integer counterparts are in quant.cc.
#include "frontend/onnx/converters/linear.h"

#include <cstring>

#include <algorithm>

#include "base/format.h"

namespace tilewright::onnx {
namespace {

// Transposes a constant matrix as opaque elements, in tiles, whatever their type.
Tensor transposed(const Tensor& t) {
  int64_t rows = t.shape()[0], columns = t.shape()[1];
  Tensor out(t.dtype(), {columns, rows});
  auto width = static_cast<int64_t>(t.dtype().bytes());
  const std::byte* from = t.raw();
  std::byte* to = out.mutable_raw();
  constexpr int64_t kTile = 32;  // a tile's rows and columns, read and written, fit into the L1 cache
  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (int64_t c0 = 0; c0 < columns; c0 += kTile)
      for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
          std::memcpy(to + (c * rows + r) * width, from + (r * columns + c) * width, static_cast<size_t>(width));
  return out;
}

}  // namespace

Expr transposed_matrix(NodeContext& c, const Expr& e) {
  const Tensor* t = c.known(e);
  if (t && t->dtype().bits >= 8 && !t->dtype().is_string()) {
    Expr turned = c.constant_of(transposed(*t));
    c.release_pages(*t);
    return turned;
  }
  return c.transpose(e, {1, 0});
}

Expr matmul_of(NodeContext& c, Expr a, Expr b) {
  int64_t ra = c.rank(a), rb = c.rank(b);
  if (ra == 0 || rb == 0) c.fail_type("a scalar cannot be multiplied as a matrix");
  bool drop_row = ra == 1, drop_column = rb == 1;
  if (drop_row) a = c.expand(a, 0);
  if (drop_column) b = c.expand(b, 1);
  ra = c.rank(a), rb = c.rank(b);
  Expr y;
  if (rb == 2 && c.known(b)) {
    // A weight: nn.dense takes it as (N, K), as the classic stack does.
    y = c.call("nn.dense", {a, transposed_matrix(c, b)}, make_attrs<relay::DenseAttrs>([&](auto& attrs) {
                 if (auto n = c.shape(b)[1].constant()) attrs.units = *n;
               }));
  } else if (rb == 2) {
    y = c.call("nn.matmul", {a, b}, make_attrs<relay::MatmulAttrs>([](auto&) {}));
  } else {
    if (ra == 2) a = c.expand(a, 0, rb - 2);
    if (c.rank(a) < rb) a = c.expand(a, 0, rb - c.rank(a));
    if (rb < c.rank(a)) b = c.expand(b, 0, c.rank(a) - rb);
    y = c.call("nn.batch_matmul", {a, b},
               make_attrs<relay::BatchMatmulAttrs>([](auto& attrs) { attrs.transpose_b = false; }));
  }
  int64_t rank = c.rank(y);
  std::vector<int64_t> gone;
  if (drop_row) gone.push_back(rank - 2);
  if (drop_column) gone.push_back(rank - 1);
  return c.squeeze(y, gone);
}

namespace {

Values matmul(NodeContext& c) { return {matmul_of(c, c.input(0), c.input(1))}; }

}  // namespace

Expr gemm_of(NodeContext& c) {
  Expr a = c.input(0), b = c.input(1);
  if (c.opset() < 7 && c.rank(a) > 2) a = c.call("nn.batch_flatten", {a});
  if (c.rank(a) != 2 || c.rank(b) != 2)
    c.fail_type(format("its operands have rank {} and {}, 2 and 2 are needed", c.rank(a), c.rank(b)));
  bool trans_a = c.int_attr("transA", 0) != 0, trans_b = c.int_attr("transB", 0) != 0;
  double alpha = c.float_attr("alpha", 1), beta = c.float_attr("beta", 1);
  if (trans_a) a = transposed_matrix(c, a);
  Expr weight = trans_b ? b : transposed_matrix(c, b);
  Expr y = c.call("nn.dense", {a, weight}, make_attrs<relay::DenseAttrs>([&](auto& attrs) {
                    if (auto n = c.shape(weight)[0].constant()) attrs.units = *n;
                  }));
  if (alpha != 1) y = c.mul(y, c.scalar_like(alpha, y));
  if (!c.has(2) || beta == 0) return y;
  Expr bias = c.input(2);
  if (beta != 1) bias = c.mul(bias, c.scalar_like(beta, bias));
  if (c.rank(bias) == 1 && c.shape(bias)[0] == c.shape(y)[1])
    return c.call("nn.bias_add", {y, bias}, make_attrs<relay::BiasAddAttrs>([](auto& attrs) { attrs.axis = 1; }));
  return c.add(y, bias);
}

namespace {

Values gemm(NodeContext& c) { return {gemm_of(c)}; }

Values einsum(NodeContext& c) {
  std::string equation = c.string_attr("equation", "");
  std::string compact;
  for (char ch : equation)
    if (ch != ' ') compact += ch;
  return {c.call("einsum", {relay::make_tuple(c.all_inputs())},
                 make_attrs<relay::EinsumAttrs>([&](auto& a) { a.equation = compact; }))};
}

constexpr ConverterEntry kLinearConverters[] = {
    {"MatMul", 1, matmul},
    {"Gemm", 1, gemm},
    {"Einsum", 12, einsum},
};

}  // namespace

std::span<const ConverterEntry> linear_converters() { return kLinearConverters; }

}  // namespace tilewright::onnx
