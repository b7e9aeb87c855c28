// SPDX-License-Identifier: Apache-2.0
// Rules of SimplifyExpr about operators that move data.
#include <algorithm>
#include <numeric>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/passes/pipeline/simplify_expr.h"

namespace tilewright::relay {
namespace {

bool is_reshape_like(const Expr& e) { return called_op(e) && called_op(e)->facts.elements == Elements::kReshaped; }

Expr identity(const Expr& e) { return same_tensor_type(arg(e, 0), e) ? arg(e, 0) : Expr(); }

// reshape(reshape(x)): one reshape, or none. The order of elements does not change.
Expr merge_reshapes(const Expr& e) {
  if (same_tensor_type(arg(e, 0), e)) return arg(e, 0);
  if (!is_reshape_like(arg(e, 0))) return {};
  Expr source = arg(e, 0);
  while (is_reshape_like(source)) source = arg(source, 0);
  if (same_tensor_type(source, e)) return source;
  auto shape = static_shape(tensor_of(e).shape);
  return shape ? reshape_to(source, *shape) : Expr();
}

std::vector<int64_t> axes_of(const Expr& e) {
  size_t rank = tensor_of(e).shape.size();
  auto axes = attrs_of<TransposeAttrs>(e).axes;
  if (!axes) {
    axes.emplace(rank);
    std::iota(axes->rbegin(), axes->rend(), 0);
  }
  for (int64_t& axis : *axes) axis = positive_axis(axis, rank);
  return *axes;
}

Expr merge_transposes(const Expr& e) {
  std::vector<int64_t> axes = axes_of(e);
  if (std::is_sorted(axes.begin(), axes.end())) return arg(e, 0);
  const Expr& inner = arg(e, 0);
  if (is_call_to(inner, "transpose")) {
    std::vector<int64_t> first = axes_of(inner), both;
    for (int64_t axis : axes) both.push_back(first[static_cast<size_t>(axis)]);
    return transposed(arg(inner, 0), both, e->span);
  }
  // A transpose that only moves axes of size 1 keeps the order of elements: a reshape.
  const auto& shape = tensor_of(inner).shape;
  int64_t last = -1;
  for (int64_t axis : axes) {
    if (shape[static_cast<size_t>(axis)] == Dim(1)) continue;
    if (axis < last) return {};
    last = axis;
  }
  auto out = static_shape(tensor_of(e).shape);
  return out ? reshape_to(inner, *out) : Expr();
}

// reshape(product) + y: adds before the reshape, so that the sum joins the product's epilogue. (Exporters give
// attention's projection another rank than the residual.)
Expr add_before_reshape(const Expr& e) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Expr &reshaped = arg(e, i), &other = arg(e, 1 - i);
    if (!is_reshape_like(reshaped) || !same_tensor_type(reshaped, e) || !same_tensor_type(other, e)) continue;
    auto product_of = [](Expr x) {
      while (is_reshape_like(x) || (is_call_to(x, "add") && constant_data(arg(x, 1)))) x = arg(x, 0);
      return x;
    };
    const Expr &tip = arg(reshaped, 0), product = product_of(tip);
    if (is_reshape_like(tip) || is_call_to(product_of(other), "nn.dense"))
      continue;  // two products would swap for ever
    auto shape = static_shape(tensor_of(tip).shape), whole = static_shape(tensor_of(e).shape);
    if (!is_call_to(product, "nn.dense") || !shape || !whole || shape->empty() || whole->empty() ||
        shape->back() != whole->back())
      continue;
    auto sum = try_call("add", {tip, reshape_to(other, *shape)}, {}, e->span);
    return sum.ok() && same_tensor_type(*sum, tip) ? reshape_to(*sum, *whole) : Expr();
  }
  return {};
}

// Whether `to` represents every value of `from` exactly.
bool is_lossless(DataType from, DataType to) {
  if (from == to) return true;
  if (from.is_bool()) return to.is_integral() || to.is_float();
  if (from.is_int())
    return (to.is_int() && to.bits >= from.bits) || (to == kFloat64 && from.bits <= 32) ||
           (to == kFloat32 && from.bits <= 16);
  if (from.is_uint())
    return (to.is_uint() && to.bits >= from.bits) || (to.is_int() && to.bits > from.bits) ||
           (to == kFloat64 && from.bits <= 32) || (to == kFloat32 && from.bits <= 16);
  if (from == kFloat16 || from == kBFloat16) return to == kFloat32 || to == kFloat64;
  return from == kFloat32 && to == kFloat64;
}

Expr merge_casts(const Expr& e) {
  if (same_tensor_type(arg(e, 0), e)) return arg(e, 0);
  const Expr& inner = arg(e, 0);
  if (!is_call_to(inner, "cast") || !is_lossless(tensor_of(arg(inner, 0)).dtype, tensor_of(inner).dtype)) return {};
  if (same_tensor_type(arg(inner, 0), e)) return arg(inner, 0);
  return with_children(e, {arg(inner, 0)});
}

Expr whole_slice(const Expr& e) {
  const auto& attrs = attrs_of<StridedSliceAttrs>(e);
  bool forward = std::all_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t s) { return s == 1; });
  return forward && as<CallNode>(e)->args.size() == 1 ? identity(e) : Expr();
}

// The slice [begin, end) of another tensor along one axis.
struct AxisSlice {
  Expr source;
  int64_t begin = 0, end = 0;
};
std::optional<AxisSlice> slice_along(const Expr& e, size_t axis) {
  const Expr& from = as<TupleGetItemNode>(e) ? as<TupleGetItemNode>(e)->tuple : e;
  bool split = is_call_to(from, "split") && !(from == e);
  if (!split && !is_call_to(e, "strided_slice")) return std::nullopt;
  const Expr& source = arg(from, 0);
  auto in = static_shape(tensor_of(source).shape), out = static_shape(tensor_of(e).shape);
  if (!in || !out) return std::nullopt;
  for (size_t d = 0; d < in->size(); ++d)
    if (d != axis && (*in)[d] != (*out)[d]) return std::nullopt;
  const int64_t extent = (*out)[axis];
  if (split) {
    int64_t begin = 0;
    if (positive_axis(attrs_of<SplitAttrs>(from).axis, in->size()) != static_cast<int64_t>(axis)) return std::nullopt;
    for (int64_t i = 0; i < as<TupleGetItemNode>(e)->index; ++i)
      begin += as_tensor(as_tuple(from->type)->fields[static_cast<size_t>(i)])->shape[axis].value();
    return AxisSlice{source, begin, begin + extent};
  }
  const auto& attrs = attrs_of<StridedSliceAttrs>(e);
  if (as<CallNode>(e)->args.size() != 1 || extent == (*in)[axis]) return std::nullopt;
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    int64_t at = positive_axis(attrs.axes ? (*attrs.axes)[i] : static_cast<int64_t>(i), in->size());
    if (!attrs.strides.empty() && attrs.strides[std::min(i, attrs.strides.size() - 1)] != 1) return std::nullopt;
    if (at != static_cast<int64_t>(axis)) continue;
    int64_t begin = attrs.begin[i] < 0 ? attrs.begin[i] + (*in)[axis] : attrs.begin[i];
    begin = std::clamp<int64_t>(begin, 0, (*in)[axis]);
    return AxisSlice{source, begin, begin + extent};
  }
  return std::nullopt;
}

// Concatenation of adjacent slices of one tensor: a larger slice, or the tensor itself.
Expr join_cuts(const Expr& e, const TupleNode& tuple) {
  const auto axis = static_cast<size_t>(positive_axis(attrs_of<ConcatenateAttrs>(e).axis, tensor_of(e).shape.size()));
  std::vector<Expr> fields;
  std::optional<AxisSlice> open;  // the slice that the last field is, if it is one
  bool joined = false;
  for (const Expr& field : tuple.fields) {
    auto slice = slice_along(field, axis);
    if (!slice || !open || !(open->source == slice->source) || open->end != slice->begin) {
      fields.push_back(field);
      open = slice;
      continue;
    }
    open->end = slice->end;
    joined = true;
    if (open->begin == 0 && tensor_of(open->source).shape[axis] == Dim(open->end))
      fields.back() = open->source;
    else
      fields.back() = sliced(open->source, static_cast<int64_t>(axis), open->begin, open->end, e->span);
  }
  if (!joined) return {};
  return fields.size() == 1 ? fields[0] : with_children(e, {make_tuple(std::move(fields), tuple.span)});
}

Expr single_concatenate(const Expr& e) {
  const auto* tuple = as<TupleNode>(arg(e, 0));
  if (!tuple) return {};
  if (tuple->fields.size() == 1) return tuple->fields[0];
  if (Expr joined = join_cuts(e, *tuple)) return joined;
  // Flattens nested concatenations along the same axis.
  int64_t axis = attrs_of<ConcatenateAttrs>(e).axis;
  size_t rank = tensor_of(e).shape.size();
  std::vector<Expr> fields;
  bool nested = false;
  for (const Expr& field : tuple->fields) {
    const auto* inner = is_call_to(field, "concatenate") ? as<TupleNode>(arg(field, 0)) : nullptr;
    bool same = inner && positive_axis(attrs_of<ConcatenateAttrs>(field).axis, rank) == positive_axis(axis, rank);
    nested |= same;
    if (same)
      fields.insert(fields.end(), inner->fields.begin(), inner->fields.end());
    else
      fields.push_back(field);
  }
  // A nested concatenation with other users would be copied twice; that pays off only for few fields.
  constexpr size_t kMostFields = 8;
  if (!nested || fields.size() > kMostFields) return {};
  return with_children(e, {make_tuple(std::move(fields), tuple->span)});
}

// A split into one part.
Expr single_split(const Expr& e) {
  const auto* type = as_tuple(e->type);
  if (!type || type->fields.size() != 1 || !type_equal(type->fields[0], arg(e, 0)->type)) return {};
  return make_tuple({arg(e, 0)}, e->span);
}

Expr zero_pad(const Expr& e) {
  for (const auto& width : attrs_of<PadAttrs>(e).pad_width)
    for (int64_t w : width)
      if (w != 0) return {};
  return identity(e);
}

Expr same_layout(const Expr& e) {
  const auto& attrs = attrs_of<LayoutTransformAttrs>(e);
  if (attrs.src_layout == attrs.dst_layout) return identity(e);
  const Expr& inner = arg(e, 0);
  if (!is_call_to(inner, "layout_transform") || !same_tensor_type(arg(inner, 0), e)) return {};
  const auto& before = attrs_of<LayoutTransformAttrs>(inner);
  return before.src_layout == attrs.dst_layout && before.dst_layout == attrs.src_layout ? arg(inner, 0) : Expr();
}

// Whether a layout has no blocks.
bool is_plain(const std::string& layout) {
  return std::all_of(layout.begin(), layout.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}
// Transforms x between layouts; between plain ones by a transpose.
Expr moved(const Expr& x, const std::string& from, const std::string& to, const Span& span) {
  if (from == to) return x;
  if (is_plain(from) && is_plain(to) && from.size() == to.size()) {
    std::vector<int64_t> axes;
    for (char letter : to) {
      if (from.find(letter) == std::string::npos) return {};
      axes.push_back(static_cast<int64_t>(from.find(letter)));
    }
    return transposed(x, std::move(axes), span);
  }
  auto made = try_call("layout_transform", {x}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                         a.src_layout = from;
                         a.dst_layout = to;
                       }),
                       span);
  return made.ok() ? *made : Expr();
}
// Merges a transpose and a layout_transform into one layout_transform.
Expr transpose_of_layout(const Expr& e) {
  const Expr& inner = arg(e, 0);
  if (!is_call_to(inner, "layout_transform")) return {};
  const auto& a = attrs_of<LayoutTransformAttrs>(inner);
  const std::vector<int64_t> axes = axes_of(e);
  if (!is_plain(a.dst_layout) || a.dst_layout.size() != axes.size()) return {};
  std::string to;
  for (int64_t axis : axes) to += a.dst_layout[static_cast<size_t>(axis)];
  Expr out = moved(arg(inner, 0), a.src_layout, to, e->span);
  return out && same_tensor_type(out, e) ? out : Expr();
}
Expr layout_of_transpose(const Expr& e) {
  const auto& a = attrs_of<LayoutTransformAttrs>(e);
  const Expr& inner = arg(e, 0);
  if (!is_plain(a.src_layout)) return {};
  std::string from;
  if (is_call_to(inner, "transpose")) {
    const std::vector<int64_t> axes = axes_of(inner);
    if (axes.size() != a.src_layout.size()) return {};
    from.resize(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(axes[i])] = a.src_layout[i];
  } else if (is_call_to(inner, "layout_transform") &&
             attrs_of<LayoutTransformAttrs>(inner).dst_layout == a.src_layout) {
    from = attrs_of<LayoutTransformAttrs>(inner).src_layout;
  } else {
    return {};
  }
  Expr out = moved(arg(inner, 0), from, a.dst_layout, e->span);
  return out && same_tensor_type(out, e) ? out : Expr();
}

// full of a known shape, from other operators that fill a tensor with one value.
Expr filled(const Expr& e) {
  const std::string_view name = called_op(e)->name;
  auto shape = static_shape(tensor_of(e).shape);
  if (!shape) return {};
  const AttrsRef attrs = make_attrs<InitOpAttrs>([&](auto& a) {
    a.shape = *shape;
    a.dtype = tensor_of(e).dtype.str();
  });
  if (name == "full_like") return call("full", {cast(arg(e, 1), tensor_of(e).dtype)}, attrs, e->span);
  return call(name == "zeros_like" ? "zeros" : "ones", {}, attrs, e->span);
}

Expr constant_where(const Expr& e) {
  auto condition = uniform_value(arg(e, 0));
  if (!condition) return {};
  const Expr& chosen = arg(e, *condition != 0 ? 1 : 2);
  return same_tensor_type(chosen, e) ? chosen : Expr();
}

// Operators that take only sizes or a dtype from another tensor, once those are known.
Expr concrete(const Expr& e) {
  Expr out = expanded(e);
  return is_call_to(out, "dyn.reshape") || is_call_to(out, "dyn.broadcast_to") || is_call_to(out, "dyn.strided_slice")
             ? e
             : out;
}

Expr summed_to(const Expr& e) {
  auto shape = static_shape(tensor_of(e).shape);
  if (!shape || !static_shape(tensor_of(arg(e, 0)).shape)) return {};
  const std::vector<int32_t> sizes(shape->begin(), shape->end());
  Tensor data = Tensor::from<int32_t>(kInt32, {static_cast<int64_t>(sizes.size())}, sizes);
  return call("collapse_sum_to", {arg(e, 0), make_constant(std::move(data), e->span)},
              make_attrs<InitOpAttrs>([&](auto& a) { a.shape = *shape; }), e->span);
}

constexpr SimplifyRule kShapeRules[] = {
    {"broadcast_to_like", concrete},
    {"cast_like", concrete},
    {"collapse_sum_like", summed_to},
    {"reshape_like", concrete},
    {"slice_like", concrete},
    {"add", add_before_reshape},
    {"reshape", merge_reshapes},
    {"squeeze", merge_reshapes},
    {"expand_dims", merge_reshapes},
    {"nn.batch_flatten", merge_reshapes},
    {"contrib_reverse_reshape", merge_reshapes},
    {"transpose", merge_transposes},
    {"transpose", transpose_of_layout},
    {"zeros_like", filled},
    {"ones_like", filled},
    {"full_like", filled},
    {"cast", merge_casts},
    {"strided_slice", whole_slice},
    {"concatenate", single_concatenate},
    {"split", single_split},
    {"copy", identity},
    {"broadcast_to", identity},
    {"tile", identity},
    {"nn.pad", zero_pad},
    {"layout_transform", same_layout},
    {"layout_transform", layout_of_transpose},
    {"where", constant_where},
};

}  // namespace

std::span<const SimplifyRule> shape_rules() { return kShapeRules; }

}  // namespace tilewright::relay
