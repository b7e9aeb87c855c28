// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fold_explicit_padding.h"

#include <algorithm>
#include <limits>

#include "relay/ops/attrs.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// Expands the one, n or 2n padding values of an attribute to [begin..., end...] of the spatial axes.
std::vector<int64_t> both_sides(const std::vector<int64_t>& padding, size_t spatial) {
  std::vector<int64_t> out(2 * spatial, padding.empty() ? 0 : padding[0]);
  for (size_t i = 0; i < out.size(); ++i) {
    if (padding.size() == spatial) out[i] = padding[i % spatial];
    if (padding.size() == 2 * spatial) out[i] = padding[i];
  }
  return out;
}

// What a layer takes for the elements of its own padding.
bool pads_with_zeros(const Expr& pad) { return as<CallNode>(pad)->args.size() < 2 || is_uniform(arg(pad, 1), 0); }
bool pads_with_minimum(const Expr& pad) {
  const DataType dtype = tensor_of(pad).dtype;
  if (as<CallNode>(pad)->args.size() < 2 || dtype != kFloat32) return false;
  return is_uniform(arg(pad, 1), -std::numeric_limits<double>::infinity()) ||
         is_uniform(arg(pad, 1), std::numeric_limits<float>::lowest());
}

template <class A>
Expr fold(const Expr& e, const std::string& layout, bool (*fits)(const Expr&) = pads_with_zeros) {
  const Expr& pad = arg(e, 0);
  if (!is_call_to(pad, "nn.pad")) return e;
  const auto& widths = attrs_of<PadAttrs>(pad);
  const auto* pad_call = as<CallNode>(pad);
  if (widths.pad_mode != "constant" || !fits(pad) || widths.pad_width.size() != layout.size()) return e;
  A attrs = attrs_of<A>(e);
  size_t spatial = layout.size() - 2;
  std::vector<int64_t> padding = both_sides(attrs.padding, spatial);
  static constexpr std::string_view kSpatial = "DHW";
  size_t axis = 0;
  for (size_t i = 0; i < layout.size(); ++i) {
    const auto& width = widths.pad_width[i];
    if (width.size() != 2 || width[0] < 0 || width[1] < 0) return e;
    if (kSpatial.find(layout[i]) == std::string_view::npos) {
      if (width[0] != 0 || width[1] != 0) return e;
      continue;
    }
    if (axis >= spatial) return e;
    padding[axis] += width[0];
    padding[axis + spatial] += width[1];
    ++axis;
  }
  std::vector<Expr> args = as<CallNode>(e)->args;
  args[0] = pad_call->args[0];
  auto out = try_call(called_op(e)->name, args, make_attrs<A>([&](auto& made) {
                        made = attrs;
                        made.padding = padding;
                      }),
                      join_spans(pad->span, e->span));
  return out.ok() && type_equal((*out)->type, e->type) ? *out : e;
}

// Removes taps at either end of the kernel that read only padding at every output position: small maps behind many
// strides, or dilations wider than the map.
template <class A>
Expr trim(const Expr& e) {
  A attrs = attrs_of<A>(e);
  const Expr& weights = arg(e, 1);
  auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  const A standard;
  if (!constant_data(weights) || !in || !out || attrs.data_layout != standard.data_layout ||
      attrs.kernel_layout != standard.kernel_layout ||
      !(attrs.out_layout.empty() || attrs.out_layout == standard.data_layout))
    return e;
  const size_t spatial = in->size() - 2;
  std::vector<int64_t> kernel = constant_data(weights)->shape(), begin(kernel.size(), 0), end = kernel;
  attrs.padding = both_sides(attrs.padding, spatial);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t stride = attrs.strides[i], dilation = attrs.dilation[i], last = ((*out)[i + 2] - 1) * stride;
    int64_t &before = attrs.padding[i], &after = attrs.padding[i + spatial], &from = begin[i + 2], &to = end[i + 2];
    while (to - from > 1 && last - before < 0 && before >= dilation) ++from, before -= dilation;
    while (to - from > 1 && (to - from - 1) * dilation - before >= (*in)[i + 2]) --to;
    after = std::max<int64_t>(0, last + (to - from - 1) * dilation + 1 - before - (*in)[i + 2]);
  }
  if (end == kernel && std::all_of(begin.begin(), begin.end(), [](int64_t b) { return b == 0; })) return e;
  Expr kept = call("strided_slice", {weights}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                     a.begin = begin;
                     a.end = end;
                   }),
                   weights->span);
  attrs.kernel_size.emplace();
  for (size_t i = 2; i < kernel.size(); ++i) attrs.kernel_size->push_back(end[i] - begin[i]);
  auto trimmed = try_call(called_op(e)->name, {arg(e, 0), fold_expr(kept, int64_t{256} << 20)},
                          make_attrs<A>([&](auto& made) { made = attrs; }), e->span);
  return trimmed.ok() && type_equal((*trimmed)->type, e->type) ? *trimmed : e;
}

template <class A>
bool counts_only_own_padding(const Expr& e) {
  const auto& attrs = attrs_of<A>(e);
  if (attrs.count_include_pad) return true;
  for (int64_t p : attrs.padding)
    if (p != 0) return false;
  return true;
}

template <class A>
Expr fold_pool(const Expr& e) {
  const auto& attrs = attrs_of<A>(e);
  // The pad's zeros count in the mean and must keep doing so; a window past the end would count more.
  if (!counts_only_own_padding<A>(e) || attrs.ceil_mode) return e;
  Expr out = fold<A>(e, attrs.layout);
  if (out == e) return e;
  return call(called_op(out)->name, as<CallNode>(out)->args, make_attrs<A>([&](auto& made) {
                made = attrs_of<A>(out);
                made.count_include_pad = true;
              }),
              out->span);
}

}  // namespace

Result<Module> fold_explicit_padding(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    if (is_call_to(e, "nn.conv1d"))
      return trim<Conv1DAttrs>(fold<Conv1DAttrs>(e, attrs_of<Conv1DAttrs>(e).data_layout));
    if (is_call_to(e, "nn.conv2d"))
      return trim<Conv2DAttrs>(fold<Conv2DAttrs>(e, attrs_of<Conv2DAttrs>(e).data_layout));
    if (is_call_to(e, "nn.conv3d"))
      return trim<Conv3DAttrs>(fold<Conv3DAttrs>(e, attrs_of<Conv3DAttrs>(e).data_layout));
    if (is_call_to(e, "nn.avg_pool1d")) return fold_pool<AvgPool1DAttrs>(e);
    if (is_call_to(e, "nn.avg_pool2d")) return fold_pool<AvgPool2DAttrs>(e);
    if (is_call_to(e, "nn.avg_pool3d")) return fold_pool<AvgPool3DAttrs>(e);
    if (is_call_to(e, "nn.max_pool1d"))
      return fold<MaxPool1DAttrs>(e, attrs_of<MaxPool1DAttrs>(e).layout, pads_with_minimum);
    if (is_call_to(e, "nn.max_pool2d"))
      return fold<MaxPool2DAttrs>(e, attrs_of<MaxPool2DAttrs>(e).layout, pads_with_minimum);
    if (is_call_to(e, "nn.max_pool3d"))
      return fold<MaxPool3DAttrs>(e, attrs_of<MaxPool3DAttrs>(e).layout, pads_with_minimum);
    return e;
  });
}

}  // namespace tilewright::relay
