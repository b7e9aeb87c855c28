// SPDX-License-Identifier: Apache-2.0
// Operators that take a dtype or sizes from another tensor. Sizes that are unknown are read at run time (shape_of and
// dyn.*).
#include <algorithm>

#include "relay/ops/composition.h"
#include "relay/ops/tensor/attrs_indexing.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

bool known(const TypeArgs& args, size_t i) { return static_shape(args.tensor(i).shape).has_value(); }
Expr sizes_of(Composition* c, const Expr& x) {
  return c->call<ShapeOfAttrs>("shape_of", {x}, [](auto& a) { a.dtype = kInt64; });
}

Result<Expr> expand_cast_like(const TypeArgs& args) {
  Composition c(args);
  return c.result(c.cast(c[0], args.tensor(1).dtype));
}
Result<Type> cast_like_type(const TypeArgs& args) { return tensor_type(args.tensor(0).shape, args.tensor(1).dtype); }

Result<Expr> expand_broadcast_to_like(const TypeArgs& args) {
  Composition c(args);
  if (!known(args, 1)) return c.result(c.call("dyn.broadcast_to", {c[0], sizes_of(&c, c[1])}));
  return c.result(c.broadcast(c[0], TW_TRY(known_sizes(args, 1))));
}
Result<Type> broadcast_to_like_type(const TypeArgs& args) {
  if (known(args, 0) && known(args, 1)) return TW_TRY(expand_broadcast_to_like(args))->type;
  if (args.tensor(0).shape.size() > args.tensor(1).shape.size())
    return type_error(format("{} has more axes than {}", type_str(args.types[0]), type_str(args.types[1])));
  return tensor_type(args.tensor(1).shape, args.tensor(0).dtype);
}

// Normalises begin and end of a range of axes, which may count from either end.
Status axis_range(int64_t* begin, int64_t* end, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (*begin < 0) *begin += n;
  if (*end < 0) *end += n;
  if (*begin < 0 || *begin > *end || *end > n)
    return type_error(format("axes {} to {} of a tensor of {} axes", *begin, *end, rank));
  return Ok{};
}
Result<Shape> reshape_like_shape(const TypeArgs& args) {
  const auto& a = attrs_of<ReshapeLikeAttrs>(args);
  const Shape &own = args.tensor(0).shape, &other = args.tensor(1).shape;
  int64_t from = a.lhs_begin, to = a.lhs_end.value_or(static_cast<int64_t>(own.size()));
  int64_t first = a.rhs_begin, last = a.rhs_end.value_or(static_cast<int64_t>(other.size()));
  TW_TRY_STATUS(axis_range(&from, &to, own.size()));
  TW_TRY_STATUS(axis_range(&first, &last, other.size()));
  Shape out(own.begin(), own.begin() + from);
  out.insert(out.end(), other.begin() + first, other.begin() + last);
  out.insert(out.end(), own.begin() + to, own.end());
  return out;
}
Result<Expr> expand_reshape_like(const TypeArgs& args) {
  Composition c(args);
  Shape shape = TW_TRY(reshape_like_shape(args));
  if (auto sizes = static_shape(shape)) return c.result(c.reshape(c[0], *sizes));
  const auto& a = attrs_of<ReshapeLikeAttrs>(args);
  if (a.lhs_begin == 0 && !a.lhs_end && a.rhs_begin == 0 && !a.rhs_end)
    return c.result(c.call("dyn.reshape", {c[0], sizes_of(&c, c[1])}));
  auto missing = known_sizes(args, known(args, 0) ? 1 : 0);
  return std::move(missing).error();
}
Result<Type> reshape_like_type(const TypeArgs& args) {
  Shape shape = TW_TRY(reshape_like_shape(args));
  if (known(args, 0) && static_shape(shape)) return TW_TRY(expand_reshape_like(args))->type;
  return tensor_type(std::move(shape), args.tensor(0).dtype);
}

// The axes that slice_like cuts, non-negative.
Result<Ints> cut_axes(const TypeArgs& args) {
  const auto& axes = attrs_of<SliceLikeAttrs>(args).axes;
  const size_t own = args.tensor(0).shape.size(), other = args.tensor(1).shape.size();
  Ints out;
  if (axes && !axes->empty()) {
    out = TW_TRY(checked_axes(*axes, own));
  } else {
    for (size_t i = 0; i < other; ++i) out.push_back(static_cast<int64_t>(i));
  }
  if (!out.empty() && (out.back() >= static_cast<int64_t>(other) || out.back() >= static_cast<int64_t>(own)))
    return type_error(
        format("axis {} is not in both {} and {}", out.back(), type_str(args.types[0]), type_str(args.types[1])));
  return out;
}
Result<Type> slice_like_type(const TypeArgs& args) {
  const Shape& other = args.tensor(1).shape;
  Shape out = args.tensor(0).shape;
  for (int64_t axis : TW_TRY(cut_axes(args))) {
    const auto i = static_cast<size_t>(axis);
    if (out[i].is_const() && other[i].is_const() && other[i].value() > out[i].value())
      return type_error(
          format("axis {} of {} is shorter than that of {}", axis, type_str(args.types[0]), type_str(args.types[1])));
    out[i] = other[i];
  }
  return tensor_type(std::move(out), args.tensor(0).dtype);
}
Result<Expr> expand_slice_like(const TypeArgs& args) {
  Composition c(args);
  const Ints axes = TW_TRY(cut_axes(args));
  const Shape& other = args.tensor(1).shape;
  const bool cuts_known =
      std::all_of(axes.begin(), axes.end(), [&](int64_t i) { return other[static_cast<size_t>(i)].is_const(); });
  if (axes.empty()) return c.result(c[0]);
  if (cuts_known) {
    return c.result(c.call<StridedSliceAttrs>("strided_slice", {c[0]}, [&](auto& a) {
      for (int64_t i : axes) a.end.push_back(other[static_cast<size_t>(i)].value());
      a.begin.assign(axes.size(), 0);
      a.strides.assign(axes.size(), 1);
      a.axes = axes;
    }));
  }
  const auto rank = static_cast<int64_t>(args.tensor(0).shape.size());
  Expr own_sizes = sizes_of(&c, c[0]), other_sizes = sizes_of(&c, c[1]);
  std::vector<Expr> ends;
  for (int64_t i = 0; i < rank; ++i)
    ends.push_back(
        c.slice(std::find(axes.begin(), axes.end(), i) != axes.end() ? other_sizes : own_sizes, 0, i, i + 1));
  const Ints zeros(static_cast<size_t>(rank), 0), ones(static_cast<size_t>(rank), 1);
  return c.result(c.call("dyn.strided_slice", {c[0], c.vector(zeros), c.concatenate(ends, 0), c.vector(ones)}));
}

// Sums over the axes that are broadcast from `wanted` to the operand's sizes.
Result<Expr> collapsed(const TypeArgs& args, const Ints& wanted) {
  Composition c(args);
  const Ints own = TW_TRY(known_sizes(args, 0));
  if (wanted.size() > own.size())
    return type_error(format("{} has fewer axes than {}", type_str(args.types[0]), shape_str(wanted)));
  const size_t extra = own.size() - wanted.size();
  Ints axes;
  for (size_t i = 0; i < own.size(); ++i) {
    const int64_t want = i < extra ? 1 : wanted[i - extra];
    if (want == own[i] && i >= extra) continue;
    if (want != 1) return type_error(format("{} does not collapse to {}", type_str(args.types[0]), shape_str(wanted)));
    axes.push_back(static_cast<int64_t>(i));
  }
  return c.result(c.reshape(c.sum(c[0], axes), wanted));
}
Result<Expr> expand_collapse_sum_like(const TypeArgs& args) { return collapsed(args, TW_TRY(known_sizes(args, 1))); }
Result<Type> collapse_sum_like_type(const TypeArgs& args) {
  if (known(args, 0) && known(args, 1)) return TW_TRY(expand_collapse_sum_like(args))->type;
  return tensor_type(args.tensor(1).shape, args.tensor(0).dtype);
}
Result<Expr> expand_collapse_sum_to(const TypeArgs& args) {
  const auto& shape = attrs_of<InitOpAttrs>(args).shape;
  return collapsed(args, constant_operand(args, 1) || shape.empty() ? TW_TRY(known_values(args, 1)) : shape);
}

}  // namespace

std::vector<OpDef> composed_like_ops() {
  constexpr OpPattern kInj = OpPattern::kInjective;
  return {
      define_composed("cast_like", "data in another tensor's dtype.",
                      {{"data", "any dtype"}, {"dtype_like", "only its dtype counts"}}, OpPattern::kElemWise,
                      expand_cast_like, nullptr, cast_like_type),
      define_composed("broadcast_to_like", "Axes of size 1 repeated to another tensor's sizes.",
                      {{"data", "any dtype"}, {"target_type", "only its sizes count"}}, OpPattern::kBroadcast,
                      expand_broadcast_to_like, nullptr, broadcast_to_like_type),
      define_composed("reshape_like", "The same elements under another tensor's sizes, or under those of some axes.",
                      {{"data", "any dtype"}, {"shape_like", "only its sizes count"}}, kInj, expand_reshape_like,
                      make_default_attrs<ReshapeLikeAttrs>, reshape_like_type)
          .with({.elements = Elements::kReshaped}),
      define_composed("slice_like", "The leading part of data that is as large as another tensor along some axes.",
                      {{"data", "any dtype"}, {"shape_like", "only its sizes count"}}, kInj, expand_slice_like,
                      make_default_attrs<SliceLikeAttrs>, slice_like_type),
      define_composed("collapse_sum_like",
                      "Sums over the axes that broadcasting another tensor to data's sizes would repeat.",
                      {{"data", "numbers"}, {"collapse_type", "only its sizes count"}}, OpPattern::kCommReduce,
                      expand_collapse_sum_like, nullptr, collapse_sum_like_type),
      define_composed("collapse_sum_to", "Sums over the axes that broadcasting `shape` to data's sizes would repeat.",
                      {{"data", "numbers"}, {"shape", "constant integers, or the attribute"}}, OpPattern::kCommReduce,
                      expand_collapse_sum_to, make_default_attrs<InitOpAttrs>),
  };
}

}  // namespace tilewright::relay
