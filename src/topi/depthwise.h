// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on channel-blocked activations: channels in lanes, taps held in registers, a run of output
// pixels accumulating side by side; padding is the input's halo.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct DepthwiseProblem {
  int64_t batch = 1, channels = 0;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t kernel_height = 3, kernel_width = 3, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  // Volumes, as in Conv2dProblem.
  int64_t in_depth = 1, out_depth = 1, kernel_depth = 1, stride_depth = 1, dilation_depth = 1, pad_front = 0;
  int lanes = 16;
};

// Which weights stay in registers: all of a small window for a row of tiles, a row of the window while a tile's pixels
// pass it, or one tap at a time.
enum class HeldTaps { kAll, kRow, kOne };
inline std::span<const char* const> config_names(HeldTaps) {
  static constexpr const char* kNames[] = {"all", "row", "one"};
  return kNames;
}

struct DepthwiseConfig {
  int tile_width = 7;  // output pixels accumulated side by side
  HeldTaps held = HeldTaps::kAll;
  bool operator==(const DepthwiseConfig&) const = default;
  static constexpr auto fields() {
    return std::tuple{field("tile_width", &DepthwiseConfig::tile_width), field("held", &DepthwiseConfig::held)};
  }
};

// The fastest by the cost model, then the others; at most `most`.
std::vector<DepthwiseConfig> configs(const DepthwiseProblem& problem, const Target& target, size_t most);
// Whether a kernel of this configuration can be made for the problem.
bool fits(const DepthwiseProblem& problem, const DepthwiseConfig& config);
DepthwiseConfig default_config(const DepthwiseProblem& problem, const Target& target);
Cost estimate(const DepthwiseProblem& problem, const DepthwiseConfig& config, const Target& target);

// data: (N, ceil(C/v), [D,] H, W, v), halo >= padding but along the depth. weights: (ceil(C/v), kd*kh, kw, v)
// contiguous (pack_depthwise_weights). out: (N, ceil(C/v), [OD,] OH, OW, v). Every strided layout with v contiguous
// will do.
tir::Stmt depthwise_conv2d_nchwc(const DepthwiseProblem& problem, const DepthwiseConfig& config, const View& data,
                                 const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);

}  // namespace tilewright::topi
