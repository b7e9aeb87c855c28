// SPDX-License-Identifier: Apache-2.0
// Normalisations.
#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace norm {
namespace {

using Ints = std::vector<int64_t>;

Expr vector_or(NodeContext& c, const char* name, double fallback, int64_t size, DataType dtype) {
  if (c.has(name)) return c.cast(c.tensor(name), dtype);
  return c.broadcast_to(c.scalar(fallback, dtype), {size});
}

// Normalises by given statistics.
Expr by_statistics(NodeContext& c, const Expr& x, double epsilon) {
  const int64_t channels = c.dims(c.tensor("running_mean")).at(0);
  const DataType dtype = c.dtype(x);
  Expr y = c.call("nn.batch_norm",
                  {x, vector_or(c, "weight", 1, channels, dtype), vector_or(c, "bias", 0, channels, dtype),
                   c.cast(c.tensor("running_mean"), dtype), c.cast(c.tensor("running_var"), dtype)},
                  make_attrs<relay::BatchNormAttrs>([&](auto& a) { a.epsilon = epsilon; }));
  return c.get(y, 0);
}
// By the batch's own statistics, of which each channel has one.
struct OwnStatistics {
  Expr y, mean, variance, inverse;
};
OwnStatistics by_own_statistics(NodeContext& c, const Expr& x, double epsilon) {
  Ints axes;
  for (int64_t i = 0; i < c.rank(x); ++i)
    if (i != 1) axes.push_back(i);
  auto wide = [&](const Expr& e) { return c.expand(e, 1, c.rank(x) - 2); };
  const Expr mean = c.reduce("mean", x, axes, false), off = c.sub(x, wide(mean));
  const Expr variance = c.reduce("mean", c.mul(off, off), axes, false);
  const Expr inverse = c.call("rsqrt", {c.add(variance, c.scalar_like(epsilon, x))});
  Expr y = c.mul(off, wide(inverse));
  if (c.has("weight")) y = c.mul(y, wide(c.tensor("weight")));
  if (c.has("bias")) y = c.add(y, wide(c.tensor("bias")));
  return {y, mean, variance, inverse};
}
Values batch_norm(NodeContext& c) {
  Expr x = c.tensor("input");
  if (c.flag("training", false) && c.has("running_mean"))
    c.unsupported(
        "in training mode, where it changes its statistics; call model.eval() before, or run_decompositions()");
  const double epsilon = c.number("eps", 1e-5);
  if (c.has("running_mean") && !c.flag("training", false)) return {by_statistics(c, x, epsilon)};
  return {by_own_statistics(c, x, epsilon).y};
}
// Decomposed form of what has no statistics but the batch's.
Values batch_norm_without_statistics(NodeContext& c) {
  const OwnStatistics own = by_own_statistics(c, c.tensor("input"), c.number("eps", 1e-5));
  return {own.y, own.mean, own.inverse};
}
// Decomposed form at inference: the results that only training reads are empty.
Values batch_norm_no_training(NodeContext& c) {
  Expr x = c.tensor("input"), empty = c.zeros(kFloat32, {0});
  return {by_statistics(c, x, c.number("eps")), empty, empty};
}
Values native_batch_norm(NodeContext& c) {
  if (c.flag("training", false)) c.unsupported("in training mode; call model.eval() before the export");
  return batch_norm_no_training(c);
}
// Training: normalises by the batch's statistics and also returns updated running statistics.
Values batch_norm_functional(NodeContext& c) {
  Expr x = c.tensor("input");
  if (!c.flag("training", true)) c.unsupported("without training");
  const double epsilon = c.number("eps", 1e-5), momentum = c.number("momentum", 0.1);
  const Ints d = c.dims(x);
  double count = 1;
  for (size_t i = 0; i < d.size(); ++i)
    if (i != 1) count *= static_cast<double>(d[i]);
  const auto [y, mean, variance, inverse] = by_own_statistics(c, x, epsilon);
  auto moved = [&](const char* name, const Expr& fresh) {
    Expr old = c.tensor(name);
    return c.add(c.mul(old, c.scalar_like(1 - momentum, old)), c.mul(fresh, c.scalar_like(momentum, old)));
  };
  Expr unbiased = c.mul(variance, c.scalar_like(count / std::max(count - 1, 1.0), variance));
  return {y, mean, inverse, moved("running_mean", mean), moved("running_var", unbiased)};
}

struct Normalized {
  Expr y, mean, inverse;
};
Normalized layer_normalized(NodeContext& c, bool statistics) {
  Expr x = c.tensor("input");
  const Ints shape = c.ints("normalized_shape");
  const int64_t rank = c.rank(x), count = static_cast<int64_t>(shape.size());
  const Dim last = c.shape(x).empty() ? Dim(1) : c.shape(x).back();
  if (count < 1 || count > rank || !(last == Dim(shape.back())))
    c.fail_type("its normalized_shape is not the end of its input's");
  const DataType dtype = c.dtype(x), wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  const double epsilon = c.number("eps", 1e-5);
  if (count == 1 && !statistics && dtype != kFloat64)
    return {c.call("nn.layer_norm",
                   {x, vector_or(c, "weight", 1, shape[0], dtype), vector_or(c, "bias", 0, shape[0], dtype)},
                   make_attrs<relay::LayerNormAttrs>([&](auto& a) {
                     a.axis = rank - 1;
                     a.epsilon = epsilon;
                   })),
            {},
            {}};
  Ints axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  Expr data = c.cast(x, wide), mean = c.reduce("mean", data, axes, true), off = c.sub(data, mean);
  Expr variance = c.reduce("mean", c.mul(off, off), axes, true);
  Expr inverse = c.call("rsqrt", {c.add(variance, c.scalar_like(epsilon, variance))});
  Expr y = c.mul(off, inverse);  // rounded once, at the end; weights may be wider than the input
  if (c.has("weight")) y = c.mul(y, c.cast(c.tensor("weight"), wide));
  if (c.has("bias")) y = c.add(y, c.cast(c.tensor("bias"), wide));
  return {c.cast(y, dtype), mean, inverse};
}
Values layer_norm(NodeContext& c) { return {layer_normalized(c, false).y}; }
// Statistics are rarely read at inference; dead code elimination drops them where they are not.
Values native_layer_norm(NodeContext& c) {
  const Normalized plain = layer_normalized(c, false), full = layer_normalized(c, true);
  return {plain.y, full.mean, full.inverse};
}
Expr root_mean_square(NodeContext& c, Expr* inverse) {
  Expr x = c.tensor("input");
  const int64_t rank = c.rank(x), count = static_cast<int64_t>(c.ints("normalized_shape").size());
  const DataType dtype = c.dtype(x), wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  if (count > rank) c.fail_type("its normalized_shape is not the end of its input's");
  // The default is the machine epsilon of the type.
  const double epsilon = c.number("eps", dtype == kFloat64 ? 0x1p-52 : 0x1p-23);
  Ints axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  Expr data = c.cast(x, wide), power = c.reduce("mean", c.mul(data, data), axes, true);
  *inverse = c.call("rsqrt", {c.add(power, c.scalar_like(epsilon, power))});
  Expr y = c.cast(c.mul(data, *inverse), dtype);
  return c.has("weight") ? c.mul(y, c.tensor("weight")) : y;
}
Values rms_norm(NodeContext& c) {
  Expr inverse;
  return {root_mean_square(c, &inverse)};
}
Values fused_rms_norm(NodeContext& c) {
  Expr inverse, y = root_mean_square(c, &inverse);
  return {y, inverse};
}

Expr group_normalized(NodeContext& c, const Expr& x, int64_t groups, double epsilon) {
  const Ints d = c.dims(x);
  if (d.size() < 2 || groups < 1 || d[1] % groups != 0) c.fail(format("{} groups do not divide its channels", groups));
  const DataType dtype = c.dtype(x);
  return c.call("nn.group_norm", {x, vector_or(c, "weight", 1, d[1], dtype), vector_or(c, "bias", 0, d[1], dtype)},
                make_attrs<relay::GroupNormAttrs>([&](auto& a) {
                  a.num_groups = groups;
                  a.axis = 1;
                  a.epsilon = epsilon;
                }));
}
Values group_norm(NodeContext& c) {
  return {group_normalized(c, c.tensor("input"), c.integer("num_groups"), c.number("eps", 1e-5))};
}
Values native_group_norm(NodeContext& c) {
  Expr x = c.tensor("input");
  const int64_t groups = c.integer("group");
  const Ints d = c.dims(x);
  if (d.size() < 2 || groups < 1) c.fail_type("its input has no channels");
  Expr rows = c.reshaped(x, {d[0], groups, -1}), mean = c.reduce("mean", rows, {2}, true), off = c.sub(rows, mean);
  Expr variance = c.reduce("mean", c.mul(off, off), {2}, false);
  return {group_normalized(c, x, groups, c.number("eps")), c.squeeze(mean, {2}),
          c.call("rsqrt", {c.add(variance, c.scalar_like(c.number("eps"), x))})};
}
Values instance_norm(NodeContext& c) {
  Expr x = c.tensor("input");
  const double epsilon = c.number("eps", 1e-5);
  if (!c.flag("use_input_stats", true)) return {by_statistics(c, x, epsilon)};
  if (c.has("running_mean")) c.unsupported("in training mode with running statistics");
  const int64_t channels = c.dims(x).at(1);
  const DataType dtype = c.dtype(x);
  return {c.call("nn.instance_norm",
                 {x, vector_or(c, "weight", 1, channels, dtype), vector_or(c, "bias", 0, channels, dtype)},
                 make_attrs<relay::InstanceNormAttrs>([&](auto& a) { a.epsilon = epsilon; }))};
}
// g * v / |v|, with the norm over all axes but one.
Values weight_norm(NodeContext& c) {
  Expr v = c.tensor("v"), g = c.tensor("g");
  const int64_t axis = c.integer("dim", 0);
  Ints axes;
  for (int64_t i = 0; i < c.rank(v); ++i)
    if (i != axis) axes.push_back(i);
  Expr length = c.call("sqrt", {c.reduce("sum", c.mul(v, v), axes, true)});
  return {c.mul(v, c.div(g, length))};
}
Values weight_norm_interface(NodeContext& c) {
  Expr v = c.tensor("v");
  Ints axes;
  for (int64_t i = 0; i < c.rank(v); ++i)
    if (i != c.integer("dim", 0)) axes.push_back(i);
  Expr length = c.call("sqrt", {c.reduce("sum", c.mul(v, v), axes, true)});
  return {weight_norm(c)[0], length};
}

constexpr ConverterEntry kTable[] = {
    {"aten.batch_norm", batch_norm},
    {"aten._native_batch_norm_legit_no_training", batch_norm_no_training},
    {"aten._native_batch_norm_legit_functional", batch_norm_functional},
    {"aten._native_batch_norm_legit.no_stats", batch_norm_without_statistics},
    {"aten._native_batch_norm_legit", native_batch_norm},
    {"aten.native_batch_norm", native_batch_norm},
    {"aten.layer_norm", layer_norm},
    {"aten.native_layer_norm", native_layer_norm},
    {"aten.rms_norm", rms_norm},
    {"aten._fused_rms_norm", fused_rms_norm},
    {"aten.group_norm", group_norm},
    {"aten.native_group_norm", native_group_norm},
    {"aten.instance_norm", instance_norm},
    {"aten._weight_norm", weight_norm},
    {"aten._weight_norm_interface", weight_norm_interface},
};

}  // namespace
}  // namespace norm

std::span<const ConverterEntry> norm_converters() { return norm::kTable; }

}  // namespace tilewright::torch
