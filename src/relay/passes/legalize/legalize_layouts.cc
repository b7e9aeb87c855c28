// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/passes/legalize/legalize_rules.h"

namespace tilewright::relay {

Expr reordered(const Expr& x, std::vector<int64_t> axes) {
  bool same = true;
  for (size_t i = 0; i < axes.size(); ++i) same &= axes[i] == static_cast<int64_t>(i);
  return same ? x : transposed(x, std::move(axes), x->span);
}

namespace {

// Whether one layout is a permutation of the other; false for blocked layouts.
bool permutes(std::string a, std::string b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}
Expr turned(const Expr& x, const std::string& from, const std::string& to) {
  std::vector<int64_t> axes;
  for (char letter : to) axes.push_back(static_cast<int64_t>(from.find(letter)));
  return reordered(x, std::move(axes));
}

template <class A>
Expr convolution(const Expr& e) {
  const auto& a = attrs_of<A>(e);
  const A usual;
  constexpr bool kTransposed = requires(A attrs) { attrs.output_padding; };
  const auto letters_of = [](const std::string& layout) {
    return kTransposed ? transposed_kernel_layout(layout) : layout;
  };
  const std::string kernel = letters_of(a.kernel_layout), wanted = letters_of(usual.kernel_layout);
  const std::string out = a.out_layout.empty() ? a.data_layout : a.out_layout;
  if (a.data_layout == usual.data_layout && kernel == wanted && out == usual.data_layout) return e;
  if (!permutes(a.data_layout, usual.data_layout) || !permutes(kernel, wanted) || !permutes(out, usual.data_layout))
    return e;
  Expr y =
      call(called_op(e)->name, {turned(arg(e, 0), a.data_layout, usual.data_layout), turned(arg(e, 1), kernel, wanted)},
           make_attrs<A>([&](auto& attrs) {
             attrs = a;
             attrs.data_layout = usual.data_layout;
             attrs.kernel_layout = wanted;
             attrs.out_layout.clear();
           }),
           e->span);
  return turned(y, usual.data_layout, out);
}

template <class A>
Expr over_image(const Expr& e) {
  const auto& a = attrs_of<A>(e);
  const std::string usual = A().layout;
  constexpr bool kHasOut = requires(A attrs) { attrs.out_layout; };
  std::string out = a.layout;
  if constexpr (kHasOut)
    if (!a.out_layout.empty()) out = a.out_layout;
  if ((a.layout == usual && out == usual) || !permutes(a.layout, usual) || !permutes(out, usual)) return e;
  std::vector<Expr> args = as<CallNode>(e)->args;
  args[0] = turned(args[0], a.layout, usual);
  Expr y = legalize_operator(call(called_op(e)->name, args, make_attrs<A>([&](auto& attrs) {
                                    attrs = a;
                                    attrs.layout = usual;
                                    if constexpr (kHasOut) attrs.out_layout.clear();
                                  }),
                                  e->span));
  return turned(y, usual, out);
}

using Rule = Expr (*)(const Expr&);
const std::map<std::string_view, Rule>& layout_rules() {
  static const std::map<std::string_view, Rule> kRules = {
      {"nn.conv1d", convolution<Conv1DAttrs>},
      {"nn.conv2d", convolution<Conv2DAttrs>},
      {"nn.conv3d", convolution<Conv3DAttrs>},
      {"nn.conv1d_transpose", convolution<Conv1DTransposeAttrs>},
      {"nn.conv2d_transpose", convolution<Conv2DTransposeAttrs>},
      {"nn.conv3d_transpose", convolution<Conv3DTransposeAttrs>},
      {"nn.max_pool1d", over_image<MaxPool1DAttrs>},
      {"nn.max_pool2d", over_image<MaxPool2DAttrs>},
      {"nn.max_pool3d", over_image<MaxPool3DAttrs>},
      {"nn.avg_pool1d", over_image<AvgPool1DAttrs>},
      {"nn.avg_pool2d", over_image<AvgPool2DAttrs>},
      {"nn.avg_pool3d", over_image<AvgPool3DAttrs>},
      {"nn.global_avg_pool2d", over_image<GlobalPool2DAttrs>},
      {"nn.global_max_pool2d", over_image<GlobalPool2DAttrs>},
      {"nn.adaptive_avg_pool1d", over_image<AdaptivePool1DAttrs>},
      {"nn.adaptive_avg_pool2d", over_image<AdaptivePool2DAttrs>},
      {"nn.adaptive_avg_pool3d", over_image<AdaptivePool3DAttrs>},
      {"nn.adaptive_max_pool1d", over_image<AdaptivePool1DAttrs>},
      {"nn.adaptive_max_pool2d", over_image<AdaptivePool2DAttrs>},
      {"nn.adaptive_max_pool3d", over_image<AdaptivePool3DAttrs>},
      {"nn.upsampling", over_image<UpSamplingAttrs>},
      {"nn.depth_to_space", over_image<SubPixelAttrs>},
      {"nn.space_to_depth", over_image<SubPixelAttrs>},
      {"image.resize1d", over_image<Resize1DAttrs>},
      {"image.resize2d", over_image<Resize2DAttrs>},
      {"image.resize3d", over_image<Resize3DAttrs>},
  };
  return kRules;
}

}  // namespace

Expr in_usual_layout(const Expr& e) {
  const OpDef* op = called_op(e);
  auto rule = op ? layout_rules().find(op->name) : layout_rules().end();
  return rule == layout_rules().end() ? e : rule->second(e);
}

}  // namespace tilewright::relay
