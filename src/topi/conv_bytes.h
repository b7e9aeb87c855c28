// SPDX-License-Identifier: Apache-2.0
// 8-bit convolutions and products on plain layouts, for processors without vector units: int32 sums of (x - zero) * w,
// output channels x adjacent pixels in registers. Windows are clamped at the borders, so maps need no padding: memory
// is the scarcest resource of small devices.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct ConvBytesProblem {
  int64_t batch = 1, groups = 1, channels = 1, outputs = 1;  // channels and outputs per group
  int64_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1, pad_top = 0, pad_left = 0;
  int64_t zero = 0;  // zero point of the data, also used as padding
};
struct ConvBytesConfig {
  int oc_rows = 4;  // output channels per tile
  int pixels = 2;   // adjacent pixels per tile
  bool operator==(const ConvBytesConfig&) const = default;
  static constexpr auto fields() {
    using C = ConvBytesConfig;
    return std::tuple{field("oc_rows", &C::oc_rows), field("pixels", &C::pixels)};
  }
};
// From fewest instructions on; at most `most`.
std::vector<ConvBytesConfig> configs(const ConvBytesProblem& problem, size_t most);
bool fits(const ConvBytesProblem& problem, const ConvBytesConfig& config);
Cost estimate(const ConvBytesProblem& problem, const ConvBytesConfig& config, const Target& target);

// data: 8-bit (N, groups * channels, H, W); weights: (groups * outputs, channels, kh, kw), contiguous; out: (N, groups
// * outputs, OH, OW). Data and output may have gaps between rows, not between pixels.
tir::Stmt conv_bytes(const ConvBytesProblem& problem, const ConvBytesConfig& config, const View& data,
                     const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
