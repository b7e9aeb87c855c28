// SPDX-License-Identifier: Apache-2.0
// Statistics beyond plain reductions, running extremes, and sums of what is a number.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace statistics {
namespace {

using Ints = std::vector<int64_t>;

// Without the numbers that are none.
Expr zero_for_nan(NodeContext& c, const Expr& x) {
  return c.dtype(x).is_float() ? c.where(c.call("isnan", {x}), c.zero_like(x), x) : x;
}
NamedValues with_self(NodeContext& c, const Expr& e) {
  NamedValues arguments = c.arguments();
  arguments.at(0).second = Value(e);
  return arguments;
}
Values sum_of_numbers(NodeContext& c) {
  return c.aten("aten.sum.dim_IntList", with_self(c, zero_for_nan(c, c.tensor("self"))));
}
Values mean_of_numbers(NodeContext& c) {
  const Expr x = c.tensor("self");
  const Expr counts = c.cast(c.call("logical_not", {c.call("isnan", {x})}), c.dtype(x));
  return {c.div(sum_of_numbers(c)[0].expr, c.one_of("aten.sum.dim_IntList", with_self(c, counts)))};
}

// ---- quantiles

// At q of the way through the sorted elements; between two of them by `interpolation`.
Values quantile(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  const Value& at = c.value("q");
  const Expr q = c.cast(at.expr, kFloat64);
  const int64_t rank = c.rank(x), of_q = c.rank(q);
  const bool whole_tensor = !c.has("dim"), keeps = c.flag("keepdim", false);
  if (of_q > 1) c.fail_type("its q has more than one axis");
  if (whole_tensor) x = c.reshaped(x, {-1});
  const int64_t axis = whole_tensor ? 0 : c.dim(c.integer("dim"), rank);
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  if (size < 1) c.fail("it has no elements");
  const Expr sorted =
      c.one_of("aten.movedim.int", {{"self", c.aten("aten.sort.default", {{"self", x}, {"dim", whole(axis)}}).at(0)},
                                    {"source", whole(axis)},
                                    {"destination", whole(0)}});
  const Expr place = c.mul(of_q == 0 ? c.expand(q, 0) : q, c.scalar(static_cast<double>(size - 1), kFloat64));
  const std::string how = c.text("interpolation", "linear");
  auto element = [&](const Expr& i) {
    return c.call("take", {sorted, c.cast(i, kInt64)}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
  };
  const Expr low = c.call("floor", {place}), high = c.call("ceil", {place});
  Expr out;
  if (how == "lower" || how == "higher" || how == "nearest") {
    out = element(how == "lower" ? low : how == "higher" ? high : c.one_of("aten.round.default", {{"self", place}}));
  } else {
    if (how != "linear" && how != "midpoint") c.fail(format("its interpolation is {}", how));
    Expr weight = how == "midpoint" ? c.mul(c.sub(high, low), c.scalar(0.5, kFloat64)) : c.sub(place, low);
    weight = c.expand(c.cast(weight, c.dtype(x)), 1, c.rank(sorted) - 1);
    const Expr below = element(low);
    out = c.add(below, c.mul(c.sub(element(high), below), weight));
  }
  // One that is no number makes the quantile none.
  const Expr none = c.reduce("any", c.call("isnan", {x}), {axis}, false);
  out = c.where(none, c.scalar(NAN, c.dtype(x)), out);
  if (keeps) out = c.expand(out, whole_tensor ? 1 : axis + 1, whole_tensor ? rank : 1);
  return {of_q == 0 ? c.squeeze(out, {0}) : out};
}

// The middle of the elements that are numbers, which are sorted before the others.
Values nan_median(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool whole_tensor = !c.has("dim"), keeps = c.flag("keepdim", false);
  if (whole_tensor) x = c.reshaped(x, {-1});
  const int64_t axis = whole_tensor ? 0 : c.dim(c.integer("dim"), c.rank(x));
  const Values sorted = c.aten("aten.sort.default", {{"self", x}, {"dim", whole(axis)}});
  const Expr numbers = c.call("logical_not", {c.call("isnan", {c.real(x)})});
  const Expr count = c.reduce("sum", c.cast(numbers, kInt64), {axis}, true), one = c.scalar(1, kInt64);
  // Where there is no number, the first, which is none.
  const Expr middle = c.call("right_shift", {c.call("maximum", {c.sub(count, one), c.scalar(0, kInt64)}), one});
  Values out;
  for (const Value& v : sorted) {
    Expr e = c.call("gather", {v.expr, middle}, make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = axis; }));
    out.emplace_back(whole_tensor ? c.reshape(e, {}) : keeps ? e : c.squeeze(e, {axis}));
  }
  if (whole_tensor) out.resize(1);
  return out;
}
// Differences of neighbours: at the ends of one, inside half of two.
Expr gradient_along(NodeContext& c, const Expr& x, int64_t axis, double spacing) {
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  if (size < 2) c.fail("it has no neighbours along an axis");
  auto part = [&](int64_t begin, int64_t end) { return c.slice(x, axis, begin, end); };
  std::vector<Expr> parts = {c.sub(part(1, 2), part(0, 1))};
  if (size > 2) parts.push_back(c.mul(c.sub(part(2, size), part(0, size - 2)), c.scalar_like(0.5, x)));
  parts.push_back(c.sub(part(size - 1, size), part(size - 2, size - 1)));
  return c.div(c.concat(std::move(parts), axis), c.scalar_like(spacing, x));
}
Values gradient(NodeContext& c) {
  const Expr x = c.real(c.tensor("self"));
  if (c.integer("edge_order", 1) != 1) c.unsupported("ends of the second order");
  std::vector<int64_t> axes;
  if (c.has("dim"))
    for (const int64_t axis : c.ints("dim")) axes.push_back(c.dim(axis, c.rank(x)));
  else
    for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  std::vector<double> spacing(axes.size(), 1);
  if (const Value* given = c.find("spacing")) {
    if (!given->list) {
      spacing.assign(axes.size(), c.number("spacing"));
    } else {
      for (const Value& v : *given->list)
        if (v.kind != Value::kNumber) c.unsupported("places as tensors");
      spacing = c.numbers("spacing");
    }
  }
  if (spacing.size() != axes.size()) c.fail("it has not as many spacings as axes");
  Values out;
  for (size_t i = 0; i < axes.size(); ++i) out.emplace_back(gradient_along(c, x, axes[i], spacing[i]));
  return {Value::of_list(std::move(out))};
}

// ---- variables in rows, observations in columns

Values covariance(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  if (c.has("fweights") || c.has("aweights")) c.unsupported("weights of observations");
  const bool alone = c.rank(x) < 2;
  if (c.rank(x) > 2) c.fail_type("its operand is not a matrix");
  if (alone) x = c.reshaped(x, {1, -1});
  const double divisor = static_cast<double>(c.dims(x)[1]) - c.number("correction", 1);
  const Expr off = c.sub(x, c.reduce("mean", x, {1}, true));
  const Expr product = c.one_of("aten.mm.default", {{"self", off}, {"mat2", c.transpose(off, {1, 0})}});
  const Expr out = c.div(product, c.scalar_like(std::max(divisor, 0.0), product));
  return {alone ? c.reshape(out, {}) : out};
}
Values correlation(NodeContext& c) {
  const Expr cov = covariance(c)[0].expr;
  if (c.rank(cov) == 0) return {c.div(cov, cov)};
  const Expr deviation = c.call("sqrt", {c.one_of("aten.diagonal.default", {{"self", cov}})});
  const Expr out = c.div(c.div(cov, c.expand(deviation, 1)), c.expand(deviation, 0));
  return {c.call("clip", {out}, make_attrs<relay::ClipAttrs>([](auto& a) {
                   a.a_min = -1;
                   a.a_max = 1;
                 }))};
}

// ---- running extremes

// The axis and the tensor with at least one axis.
struct Rows {
  Expr x;
  int64_t axis = 0, size = 1;
};
Rows rows_of(NodeContext& c) {
  Rows r;
  r.x = c.tensor("self");
  r.axis = c.dim(c.integer("dim", -1), c.rank(r.x));
  r.size = c.rank(r.x) == 0 ? 1 : c.dims(r.x).at(static_cast<size_t>(r.axis));
  return r;
}
Expr place_along(NodeContext& c, const Rows& r) {
  const int64_t after = c.rank(r.x) - 1 - r.axis;
  return c.broadcast_to(c.expand(c.counting(r.size), 1, after), c.dims(r.x));
}
// Every element with the one before it, then with the one two before it, and so on by powers of two.
template <bool kLargest>
Values running_extreme(NodeContext& c) {
  const Rows r = rows_of(c);
  if (c.rank(r.x) == 0) return {r.x, c.scalar(0, kInt64)};
  Expr value = r.x, place = place_along(c, r);
  for (int64_t away = 1; away < r.size; away *= 2) {
    auto moved = [&](const Expr& e) {
      return c.concat({c.slice(e, r.axis, 0, away), c.slice(e, r.axis, 0, r.size - away)}, r.axis);
    };
    // The first elements stand beside themselves.
    const Expr before = moved(value), before_place = moved(place);
    Expr later = c.call(kLargest ? "greater_equal" : "less_equal", {value, before});
    if (c.dtype(value).is_float()) {
      const Expr nan = c.call("isnan", {value});
      later = c.call("logical_or", {later, nan});
    }
    value = c.where(later, value, before);
    place = c.where(later, place, before_place);
  }
  return {value, place};
}
// The sums of exponentials in float64, whose range no differences of float32 logarithms of use leave.
Values log_cum_sum_exp(NodeContext& c) {
  const Rows r = rows_of(c);
  if (c.rank(r.x) == 0) return {r.x};
  const Expr x = c.cast(r.x, kFloat64), most = c.reduce("max", x, {r.axis}, true);
  const Expr base = c.where(c.call("isfinite", {most}), most, c.scalar(0, kFloat64));
  const Expr sums = c.call("cumsum", {c.call("exp", {c.sub(x, base)})},
                           make_attrs<relay::ScanopAttrs>([&](auto& a) { a.axis = r.axis; }));
  return {c.cast(c.add(c.call("log", {sums}), base), c.dtype(r.x))};
}
// The most frequent value of each row, the smallest of several, and the last place that has it.
Values mode(NodeContext& c) {
  const Rows r = rows_of(c);
  if (c.rank(r.x) == 0) return {r.x, c.scalar(0, kInt64)};
  auto kept = [&](const Expr& e) { return c.flag("keepdim", false) ? e : c.squeeze(e, {r.axis}); };
  const Expr sorted = c.aten("aten.sort.default", {{"self", r.x}, {"dim", whole(r.axis)}}).at(0).expr;
  const Expr same = c.call("equal", {c.expand(sorted, r.axis), c.expand(sorted, r.axis + 1)});
  const Expr counts = c.reduce("sum", c.cast(same, kInt64), {r.axis}, false);
  const auto at = make_attrs<relay::ArgReduceAttrs>([&](auto& a) {
    a.axis = Ints{r.axis};
    a.keepdims = true;
    a.dtype = kInt64;
  });
  const Expr value = c.call("gather", {sorted, c.call("argmax", {counts}, at)},
                            make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = static_cast<int>(r.axis); }));
  const Expr has = c.call("equal", {r.x, value});
  const Expr place = c.reduce("max", c.where(has, place_along(c, r), c.scalar(0, kInt64)), {r.axis}, true);
  return {kept(value), kept(place)};
}

// ---- areas and lengths

// Under a line of points that are `dx` apart, or at x.
template <bool kRunning>
Values trapezoid(NodeContext& c) {
  const Expr y = c.real(c.tensor("y"));
  const int64_t axis = c.dim(c.integer("dim", -1), c.rank(y)), size = c.dims(y).at(static_cast<size_t>(axis));
  auto pair_of = [&](const Expr& e, int64_t at, bool adds) {
    const int64_t count = c.dims(e).at(static_cast<size_t>(at));
    const Expr after = c.slice(e, at, 1, count), before = c.slice(e, at, 0, count - 1);
    return adds ? c.add(after, before) : c.sub(after, before);
  };
  if (size < 1) c.fail("it has no points");
  Expr each = c.mul(pair_of(y, axis, true), c.scalar_like(0.5 * c.number("dx", 1), y));
  if (c.has("x")) {
    const Expr x = c.real(c.tensor("x"));
    const Expr steps = pair_of(x, c.rank(x) == 1 ? 0 : axis, false);
    each = c.mul(each, c.rank(x) == 1 ? c.expand(steps, 1, c.rank(y) - 1 - axis) : steps);
  }
  if (kRunning) return {c.call("cumsum", {each}, make_attrs<relay::ScanopAttrs>([&](auto& a) { a.axis = axis; }))};
  return {c.reduce("sum", each, {axis}, false)};
}
Values distance(NodeContext& c) {
  const Expr d = c.sub(c.tensor("self"), c.tensor("other"));
  return c.aten("aten.linalg_vector_norm.default",
                {{"self", d}, {"ord", c.has("p") ? c.value("p") : Value::number(c.scalar(2, kFloat64))}});
}
// Parts along an axis whose norm exceeds a limit are scaled down to it.
Values limited_norm(NodeContext& c) {
  const Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  Values others;
  for (int64_t i = 0; i < c.rank(x); ++i)
    if (i != axis) others.push_back(whole(i));
  Value keep = Value::number(c.scalar(1, kBool));
  const Expr norm = c.one_of("aten.linalg_vector_norm.default",
                             {{"self", x}, {"ord", c.value("p")}, {"dim", Value::of_list(others)}, {"keepdim", keep}});
  const double limit = c.number("maxnorm");
  const Expr scale = c.div(c.scalar_like(limit, norm), c.add(norm, c.scalar_like(1e-7, norm)));
  const Expr over = c.call("greater", {norm, c.scalar_like(limit, norm)});
  return {c.mul(x, c.where(over, scale, c.scalar_like(1, norm)))};
}

constexpr ConverterEntry kTable[] = {
    {"aten.nansum", sum_of_numbers},
    {"aten.nanmean", mean_of_numbers},
    {"aten.quantile", quantile},
    {"aten.nanmedian", nan_median},
    {"aten.gradient", gradient},
    {"aten.cov", covariance},
    {"aten.corrcoef", correlation},
    {"aten.cummax", running_extreme<true>},
    {"aten.cummin", running_extreme<false>},
    {"aten.logcumsumexp", log_cum_sum_exp},
    {"aten._logcumsumexp", log_cum_sum_exp},
    {"aten.mode", mode},
    {"aten.trapezoid", trapezoid<false>},
    {"aten.trapz", trapezoid<false>},
    {"aten.cumulative_trapezoid", trapezoid<true>},
    {"aten.dist", distance},
    {"aten.renorm", limited_norm},
};

}  // namespace
}  // namespace statistics

std::span<const ConverterEntry> statistics_converters() { return statistics::kTable; }

}  // namespace tilewright::torch
