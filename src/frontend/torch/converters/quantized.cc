// SPDX-License-Identifier: Apache-2.0
// Quantised models. PT2E's quantized_decomposed operators become qnn.quantize and qnn.dequantize. A quantised tensor of
// TorchScript is represented by its real values: whatever produces one rounds its result to the grid of the scale
// (quantize, then dequantize). Every operator can then take it, and passes that recognise such pairs turn products into
// integer ones again.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/importer.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::torch {
namespace quantized_operators {
namespace {

struct Grid {
  Expr scale, zero_point;
  DataType dtype;
  int64_t least = 0, most = 255;  // range of the integers used
  int64_t axis = -1;              // axis of per-channel scales
};

std::pair<int64_t, int64_t> whole_range(DataType t) {
  const int64_t half = int64_t{1} << (t.bits - 1);
  return t.is_uint() ? std::pair<int64_t, int64_t>{0, 2 * half - 1} : std::pair<int64_t, int64_t>{-half, half - 1};
}

Expr clipped(NodeContext& c, const Expr& x, double low, double high) {
  return c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                  a.a_min = low;
                  a.a_max = high;
                }));
}

Expr quantized(NodeContext& c, const Expr& x, const Grid& g) {
  Expr integers = c.call("qnn.quantize", {x, g.scale, c.cast(g.zero_point, g.dtype)},
                         make_attrs<relay::QuantizeAttrs>([&](auto& a) {
                           a.rounding = "TONEVEN";
                           a.out_dtype = g.dtype.str();
                           a.axis = g.axis;
                         }));
  const auto [least, most] = whole_range(g.dtype);
  if (g.least <= least && g.most >= most) return integers;
  return clipped(c, integers, static_cast<double>(g.least), static_cast<double>(g.most));
}
Expr dequantized(NodeContext& c, const Expr& integers, const Grid& g, DataType to = kFloat32) {
  return c.call("qnn.dequantize", {integers, g.scale, c.cast(g.zero_point, c.dtype(integers))},
                make_attrs<relay::DequantizeAttrs>([&](auto& a) {
                  a.out_dtype = to.str();
                  a.axis = g.axis;
                }));
}
Expr rounded(NodeContext& c, const Expr& x, const Grid& g) { return dequantized(c, quantized(c, x, g), g); }

// A Python number or a one-element tensor.
Expr scale_of(NodeContext& c, const Value& v) { return c.reshape(c.as_tensor(v, kFloat32), {}); }
Expr zero_of(NodeContext& c, const Value& v) { return c.reshape(c.as_tensor(v, kInt32), {}); }

DataType integer_dtype(NodeContext& c, const char* name) {
  const DataType t = c.dtype_arg(name, kUInt8);
  if (!t.is_integral() || t.bits > 32) c.unsupported(format("the quantised dtype {}", t.str()));
  return t;
}

// ---- quantized_decomposed: tensors of integers

Grid decomposed_grid(NodeContext& c, const char* scale, const char* zero_point) {
  Grid g;
  g.dtype = integer_dtype(c, "dtype");
  const auto [least, most] = whole_range(g.dtype);
  g.least = std::max(least, c.maybe_integer("quant_min").value_or(least));
  g.most = std::min(most, c.maybe_integer("quant_max").value_or(most));
  g.scale = c.as_tensor(c.value(scale), kFloat32);
  g.zero_point = c.has(zero_point) ? c.as_tensor(c.value(zero_point), kInt32) : c.scalar(0, kInt32);
  return g;
}
Grid tensor_grid(NodeContext& c) {
  Grid g = decomposed_grid(c, "scale", "zero_point");
  g.scale = c.reshape(g.scale, {});
  g.zero_point = c.reshape(g.zero_point, {});
  return g;
}
Grid channel_grid(NodeContext& c, int64_t rank) {
  Grid g = decomposed_grid(c, "scales", "zero_points");
  g.axis = c.dim(c.integer("axis"), rank);
  if (c.rank(g.zero_point) == 0) g.zero_point = c.broadcast_to(g.zero_point, c.dims(g.scale));
  return g;
}
Values quantize_tensor(NodeContext& c) { return {quantized(c, c.real(c.tensor("input")), tensor_grid(c))}; }
Values dequantize_tensor(NodeContext& c) {
  return {dequantized(c, c.tensor("input"), tensor_grid(c), c.dtype_arg("out_dtype", kFloat32))};
}
Values quantize_channels(NodeContext& c) {
  Expr x = c.real(c.tensor("input"));
  return {quantized(c, x, channel_grid(c, c.rank(x)))};
}
Values dequantize_channels(NodeContext& c) {
  Expr x = c.tensor("input");
  return {dequantized(c, x, channel_grid(c, c.rank(x)), c.dtype_arg("out_dtype", kFloat32))};
}

// The scale and zero point that map a tensor's range (extended to contain zero) to [least, most].
Grid fitted(NodeContext& c, const Expr& x, int64_t least, int64_t most, double smallest, DataType dtype) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  Expr zero = c.scalar(0, kFloat32), steps = c.scalar(static_cast<double>(most - least), kFloat32);
  Expr low = c.call("minimum", {c.reduce("min", x, axes, false), zero});
  Expr high = c.call("maximum", {c.reduce("max", x, axes, false), zero});
  Grid g;
  g.dtype = dtype;
  g.least = least;
  g.most = most;
  g.scale = c.call("maximum", {c.div(c.sub(high, low), steps), c.scalar(smallest, kFloat32)});
  Expr place = c.sub(c.scalar(static_cast<double>(least), kFloat32), c.call("nearbyint", {c.div(low, g.scale)}));
  g.zero_point = c.cast(clipped(c, place, static_cast<double>(least), static_cast<double>(most)), kInt32);
  return g;
}
Values choose_grid(NodeContext& c) {
  Expr x = c.cast(c.tensor("input"), kFloat32);
  const DataType dtype = integer_dtype(c, "dtype");
  const double eps = c.number("eps", 1.1920928955078125e-07);
  Grid g = fitted(c, x, c.integer("quant_min"), c.integer("quant_max"), eps, dtype);
  return {g.scale, c.cast(g.zero_point, kInt64)};
}

// ---- aten: real values on a grid

Values fake_quantize(NodeContext& c) {
  Grid g;
  g.least = c.integer("quant_min");
  g.most = c.integer("quant_max");
  if (g.least > g.most || g.least < INT32_MIN || g.most > INT32_MAX)
    c.fail(format("its range [{}, {}] is impossible", g.least, g.most));
  g.dtype = g.least >= 0 && g.most <= 255 ? kUInt8 : g.least >= -128 && g.most <= 127 ? kInt8 : kInt32;
  Expr x = c.tensor("self");
  g.scale = c.as_tensor(c.value("scale"), kFloat32);
  g.zero_point = c.as_tensor(c.value("zero_point"), kInt32);
  if (c.has("axis"))
    g.axis = c.dim(c.integer("axis"), c.rank(x));
  else
    g.scale = c.reshape(g.scale, {}), g.zero_point = c.reshape(g.zero_point, {});
  return {rounded(c, x, g)};
}
Value with_grid(Expr y, const Grid& g) {
  Value out(std::move(y));
  out.grid = std::make_shared<TensorGrid>(TensorGrid{g.scale, g.zero_point, g.dtype});
  return out;
}
Values make_quantized(NodeContext& c) {
  Grid g;
  g.dtype = integer_dtype(c, "dtype");
  std::tie(g.least, g.most) = whole_range(g.dtype);
  g.scale = scale_of(c, c.value("scale"));
  g.zero_point = zero_of(c, c.value("zero_point"));
  return {with_grid(rounded(c, c.tensor("self"), g), g)};
}
Values make_quantized_channels(NodeContext& c) {
  Grid g;
  g.dtype = integer_dtype(c, "dtype");
  std::tie(g.least, g.most) = whole_range(g.dtype);
  Expr x = c.tensor("self");
  g.scale = c.as_tensor(c.value("scales"), kFloat32);
  g.zero_point = c.as_tensor(c.value("zero_points"), kInt32);
  g.axis = c.dim(c.integer("axis"), c.rank(x));
  return {rounded(c, x, g)};
}
Values dequantize_value(NodeContext& c) {
  const Value& v = c.positional(0);
  if (v.list) {
    Values items(*v.list);
    return {Value::of_list(std::move(items))};
  }
  return {Value(c.positional(0).expr)};
}

// ---- quantized: TorchScript's operators on real values on a grid

// The last two arguments are the scale and zero point of the uint8 result.
Value on_grid(NodeContext& c, const Expr& y, size_t scale_at) {
  if (c.argument_count() < scale_at + 2 || !c.positional(scale_at).expr) return y;  // same grid as the operand's
  Grid g;
  g.dtype = kUInt8;
  g.scale = scale_of(c, c.positional(scale_at));
  g.zero_point = zero_of(c, c.positional(scale_at + 1));
  return with_grid(rounded(c, y, g), g);
}

Expr operand(NodeContext& c, size_t i) {
  const Value& v = c.positional(i);
  if (!v.expr) c.fail_type(format("its argument {} is not a tensor", i));
  return v.expr;
}
Value with(NodeContext& c, const char* target, NamedValues arguments) {
  Values made = c.aten(target, std::move(arguments));
  if (made.empty()) c.fail(format("{} made nothing", target));
  return made[0];
}

// What torch_script.py writes for packed weights: [[values, scales, zero points, axis], bias, stride, padding,
// dilation, output padding, groups, transposed].
struct Packed {
  Expr weight;
  Values parts;
};
Packed unpacked(NodeContext& c, size_t i) {
  const Value& v = c.positional(i);
  if (!v.list || v.list->size() < 2 || !v.list->at(0).list || v.list->at(0).list->size() != 4)
    c.fail_type("its packed weights are not those of a convolution or a linear layer");
  Packed p;
  p.parts = *v.list;
  const Values& w = *v.list->at(0).list;
  if (!w[0].expr || !w[1].expr || !w[2].expr) c.fail_type("its packed weights are not tensors");
  Grid g;
  g.scale = w[1].expr;
  g.zero_point = w[2].expr;
  g.axis = c.rank(g.scale) == 0 ? -1 : c.dim(c.integer_of(w[3], "axis"), c.rank(w[0].expr));
  g.dtype = kInt8;
  g.least = -128;
  g.most = 127;
  p.weight = c.dtype(w[0].expr).is_float() ? rounded(c, w[0].expr, g) : dequantized(c, w[0].expr, g);
  return p;
}

Expr convolved(NodeContext& c) {
  Packed p = unpacked(c, 1);
  if (p.parts.size() != 8) c.fail_type("its packed weights are not those of a convolution");
  Expr x = operand(c, 0);
  return with(c, "aten.convolution.default",
              {{"input", Value(x)},
               {"weight", Value(p.weight)},
               {"bias", p.parts[1]},
               {"stride", p.parts[2]},
               {"padding", p.parts[3]},
               {"dilation", p.parts[4]},
               {"transposed", p.parts[7]},
               {"output_padding", p.parts[5]},
               {"groups", p.parts[6]}})
      .expr;
}
Expr multiplied(NodeContext& c, const Expr& x) {
  Packed p = unpacked(c, 1);
  return with(c, "aten.linear.default", {{"input", Value(x)}, {"weight", Value(p.weight)}, {"bias", p.parts[1]}}).expr;
}
Expr relu(NodeContext& c, const Expr& e) { return c.call("nn.relu", {e}); }

Values conv(NodeContext& c) { return {on_grid(c, convolved(c), 2)}; }
Values conv_relu(NodeContext& c) { return {on_grid(c, relu(c, convolved(c)), 2)}; }
Values linear(NodeContext& c) { return {on_grid(c, multiplied(c, operand(c, 0)), 2)}; }
Values linear_relu(NodeContext& c) { return {on_grid(c, relu(c, multiplied(c, operand(c, 0))), 2)}; }
// Dynamic quantisation: the operand's range gives its grid; the result is real.
Values linear_dynamic(NodeContext& c) {
  Expr x = operand(c, 0);
  const bool reduced = c.argument_count() > 2 && c.flag("reduce_range", false);
  return {multiplied(c, rounded(c, x, fitted(c, x, 0, reduced ? 127 : 255, 1e-30, kUInt8)))};
}
Values linear_relu_dynamic(NodeContext& c) { return {relu(c, linear_dynamic(c)[0].expr)}; }

// quantized::add_scalar and mul_scalar change scale and zero point only: the result is on a grid without rounding.
template <bool kRelu>
Values sum(NodeContext& c) {
  Expr y = c.add(operand(c, 0), c.as_tensor(c.positional(1), kFloat32));
  return {on_grid(c, kRelu ? relu(c, y) : y, 2)};
}
template <bool kRelu>
Values product(NodeContext& c) {
  Expr y = c.mul(operand(c, 0), c.as_tensor(c.positional(1), kFloat32));
  return {on_grid(c, kRelu ? relu(c, y) : y, 2)};
}
template <bool kRelu>
Values concatenated(NodeContext& c) {
  const Value& parts = c.positional(0);
  if (!parts.list) c.fail_type("its first argument is not a list");
  Expr y = with(c, "aten.cat.default", {{"tensors", parts}, {"dim", c.positional(1)}}).expr;
  return {on_grid(c, kRelu ? relu(c, y) : y, 2)};
}
// Bounds are rounded to the operand's grid, too.
Value bounded(NodeContext& c, const Expr& y, const Value& operand) {
  if (!operand.grid) return y;
  const Grid g{operand.grid->scale, operand.grid->zero_point, operand.grid->dtype};
  return with_grid(rounded(c, y, g), g);
}
Values relu6(NodeContext& c) { return {bounded(c, clipped(c, operand(c, 0), 0, 6), c.positional(0))}; }
Values hardswish(NodeContext& c) {
  return {on_grid(c, with(c, "aten.hardswish.default", {{"self", c.positional(0)}}).expr, 1)};
}
Values sigmoid(NodeContext& c) { return {on_grid(c, c.call("sigmoid", {operand(c, 0)}), 1)}; }
Values leaky_relu(NodeContext& c) {
  Expr y = with(c, "aten.leaky_relu.default", {{"self", c.positional(0)}, {"negative_slope", c.positional(1)}}).expr;
  return {on_grid(c, y, 3)};
}
Values elu(NodeContext& c) {
  Expr y = with(c, "aten.elu.default", {{"self", c.positional(0)}, {"alpha", c.positional(3)}}).expr;
  return {on_grid(c, y, 1)};
}
template <bool kRelu>
Values batch_norm(NodeContext& c) {
  Value no = Value::number(c.scalar(0, kBool));
  Expr y = with(c, "aten.batch_norm.default",
                {{"input", c.positional(0)},
                 {"weight", c.positional(1)},
                 {"bias", c.positional(2)},
                 {"running_mean", c.positional(3)},
                 {"running_var", c.positional(4)},
                 {"training", no},
                 {"momentum", Value::number(c.scalar(0.1, kFloat64))},
                 {"eps", c.positional(5)},
                 {"cudnn_enabled", no}})
               .expr;
  return {on_grid(c, kRelu ? relu(c, y) : y, 6)};
}
Values layer_norm(NodeContext& c) {
  Expr y = with(c, "aten.layer_norm.default",
                {{"input", c.positional(0)},
                 {"normalized_shape", c.positional(1)},
                 {"weight", c.positional(2)},
                 {"bias", c.positional(3)},
                 {"eps", c.positional(4)}})
               .expr;
  return {on_grid(c, y, 5)};
}
Values group_norm(NodeContext& c) {
  Expr y = with(c, "aten.group_norm.default",
                {{"input", c.positional(0)},
                 {"num_groups", c.positional(1)},
                 {"weight", c.positional(2)},
                 {"bias", c.positional(3)},
                 {"eps", c.positional(4)}})
               .expr;
  return {on_grid(c, y, 5)};
}
template <const char* kTarget>
Values max_pool(NodeContext& c) {
  NamedValues arguments;
  const char* names[] = {"self", "kernel_size", "stride", "padding", "dilation", "ceil_mode"};
  for (size_t i = 0; i < std::size(names) && i < c.argument_count(); ++i)
    arguments.emplace_back(names[i], c.positional(i));
  Value out = with(c, kTarget, std::move(arguments));
  out.grid = c.positional(0).grid;
  return {out};
}
constexpr char kMaxPool1d[] = "aten.max_pool1d.default", kMaxPool2d[] = "aten.max_pool2d.default",
               kMaxPool3d[] = "aten.max_pool3d.default";

constexpr ConverterEntry kQuantizedConverters[] = {
    {"quantized_decomposed.quantize_per_tensor", quantize_tensor},
    {"quantized_decomposed.dequantize_per_tensor", dequantize_tensor},
    {"quantized_decomposed.quantize_per_channel", quantize_channels},
    {"quantized_decomposed.dequantize_per_channel", dequantize_channels},
    {"quantized_decomposed.choose_qparams", choose_grid},
    {"aten.fake_quantize_per_tensor_affine", fake_quantize},
    {"aten.fake_quantize_per_channel_affine", fake_quantize},
    {"aten.quantize_per_tensor", make_quantized},
    {"aten.quantize_per_channel", make_quantized_channels},
    {"aten.dequantize", dequantize_value},
    {"quantized.conv1d", conv},
    {"quantized.conv2d", conv},
    {"quantized.conv3d", conv},
    {"quantized.conv1d_relu", conv_relu},
    {"quantized.conv2d_relu", conv_relu},
    {"quantized.conv3d_relu", conv_relu},
    {"quantized.conv_transpose1d", conv},
    {"quantized.conv_transpose2d", conv},
    {"quantized.conv_transpose3d", conv},
    {"quantized.linear", linear},
    {"quantized.linear_relu", linear_relu},
    {"quantized.linear_dynamic", linear_dynamic},
    {"quantized.linear_relu_dynamic", linear_relu_dynamic},
    {"quantized.add", sum<false>},
    {"quantized.add_relu", sum<true>},
    {"quantized.add_scalar", sum<false>},
    {"quantized.add_scalar_relu", sum<true>},
    {"quantized.mul", product<false>},
    {"quantized.mul_relu", product<true>},
    {"quantized.mul_scalar", product<false>},
    {"quantized.mul_scalar_relu", product<true>},
    {"quantized.cat", concatenated<false>},
    {"quantized.cat_relu", concatenated<true>},
    {"quantized.relu6", relu6},
    {"quantized.hardswish", hardswish},
    {"quantized.sigmoid", sigmoid},
    {"quantized.leaky_relu", leaky_relu},
    {"quantized.elu", elu},
    {"quantized.batch_norm1d", batch_norm<false>},
    {"quantized.batch_norm2d", batch_norm<false>},
    {"quantized.batch_norm3d", batch_norm<false>},
    {"quantized.batch_norm2d_relu", batch_norm<true>},
    {"quantized.batch_norm3d_relu", batch_norm<true>},
    {"quantized.layer_norm", layer_norm},
    {"quantized.group_norm", group_norm},
    {"quantized.max_pool1d", max_pool<kMaxPool1d>},
    {"quantized.max_pool2d", max_pool<kMaxPool2d>},
    {"quantized.max_pool3d", max_pool<kMaxPool3d>},
};

template <size_t kCount>
bool among(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The average of integers, rounded: sums of integers are exact, those of their real values are not, and halves are
// common in averages of four.
Values averaged(NodeContext& c, const Node& node, const NamedValues& arguments) {
  const Value& self = arguments[0].second;
  const Grid g{self.grid->scale, self.grid->zero_point, self.grid->dtype};
  NamedValues of_integers = arguments;
  of_integers[0].second = Value(c.call("nearbyint", {c.div(self.expr, g.scale)}));
  const Values made = convert_resolved(c.place(), node, std::move(of_integers));
  if (made.size() != 1 || !made[0].expr) c.fail("it averages a quantised tensor to several");
  // Halves go to the even integer, which the zero point decides: PyTorch's mean adds it first, its pools after
  // convolutions do not. (Those of tensors in contiguous memory do; the layout is none of a graph's business.)
  const Expr shift = without_overload(node.target) == "aten.mean" ? c.cast(g.zero_point, kFloat32) : nullptr;
  Expr y = c.call("nearbyint", {shift ? c.add(made[0].expr, shift) : made[0].expr});
  if (shift) y = c.sub(y, shift);
  return {with_grid(rounded(c, c.mul(y, g.scale), g), g)};
}

}  // namespace
}  // namespace quantized_operators

std::optional<Values> convert_on_grid(const Place& place, const Node& node, const NamedValues& arguments) {
  namespace family = quantized_operators;
  static constexpr std::string_view kAverages[] = {
      "aten.mean",       "aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d",
      "aten.avg_pool1d", "aten.avg_pool2d",          "aten.avg_pool3d",          "aten.upsample_bilinear2d"};
  static constexpr std::string_view kBounds[] = {"aten.hardtanh", "aten.clamp", "aten.relu6"};
  static constexpr std::string_view kKeeping[] = {"aten.relu",       "aten.max_pool1d",      "aten.max_pool2d",
                                                  "aten.max_pool3d", "aten.flatten",         "aten.reshape",
                                                  "aten.view",       "aten.permute",         "aten.transpose",
                                                  "aten.squeeze",    "aten.unsqueeze",       "aten.slice",
                                                  "aten.select",     "aten.contiguous",      "aten.clone",
                                                  "aten.detach",     "aten.dropout",         "aten.expand",
                                                  "aten.repeat",     "aten.channel_shuffle", "aten.upsample_nearest2d"};
  const bool on_grid = !arguments.empty() && arguments[0].second.grid && arguments[0].second.expr &&
                       is_complete(arguments[0].second.expr->type);
  if (!on_grid) return std::nullopt;
  const std::string_view op = without_overload(node.target);
  NodeContext c(place, node, {});
  if (family::among(kAverages, op)) return family::averaged(c, node, arguments);
  const bool bounds = family::among(kBounds, op);
  if (!bounds && !family::among(kKeeping, op)) return std::nullopt;
  Values made = convert_resolved(place, node, arguments);
  for (Value& v : made) {
    if (!v.expr) continue;
    if (bounds) v = family::bounded(c, v.expr, arguments[0].second);
    v.grid = arguments[0].second.grid;
  }
  return made;
}

std::span<const ConverterEntry> quantized_converters() { return quantized_operators::kQuantizedConverters; }

}  // namespace tilewright::torch
