// SPDX-License-Identifier: Apache-2.0
// Transposed convolution on channel-blocked activations without inserted zeros: each phase of the stride is a direct
// convolution over the taps that reach it, and stores every stride-th pixel.
#pragma once
#include "base/tensor.h"
#include "topi/conv2d_nchwc.h"
#include "topi/depthwise.h"

namespace tilewright::topi {

struct Conv2dTransposeProblem {
  int64_t batch = 1, in_channels = 0, out_channels = 0;
  // output padding is included in the output's extents
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t pad_top = 0, pad_left = 0;  // cropped from the output
  // Volumes, as in Conv2dProblem.
  int64_t in_depth = 1, out_depth = 1, kernel_depth = 1, stride_depth = 1, pad_front = 0;
  int64_t groups = 1;  // as in Conv2dProblem
  int lanes = 16;
};

// Each phase that has taps and pixels is a (depthwise) convolution with its own configuration. Fastest first by the
// cost model, at most `most`.
using PhaseConfigs = std::vector<Conv2dConfig>;
using DepthwisePhaseConfigs = std::vector<DepthwiseConfig>;
std::vector<PhaseConfigs> configs(const Conv2dTransposeProblem& problem, const Target& target, size_t most);
std::vector<DepthwisePhaseConfigs> depthwise_configs(const Conv2dTransposeProblem& problem, const Target& target,
                                                     size_t most);
// Whether a kernel exists for this problem and these configurations.
bool fits(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs);
bool fits(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs);
Cost estimate(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs, const Target& target);
Cost estimate(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs, const Target& target);
HaloNeed halo_need(const Conv2dTransposeProblem& problem);
// Depthwise: all phases are depthwise convolutions.
bool is_depthwise(const Conv2dTransposeProblem& problem);
// (IC, OC/groups, [kd,] kh, kw) -> one flat tensor of all phases, each packed by pack_conv2d_weights (or
// pack_depthwise_weights).
Tensor pack_conv2d_transpose_weights(const Tensor& weights, const Conv2dTransposeProblem& problem);

// Views as for conv2d_nchwc.
tir::Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs, const View& data,
                                 const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);
tir::Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs,
                                 const View& data, const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);

// Output heads with few channels: the phases of all channels share one vector, and rows of a plain (N, OC, H, W) output
// are assembled by shuffles.
bool paints_plain_rows(const Conv2dTransposeProblem& problem);
HaloNeed plain_rows_halo(const Conv2dTransposeProblem& problem);
// (IC, OC, kh, kw) -> (taps per phase, ceil(IC/v) * v, phases of all channels rounded up to a power of two).
Tensor pack_plain_rows_weights(const Tensor& weights, const Conv2dTransposeProblem& problem);
// data as for conv2d_nchwc, out: (N, OC, OH, OW).
tir::Stmt conv2d_transpose_plain_rows(const Conv2dTransposeProblem& problem, const View& data, const View& weights,
                                      const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
