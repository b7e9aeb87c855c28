// SPDX-License-Identifier: Apache-2.0
// Weights that are quantised in blocks along a row.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// Inputs of a node: packed weights (experts, rows, columns * bits / 8), scales (experts, rows) or (experts, rows,
// blocks), and zero points, packed like the weights, which may be absent. block 0: one for the whole row.
struct QuantizedExperts {
  size_t weights = 0, scales = 0, zeros = 0;
  int64_t bits = 4, block = 0;
};
// (experts, rows, columns) in float32; all of it must be known at import.
Tensor expert_weights(NodeContext& c, const QuantizedExperts& stored);

}  // namespace tilewright::onnx
