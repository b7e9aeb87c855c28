// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions over channel blocks.
#include <algorithm>

#include "lower/conv_problem.h"
#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "relay/ops/nn/weight_types.h"
#include "topi/conv2d_transpose.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// Expands padding to begins and ends of `spatial` axes, from one value for all, one per axis, or both.
std::vector<int64_t> full_padding(std::vector<int64_t> padding, size_t spatial) {
  if (padding.size() == 1) padding.assign(2 * spatial, padding[0]);
  if (padding.size() == spatial) padding.insert(padding.end(), padding.begin(), padding.begin() + spatial);
  return padding;
}

// nn.conv2d_transpose and nn.conv3d_transpose over blocked data with a constant kernel (input channels first); nothing
// otherwise.
template <class A>
std::optional<topi::Conv2dTransposeProblem> transposed_problem(const Problem& p) {
  const auto& attrs = p.attrs<A>();
  const auto data = p.arg_shape(0), weights = p.arg_shape(1), out = p.out_shape();
  const size_t spatial = weights.size() - 2;
  const bool input_first = relay::transposed_kernel_layout(attrs.kernel_layout).starts_with("IO");
  if (!p.anchor.direct() || !has_tiles(p) || data.size() != spatial + 3 || !p.constant(1) || !input_first ||
      attrs.kernel_layout.size() != spatial + 2 || attrs.dilation != std::vector<int64_t>(spatial, 1))
    return std::nullopt;
  const std::vector<int64_t> pad = full_padding(attrs.padding, spatial);
  topi::Conv2dTransposeProblem t;
  t.batch = data[0];
  t.in_channels = weights[0];
  t.out_channels = weights[1] * attrs.groups;
  t.groups = attrs.groups;
  t.lanes = static_cast<int>(data.back());
  // Height and width are the last two axes.
  const size_t h = spatial - 2, w = spatial - 1;
  t.in_height = data[2 + h], t.in_width = data[2 + w];
  t.out_height = out[2 + h], t.out_width = out[2 + w];
  t.kernel_height = weights[2 + h], t.kernel_width = weights[2 + w];
  t.stride_height = attrs.strides[h], t.stride_width = attrs.strides[w];
  t.pad_top = pad[h], t.pad_left = pad[w];
  if (spatial == 3) {
    t.in_depth = data[2], t.out_depth = out[2], t.kernel_depth = weights[2];
    t.stride_depth = attrs.strides[0], t.pad_front = pad[0];
  }
  return t;
}

// One configuration per phase.
template <class A, class Configs>
struct ByPhases {
  using Config = Configs;
  static constexpr bool kDepthwise = std::is_same_v<Configs, topi::DepthwisePhaseConfigs>;
  static std::optional<topi::Conv2dTransposeProblem> site(const Problem& p) {
    const auto found = transposed_problem<A>(p);
    if (!found || p.out_shape().size() != p.arg_shape(0).size() || topi::is_depthwise(*found) != kDepthwise)
      return std::nullopt;
    return found;
  }
  static std::vector<Config> configs(const Problem& p, const topi::Conv2dTransposeProblem& t, size_t most) {
    if constexpr (kDepthwise)
      return topi::depthwise_configs(t, p.target, most);
    else
      return topi::configs(t, p.target, most);
  }
  static bool fits(const Problem&, const topi::Conv2dTransposeProblem& t, const Config& c) { return topi::fits(t, c); }
  static topi::Cost cost(const Problem& p, const topi::Conv2dTransposeProblem& t, const Config& c) {
    return topi::estimate(t, c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const topi::Conv2dTransposeProblem& problem,
                                      const Config& config) {
    const size_t rank = p.arg_shape(0).size();
    auto choice = std::make_shared<Choice>();
    choice->halos = halo_of_data(p, spatial_halo(rank, topi::halo_need(problem), rank - 3, rank - 2));
    choice->repacks.emplace_back(p.input_index(1),
                                 [=](const Tensor& t) { return topi::pack_conv2d_transpose_weights(t, problem); });
    choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      return topi::conv2d_transpose_nchwc(problem, config, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                          context);
    };
    return choice;
  }
};

// With a plain (not blocked) output.
std::shared_ptr<Choice> plain_rows(const Problem& p) {
  const auto found = transposed_problem<Conv2DTransposeAttrs>(p);
  if (!found || p.out_shape().size() != 4 || !topi::paints_plain_rows(*found)) return nullptr;
  const topi::Conv2dTransposeProblem problem = *found;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, topi::configs(problem, p.target, 1)[0], p.target);
  choice->halos = halo_of_data(p, spatial_halo(5, topi::plain_rows_halo(problem)));
  choice->repacks.emplace_back(p.input_index(1),
                               [=](const Tensor& t) { return topi::pack_plain_rows_weights(t, problem); });
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    return topi::conv2d_transpose_plain_rows(problem, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                             context);
  };
  return choice;
}

using topi::DepthwisePhaseConfigs, topi::PhaseConfigs;
constexpr Implementation kConvTransposeImplementations[] = {
    tuned<ByPhases<Conv2DTransposeAttrs, PhaseConfigs>>("nn.conv2d_transpose", "conv2d_transpose_nchwc.phases", 10),
    tuned<ByPhases<Conv2DTransposeAttrs, DepthwisePhaseConfigs>>("nn.conv2d_transpose",
                                                                 "conv2d_transpose_nchwc.depthwise", 10),
    fixed<plain_rows>("nn.conv2d_transpose", "conv2d_transpose_nchwc.plain_rows", 10),
    tuned<ByPhases<Conv3DTransposeAttrs, PhaseConfigs>>("nn.conv3d_transpose", "conv3d_transpose_ncdhwc.phases", 10),
    tuned<ByPhases<Conv3DTransposeAttrs, DepthwisePhaseConfigs>>("nn.conv3d_transpose",
                                                                 "conv3d_transpose_ncdhwc.depthwise", 10),
};

}  // namespace

std::span<const Implementation> conv_transpose_implementations() { return kConvTransposeImplementations; }

}  // namespace tilewright::lower
