// SPDX-License-Identifier: Apache-2.0
// Between integers, floats and the bytes of memory.
#include <cmath>
#include <limits>

#include "base/small_float.h"
#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

SmallFloatFormat format_of(Element element) {
  switch (element) {
    case Element::kF16:
      return kHalfFormat;
    case Element::kBF16:
      return kBFloatFormat;
    case Element::kF8E4M3FN:
      return small_float_format(TypeCode::kFloat8E4M3FN);
    case Element::kF8E4M3FNUZ:
      return small_float_format(TypeCode::kFloat8E4M3FNUZ);
    case Element::kF8E5M2:
      return small_float_format(TypeCode::kFloat8E5M2);
    case Element::kF8E5M2FNUZ:
      return small_float_format(TypeCode::kFloat8E5M2FNUZ);
    case Element::kF8E8M0:
      return small_float_format(TypeCode::kFloat8E8M0);
    default:
      return small_float_format(TypeCode::kFloat4E2M1);
  }
}

template <class T, class Lane>
void widen(const std::byte* from, void* to, uint32_t lanes) {
  for (uint32_t i = 0; i < lanes; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof value);
    static_cast<Lane*>(to)[i] = static_cast<Lane>(value);
  }
}
template <class T, class Lane>
void narrow(const void* from, std::byte* to, uint32_t lanes) {
  for (uint32_t i = 0; i < lanes; ++i) {
    const T value = static_cast<T>(static_cast<const Lane*>(from)[i]);
    std::memcpy(to + i * sizeof(T), &value, sizeof value);
  }
}

template <class From, class To, bool kUnsigned>
const Step* convert(State& s, const Step* step) {
  const From* a = s.at<From>(step->a);
  To* to = s.at<To>(step->to);
  for (unsigned i = 0; i < step->lanes; ++i)
    if constexpr (kUnsigned)
      to[i] = static_cast<To>(static_cast<uint64_t>(a[i]));
    else
      to[i] = static_cast<To>(a[i]);
  return step + 1;
}

template <class From>
const Step* to_integer(State& s, const Step* step) {
  const From* a = s.at<From>(step->a);
  int64_t* to = s.at<int64_t>(step->to);
  const int bits = static_cast<int>(step->value & 255);
  const bool is_signed = step->value >= 256;
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const int value_bits = is_signed ? bits - 1 : bits;
  const int64_t most = value_bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << value_bits) - 1);
  const int64_t least = is_signed ? -most - 1 : 0;
  for (unsigned i = 0; i < step->lanes; ++i) {
    const double x = static_cast<double>(a[i]);
    to[i] = std::isnan(x)                  ? 0
            : x >= limit                   ? most
            : x < (is_signed ? -limit : 0) ? least
            : is_signed                    ? static_cast<int64_t>(x)
                                           : static_cast<int64_t>(static_cast<uint64_t>(x));
  }
  return step + 1;
}

template <class From>
const Step* round_small(State& s, const Step* step) {
  const From* a = s.at<From>(step->a);
  float* to = s.at<float>(step->to);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = small_float_of(step->element, static_cast<double>(a[i]));
  return step + 1;
}

const Step* reinterpret(State& s, const Step* step) {
  std::byte bytes[kMostLanes * 8];
  write_elements(step->element, s.at<std::byte>(step->a), bytes, step->lanes);
  read_elements(step->other, bytes, s.at<std::byte>(step->to), static_cast<uint32_t>(step->value));
  return step + 1;
}

}  // namespace

float small_float_of(Element element, double value) {
  const SmallFloatFormat format = format_of(element);
  return static_cast<float>(small_float_decode(format, small_float_encode(format, value)));
}

void read_elements(Element element, const std::byte* from, void* to, uint32_t lanes) {
  switch (element) {
    case Element::kF32:
      std::memcpy(to, from, lanes * sizeof(float));
      return;
    case Element::kF64:
    case Element::kI64:
    case Element::kU64:
      std::memcpy(to, from, lanes * sizeof(int64_t));
      return;
    case Element::kI8:
      return widen<int8_t, int64_t>(from, to, lanes);
    case Element::kI16:
      return widen<int16_t, int64_t>(from, to, lanes);
    case Element::kI32:
      return widen<int32_t, int64_t>(from, to, lanes);
    case Element::kU8:
      return widen<uint8_t, int64_t>(from, to, lanes);
    case Element::kU16:
      return widen<uint16_t, int64_t>(from, to, lanes);
    case Element::kU32:
      return widen<uint32_t, int64_t>(from, to, lanes);
    case Element::kBool:
      for (uint32_t i = 0; i < lanes; ++i) static_cast<int64_t*>(to)[i] = from[i] != std::byte{0};
      return;
    default:
      break;
  }
  const SmallFloatFormat format = format_of(element);
  const uint32_t bytes = bytes_of(element);
  for (uint32_t i = 0; i < lanes; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from + i * bytes, bytes);
    if (element == Element::kBF16) {
      const uint32_t wide = uint32_t{bits} << 16;
      std::memcpy(static_cast<float*>(to) + i, &wide, sizeof wide);
    } else {
      static_cast<float*>(to)[i] = static_cast<float>(small_float_decode(format, bits));
    }
  }
}

void write_elements(Element element, const void* from, std::byte* to, uint32_t lanes) {
  switch (element) {
    case Element::kF32:
      std::memcpy(to, from, lanes * sizeof(float));
      return;
    case Element::kF64:
    case Element::kI64:
    case Element::kU64:
      std::memcpy(to, from, lanes * sizeof(int64_t));
      return;
    case Element::kI8:
    case Element::kU8:
      return narrow<uint8_t, int64_t>(from, to, lanes);
    case Element::kI16:
    case Element::kU16:
      return narrow<uint16_t, int64_t>(from, to, lanes);
    case Element::kI32:
    case Element::kU32:
      return narrow<uint32_t, int64_t>(from, to, lanes);
    case Element::kBool:
      for (uint32_t i = 0; i < lanes; ++i) to[i] = std::byte{static_cast<const int64_t*>(from)[i] != 0};
      return;
    default:
      break;
  }
  const SmallFloatFormat format = format_of(element);
  const uint32_t bytes = bytes_of(element);
  for (uint32_t i = 0; i < lanes; ++i) {
    const auto bits =
        static_cast<uint16_t>(small_float_encode(format, static_cast<double>(static_cast<const float*>(from)[i])));
    std::memcpy(to + i * bytes, &bits, bytes);
  }
}

Handler conversion_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kIntToF:
      return convert<int64_t, float, false>;
    case Op::kIntToD:
      return convert<int64_t, double, false>;
    case Op::kUintToF:
      return convert<int64_t, float, true>;
    case Op::kUintToD:
      return convert<int64_t, double, true>;
    case Op::kFToD:
      return convert<float, double, false>;
    case Op::kDToF:
      return convert<double, float, false>;
    case Op::kFToInt:
      return to_integer<float>;
    case Op::kDToInt:
      return to_integer<double>;
    case Op::kRoundF:
      return round_small<float>;
    case Op::kRoundD:
      return round_small<double>;
    case Op::kReinterpret:
      return reinterpret;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::stackvm
