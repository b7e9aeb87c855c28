// SPDX-License-Identifier: Apache-2.0
// Layout rules of convolutions, products, pools and normalisations.
#include <map>

#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"

namespace tilewright::relay {
namespace layouts {
namespace {

Inferred deformable(const LayoutQuery& q) {
  const auto& a = *attrs_as<DeformableConv2DAttrs>(q.attrs);
  return LayoutInference{
      {a.data_layout, a.data_layout, a.kernel_layout}, {a.out_layout.empty() ? a.data_layout : a.out_layout}, q.attrs};
}
Inferred dense(const LayoutQuery& q) { return LayoutInference{{"NC", "NC"}, {"NC"}, q.attrs}; }
Inferred packed_dense(const LayoutQuery& q) {
  return LayoutInference{{"NC", attrs_as<DensePackAttrs>(q.attrs)->weight_layout}, {"NC"}, q.attrs};
}

template <class A>
Inferred pool(const LayoutQuery& q) {
  const A& a = *attrs_as<A>(q.attrs);
  AttrsRef attrs = q.attrs;
  std::string layout = a.layout;
  if (a.out_layout.empty() && q.now && (*q.now)[0] && *(*q.now)[0] != layout) {
    layout = *(*q.now)[0];
    attrs = changed<A>(q.attrs, [&](A& c) { c.layout = layout; });
  }
  return LayoutInference{{layout}, {a.out_layout.empty() ? layout : a.out_layout}, attrs};
}
Inferred batch_norm(const LayoutQuery& q) {
  Inferred out = along_axis<BatchNormAttrs>(q);
  if (out) out->out = {out->out[0], "C", "C"};
  return out;
}

Inferred padded(const LayoutQuery& q) {
  if (q.inputs() < 1 || !as_tensor(q.types[0])) return std::nullopt;
  const auto& a = *attrs_as<PadAttrs>(q.attrs);
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const auto old = layout_axes(*q.before[0]);
    if (old.size() != a.pad_width.size()) return std::nullopt;
    std::map<char, std::vector<int64_t>> widths;
    for (size_t i = 0; i < old.size(); ++i) widths[old[i].letter] = a.pad_width[i];
    std::vector<std::vector<int64_t>> moved;
    bool blocks_stay = true;
    for (const LayoutAxis& axis : layout_axes(*(*q.now)[0])) {
      auto it = widths.find(upper(axis.letter));
      const bool none = it == widths.end() || (it->second[0] == 0 && it->second[1] == 0);
      if (is_split(*(*q.now)[0], axis.letter)) blocks_stay &= none;
      moved.push_back(axis.whole() && !none ? it->second : std::vector<int64_t>{0, 0});
    }
    if (blocks_stay) {
      layout = (*q.now)[0];
      attrs = changed<PadAttrs>(q.attrs, [&](auto& c) { c.pad_width = moved; });
    }
  }
  LayoutInference out{{layout}, {layout}, attrs};
  while (out.in.size() < q.inputs()) out.in.emplace_back("");
  return out;
}

constexpr Entry kNnLayouts[] = {
    {"nn.adaptive_avg_pool1d", pool<AdaptivePool1DAttrs>},
    {"nn.adaptive_avg_pool2d", pool<AdaptivePool2DAttrs>},
    {"nn.adaptive_avg_pool3d", pool<AdaptivePool3DAttrs>},
    {"nn.adaptive_max_pool1d", pool<AdaptivePool1DAttrs>},
    {"nn.adaptive_max_pool2d", pool<AdaptivePool2DAttrs>},
    {"nn.adaptive_max_pool3d", pool<AdaptivePool3DAttrs>},
    {"nn.avg_pool1d", pool<AvgPool1DAttrs>},
    {"nn.avg_pool2d", pool<AvgPool2DAttrs>},
    {"nn.avg_pool3d", pool<AvgPool3DAttrs>},
    {"nn.batch_norm", batch_norm},
    {"nn.bias_add", along_axis<BiasAddAttrs>},
    {"nn.contrib_conv2d_NCHWc", convolution<Conv2DNCHWcAttrs>},
    {"nn.contrib_dense_pack", packed_dense},
    {"nn.contrib_depthwise_conv2d_NCHWc", convolution<Conv2DNCHWcAttrs>},
    {"nn.conv1d", convolution<Conv1DAttrs>},
    {"nn.conv1d_transpose", convolution<Conv1DTransposeAttrs>},
    {"nn.conv2d", convolution<Conv2DAttrs>},
    {"nn.conv2d_transpose", convolution<Conv2DTransposeAttrs>},
    {"nn.conv3d", convolution<Conv3DAttrs>},
    {"nn.conv3d_transpose", convolution<Conv3DTransposeAttrs>},
    {"nn.deformable_conv2d", deformable},
    {"nn.dense", dense},
    {"nn.dropout", same_everywhere},
    {"nn.global_avg_pool2d", pool<GlobalPool2DAttrs>},
    {"nn.global_max_pool2d", pool<GlobalPool2DAttrs>},
    {"nn.instance_norm", along_axis<InstanceNormAttrs>},
    {"nn.layer_norm", along_axis<LayerNormAttrs>},
    {"nn.lrn", along_axis<LRNAttrs>},
    {"nn.max_pool1d", pool<MaxPool1DAttrs>},
    {"nn.max_pool2d", pool<MaxPool2DAttrs>},
    {"nn.max_pool3d", pool<MaxPool3DAttrs>},
    {"nn.pad", padded},
    {"nn.prelu", along_axis<PReluAttrs>},
};

}  // namespace
}  // namespace layouts

void nn_layouts(const FactsOf& facts) { layouts::add(facts, layouts::kNnLayouts); }

}  // namespace tilewright::relay
