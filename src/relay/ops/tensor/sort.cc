// SPDX-License-Identifier: Apache-2.0
// Sorting, ranking and scans along an axis.
#include <algorithm>
#include <numeric>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

struct SortedAxis {
  int64_t outer, n, inner;
  SortedAxis(const std::vector<int64_t>& shape, size_t k)
      : outer(product(shape, 0, k)), n(shape[k]), inner(product(shape, k + 1, shape.size())) {}
  int64_t at(int64_t o, int64_t j, int64_t i) const { return (o * n + j) * inner + i; }
};

// Whether a comes before b in ascending order; NaN is larger than every number.
bool ascending(const Value& v, int64_t a, int64_t b) {
  if (v.is_float()) return std::isnan(v.f[b]) ? !std::isnan(v.f[a]) : v.f[a] < v.f[b];
  if (v.dtype.is_string()) return v.s[a] < v.s[b];
  if (v.dtype == kUInt64) return static_cast<uint64_t>(v.i[a]) < static_cast<uint64_t>(v.i[b]);
  return v.i[a] < v.i[b];
}

// The linear indices of the first k elements, in sorted order, of every line along the axis; equal elements by
// position.
std::vector<int64_t> sorted_indices(const Value& x, const SortedAxis& v, int64_t k, bool ascend) {
  std::vector<int64_t> out(static_cast<size_t>(v.outer * k * v.inner)), line(static_cast<size_t>(v.n));
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      for (int64_t j = 0; j < v.n; ++j) line[j] = v.at(o, j, i);
      std::stable_sort(line.begin(), line.end(),
                       [&](int64_t a, int64_t b) { return ascend ? ascending(x, a, b) : ascending(x, b, a); });
      for (int64_t j = 0; j < k; ++j) out[(o * k + j) * v.inner + i] = line[j];
    }
  return out;
}
Value positions(const std::vector<int64_t>& index, const SortedAxis& v, DataType dtype, std::vector<int64_t> shape) {
  Value out = make_value(dtype, std::move(shape));
  for (size_t j = 0; j < index.size(); ++j) {
    const int64_t p = index[j] / v.inner % v.n;
    if (out.is_float())
      out.f[j] = static_cast<double>(p);
    else
      out.i[j] = p;
  }
  return out;
}

Result<Type> sort_type(const TypeArgs& args) {
  TW_TRY(checked_axis(attrs_of<SortAttrs>(args).axis, args.tensor(0).shape.size()));
  return args.types[0];
}
Result<std::vector<Value>> eval_sort(const EvalArgs& args) {
  const auto& a = args.as<SortAttrs>();
  const Value& x = args.inputs[0];
  SortedAxis v(x.shape, static_cast<size_t>(TW_TRY(checked_axis(a.axis, x.shape.size()))));
  return one(pick(x, x.shape, sorted_indices(x, v, v.n, a.is_ascend)));
}
Result<Type> argsort_type(const TypeArgs& args) {
  const auto& a = attrs_of<ArgsortAttrs>(args);
  TW_TRY_STATUS(number_dtype(a.dtype));
  TW_TRY(checked_axis(a.axis, args.tensor(0).shape.size()));
  return tensor_type(args.tensor(0).shape, a.dtype);
}
Result<std::vector<Value>> eval_argsort(const EvalArgs& args) {
  const auto& a = args.as<ArgsortAttrs>();
  const Value& x = args.inputs[0];
  SortedAxis v(x.shape, static_cast<size_t>(TW_TRY(checked_axis(a.axis, x.shape.size()))));
  return one(positions(sorted_indices(x, v, v.n, a.is_ascend), v, a.dtype, x.shape));
}

Result<Type> topk_type(const TypeArgs& args) {
  const auto& a = attrs_of<TopKAttrs>(args);
  TW_TRY_STATUS(number_dtype(a.dtype));
  if (args.types.empty() || args.types.size() > 2)
    return type_error(format("it takes 1 or 2 operands, not {}", args.types.size()));
  if (!as_tensor(args.types[0])) return type_error(format("operand 0 is {}, not a tensor", type_str(args.types[0])));
  const auto& x = args.tensor(0);
  int64_t axis = TW_TRY(checked_axis(a.axis, x.shape.size()));
  Shape out = x.shape;
  Dim& d = out[static_cast<size_t>(axis)];
  std::optional<int64_t> k = a.k;
  if (k && args.types.size() == 2) return type_error("k is both an attribute and an operand");
  if (args.types.size() == 2) {
    const auto* type = as_tensor(args.types[1]);
    if (!type || !type->dtype.is_integral() || element_count(type->shape) != Dim(1))
      return type_error(format("k is {}, not an integer scalar", type_str(args.types[1])));
    const Tensor* c = constant_operand(args, 1);
    if (c)
      k = c->at_int(0);
    else
      d = Dim::any();
  }
  if (k && (*k < 0 || dims_differ(make_dim(DimKind::kMin, d, Dim(*k)), Dim(*k))))
    return type_error(format("k {} is outside axis {} of {}", *k, axis, shape_str(x.shape)));
  if (k) d = *k;
  Type values = tensor_type(out, x.dtype), indices = tensor_type(out, a.dtype);
  if (a.ret_type == "values") return values;
  if (a.ret_type == "indices") return indices;
  if (a.ret_type != "both") return type_error(format("ret_type is \"{}\", not both, values or indices", a.ret_type));
  return tuple_type({values, indices});
}
Result<std::vector<Value>> eval_topk(const EvalArgs& args) {
  const auto& a = args.as<TopKAttrs>();
  const Value& x = args.inputs[0];
  const auto axis = static_cast<size_t>(TW_TRY(checked_axis(a.axis, x.shape.size())));
  SortedAxis v(x.shape, axis);
  std::vector<int64_t> shape = x.shape;
  int64_t k = a.k.value_or(v.n);
  if (args.inputs.size() == 2) k = args.inputs[1].i[0];
  if (k < 0 || k > v.n) return eval_error(format("k {} is outside an axis of {}", k, v.n));
  shape[axis] = k;
  std::vector<int64_t> index = sorted_indices(x, v, k, a.is_ascend);
  std::vector<Value> out;
  if (a.ret_type != "indices") out.push_back(pick(x, shape, index));
  if (a.ret_type != "values") out.push_back(positions(index, v, a.dtype, shape));
  return out;
}

Result<Type> scan_type(const TypeArgs& args) {
  const auto& a = attrs_of<ScanopAttrs>(args);
  const auto& x = args.tensor(0);
  if (!x.dtype.is_float() && !x.dtype.is_integral() && !x.dtype.is_bool())
    return type_error(format("it needs numbers, not {}", x.dtype.str()));
  DataType t = TW_TRY(number_dtype_or(a.dtype, x.dtype.is_bool() ? kInt32 : x.dtype));
  if (t.is_float() != x.dtype.is_float())
    return type_error(format("it cannot go from {} to {}", x.dtype.str(), t.str()), "cast the data first");
  if (!a.axis) return tensor_type({element_count(x.shape)}, t);
  TW_TRY(checked_axis(*a.axis, x.shape.size()));
  return tensor_type(x.shape, t);
}
template <bool kProduct>
Result<std::vector<Value>> eval_scan(const EvalArgs& args) {
  const auto& a = args.as<ScanopAttrs>();
  Value x = args.inputs[0];
  if (!a.axis) x = reshaped(x, {x.size()});
  Value out = make_value(out_tensor(args).dtype, x.shape);
  SortedAxis v(x.shape, static_cast<size_t>(TW_TRY(checked_axis(a.axis.value_or(0), x.shape.size()))));
  if (out.is_float()) out.bound.resize(out.f.size());
  const double u = unit_roundoff(out.dtype);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t i = 0; i < v.inner; ++i) {
      double sum = kProduct ? 1 : 0, error = 0;
      uint64_t total = kProduct ? 1 : 0;
      for (int64_t step = 0; step < v.n; ++step) {
        const int64_t at = v.at(o, a.reverse ? v.n - 1 - step : step, i);
        const double before = sum, before_error = error;
        const uint64_t before_total = total;
        if (out.is_float()) {
          error = kProduct ? std::fabs(sum) * bound_at(x, at) + std::fabs(x.f[at]) * error : error + bound_at(x, at);
          sum = kProduct ? sum * x.f[at] : sum + x.f[at];
          error += u * std::fabs(sum);
          out.f[at] = a.exclusive ? before : sum;
          out.bound[at] = a.exclusive ? before_error : error;
        } else {
          total = kProduct ? total * static_cast<uint64_t>(x.i[at]) : total + static_cast<uint64_t>(x.i[at]);
          out.i[at] = wrap_int(out.dtype, static_cast<int64_t>(a.exclusive ? before_total : total));
        }
      }
    }
  return one(std::move(out));
}

Result<Type> unique_type(const TypeArgs& args) {
  const auto& a = attrs_of<UniqueAttrs>(args);
  const auto& x = args.tensor(0);
  Dim n = Dim::any();
  Shape values{n};
  Dim size = element_count(x.shape);
  if (a.axis) {
    const auto axis = static_cast<size_t>(TW_TRY(checked_axis(*a.axis, x.shape.size())));
    values = x.shape;
    values[axis] = n;
    size = x.shape[axis];
  }
  return tuple_type(
      {tensor_type(values, x.dtype), tensor_type({n}, kInt64), tensor_type({size}, kInt64), tensor_type({n}, kInt64)});
}
Result<std::vector<Value>> eval_unique(const EvalArgs& args) {
  const auto& a = args.as<UniqueAttrs>();
  Value x = args.inputs[0];
  const auto axis = static_cast<size_t>(a.axis ? TW_TRY(checked_axis(*a.axis, x.shape.size())) : 0);
  if (!a.axis) x = reshaped(x, {x.size()});
  SortedAxis v(x.shape, axis);
  // Compares two slices lexicographically.
  auto compare = [&](int64_t p, int64_t q) {
    for (int64_t o = 0; o < v.outer; ++o)
      for (int64_t i = 0; i < v.inner; ++i) {
        if (ascending(x, v.at(o, p, i), v.at(o, q, i))) return -1;
        if (ascending(x, v.at(o, q, i), v.at(o, p, i))) return 1;
      }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(v.n)), inverse(order.size()), first, counts;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return compare(p, q) < 0; });
  for (size_t j = 0; j < order.size(); ++j) {
    if (j == 0 || compare(order[j - 1], order[j]) != 0) {
      first.push_back(order[j]);  // the sort is stable: the first of equal ones
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(order[j])] = static_cast<int64_t>(first.size()) - 1;
  }
  if (!a.sorted) {
    std::vector<int64_t> rank(first.size()), place(first.size());
    std::iota(rank.begin(), rank.end(), int64_t{0});
    std::sort(rank.begin(), rank.end(), [&](int64_t p, int64_t q) { return first[p] < first[q]; });
    for (size_t j = 0; j < rank.size(); ++j) place[static_cast<size_t>(rank[j])] = static_cast<int64_t>(j);
    std::vector<int64_t> f, c;
    for (int64_t r : rank) {
      f.push_back(first[r]);
      c.push_back(counts[r]);
    }
    first = f;
    counts = c;
    for (int64_t& k : inverse) k = place[static_cast<size_t>(k)];
  }
  const auto n = static_cast<int64_t>(first.size());
  std::vector<int64_t> shape = x.shape, index;
  shape[axis] = n;
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t f : first)
      for (int64_t i = 0; i < v.inner; ++i) index.push_back(v.at(o, f, i));
  auto vector = [](std::vector<int64_t> data) {
    Value out = make_value(kInt64, {static_cast<int64_t>(data.size())});
    out.i = std::move(data);
    return out;
  };
  std::vector<Value> out;
  out.push_back(pick(x, shape, index));
  out.push_back(vector(first));
  out.push_back(vector(inverse));
  out.push_back(vector(counts));
  return out;
}

OpDef sort_op(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
              Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, {{"data", "any shape of rank 1 or more"}}, OpPattern::kOpaque, type, eval, make);
}

}  // namespace

std::vector<OpDef> sort_ops() {
  std::vector<OpDef> ops = {
      sort_op("sort", "Values in order along axis, stable; NaN last in ascending order.", sort_type, eval_sort,
              make_default_attrs<SortAttrs>),
      sort_op("argsort", "The order that sorts axis, stable.", argsort_type, eval_argsort,
              make_default_attrs<ArgsortAttrs>),
      sort_op("topk", "The k largest (or smallest) values along axis and their indices; ties by index.", topk_type,
              eval_topk, make_default_attrs<TopKAttrs>),
      sort_op("cumsum", "Running sums along axis.", scan_type, eval_scan<false>, make_default_attrs<ScanopAttrs>),
      sort_op("cumprod", "Running products along axis.", scan_type, eval_scan<true>, make_default_attrs<ScanopAttrs>),
      sort_op("unique", "Distinct elements or slices, their first indices, the inverse and the counts.", unique_type,
              eval_unique, make_default_attrs<UniqueAttrs>)
          .with({.sized_by_data = true}),
  };
  for (OpDef& d : ops)
    if (std::string_view(d.name) == "topk") {
      d.num_inputs = -1;
      d.args.push_back({"k", "an integer scalar; optional"});
    }
  return ops;
}

}  // namespace tilewright::relay
