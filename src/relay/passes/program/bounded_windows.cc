// SPDX-License-Identifier: Apache-2.0
// Convolutions, pools and normalisation along free sizes: a window's elements beyond the size are padding, and the
// result's size follows from padding, window and stride.
#include <algorithm>
#include <limits>

#include "relay/ops/nn/attrs_nn.h"
#include "relay/passes/program/bounded_graph.h"

namespace tilewright::relay {

// The first operand's dimensions are batch, channels, then those with windows.
Result<Expr> BoundedGraph::windows(const Expr& e, std::vector<Expr> args, const std::vector<Window>& windows,
                                   double beyond) {
  const SizeTags tags = tags_of(args[0]);
  for (size_t i = 1; i < args.size(); ++i)
    for (const SizeTag& t : tags_of(args[i]))
      if (t.size >= 0) return refused(e, "its weights are as large as a free size");
  const AttrsRef &attrs = as<CallNode>(e)->attrs, &other = as<CallNode>(small_.at(e.get()))->attrs;
  if (tags.size() != windows.size() + 2 || tags[1].size >= 0 || attrs_str(attrs) != attrs_str(other))
    return refused(e, "its channels or its padding depend on a free size");
  SizeTags out(tags.size());
  out[0] = tags[0];
  for (size_t d = 2; d < tags.size(); ++d) {
    const SizeTag& t = tags[d];
    if (t.size < 0) continue;
    const Window& w = windows[d - 2];
    const auto size = static_cast<size_t>(t.size);
    const FreeSizeRange& range = sizes_[size].range;
    const int64_t add = w.before + w.after - w.extent + w.stride + (w.rounds_up ? w.stride - 1 : 0);
    if (t.outer != 1 || t.inner != 1) return refused(e, "its window moves over several sizes in one dimension");
    if (std::min(range.low, range.smaller) + add < w.stride)
      return refused(e, "its window is longer than the smallest size");
    if (w.after > 0 || w.rounds_up)
      args[0] = beyond == 0 ? zeroed(args[0], d) : masked(args[0], d, full_constant(beyond, tensor_of(args[0]).dtype));
    out[d].size = static_cast<int>(derived(size, add, w.stride));
  }
  return same_call(e, std::move(args), std::move(out));
}

template <class Attrs>
Result<Expr> BoundedGraph::convolution(const Expr& e, std::vector<Expr> args, const Attrs& attrs) {
  const size_t spatial = attrs.strides.size();
  const std::vector<int64_t> kernel = dims(args[1]);
  if (!attrs.data_layout.starts_with("NC") || !attrs.kernel_layout.starts_with("OI") || kernel.size() != spatial + 2 ||
      attrs.padding.size() != 2 * spatial)
    return refused(e, "its layout is not that of ONNX");
  std::vector<Window> all;
  for (size_t d = 0; d < spatial; ++d)
    all.push_back(
        {(kernel[d + 2] - 1) * attrs.dilation[d] + 1, attrs.strides[d], attrs.padding[d], attrs.padding[spatial + d]});
  return windows(e, std::move(args), all, 0);
}

template <class Attrs>
Result<Expr> BoundedGraph::pool(const Expr& e, std::vector<Expr> args, const Attrs& attrs, bool average,
                                bool counts_padding) {
  const size_t spatial = attrs.strides.size();
  const SizeTags tags = tags_of(args[0]);
  if (!attrs.layout.starts_with("NC") || attrs.padding.size() != 2 * spatial || tags.size() != spatial + 2)
    return refused(e, "its layout is not that of ONNX");
  std::vector<Window> all;
  for (size_t d = 0; d < spatial; ++d) {
    all.push_back({(attrs.pool_size[d] - 1) * attrs.dilation[d] + 1, attrs.strides[d], attrs.padding[d],
                   attrs.padding[spatial + d], attrs.ceil_mode});
    const bool fewer = attrs.ceil_mode || (attrs.padding[spatial + d] > 0 && !counts_padding);
    if (average && fewer && tags[d + 2].size >= 0) return refused(e, "its windows at the end have fewer elements");
  }
  return windows(e, std::move(args), all, average ? 0 : -std::numeric_limits<double>::infinity());
}

Result<Expr> BoundedGraph::window_rule(const Expr& e, std::vector<Expr> args) {
  const AttrsRef& attrs = as<CallNode>(e)->attrs;
  if (!tensor_of(args[0]).dtype.is_float()) return refused(e, "its values are integers");
  if (const auto* a = attrs_as<Conv1DAttrs>(attrs)) return convolution(e, std::move(args), *a);
  if (const auto* a = attrs_as<Conv2DAttrs>(attrs)) return convolution(e, std::move(args), *a);
  if (const auto* a = attrs_as<Conv3DAttrs>(attrs)) return convolution(e, std::move(args), *a);
  if (const auto* a = attrs_as<MaxPool1DAttrs>(attrs)) return pool(e, std::move(args), *a, false, true);
  if (const auto* a = attrs_as<MaxPool2DAttrs>(attrs)) return pool(e, std::move(args), *a, false, true);
  if (const auto* a = attrs_as<MaxPool3DAttrs>(attrs)) return pool(e, std::move(args), *a, false, true);
  if (const auto* a = attrs_as<AvgPool1DAttrs>(attrs)) return pool(e, std::move(args), *a, true, a->count_include_pad);
  if (const auto* a = attrs_as<AvgPool2DAttrs>(attrs)) return pool(e, std::move(args), *a, true, a->count_include_pad);
  if (const auto* a = attrs_as<AvgPool3DAttrs>(attrs)) return pool(e, std::move(args), *a, true, a->count_include_pad);
  return refused(e, "its windows are of another kind");
}

Result<Expr> BoundedGraph::global_pool(const Expr& e, std::vector<Expr> args) {
  const SizeTags tags = tags_of(args[0]);
  if (tags.size() != 4 || tags[1].size >= 0 || attrs_of<GlobalPool2DAttrs>(e).layout != "NCHW" ||
      !tensor_of(args[0]).dtype.is_float())
    return refused(e, "its layout is not that of ONNX");
  SizeTags out(4);
  out[0] = tags[0];
  const bool across = tags[2].size >= 0 || tags[3].size >= 0;
  if (across && is_call_to(e, "nn.global_avg_pool2d"))
    return with_tags(mean_over(args[0], {2, 3}, true, e->span), std::move(out));
  for (size_t d : {size_t{2}, size_t{3}})
    if (tags[d].size >= 0)
      args[0] = masked(args[0], d, full_constant(-std::numeric_limits<double>::infinity(), tensor_of(args[0]).dtype));
  return same_call(e, std::move(args), std::move(out));
}

Result<Expr> BoundedGraph::batch_norm(const Expr& e, std::vector<Expr> args) {
  const SizeTags tags = tags_of(args[0]);
  if (tags[static_cast<size_t>(positive_axis(attrs_of<BatchNormAttrs>(e).axis, tags.size()))].size >= 0)
    return refused(e, "its axis is a free size");
  Expr out = same_call(e, std::move(args), tags);
  tags_[out.get()] = {tags, SizeTags(1), SizeTags(1)};
  return out;
}

}  // namespace tilewright::relay
