// SPDX-License-Identifier: Apache-2.0
// Models that onnxruntime's layout optimiser wrote (domain com.microsoft.nchwc) hold weights in blocks of as many
// channels as the vectors of the machine that wrote them had numbers: 16 or 8. The file does not say how many.
#pragma once
#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

inline constexpr const char* kBlockedDomain = "com.microsoft.nchwc";
inline constexpr const char* kChannelBlock = "channel_block";  // the attribute that says so here

// The model with that attribute on every node of the domain. The size is the one that every convolution and every
// number of channels fits; where both fit, `otherwise` (0: the nodes stay without).
Model with_channel_blocks(const Model& model, int64_t otherwise);

}  // namespace tilewright::onnx
