// SPDX-License-Identifier: Apache-2.0
// Models written by onnxruntime's layout optimiser (domain com.microsoft.nchwc) store weights in blocks of channels.
// The block size is the vector width of the machine that wrote the file, 16 or 8 floats, and the file does not record
// it.
#pragma once
#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

inline constexpr const char* kBlockedDomain = "com.microsoft.nchwc";
// name of the attribute that records the inferred block size
inline constexpr const char* kChannelBlock = "channel_block";

// The model with kChannelBlock set on every node of the domain: the one block size that divides the channel counts of
// all its convolutions. Where both sizes fit, `otherwise` is taken (0: the attribute is not set).
Model with_channel_blocks(const Model& model, int64_t otherwise);

}  // namespace tilewright::onnx
