// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/simplify_inference.h"

#include <numeric>

#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

Expr scalar_like(double value, const Expr& e) { return make_scalar(value, tensor_of(e).dtype); }

// Reshapes a vector to broadcast along `axis` of a tensor of rank `rank`.
Expr along_axis(const Expr& vector, int64_t axis, size_t rank, const Span& span) {
  int64_t trailing = static_cast<int64_t>(rank) - 1 - axis;
  if (trailing == 0) return vector;
  return call("expand_dims", {vector}, make_attrs<ExpandDimsAttrs>([&](auto& a) {
                a.axis = 1;
                a.num_newaxis = trailing;
              }),
              span);
}

Expr expand_batch_norm(const Expr& e) {
  const auto& attrs = attrs_of<BatchNormAttrs>(e);
  const Expr &data = arg(e, 0), &gamma = arg(e, 1), &beta = arg(e, 2), &mean = arg(e, 3), &variance = arg(e, 4);
  const Span& span = e->span;
  size_t rank = tensor_of(data).shape.size();
  int64_t axis = positive_axis(attrs.axis, rank);
  Expr deviation = call("sqrt", {call("add", {variance, scalar_like(attrs.epsilon, variance)}, {}, span)}, {}, span);
  Expr scale = call("divide", {scalar_like(1, variance), deviation}, {}, span);
  if (attrs.scale) scale = call("multiply", {scale, gamma}, {}, span);
  Expr shift = call("multiply", {call("negative", {mean}, {}, span), scale}, {}, span);
  if (attrs.center) shift = call("add", {shift, beta}, {}, span);
  DataType dtype = tensor_of(data).dtype;
  auto converted = [&](const Expr& v) {
    if (tensor_of(v).dtype == dtype) return v;
    return call("cast", {v}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), span);
  };
  Expr scaled = call("multiply", {data, along_axis(converted(scale), axis, rank, span)}, {}, span);
  return call("add", {scaled, along_axis(converted(shift), axis, rank, span)}, {}, span);
}

AttrsRef reduce_over(std::vector<int64_t> axes) {
  return make_attrs<ReduceAttrs>([&](auto& a) {
    a.axis = std::move(axes);
    a.keepdims = true;
  });
}

// (x - mean) / sqrt(variance + epsilon) over `axes`.
Expr normalised(const Expr& x, const std::vector<int64_t>& axes, double epsilon, const Span& span) {
  Expr mean = call("mean", {x}, reduce_over(axes), span);
  Expr centred = call("subtract", {x, mean}, {}, span);
  Expr variance = call("mean", {call("multiply", {centred, centred}, {}, span)}, reduce_over(axes), span);
  Expr inverse = call("rsqrt", {call("add", {variance, scalar_like(epsilon, x)}, {}, span)}, {}, span);
  return call("multiply", {centred, inverse}, {}, span);
}

template <class A>
Expr scaled_and_shifted(const Expr& e, Expr out, const A& attrs, int64_t axis, size_t rank) {
  if (attrs.scale) out = call("multiply", {out, along_axis(arg(e, 1), axis, rank, e->span)}, {}, e->span);
  if (attrs.center) out = call("add", {out, along_axis(arg(e, 2), axis, rank, e->span)}, {}, e->span);
  return out;
}

std::vector<int64_t> axes_from(int64_t first, size_t rank) {
  std::vector<int64_t> axes(rank - static_cast<size_t>(first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Expr expand_layer_norm(const Expr& e) {
  const auto& attrs = attrs_of<LayerNormAttrs>(e);
  size_t rank = tensor_of(arg(e, 0)).shape.size();
  int64_t axis = positive_axis(attrs.axis, rank);
  return scaled_and_shifted(e, normalised(arg(e, 0), {axis}, attrs.epsilon, e->span), attrs, axis, rank);
}

// x * scale + shift, where both have one element for a channel of a sample: what is as large as x is read for the mean,
// for the variance, and for the result, and nothing as large is kept in between.
Expr expand_instance_norm(const Expr& e) {
  const auto& attrs = attrs_of<InstanceNormAttrs>(e);
  const Expr& x = arg(e, 0);
  const Span& span = e->span;
  size_t rank = tensor_of(x).shape.size();
  int64_t axis = positive_axis(attrs.axis, rank);
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < static_cast<int64_t>(rank); ++i)
    if (i != axis) axes.push_back(i);
  if (tensor_of(x).dtype.bits <= 16)  // the product and the shift would be rounded before they nearly cancel
    return scaled_and_shifted(e, normalised(x, axes, attrs.epsilon, span), attrs, axis, rank);
  Expr mean = call("mean", {x}, reduce_over(axes), span);
  Expr centred = call("subtract", {x, mean}, {}, span);
  Expr variance = call("mean", {call("multiply", {centred, centred}, {}, span)}, reduce_over(axes), span);
  Expr scale = call("rsqrt", {call("add", {variance, scalar_like(attrs.epsilon, x)}, {}, span)}, {}, span);
  if (attrs.scale) scale = call("multiply", {scale, along_axis(arg(e, 1), axis, rank, span)}, {}, span);
  Expr shift = call("multiply", {mean, scale}, {}, span);
  shift = attrs.center ? call("subtract", {along_axis(arg(e, 2), axis, rank, span), shift}, {}, span)
                       : call("negative", {shift}, {}, span);
  return call("add", {call("multiply", {x, scale}, {}, span), shift}, {}, span);
}

// Requires known shapes: splitting into groups needs a reshape and back.
Expr expand_group_norm(const Expr& e) {
  const auto& attrs = attrs_of<GroupNormAttrs>(e);
  auto shape = static_shape(tensor_of(arg(e, 0)).shape);
  if (!shape) return e;
  size_t rank = shape->size();
  int64_t axis = positive_axis(attrs.axis, rank);
  int64_t channels = (*shape)[static_cast<size_t>(axis)];
  if (attrs.num_groups <= 0 || channels % attrs.num_groups != 0) return e;
  std::vector<int64_t> grouped(shape->begin(), shape->begin() + axis);
  grouped.push_back(attrs.num_groups);
  grouped.push_back(channels / attrs.num_groups);
  grouped.insert(grouped.end(), shape->begin() + axis + 1, shape->end());
  std::vector<int64_t> axes;
  for (int64_t i = 1; i < static_cast<int64_t>(grouped.size()); ++i)
    if (i != axis) axes.push_back(i);
  Expr out = normalised(reshape_to(arg(e, 0), grouped), axes, attrs.epsilon, e->span);
  return scaled_and_shifted(e, reshape_to(out, *shape), attrs, axis, rank);
}

Expr expand_l2_normalize(const Expr& e) {
  const auto& attrs = attrs_of<L2NormalizeAttrs>(e);
  const Expr& x = arg(e, 0);
  std::vector<int64_t> axes = attrs.axis.empty() ? axes_from(0, tensor_of(x).shape.size()) : attrs.axis;
  Expr squares = call("sum", {call("multiply", {x, x}, {}, e->span)}, reduce_over(axes), e->span);
  Expr floor = call("maximum", {squares, scalar_like(attrs.eps, x)}, {}, e->span);
  return call("multiply", {x, call("rsqrt", {floor}, {}, e->span)}, {}, e->span);
}

// The layer_norm kernel supports the innermost axis of float32 tensors.
bool has_kernel(const Expr& e) {
  const auto& type = tensor_of(arg(e, 0));
  size_t rank = type.shape.size();
  return type.dtype == kFloat32 &&
         positive_axis(attrs_of<LayerNormAttrs>(e).axis, rank) + 1 == static_cast<int64_t>(rank);
}

// That of instance_norm takes channels one by one, which then are near when they are read again. What follows a
// convolution lies in blocks of channels, which it would take apart.
bool has_kernel_for_channels(const Expr& e) {
  const auto& type = tensor_of(arg(e, 0));
  const size_t rank = type.shape.size();
  if (type.dtype != kFloat32 || rank < 3 || positive_axis(attrs_of<InstanceNormAttrs>(e).axis, rank) != 1) return false;
  const std::vector<Expr> before = post_order(arg(e, 0));
  return std::none_of(before.begin(), before.end(), [](const Expr& x) {
    const OpDef* op = called_op(x);
    return op && std::string_view(op->name).substr(0, 7) == "nn.conv";
  });
}

Expr simplify(const Expr& e, bool keep_kernels) {
  if (const auto* item = as<TupleGetItemNode>(e); item && item->index == 0) {
    if (is_call_to(item->tuple, "nn.batch_norm")) return expand_batch_norm(item->tuple);
    if (is_call_to(item->tuple, "nn.dropout")) return arg(item->tuple, 0);
  }
  const OpDef* op = called_op(e);
  if (!op) return e;
  std::string_view name = op->name;
  if (name == "nn.dropout" && as_tensor(e->type)) return arg(e, 0);
  if (!as<CallNode>(e)->args.empty() && !is_float_tensor(arg(e, 0))) return e;
  if (name == "nn.layer_norm") return keep_kernels && has_kernel(e) ? e : expand_layer_norm(e);
  if (name == "nn.instance_norm") return keep_kernels && has_kernel_for_channels(e) ? e : expand_instance_norm(e);
  if (name == "nn.group_norm") return expand_group_norm(e);
  if (name == "nn.l2_normalize") return expand_l2_normalize(e);
  return e;
}

Result<Module> run(const Module& module, bool keep_kernels) {
  return rewrite_module(module, [&](const Expr&, const Expr& e) { return simplify(e, keep_kernels); });
}

}  // namespace

Result<Module> simplify_inference(const Module& module, PassContext&) { return run(module, false); }
Result<Module> expand_normalization(const Module& module, PassContext&) { return run(module, true); }

}  // namespace tilewright::relay
