// SPDX-License-Identifier: Apache-2.0
// Activations. Most are composed of elementwise graph operators, which fuse into the operator that produces their
// input.
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace activation {
namespace {

Expr clip(NodeContext& c, const Expr& x, double low, double high) {
  return c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                  a.a_min = low;
                  a.a_max = high;
                }));
}
Expr times(NodeContext& c, const Expr& x, double factor) {
  return factor == 1 ? x : c.mul(x, c.scalar_like(factor, x));
}

Values relu(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_float() ? c.call("nn.relu", {x}) : c.call("maximum", {x, c.zero_like(x)})};
}
Values relu6(NodeContext& c) { return {clip(c, c.tensor("self"), 0, 6)}; }
Values hardtanh(NodeContext& c) { return {clip(c, c.tensor("self"), c.number("min_val", -1), c.number("max_val", 1))}; }
Values leaky_relu(NodeContext& c) {
  const double slope = c.number("negative_slope", 0.01);
  return {c.call("nn.leaky_relu", {c.tensor("self")},
                 make_attrs<relay::LeakyReluAttrs>([&](auto& a) { a.alpha = slope; }))};
}
// scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
Expr exponential_unit(NodeContext& c, const Expr& x, double alpha, double scale, double input_scale) {
  Expr below = times(c, c.call("minimum", {x, c.zero_like(x)}), input_scale);
  Expr curve = times(c, c.sub(c.call("exp", {below}), c.scalar_like(1, x)), alpha);
  return times(c, c.add(c.call("nn.relu", {x}), curve), scale);
}
Values elu(NodeContext& c) {
  return {
      exponential_unit(c, c.tensor("self"), c.number("alpha", 1), c.number("scale", 1), c.number("input_scale", 1))};
}
Values selu(NodeContext& c) {
  return {
      exponential_unit(c, c.tensor("self"), 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)};
}
Values celu(NodeContext& c) {
  const double alpha = c.number("alpha", 1);
  return {exponential_unit(c, c.tensor("self"), alpha, 1, 1 / alpha)};
}
Values gelu(NodeContext& c) {
  Expr x = c.tensor("self");
  const std::string approximate = c.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    c.fail(format("its approximation '{}' is neither none nor tanh", approximate));
  return {c.onnx("Gelu", 20, {x}, {{"approximate", approximate}})[0]};
}
Values silu(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.mul(x, c.call("sigmoid", {x}))};
}
Values mish(NodeContext& c) { return {c.onnx("Mish", 18, {c.tensor("self")}, {})[0]}; }
Expr hard_sigmoid_of(NodeContext& c, const Expr& x) {
  return clip(c, c.add(times(c, x, 1.0 / 6), c.scalar_like(0.5, x)), 0, 1);
}
Values hardsigmoid(NodeContext& c) { return {hard_sigmoid_of(c, c.tensor("self"))}; }
Values hardswish(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.mul(x, hard_sigmoid_of(c, x))};
}
// log(1 + exp(x)) without overflow.
Expr softplus_of(NodeContext& c, const Expr& x) {
  Expr tail = c.call("exp", {c.call("negative", {c.call("abs", {x})})});
  return c.add(c.call("nn.relu", {x}), c.call("log1p", {tail}));
}
Values softplus(NodeContext& c) {
  Expr x = c.tensor("self");
  const double beta = c.number("beta", 1), threshold = c.number("threshold", 20);
  Expr scaled = times(c, x, beta);
  Expr curve = times(c, softplus_of(c, scaled), 1 / beta);
  return {c.where(c.call("greater", {scaled, c.scalar_like(threshold, x)}), x, curve)};
}
Values log_sigmoid(NodeContext& c) {
  return {c.call("negative", {softplus_of(c, c.call("negative", {c.tensor("self")}))})};
}
Values log_sigmoid_forward(NodeContext& c) {
  Expr x = c.tensor("self");
  Expr tail = c.call("exp", {c.call("negative", {c.call("abs", {x})})});
  return {log_sigmoid(c)[0], tail};
}
Values prelu(NodeContext& c) {
  Expr x = c.tensor("self"), slope = c.tensor("weight");
  if (c.rank(slope) == 1 && c.shape(slope).at(0) == Dim(1)) slope = c.reshape(slope, {});
  if (c.rank(slope) == 1 && c.rank(x) > 2) slope = c.expand(slope, 1, c.rank(x) - 2);
  return {c.where(c.call("greater", {x, c.zero_like(x)}), x, c.mul(x, slope))};
}
Values glu(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", -1), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  if (size % 2 != 0) c.fail_type(format("an axis of {} has no halves", size));
  Expr a = c.slice(x, axis, 0, size / 2), b = c.slice(x, axis, size / 2, size);
  return {c.mul(a, c.call("sigmoid", {b}))};
}
Values softsign(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.div(x, c.add(c.call("abs", {x}), c.scalar_like(1, x)))};
}
Values softshrink(NodeContext& c) {
  Expr x = c.tensor("self"), bound = c.scalar_like(c.number("lambd", 0.5), x);
  Expr up = c.call("greater", {x, bound}), down = c.call("less", {x, c.call("negative", {bound})});
  return {c.where(up, c.sub(x, bound), c.where(down, c.add(x, bound), c.mul(x, c.zero_like(x))))};
}
Values hardshrink(NodeContext& c) {
  Expr x = c.tensor("self"), bound = c.scalar_like(c.number("lambd", 0.5), x);
  return {c.where(c.call("less_equal", {c.call("abs", {x}), bound}), c.zero_like(x), x)};
}
Values threshold(NodeContext& c) {
  Expr x = c.tensor("self");
  Expr bound = c.as_tensor(c.value("threshold"), c.dtype(x)), value = c.as_tensor(c.value("value"), c.dtype(x));
  return {c.where(c.call("less_equal", {x, bound}), value, x)};
}

template <const char* kOp>
Values softmax(NodeContext& c) {
  Expr x = c.cast(c.tensor("self"), c.dtype_arg("dtype", c.dtype(c.tensor("self"))));
  if (!c.dtype(x).is_float()) x = c.cast(x, kFloat32);
  if (c.rank(x) == 0) return {c.reshape(c.call(kOp, {c.reshape(x, {1})}), {})};
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  return {c.call(kOp, {x}, make_attrs<relay::SoftmaxAttrs>([&](auto& a) { a.axis = axis; }))};
}
constexpr char kSoftmax[] = "nn.softmax", kLogSoftmax[] = "nn.log_softmax";

// A row whose mask hides everything is zero, where softmax would give 0 / 0.
Values safe_softmax(NodeContext& c) {
  Expr x = c.tensor("self"), y = softmax<kSoftmax>(c)[0].expr;
  Expr hidden = c.call("equal", {x, c.scalar_like(-HUGE_VAL, x)});
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  Expr all = c.reduce("all", hidden, {axis}, true);
  return {c.where(all, c.zero_like(y), y)};
}

constexpr ConverterEntry kTable[] = {
    {"aten.relu", relu},
    {"aten.relu6", relu6},
    {"aten.hardtanh", hardtanh},
    {"aten.leaky_relu", leaky_relu},
    {"aten.elu", elu},
    {"aten.selu", selu},
    {"aten.celu", celu},
    {"aten.gelu", gelu},
    {"aten.silu", silu},
    {"aten.mish", mish},
    {"aten.hardsigmoid", hardsigmoid},
    {"aten.hardswish", hardswish},
    {"aten.softplus", softplus},
    {"aten.log_sigmoid", log_sigmoid},
    {"aten.log_sigmoid_forward", log_sigmoid_forward},
    {"aten.prelu", prelu},
    {"aten._prelu_kernel", prelu},
    {"aten.glu", glu},
    {"aten.softsign", softsign},
    {"aten.softshrink", softshrink},
    {"aten.hardshrink", hardshrink},
    {"aten.threshold", threshold},
    {"aten.softmax", softmax<kSoftmax>},
    {"aten._softmax", softmax<kSoftmax>},
    {"aten.special_softmax", softmax<kSoftmax>},
    {"aten._safe_softmax", safe_softmax},
    {"aten.log_softmax", softmax<kLogSoftmax>},
    {"aten._log_softmax", softmax<kLogSoftmax>},
    {"aten.special_log_softmax", softmax<kLogSoftmax>},
};

}  // namespace
}  // namespace activation

std::span<const ConverterEntry> activation_converters() { return activation::kTable; }

}  // namespace tilewright::torch
