// SPDX-License-Identifier: Apache-2.0
#include "topi/conv2d_transpose.h"

#include <algorithm>

#include "topi/depthwise.h"
#include "topi/pack.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// One phase along one axis: outputs first, first + stride, ... (`count` of them) use `taps` taps, the j-th being kernel
// element phase + stride * (taps - 1 - j); `pad` shifts the input and may be negative.
struct AxisPhase {
  int64_t phase, first, count, taps, pad;
};

std::vector<AxisPhase> axis_phases(int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<AxisPhase> phases;
  for (int64_t phase = 0; phase < stride; ++phase) {
    // Output o is position o + pad of the uncropped result; its phase is that position modulo the stride.
    int64_t first = ((phase - pad) % stride + stride) % stride;
    int64_t count = first < out ? ceil_div(out - first, stride) : 0;
    int64_t taps = phase < kernel ? ceil_div(kernel - phase, stride) : 0;
    phases.push_back({phase, first, count, taps, taps - 1 - (first + pad) / stride});
  }
  return phases;
}

struct Phase {
  AxisPhase d, h, w;
  int64_t weights;  // offset of its packed weights
  int64_t taps() const { return d.taps * h.taps * w.taps; }
  int64_t pixels() const { return d.count * h.count * w.count; }
};

std::vector<Phase> phases_of(const Conv2dTransposeProblem& p) {
  std::vector<Phase> phases;
  const int64_t blocks =
      p.groups * ceil_div(p.out_channels / p.groups, p.lanes) * ceil_div(p.in_channels / p.groups, p.lanes);
  const int64_t tap = is_depthwise(p) ? round_up(p.in_channels, p.lanes) : blocks * p.lanes * p.lanes;
  int64_t offset = 0;
  for (const AxisPhase& d : axis_phases(p.out_depth, p.kernel_depth, p.stride_depth, p.pad_front))
    for (const AxisPhase& h : axis_phases(p.out_height, p.kernel_height, p.stride_height, p.pad_top))
      for (const AxisPhase& w : axis_phases(p.out_width, p.kernel_width, p.stride_width, p.pad_left)) {
        phases.push_back({d, h, w, offset});
        offset += phases.back().taps() * tap;
      }
  return phases;
}

Conv2dProblem as_conv(const Conv2dTransposeProblem& p, const Phase& phase) {
  Conv2dProblem c;
  c.batch = p.batch, c.in_channels = p.in_channels, c.out_channels = p.out_channels;
  c.in_height = p.in_height, c.in_width = p.in_width, c.out_height = phase.h.count, c.out_width = phase.w.count;
  c.kernel_height = phase.h.taps, c.kernel_width = phase.w.taps;
  c.pad_top = phase.h.pad, c.pad_left = phase.w.pad;
  c.in_depth = p.in_depth, c.out_depth = phase.d.count, c.kernel_depth = phase.d.taps, c.pad_front = phase.d.pad;
  c.groups = p.groups, c.lanes = p.lanes;
  return c;
}

DepthwiseProblem as_depthwise(const Conv2dTransposeProblem& p, const Phase& phase) {
  const Conv2dProblem c = as_conv(p, phase);
  DepthwiseProblem d;
  d.batch = c.batch, d.channels = c.in_channels, d.lanes = c.lanes;
  d.in_height = c.in_height, d.in_width = c.in_width, d.out_height = c.out_height, d.out_width = c.out_width;
  d.kernel_height = c.kernel_height, d.kernel_width = c.kernel_width, d.pad_top = c.pad_top, d.pad_left = c.pad_left;
  d.in_depth = c.in_depth, d.out_depth = c.out_depth, d.kernel_depth = c.kernel_depth, d.pad_front = c.pad_front;
  return d;
}

}  // namespace

bool is_depthwise(const Conv2dTransposeProblem& p) {
  return p.groups > 1 && p.groups == p.in_channels && p.groups == p.out_channels;
}

namespace {

bool is_empty(const Phase& phase) { return phase.taps() == 0 || phase.pixels() == 0; }

// Adapts one phase's tile to another phase, which may be smaller.
Conv2dConfig fitted(Conv2dConfig c, const Phase& phase) {
  if (phase.h.count % c.tile_height != 0) {
    c.tile_width = std::max(1, c.tile_width * c.tile_height);
    c.tile_height = 1;
  }
  c.tile_width = static_cast<int>(std::min<int64_t>(c.tile_width, phase.w.count));
  return c;
}

}  // namespace

std::vector<PhaseConfigs> configs(const Conv2dTransposeProblem& p, const Target& target, size_t most) {
  const std::vector<Phase> phases = phases_of(p);
  Conv2dProblem largest;
  int64_t work_of_largest = -1;
  for (const Phase& phase : phases)
    if (int64_t work = phase.pixels() * std::max<int64_t>(1, phase.taps()); work > work_of_largest)
      largest = as_conv(p, phase), work_of_largest = work;
  std::vector<Conv2dConfig> tiles = configs(largest, target, false, most);
  if (std::any_of(phases.begin(), phases.end(),
                  [&](const Phase& phase) { return phase.h.count % tiles[0].tile_height != 0; })) {
    largest.out_height = 1;
    tiles = configs(largest, target, false, most);
  }
  std::vector<PhaseConfigs> out;
  for (const Conv2dConfig& tile : tiles) {
    PhaseConfigs each;
    for (const Phase& phase : phases)
      if (!is_empty(phase)) each.push_back(fitted(tile, phase));
    if (std::find(out.begin(), out.end(), each) == out.end()) out.push_back(std::move(each));
  }
  return out;
}

std::vector<DepthwisePhaseConfigs> depthwise_configs(const Conv2dTransposeProblem& p, const Target& target,
                                                     size_t most) {
  std::vector<DepthwisePhaseConfigs> out;
  for (const Phase& phase : phases_of(p)) {
    if (is_empty(phase)) continue;
    const auto candidates = configs(as_depthwise(p, phase), target, most);
    if (out.empty()) out.resize(candidates.size());
    for (size_t i = 0; i < out.size(); ++i) out[i].push_back(candidates[std::min(i, candidates.size() - 1)]);
  }
  if (out.empty()) out.emplace_back();
  return out;
}

namespace {

// Calls visit(phase, configuration); false if their numbers differ.
template <class C, class F>
bool each_phase(const Conv2dTransposeProblem& p, const std::vector<C>& configs, F visit) {
  size_t next = 0;
  for (const Phase& phase : phases_of(p)) {
    if (is_empty(phase)) continue;
    if (next == configs.size() || !visit(phase, configs[next++])) return false;
  }
  return next == configs.size();
}

}  // namespace

bool fits(const Conv2dTransposeProblem& p, const PhaseConfigs& configs) {
  return each_phase(
      p, configs, [&](const Phase& phase, const Conv2dConfig& c) { return fits(as_conv(p, phase), c) && !c.flatten; });
}
bool fits(const Conv2dTransposeProblem& p, const DepthwisePhaseConfigs& configs) {
  return each_phase(p, configs,
                    [&](const Phase& phase, const DepthwiseConfig& c) { return fits(as_depthwise(p, phase), c); });
}

namespace {

template <class C, class AsProblem>
Cost sum_of_phases(const Conv2dTransposeProblem& p, const std::vector<C>& configs, const Target& target,
                   AsProblem as_problem) {
  Cost total;
  each_phase(p, configs, [&](const Phase& phase, const C& config) {
    const Cost cost = estimate(as_problem(p, phase), config, target);
    total.flops += cost.flops, total.bytes += cost.bytes, total.microseconds += cost.microseconds;
    return true;
  });
  return total;
}

}  // namespace

Cost estimate(const Conv2dTransposeProblem& p, const PhaseConfigs& configs, const Target& target) {
  return sum_of_phases(p, configs, target, as_conv);
}
Cost estimate(const Conv2dTransposeProblem& p, const DepthwisePhaseConfigs& configs, const Target& target) {
  return sum_of_phases(p, configs, target, as_depthwise);
}

HaloNeed halo_need(const Conv2dTransposeProblem& p) {
  HaloNeed need;
  for (const Phase& phase : phases_of(p)) {
    if (phase.taps() == 0 || phase.pixels() == 0) continue;
    HaloNeed h = halo_need(as_conv(p, phase));
    need.top = std::max(need.top, h.top), need.left = std::max(need.left, h.left);
    need.bottom = std::max(need.bottom, h.bottom), need.right = std::max(need.right, h.right);
  }
  return need;
}

Tensor pack_conv2d_transpose_weights(const Tensor& weights, const Conv2dTransposeProblem& p) {
  const int64_t ic = p.in_channels / p.groups, oc = p.out_channels / p.groups;
  const size_t element = weights.dtype().bytes();
  std::vector<Tensor> parts;
  int64_t total = 0;
  for (const Phase& phase : phases_of(p)) {
    if (phase.taps() == 0) continue;
    // The phase's taps as an ordinary (OC, IC/groups, kd*kh, kw) kernel.
    Tensor kernel(weights.dtype(), {p.out_channels, ic, phase.d.taps * phase.h.taps, phase.w.taps});
    std::byte* to = kernel.mutable_raw();
    for (int64_t o = 0; o < p.out_channels; ++o)
      for (int64_t i = 0; i < ic; ++i)
        for (int64_t z = 0; z < phase.d.taps; ++z)
          for (int64_t y = 0; y < phase.h.taps; ++y)
            for (int64_t x = 0; x < phase.w.taps; ++x, to += element) {
              int64_t kd = phase.d.phase + p.stride_depth * (phase.d.taps - 1 - z);
              int64_t kh = phase.h.phase + p.stride_height * (phase.h.taps - 1 - y);
              int64_t kw = phase.w.phase + p.stride_width * (phase.w.taps - 1 - x);
              int64_t row = ((o / oc * ic + i) * oc + o % oc) * p.kernel_depth + kd;
              __builtin_memcpy(to, weights.raw() + ((row * p.kernel_height + kh) * p.kernel_width + kw) * element,
                               element);
            }
    parts.push_back(is_depthwise(p) ? pack_depthwise_weights(kernel, p.lanes)
                                    : pack_conv2d_weights(kernel, p.lanes, p.lanes));
    total += parts.back().size();
  }
  Tensor packed(weights.dtype(), {total});
  std::byte* to = packed.mutable_raw();
  for (const Tensor& part : parts) {
    __builtin_memcpy(to, part.raw(), part.bytes());
    to += part.bytes();
  }
  return packed;
}

namespace {

// A phase's pixels of the result, as a strided view.
struct PhaseOutput {
  View view;
  Epilogue epilogue;
};
PhaseOutput output_of(const Conv2dTransposeProblem& p, const Phase& phase, const View& out, const Epilogue& epilogue) {
  View part = out;
  const size_t deep = out.rank() == 6 ? 1 : 0;  // without a depth, height is dimension 2
  auto every = [&](size_t axis, const AxisPhase& at, int64_t stride) {
    part.shape[axis] = at.count, part.offset += at.first * out.strides[axis], part.strides[axis] *= stride;
  };
  if (deep) every(2, phase.d, p.stride_depth);
  every(2 + deep, phase.h, p.stride_height);
  every(3 + deep, phase.w, p.stride_width);
  auto placed = [&p, &epilogue, phase, deep](const PrimExpr& value, const Index& index, const PrimExpr& mask) {
    Index real = index;
    if (deep) real[2] = index[2] * p.stride_depth + phase.d.first;
    real[2 + deep] = index[2 + deep] * p.stride_height + phase.h.first;
    real[3 + deep] = index[3 + deep] * p.stride_width + phase.w.first;
    return epilogue(value, real, mask);
  };
  return {std::move(part), placed};
}

// If the stride exceeds the kernel, some pixels receive no tap.
Stmt without_taps(const Conv2dTransposeProblem& p, const PhaseOutput& out, DataType dtype,
                  const KernelContext& context) {
  const DataType vector = accumulator_dtype(dtype).with_lanes(p.lanes);
  const std::vector<int64_t> units(out.view.shape.begin(), out.view.shape.end() - 1);
  return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
    Index index = unravel(unit, units);
    index.push_back(make_int(0));
    return out.view.store(index, out.epilogue(make_const(vector, 0), index, {}));
  });
}

template <class Kernel>
Stmt phase_by_phase(const Conv2dTransposeProblem& p, const View& data, const View& weights, const View& out,
                    const Epilogue& epilogue, const KernelContext& context, Kernel kernel) {
  std::vector<Stmt> body;
  size_t next = 0;
  for (const Phase& phase : phases_of(p)) {
    if (phase.pixels() == 0) continue;
    const PhaseOutput part = output_of(p, phase, out, epilogue);
    View own = weights;
    own.offset += phase.weights;
    body.push_back(phase.taps() == 0 ? without_taps(p, part, data.dtype(), context) : kernel(phase, next++, own, part));
  }
  return seq(std::move(body));
}

}  // namespace

Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& p, const PhaseConfigs& configs, const View& data,
                            const View& weights, const View& out, const Epilogue& epilogue,
                            const KernelContext& context) {
  return phase_by_phase(p, data, weights, out, epilogue, context,
                        [&](const Phase& phase, size_t i, const View& own, const PhaseOutput& part) {
                          return conv2d_nchwc(as_conv(p, phase), configs[i], data, own, part.view, part.epilogue,
                                              context);
                        });
}

Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& p, const DepthwisePhaseConfigs& configs, const View& data,
                            const View& weights, const View& out, const Epilogue& epilogue,
                            const KernelContext& context) {
  return phase_by_phase(p, data, weights, out, epilogue, context,
                        [&](const Phase& phase, size_t i, const View& own, const PhaseOutput& part) {
                          return depthwise_conv2d_nchwc(as_depthwise(p, phase), configs[i], data, own, part.view,
                                                        part.epilogue, context);
                        });
}

}  // namespace tilewright::topi
