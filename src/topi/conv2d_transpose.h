// SPDX-License-Identifier: Apache-2.0
// Transposed convolution on channel-blocked activations, never by inserting zeros: each phase of the stride is a direct
// convolution over the taps that reach it, storing every stride-th pixel.
#pragma once
#include "base/tensor.h"
#include "topi/conv2d_nchwc.h"
#include "topi/depthwise.h"

namespace tilewright::topi {

struct Conv2dTransposeProblem {
  int64_t batch = 1, in_channels = 0, out_channels = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;  // output padding is in the output's extents
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t pad_top = 0, pad_left = 0;  // removed from the output
  // Volumes, as in Conv2dProblem.
  int64_t in_depth = 1, out_depth = 1, kernel_depth = 1, stride_depth = 1, pad_front = 0;
  int64_t groups = 1;  // as in Conv2dProblem
  int lanes = 16;
};

// Each phase with taps and pixels is a convolution, or a depthwise one, with a configuration of its own. The fastest of
// them by the cost model, then others; at most `most`.
using PhaseConfigs = std::vector<Conv2dConfig>;
using DepthwisePhaseConfigs = std::vector<DepthwiseConfig>;
std::vector<PhaseConfigs> configs(const Conv2dTransposeProblem& problem, const Target& target, size_t most);
std::vector<DepthwisePhaseConfigs> depthwise_configs(const Conv2dTransposeProblem& problem, const Target& target,
                                                     size_t most);
// Whether a kernel of these configurations can be made for the problem.
bool fits(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs);
bool fits(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs);
Cost estimate(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs, const Target& target);
Cost estimate(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs, const Target& target);
HaloNeed halo_need(const Conv2dTransposeProblem& problem);
// Each channel for itself: the phases are depthwise convolutions, whatever the channels.
bool is_depthwise(const Conv2dTransposeProblem& problem);
// (IC, OC/groups, [kd,] kh, kw) -> one flat tensor: phase after phase, each as pack_conv2d_weights (or
// pack_depthwise_weights) lays it out.
Tensor pack_conv2d_transpose_weights(const Tensor& weights, const Conv2dTransposeProblem& problem);

// Views as for conv2d_nchwc.
tir::Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& problem, const PhaseConfigs& configs, const View& data,
                                 const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);
tir::Stmt conv2d_transpose_nchwc(const Conv2dTransposeProblem& problem, const DepthwisePhaseConfigs& configs,
                                 const View& data, const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);

// Few output channels (heads that paint a map): the phases of all channels share the lanes of one vector, and rows of a
// plain (N, OC, H, W) output are put together by shuffles.
bool paints_plain_rows(const Conv2dTransposeProblem& problem);
HaloNeed plain_rows_halo(const Conv2dTransposeProblem& problem);
// (IC, OC, kh, kw) -> (taps of a phase, ceil(IC/v) * v, phases of all channels rounded up to a power of two).
Tensor pack_plain_rows_weights(const Tensor& weights, const Conv2dTransposeProblem& problem);
// data as for conv2d_nchwc, out: (N, OC, OH, OW).
tir::Stmt conv2d_transpose_plain_rows(const Conv2dTransposeProblem& problem, const View& data, const View& weights,
                                      const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
