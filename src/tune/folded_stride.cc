// SPDX-License-Identifier: Apache-2.0
#include "tune/folded_stride.h"

#include <algorithm>

#include "relay/expr.h"
#include "relay/ops/attrs.h"

namespace tilewright::tune {
namespace {

// (N, C, stride, stride, H, W): the data's shape before phases became channels.
std::optional<std::vector<int64_t>> phases_of(const lower::Problem& p) {
  int id = p.group.inputs[static_cast<size_t>(p.input_index(0))];
  for (int step = 0; step < 4; ++step) {  // layout transforms may be in between
    const lower::GraphTensor& tensor = p.graph.tensors[id];
    if (tensor.producer < 0) return std::nullopt;
    const lower::Group& group = p.graph.groups[tensor.producer];
    for (const relay::Expr& e : relay::post_order(group.function->body)) {
      const auto* call = relay::as<relay::CallNode>(e);
      const auto* attrs = call ? attrs_as<relay::TransposeAttrs>(call->attrs) : nullptr;
      if (!attrs || attrs->axes != std::vector<int64_t>{0, 1, 3, 5, 2, 4}) continue;
      return static_shape(as_tensor(e->type)->shape);
    }
    if (group.inputs.size() != 1) return std::nullopt;
    id = group.inputs[0];
  }
  return std::nullopt;
}

// One axis of the kernel: for each phase's taps, whether any weight is non-zero; empty: unknown.
struct Axis {
  int64_t stride, taps, before, in, out;
  std::vector<bool> used;
  int64_t kernel = 0, pad = 0, pad_after = 0;

  void solve() {
    const auto first = std::find(used.begin(), used.end(), true);
    if (first != used.end() && first - used.begin() < stride) {
      const auto last = std::find(used.rbegin(), used.rend(), true);
      kernel = used.rend() - last - (first - used.begin());
      pad = before * stride - (first - used.begin());
    } else {
      // If all weights are zero: an odd kernel with symmetric padding, or the longest one.
      kernel = taps * stride, pad = before * stride;
      for (int64_t shift = 0; shift < stride; ++shift)
        for (int64_t k = (taps - 1) * stride - shift + 1; k <= taps * stride - shift; ++k)
          if (k == 2 * (before * stride - shift) + 1) kernel = k, pad = before * stride - shift;
    }
    const auto gives = [&](int64_t after) { return (in * stride + pad + after - kernel) / stride + 1 == out; };
    pad_after = pad;
    for (int64_t after = 0; !gives(pad_after) && after <= kernel; ++after) pad_after = after;
  }
};

// Finds the rows and columns of the kernel, over all phases, that contain a non-zero weight.
void find_used(const Tensor& packed, const topi::Conv2dProblem& c, Axis* h, Axis* w) {
  const auto& shape = packed.defined() ? packed.shape() : std::vector<int64_t>{};
  if (shape.size() != 6 || packed.dtype() != kFloat32 || shape[2] != h->taps || shape[3] != w->taps) return;
  h->used.assign(static_cast<size_t>(h->taps * h->stride), false);
  w->used.assign(static_cast<size_t>(w->taps * w->stride), false);
  const float* at = packed.as<float>().data();
  for (int64_t o = 0; o < shape[0]; ++o)
    for (int64_t block = 0; block < shape[1]; ++block)
      for (int64_t i = 0; i < h->taps; ++i)
        for (int64_t j = 0; j < w->taps; ++j)
          for (int64_t k = 0; k < shape[4]; ++k, at += shape[5]) {
            const int64_t channel = block * shape[4] + k;
            if (channel >= c.in_channels || std::all_of(at, at + shape[5], [](float v) { return v == 0; })) continue;
            h->used[static_cast<size_t>(i * h->stride + channel / w->stride % h->stride)] = true;
            w->used[static_cast<size_t>(j * w->stride + channel % w->stride)] = true;
          }
}

}  // namespace

topi::Conv2dProblem unfold_stride(const lower::Problem& problem, const topi::Conv2dProblem& conv) {
  if (conv.stride_height != 1 || conv.stride_width != 1 || conv.groups != 1) return conv;
  const auto phases = phases_of(problem);
  if (!phases || phases->size() != 6) return conv;
  const auto& s = *phases;
  if (s[1] * s[2] * s[3] != conv.in_channels || s[4] != conv.in_height || s[5] != conv.in_width) return conv;
  Axis h{s[2], conv.kernel_height, conv.pad_top, s[4], conv.out_height, {}};
  Axis w{s[3], conv.kernel_width, conv.pad_left, s[5], conv.out_width, {}};
  find_used(problem.input(1).data, conv, &h, &w);
  h.solve();
  w.solve();
  topi::Conv2dProblem out = conv;
  out.in_channels = s[1], out.in_height = s[4] * s[2], out.in_width = s[5] * s[3];
  out.stride_height = s[2], out.stride_width = s[3];
  out.kernel_height = h.kernel, out.kernel_width = w.kernel;
  out.pad_top = h.pad, out.pad_bottom = h.pad_after, out.pad_left = w.pad, out.pad_right = w.pad_after;
  return out;
}

}  // namespace tilewright::tune
