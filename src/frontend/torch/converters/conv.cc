// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and resizing: windows by PyTorch's rules, and ONNX's converters where details such as rounding up
// and coordinates agree.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace conv {
namespace {

using Ints = std::vector<int64_t>;
using OnnxAttributes = std::vector<NodeContext::OnnxAttribute>;

// The operand with a batch axis; `alone` is set when it had none.
Expr with_batch(NodeContext& c, const Expr& x, int64_t spatial, bool* alone) {
  *alone = c.rank(x) == spatial + 1;
  if (!*alone && c.rank(x) != spatial + 2)
    c.fail_type(format("its input of rank {} has not {} spatial axes", c.rank(x), spatial));
  return *alone ? c.expand(x, 0) : x;
}
Expr without_batch(NodeContext& c, const Expr& y, bool alone) { return alone ? c.squeeze(y, {0}) : y; }

Expr convolved(NodeContext& c, Expr x, const Expr& weight, const Ints& stride, Ints padding, const Ints& dilation,
               int64_t groups) {
  const auto n = static_cast<size_t>(c.rank(weight)) - 2;
  bool alone = false;
  x = with_batch(c, x, static_cast<int64_t>(n), &alone);
  if (padding.size() == n) padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<int64_t>(n));
  Expr y = c.onnx("Conv", 11, {x, weight, c.has("bias") ? c.tensor("bias") : Expr()},
                  {{"strides", stride}, {"pads", padding}, {"dilations", dilation}, {"group", groups}})[0];
  return without_batch(c, y, alone);
}
template <size_t kAxes>
Values conv_nd(NodeContext& c) {
  Expr weight = c.tensor("weight");
  if (c.rank(weight) != static_cast<int64_t>(kAxes) + 2) c.fail_type("its weight has another rank");
  const Ints stride = c.ints("stride", kAxes, 1), dilation = c.ints("dilation", kAxes, 1), sizes = c.dims(weight);
  Ints padding(2 * kAxes, 0);
  if (const Value* given = c.find("padding"); given && given->kind == Value::kText) {
    if (given->text != "same" && given->text != "valid") c.fail(format("its padding '{}' is unknown", given->text));
    for (size_t i = 0; i < kAxes && given->text == "same"; ++i) {
      const int64_t total = dilation[i] * (sizes[i + 2] - 1);
      padding[i] = total / 2, padding[i + kAxes] = total - total / 2;  // the odd element goes to the end
    }
  } else {
    padding = c.ints("padding", kAxes, 0);
  }
  return {convolved(c, c.tensor("input"), weight, stride, padding, dilation, c.integer("groups", 1))};
}

// With its padding as a text, in as many axes as the weight has.
Values conv_mode(NodeContext& c) {
  switch (c.rank(c.tensor("weight"))) {
    case 3:
      return conv_nd<1>(c);
    case 4:
      return conv_nd<2>(c);
    default:
      return conv_nd<3>(c);
  }
}

Expr transposed(NodeContext& c, Expr x, const Expr& weight, const Ints& stride, Ints padding, const Ints& dilation,
                const Ints& output_padding, int64_t groups) {
  if (c.rank(weight) < 3 || padding.size() != static_cast<size_t>(c.rank(weight)) - 2)
    c.fail_type("its weight has another rank");
  const auto n = static_cast<size_t>(c.rank(weight)) - 2;
  bool alone = false;
  x = with_batch(c, x, static_cast<int64_t>(n), &alone);
  padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<int64_t>(n));
  Expr y = c.onnx("ConvTranspose", 11, {x, weight, c.has("bias") ? c.tensor("bias") : Expr()},
                  {{"strides", stride},
                   {"pads", padding},
                   {"dilations", dilation},
                   {"output_padding", output_padding},
                   {"group", groups}})[0];
  return without_batch(c, y, alone);
}
template <size_t kAxes>
Values conv_transpose_nd(NodeContext& c) {
  return {transposed(c, c.tensor("input"), c.tensor("weight"), c.ints("stride", kAxes, 1), c.ints("padding", kAxes, 0),
                     c.ints("dilation", kAxes, 1), c.ints("output_padding", kAxes, 0), c.integer("groups", 1))};
}
Values convolution(NodeContext& c) {
  Expr x = c.tensor("input"), weight = c.tensor("weight");
  if (c.rank(weight) < 3) c.fail_type("its weight has no spatial axis");
  const auto n = static_cast<size_t>(c.rank(weight)) - 2;
  const Ints stride = c.ints("stride", n, 1), padding = c.ints("padding", n, 0), dilation = c.ints("dilation", n, 1);
  if (!c.flag("transposed", false)) return {convolved(c, x, weight, stride, padding, dilation, c.integer("groups", 1))};
  return {transposed(c, x, weight, stride, padding, dilation, c.ints("output_padding", n, 0), c.integer("groups", 1))};
}

struct Window {
  Ints kernel, stride, padding, dilation;
  bool ceil = false;
};
Window window_of(NodeContext& c, size_t axes) {
  Window w;
  w.kernel = c.ints("kernel_size", axes, 1);
  w.stride = c.has("stride") && !c.ints("stride").empty() ? c.ints("stride", axes, 1) : w.kernel;
  w.padding = c.ints("padding", axes, 0);
  w.dilation = c.ints("dilation", axes, 1);
  w.ceil = c.flag("ceil_mode", false);
  return w;
}
OnnxAttributes pool_attributes(const Window& w) {
  Ints pads = w.padding;
  pads.insert(pads.end(), w.padding.begin(), w.padding.end());
  return {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", pads}, {"ceil_mode", int64_t{w.ceil}}};
}
template <size_t kAxes, bool kIndices>
Values max_pool(NodeContext& c) {
  bool alone = false;
  Expr x = with_batch(c, c.tensor("self"), kAxes, &alone);
  const Window w = window_of(c, kAxes);
  OnnxAttributes attributes = pool_attributes(w);
  attributes.push_back({"dilations", w.dilation});
  if (!kIndices) return {without_batch(c, c.onnx("MaxPool", 12, {x}, attributes)[0], alone)};
  std::vector<Expr> made = c.onnx("MaxPool", 12, {x}, attributes, 2);
  // ONNX's indices count in the whole tensor, PyTorch's in one channel's image.
  const Ints d = c.dims(x);
  Expr area = c.scalar(static_cast<double>(c.product(d, 2)), kInt64);
  Expr places = c.call("floor_mod", {made[1], area});
  return {without_batch(c, made[0], alone), without_batch(c, places, alone)};
}
template <size_t kAxes>
Values avg_pool(NodeContext& c) {
  bool alone = false;
  Expr x = with_batch(c, c.tensor("self"), kAxes, &alone);
  const Window w = window_of(c, kAxes);
  const bool include = c.flag("count_include_pad", true);
  OnnxAttributes attributes = pool_attributes(w);
  attributes.push_back({"count_include_pad", int64_t{include}});
  Expr y;
  if (c.has("divisor_override")) {
    // Window sums (divisor_override): the average times the window's volume over the divisor.
    double volume = 1;
    for (int64_t k : w.kernel) volume *= static_cast<double>(k);
    if (w.ceil) c.unsupported("a divisor of its own where windows hang over the edge");
    attributes.back() = {"count_include_pad", int64_t{1}};
    y = c.onnx("AveragePool", 11, {x}, attributes)[0];
    y = c.mul(y, c.scalar_like(volume / c.number("divisor_override"), y));
  } else {
    y = c.onnx("AveragePool", 11, {x}, attributes)[0];
  }
  return {without_batch(c, y, alone)};
}

// Windows of uneven extent: a product with an averaging matrix along each axis that does not divide evenly.
template <size_t kAxes>
Values adaptive_avg_pool(NodeContext& c) {
  bool alone = false;
  Expr x = with_batch(c, c.tensor("self"), kAxes, &alone);
  const Ints d = c.dims(x);
  Ints size(kAxes, -1);
  const Value& given = c.value("output_size");
  for (size_t i = 0; i < kAxes; ++i) {
    const Value& v =
        given.list ? given.list->at(given.list->size() == 1 ? 0 : std::min(i, given.list->size() - 1)) : given;
    size[i] = v.kind == Value::kNothing ? d[i + 2] : c.integer_of(v, "output_size");
    if (size[i] < 1) c.fail(format("its output has {} elements along an axis", size[i]));
  }
  Expr y;
  auto attrs = [&](auto& a) { a.output_size = size; };
  if (kAxes == 1) y = c.call("nn.adaptive_avg_pool1d", {x}, make_attrs<relay::AdaptivePool1DAttrs>(attrs));
  if (kAxes == 2) y = c.call("nn.adaptive_avg_pool2d", {x}, make_attrs<relay::AdaptivePool2DAttrs>(attrs));
  if (kAxes == 3) y = c.call("nn.adaptive_avg_pool3d", {x}, make_attrs<relay::AdaptivePool3DAttrs>(attrs));
  return {without_batch(c, y, alone)};
}
template <size_t kAxes>
Values adaptive_max_pool(NodeContext& c) {
  bool alone = false;
  Expr x = with_batch(c, c.tensor("self"), kAxes, &alone);
  const Ints size = c.ints("output_size", kAxes, 1);
  auto attrs = [&](auto& a) { a.output_size = size; };
  Expr y;
  if (kAxes == 1) y = c.call("nn.adaptive_max_pool1d", {x}, make_attrs<relay::AdaptivePool1DAttrs>(attrs));
  if (kAxes == 2) y = c.call("nn.adaptive_max_pool2d", {x}, make_attrs<relay::AdaptivePool2DAttrs>(attrs));
  if (kAxes == 3) y = c.call("nn.adaptive_max_pool3d", {x}, make_attrs<relay::AdaptivePool3DAttrs>(attrs));
  return {without_batch(c, y, alone)};
}

// ONNX's Resize of the spatial axes. `exact`: nearest by pixel centres (nearest-exact).
Expr resized(NodeContext& c, const std::string& mode, bool corners, bool antialias, bool exact = false) {
  Expr x = c.tensor(c.has("self") ? "self" : "input");
  const Ints d = c.dims(x);
  if (d.size() < 3 || d.size() > 5) c.fail_type(format("its input has rank {}", d.size()));
  const size_t n = d.size() - 2;
  std::vector<double> scales(n, 0);
  Ints size(n);
  // Given scales define the coordinates; otherwise they follow from the sizes.
  const char* singles[] = {"scales_d", "scales_h", "scales_w"};
  for (size_t i = 0; i < n; ++i) {
    const char* name = n == 1 && c.has("scales") ? "scales" : singles[3 - n + i];
    if (auto s = c.maybe_number(name)) scales[i] = *s;
  }
  if (const Value* factors = c.find("scale_factors")) {
    if (!factors->list || factors->list->size() != n) c.fail("it has another number of scale_factors than axes");
    scales = c.numbers("scale_factors");
  }
  if (c.has("output_size")) {
    size = c.ints("output_size", n, 1);
  } else {
    for (size_t i = 0; i < n; ++i)
      size[i] = static_cast<int64_t>(std::floor(static_cast<double>(d[i + 2]) * scales[i]));
  }
  for (int64_t s : size)
    if (s < 1) c.fail(format("it makes {} elements along an axis", s));
  const bool scaled = !corners && std::all_of(scales.begin(), scales.end(), [](double s) { return s > 0; });
  bool consistent = scaled;
  for (size_t i = 0; i < n && consistent; ++i)
    consistent = static_cast<int64_t>(std::floor(static_cast<double>(d[i + 2]) * scales[i])) == size[i];
  const std::string coordinates = corners ? "align_corners" : mode == "nearest" && !exact ? "asymmetric" : "half_pixel";
  OnnxAttributes attributes = {{"mode", mode},
                               {"coordinate_transformation_mode", coordinates},
                               {"nearest_mode", std::string(exact ? "round_prefer_ceil" : "floor")},
                               {"cubic_coeff_a", antialias ? -0.5 : -0.75},
                               {"antialias", int64_t{antialias}},
                               {"exclude_outside", int64_t{antialias}}};
  if (consistent) {
    Tensor t = Tensor::zeros(kFloat32, {static_cast<int64_t>(d.size())});
    for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, i < 2 ? 1 : scales[static_cast<size_t>(i) - 2]);
    return c.onnx("Resize", 18, {x, Expr(), c.constant_of(t), Expr()}, attributes)[0];
  }
  Ints all = {d[0], d[1]};
  all.insert(all.end(), size.begin(), size.end());
  return c.onnx("Resize", 18, {x, Expr(), Expr(), c.ints_constant(all)}, attributes)[0];
}
Values nearest(NodeContext& c) { return {resized(c, "nearest", false, false)}; }
Values nearest_exact(NodeContext& c) { return {resized(c, "nearest", false, false, true)}; }
Values linear(NodeContext& c) { return {resized(c, "linear", c.flag("align_corners", false), false)}; }
Values cubic(NodeContext& c) { return {resized(c, "cubic", c.flag("align_corners", false), false)}; }
Values linear_smooth(NodeContext& c) { return {resized(c, "linear", c.flag("align_corners", false), true)}; }
Values cubic_smooth(NodeContext& c) { return {resized(c, "cubic", c.flag("align_corners", false), true)}; }

constexpr ConverterEntry kTable[] = {
    {"aten.conv1d", conv_nd<1>},
    {"aten.conv2d", conv_nd<2>},
    {"aten.conv3d", conv_nd<3>},
    {"aten.conv_transpose1d", conv_transpose_nd<1>},
    {"aten.conv_transpose2d", conv_transpose_nd<2>},
    {"aten.conv_transpose3d", conv_transpose_nd<3>},
    {"aten.convolution", convolution},
    {"aten._convolution", convolution},
    {"aten._convolution_mode", conv_mode},
    {"aten.max_pool1d", max_pool<1, false>},
    {"aten.max_pool2d", max_pool<2, false>},
    {"aten.max_pool3d", max_pool<3, false>},
    {"aten.max_pool1d_with_indices", max_pool<1, true>},
    {"aten.max_pool2d_with_indices", max_pool<2, true>},
    {"aten.max_pool3d_with_indices", max_pool<3, true>},
    {"aten.avg_pool1d", avg_pool<1>},
    {"aten.avg_pool2d", avg_pool<2>},
    {"aten.avg_pool3d", avg_pool<3>},
    {"aten.adaptive_avg_pool1d", adaptive_avg_pool<1>},
    {"aten.adaptive_avg_pool2d", adaptive_avg_pool<2>},
    {"aten._adaptive_avg_pool2d", adaptive_avg_pool<2>},
    {"aten.adaptive_avg_pool3d", adaptive_avg_pool<3>},
    {"aten._adaptive_avg_pool3d", adaptive_avg_pool<3>},
    {"aten.adaptive_max_pool1d", adaptive_max_pool<1>},
    {"aten.adaptive_max_pool2d", adaptive_max_pool<2>},
    {"aten.adaptive_max_pool3d", adaptive_max_pool<3>},
    {"aten.upsample_nearest1d", nearest},
    {"aten.upsample_nearest2d", nearest},
    {"aten.upsample_nearest3d", nearest},
    {"aten._upsample_nearest_exact1d", nearest_exact},
    {"aten._upsample_nearest_exact2d", nearest_exact},
    {"aten._upsample_nearest_exact3d", nearest_exact},
    {"aten.upsample_linear1d", linear},
    {"aten.upsample_bilinear2d", linear},
    {"aten.upsample_trilinear3d", linear},
    {"aten.upsample_bicubic2d", cubic},
    {"aten._upsample_bilinear2d_aa", linear_smooth},
    {"aten._upsample_bicubic2d_aa", cubic_smooth},
};

}  // namespace
}  // namespace conv

std::span<const ConverterEntry> conv_converters() { return conv::kTable; }

}  // namespace tilewright::torch
