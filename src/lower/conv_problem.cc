// SPDX-License-Identifier: Apache-2.0
#include "lower/conv_problem.h"

#include <algorithm>

#include "relay/ops/attrs.h"
#include "topi/pack.h"
#include "topi/words.h"

namespace tilewright::lower {
using namespace relay;

Pads pads_of(const std::vector<int64_t>& p) {
  if (p.size() == 1) return {p[0], p[0], p[0], p[0]};
  if (p.size() == 2) return {p[0], p[1], p[0], p[1]};
  return {p[0], p[1], p[2], p[3]};
}

namespace {
// Fields that direct and depthwise problems share.
template <class P>
void fill_spatial(P* p, const Conv2DNCHWcAttrs& attrs, const std::vector<int64_t>& data,
                  const std::vector<int64_t>& out) {
  Pads pad = pads_of(attrs.padding);
  p->batch = data[0];
  p->in_height = data[2];
  p->in_width = data[3];
  p->out_height = out[2];
  p->out_width = out[3];
  p->kernel_height = (*attrs.kernel_size)[0];
  p->kernel_width = (*attrs.kernel_size)[1];
  p->stride_height = attrs.strides[0];
  p->stride_width = attrs.strides[1];
  p->dilation_height = attrs.dilation[0];
  p->dilation_width = attrs.dilation[1];
  p->pad_top = pad.top;
  p->pad_left = pad.left;
  p->pad_bottom = pad.bottom;
  p->pad_right = pad.right;
  p->lanes = static_cast<int>(out[4]);
}

}  // namespace

topi::Conv2dProblem conv2d_problem(const Problem& p) {
  const auto& attrs = p.attrs<Conv2DNCHWcAttrs>();
  auto data = p.arg_shape(0), out = p.out_shape();
  topi::Conv2dProblem problem;
  fill_spatial(&problem, attrs, data, out);
  problem.plain_data = data.size() == 4;
  problem.in_channels = problem.plain_data ? data[1] : attrs.in_channels.value_or(data[1] * data[4]);
  problem.out_channels = attrs.channels.value_or(out[1] * out[4]);
  problem.groups = attrs.groups;
  if (has_words(p)) {
    problem.word_of = p.arg_dtype(0);
    problem.word = static_cast<int>(topi::word_elements(problem.word_of));
  }
  if (const auto part = static_cast<int>(p.arg_shape(1).back()); !problem.plain_data && part < problem.lanes) {
    problem.split = problem.lanes / part;
    problem.lanes = part;
  }
  return problem;
}

topi::DepthwiseProblem depthwise2d_problem(const Problem& p) {
  const auto& attrs = p.attrs<Conv2DNCHWcAttrs>();
  const auto out = p.out_shape();
  topi::DepthwiseProblem problem;
  fill_spatial(&problem, attrs, p.arg_shape(0), out);
  problem.channels = attrs.channels.value_or(out[1] * out[4]);
  return problem;
}

bool is_blocked_volume(const Problem& p) {
  const auto& attrs = p.attrs<Conv3DAttrs>();
  return p.out_shape().size() == 6 && attrs.kernel_layout == "OIDHW" && p.constant(1);
}
topi::Conv2dProblem volume_problem(const Problem& p) {
  const auto& attrs = p.attrs<Conv3DAttrs>();
  auto data = p.arg_shape(0), weights = p.arg_shape(1), out = p.out_shape();
  std::vector<int64_t> pad = attrs.padding;
  if (pad.size() == 1) pad.assign(3, pad[0]);
  pad.resize(6, 0);
  if (attrs.padding.size() <= 3) std::copy(pad.begin(), pad.begin() + 3, pad.begin() + 3);
  topi::Conv2dProblem c;
  c.plain_data = data.size() == 5;
  c.batch = data[0];
  c.in_channels = weights[1] * attrs.groups, c.out_channels = weights[0], c.groups = attrs.groups;
  c.in_depth = data[2], c.in_height = data[3], c.in_width = data[4];
  c.out_depth = out[2], c.out_height = out[3], c.out_width = out[4];
  c.kernel_depth = weights[2], c.kernel_height = weights[3], c.kernel_width = weights[4];
  c.stride_depth = attrs.strides[0], c.stride_height = attrs.strides[1], c.stride_width = attrs.strides[2];
  c.dilation_depth = attrs.dilation[0], c.dilation_height = attrs.dilation[1], c.dilation_width = attrs.dilation[2];
  c.pad_front = pad[0], c.pad_top = pad[1], c.pad_left = pad[2], c.pad_bottom = pad[4], c.pad_right = pad[5];
  c.lanes = static_cast<int>(out[5]);
  return c;
}
Tensor pack_volume_weights(const Tensor& weights, const topi::Conv2dProblem& problem) {
  const auto& s = weights.shape();
  return topi::pack_conv2d_weights(weights.reshaped({s[0], s[1], s[2] * s[3], s[4]}), problem.lanes,
                                   problem.plain_data ? s[1] : problem.lanes);
}

bool is_depthwise_volume(const topi::Conv2dProblem& c) {
  return c.groups > 1 && c.groups == c.in_channels && c.groups == c.out_channels;
}
topi::DepthwiseProblem depthwise_volume_problem(const topi::Conv2dProblem& c) {
  topi::DepthwiseProblem d;
  d.batch = c.batch, d.channels = c.in_channels, d.lanes = c.lanes;
  d.in_depth = c.in_depth, d.in_height = c.in_height, d.in_width = c.in_width;
  d.out_depth = c.out_depth, d.out_height = c.out_height, d.out_width = c.out_width;
  d.kernel_depth = c.kernel_depth, d.kernel_height = c.kernel_height, d.kernel_width = c.kernel_width;
  d.stride_depth = c.stride_depth, d.stride_height = c.stride_height, d.stride_width = c.stride_width;
  d.dilation_depth = c.dilation_depth, d.dilation_height = c.dilation_height, d.dilation_width = c.dilation_width;
  d.pad_front = c.pad_front, d.pad_top = c.pad_top, d.pad_left = c.pad_left;
  return d;
}

std::vector<Halo> halo_of_data(const Problem& p, Halo halo) {
  std::vector<Halo> halos(p.group.inputs.size());
  halos[static_cast<size_t>(p.input_index(0))] = std::move(halo);
  return halos;
}

Halo window_halo(const topi::DepthwiseProblem& p, size_t rank) {
  // Rows below, or columns to the right of the data that the last window reads.
  auto after = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t before, int64_t in) {
    return std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation - before - (in - 1));
  };
  return spatial_halo(rank,
                      {p.pad_top, p.pad_left,
                       after(p.out_height, p.stride_height, p.kernel_height, p.dilation_height, p.pad_top, p.in_height),
                       after(p.out_width, p.stride_width, p.kernel_width, p.dilation_width, p.pad_left, p.in_width)});
}

}  // namespace tilewright::lower
