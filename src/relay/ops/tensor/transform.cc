// SPDX-License-Identifier: Apache-2.0
// Operators that reshape, permute or join tensors.
#include <algorithm>
#include <limits>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

constexpr int64_t kMaxDim = int64_t{1} << 48;

Result<Shape> reshape_dims(const Shape& in, const ReshapeAttrs& a) {
  auto fail = [&](const std::string& why) {
    return type_error(format("{} cannot be reshaped to {}: {}", shape_str(in), shape_str(to_shape(a.newshape)), why));
  };
  Shape out;
  std::vector<bool> used(in.size(), false);  // dims copied by 0: they cancel when -1 is inferred
  Shape rest_in, rest_out;
  int infer = -1;
  size_t at = 0;
  const auto& codes = a.newshape;
  for (size_t i = 0; i < codes.size(); ++i) {
    const int64_t code = codes[i];
    if (code > 0 || (code == 0 && a.allowzero)) {
      if (code > kMaxDim) return fail("the size is out of range");
      out.push_back(code);
      rest_out.push_back(code);
      ++at;
    } else if (code == 0) {
      if (at >= in.size()) return fail("0 has no dim to copy");
      used[at] = true;
      out.push_back(in[at++]);
    } else if (code == -1) {
      if (infer >= 0) return fail("-1 appears twice");
      infer = static_cast<int>(out.size());
      out.push_back(1);
      ++at;
    } else if (code == -2) {
      for (; at < in.size(); ++at) {
        used[at] = true;
        out.push_back(in[at]);
      }
    } else if (code == -3) {
      if (at + 1 >= in.size()) return fail("-3 needs two dims to merge");
      used[at] = used[at + 1] = true;
      out.push_back(in[at] * in[at + 1]);
      at += 2;
    } else if (code == -4) {
      if (at >= in.size() || i + 2 >= codes.size()) return fail("-4 needs a dim and two sizes");
      Dim d1 = codes[i + 1], d2 = codes[i + 2];
      if (codes[i + 1] == -1 && codes[i + 2] == -1) return fail("-4 with two -1");
      if ((codes[i + 1] < 1 && codes[i + 1] != -1) || (codes[i + 2] < 1 && codes[i + 2] != -1))
        return fail("-4 with a size below 1");
      if (codes[i + 1] == -1) d1 = floordiv(in[at], d2);
      if (codes[i + 2] == -1) d2 = floordiv(in[at], d1);
      if (dims_differ(d1 * d2, in[at]))
        return fail(format("{} and {} do not split {}", d1.str(), d2.str(), in[at].str()));
      used[at++] = true;
      out.push_back(d1);
      out.push_back(d2);
      i += 2;
    } else {
      return fail(format("unknown code {}", code));
    }
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (!used[i]) rest_in.push_back(in[i]);
  Dim have = element_count(rest_in), want = element_count(rest_out);
  if (!want.is_const()) return fail("the number of elements is out of range");
  if (infer >= 0) {
    if (want == Dim(0)) return fail("-1 beside an empty axis");
    if (have.is_const() && want.is_const() && have.value() % want.value()) return fail("the sizes do not divide");
    out[static_cast<size_t>(infer)] = floordiv(have, want);
  } else if (dims_differ(have, want)) {
    return fail("the number of elements differs");
  }
  // Not when the product overflows 64 bits.
  auto known = [](const Shape& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_const(); });
  };
  if (known(in) && !known(out)) return fail("the sizes are out of range");
  return out;
}

Result<Type> reshape_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  return tensor_type(TW_TRY(reshape_dims(t.shape, attrs_of<ReshapeAttrs>(args))), t.dtype);
}
Result<std::vector<Value>> eval_same_data(const EvalArgs& args) {
  return one(reshaped(args.inputs[0], out_shape(args)));
}

Result<Type> flatten_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  if (t.shape.empty()) return type_error("it needs a batch axis, not a scalar");
  return tensor_type({t.shape[0], element_count(Shape(t.shape.begin() + 1, t.shape.end()))}, t.dtype);
}

Result<Type> squeeze_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  const auto& axis = attrs_of<SqueezeAttrs>(args).axis;
  Shape out;
  std::vector<int64_t> drop;
  if (axis) {
    drop = TW_TRY(checked_axes(*axis, t.shape.size()));
    for (int64_t k : drop)
      if (dims_differ(t.shape[k], Dim(1))) return type_error(format("axis {} of {} is not 1", k, shape_str(t.shape)));
  } else {
    for (size_t k = 0; k < t.shape.size(); ++k)
      if (t.shape[k] == Dim(1)) drop.push_back(static_cast<int64_t>(k));
  }
  for (size_t k = 0; k < t.shape.size(); ++k)
    if (!std::binary_search(drop.begin(), drop.end(), static_cast<int64_t>(k))) out.push_back(t.shape[k]);
  return tensor_type(std::move(out), t.dtype);
}

Result<Type> expand_dims_type(const TypeArgs& args) {
  const auto& a = attrs_of<ExpandDimsAttrs>(args);
  const auto& t = args.tensor(0);
  if (a.num_newaxis < 0 || a.num_newaxis > 64) return type_error(format("num_newaxis is {}", a.num_newaxis));
  int64_t axis = TW_TRY(checked_axis(a.axis, t.shape.size() + 1));
  Shape out = t.shape;
  out.insert(out.begin() + axis, static_cast<size_t>(a.num_newaxis), Dim(1));
  return tensor_type(std::move(out), t.dtype);
}

Result<std::vector<int64_t>> permutation(const std::optional<std::vector<int64_t>>& axes, size_t rank) {
  std::vector<int64_t> out;
  if (!axes) {
    for (size_t i = rank; i-- > 0;) out.push_back(static_cast<int64_t>(i));
    return out;
  }
  if (axes->size() != rank) return type_error(format("axes has {} values for rank {}", axes->size(), rank));
  TW_TRY_STATUS([&]() -> Status {
    TW_TRY(checked_axes(*axes, rank));
    return Ok{};
  }());
  for (int64_t a : *axes) out.push_back(a < 0 ? a + static_cast<int64_t>(rank) : a);
  return out;
}
Result<Type> transpose_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  Shape out;
  for (int64_t a : TW_TRY(permutation(attrs_of<TransposeAttrs>(args).axes, t.shape.size()))) out.push_back(t.shape[a]);
  return tensor_type(std::move(out), t.dtype);
}
Result<std::vector<Value>> eval_transpose(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  std::vector<int64_t> own = row_major_strides(in.shape), shape, strides;
  for (int64_t a : TW_TRY(permutation(args.as<TransposeAttrs>().axes, in.shape.size()))) {
    shape.push_back(in.shape[a]);
    strides.push_back(own[a]);
  }
  return one(strided_copy(in, shape, strides));
}

Result<Type> joined_type(const TypeArgs& args, int64_t axis, bool stack) {
  std::vector<Type> fields = flat_types(args);
  if (fields.empty()) return type_error("it needs at least one tensor");
  const auto& first = *as_tensor(fields[0]);
  int64_t k = TW_TRY(checked_axis(axis, first.shape.size() + (stack ? 1 : 0)));
  Shape out = first.shape;
  Dim total = 0;
  for (const Type& f : fields) {
    const auto& t = *as_tensor(f);
    bool ok = t.dtype == first.dtype && t.shape.size() == first.shape.size();
    for (size_t i = 0; ok && i < t.shape.size(); ++i) {
      if (!stack && static_cast<int64_t>(i) == k) continue;
      ok = !dims_differ(out[i], t.shape[i]);
      out[i] = known_dim(out[i], t.shape[i]);
    }
    if (!ok) return type_error(format("{} and {} do not join along axis {}", type_str(fields[0]), type_str(f), k));
    if (!stack) total = total + t.shape[static_cast<size_t>(k)];
  }
  if (stack)
    out.insert(out.begin() + k, Dim(static_cast<int64_t>(fields.size())));
  else
    out[static_cast<size_t>(k)] = total;
  return tensor_type(std::move(out), first.dtype);
}
Result<Type> concatenate_type(const TypeArgs& args) {
  return joined_type(args, attrs_of<ConcatenateAttrs>(args).axis, false);
}
Result<Type> stack_type(const TypeArgs& args) { return joined_type(args, attrs_of<StackAttrs>(args).axis, true); }

// stack and concatenate are the same copy: per outer row, the operands' parts one after the other.
Result<std::vector<Value>> eval_join(const EvalArgs& args, int64_t axis) {
  Value out = out_value(args);
  auto rank = static_cast<int64_t>(out.shape.size());
  const size_t k = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  const int64_t outer = product(out.shape, 0, k);
  bool bounds = false;
  for (const Value& v : args.inputs) bounds |= !v.bound.empty();
  if (bounds) out.bound.resize(out.f.size());
  const int64_t row = outer ? out.size() / outer : 0;
  int64_t at = 0;
  for (const Value& v : args.inputs) {
    const int64_t part = outer ? v.size() / outer : 0;
    auto copy = [&](auto& to, const auto& from) {
      for (int64_t o = 0; o < outer && !from.empty(); ++o)
        std::copy_n(from.begin() + o * part, part, to.begin() + o * row + at);
    };
    copy(out.f, v.f);
    copy(out.bound, v.bound);
    copy(out.i, v.i);
    copy(out.s, v.s);
    at += part;
  }
  return one(std::move(out));
}
Result<std::vector<Value>> eval_concatenate(const EvalArgs& args) {
  return eval_join(args, args.as<ConcatenateAttrs>().axis);
}
Result<std::vector<Value>> eval_stack(const EvalArgs& args) { return eval_join(args, args.as<StackAttrs>().axis); }

Result<Type> repeat_type(const TypeArgs& args) {
  const auto& a = attrs_of<RepeatAttrs>(args);
  const auto& t = args.tensor(0);
  if (a.repeats < 0 || a.repeats > kMaxDim) return type_error(format("repeats is {}", a.repeats));
  if (!a.axis) return tensor_type({element_count(t.shape) * Dim(a.repeats)}, t.dtype);
  Shape out = t.shape;
  Dim& d = out[static_cast<size_t>(TW_TRY(checked_axis(*a.axis, t.shape.size())))];
  d = d * Dim(a.repeats);
  return tensor_type(std::move(out), t.dtype);
}
Result<std::vector<Value>> eval_repeat(const EvalArgs& args) {
  const auto& a = args.as<RepeatAttrs>();
  const Value& in = args.inputs[0];
  std::vector<int64_t> shape = in.shape;
  if (!a.axis) shape = {in.size()};
  const auto k = static_cast<size_t>(TW_TRY(checked_axis(a.axis.value_or(0), shape.size())));
  std::vector<int64_t> strides = row_major_strides(shape);
  shape.insert(shape.begin() + static_cast<int64_t>(k) + 1, a.repeats);
  strides.insert(strides.begin() + static_cast<int64_t>(k) + 1, 0);
  return one(reshaped(strided_copy(in, shape, strides), out_shape(args)));
}

Result<Type> tile_type(const TypeArgs& args) {
  const auto& reps = attrs_of<TileAttrs>(args).reps;
  const auto& t = args.tensor(0);
  const size_t rank = std::max(reps.size(), t.shape.size());
  Shape out(rank, Dim(1));
  std::copy(t.shape.begin(), t.shape.end(), out.end() - static_cast<int64_t>(t.shape.size()));
  for (size_t i = 0; i < reps.size(); ++i) {
    if (reps[i] < 0 || reps[i] > kMaxDim) return type_error(format("reps has {}", reps[i]));
    Dim& d = out[rank - reps.size() + i];
    d = d * Dim(reps[i]);
  }
  return tensor_type(std::move(out), t.dtype);
}
Result<std::vector<Value>> eval_tile(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  std::vector<int64_t> out = out_shape(args), shape, strides, padded(out.size(), 1);
  std::copy(in.shape.begin(), in.shape.end(), padded.end() - static_cast<int64_t>(in.shape.size()));
  std::vector<int64_t> own = row_major_strides(padded);
  for (size_t i = 0; i < out.size(); ++i) {
    shape.push_back(padded[i] ? out[i] / padded[i] : 0);
    strides.push_back(0);
    shape.push_back(padded[i]);
    strides.push_back(own[i]);
  }
  return one(reshaped(strided_copy(in, shape, strides), out));
}

Result<Type> broadcast_to_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  const auto& shape = attrs_of<InitOpAttrs>(args).shape;
  for (int64_t d : shape)
    if (d < 0 || d > kMaxDim) return type_error(format("shape has {}", d));
  Shape want = to_shape(shape);
  auto fail = [&] { return type_error(format("{} does not broadcast to {}", shape_str(t.shape), shape_str(want))); };
  if (t.shape.size() > want.size()) return fail();
  for (size_t i = 0; i < t.shape.size(); ++i) {
    const Dim& d = t.shape[t.shape.size() - 1 - i];
    if (d != Dim(1) && dims_differ(d, want[want.size() - 1 - i])) return fail();
  }
  return tensor_type(std::move(want), t.dtype);
}
Result<std::vector<Value>> eval_broadcast_to(const EvalArgs& args) {
  std::vector<int64_t> shape = out_shape(args);
  return one(strided_copy(args.inputs[0], shape, broadcast_strides(args.inputs[0].shape, shape)));
}

OpDef transform_op(const char* name, const char* doc, OpPattern pattern, Result<Type> (*type)(const TypeArgs&),
                   Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, {{"data", "any shape and dtype"}}, pattern, type, eval, make);
}

}  // namespace

std::vector<OpDef> transform_ops() {
  constexpr OpPattern kInj = OpPattern::kInjective, kBcast = OpPattern::kBroadcast;
  std::vector<OpDef> ops = {
      transform_op("reshape", "The same elements in row-major order under another shape (codes 0, -1, -2, -3, -4).",
                   kInj, reshape_type, eval_same_data, make_default_attrs<ReshapeAttrs>)
          .with({.elements = Elements::kReshaped, .narrowing = Narrowing::kFollows}),
      transform_op("nn.batch_flatten", "(N, ...) -> (N, product of the rest).", kInj, flatten_type, eval_same_data,
                   nullptr)
          .with({.elements = Elements::kReshaped, .narrowing = Narrowing::kFollows}),
      transform_op("squeeze", "Axes of size 1 removed.", kInj, squeeze_type, eval_same_data,
                   make_default_attrs<SqueezeAttrs>)
          .with({.elements = Elements::kReshaped, .narrowing = Narrowing::kFollows}),
      transform_op("expand_dims", "num_newaxis axes of size 1 inserted at axis.", kBcast, expand_dims_type,
                   eval_same_data, make_default_attrs<ExpandDimsAttrs>)
          .with({.elements = Elements::kReshaped, .narrowing = Narrowing::kFollows}),
      transform_op("transpose", "Axes permuted; out axis i is data axis axes[i].", kInj, transpose_type, eval_transpose,
                   make_default_attrs<TransposeAttrs>)
          .with({.elements = Elements::kSelected, .narrowing = Narrowing::kFollows}),
      transform_op("concatenate", "The fields of a tuple joined along an axis.", kInj, concatenate_type,
                   eval_concatenate, make_default_attrs<ConcatenateAttrs>)
          .with({.elements = Elements::kMoved, .narrowing = Narrowing::kFollows}),
      transform_op("stack", "The fields of a tuple joined along a new axis.", kInj, stack_type, eval_stack,
                   make_default_attrs<StackAttrs>)
          .with({.elements = Elements::kMoved, .narrowing = Narrowing::kFollows}),
      transform_op("repeat", "Every element `repeats` times along an axis.", kBcast, repeat_type, eval_repeat,
                   make_default_attrs<RepeatAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
      transform_op("tile", "The whole tensor repeated reps[i] times along each axis.", kBcast, tile_type, eval_tile,
                   make_default_attrs<TileAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
      transform_op("broadcast_to", "Axes of size 1 repeated to a shape (numpy rules).", kBcast, broadcast_to_type,
                   eval_broadcast_to, make_default_attrs<InitOpAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
  };
  for (OpDef& d : ops) {
    std::string_view name = d.name;
    if (name == "concatenate" || name == "stack") {
      d.num_inputs = -1;
      d.args = {{"data", "a tuple of tensors of one dtype"}};
    }
  }
  return ops;
}

}  // namespace tilewright::relay
