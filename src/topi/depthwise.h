// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on channel-blocked activations: channels in lanes, taps in registers, adjacent output pixels as
// accumulators; padding is the input's halo.
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

// Which weights stay in registers: all of a small window for a row of tiles; a row of the window, for a tile; or one
// tap at a time.
enum class HeldTaps { kAll, kRow, kOne };
inline std::span<const char* const> config_names(HeldTaps) {
  static constexpr const char* kNames[] = {"all", "row", "one"};
  return kNames;
}

struct DepthwiseConfig {
  int tile_width = 7;  // adjacent output pixels accumulated together
  HeldTaps held = HeldTaps::kAll;
  int tile_height = 1;  // rows of them
  bool operator==(const DepthwiseConfig&) const = default;
  static constexpr auto fields() {
    using C = DepthwiseConfig;
    return std::tuple{field("tile_width", &C::tile_width), field("held", &C::held),
                      field("tile_height", &C::tile_height)};
  }
};

// Fastest first by the cost model; at most `most`.
std::vector<DepthwiseConfig> configs(const DepthwiseProblem& problem, const Target& target, size_t most);
// Whether a kernel exists for this problem and configuration.
bool fits(const DepthwiseProblem& problem, const DepthwiseConfig& config);
DepthwiseConfig default_config(const DepthwiseProblem& problem, const Target& target);
Cost estimate(const DepthwiseProblem& problem, const DepthwiseConfig& config, const Target& target);

// data: (N, ceil(C/v), [D,] H, W, v), halo >= padding except along the depth.
// weights: (ceil(C/v), kd*kh, kw, v) contiguous (pack_depthwise_weights).
// out: (N, ceil(C/v), [OD,] OH, OW, v). Any strides with v contiguous.
tir::Stmt depthwise_conv2d_nchwc(const DepthwiseProblem& problem, const DepthwiseConfig& config, const View& data,
                                 const View& weights, const View& out, const Epilogue& epilogue,
                                 const KernelContext& context);

}  // namespace tilewright::topi
