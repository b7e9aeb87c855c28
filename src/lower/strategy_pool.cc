// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include "topi/pool.h"

#include "lower/conv_problem.h"
#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "topi/reduce.h"

namespace tilewright::lower {
namespace {
using namespace relay;

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
  const Pads pad = pads_of(attrs.padding);
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

// Over (N, C, W), as images of one row.
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
      if (x.strides[2] == data[3] && x.strides[3] == 1) {  // rows without gaps are merged
        x.shape = whole.shape = {data[0], data[1], 1, data[2] * data[3]};
        x.halo_before.clear(), x.halo_after.clear();
      }
      return topi::reduce(whole, topi::view_operand(x), scope.output(), scope.epilogue(anchor), context);
    };
  }
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
  return choice;
}

constexpr auto kAverage = topi::PoolKind::kAverage, kMax = topi::PoolKind::kMax;
constexpr Implementation kPoolImplementations[] = {
    fixed<pool1d<AvgPool1DAttrs, kAverage>>("nn.avg_pool1d", "avg_pool1d", 10),
    fixed<pool2d<AvgPool2DAttrs, kAverage>>("nn.avg_pool2d", "avg_pool2d", 10),
    fixed<pool3d<AvgPool3DAttrs, kAverage>>("nn.avg_pool3d", "avg_pool3d", 10),
    fixed<pool3d<MaxPool3DAttrs, kMax>>("nn.max_pool3d", "max_pool3d", 10),
    fixed<global_pool2d<kAverage>>("nn.global_avg_pool2d", "global_avg_pool2d", 10),
    fixed<global_pool2d<kMax>>("nn.global_max_pool2d", "global_max_pool2d", 10),
    fixed<pool1d<MaxPool1DAttrs, kMax>>("nn.max_pool1d", "max_pool1d", 10),
    fixed<pool2d<MaxPool2DAttrs, kMax>>("nn.max_pool2d", "max_pool2d", 10),
};

}  // namespace

std::span<const Implementation> pool_implementations() { return kPoolImplementations; }

}  // namespace tilewright::lower
