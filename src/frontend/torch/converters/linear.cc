// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace linear {
namespace {

Expr product_of(NodeContext& c, const Expr& a, const Expr& b) {
  // The graph IR multiplies floats and narrow integers only.
  const DataType dtype = c.dtype(a);
  if (!dtype.is_float()) {
    Expr wide = c.onnx("MatMul", 13, {c.cast(a, kFloat64), c.cast(b, kFloat64)}, {})[0];
    return c.cast(wide, dtype);
  }
  return c.onnx("MatMul", 13, {a, b}, {})[0];
}

// Of bytes, in int32.
Values product_of_bytes(NodeContext& c) {
  return {product_of(c, c.cast(c.tensor("self"), kInt32), c.cast(c.tensor("mat2"), kInt32))};
}

// x (..., K) times the transpose of a weight (N, K), the layout that nn.dense takes.
Expr dense(NodeContext& c, const Expr& x, const Expr& weight) {
  if (c.rank(weight) == 1) return product_of(c, x, weight);
  auto call = [&](const Expr& data) {
    return c.call("nn.dense", {data, weight}, make_attrs<relay::DenseAttrs>([&](auto& a) {
                    if (auto n = c.shape(weight).at(0).constant()) a.units = *n;
                  }));
  };
  if (c.rank(x) == 1) return c.squeeze(call(c.expand(x, 0)), {0});
  return call(x);
}
Values linear(NodeContext& c) {
  Expr x = c.tensor("input"), y = dense(c, x, c.tensor("weight"));
  if (!c.has("bias")) return {y};
  Expr bias = c.tensor("bias");
  if (c.rank(bias) == 1 && c.rank(y) >= 1)
    return {c.call("nn.bias_add", {y, bias}, make_attrs<relay::BiasAddAttrs>([](auto& a) { a.axis = -1; }))};
  return {c.add(y, bias)};
}
Values matmul(NodeContext& c) { return {product_of(c, c.tensor("self"), c.tensor("other"))}; }
Values mm(NodeContext& c) { return {product_of(c, c.tensor("self"), c.tensor("mat2"))}; }
Values mv(NodeContext& c) { return {product_of(c, c.tensor("self"), c.tensor("vec"))}; }
Values dot(NodeContext& c) { return {product_of(c, c.tensor("self"), c.tensor(c.has("tensor") ? "tensor" : "other"))}; }
Values outer(NodeContext& c) { return {c.mul(c.expand(c.tensor("self"), 1), c.expand(c.tensor("vec2"), 0))}; }

// beta * self + alpha * product
Values added(NodeContext& c, const Expr& product) {
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  Expr y = alpha == 1 ? product : c.mul(product, c.scalar_like(alpha, product));
  if (beta == 0) return {y};
  Expr self = c.tensor("self");
  if (beta != 1) self = c.mul(self, c.scalar_like(beta, self));
  if (c.rank(self) == 1 && c.rank(y) == 2 && c.shape(self).at(0) == c.shape(y).at(1))
    return {c.call("nn.bias_add", {y, self}, make_attrs<relay::BiasAddAttrs>([](auto& a) { a.axis = 1; }))};
  return {c.add(y, self)};
}
Values addmm(NodeContext& c) { return added(c, product_of(c, c.tensor("mat1"), c.tensor("mat2"))); }
Values addmv(NodeContext& c) { return added(c, product_of(c, c.tensor("mat"), c.tensor("vec"))); }
Values baddbmm(NodeContext& c) { return added(c, product_of(c, c.tensor("batch1"), c.tensor("batch2"))); }
Values addbmm(NodeContext& c) {
  return added(c, c.reduce("sum", product_of(c, c.tensor("batch1"), c.tensor("batch2")), {0}, false));
}
Values einsum(NodeContext& c) {
  std::string equation;
  for (char ch : c.text("equation", ""))
    if (ch != ' ') equation += ch;
  return {c.call("einsum", {relay::make_tuple(c.tensors("tensors"))},
                 make_attrs<relay::EinsumAttrs>([&](auto& a) { a.equation = equation; }))};
}
// y[o] = a W[o] b
Values bilinear(NodeContext& c) {
  Expr a = c.tensor("input1"), b = c.tensor("input2"), weight = c.tensor("weight");
  Expr y = c.call("einsum", {relay::make_tuple({a, weight, b})},
                  make_attrs<relay::EinsumAttrs>([](auto& at) { at.equation = "...i,oij,...j->...o"; }));
  return {c.has("bias") ? c.add(y, c.tensor("bias")) : y};
}

// What decompositions leave of bilinear: a product of three tensors with new axes, summed over some.
Values trilinear(NodeContext& c) {
  std::string equation, result;
  int64_t rank = 0;
  for (const char* name : {"1", "2", "3"}) {
    const std::string which(name);
    const auto more = c.ints("expand" + which);
    rank = c.rank(c.tensor("i" + which)) + static_cast<int64_t>(more.size());
    if (rank > 20) c.unsupported(format("{} axes", rank));
    equation += equation.empty() ? "" : ",";
    for (int64_t axis = 0; axis < rank; ++axis)
      if (std::find(more.begin(), more.end(), axis) == more.end()) equation += static_cast<char>('a' + axis);
  }
  const auto sums = c.ints("sumdim");
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(sums.begin(), sums.end(), axis) == sums.end()) result += static_cast<char>('a' + axis);
  return {c.call("einsum", {relay::make_tuple({c.tensor("i1"), c.tensor("i2"), c.tensor("i3")})},
                 make_attrs<relay::EinsumAttrs>([&](auto& a) { a.equation = equation + "->" + result; }))};
}

constexpr ConverterEntry kTable[] = {
    {"aten._int_mm", product_of_bytes},
    {"aten.linear", linear},
    {"aten.matmul", matmul},
    {"aten.linalg_matmul", matmul},
    {"aten.mm", mm},
    {"aten.bmm", mm},
    {"aten.mv", mv},
    {"aten.dot", dot},
    {"aten.vdot", dot},
    {"aten.outer", outer},
    {"aten.ger", outer},
    {"aten.addmm", addmm},
    {"aten.addmv", addmv},
    {"aten.baddbmm", baddbmm},
    {"aten.addbmm", addbmm},
    {"aten.einsum", einsum},
    {"aten.bilinear", bilinear},
    {"aten._trilinear", trilinear},
};

}  // namespace
}  // namespace linear

std::span<const ConverterEntry> linear_converters() { return linear::kTable; }

}  // namespace tilewright::torch
