// SPDX-License-Identifier: Apache-2.0
// Convolutions in canonical form: data (N, C, D, H, W), kernel (O, I, D, H, W), with leading unit axes for 1-D and 2-D.
// Types and reference results of all convolution operators are derived from it.
#pragma once
#include "relay/ops/tensor/layout.h"

namespace tilewright::relay {

struct ConvSpec {
  size_t spatial = 2;  // number of spatial axes of the operator
  std::vector<int64_t> strides, padding /* begins, ends */, dilation;
  int64_t groups = 1;
  Layout data, kernel, out;
  int64_t channels = 0, in_channels = 0;  // logical
  bool transposed = false;
  std::vector<int64_t> output_padding;
  int64_t filters = 0;  // non-zero: the depthwise kernel form (channels, filters, ...)
};

// "W", "HW" or "DHW"
const char* spatial_letters(size_t spatial);
// The output size along a spatial axis. Errors: the window does not fit.
Result<Dim> window_output(const Dim& in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                          int64_t after, bool ceil_mode = false);

// data and kernel have their operator's layouts, the result has spec.out. Floats carry error bounds; integers are exact
// below 2^53.
Value convolve(const ConvSpec& spec, const Value& data, const Value& kernel, DataType out_dtype);

}  // namespace tilewright::relay
