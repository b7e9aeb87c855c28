// SPDX-License-Identifier: Apache-2.0
// 8-bit products in words: the reduction takes words of four bytes, uint8 activations by int8 weights, summed exactly
// in int32 by one loop IR operation (dot4). Reduction lengths are then counted in words.
#pragma once
#include "base/tensor.h"
#include "topi/view.h"

namespace tilewright::topi {

inline constexpr int64_t kWordBytes = 4;

// The four bytes from element `at` on as a word; if only `real`
// exist, no others are read and the word is zero-padded.
tir::PrimExpr word_at(const tir::Buffer& bytes, const tir::PrimExpr& at, int64_t real = kWordBytes);

// The target as such kernels' tiles see it: where dot4 takes several instructions, those need registers.
Target for_words(const Target& target);

// Signed bytes as a kernel's words of int32. Padding is zero.
// B of a product: (K, N), or (N, K) when transposed -> (ceil(N/width), ceil(K/4), width).
Tensor pack_dense_words(const Tensor& b, bool transposed, int64_t width);
// A convolution's weights in blocks: (OC/v, IC/b, kh, kw, b, v) -> (OC/v, IC/b, kh, kw, b/4, v): four input channels
// are a word. For plain data (OC/v, 1, kh, kw, IC, v) -> (OC/v, 1, kh, ceil(kw/4), IC, v): four taps of a row are.
Tensor pack_conv2d_words(const Tensor& blocks, bool plain_data);

}  // namespace tilewright::topi
