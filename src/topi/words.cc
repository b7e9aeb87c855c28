// SPDX-License-Identifier: Apache-2.0
#include "topi/words.h"

#include <algorithm>
#include <cstring>

namespace tilewright::topi {

using namespace tir;

PrimExpr word_at(const Buffer& buffer, const PrimExpr& at, int64_t real) {
  const int64_t whole = word_elements(buffer->dtype);
  if (real >= whole) return reinterpret(kInt32, load(buffer, ramp(at, 1, static_cast<int>(whole))));
  std::vector<PrimExpr> parts;
  std::vector<int> order;
  for (int64_t i = 0; i < whole; ++i) {
    parts.push_back(i < real ? load(buffer, at + i) : make_const(buffer->dtype, 0));
    order.push_back(static_cast<int>(i));
  }
  return reinterpret(kInt32, shuffle(std::move(parts), std::move(order)));
}

namespace {
bool has_any(const Target& target, std::initializer_list<const char*> features) {
  return std::any_of(target.cpu_features.begin(), target.cpu_features.end(), [&](const std::string& feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  });
}
}  // namespace

bool has_bfloat16_words(const Target& target) { return has_any(target, {"avx512bf16", "bf16"}); }

Target for_words(const Target& target, DataType data) {
  Target out = target;
  // Registers for a row's word; for pairs of halves a product's, too; without an instruction for words of bytes, for
  // the halves of both operands' and a product.
  out.vector_registers -= data == kInt16 ? 2 : word_products(target, data) == 1 ? 1 : 4;
  out.vector_registers = std::max(out.vector_registers, 3);  // the least tile's, where vectors take several registers
  return out;
}

int word_products(const Target& target, DataType data) {
  const bool one = data == kBFloat16 ? has_bfloat16_words(target)
                   : data == kInt16  ? has_any(target, {"sse4.1"})
                                     : has_any(target, {"avx512vnni", "avxvnni", "i8mm"});
  return one ? 1 : 2;
}

namespace {

// Element i of bytes or halves as a part of a word.
class Parts {
 public:
  explicit Parts(const Tensor& of) : raw_(of.raw()), size_(of.dtype().bytes()), per_word_(word_elements(of.dtype())) {
    TW_ICHECK(of.dtype() == kInt8 || of.dtype() == kInt16 || of.dtype() == kBFloat16, "words of " + of.dtype().str());
  }
  int64_t per_word() const { return per_word_; }
  uint32_t at(int64_t i, int64_t place) const {
    uint32_t bits = 0;
    std::memcpy(&bits, raw_ + static_cast<size_t>(i) * size_, size_);
    return bits << (8 * static_cast<int64_t>(size_) * (place % per_word_));
  }

 private:
  const std::byte* raw_;
  size_t size_;
  int64_t per_word_;
};

}  // namespace

Tensor pack_dense_words(const Tensor& b, bool transposed, int64_t width) {
  TW_ICHECK(b.rank() == 2, "pack_dense_words: a matrix");
  const Parts from(b);
  const int64_t per = from.per_word();
  const int64_t k = b.shape()[transposed ? 1 : 0], n = b.shape()[transposed ? 0 : 1], words = ceil_div(k, per);
  Tensor packed = Tensor::zeros(kInt32, {ceil_div(n, width), words, width});
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_raw());
  const int64_t row = transposed ? 1 : n, column = transposed ? k : 1;
  for (int64_t j = 0; j < n; ++j) {
    uint32_t* panel = to + j / width * words * width + j % width;
    for (int64_t i = 0; i < k; ++i) panel[i / per * width] |= from.at(i * row + j * column, i);
  }
  return packed;
}

Tensor pack_conv2d_words(const Tensor& blocks, bool plain_data) {
  TW_ICHECK(blocks.rank() == 6, "pack_conv2d_words: blocks");
  const Parts from(blocks);
  const int64_t per = from.per_word();
  std::vector<int64_t> shape = blocks.shape();
  const int64_t kw = shape[3], channels = shape[4], v = shape[5], rows = shape[0] * shape[1] * shape[2];
  int64_t& packed_axis = plain_data ? shape[3] : shape[4];
  packed_axis = ceil_div(packed_axis, per);
  Tensor packed = Tensor::zeros(kInt32, shape);
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_raw());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t w = 0; w < kw; ++w)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t in_word = plain_data ? w : c;
        const int64_t tap = plain_data ? w / per : w, channel = plain_data ? c : c / per;
        uint32_t* words = to + ((r * shape[3] + tap) * shape[4] + channel) * v;
        const int64_t first = ((r * kw + w) * channels + c) * v;
        for (int64_t o = 0; o < v; ++o) words[o] |= from.at(first + o, in_word);
      }
  return packed;
}

}  // namespace tilewright::topi
