// SPDX-License-Identifier: Apache-2.0
// Grouped convolution on channel-blocked activations in which a block of channels holds one group or several: each
// output lane gets its own group's input channel by a shuffle of the pixel's block; a shuffled pixel is used by all
// taps of a row that it meets. Groups of 12, which cross block borders, and groups of a whole block read it from
// memory. Padding is the input's halo.
#pragma once
#include "topi/conv2d_nchwc.h"

namespace tilewright::topi {

struct NarrowGroupsConfig {
  int tile_height = 1, tile_width = 7;  // output pixels of a register tile
  int channels = 1;                     // input channels of a group whose weights stay in registers for a row of pixels
  bool operator==(const NarrowGroupsConfig&) const = default;
  static constexpr auto fields() {
    using C = NarrowGroupsConfig;
    return std::tuple{field("tile_height", &C::tile_height), field("tile_width", &C::tile_width),
                      field("channels", &C::channels)};
  }
};

// Whether the kernel supports these numbers of channels per group: a block of `lanes` holds whole groups, or parts of
// two.
bool is_narrow_group(int64_t in, int64_t out, int64_t lanes);

// Fastest first by the cost model; at most `most`.
std::vector<NarrowGroupsConfig> narrow_groups_configs(const Conv2dProblem& problem, const Target& target, size_t most);
bool fits(const Conv2dProblem& problem, const NarrowGroupsConfig& config);
Cost estimate(const Conv2dProblem& problem, const NarrowGroupsConfig& config, const Target& target);

// data: (N, ceil(C/v), H, W, v), halo >= halo_need. weights: (ceil(C/v), 1, kh, kw, channels per group, v) contiguous;
// each lane has the weights of its output channel. out: (N, ceil(C/v), OH, OW, v).
tir::Stmt narrow_groups_conv2d_nchwc(const Conv2dProblem& problem, const NarrowGroupsConfig& config, const View& data,
                                     const View& weights, const View& out, const Epilogue& epilogue,
                                     const KernelContext& context);

}  // namespace tilewright::topi
