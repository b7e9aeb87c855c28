// SPDX-License-Identifier: Apache-2.0
// Operators that exporters wrote before ONNX had them: of com.microsoft, and the experimental ones of ONNX's first
// sets, which onnxruntime still runs.
#include "base/format.h"
#include "frontend/matrices.h"
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/linear.h"
#include "frontend/onnx/converters/quant.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

Values expand_dims(NodeContext& c) {
  const Expr x = c.input(0);
  return {c.expand(x, c.axis(c.int_scalar(1, "axis"), c.rank(x) + 1))};
}

Values inverse(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t rank = c.rank(x);
  if (rank < 2 || c.dims(x)[static_cast<size_t>(rank - 2)] != c.dims(x).back())
    c.fail_type("its matrices are not square");
  return {c.cast(frontend::inverse(c, c.cast(x, kFloat64)), c.dtype(x))};
}

// Distances between the rows of two matrices.
Values distances(NodeContext& c) {
  const std::string metric = c.string_attr("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") c.unsupported(format("the metric '{}'", metric));
  dims_of_rank(c, c.input(0), 2, "first operand"), dims_of_rank(c, c.input(1), 2, "second operand");
  const Expr apart = c.sub(c.expand(c.input(0), 1), c.expand(c.input(1), 0));
  const Expr sum = c.reduce("sum", c.mul(apart, apart), {2}, false);
  return {metric == "euclidean" ? c.call("sqrt", {sum}) : sum};
}

Values integer_product(NodeContext& c) {
  return {matmul_of(c, without_zero_point(c, c.input(0), {}, -1), without_zero_point(c, c.input(1), {}, -1))};
}

// All slices of `size` along an axis; they come last.
Values unfold(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t rank = c.rank(x), dim = c.axis(c.int_attr("dim", -1), rank);
  const int64_t size = c.int_attr("size"), step = c.int_attr("step", 1), length = c.dims(x)[static_cast<size_t>(dim)];
  if (size < 1 || step < 1 || size > length)
    c.fail(format("slices of {} in steps of {} do not fit {}", size, step, length));
  Ints places;
  const int64_t count = (length - size) / step + 1;
  c.product({count, size});
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < size; ++k) places.push_back(i * step + k);
  const Expr taken =
      c.call("take", {x, c.reshape(c.ints_constant(places), {count, size})}, make_attrs<relay::TakeAttrs>([&](auto& a) {
               a.axis = dim;
               a.mode = "fast";
             }));
  Ints order;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != dim + 1) order.push_back(i);
  order.push_back(dim + 1);
  return {c.transpose(taken, order)};
}

// ONNX's Unique of a vector in the order of first places, without these.
Values unique(NodeContext& c) {
  Node node = c.node();
  node.domain.clear();
  node.outputs.insert(node.outputs.begin() + 1, std::string());
  node.attributes = {int_attribute("sorted", 0)};
  Values made = c.importer().converted(node, {{"", 11}}, {c.input(0)});
  made.erase(made.begin() + 1);
  return made;
}

// alpha * x + beta
Expr line(NodeContext& c, const Expr& x, double alpha, double beta) {
  return c.add(c.mul(x, c.scalar_like(alpha, x)), c.scalar_like(beta, x));
}
Values affine(NodeContext& c) { return {line(c, c.input(0), c.float_attr("alpha", 1), c.float_attr("beta", 0))}; }
Values scale(NodeContext& c) { return {line(c, c.input(0), c.float_attr("scale", 1), 0)}; }
Values scaled_tanh(NodeContext& c) {
  const Expr x = c.input(0), inner = c.mul(x, c.scalar_like(c.float_attr("beta", 1), x));
  return {c.mul(c.call("tanh", {inner}), c.scalar_like(c.float_attr("alpha", 1), x))};
}
Values image_scaler(NodeContext& c) {
  const Expr x = c.input(0);
  const auto d = dims_of_rank(c, x, 4, "image");
  const auto bias = c.floats_attr("bias");
  if (static_cast<int64_t>(bias.size()) != d[1]) c.fail(format("it has {} biases for {} channels", bias.size(), d[1]));
  Tensor values(kFloat32, {1, d[1], 1, 1});
  for (size_t i = 0; i < bias.size(); ++i) values.set_double(static_cast<int64_t>(i), bias[i]);
  return {c.add(line(c, x, c.float_attr("scale", 1), 0), c.cast(c.constant_of(values), c.dtype(x)))};
}
// The border is (left, top, right, bottom); with a scale (height, width) the image begins at (left, top).
Values crop(NodeContext& c) {
  const Expr x = c.input(0);
  const auto d = dims_of_rank(c, x, 4, "image"), border = c.ints_attr("border"), size = c.ints_attr("scale");
  if (border.size() != 4 || (!size.empty() && size.size() != 2)) c.fail("its border or its scale is not complete");
  const int64_t bottom = size.empty() ? d[2] - border[3] : border[1] + size[0];
  const int64_t right = size.empty() ? d[3] - border[2] : border[0] + size[1];
  if (border[0] < 0 || border[1] < 0 || bottom > d[2] || right > d[3] || bottom < border[1] || right < border[0])
    c.fail(format("its border {} does not fit an image {}", shape_str(border), shape_str(d)));
  return {c.slice(c.slice(x, 2, border[1], bottom), 3, border[0], right)};
}

constexpr ConverterEntry kExported[] = {
    {"ExpandDims", 1, expand_dims, "com.microsoft"},
    {"Inverse", 1, inverse, "com.microsoft"},
    {"CDist", 1, distances, "com.microsoft"},
    {"MatMulInteger16", 1, integer_product, "com.microsoft"},
    {"UnfoldTensor", 1, unfold, "com.microsoft"},
    {"Unique", 1, unique, "com.microsoft"},
    {"Affine", 1, affine},
    {"Scale", 1, scale},
    {"ScaledTanh", 1, scaled_tanh},
    {"ImageScaler", 1, image_scaler},
    {"Crop", 1, crop},
};

}  // namespace

std::span<const ConverterEntry> exported_converters() { return kExported; }

}  // namespace tilewright::onnx
