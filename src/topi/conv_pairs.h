// SPDX-License-Identifier: Apache-2.0
// conv_bytes (topi/conv_bytes.h) for processors with a dual multiply-accumulate
// of halfwords (dot2): the reduction takes pairs of input channels, for tiles
// of output channels x adjacent pixels. Weights are packed in reading order.
#pragma once
#include "base/tensor.h"
#include "topi/conv_bytes.h"

namespace tilewright::topi {

// Whether a kernel exists for such tiles: output channels in pairs, few columns read per tile.
bool pairs_fit(const ConvBytesProblem& problem, const ConvBytesConfig& config);
// From fewest instructions on; at most `most`, none if no tile fits.
std::vector<ConvBytesConfig> pairs_configs(const ConvBytesProblem& problem, size_t most);
Cost estimate_pairs(const ConvBytesProblem& problem, const ConvBytesConfig& config, const Target& target);

// int8 (groups * outputs, channels, kh, kw) -> int32 words (groups * outputs / oc_rows, kh, ceil(channels/2), kw,
// oc_rows/2): bytes 0 and 2 are two input channels of one output, bytes 1 and 3 of the next.
Tensor pack_conv_pairs(const Tensor& weights, const ConvBytesConfig& config);

// data: as for conv_bytes; weights: packed by pack_conv_pairs.
tir::Stmt conv_pairs(const ConvBytesProblem& problem, const ConvBytesConfig& config, const View& data,
                     const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
