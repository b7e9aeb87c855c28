// SPDX-License-Identifier: Apache-2.0
// Products whose operands go in words of 32 bits, one operation of the loop IR for each: four unsigned bytes by four
// signed ones or two signed halves by two, summed exactly in int32 (dot4, dot2), or two bfloat16 by two, summed in
// float32 (dot2_bfloat16). Kernels count their reduction in words then.
#pragma once
#include "base/tensor.h"
#include "topi/view.h"

namespace tilewright::topi {

inline constexpr int64_t kWordBytes = 4;

// Elements of a word.
inline int64_t word_elements(DataType dtype) { return kWordBytes / static_cast<int64_t>(dtype.bytes()); }

// The elements of a buffer from `at` on as a word; where only the first `real` ones are, no other is read and the word
// ends in zeros.
tir::PrimExpr word_at(const tir::Buffer& buffer, const tir::PrimExpr& at, int64_t real = kWordBytes);

// The target as the tiles of kernels over words of such data see it: where a sum takes several instructions, these need
// registers.
Target for_words(const Target& target, DataType data);
// How many instructions multiply a word: two where bytes have to be taken apart.
int word_products(const Target& target, DataType data);
// Whether it adds up words of bfloat16 by one instruction.
bool has_bfloat16_words(const Target& target);

// Weights, signed bytes, halves or bfloat16, as a kernel's words of int32. Padding is zero.
// B of a product: (K, N), or (N, K) when transposed -> (ceil(N/width), words of K, width).
Tensor pack_dense_words(const Tensor& b, bool transposed, int64_t width);
// A convolution's weights in blocks: (OC/v, IC/b, kh, kw, b, v) -> (OC/v, IC/b, kh, kw, b/4, v): four input channels
// are a word (of bfloat16 two). For plain data (OC/v, 1, kh, kw, IC, v) -> (OC/v, 1, kh, ceil(kw/4), IC, v): taps of a
// row are.
Tensor pack_conv2d_words(const Tensor& blocks, bool plain_data);

}  // namespace tilewright::topi
