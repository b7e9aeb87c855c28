// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions over channel blocks.
#include <algorithm>

#include "lower/spatial_halo.h"
#include "lower/strategy.h"
#include "relay/ops/attrs.h"
#include "topi/conv2d_transpose.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// The values before and after each of `spatial` axes, from one value for all, one per axis, or both.
std::vector<int64_t> full_padding(std::vector<int64_t> padding, size_t spatial) {
  if (padding.size() == 1) padding.assign(2 * spatial, padding[0]);
  if (padding.size() == spatial) padding.insert(padding.end(), padding.begin(), padding.begin() + spatial);
  return padding;
}

// nn.conv2d_transpose and nn.conv3d_transpose over blocked data with a constant kernel, first the input channels;
// nothing when it is something else.
template <class A>
std::optional<topi::Conv2dTransposeProblem> transposed_problem(const Problem& p) {
  const auto& attrs = p.attrs<A>();
  const auto data = p.arg_shape(0), weights = p.arg_shape(1), out = p.out_shape();
  const size_t spatial = weights.size() - 2;
  const bool input_first = attrs.kernel_layout.substr(0, 2) == "IO" || attrs.kernel_layout == "OIDHW";
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

template <class A>
std::shared_ptr<Choice> by_phases(const Problem& p) {
  const auto found = transposed_problem<A>(p);
  const auto data = p.arg_shape(0);
  if (!found || p.out_shape().size() != data.size()) return nullptr;
  const topi::Conv2dTransposeProblem problem = *found;
  const auto config = topi::default_config(problem, p.target);
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, config, p.target);
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] =
      spatial_halo(data.size(), topi::halo_need(problem), data.size() - 3, data.size() - 2);
  choice->repacks.emplace_back(p.input_index(1),
                               [=](const Tensor& t) { return topi::pack_conv2d_transpose_weights(t, problem); });
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    return topi::conv2d_transpose_nchwc(problem, config, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                        context);
  };
  return choice;
}

// To plain rows.
std::shared_ptr<Choice> plain_rows(const Problem& p) {
  const auto found = transposed_problem<Conv2DTransposeAttrs>(p);
  if (!found || p.out_shape().size() != 4 || !topi::paints_plain_rows(*found)) return nullptr;
  const topi::Conv2dTransposeProblem problem = *found;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, topi::default_config(problem, p.target), p.target);
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] = spatial_halo(5, topi::plain_rows_halo(problem));
  choice->repacks.emplace_back(p.input_index(1),
                               [=](const Tensor& t) { return topi::pack_plain_rows_weights(t, problem); });
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    return topi::conv2d_transpose_plain_rows(problem, input(0), input(1), scope.output(), scope.epilogue(anchor),
                                             context);
  };
  return choice;
}

constexpr Implementation kConvTransposeImplementations[] = {
    {"nn.conv2d_transpose", "conv2d_transpose_nchwc.phases", 10, by_phases<Conv2DTransposeAttrs>},
    {"nn.conv2d_transpose", "conv2d_transpose_nchwc.plain_rows", 10, plain_rows},
    {"nn.conv3d_transpose", "conv3d_transpose_ncdhwc.phases", 10, by_phases<Conv3DTransposeAttrs>},
};

}  // namespace

std::span<const Implementation> conv_transpose_implementations() { return kConvTransposeImplementations; }

}  // namespace tilewright::lower
