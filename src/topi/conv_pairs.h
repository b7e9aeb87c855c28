// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of bytes as conv_bytes (topi/conv_bytes.h), for processors that multiply two halves of a
// word by two of another and add both in one instruction (dot2): what is summed goes in pairs of input channels, for
// some output channels by neighbouring pixels at a time. Weights are packed in the order in which they are read.
#pragma once
#include "base/tensor.h"
#include "topi/conv_bytes.h"

namespace tilewright::topi {

// Whether there is a kernel for such tiles: output channels come in pairs, and a tile's pixels read few columns.
bool pairs_fit(const ConvBytesProblem& problem, const ConvBytesConfig& config);
// The fewest instructions first; at most `most`, and none where no tile fits.
std::vector<ConvBytesConfig> pairs_configs(const ConvBytesProblem& problem, size_t most);
Cost estimate_pairs(const ConvBytesProblem& problem, const ConvBytesConfig& config, const Target& target);

// (groups * outputs, channels, kh, kw) of int8 -> words (groups * outputs / oc_rows, kh, ceil(channels/2), kw,
// oc_rows/2) of int32: bytes 0 and 2 are two input channels of one output, 1 and 3 of the next.
Tensor pack_conv_pairs(const Tensor& weights, const ConvBytesConfig& config);

// data: as conv_bytes takes it; weights: what pack_conv_pairs gives.
tir::Stmt conv_pairs(const ConvBytesProblem& problem, const ConvBytesConfig& config, const View& data,
                     const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
