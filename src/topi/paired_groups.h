// SPDX-License-Identifier: Apache-2.0
// Grouped convolution whose groups end in half a channel block (24, 40, 56 of 16): pairs of groups fill whole blocks.
// The middle block belongs to both; each half uses its own group's input channel, so that all operations are on whole
// vectors. Padding is the input's halo.
#pragma once
#include "base/tensor.h"
#include "topi/conv2d_nchwc.h"

namespace tilewright::topi {

struct PairedGroupsConfig {
  int tile_width = 7;  // adjacent output pixels of a register tile
  int cols = 3;        // output channel blocks of a register tile
  bool operator==(const PairedGroupsConfig&) const = default;
  static constexpr auto fields() {
    using C = PairedGroupsConfig;
    return std::tuple{field("tile_width", &C::tile_width), field("cols", &C::cols)};
  }
};

// Whether the kernel supports this problem, which conv2d_nchwc computes in half blocks (Conv2dProblem::split).
bool has_paired_groups(const Conv2dProblem& problem);
// Fastest first by the cost model; at most `most`.
std::vector<PairedGroupsConfig> paired_groups_configs(const Conv2dProblem& problem, const Target& target, size_t most);
bool fits(const Conv2dProblem& problem, const PairedGroupsConfig& config);
Cost estimate(const Conv2dProblem& problem, const PairedGroupsConfig& config, const Target& target);

// Packed weights: (pairs, kh, kw, input channels of a group, output blocks of a pair, lanes of two halves), from those
// of conv2d_nchwc for half blocks. If the last pair has one group only, the other half of its middle block is zero.
std::vector<int64_t> paired_weight_shape(const Conv2dProblem& problem);
Tensor pack_paired_weights(const Tensor& halves, const Conv2dProblem& problem);

// data: (N, ceil(C/v), H, W, v), halo >= halo_need, v twice the problem's lanes. out: (N, ceil(OC/v), OH, OW, v).
tir::Stmt paired_groups_conv2d_nchwc(const Conv2dProblem& problem, const PairedGroupsConfig& config, const View& data,
                                     const View& weights, const View& out, const Epilogue& epilogue,
                                     const KernelContext& context);

}  // namespace tilewright::topi
