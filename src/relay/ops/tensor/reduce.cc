// SPDX-License-Identifier: Apache-2.0
// Reductions over axes.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

// The reduced axes, sorted.
template <class A>
Result<std::vector<int64_t>> reduced_axes(const A& a, size_t rank) {
  std::vector<int64_t> listed, out;
  if (a.axis) listed = TW_TRY(checked_axes(*a.axis, rank));
  for (size_t k = 0; k < rank; ++k) {
    bool in_list = !a.axis || std::binary_search(listed.begin(), listed.end(), static_cast<int64_t>(k));
    if (in_list != (a.exclude && a.axis)) out.push_back(static_cast<int64_t>(k));
  }
  return out;
}

template <class A>
Result<Type> reduced_type(const TypeArgs& args, DataType dtype) {
  const auto& a = attrs_of<A>(args);
  const auto& t = args.tensor(0);
  std::vector<int64_t> axes = TW_TRY(reduced_axes(a, t.shape.size()));
  Shape out;
  for (size_t k = 0; k < t.shape.size(); ++k) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k)))
      out.push_back(t.shape[k]);
    else if (a.keepdims)
      out.push_back(1);
  }
  return tensor_type(std::move(out), dtype);
}

Result<Type> number_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float() && !t.is_integral()) return type_error(format("it needs numbers, not {}", t.str()));
  return reduced_type<ReduceAttrs>(args, t);
}
// max and min also take bool.
Result<Type> ordered_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float() && !t.is_integral() && !t.is_bool())
    return type_error(format("it needs numbers or bool, not {}", t.str()));
  return reduced_type<ReduceAttrs>(args, t);
}
Result<Type> extremes_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float() && !t.is_integral()) return type_error(format("it needs numbers, not {}", t.str()));
  return tuple_type({tensor_type({}, t), tensor_type({}, t)});
}
Result<Type> float_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float()) return type_error(format("it needs a floating dtype, not {}", t.str()));
  return reduced_type<ReduceAttrs>(args, t);
}
Result<Type> bool_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_bool()) return type_error(format("it needs bool, not {}", t.str()));
  return reduced_type<ReduceAttrs>(args, t);
}
Result<Type> variance_type(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float()) return type_error(format("it needs a floating dtype, not {}", t.str()));
  return reduced_type<VarianceAttrs>(args, t);
}
Result<Type> arg_type(const TypeArgs& args) {
  const auto& a = attrs_of<ArgReduceAttrs>(args);
  DataType t = args.tensor(0).dtype;
  if (!t.is_float() && !t.is_integral() && !t.is_bool()) return type_error(format("it needs numbers, not {}", t.str()));
  if (!a.dtype.is_integral()) return type_error(format("indices cannot be {}", a.dtype.str()));
  return reduced_type<ArgReduceAttrs>(args, a.dtype);
}

// The result's strides along the input's axes: 0 along reduced ones.
struct ReducedAxes {
  std::vector<int64_t> axes, strides;
  int64_t count = 1;  // elements per result
  int64_t results = 1;
};
template <class A>
Result<ReducedAxes> reduction(const A& a, const std::vector<int64_t>& shape) {
  ReducedAxes r;
  r.axes = TW_TRY(reduced_axes(a, shape.size()));
  std::vector<int64_t> kept = shape;
  for (int64_t k : r.axes) {
    r.count *= shape[static_cast<size_t>(k)];
    kept[static_cast<size_t>(k)] = 1;
  }
  r.strides = row_major_strides(kept);
  for (int64_t k : r.axes) r.strides[static_cast<size_t>(k)] = 0;
  r.results = product(kept, 0, kept.size());
  return r;
}

double sum_rounding(DataType t, int64_t n) { return unit_roundoff(t) * (4 + std::sqrt(static_cast<double>(n)) / 4); }

template <bool kMean>
Result<std::vector<Value>> eval_sum(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(args.as<ReduceAttrs>(), x.shape));
  Value out = out_value(args);
  if (!x.is_float()) {
    walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
      out.i[at[0]] = static_cast<int64_t>(static_cast<uint64_t>(out.i[at[0]]) + static_cast<uint64_t>(x.i[i]));
    });
    if (kMean && r.count == 0) return eval_error("the mean of no integers");
    for (int64_t& v : out.i) v = wrap_int(x.dtype, kMean ? v / r.count : v);
    return one(std::move(out));
  }
  out.bound.resize(out.f.size());
  std::vector<double> magnitude(out.f.size(), 0.0);
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    out.f[at[0]] += x.f[i];
    magnitude[at[0]] += std::fabs(x.f[i]);
    if (!x.bound.empty()) out.bound[at[0]] += x.bound[i] * x.bound[i];
  });
  const double u = sum_rounding(x.dtype, r.count), scale = kMean ? 1 / static_cast<double>(r.count) : 1;
  for (size_t i = 0; i < out.f.size(); ++i) {
    out.f[i] *= scale;
    out.bound[i] = (std::sqrt(out.bound[i]) + u * magnitude[i]) * scale;
    if (!std::isfinite(out.f[i])) out.bound[i] = 0;
  }
  return one(std::move(out));
}

Result<std::vector<Value>> eval_prod(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(args.as<ReduceAttrs>(), x.shape));
  Value out = out_value(args);
  std::fill(out.f.begin(), out.f.end(), 1.0);
  std::fill(out.i.begin(), out.i.end(), 1);
  if (!x.is_float()) {
    walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
      out.i[at[0]] =
          wrap_int(x.dtype, static_cast<int64_t>(static_cast<uint64_t>(out.i[at[0]]) * static_cast<uint64_t>(x.i[i])));
    });
    return one(std::move(out));
  }
  std::vector<double> relative(out.f.size(), static_cast<double>(r.count) * unit_roundoff(x.dtype));
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    out.f[at[0]] *= x.f[i];
    if (x.f[i] != 0) relative[at[0]] += bound_at(x, i) / std::fabs(x.f[i]);
  });
  out.bound.resize(out.f.size());
  for (size_t i = 0; i < out.f.size(); ++i)
    out.bound[i] = std::isfinite(out.f[i]) ? std::fabs(out.f[i]) * relative[i] : 0;
  return one(std::move(out));
}

// The extreme of an empty set is the operation's identity, as ONNX defines it.
template <bool kMax>
Result<std::vector<Value>> eval_extreme(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(args.as<ReduceAttrs>(), x.shape));
  Value out = out_value(args);
  std::fill(out.f.begin(), out.f.end(), kMax ? -HUGE_VAL : HUGE_VAL);
  const DataType t = x.dtype;
  const bool is_unsigned = t.is_uint() || t.is_bool();
  if (!x.is_float()) {
    const int bits = t.is_bool() ? 1 : t.bits;
    const int64_t top = is_unsigned ? (bits == 64 ? -1 : (int64_t{1} << bits) - 1)
                                    : (bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1);
    const int64_t bottom = is_unsigned ? 0 : (bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1)));
    std::fill(out.i.begin(), out.i.end(), kMax ? bottom : top);
    walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
      int64_t& best = out.i[at[0]];
      bool less = is_unsigned ? static_cast<uint64_t>(best) < static_cast<uint64_t>(x.i[i]) : best < x.i[i];
      if (less == kMax && best != x.i[i]) best = x.i[i];
    });
    return one(std::move(out));
  }
  if (!x.bound.empty()) out.bound.resize(out.f.size());
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    double& best = out.f[at[0]];
    if (std::isnan(x.f[i]) || (kMax ? x.f[i] > best : x.f[i] < best)) best = x.f[i];
    if (!x.bound.empty()) out.bound[at[0]] = std::fmax(out.bound[at[0]], x.bound[i]);
  });
  return one(std::move(out));
}

Result<std::vector<Value>> eval_extremes(const EvalArgs& args) {
  const AttrsRef all = make_default_attrs<ReduceAttrs>();
  const Type scalar = tensor_type({}, args.inputs[0].dtype);
  const EvalArgs of_all{args.inputs, all, scalar};
  std::vector<Value> out = TW_TRY(eval_extreme<false>(of_all));
  out.push_back(std::move(TW_TRY(eval_extreme<true>(of_all))[0]));
  return out;
}

template <bool kAll>
Result<std::vector<Value>> eval_logical(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(args.as<ReduceAttrs>(), x.shape));
  Value out = out_value(args);
  std::fill(out.i.begin(), out.i.end(), kAll);
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    if (kAll ? !x.i[i] : x.i[i] != 0) out.i[at[0]] = !kAll;
  });
  return one(std::move(out));
}

template <bool kMax>
Result<std::vector<Value>> eval_arg(const EvalArgs& args) {
  const auto& a = args.as<ArgReduceAttrs>();
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(a, x.shape));
  if (r.count == 0 && r.results > 0) return eval_error("the index of an extreme of no elements");
  Value out = out_value(args);
  std::vector<int64_t> best(out.i.size(), -1), strides = row_major_strides(x.shape);
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    int64_t& b = best[at[0]];
    int order = 0;  // > 0: better than the best so far
    if (b < 0) {
      order = 1;
    } else if (x.is_float()) {
      double v = x.f[i], w = x.f[b];
      if (std::isnan(v) || std::isnan(w))
        order = std::isnan(v) ? (std::isnan(w) ? 0 : 1) : -1;
      else
        order = (v > w) - (v < w);
      if (!kMax && !std::isnan(v) && !std::isnan(w)) order = -order;
    } else {
      order = x.dtype == kUInt64 ? (static_cast<uint64_t>(x.i[i]) > static_cast<uint64_t>(x.i[b])) -
                                       (static_cast<uint64_t>(x.i[i]) < static_cast<uint64_t>(x.i[b]))
                                 : (x.i[i] > x.i[b]) - (x.i[i] < x.i[b]);
      if (!kMax) order = -order;
    }
    if (order > 0 || (order == 0 && a.select_last_index)) b = i;
  });
  // The index of the extreme within the reduced axes, row-major.
  for (size_t i = 0; i < best.size(); ++i) {
    out.i[i] = 0;
    for (int64_t axis : r.axes) {
      const int64_t n = x.shape[static_cast<size_t>(axis)];
      out.i[i] = out.i[i] * n + best[i] / strides[static_cast<size_t>(axis)] % n;
    }
  }
  return one(std::move(out));
}

Result<std::vector<Value>> eval_variance(const EvalArgs& args) {
  const auto& a = args.as<VarianceAttrs>();
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(a, x.shape));
  Value out = out_value(args);
  out.bound.resize(out.f.size());
  std::vector<double> mean(out.f.size(), 0.0), spread(out.f.size(), 0.0);
  walk<1>(x.shape, {r.strides},
          [&](int64_t i, const int64_t* at) { mean[at[0]] += x.f[i] / static_cast<double>(r.count); });
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    const double d = x.f[i] - mean[at[0]], b = bound_at(x, i);
    out.f[at[0]] += d * d;
    spread[at[0]] += d * d * b * b;
  });
  const double n = static_cast<double>(r.count - (a.unbiased ? 1 : 0)), u = sum_rounding(x.dtype, r.count);
  for (size_t i = 0; i < out.f.size(); ++i) {
    out.f[i] /= n;
    out.bound[i] = 2 * std::sqrt(spread[i]) / n + u * (out.f[i] + std::sqrt(out.f[i]) * std::fabs(mean[i]));
  }
  return one(std::move(out));
}

Result<std::vector<Value>> eval_logsumexp(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  ReducedAxes r = TW_TRY(reduction(args.as<ReduceAttrs>(), x.shape));
  Value out = out_value(args);
  out.bound.resize(out.f.size());
  std::vector<double> top(out.f.size(), -HUGE_VAL);
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) {
    top[at[0]] = std::isnan(x.f[i]) || x.f[i] > top[at[0]] ? x.f[i] : top[at[0]];
    out.bound[at[0]] = std::fmax(out.bound[at[0]], bound_at(x, i));
  });
  auto shift = [&](int64_t o) { return std::isinf(top[o]) ? 0 : top[o]; };
  walk<1>(x.shape, {r.strides}, [&](int64_t i, const int64_t* at) { out.f[at[0]] += std::exp(x.f[i] - shift(at[0])); });
  for (size_t i = 0; i < out.f.size(); ++i) {
    out.f[i] = std::log(out.f[i]) + shift(static_cast<int64_t>(i));
    out.bound[i] += 4 * sum_rounding(x.dtype, r.count) * (1 + std::fabs(out.f[i]));
    if (!std::isfinite(out.f[i])) out.bound[i] = 0;
  }
  return one(std::move(out));
}

OpDef reduce(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
             Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)() = make_default_attrs<ReduceAttrs>,
             OpPattern pattern = OpPattern::kCommReduce) {
  return define_op(name, doc, {{"data", "any shape"}}, pattern, type, eval, make);
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  return {
      reduce("sum", "The sum over axes; integers wrap.", number_type, eval_sum<false>),
      reduce("mean", "The mean over axes; integers truncate.", number_type, eval_sum<true>),
      reduce("prod", "The product over axes; integers wrap.", number_type, eval_prod),
      reduce("max", "The maximum over axes; NaN wins.", ordered_type, eval_extreme<true>)
          .with({.elements = Elements::kExtreme}),
      reduce("min", "The minimum over axes; NaN wins.", ordered_type, eval_extreme<false>)
          .with({.elements = Elements::kExtreme}),
      reduce("min_max", "The minimum and the maximum of all elements.", extremes_type, eval_extremes, nullptr,
             OpPattern::kOpaque),
      reduce("all", "Whether all are true. Bool.", bool_type, eval_logical<true>),
      reduce("any", "Whether any is true. Bool.", bool_type, eval_logical<false>),
      reduce("logsumexp", "log(sum(exp(x))) over axes, without overflow. Floats.", float_type, eval_logsumexp,
             make_default_attrs<ReduceAttrs>, OpPattern::kOpaque),
      reduce("argmax", "The index of the maximum along an axis, or among several in order.", arg_type, eval_arg<true>,
             make_default_attrs<ArgReduceAttrs>),
      reduce("argmin", "The index of the minimum along an axis, or among several in order.", arg_type, eval_arg<false>,
             make_default_attrs<ArgReduceAttrs>),
      reduce("variance", "The variance over axes. Floats.", variance_type, eval_variance,
             make_default_attrs<VarianceAttrs>),
  };
}

}  // namespace tilewright::relay
