// SPDX-License-Identifier: Apache-2.0
// Operators that read or write elements by index.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Status integer_indices(const TypeArgs& args, size_t i) {
  DataType t = args.tensor(i).dtype;
  if (!t.is_integral()) return type_error(format("the indices are {}, not integers", t.str()));
  return Ok{};
}

Result<int64_t> checked_index(int64_t index, int64_t size) {
  if (index < -size || index >= size) return eval_error(format("index {} is outside an axis of {}", index, size));
  return index < 0 ? index + size : index;
}

Result<Type> take_type(const TypeArgs& args) {
  const auto& a = attrs_of<TakeAttrs>(args);
  const auto &x = args.tensor(0), &ix = args.tensor(1);
  TW_TRY_STATUS(integer_indices(args, 1));
  if (a.mode != "clip" && a.mode != "wrap" && a.mode != "fast")
    return type_error(format("mode is \"{}\", not clip, wrap or fast", a.mode));
  if (!a.axis) {
    if (a.batch_dims) return type_error("batch_dims needs an axis");
    return tensor_type(ix.shape, x.dtype);
  }
  int64_t axis = TW_TRY(checked_axis(*a.axis, x.shape.size()));
  int64_t batch = a.batch_dims < 0 ? a.batch_dims + static_cast<int64_t>(ix.shape.size()) : a.batch_dims;
  if (batch < 0 || batch > axis || batch > static_cast<int64_t>(ix.shape.size()))
    return type_error(
        format("batch_dims {} does not fit axis {} and indices {}", a.batch_dims, axis, shape_str(ix.shape)));
  for (int64_t k = 0; k < batch; ++k)
    if (dims_differ(x.shape[k], ix.shape[k]))
      return type_error(format("batch axes of {} and {} differ", shape_str(x.shape), shape_str(ix.shape)));
  Shape out(x.shape.begin(), x.shape.begin() + axis);
  out.insert(out.end(), ix.shape.begin() + batch, ix.shape.end());
  out.insert(out.end(), x.shape.begin() + axis + 1, x.shape.end());
  return tensor_type(std::move(out), x.dtype);
}

Result<std::vector<Value>> eval_take(const EvalArgs& args) {
  const auto& a = args.as<TakeAttrs>();
  const Value &x = args.inputs[0], &ix = args.inputs[1];
  std::vector<int64_t> shape = a.axis ? x.shape : std::vector<int64_t>{x.size()};
  const auto axis = static_cast<size_t>(TW_TRY(checked_axis(a.axis.value_or(0), shape.size())));
  const auto batch =
      static_cast<size_t>(a.batch_dims < 0 ? a.batch_dims + static_cast<int64_t>(ix.shape.size()) : a.batch_dims);
  const int64_t n = shape[axis], outer = product(shape, 0, batch), middle = product(shape, batch, axis),
                inner = product(shape, axis + 1, shape.size());
  const int64_t picks = product(ix.shape, batch, ix.shape.size());
  if (n == 0 && picks > 0) return eval_error("there is nothing to take from an empty axis");
  std::vector<int64_t> index;
  index.reserve(static_cast<size_t>(outer * middle * picks * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t m = 0; m < middle; ++m)
      for (int64_t p = 0; p < picks; ++p) {
        int64_t k = ix.i[static_cast<size_t>(o * picks + p)];
        if (a.mode == "clip")
          k = std::clamp<int64_t>(k, 0, n - 1);
        else if (a.mode == "wrap")
          k = (k % n + n) % n;
        else
          k = TW_TRY(checked_index(k, n));
        for (int64_t i = 0; i < inner; ++i) index.push_back(((o * middle + m) * n + k) * inner + i);
      }
  return one(pick(x, out_shape(args), index));
}

Result<Type> gather_type(const TypeArgs& args) {
  const auto &x = args.tensor(0), &ix = args.tensor(1);
  TW_TRY_STATUS(integer_indices(args, 1));
  TW_TRY(checked_axis(attrs_of<GatherAttrs>(args).axis, x.shape.size()));
  if (x.shape.size() != ix.shape.size())
    return type_error(format("data {} and indices {} differ in rank", shape_str(x.shape), shape_str(ix.shape)));
  return tensor_type(ix.shape, x.dtype);
}

// For every element of `ix`, the data's linear index with the coordinate of `axis` replaced by the element's value.
Result<std::vector<int64_t>> element_indices(const std::vector<int64_t>& data, const Value& ix, int64_t axis_attr) {
  const auto axis = static_cast<size_t>(TW_TRY(checked_axis(axis_attr, data.size())));
  std::vector<int64_t> strides = row_major_strides(data), index(ix.i.size());
  for (size_t k = 0; k < data.size(); ++k)
    if (k != axis && ix.shape[k] > data[k])
      return eval_error(format("indices {} reach past the data {}", shape_str(ix.shape), shape_str(data)));
  std::vector<int64_t> without = strides;
  without[axis] = 0;
  bool ok = true;
  int64_t bad = 0;
  walk<1>(ix.shape, {without}, [&](int64_t i, const int64_t* at) {
    int64_t k = ix.i[i];
    if (k < -data[axis] || k >= data[axis]) {
      ok = false;
      bad = k;
      return;
    }
    index[i] = at[0] + (k < 0 ? k + data[axis] : k) * strides[axis];
  });
  if (!ok) return eval_error(format("index {} is outside an axis of {}", bad, data[axis]));
  return index;
}

Result<std::vector<Value>> eval_gather(const EvalArgs& args) {
  const Value &x = args.inputs[0], &ix = args.inputs[1];
  return one(pick(x, ix.shape, TW_TRY(element_indices(x.shape, ix, args.as<GatherAttrs>().axis))));
}

// The number of coordinates in the first axis of the indices of gather_nd and scatter_nd.
Result<int64_t> tuple_length(const Shape& data, const Shape& indices, int64_t batch, std::optional<int64_t> known) {
  if (indices.empty()) return type_error("the indices are a scalar");
  std::optional<int64_t> m = indices[0].constant();
  if (!m) m = known;
  if (!m) return type_error(format("the number of coordinates of the indices {} must be constant", shape_str(indices)));
  if (batch < 0 || batch > static_cast<int64_t>(data.size()) || *m + batch > static_cast<int64_t>(data.size()) ||
      batch + 1 > static_cast<int64_t>(indices.size()))
    return type_error(format("{} coordinates after {} batch axes do not index data {}", *m, batch, shape_str(data)));
  return *m;
}

Result<Type> gather_nd_type(const TypeArgs& args) {
  const auto& a = attrs_of<GatherNDAttrs>(args);
  const auto &x = args.tensor(0), &ix = args.tensor(1);
  TW_TRY_STATUS(integer_indices(args, 1));
  int64_t m = TW_TRY(tuple_length(x.shape, ix.shape, a.batch_dims, a.index_rank));
  for (int64_t k = 0; k < a.batch_dims; ++k)
    if (dims_differ(x.shape[k], ix.shape[k + 1]))
      return type_error(format("batch axes of {} and {} differ", shape_str(x.shape), shape_str(ix.shape)));
  Shape out(ix.shape.begin() + 1, ix.shape.end());
  out.insert(out.end(), x.shape.begin() + a.batch_dims + m, x.shape.end());
  return tensor_type(std::move(out), x.dtype);
}

// The data's linear index of each index tuple of (M, Y...).
Result<std::vector<int64_t>> tuple_offsets(const std::vector<int64_t>& data, const Value& ix, int64_t batch) {
  std::vector<int64_t> strides = row_major_strides(data);
  const int64_t m = ix.shape[0], count = m ? ix.size() / m : product(ix.shape, 1, ix.shape.size());
  std::vector<int64_t> out(static_cast<size_t>(count), 0);
  std::vector<int64_t> tuple_strides = row_major_strides({ix.shape.begin() + 1, ix.shape.end()});
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t b = 0; b < batch; ++b) out[j] += j / tuple_strides[b] % ix.shape[b + 1] * strides[b];
    for (int64_t k = 0; k < m; ++k)
      out[j] += TW_TRY(checked_index(ix.i[static_cast<size_t>(k * count + j)], data[batch + k])) * strides[batch + k];
  }
  return out;
}

Result<std::vector<Value>> eval_gather_nd(const EvalArgs& args) {
  const auto& a = args.as<GatherNDAttrs>();
  const Value &x = args.inputs[0], &ix = args.inputs[1];
  std::vector<int64_t> first = TW_TRY(tuple_offsets(x.shape, ix, a.batch_dims)), index;
  const int64_t inner = product(x.shape, static_cast<size_t>(a.batch_dims + ix.shape[0]), x.shape.size());
  for (int64_t f : first)
    for (int64_t i = 0; i < inner; ++i) index.push_back(f + i);
  return one(pick(x, out_shape(args), index));
}

enum class Reduction { kUpdate, kAdd, kMul, kMin, kMax };
Result<Reduction> reduction_of(const std::string& name) {
  if (name == "update") return Reduction::kUpdate;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  return type_error(format("the reduction is \"{}\", not update, add, mul, min or max", name));
}

// Combines updates[j] into out[index[j]], in order.
void scatter(Value* out, const Value& updates, const std::vector<int64_t>& index, Reduction how) {
  const bool bounds = out->is_float() && (!out->bound.empty() || !updates.bound.empty() || how == Reduction::kAdd ||
                                          how == Reduction::kMul);
  if (bounds && out->bound.empty()) out->bound.resize(out->f.size());
  const double u = unit_roundoff(out->dtype);
  for (size_t j = 0; j < index.size(); ++j) {
    const auto at = static_cast<size_t>(index[j]);
    if (out->is_float()) {
      const double v = updates.f[j], b = bound_at(updates, static_cast<int64_t>(j));
      double& y = out->f[at];
      double moved = bounds ? std::fmax(out->bound[at], b) : 0;
      switch (how) {
        case Reduction::kUpdate:
          y = v;
          moved = b;
          break;
        case Reduction::kAdd:
          y += v;
          moved = out->bound[at] + b + u * std::fabs(y);
          break;
        case Reduction::kMul:
          moved = std::fabs(y) * b + std::fabs(v) * out->bound[at];
          y *= v;
          moved += u * std::fabs(y);
          break;
        case Reduction::kMin:
          y = std::isnan(v) || v < y ? v : y;
          break;
        case Reduction::kMax:
          y = std::isnan(v) || v > y ? v : y;
          break;
      }
      if (bounds) out->bound[at] = moved;
    } else if (out->dtype.is_string()) {
      out->s[at] = updates.s[j];
    } else {
      const int64_t v = updates.i[j];
      int64_t& y = out->i[at];
      const bool less = out->dtype.is_uint() ? static_cast<uint64_t>(v) < static_cast<uint64_t>(y) : v < y;
      switch (how) {
        case Reduction::kUpdate:
          y = v;
          break;
        case Reduction::kAdd:
          y = wrap_int(out->dtype, static_cast<int64_t>(static_cast<uint64_t>(y) + static_cast<uint64_t>(v)));
          break;
        case Reduction::kMul:
          y = wrap_int(out->dtype, static_cast<int64_t>(static_cast<uint64_t>(y) * static_cast<uint64_t>(v)));
          break;
        case Reduction::kMin:
          y = less ? v : y;
          break;
        case Reduction::kMax:
          y = less ? y : v;
          break;
      }
    }
  }
}

Status same_dtype(const TypeArgs& args, size_t a, size_t b) {
  if (args.tensor(a).dtype != args.tensor(b).dtype)
    return type_error(
        format("data is {} but the updates are {}", args.tensor(a).dtype.str(), args.tensor(b).dtype.str()));
  return Ok{};
}

Result<Type> scatter_elements_type(const TypeArgs& args) {
  const auto& a = attrs_of<ScatterElementsAttrs>(args);
  const auto &x = args.tensor(0), &ix = args.tensor(1), &up = args.tensor(2);
  TW_TRY_STATUS(integer_indices(args, 1));
  TW_TRY_STATUS(same_dtype(args, 0, 2));
  TW_TRY(checked_axis(a.axis, x.shape.size()));
  TW_TRY(reduction_of(a.reduction));
  bool same = ix.shape.size() == x.shape.size() && ix.shape.size() == up.shape.size();
  for (size_t k = 0; same && k < ix.shape.size(); ++k) same = !dims_differ(ix.shape[k], up.shape[k]);
  if (!same)
    return type_error(format("data {}, indices {} and updates {} do not fit", shape_str(x.shape), shape_str(ix.shape),
                             shape_str(up.shape)));
  return args.types[0];
}
Result<std::vector<Value>> eval_scatter_elements(const EvalArgs& args) {
  const auto& a = args.as<ScatterElementsAttrs>();
  Value out = args.inputs[0];
  scatter(&out, args.inputs[2], TW_TRY(element_indices(out.shape, args.inputs[1], a.axis)),
          TW_TRY(reduction_of(a.reduction)));
  return one(std::move(out));
}

Result<Type> scatter_nd_type(const TypeArgs& args) {
  const auto& a = attrs_of<ScatterNDAttrs>(args);
  const auto &x = args.tensor(0), &ix = args.tensor(1), &up = args.tensor(2);
  TW_TRY_STATUS(integer_indices(args, 1));
  TW_TRY_STATUS(same_dtype(args, 0, 2));
  TW_TRY(reduction_of(a.mode));
  int64_t m = TW_TRY(tuple_length(x.shape, ix.shape, 0, std::nullopt));
  Shape want(ix.shape.begin() + 1, ix.shape.end());
  want.insert(want.end(), x.shape.begin() + m, x.shape.end());
  bool same = want.size() == up.shape.size();
  for (size_t k = 0; same && k < want.size(); ++k) same = !dims_differ(want[k], up.shape[k]);
  if (!same)
    return type_error(format("updates are {}, but data {} and indices {} need {}", shape_str(up.shape),
                             shape_str(x.shape), shape_str(ix.shape), shape_str(want)));
  return args.types[0];
}
Result<std::vector<Value>> eval_scatter_nd(const EvalArgs& args) {
  Value out = args.inputs[0];
  const Value& ix = args.inputs[1];
  const int64_t inner = product(out.shape, static_cast<size_t>(ix.shape[0]), out.shape.size());
  std::vector<int64_t> index;
  for (int64_t f : TW_TRY(tuple_offsets(out.shape, ix, 0)))
    for (int64_t i = 0; i < inner; ++i) index.push_back(f + i);
  scatter(&out, args.inputs[2], index, TW_TRY(reduction_of(args.as<ScatterNDAttrs>().mode)));
  return one(std::move(out));
}

Result<Type> one_hot_type(const TypeArgs& args) {
  const auto& a = attrs_of<OneHotAttrs>(args);
  const auto& ix = args.tensor(0);
  if (!ix.dtype.is_integral()) return type_error(format("the indices are {}, not integers", ix.dtype.str()));
  for (size_t i = 1; i < 3; ++i)
    if (args.tensor(i).dtype != a.dtype || !args.tensor(i).shape.empty())
      return type_error(
          format("the {} value is {}, not a scalar {}", i == 1 ? "on" : "off", type_str(args.types[i]), a.dtype.str()));
  if (a.depth < 0) return type_error(format("depth is {}", a.depth));
  int64_t axis = TW_TRY(checked_axis(a.axis, ix.shape.size() + 1));
  Shape out = ix.shape;
  out.insert(out.begin() + axis, Dim(a.depth));
  return tensor_type(std::move(out), a.dtype);
}
Result<std::vector<Value>> eval_one_hot(const EvalArgs& args) {
  const auto& a = args.as<OneHotAttrs>();
  const Value& ix = args.inputs[0];
  const auto axis = static_cast<size_t>(TW_TRY(checked_axis(a.axis, ix.shape.size() + 1)));
  const int64_t inner = product(ix.shape, axis, ix.shape.size());
  std::vector<int64_t> index(static_cast<size_t>(ix.size() * a.depth), 1);
  for (int64_t j = 0; j < ix.size(); ++j) {
    const int64_t k = ix.i[static_cast<size_t>(j)], at = k < 0 ? k + a.depth : k;
    if (at >= 0 && at < a.depth) index[static_cast<size_t>((j / inner * a.depth + at) * inner + j % inner)] = 0;
  }
  Value choices = make_value(a.dtype, {2});
  for (size_t i = 0; i < 2; ++i) {
    const Value& v = args.inputs[i + 1];
    if (!v.f.empty()) choices.f[i] = v.f[0];
    if (!v.i.empty()) choices.i[i] = v.i[0];
    if (!v.s.empty()) choices.s[i] = v.s[0];
  }
  return one(pick(choices, out_shape(args), index));
}

Result<Type> argwhere_type(const TypeArgs& args) {
  return tensor_type({Dim::any(), Dim(static_cast<int64_t>(args.tensor(0).shape.size()))}, kInt64);
}
Result<std::vector<Value>> eval_argwhere(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  std::vector<int64_t> strides = row_major_strides(x.shape), found;
  int64_t count = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool set = x.is_float() ? x.f[i] != 0 : x.dtype.is_string() ? !x.s[i].empty() : x.i[i] != 0;
    if (!set) continue;
    ++count;
    for (size_t k = 0; k < strides.size(); ++k) found.push_back(i / strides[k] % x.shape[k]);
  }
  Value out = make_value(kInt64, {count, static_cast<int64_t>(x.shape.size())});
  out.i = std::move(found);
  return one(std::move(out));
}

}  // namespace

std::vector<OpDef> index_ops() {
  constexpr OpPattern kInj = OpPattern::kInjective, kOpaque = OpPattern::kOpaque;
  const std::vector<ArgDoc> read = {{"data", "any dtype"}, {"indices", "integers"}};
  const std::vector<ArgDoc> write = {{"data", "any dtype"}, {"indices", "integers"}, {"updates", "the data's dtype"}};
  return {
      define_op("take", "data[..., indices, ...] along axis: (A, n, B) and (I) -> (A, I, B).", read, kInj, take_type,
                eval_take, make_default_attrs<TakeAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
      define_op("gather", "out[i][j] = data[indices[i][j]][j] for axis 0 (ONNX GatherElements).", read, kInj,
                gather_type, eval_gather, make_default_attrs<GatherAttrs>)
          .with({.elements = Elements::kRepeated}),
      define_op("gather_nd", "Slices of data at index tuples, which run along axis 0 of the indices.", read, kInj,
                gather_nd_type, eval_gather_nd, make_default_attrs<GatherNDAttrs>)
          .with({.elements = Elements::kRepeated}),
      define_op("scatter_elements", "A copy of data with data[indices[i][j]][j] updated for axis 0.", write, kOpaque,
                scatter_elements_type, eval_scatter_elements, make_default_attrs<ScatterElementsAttrs>),
      define_op("scatter_nd",
                "A copy of data with the slices at index tuples updated; tuples run along axis 0 of the indices.",
                write, kOpaque, scatter_nd_type, eval_scatter_nd, make_default_attrs<ScatterNDAttrs>),
      define_op("one_hot",
                "on_value where the new axis equals the index, else off_value; an index outside [-depth, depth) gives "
                "off_value throughout.",
                {{"indices", "integers"}, {"on_value", "a scalar"}, {"off_value", "a scalar"}},
                OpPattern::kOutEWiseFusable, one_hot_type, eval_one_hot, make_default_attrs<OneHotAttrs>),
      define_op("argwhere", "The coordinates of the non-zero elements, row-major: (count, rank) int64.",
                {{"condition", "any dtype"}}, kOpaque, argwhere_type, eval_argwhere, nullptr)
          .with({.sized_by_data = true}),
  };
}

}  // namespace tilewright::relay
