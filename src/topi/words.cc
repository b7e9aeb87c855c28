// SPDX-License-Identifier: Apache-2.0
#include "topi/words.h"

#include <algorithm>

namespace tilewright::topi {

using namespace tir;

PrimExpr word_at(const Buffer& bytes, const PrimExpr& at, int64_t real) {
  if (real >= kWordBytes) return reinterpret(kInt32, load(bytes, ramp(at, 1, static_cast<int>(kWordBytes))));
  std::vector<PrimExpr> parts;
  std::vector<int> order;
  for (int64_t i = 0; i < kWordBytes; ++i) {
    parts.push_back(i < real ? load(bytes, at + i) : make_int(0, bytes->dtype));
    order.push_back(static_cast<int>(i));
  }
  return reinterpret(kInt32, shuffle(std::move(parts), std::move(order)));
}

Target for_words(const Target& target) {
  auto has = [&](const char* feature) {
    return std::find(target.cpu_features.begin(), target.cpu_features.end(), feature) != target.cpu_features.end();
  };
  Target out = target;
  // Registers for a row's word; without a dot instruction, for the halves of both operands' words and a product.
  out.vector_registers -= has("avx512vnni") || has("avxvnni") || has("i8mm") ? 1 : 4;
  return out;
}

namespace {

uint32_t byte_of_word(int8_t value, int64_t place) {
  return static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * place);
}

}  // namespace

Tensor pack_dense_words(const Tensor& b, bool transposed, int64_t width) {
  TW_ICHECK(b.rank() == 2 && b.dtype() == kInt8, "pack_dense_words: a matrix of int8");
  const int64_t k = b.shape()[transposed ? 1 : 0], n = b.shape()[transposed ? 0 : 1], words = ceil_div(k, kWordBytes);
  Tensor packed = Tensor::zeros(kInt32, {ceil_div(n, width), words, width});
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_raw());
  const auto* from = reinterpret_cast<const int8_t*>(b.raw());
  const int64_t row = transposed ? 1 : n, column = transposed ? k : 1;
  for (int64_t j = 0; j < n; ++j) {
    uint32_t* panel = to + j / width * words * width + j % width;
    for (int64_t i = 0; i < k; ++i)
      panel[i / kWordBytes * width] |= byte_of_word(from[i * row + j * column], i % kWordBytes);
  }
  return packed;
}

Tensor pack_conv2d_words(const Tensor& blocks, bool plain_data) {
  TW_ICHECK(blocks.rank() == 6 && blocks.dtype() == kInt8, "pack_conv2d_words: blocks of int8");
  std::vector<int64_t> shape = blocks.shape();
  const int64_t kw = shape[3], channels = shape[4], v = shape[5], rows = shape[0] * shape[1] * shape[2];
  int64_t& packed_axis = plain_data ? shape[3] : shape[4];
  packed_axis = ceil_div(packed_axis, kWordBytes);
  Tensor packed = Tensor::zeros(kInt32, shape);
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_raw());
  const auto* from = reinterpret_cast<const int8_t*>(blocks.raw());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t w = 0; w < kw; ++w)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t in_word = plain_data ? w : c;
        const int64_t tap = plain_data ? w / kWordBytes : w, channel = plain_data ? c : c / kWordBytes;
        uint32_t* words = to + ((r * shape[3] + tap) * shape[4] + channel) * v;
        const int8_t* bytes = from + ((r * kw + w) * channels + c) * v;
        for (int64_t o = 0; o < v; ++o) words[o] |= byte_of_word(bytes[o], in_word % kWordBytes);
      }
  return packed;
}

}  // namespace tilewright::topi
