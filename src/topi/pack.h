// SPDX-License-Identifier: Apache-2.0
// Packs weights into the layouts that kernels stream: once, at compile time, natively. Padding is zero.
#pragma once
#include "base/tensor.h"

namespace tilewright::topi {

// (OC, IC/groups, kh, kw) -> (ceil(OC/v), ceil(IC/groups/ic_block), kh, kw, ic_block, v); ic_block is v for blocked
// data, IC for plain data.
Tensor pack_conv2d_weights(const Tensor& weights, int lanes, int64_t ic_block);
// (C * multiplier, 1, kh, kw) -> (ceil(C/v), kh, kw, v).
Tensor pack_depthwise_weights(const Tensor& weights, int lanes);
// B of a product: (K, N), or (N, K) when transposed -> (ceil(N/width), K, width).
Tensor pack_dense(const Tensor& b, bool transposed, int64_t width);
// (N, C, spatial...) -> (N, ceil(C/v), spatial..., v); a vector (C) -> (ceil(C/v), v).
Tensor pack_channels(const Tensor& value, int channel_axis, int lanes);

// The narrowest of float16, bfloat16 and float32 that represents all values of a float32 tensor exactly; for other
// tensors their dtype.
DataType small_dtype_of(const Tensor& values);
Tensor converted(const Tensor& values, DataType dtype);

}  // namespace tilewright::topi
