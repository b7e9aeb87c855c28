// SPDX-License-Identifier: Apache-2.0
// Convolution on plain layouts with any number of spatial dimensions and groups, for shapes that the blocked kernels do
// not support. Vectors run along the output's width; several output channels share each loaded input vector. Narrow
// maps put several rows into a tile, to have enough independent sums.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct ConvDirectProblem {
  int64_t groups = 1;
  std::vector<int64_t> kernel, strides, dilations, pads_before;  // one per spatial dimension
};

struct ConvDirectConfig {
  int oc_rows = 4;  // output channels per tile
  int rows = 1;     // output rows per tile (second to last dimension)
  int vectors = 2;  // output vectors along the width
  bool operator==(const ConvDirectConfig&) const = default;
  static constexpr auto fields() {
    using C = ConvDirectConfig;
    return std::tuple{field("oc_rows", &C::oc_rows), field("rows", &C::rows), field("vectors", &C::vectors)};
  }
};
// Fastest first by the cost model; at most `most`. Only extents and dtypes of the views matter.
std::vector<ConvDirectConfig> configs(const ConvDirectProblem& problem, const View& data, const View& out,
                                      const Target& target, size_t most);
ConvDirectConfig default_config(const ConvDirectProblem& problem, const View& data, const View& out,
                                const Target& target);

// data: (N, C, spatial...) with halo >= padding; weights: (OC, IC/groups, kernel...) in the model's layout, contiguous;
// out: (N, OC, spatial...). One to three spatial dimensions.
tir::Stmt conv_direct(const ConvDirectProblem& problem, const ConvDirectConfig& config, const View& data,
                      const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);
Cost estimate(const ConvDirectProblem& problem, const ConvDirectConfig& config, const View& data, const View& out,
              const Target& target);

}  // namespace tilewright::topi
