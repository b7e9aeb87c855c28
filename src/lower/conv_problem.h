// SPDX-License-Identifier: Apache-2.0
// Convolutions over channel blocks as problem descriptions for the kernel templates.
#pragma once
#include "lower/spatial_halo.h"
#include "lower/strategy.h"
#include "topi/conv2d_nchwc.h"
#include "topi/depthwise.h"

namespace tilewright::lower {

struct Pads {
  int64_t top, left, bottom, right;
};
// Expands 1, 2 or 4 values: all sides, (height, width), or (top, left, bottom, right).
Pads pads_of(const std::vector<int64_t>& padding);

// nn.contrib_conv2d_NCHWc and nn.contrib_depthwise_conv2d_NCHWc.
topi::Conv2dProblem conv2d_problem(const Problem& p);
topi::DepthwiseProblem depthwise2d_problem(const Problem& p);

// nn.conv3d over channel blocks as AlterOpLayout makes it; its weights are still in the model's layout.
bool is_blocked_volume(const Problem& p);
topi::Conv2dProblem volume_problem(const Problem& p);
bool is_depthwise_volume(const topi::Conv2dProblem& volume);
topi::DepthwiseProblem depthwise_volume_problem(const topi::Conv2dProblem& volume);
Tensor pack_volume_weights(const Tensor& weights, const topi::Conv2dProblem& problem);

// The halos of a group where only the anchor's first argument has one.
std::vector<Halo> halo_of_data(const Problem& p, Halo halo);
// Rows and columns outside the data that depthwise windows read.
Halo window_halo(const topi::DepthwiseProblem& p, size_t rank);

}  // namespace tilewright::lower
