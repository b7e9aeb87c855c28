// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of bytes on plain layouts, for processors without vectors: sums in int32 of
// (x - zero) * w, output channels by neighbouring pixels in registers. Windows are clamped at the borders, so that maps
// need no frame: on a small device memory is what there is least of.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct ConvBytesProblem {
  int64_t batch = 1, groups = 1, channels = 1, outputs = 1;  // channels and outputs of a group
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1, pad_top = 0, pad_left = 0;
  int64_t zero = 0;  // of the data; outside of the map it stands
};
struct ConvBytesConfig {
  int oc_rows = 4;  // output channels of a tile
  int pixels = 2;   // neighbouring ones of a row
  bool operator==(const ConvBytesConfig&) const = default;
  static constexpr auto fields() {
    using C = ConvBytesConfig;
    return std::tuple{field("oc_rows", &C::oc_rows), field("pixels", &C::pixels)};
  }
};
// The fewest instructions first; at most `most`.
std::vector<ConvBytesConfig> configs(const ConvBytesProblem& problem, size_t most);
bool fits(const ConvBytesProblem& problem, const ConvBytesConfig& config);
Cost estimate(const ConvBytesProblem& problem, const ConvBytesConfig& config, const Target& target);

// data: (N, groups * channels, H, W) of bytes; weights: (groups * outputs, channels, kh, kw), contiguous; out:
// (N, groups * outputs, OH, OW). Data and output may have gaps between rows, not between pixels.
tir::Stmt conv_bytes(const ConvBytesProblem& problem, const ConvBytesConfig& config, const View& data,
                     const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
