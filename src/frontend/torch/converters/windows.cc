// SPDX-License-Identifier: Apache-2.0
// im2col, histograms, and grouped products, in which rows are multiplied by the matrix of their group (experts).
#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace windows {
namespace {

using Ints = std::vector<int64_t>;

// (N, C, H, W) to (N, C * window, number of windows): one gather with constant indices.
Values im2col(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool alone = c.rank(x) == 3;
  if (alone) x = c.expand(x, 0);
  const Ints kernel = c.ints("kernel_size", 2, 1), dilation = c.ints("dilation", 2, 1),
             padding = c.ints("padding", 2, 0), stride = c.ints("stride", 2, 1);
  Ints d = c.dims(x);
  if (d.size() != 4) c.fail_type("its operand is no picture");
  if (padding[0] > 0 || padding[1] > 0)
    x = c.call("nn.pad", {x, c.scalar_like(0, x)}, make_attrs<relay::PadAttrs>([&](auto& a) {
                 a.pad_width = {{0, 0}, {0, 0}, {padding[0], padding[0]}, {padding[1], padding[1]}};
               }));
  d[2] += 2 * padding[0];
  d[3] += 2 * padding[1];
  Ints count(2);
  for (size_t i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || padding[i] < 0) c.fail("its windows are impossible");
    const int64_t room = d[i + 2] - dilation[i] * (kernel[i] - 1) - 1;
    if (room < 0) c.fail_type("its window is larger than the picture");
    count[i] = room / stride[i] + 1;
  }
  Ints places;
  const int64_t total = c.product({kernel[0], kernel[1], count[0], count[1]});
  places.reserve(static_cast<size_t>(total));
  for (int64_t ky = 0; ky < kernel[0]; ++ky)
    for (int64_t kx = 0; kx < kernel[1]; ++kx)
      for (int64_t y = 0; y < count[0]; ++y)
        for (int64_t i = 0; i < count[1]; ++i)
          places.push_back((y * stride[0] + ky * dilation[0]) * d[3] + i * stride[1] + kx * dilation[1]);
  Expr flat = c.reshaped(x, {d[0], d[1], d[2] * d[3]});
  Expr y = c.call("take", {flat, c.ints_constant(places)}, make_attrs<relay::TakeAttrs>([](auto& a) {
                    a.axis = 2;
                    a.mode = "fast";
                  }));
  y = c.reshaped(y, {d[0], d[1] * kernel[0] * kernel[1], count[0] * count[1]});
  return {alone ? c.squeeze(y, {0}) : y};
}

Values col2im(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool alone = c.rank(x) == 2;
  if (alone) x = c.expand(x, 0);
  const Ints padding = c.ints("padding", 2, 0);
  Expr y = c.onnx("Col2Im", 18,
                  {x, c.ints_constant(c.ints("output_size", 2, 1)), c.ints_constant(c.ints("kernel_size", 2, 1))},
                  {{"dilations", c.ints("dilation", 2, 1)},
                   {"pads", Ints{padding[0], padding[1], padding[0], padding[1]}},
                   {"strides", c.ints("stride", 2, 1)}})[0];
  return {alone ? c.squeeze(y, {0}) : y};
}

// Counts the elements in each of `bins` equal intervals of [min, max].
Values histc(NodeContext& c) {
  const Expr x = c.reshaped(c.real(c.tensor("self")), {-1});
  const int64_t bins = c.integer("bins", 100);
  if (bins < 1) c.fail(format("it has {} bins", bins));
  double least = c.number("min", 0), most = c.number("max", 0);
  if (most < least) c.fail("its largest value is below its least");
  Expr low = c.scalar_like(least, x), high = c.scalar_like(most, x);
  if (least == most) {
    low = c.reduce("min", x, {0}, false);
    high = c.reduce("max", x, {0}, false);
    const Expr one = c.scalar_like(1, x), flat = c.call("equal", {low, high});
    Expr below = c.sub(low, one), above = c.add(high, one);
    low = c.where(flat, below, low);
    high = c.where(flat, above, high);
  }
  Expr place =
      c.call("floor",
             {c.call("divide", {c.mul(c.sub(x, low), c.scalar_like(static_cast<double>(bins), x)), c.sub(high, low)})});
  place = c.where(c.call("equal", {x, high}), c.scalar_like(static_cast<double>(bins - 1), x), place);
  const Expr every = c.cast(c.counting(bins, 0), c.dtype(x));
  const Expr hits = c.call("equal", {c.expand(place, 1), c.expand(every, 0)});
  return {c.reduce("sum", c.cast(hits, c.dtype(x)), {0}, false)};
}

Expr product(NodeContext& c, const Expr& a, const Expr& b) { return c.onnx("MatMul", 13, {a, b}, {})[0]; }

// Row r times the matrix of the first group whose end is above r; rows behind the last end become zero.
Expr grouped(NodeContext& c, const Expr& rows, const Expr& weights, const Expr& ends) {
  const Ints shape = c.dims(rows), groups = c.dims(weights);
  if (shape.size() != 2 || groups.size() != 3 || c.rank(ends) != 1)
    c.unsupported("groups that are not rows of one matrix");
  const int64_t count = shape[0];
  const Expr numbers = c.cast(c.counting(count, 0), kInt64), limits = c.cast(ends, kInt64);
  const Expr passed = c.cast(c.call("less_equal", {c.expand(limits, 0), c.expand(numbers, 1)}), kInt64);
  const Expr group = c.reduce("sum", passed, {1}, false);  // the group of each row
  if (count <= groups[0]) {
    // With fewer rows than matrices, gathers only the matrices in use.
    const Expr last = c.scalar(static_cast<double>(groups[0] - 1), kInt64);
    const Expr own =
        c.call("take", {weights, c.call("minimum", {group, last})}, make_attrs<relay::TakeAttrs>([](auto& a) {
                 a.axis = 0;
                 a.mode = "fast";
               }));
    const Expr made = c.squeeze(product(c, c.expand(rows, 1), own), {1});
    const Expr inside = c.call("less_equal", {group, last});
    return c.where(c.expand(inside, 1), made, c.scalar_like(0, made));
  }
  const Expr made = product(c, c.broadcast_to(c.expand(rows, 0), {groups[0], shape[0], shape[1]}), weights);
  const Expr every = c.cast(c.counting(groups[0], 0), kInt64);
  const Expr mine = c.call("equal", {c.expand(every, 1), c.expand(group, 0)});
  return c.reduce("sum", c.where(c.expand(mine, 2), made, c.scalar_like(0, made)), {0}, false);
}
Values grouped_fallback(NodeContext& c) {
  return {grouped(c, c.tensor("input"), c.tensor("weight"), c.tensor("offs"))};
}
Values grouped_product(NodeContext& c) {
  Expr y = grouped(c, c.tensor("self"), c.tensor("mat2"), c.tensor("offs"));
  if (c.has("bias")) c.unsupported("a bias");
  return {c.cast(y, c.dtype_arg("out_dtype", c.dtype(y)))};
}

constexpr ConverterEntry kTable[] = {
    {"aten.im2col", im2col},
    {"aten.col2im", col2im},
    {"aten.histc", histc},
    {"aten._grouped_mm", grouped_product},
    {"transformers.grouped_mm_fallback", grouped_fallback},
};

}  // namespace
}  // namespace windows

std::span<const ConverterEntry> windows_converters() { return windows::kTable; }

}  // namespace tilewright::torch
