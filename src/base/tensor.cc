// SPDX-License-Identifier: Apache-2.0
#include "base/tensor.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/checked.h"
#include "base/format.h"
#include "base/small_float.h"

namespace tilewright {
namespace {
template <class T>
T load_as(const std::byte* p, int64_t i) {
  T v;
  std::memcpy(&v, p + i * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store_as(std::byte* p, int64_t i, T v) {
  std::memcpy(p + i * sizeof(T), &v, sizeof(T));
}
// Sub-byte element i, zero-extended.
unsigned load_bits(const std::byte* p, int64_t i, int bits) {
  int per_byte = 8 / bits;
  return (std::to_integer<unsigned>(p[i / per_byte]) >> (bits * (i % per_byte))) & ((1u << bits) - 1);
}
void store_bits(std::byte* p, int64_t i, int bits, unsigned v) {
  int per_byte = 8 / bits, shift = bits * static_cast<int>(i % per_byte);
  unsigned mask = ((1u << bits) - 1) << shift;
  p[i / per_byte] =
      static_cast<std::byte>((std::to_integer<unsigned>(p[i / per_byte]) & ~mask) | ((v << shift) & mask));
}
}  // namespace

Tensor::Tensor(DataType dtype, std::vector<int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
  size_ = checked_element_count(shape_).value();
  if (dtype_.is_string()) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(size_));
    return;
  }
  uint64_t n = (bytes() + 127) / 64 * 64;  // never empty, whole cache lines
  // For large weights, page faults every 4 KiB would take longer than filling them.
  constexpr uint64_t kHugePage = uint64_t{2} << 20;
  const bool huge = n >= 2 * kHugePage;
  if (huge) n = (n + kHugePage - 1) / kHugePage * kHugePage;
  void* p = std::aligned_alloc(huge ? kHugePage : 64, n);
  if (!p) throw std::bad_alloc();
#if defined(__linux__)
  if (huge) madvise(p, n, MADV_HUGEPAGE);
#endif
  // Bytes behind the last element are zero, so that vector loads past it are defined.
  const uint64_t end = (bytes() + 127) / 64 * 64, tail = std::min<uint64_t>(end, 128);
  std::memset(static_cast<char*>(p) + end - tail, 0, tail);
  data_ = std::shared_ptr<const std::byte>(static_cast<std::byte*>(p),
                                           [](const std::byte* q) { std::free(const_cast<std::byte*>(q)); });
}

Tensor Tensor::zeros(DataType dtype, std::vector<int64_t> shape) {
  Tensor t(dtype, std::move(shape));
  if (!dtype.is_string()) std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::view(DataType dtype, std::vector<int64_t> shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.size_ = checked_element_count(t.shape_).value();
  t.data_ = std::shared_ptr<const std::byte>(std::move(owner), static_cast<const std::byte*>(data));
  return t;
}

Tensor Tensor::strings(std::vector<int64_t> shape, std::vector<std::string> values) {
  Tensor t(kString, std::move(shape));
  TW_ICHECK(static_cast<size_t>(t.size_) == values.size(), "Tensor::strings size");
  t.strings_ = std::make_shared<std::vector<std::string>>(std::move(values));
  return t;
}

double Tensor::at_double(int64_t i) const {
  const std::byte* p = raw();
  switch (dtype_.code) {
    case TypeCode::kFloat:
      if (dtype_.bits == 32) return load_as<float>(p, i);
      if (dtype_.bits == 64) return load_as<double>(p, i);
      return small_float_decode(kHalfFormat, load_as<uint16_t>(p, i));
    case TypeCode::kBFloat:
      return std::bit_cast<float>(static_cast<uint32_t>(load_as<uint16_t>(p, i)) << 16);
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0:
      return small_float_decode(small_float_format(dtype_.code), load_as<uint8_t>(p, i));
    case TypeCode::kFloat4E2M1:
      return small_float_decode(small_float_format(dtype_.code), load_bits(p, i, 4));
    case TypeCode::kUInt:
      if (dtype_.bits == 64) return static_cast<double>(load_as<uint64_t>(p, i));
      return static_cast<double>(at_int(i));
    case TypeCode::kInt:
    case TypeCode::kBool:
      return static_cast<double>(at_int(i));
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  internal_error(__FILE__, __LINE__, "at_double on " + dtype_.str());
}

int64_t Tensor::at_int(int64_t i) const {
  const std::byte* p = raw();
  bool is_signed = dtype_.is_int();
  if (dtype_.is_float()) return static_cast<int64_t>(at_double(i));
  switch (dtype_.bits) {
    case 64:
      return load_as<int64_t>(p, i);
    case 32:
      return is_signed ? load_as<int32_t>(p, i) : static_cast<int64_t>(load_as<uint32_t>(p, i));
    case 16:
      return is_signed ? load_as<int16_t>(p, i) : static_cast<int64_t>(load_as<uint16_t>(p, i));
    case 8:
      return is_signed ? load_as<int8_t>(p, i) : static_cast<int64_t>(load_as<uint8_t>(p, i));
    default: {
      int bits = dtype_.bits;
      auto v = static_cast<int64_t>(load_bits(p, i, bits));
      return is_signed && (v >> (bits - 1)) ? v - (int64_t{1} << bits) : v;
    }
  }
}

void Tensor::set_double(int64_t i, double value) {
  std::byte* p = mutable_raw();
  switch (dtype_.code) {
    case TypeCode::kFloat:
      if (dtype_.bits == 32) return store_as(p, i, static_cast<float>(value));
      if (dtype_.bits == 64) return store_as(p, i, value);
      return store_as(p, i, static_cast<uint16_t>(small_float_encode(kHalfFormat, value)));
    case TypeCode::kBFloat:
      return store_as(p, i, static_cast<uint16_t>(small_float_encode(kBFloatFormat, value)));
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0:
      return store_as(p, i, static_cast<uint8_t>(small_float_encode(small_float_format(dtype_.code), value)));
    case TypeCode::kFloat4E2M1:
      return store_bits(p, i, 4, small_float_encode(small_float_format(dtype_.code), value));
    case TypeCode::kBool:
      return store_as<uint8_t>(p, i, value != 0);
    case TypeCode::kUInt:
      if (dtype_.bits == 64)
        return store_as(p, i,
                        value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value));
      return set_int(i, static_cast<int64_t>(value));
    case TypeCode::kInt:
      return set_int(i, static_cast<int64_t>(value));
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  internal_error(__FILE__, __LINE__, "set_double on " + dtype_.str());
}

void Tensor::set_int(int64_t i, int64_t value) {
  std::byte* p = mutable_raw();
  if (dtype_.is_float()) return set_double(i, static_cast<double>(value));
  if (dtype_.is_bool()) return store_as<uint8_t>(p, i, value != 0);
  switch (dtype_.bits) {
    case 64:
      return store_as(p, i, value);
    case 32:
      return store_as(p, i, static_cast<int32_t>(value));
    case 16:
      return store_as(p, i, static_cast<int16_t>(value));
    case 8:
      return store_as(p, i, static_cast<int8_t>(value));
    default:
      return store_bits(p, i, dtype_.bits, static_cast<unsigned>(value));
  }
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  Tensor t = *this;
  TW_ICHECK(checked_element_count(shape).value() == size_, "reshaped to another size");
  t.shape_ = std::move(shape);
  return t;
}

std::string shape_str(std::span<const int64_t> shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "x" : "") + std::to_string(shape[i]);
  return out;
}

}  // namespace tilewright
