// SPDX-License-Identifier: Apache-2.0
#include "tir/memory.h"

#include <cstring>

#include "base/small_float.h"
#include "tir/scalar.h"

namespace tilewright::tir {
namespace {
template <class T>
T get(const void* memory, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void put(void* memory, int64_t index, T value) {
  std::memcpy(static_cast<char*>(memory) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

uint64_t get_bits(const void* memory, int bits, int64_t index) {
  switch (bits) {
    case 8:
      return get<uint8_t>(memory, index);
    case 16:
      return get<uint16_t>(memory, index);
    case 32:
      return get<uint32_t>(memory, index);
    case 64:
      return get<uint64_t>(memory, index);
    default: {
      int64_t at = index * bits;
      return (get<uint8_t>(memory, at / 8) >> (at % 8)) & ((1u << bits) - 1);
    }
  }
}

void put_bits(void* memory, int bits, int64_t index, uint64_t value) {
  switch (bits) {
    case 8:
      return put(memory, index, static_cast<uint8_t>(value));
    case 16:
      return put(memory, index, static_cast<uint16_t>(value));
    case 32:
      return put(memory, index, static_cast<uint32_t>(value));
    case 64:
      return put(memory, index, value);
    default: {
      int64_t at = index * bits;
      unsigned mask = ((1u << bits) - 1) << (at % 8);
      unsigned kept = get<uint8_t>(memory, at / 8) & ~mask;
      put(memory, at / 8, static_cast<uint8_t>(kept | ((value << (at % 8)) & mask)));
    }
  }
}

SmallFloatFormat small_format(DataType t) {
  if (t.code == TypeCode::kFloat) return kHalfFormat;
  return t.code == TypeCode::kBFloat ? kBFloatFormat : small_float_format(t.code);
}
}  // namespace

Lane read_lane(const void* memory, DataType t, int64_t index) {
  Lane lane{};
  if (!t.is_float())
    lane.i = wrap_integer(t, static_cast<int64_t>(get_bits(memory, t.bits, index)));
  else if (t.bits == 64)
    lane.f = get<double>(memory, index);
  else if (t.bits == 32)
    lane.f = get<float>(memory, index);
  else
    lane.f = small_float_decode(small_format(t), static_cast<unsigned>(get_bits(memory, t.bits, index)));
  return lane;
}

void write_lane(void* memory, DataType t, int64_t index, Lane lane) {
  if (!t.is_float())
    put_bits(memory, t.bits, index, static_cast<uint64_t>(lane.i));
  else if (t.bits == 64)
    put(memory, index, lane.f);
  else if (t.bits == 32)
    put(memory, index, static_cast<float>(lane.f));
  else
    put_bits(memory, t.bits, index, small_float_encode(small_format(t), lane.f));
}

}  // namespace tilewright::tir
