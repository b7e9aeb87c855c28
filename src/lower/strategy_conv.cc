// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools.
#include <algorithm>
#include <cmath>

#include "lower/spatial_halo.h"
#include "lower/strategy.h"
#include "relay/ops/attrs.h"
#include "topi/conv2d_nchwc.h"
#include "topi/conv_direct.h"
#include "topi/depthwise.h"
#include "topi/pack.h"
#include "topi/pool.h"
#include "topi/reduce.h"
#include "topi/winograd.h"

namespace tilewright::lower {
namespace {
using namespace relay;

struct Pads {
  int64_t top, left, bottom, right;
};
// 1, 2 or 4 values: all sides, (height, width), or (top, left, bottom, right).
Pads pads(const std::vector<int64_t>& p) {
  if (p.size() == 1) return {p[0], p[0], p[0], p[0]};
  if (p.size() == 2) return {p[0], p[1], p[0], p[1]};
  return {p[0], p[1], p[2], p[3]};
}

// Fields that direct and depthwise problems have in common.
template <class P>
void fill_spatial(P* p, const Conv2DNCHWcAttrs& attrs, const std::vector<int64_t>& data,
                  const std::vector<int64_t>& out) {
  Pads pad = pads(attrs.padding);
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

// Rows below and columns right of the data that the last window reads.
template <class P>
Halo window_halo(const P& p, size_t rank) {
  auto after = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t before, int64_t in) {
    return std::max<int64_t>(0, (out - 1) * stride + (kernel - 1) * dilation - before - (in - 1));
  };
  return spatial_halo(rank,
                      {p.pad_top, p.pad_left,
                       after(p.out_height, p.stride_height, p.kernel_height, p.dilation_height, p.pad_top, p.in_height),
                       after(p.out_width, p.stride_width, p.kernel_width, p.dilation_width, p.pad_left, p.in_width)});
}

topi::Conv2dProblem conv_problem(const Problem& p) {
  const auto& attrs = p.attrs<Conv2DNCHWcAttrs>();
  auto data = p.arg_shape(0), out = p.out_shape();
  topi::Conv2dProblem problem;
  fill_spatial(&problem, attrs, data, out);
  problem.plain_data = data.size() == 4;
  problem.in_channels = problem.plain_data ? data[1] : attrs.in_channels.value_or(data[1] * data[4]);
  problem.out_channels = attrs.channels.value_or(out[1] * out[4]);
  problem.groups = attrs.groups;
  if (const auto part = static_cast<int>(p.arg_shape(1).back()); !problem.plain_data && part < problem.lanes) {
    problem.split = problem.lanes / part;
    problem.lanes = part;
  }
  return problem;
}

// nn.conv3d over channel blocks, as AlterOpLayout leaves it: the kernel is the model's.
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

// Direct convolution; weights of volumes are packed on the way.
std::shared_ptr<Choice> direct_conv(const Problem& p, const topi::Conv2dProblem& problem, bool volume) {
  const topi::HaloNeed need = topi::halo_need(problem);
  auto choice = std::make_shared<Choice>();
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] =
      spatial_halo(p.arg_shape(0).size(), need, volume ? 3 : 2, volume ? 4 : 3);
  if (volume)
    choice->repacks.emplace_back(p.input_index(1), [=](const Tensor& t) { return pack_volume_weights(t, problem); });
  // 1x1 convolutions run rows together when neither side has gaps; whether they have is known once buffers are planned.
  Anchor anchor = p.anchor;
  int data_input = p.input_index(0), weight_input = p.input_index(1);
  const bool pointwise = problem.kernel_height == 1 && problem.kernel_width == 1 && problem.stride_height == 1 &&
                         problem.stride_width == 1;
  const auto best = topi::default_config(problem, p.target, pointwise),
             gapped = pointwise ? topi::default_config(problem, p.target, false) : best;
  choice->cost = topi::estimate(problem, best, p.target);
  choice->configuration = topi::to_text(best);
  choice->configurations = [=, machine = p.target] { return topi::ranked_configs(problem, machine, pointwise); };
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    const auto& x = scope.input(static_cast<size_t>(data_input));
    const auto& config = topi::can_flatten(problem, x, scope.output()) ? best : gapped;
    topi::View w =
        topi::make_view(scope.input(static_cast<size_t>(weight_input)).buffer, topi::packed_weight_shape(problem));
    return topi::conv2d_nchwc(problem, config, x, w, scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

std::shared_ptr<Choice> direct_conv2d(const Problem& p) {
  if (!p.anchor.direct() || !has_tiles(p)) return nullptr;
  return direct_conv(p, conv_problem(p), false);
}
bool is_depthwise_volume(const topi::Conv2dProblem& c) {
  return c.groups > 1 && c.groups == c.in_channels && c.groups == c.out_channels;
}
std::shared_ptr<Choice> direct_conv3d(const Problem& p) {
  if (!p.anchor.direct() || !has_tiles(p) || !is_blocked_volume(p)) return nullptr;
  const topi::Conv2dProblem c = volume_problem(p);
  return is_depthwise_volume(c) ? nullptr : direct_conv(p, c, true);
}

// Whether the graph's weights are more than stays in the caches from one run to the next.
bool weights_from_memory(const Graph& graph) {
  uint64_t bytes = 0;
  for (const GraphTensor& t : graph.tensors)
    if (t.kind == GraphTensor::Kind::kParam) bytes += t.data.bytes();
  return bytes > uint64_t{12} << 20;
}

// What a Winograd layer's rounding may add, over its outputs' root mean square: a tenth of what `verify` allows a
// kernel. Larger estimates take smaller tiles, at last the direct kernel.
constexpr double kWinogradErrorBudget = 1e-5;

// Weights of products of integers (IntegerProducts), whose sums are exact in every order but not through Winograd's
// fractions.
bool whole_numbers(const Tensor& weights) {
  if (weights.dtype() != kFloat32) return false;
  auto values = weights.as<float>();
  return std::all_of(values.begin(), values.end(), [](float v) { return v == std::nearbyint(v); });
}

bool transforms(const Problem& p) { return has_tiles(p) && (p.arg_dtype(0) == kFloat32 || p.arg_dtype(0) == kFloat64); }

// How a volume is given to a kernel whose tiles lie in planes: taps along the depth alone become taps of rows, and
// depth and height change places.
struct Turn {
  bool on = false;
  topi::Conv2dProblem operator()(topi::Conv2dProblem c) const {
    if (!on) return c;
    std::swap(c.in_depth, c.in_height), std::swap(c.out_depth, c.out_height);
    std::swap(c.kernel_depth, c.kernel_height), std::swap(c.stride_depth, c.stride_height);
    std::swap(c.dilation_depth, c.dilation_height), std::swap(c.pad_front, c.pad_top);
    c.pad_bottom = std::max<int64_t>(0, (c.out_height - 1) * c.stride_height +
                                            (c.kernel_height - 1) * c.dilation_height + 1 - c.pad_top - c.in_height);
    return c;
  }
  topi::View operator()(topi::View view) const {
    if (!on) return view;
    std::swap(view.shape[2], view.shape[3]), std::swap(view.strides[2], view.strides[3]);
    if (!view.halo_before.empty()) std::swap(view.halo_before[2], view.halo_before[3]);
    if (!view.halo_after.empty()) std::swap(view.halo_after[2], view.halo_after[3]);
    return view;
  }
  topi::Epilogue operator()(topi::Epilogue inner) const {
    if (!on) return inner;
    return [inner = std::move(inner)](const tir::PrimExpr& value, const topi::Index& index, const tir::PrimExpr& mask) {
      topi::Index real = index;
      std::swap(real[2], real[3]);
      return inner(value, real, mask);
    };
  }
};

// Winograd with tiles of `tile` output pixels along each axis of a plane that has taps; `packed` are the weights as the
// direct kernel has them.
std::shared_ptr<Choice> winograd_conv(const Problem& p, int tile, const topi::Conv2dProblem& problem, const Turn& turn,
                                      bool volume, const Tensor& packed) {
  const int tile_height = problem.kernel_height == 1 ? 1 : tile, tile_width = problem.kernel_width == 1 ? 1 : tile;
  if (whole_numbers(packed)) return nullptr;
  if (topi::winograd_error(packed, problem, tile_height, tile_width) > kWinogradErrorBudget) return nullptr;
  const bool from_memory = weights_from_memory(p.graph);
  const topi::WinogradConfig config = topi::winograd_config(problem, tile_height, tile_width, from_memory, p.target);
  const topi::HaloNeed need = topi::winograd_halo(problem, config);
  auto choice = std::make_shared<Choice>();
  choice->configuration = topi::to_text(config);
  choice->configurations = [=, machine = p.target] {
    return topi::ranked_winograd_configs(problem, tile_height, tile_width, from_memory, machine);
  };
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] =
      volume ? spatial_halo(6, need, turn.on ? 2 : 3, 4) : spatial_halo(5, need);
  choice->cost = topi::winograd_cost(problem, config, from_memory, p.target);
  choice->scratch_dtype = packed.dtype();
  choice->scratch_bytes = topi::winograd_scratch_bytes(problem, config, packed.dtype());
  choice->repacks.emplace_back(p.input_index(1), [=](const Tensor& t) {
    return topi::winograd_weights(volume ? pack_volume_weights(t, problem) : t, problem, config);
  });
  Anchor anchor = p.anchor;
  auto data_input = static_cast<size_t>(p.input_index(0)), weight_input = static_cast<size_t>(p.input_index(1));
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    topi::View w = topi::make_view(scope.input(weight_input).buffer, topi::winograd_weight_shape(problem, config));
    return topi::conv2d_winograd(problem, config, turn(scope.input(data_input)), w, turn(scope.output()),
                                 turn(scope.epilogue(anchor)), context);
  };
  return choice;
}
template <int tile>
std::shared_ptr<Choice> winograd_conv2d(const Problem& p) {
  if (p.target.strict_math || !p.anchor.direct() || !transforms(p) || p.arg_shape(0).size() != 5 || !p.constant(1))
    return nullptr;
  const topi::Conv2dProblem c = conv_problem(p);
  if (!topi::winograd_applies(c, c.kernel_height == 1 ? 1 : tile, c.kernel_width == 1 ? 1 : tile) ||
      p.arg_shape(1) != topi::packed_weight_shape(c))
    return nullptr;
  return winograd_conv(p, tile, c, {}, false, p.input(1).data);
}
template <int tile>
std::shared_ptr<Choice> winograd_conv3d(const Problem& p) {
  if (p.target.strict_math || !p.anchor.direct() || !transforms(p) || !is_blocked_volume(p)) return nullptr;
  topi::Conv2dProblem c = volume_problem(p);
  const Turn turn{c.kernel_height == 1 && c.kernel_width == 1};
  c = turn(c);
  if (!topi::winograd_applies(c, c.kernel_height == 1 ? 1 : tile, c.kernel_width == 1 ? 1 : tile)) return nullptr;
  return winograd_conv(p, tile, c, turn, true, pack_volume_weights(p.input(1).data, c));
}

std::shared_ptr<Choice> depthwise_conv2d(const Problem& p) {
  if (!p.anchor.direct() || !has_tiles(p)) return nullptr;
  const auto& attrs = p.attrs<Conv2DNCHWcAttrs>();
  auto data = p.arg_shape(0), out = p.out_shape();
  topi::DepthwiseProblem problem;
  fill_spatial(&problem, attrs, data, out);
  problem.channels = attrs.channels.value_or(out[1] * out[4]);
  auto choice = std::make_shared<Choice>();
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] = window_halo(problem, data.size());
  auto config = topi::default_config(problem, p.target);
  choice->cost = topi::estimate(problem, config, p.target);
  Anchor anchor = p.anchor;
  int data_input = p.input_index(0), weight_input = p.input_index(1);
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    const auto& x = scope.input(static_cast<size_t>(data_input));
    topi::View w = topi::make_view(scope.input(static_cast<size_t>(weight_input)).buffer,
                                   {(problem.channels + problem.lanes - 1) / problem.lanes, problem.kernel_height,
                                    problem.kernel_width, problem.lanes});
    return topi::depthwise_conv2d_nchwc(problem, config, x, w, scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

// nn.conv3d over channel blocks, each channel for itself.
std::shared_ptr<Choice> depthwise_conv3d(const Problem& p) {
  if (!p.anchor.direct() || !has_tiles(p) || !is_blocked_volume(p)) return nullptr;
  const topi::Conv2dProblem c = volume_problem(p);
  if (!is_depthwise_volume(c) || c.plain_data) return nullptr;
  topi::DepthwiseProblem d;
  d.batch = c.batch, d.channels = c.in_channels, d.lanes = c.lanes;
  d.in_depth = c.in_depth, d.in_height = c.in_height, d.in_width = c.in_width;
  d.out_depth = c.out_depth, d.out_height = c.out_height, d.out_width = c.out_width;
  d.kernel_depth = c.kernel_depth, d.kernel_height = c.kernel_height, d.kernel_width = c.kernel_width;
  d.stride_depth = c.stride_depth, d.stride_height = c.stride_height, d.stride_width = c.stride_width;
  d.dilation_depth = c.dilation_depth, d.dilation_height = c.dilation_height, d.dilation_width = c.dilation_width;
  d.pad_front = c.pad_front, d.pad_top = c.pad_top, d.pad_left = c.pad_left;
  const auto config = topi::default_config(d, p.target);
  auto choice = std::make_shared<Choice>();
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] = spatial_halo(6, topi::halo_need(c), 3, 4);
  choice->cost = topi::estimate(d, config, p.target);
  choice->repacks.emplace_back(p.input_index(1), [=](const Tensor& t) {
    const auto& s = t.shape();
    return topi::pack_depthwise_weights(t.reshaped({s[0], 1, s[2] * s[3], s[4]}), d.lanes);
  });
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    auto input = [&](size_t i) { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    return topi::depthwise_conv2d_nchwc(d, config, input(0), input(1), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

// nn.conv1d/2d/3d on plain layouts: what the blocked kernels do not take.
template <class A>
std::shared_ptr<Choice> plain_conv(const Problem& p) {
  if (!p.anchor.direct() || !has_tiles(p)) return nullptr;
  const auto& attrs = p.attrs<A>();
  if (attrs.data_layout.substr(0, 2) != "NC" || attrs.data_layout.find('c') != std::string::npos ||
      attrs.kernel_layout.substr(0, 2) != "OI" || !(attrs.out_layout.empty() || attrs.out_layout == attrs.data_layout))
    return nullptr;
  auto data = p.arg_shape(0), weights = p.arg_shape(1), out = p.out_shape();
  size_t spatial = data.size() - 2;
  auto padding = attrs.padding;
  if (padding.size() == 1) padding.assign(2 * spatial, padding[0]);
  if (padding.size() == spatial)
    padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(spatial));
  topi::ConvDirectProblem problem;
  problem.groups = attrs.groups;
  Halo halo;
  halo.before.assign(data.size(), 0);
  halo.after.assign(data.size(), 0);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t kernel = weights[i + 2], stride = attrs.strides[i], dilation = attrs.dilation[i], before = padding[i];
    problem.kernel.push_back(kernel);
    problem.strides.push_back(stride);
    problem.dilations.push_back(dilation);
    problem.pads_before.push_back(before);
    halo.before[i + 2] = before;
    halo.after[i + 2] =
        std::max<int64_t>(0, (out[i + 2] - 1) * stride + (kernel - 1) * dilation - before - (data[i + 2] - 1));
  }
  auto choice = std::make_shared<Choice>();
  choice->halos.resize(p.group.inputs.size());
  choice->halos[static_cast<size_t>(p.input_index(0))] = halo;
  auto shaped = [dtype = p.arg_dtype(0)](const std::vector<int64_t>& shape) {
    return topi::make_view(tir::make_buffer("", dtype, topi::product(shape)), shape);
  };
  choice->cost = topi::estimate(problem, topi::default_config(problem, shaped(data), shaped(out), p.target),
                                shaped(data), shaped(out), p.target);
  Anchor anchor = p.anchor;
  auto data_input = static_cast<size_t>(p.input_index(0)), weight_input = static_cast<size_t>(p.input_index(1));
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    const topi::View &x = scope.input(data_input), &y = scope.output();
    auto config = topi::default_config(problem, x, y, *context.target);  // by how the operands lie
    return topi::conv_direct(problem, config, x, scope.input(weight_input), y, scope.epilogue(anchor), context);
  };
  return choice;
}

// Windows over (N, C/v, D, H, W, v) or (N, C, D, H, W).
template <class A, topi::PoolKind kind>
std::shared_ptr<Choice> pool3d(const Problem& p) {
  const auto& attrs = p.attrs<A>();
  auto data = p.arg_shape(0), out = p.out_shape();
  const bool blocked = data.size() == 6;
  const DataType dtype = p.arg_dtype(0);
  if (!p.anchor.direct() || dtype.bits < 8 || !(dtype.is_float() || dtype.is_integral()) ||
      (!blocked && attrs.layout != "NCDHW"))
    return nullptr;
  std::vector<int64_t> pad = attrs.padding;
  if (pad.size() == 1) pad.assign(6, pad[0]);
  if (pad.size() == 3) pad.insert(pad.end(), attrs.padding.begin(), attrs.padding.end());
  topi::PoolProblem problem;
  problem.kind = kind;
  problem.in_depth = data[2], problem.in_height = data[3], problem.in_width = data[4];
  problem.out_depth = out[2], problem.out_height = out[3], problem.out_width = out[4];
  const auto &kernel = attrs.pool_size, &stride = attrs.strides, &dilation = attrs.dilation;
  problem.kernel_depth = kernel[0], problem.kernel_height = kernel[1], problem.kernel_width = kernel[2];
  problem.stride_depth = stride[0], problem.stride_height = stride[1], problem.stride_width = stride[2];
  problem.dilation_depth = dilation[0], problem.dilation_height = dilation[1], problem.dilation_width = dilation[2];
  problem.pad_front = pad[0], problem.pad_top = pad[1], problem.pad_left = pad[2];
  problem.pad_back = pad[3], problem.pad_bottom = pad[4], problem.pad_right = pad[5];
  if constexpr (kind == topi::PoolKind::kAverage) problem.count_include_pad = attrs.count_include_pad;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, static_cast<double>(data[0] * data[1] * (blocked ? data[5] : 1)), p.target);
  choice->emit = [=, anchor = p.anchor, input = static_cast<size_t>(p.input_index(0))](
                     const GroupScope& scope, const topi::KernelContext& context) {
    auto emit = blocked ? topi::pool_nchwc : topi::pool_nchw;
    return emit(problem, scope.input(input), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

// Windows over (N, C/v, H, W, v) or (N, C, H, W).
template <class A, topi::PoolKind kind>
std::shared_ptr<Choice> pool2d(const Problem& p) {
  const DataType dtype = p.arg_dtype(0);
  if (!p.anchor.direct() || dtype.bits < 8 || !(dtype.is_float() || dtype.is_integral())) return nullptr;
  const auto& attrs = p.attrs<A>();
  auto data = p.arg_shape(0), out = p.out_shape();
  bool blocked = data.size() == 5;
  if (!blocked && (data.size() != 4 || attrs.layout != "NCHW")) return nullptr;
  Pads pad = pads(attrs.padding);
  topi::PoolProblem problem;
  problem.kind = kind;
  problem.in_height = data[2];
  problem.in_width = data[3];
  problem.out_height = out[2];
  problem.out_width = out[3];
  problem.kernel_height = attrs.pool_size[0];
  problem.kernel_width = attrs.pool_size[1];
  problem.stride_height = attrs.strides[0];
  problem.stride_width = attrs.strides[1];
  problem.dilation_height = attrs.dilation[0];
  problem.dilation_width = attrs.dilation[1];
  problem.pad_top = pad.top;
  problem.pad_left = pad.left;
  problem.pad_bottom = pad.bottom;
  problem.pad_right = pad.right;
  if constexpr (kind == topi::PoolKind::kAverage) problem.count_include_pad = attrs.count_include_pad;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, static_cast<double>(data[0] * data[1] * (blocked ? data[4] : 1)), p.target);
  Anchor anchor = p.anchor;
  auto input = static_cast<size_t>(p.input_index(0));
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    auto emit = blocked ? topi::pool_nchwc : topi::pool_nchw;
    return emit(problem, scope.input(input), scope.output(), scope.epilogue(anchor), context);
  };
  return choice;
}

// Over (N, C, W): as rows of one line.
template <class A, topi::PoolKind kind>
std::shared_ptr<Choice> pool1d(const Problem& p) {
  const DataType dtype = p.arg_dtype(0);
  const auto& attrs = p.attrs<A>();
  if (!p.anchor.direct() || dtype.bits < 8 || !(dtype.is_float() || dtype.is_integral()) || attrs.layout != "NCW")
    return nullptr;
  const auto data = p.arg_shape(0), out = p.out_shape();
  topi::PoolProblem problem;
  problem.kind = kind;
  problem.in_height = problem.out_height = 1;
  problem.in_width = data[2];
  problem.out_width = out[2];
  problem.kernel_width = attrs.pool_size[0];
  problem.stride_width = attrs.strides[0];
  problem.dilation_width = attrs.dilation[0];
  problem.pad_left = attrs.padding[0];
  problem.pad_right = attrs.padding.back();
  if constexpr (kind == topi::PoolKind::kAverage) problem.count_include_pad = attrs.count_include_pad;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, static_cast<double>(data[0] * data[1]), p.target);
  choice->emit = [=, anchor = p.anchor, input = static_cast<size_t>(p.input_index(0))](
                     const GroupScope& scope, const topi::KernelContext& context) {
    auto with_line = [](topi::View view) {
      view.shape.insert(view.shape.begin() + 2, 1);
      view.strides.insert(view.strides.begin() + 2, 0);
      for (auto* halo : {&view.halo_before, &view.halo_after})
        if (!halo->empty()) halo->insert(halo->begin() + 2, 0);
      return view;
    };
    auto epilogue = [inner = scope.epilogue(anchor)](tir::PrimExpr value, topi::Index index,
                                                     const tir::PrimExpr& mask) {
      index.erase(index.begin() + 2);
      return inner(std::move(value), index, mask);
    };
    return topi::pool_nchw(problem, with_line(scope.input(input)), with_line(scope.output()), epilogue, context);
  };
  return choice;
}

template <topi::PoolKind kind>
std::shared_ptr<Choice> global_pool2d(const Problem& p) {
  if (!p.anchor.direct() || p.arg_dtype(0) != kFloat32) return nullptr;
  auto data = p.arg_shape(0);
  Anchor anchor = p.anchor;
  auto input = static_cast<size_t>(p.input_index(0));
  auto choice = std::make_shared<Choice>();
  if (data.size() == 5) {
    choice->cost.bytes = static_cast<double>(data[0] * data[1] * data[2] * data[3] * data[4]) * 4;
    choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
      return topi::global_pool_nchwc(kind, scope.input(input), scope.output(), scope.epilogue(anchor), context);
    };
  } else {
    topi::ReduceProblem problem;
    problem.kind = kind == topi::PoolKind::kMax ? topi::ReduceKind::kMax : topi::ReduceKind::kMean;
    problem.axes = {2, 3};
    problem.shape = data;
    choice->cost = topi::estimate(problem, p.target);
    choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
      topi::View x = scope.input(input);
      topi::ReduceProblem whole = problem;
      if (x.strides[2] == data[3] && x.strides[3] == 1) {  // rows without gaps are one
        x.shape = whole.shape = {data[0], data[1], 1, data[2] * data[3]};
        x.halo_before.clear(), x.halo_after.clear();
      }
      return topi::reduce(whole, topi::view_operand(x), scope.output(), scope.epilogue(anchor), context);
    };
  }
  choice->cost.microseconds = choice->cost.bytes / (p.target.l2_gbps * 1e3);
  return choice;
}

constexpr Implementation kConvImplementations[] = {
    {"nn.contrib_conv2d_NCHWc", "conv2d_nchwc.direct", 10, direct_conv2d},
    {"nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd2", 10, winograd_conv2d<2>},
    {"nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd3", 10, winograd_conv2d<3>},
    {"nn.contrib_conv2d_NCHWc", "conv2d_nchwc.winograd4", 10, winograd_conv2d<4>},
    {"nn.contrib_depthwise_conv2d_NCHWc", "depthwise_conv2d_nchwc.direct", 10, depthwise_conv2d},
    {"nn.conv1d", "conv1d.direct", 5, plain_conv<Conv1DAttrs>},
    {"nn.conv2d", "conv2d.direct", 5, plain_conv<Conv2DAttrs>},
    {"nn.conv3d", "conv3d.direct", 5, plain_conv<Conv3DAttrs>},
    {"nn.conv3d", "conv3d_ncdhwc.direct", 10, direct_conv3d},
    {"nn.conv3d", "conv3d_ncdhwc.depthwise", 10, depthwise_conv3d},
    {"nn.conv3d", "conv3d_ncdhwc.winograd2", 10, winograd_conv3d<2>},
    {"nn.conv3d", "conv3d_ncdhwc.winograd3", 10, winograd_conv3d<3>},
    {"nn.conv3d", "conv3d_ncdhwc.winograd4", 10, winograd_conv3d<4>},
    {"nn.avg_pool1d", "avg_pool1d", 10, pool1d<AvgPool1DAttrs, topi::PoolKind::kAverage>},
    {"nn.avg_pool2d", "avg_pool2d", 10, pool2d<AvgPool2DAttrs, topi::PoolKind::kAverage>},
    {"nn.avg_pool3d", "avg_pool3d", 10, pool3d<AvgPool3DAttrs, topi::PoolKind::kAverage>},
    {"nn.max_pool3d", "max_pool3d", 10, pool3d<MaxPool3DAttrs, topi::PoolKind::kMax>},
    {"nn.global_avg_pool2d", "global_avg_pool2d", 10, global_pool2d<topi::PoolKind::kAverage>},
    {"nn.global_max_pool2d", "global_max_pool2d", 10, global_pool2d<topi::PoolKind::kMax>},
    {"nn.max_pool1d", "max_pool1d", 10, pool1d<MaxPool1DAttrs, topi::PoolKind::kMax>},
    {"nn.max_pool2d", "max_pool2d", 10, pool2d<MaxPool2DAttrs, topi::PoolKind::kMax>},
};

}  // namespace

std::span<const Implementation> conv_implementations() { return kConvImplementations; }

}  // namespace tilewright::lower
