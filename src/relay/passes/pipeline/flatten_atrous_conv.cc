// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/flatten_atrous_conv.h"

#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/nn/attrs_batch_blocks.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool all_are(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

// Block size and padding of the axes H and W; nothing when another axis is affected, too.
struct Spatial {
  std::vector<int64_t> block, before, after;
};
std::optional<Spatial> spatial_part(const std::string& layout, const std::vector<int64_t>& block,
                                    const std::vector<std::vector<int64_t>>& margins) {
  Spatial out;
  if (layout.size() != 4 || layout[0] != 'N') return std::nullopt;
  for (size_t axis = 1; axis < 4; ++axis) {
    bool cut = axis <= block.size();
    int64_t size = cut ? block[axis - 1] : 1, before = cut ? margins[axis - 1][0] : 0,
            after = cut ? margins[axis - 1][1] : 0;
    if (layout[axis] == 'H' || layout[axis] == 'W') {
      out.block.push_back(size);
      out.before.push_back(before);
      out.after.push_back(after);
    } else if (size != 1 || before != 0 || after != 0) {
      return std::nullopt;
    }
  }
  return out;
}

Expr flatten(const Expr& e) {
  if (!is_call_to(e, "nn.batch_to_space_nd") || !is_call_to(arg(e, 0), "nn.conv2d")) return e;
  const Expr& conv = arg(e, 0);
  if (!is_call_to(arg(conv, 0), "nn.space_to_batch_nd")) return e;
  const Expr& blocks = arg(conv, 0);
  const auto& conv_attrs = attrs_of<Conv2DAttrs>(conv);
  const auto& in = attrs_of<SpaceToBatchNDAttrs>(blocks);
  const auto& out = attrs_of<BatchToSpaceNDAttrs>(e);
  if (!all_are(conv_attrs.strides, 1) || !all_are(conv_attrs.padding, 0) || !all_are(conv_attrs.dilation, 1) ||
      in.pad_value != 0)
    return e;
  if (!conv_attrs.out_layout.empty() && conv_attrs.out_layout != conv_attrs.data_layout) return e;
  auto spread = spatial_part(conv_attrs.data_layout, in.block_shape, in.paddings);
  auto gathered = spatial_part(conv_attrs.data_layout, out.block_shape, out.crops);
  if (!spread || !gathered || spread->block != gathered->block) return e;
  std::vector<int64_t> padding(4);
  for (size_t i = 0; i < 2; ++i) {
    padding[i] = spread->before[i] - gathered->before[i];
    padding[i + 2] = spread->after[i] - gathered->after[i];
  }
  // Cropping more than was padded would cut into the dilated convolution's result.
  if (std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p < 0; })) return e;
  auto made = try_call("nn.conv2d", {arg(blocks, 0), arg(conv, 1)}, make_attrs<Conv2DAttrs>([&](auto& a) {
                         a = conv_attrs;
                         a.dilation = spread->block;
                         a.padding = padding;
                       }),
                       conv->span);
  return made.ok() && type_equal((*made)->type, e->type) ? *made : e;
}

}  // namespace

Result<Module> flatten_atrous_conv(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) { return flatten(e); });
}

}  // namespace tilewright::relay
