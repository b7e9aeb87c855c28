// SPDX-License-Identifier: Apache-2.0
// A constant as a kernel reads it. A packed one is kept as its source, and packed again whenever its bytes are needed:
// during compilation its weights are in memory once.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "base/hash.h"
#include "base/tensor.h"

namespace tilewright::lower {

using Pack = std::function<Tensor(const Tensor&)>;

class Weight {
 public:
  Weight() = default;
  explicit Weight(Tensor data) : bytes_(data.bytes()), source_(std::move(data)) {}
  // `packed` must equal pack(source).
  Weight(Tensor source, Pack pack, const Tensor& packed)
      : bytes_(packed.bytes()), hash_(hash_of(packed)), source_(std::move(source)), pack_(std::move(pack)) {
    if (bytes_ < kLarge) source_ = packed, pack_ = nullptr;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t content_hash() const { return hash_ != 0 ? hash_ : hash_of(source_); }
  Tensor tensor() const { return pack_ ? pack_(source_) : source_; }
  // Equal dtype and bytes, of whatever shape.
  bool operator==(const Weight& other) const {
    const Tensor a = tensor(), b = other.tensor();
    return a.dtype() == b.dtype() && a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }

 private:
  // Below this size, repacking saves too little memory.
  static constexpr uint64_t kLarge = 256 << 10;
  static uint64_t hash_of(const Tensor& t) { return hash_bytes(t.raw(), t.bytes(), t.dtype().bits); }
  uint64_t bytes_ = 0, hash_ = 0;
  Tensor source_;
  Pack pack_;
};

}  // namespace tilewright::lower
