// SPDX-License-Identifier: Apache-2.0
// Overflow-checked arithmetic on untrusted sizes, and the reader of untrusted bytes.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace tilewright {

// a*b and a+b on sizes; false on overflow, out untouched.
inline bool checked_mul(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }
inline bool checked_add(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }
// The product of non-negative dims; an error on a negative dim, on overflow or above 2^48 elements.
Result<int64_t> checked_element_count(std::span<const int64_t> dims);

// Reads little-endian values from a byte range; after the first failure every read gives zero or empty and ok() is
// false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }
  void fail() { ok_ = false; }

  template <class T>
  T read() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    auto raw = take(sizeof(T));
    if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  // The next n bytes; on failure empty, and the reader is failed.
  std::span<const std::byte> take(uint64_t n);
  // A u64 length followed by that many bytes; longer than `limit` fails.
  std::string read_string(uint64_t limit = 1 << 20);
  // A u64 count of items of at least `item_bytes` each; a count that cannot fit the remaining bytes fails.
  uint64_t read_count(uint64_t item_bytes);

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
  bool ok_ = true;
};

// Appends little-endian values to a string: the counterpart of ByteReader.
class ByteWriter {
 public:
  template <class T>
  void write(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void write_string(std::string_view text) {
    write<uint64_t>(text.size());
    out_.append(text);
  }
  void write_bytes(const void* data, uint64_t n) { out_.append(static_cast<const char*>(data), n); }
  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace tilewright
