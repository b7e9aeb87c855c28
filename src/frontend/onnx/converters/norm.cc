// SPDX-License-Identifier: Apache-2.0
// Normalisations.
#include "frontend/onnx/converters/norm.h"

#include "base/format.h"

namespace tilewright::onnx {

Expr inverse_root(NodeContext& c, const Expr& power, double epsilon) {
  return c.call("rsqrt", {c.add(power, c.scalar_like(epsilon, power))});
}

RootMeanSquare root_mean_square_norm(NodeContext& c, const Expr& x, int64_t axis, const Expr& gamma, double epsilon) {
  const DataType wide = c.dtype(x) == kFloat64 ? kFloat64 : kFloat32;
  const Expr value = c.cast(x, wide);
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < c.rank(x); ++i) axes.push_back(i);
  const Expr inverse = inverse_root(c, c.reduce("mean", c.mul(value, value), axes, true), epsilon);
  return {c.mul(c.cast(c.mul(value, inverse), c.dtype(gamma)), gamma), inverse};
}

namespace {

using Ints = std::vector<int64_t>;

// Reshapes a vector to broadcast along the channel axis (1) of a tensor of `rank`.
Expr per_channel(NodeContext& c, const Expr& v, int64_t rank) { return rank > 2 ? c.expand(v, 1, rank - 2) : v; }

Values batch_norm(NodeContext& c) {
  Expr x = c.input(0), scale = c.input(1), bias = c.input(2), mean = c.input(3), var = c.input(4);
  double epsilon = c.float_attr("epsilon", 1e-5f);
  bool training = c.opset() >= 14 ? c.int_attr("training_mode", 0) != 0
                                  : c.opset() < 7 && c.int_attr("is_test", 0) == 0 && c.wants(1);
  if (c.opset() < 9 && c.int_attr("spatial", 1) == 0) c.unsupported("normalisation of every element apart (spatial=0)");
  if (!training) {
    // The statistics may have another type than the data; the result has that of the data.
    DataType dtype = c.dtype(x);
    Expr y =
        c.call("nn.batch_norm", {x, c.cast(scale, dtype), c.cast(bias, dtype), c.cast(mean, dtype), c.cast(var, dtype)},
               make_attrs<relay::BatchNormAttrs>([&](auto& a) { a.epsilon = epsilon; }));
    return {c.get(y, 0)};
  }
  double momentum = c.float_attr("momentum", 0.9f);
  Ints axes;
  for (int64_t i = 0; i < c.rank(x); ++i)
    if (i != 1) axes.push_back(i);
  Expr batch_mean = c.reduce("mean", x, axes, false);
  Expr centered = c.sub(x, per_channel(c, batch_mean, c.rank(x)));
  Expr batch_var = c.reduce("mean", c.mul(centered, centered), axes, false);
  Expr inverse = inverse_root(c, batch_var, epsilon);
  // Scale and shift may have another type than the data; the result has that of the data.
  scale = c.cast(scale, c.dtype(x)), bias = c.cast(bias, c.dtype(x));
  Expr y = c.add(c.mul(centered, per_channel(c, c.mul(inverse, scale), c.rank(x))), per_channel(c, bias, c.rank(x)));
  auto running = [&](const Expr& old, const Expr& fresh) {
    return c.add(c.mul(old, c.scalar_like(momentum, old)),
                 c.mul(c.cast(fresh, c.dtype(old)), c.scalar_like(1 - momentum, old)));
  };
  return {y, running(mean, batch_mean), running(var, batch_var)};
}

Values instance_norm(NodeContext& c) {
  double epsilon = c.float_attr("epsilon", 1e-5f);
  return {c.call("nn.instance_norm", {c.input(0), c.input(1), c.input(2)},
                 make_attrs<relay::InstanceNormAttrs>([&](auto& a) { a.epsilon = epsilon; }))};
}

// Normalises over the axes from `axis` on, in float32 or wider; also gives the mean and the inverse standard deviation.
Values layer_norm(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x), axis = c.axis(c.int_attr("axis", -1), rank);
  double epsilon = c.float_attr("epsilon", 1e-5f);
  bool statistics = c.wants(1) || c.wants(2);
  bool vector = axis == rank - 1 && c.rank(c.input(1)) == 1 && (!c.has(2) || c.rank(c.input(2)) == 1);
  if (vector && !statistics && c.has(2) && c.dtype(x) != kFloat64)
    return {c.call("nn.layer_norm", {x, c.input(1), c.input(2)}, make_attrs<relay::LayerNormAttrs>([&](auto& a) {
                     a.axis = rank - 1;
                     a.epsilon = epsilon;
                   }))};
  DataType dtype = c.dtype(x), wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  Expr wide_x = c.cast(x, wide);
  Ints axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  Expr mean = c.reduce("mean", wide_x, axes, true);
  Expr centered = c.sub(wide_x, mean);
  Expr var = c.reduce("mean", c.mul(centered, centered), axes, true);
  Expr inverse = inverse_root(c, var, epsilon);
  Expr y = c.mul(c.cast(c.mul(centered, inverse), dtype), c.input(1));
  if (c.has(2)) y = c.add(y, c.input(2));
  const DataType kept = c.dtype_attr("stash_type", kFloat32);
  return {y, c.cast(mean, kept), c.cast(inverse, kept)};
}

Values rms_norm(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t axis = c.axis(c.int_attr("axis", -1), c.rank(x));
  return {root_mean_square_norm(c, x, axis, c.input(1), c.float_attr("epsilon", 1e-5f)).y};
}

Values group_norm(NodeContext& c) {
  Expr x = c.input(0), scale = c.input(1), bias = c.input(2);
  int64_t groups = c.int_attr("num_groups");
  double epsilon = c.float_attr("epsilon", 1e-5f);
  Ints dims = c.dims(x);
  if (dims.size() < 2 || groups < 1 || dims[1] % groups != 0)
    c.fail(format("{} groups do not divide its channels", groups));
  // Opset 18 has one scale per group, opset 21 one per channel.
  if (c.dims(scale) != Ints{dims[1]}) {
    auto spread = [&](const Expr& v) {
      return c.reshape(c.broadcast_to(c.reshape(v, {groups, 1}), {groups, dims[1] / groups}), {dims[1]});
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  return {c.call("nn.group_norm", {x, scale, bias}, make_attrs<relay::GroupNormAttrs>([&](auto& a) {
                   a.num_groups = groups;
                   a.axis = 1;
                   a.epsilon = epsilon;
                 }))};
}

Values lrn(NodeContext& c) {
  int64_t size = c.int_attr("size");
  if (size < 1) c.fail(format("its size is {}", size));
  return {c.call("nn.lrn", {c.input(0)}, make_attrs<relay::LRNAttrs>([&](auto& a) {
                   a.size = size;
                   a.axis = 1;
                   a.bias = c.float_attr("bias", 1);
                   a.alpha = c.float_attr("alpha", 1e-4f);
                   a.beta = c.float_attr("beta", 0.75);
                 }))};
}

Values lp_normalization(NodeContext& c) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", -1), c.rank(x)), p = c.int_attr("p", 2);
  if (p != 1 && p != 2) c.fail(format("its p is {}, which is neither 1 nor 2", p));
  Expr norm = p == 1 ? c.reduce("sum", c.call("abs", {x}), {axis}, true)
                     : c.call("sqrt", {c.reduce("sum", c.mul(x, x), {axis}, true)});
  // A zero vector stays zero: no division by its norm.
  Expr zero = c.scalar_like(0, x);
  Expr safe = c.where(c.call("equal", {norm, zero}), c.scalar_like(1, x), norm);
  if (p == 1) return {c.div(x, safe)};
  // One division for a line. The root of a sum of squares is never so small that its reciprocal is infinite.
  return {c.mul(x, c.div(c.scalar_like(1, x), safe))};
}

// (x - mean) / (deviation + 1e-9) over the axes.
Values mean_variance_norm(NodeContext& c) {
  Expr x = c.input(0);
  Ints axes = c.ints_attr("axes", {0, 2, 3});
  Expr mean = c.reduce("mean", x, axes, true);
  Expr square_mean = c.reduce("mean", c.mul(x, x), axes, true);
  Expr deviation = c.call("sqrt", {c.sub(square_mean, c.mul(mean, mean))});
  return {c.div(c.sub(x, mean), c.add(deviation, c.scalar_like(1e-9, x)))};
}

constexpr ConverterEntry kNormConverters[] = {
    {"BatchNormalization", 1, batch_norm},
    {"InstanceNormalization", 1, instance_norm},
    {"RMSNormalization", 23, rms_norm},
    {"GroupNormalization", 18, group_norm},
    {"LRN", 1, lrn},
    {"LpNormalization", 1, lp_normalization},
    {"MeanVarianceNormalization", 9, mean_variance_norm},
    {"LayerNormalization", 1, layer_norm},
};

}  // namespace

std::span<const ConverterEntry> norm_converters() { return kNormConverters; }

}  // namespace tilewright::onnx
