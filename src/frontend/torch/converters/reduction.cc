// SPDX-License-Identifier: Apache-2.0
// Reductions, statistics, scans and sorts.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace reduction {
namespace {

using Ints = std::vector<int64_t>;

// The given axes; none, or an empty list, means all.
Ints reduced_axes(NodeContext& c, const Expr& x) {
  const Value* v = c.find("dim");
  Ints axes;
  if (v) axes = c.axes("dim", c.rank(x));
  if (axes.empty())
    for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  return axes;
}
Expr reduced(NodeContext& c, const char* op, const Expr& x, const Ints& axes, bool keepdim) {
  if (c.rank(x) == 0) return x;
  return c.reduce(op, x, axes, keepdim);
}
bool keeps(NodeContext& c) { return c.flag("keepdim", false); }

// Sums of integers are int64.
Values sum(NodeContext& c) {
  Expr x = c.tensor("self");
  const DataType dtype = c.dtype_arg("dtype", c.dtype(x).is_float() ? c.dtype(x) : kInt64);
  x = c.cast(x, dtype);
  return {reduced(c, "sum", x, reduced_axes(c, x), keeps(c))};
}
Values prod(NodeContext& c) {
  Expr x = c.tensor("self");
  const DataType dtype = c.dtype_arg("dtype", c.dtype(x).is_float() ? c.dtype(x) : kInt64);
  x = c.cast(x, dtype);
  return {reduced(c, "prod", x, reduced_axes(c, x), keeps(c))};
}
Values mean(NodeContext& c) {
  Expr x = c.cast(c.tensor("self"), c.dtype_arg("dtype", c.dtype(c.tensor("self"))));
  if (!c.dtype(x).is_float()) c.fail_type("it needs real numbers");
  return {reduced(c, "mean", x, reduced_axes(c, x), keeps(c))};
}

// The graph IR has no maximum and minimum of booleans.
Expr extreme_of(NodeContext& c, const char* op, const Expr& x, const Ints& axes, bool keepdim) {
  if (!c.dtype(x).is_bool()) return reduced(c, op, x, axes, keepdim);
  return c.cast(reduced(c, op, c.cast(x, kUInt8), axes, keepdim), kBool);
}
Expr places_of(NodeContext& c, bool largest, const Expr& x, const std::optional<int64_t>& axis, bool keepdim) {
  Expr data = c.dtype(x).is_bool() ? c.cast(x, kUInt8) : x;
  if (c.rank(data) == 0) return c.mul(c.cast(data, kInt64), c.scalar(0, kInt64));
  if (!axis) data = c.reshaped(data, {-1});
  Expr y = c.call(largest ? "argmax" : "argmin", {data}, make_attrs<relay::ArgReduceAttrs>([&](auto& a) {
                    a.axis = Ints{axis.value_or(0)};
                    a.keepdims = keepdim && axis;
                    a.dtype = kInt64;
                  }));
  if (axis || !keepdim) return y;
  return c.reshape(y, Ints(static_cast<size_t>(c.rank(x)), 1));
}
template <bool kLargest>
Values extreme(NodeContext& c) {
  const char* op = kLargest ? "max" : "min";
  Expr x = c.tensor("self");
  if (c.has("other")) {
    const Value &a = c.value("self"), &b = c.value("other");
    const DataType dtype = c.promoted({&a, &b});
    return {c.call(kLargest ? "maximum" : "minimum", {c.as_tensor(a, dtype), c.as_tensor(b, dtype)})};
  }
  if (!c.has("dim")) {
    Ints all;
    for (int64_t i = 0; i < c.rank(x); ++i) all.push_back(i);
    return {extreme_of(c, op, x, all, false)};
  }
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  return {extreme_of(c, op, x, {axis}, keeps(c)), places_of(c, kLargest, x, axis, keeps(c))};
}
template <bool kLargest>
Values extreme_over(NodeContext& c) {
  Expr x = c.tensor("self");
  return {extreme_of(c, kLargest ? "max" : "min", x, reduced_axes(c, x), keeps(c))};
}
Values aminmax(NodeContext& c) {
  Expr x = c.tensor("self");
  const Ints axes = reduced_axes(c, x);
  return {extreme_of(c, "min", x, axes, keeps(c)), extreme_of(c, "max", x, axes, keeps(c))};
}
template <bool kLargest>
Values place_of_extreme(NodeContext& c) {
  Expr x = c.tensor("self");
  std::optional<int64_t> axis = c.maybe_integer("dim");
  if (axis) axis = c.dim(*axis, c.rank(x));
  return {places_of(c, kLargest, x, axis, keeps(c))};
}
template <bool kAll>
Values truth(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool bytes = c.dtype(x) == kUInt8;
  Expr y = c.dtype(x).is_bool() ? x : c.call("not_equal", {x, c.zero_like(x)});
  y = reduced(c, kAll ? "all" : "any", y, reduced_axes(c, x), keeps(c));
  return {bytes ? c.cast(y, kUInt8) : y};
}

struct Moments {
  Expr variance, mean;
};
// `correction` (Bessel's) is subtracted from the number of elements.
Moments moments(NodeContext& c) {
  Expr x = c.tensor("self");
  if (!c.dtype(x).is_float()) c.fail_type("it needs real numbers");
  const Ints axes = reduced_axes(c, x), sizes = c.dims(x);
  double correction = c.flag("unbiased", true) ? 1 : 0;
  if (c.has("correction")) correction = c.number("correction");
  double count = 1;
  for (int64_t a : axes)
    if (!sizes.empty()) count *= static_cast<double>(sizes[static_cast<size_t>(a)]);
  const bool keepdim = keeps(c);
  Expr mean = reduced(c, "mean", x, axes, true), off = c.sub(x, mean);
  const double divisor = count - correction;
  Expr squares = reduced(c, "sum", c.mul(off, off), axes, keepdim);
  Expr variance = c.div(squares, c.scalar_like(std::max(divisor, 0.0), x));
  return {variance, keepdim || sizes.empty() ? mean : c.squeeze(mean, axes)};
}
Values variance(NodeContext& c) { return {moments(c).variance}; }
Values deviation(NodeContext& c) { return {c.call("sqrt", {moments(c).variance})}; }
Values variance_mean(NodeContext& c) {
  const Moments m = moments(c);
  return {m.variance, m.mean};
}
Values deviation_mean(NodeContext& c) {
  const Moments m = moments(c);
  return {c.call("sqrt", {m.variance}), m.mean};
}

// The p-norm over axes.
Expr norm_of(NodeContext& c, const Expr& x, double p, const Ints& axes, bool keepdim) {
  Expr size = c.call("abs", {x});
  if (p == std::numeric_limits<double>::infinity()) return reduced(c, "max", size, axes, keepdim);
  if (p == -std::numeric_limits<double>::infinity()) return reduced(c, "min", size, axes, keepdim);
  if (p == 0) return reduced(c, "sum", c.cast(c.call("not_equal", {x, c.zero_like(x)}), c.dtype(x)), axes, keepdim);
  if (p == 1) return reduced(c, "sum", size, axes, keepdim);
  if (p == 2) return c.call("sqrt", {reduced(c, "sum", c.mul(x, x), axes, keepdim)});
  Expr powers = reduced(c, "sum", c.call("power", {size, c.scalar_like(p, x)}), axes, keepdim);
  return c.call("power", {powers, c.scalar_like(1 / p, x)});
}
Values norm(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  if (c.has("dtype")) x = c.cast(x, c.dtype_arg("dtype", kFloat32));
  return {norm_of(c, x, c.number(c.has("ord") ? "ord" : "p", 2), reduced_axes(c, x), keeps(c))};
}
Values logsumexp(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  const Ints axes = reduced_axes(c, x);
  if (c.rank(x) == 0) return {x};
  Expr y = c.onnx("ReduceLogSumExp", 18, {x, c.ints_constant(axes)}, {{"keepdims", int64_t{keeps(c)}}})[0];
  return {y};
}
Values count_nonzero(NodeContext& c) {
  Expr x = c.tensor("self");
  Expr y = c.cast(c.call("not_equal", {x, c.zero_like(x)}), kInt64);
  return {reduced(c, "sum", y, reduced_axes(c, x), false)};
}

template <const char* kOp>
Values scan(NodeContext& c) {
  Expr x = c.tensor("self");
  x = c.cast(x, c.dtype_arg("dtype", c.dtype(x).is_float() ? c.dtype(x) : kInt64));
  if (c.rank(x) == 0) return {x};
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  return {c.call(kOp, {x}, make_attrs<relay::ScanopAttrs>([&](auto& a) { a.axis = axis; }))};
}
constexpr char kCumSum[] = "cumsum", kCumProd[] = "cumprod";

Values topk(NodeContext& c) {
  Expr x = c.tensor("self"), k = c.value("k").expr;
  const int64_t rank = c.rank(x), axis = c.dim(c.integer("dim", -1), rank);
  if (rank == 0) return {x, c.mul(c.cast(x, kInt64), c.scalar(0, kInt64))};
  const Tensor* known = c.known(k);
  // The number of results is known only at run time: left to ONNX's operator, which the runtime implements.
  if (!known || !static_shape(c.shape(x))) {
    std::vector<Expr> made = c.onnx("TopK", 11, {x, c.reshape(c.cast(k, kInt64), {1})},
                                    {{"axis", axis}, {"largest", int64_t{c.flag("largest", true)}}}, 2);
    return {made[0], made[1]};
  }
  const int64_t count = c.integer("k"), size = c.dims(x).at(static_cast<size_t>(axis));
  if (count < 0 || count > size) c.fail(format("its k is {} of {} elements", count, size));
  Expr pair = c.call("topk", {x}, make_attrs<relay::TopKAttrs>([&](auto& a) {
                       a.k = count;
                       a.axis = axis;
                       a.is_ascend = !c.flag("largest", true);
                       a.dtype = kInt64;
                     }));
  return {c.get(pair, 0), c.get(pair, 1)};
}
Expr order_of(NodeContext& c, const Expr& x, int64_t axis, bool descending) {
  return c.call("argsort", {x}, make_attrs<relay::ArgsortAttrs>([&](auto& a) {
                  a.axis = axis;
                  a.is_ascend = !descending;
                  a.dtype = kInt64;
                }));
}
Values sort(NodeContext& c) {
  Expr x = c.tensor("self");
  if (c.rank(x) == 0) return {x, c.mul(c.cast(x, kInt64), c.scalar(0, kInt64))};
  const int64_t axis = c.dim(c.integer("dim", -1), c.rank(x));
  Expr data = c.dtype(x).is_bool() ? c.cast(x, kUInt8) : x;
  Expr order = order_of(c, data, axis, c.flag("descending", false));
  Expr values = c.call("gather", {x, order}, make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = axis; }));
  return {values, order};
}
Values argsort(NodeContext& c) { return {sort(c)[1]}; }
// Of an even number of elements, the lower of the middle two.
Values median(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool whole = !c.has("dim");
  if (whole) x = c.reshaped(x, {-1});
  const int64_t axis = whole ? 0 : c.dim(c.integer("dim"), c.rank(x));
  const int64_t middle = (c.dims(x).at(static_cast<size_t>(axis)) - 1) / 2;
  Expr order = c.slice(order_of(c, x, axis, false), axis, middle, middle + 1);
  Expr value = c.call("gather", {x, order}, make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = axis; }));
  if (whole) return {c.reshape(value, {})};
  if (keeps(c)) return {value, order};
  return {c.squeeze(value, {axis}), c.squeeze(order, {axis})};
}
Values diff(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", -1), c.rank(x)), times = c.integer("n", 1);
  std::vector<Expr> parts;
  if (c.has("prepend")) parts.push_back(c.tensor("prepend"));
  parts.push_back(x);
  if (c.has("append")) parts.push_back(c.tensor("append"));
  x = c.concat(std::move(parts), axis);
  for (int64_t i = 0; i < times; ++i) {
    const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
    if (size == 0) break;
    Expr after = c.slice(x, axis, 1, size), before = c.slice(x, axis, 0, size - 1);
    x = c.dtype(x).is_bool() ? c.call("logical_xor", {after, before}) : c.sub(after, before);
  }
  return {x};
}

constexpr ConverterEntry kTable[] = {
    {"aten.sum", sum},
    {"aten.prod", prod},
    {"aten.mean", mean},
    {"aten.max", extreme<true>},
    {"aten.min", extreme<false>},
    {"aten.amax", extreme_over<true>},
    {"aten.amin", extreme_over<false>},
    {"aten.aminmax", aminmax},
    {"aten.argmax", place_of_extreme<true>},
    {"aten.argmin", place_of_extreme<false>},
    {"aten.all", truth<true>},
    {"aten._is_all_true", truth<true>},
    {"aten._is_any_true", truth<false>},
    {"aten.any", truth<false>},
    {"aten.var", variance},
    {"aten.std", deviation},
    {"aten.var_mean", variance_mean},
    {"aten.std_mean", deviation_mean},
    {"aten.norm", norm},
    {"aten.linalg_vector_norm", norm},
    {"aten.logsumexp", logsumexp},
    {"aten.special_logsumexp", logsumexp},
    {"aten.count_nonzero", count_nonzero},
    {"aten.cumsum", scan<kCumSum>},
    {"aten.cumprod", scan<kCumProd>},
    {"aten.topk", topk},
    {"aten.sort", sort},
    {"aten.argsort", argsort},
    {"aten.median", median},
    {"aten.diff", diff},
};

}  // namespace
}  // namespace reduction

std::span<const ConverterEntry> reduction_converters() { return reduction::kTable; }

}  // namespace tilewright::torch
