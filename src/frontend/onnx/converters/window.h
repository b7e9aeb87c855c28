// SPDX-License-Identifier: Apache-2.0
// The windows of convolutions and pools.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

struct Window {
  int64_t n = 0;  // spatial axes
  std::vector<int64_t> kernel, strides, dilations, pads;
};

// The node's strides, dilations and padding, for kernels of extent `kernel` applied to x.
Window read_window(NodeContext& c, const Expr& x, std::vector<int64_t> kernel);
// Fails unless there are `want` values, each `least` or more; `what` names them in the error.
void check_window(NodeContext& c, const std::vector<int64_t>& values, size_t want, const char* what, int64_t least);

}  // namespace tilewright::onnx
