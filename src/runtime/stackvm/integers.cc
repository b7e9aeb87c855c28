// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers, which are 64 bits wide in a frame.
#include <climits>

#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

constexpr int64_t wrapped(uint64_t v) { return static_cast<int64_t>(v); }
constexpr uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }
// What has no quotient gives its dividend: the loop IR leaves it undefined, and a program must not end the process.
constexpr bool no_quotient(int64_t a, int64_t b) { return b == 0 || (b == -1 && a == INT64_MIN); }
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  return no_quotient(a, b) ? a : a / b - static_cast<int64_t>(a % b != 0 && (a % b < 0) != (b < 0));
}
constexpr int64_t floor_remainder(int64_t a, int64_t b) {
  if (no_quotient(a, b)) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
constexpr int64_t wrapped_to(int64_t value, unsigned bits, bool is_signed) {
  const unsigned unused = 64 - bits;
  return is_signed ? wrapped(u(value) << unused) >> unused : wrapped(u(value) << unused >> unused);
}

// One function for each: it is a template's argument, so that each becomes a handler of its own.
#define TW_INTEGER_OPS(X)                                  \
  X(add, wrapped(u(a) + u(b)))                             \
  X(sub, wrapped(u(a) - u(b)))                             \
  X(mul, wrapped(u(a) * u(b)))                             \
  X(quotient, no_quotient(a, b) ? a : a / b)               \
  X(floor_quotient, floor_quotient(a, b))                  \
  X(floor_remainder, floor_remainder(a, b))                \
  X(least, a < b ? a : b)                                  \
  X(most, a < b ? b : a)                                   \
  X(equal, a == b)                                         \
  X(less, a < b)                                           \
  X(less_equal, a <= b)                                    \
  X(bit_and, a& b)                                         \
  X(bit_or, a | b)                                         \
  X(bit_xor, a ^ b)                                        \
  X(left, wrapped(u(a) << (b & 63)))                       \
  X(right, a >> (b & 63))                                  \
  X(unsigned_quotient, b == 0 ? a : wrapped(u(a) / u(b)))  \
  X(unsigned_remainder, b == 0 ? 0 : wrapped(u(a) % u(b))) \
  X(unsigned_least, u(a) < u(b) ? a : b)                   \
  X(unsigned_most, u(a) < u(b) ? b : a)                    \
  X(unsigned_less, u(a) < u(b))                            \
  X(unsigned_less_equal, u(a) <= u(b))                     \
  X(unsigned_right, wrapped(u(a) >> (b & 63)))
#define TW_INTEGER(name, expression) \
  constexpr int64_t integer_##name(int64_t a, int64_t b) { return expression; }
TW_INTEGER_OPS(TW_INTEGER)
#undef TW_INTEGER
#undef TW_INTEGER_OPS

using Combine = int64_t (*)(int64_t, int64_t);
template <Combine f>
const Step* one_integer(State& s, const Step* step) {
  *s.at<int64_t>(step->to) = f(*s.at<int64_t>(step->a), *s.at<int64_t>(step->b));
  return step + 1;
}
template <Combine f>
const Step* integers(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t *a = s.at<int64_t>(step->a), *b = s.at<int64_t>(step->b);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = f(a[i], b[i]);
  return step + 1;
}
// Sums and products are most of what indices are made of.
template <Combine f>
Handler index_of(const Instruction& n) {
  return n.lanes == 1 ? one_integer<f> : integers<f>;
}

const Step* negate(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = a[i] == 0;
  return step + 1;
}
const Step* ramp(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  uint64_t next = u(*s.at<int64_t>(step->a));
  for (unsigned i = 0; i < step->lanes; ++i, next += u(step->value)) to[i] = wrapped(next);
  return step + 1;
}
const Step* wrap_bits(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  const auto bits = static_cast<unsigned>(step->value & 255);
  const bool is_signed = step->value >= 256;
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = wrapped_to(a[i], bits, is_signed);
  return step + 1;
}
template <class T>
const Step* wrap_to(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = static_cast<int64_t>(static_cast<T>(a[i]));
  return step + 1;
}
const Step* wrap_to_bool(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = a[i] != 0;
  return step + 1;
}

const Step* popcount(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i)
    to[i] = __builtin_popcountll(u(wrapped_to(a[i], static_cast<unsigned>(step->value), false)));
  return step + 1;
}
const Step* leading_zeros(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t* a = s.at<int64_t>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i) {
    const uint64_t x = u(wrapped_to(a[i], static_cast<unsigned>(step->value), false));
    to[i] = x == 0 ? step->value : __builtin_clzll(x) - (64 - step->value);
  }
  return step + 1;
}

// tir/expr.h says what these are; all operands are integers of 32 bits.
int64_t word_of(WordOp op, int64_t a, int64_t b, int64_t c) {
  auto half = [](int64_t word, int shift) { return int64_t{static_cast<int16_t>(word >> shift)}; };
  auto halves = [](int64_t low, int64_t high) { return (low & 0xffff) | (high & 0xffff) << 16; };
  a = static_cast<int32_t>(a);  // a program may give it more
  int64_t out = 0;
  switch (op) {
    case WordOp::k_dot4:
      out = a;
      for (int shift = 0; shift < 32; shift += 8)
        out += int64_t{static_cast<uint8_t>(b >> shift)} * int64_t{static_cast<int8_t>(c >> shift)};
      break;
    case WordOp::k_dot2:
      out = a + half(b, 0) * half(c, 0) + half(b, 16) * half(c, 16);
      break;
    case WordOp::k_even_bytes:
    case WordOp::k_odd_bytes: {
      const int64_t bytes = b >> (op == WordOp::k_odd_bytes ? 8 : 0);
      out = halves(a + static_cast<int8_t>(bytes), (a >> 16) + static_cast<int8_t>(bytes >> 16));
      break;
    }
    case WordOp::k_low_halves:
      out = halves(a, b);
      break;
    case WordOp::k_high_halves:
      out = halves(a >> 16, b >> 16);
      break;
  }
  return static_cast<int32_t>(out);
}
const Step* word(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const int64_t *a = s.at<int64_t>(step->a), *b = s.at<int64_t>(step->b), *c = s.at<int64_t>(step->c);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = word_of(static_cast<WordOp>(step->value), a[i], b[i], c[i]);
  return step + 1;
}

Handler wrap_handler(Element element) {
  switch (element) {
    case Element::kI8:
      return wrap_to<int8_t>;
    case Element::kI16:
      return wrap_to<int16_t>;
    case Element::kI32:
      return wrap_to<int32_t>;
    case Element::kU8:
      return wrap_to<uint8_t>;
    case Element::kU16:
      return wrap_to<uint16_t>;
    case Element::kU32:
      return wrap_to<uint32_t>;
    case Element::kBool:
      return wrap_to_bool;
    default:
      return wrap_to<int64_t>;
  }
}

Handler unsigned_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kDivU:
      return integers<integer_unsigned_quotient>;
    case Op::kModU:
      return integers<integer_unsigned_remainder>;
    case Op::kMinU:
      return integers<integer_unsigned_least>;
    case Op::kMaxU:
      return integers<integer_unsigned_most>;
    case Op::kLtU:
      return integers<integer_unsigned_less>;
    case Op::kLeU:
      return integers<integer_unsigned_less_equal>;
    case Op::kShrU:
      return integers<integer_unsigned_right>;
    case Op::kNot:
      return negate;
    case Op::kRamp:
      return ramp;
    case Op::kWrapBits:
      return wrap_bits;
    case Op::kWrap:
      return wrap_handler(n.element);
    case Op::kPopcount:
      return popcount;
    case Op::kClz:
      return leading_zeros;
    case Op::kWord:
      return word;
    default:
      return nullptr;
  }
}

}  // namespace

Handler integer_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kAddI:
      return index_of<integer_add>(n);
    case Op::kSubI:
      return integers<integer_sub>;
    case Op::kMulI:
      return index_of<integer_mul>(n);
    case Op::kDivI:
      return integers<integer_quotient>;
    case Op::kFloorDivI:
      return integers<integer_floor_quotient>;
    case Op::kFloorModI:
      return integers<integer_floor_remainder>;
    case Op::kMinI:
      return integers<integer_least>;
    case Op::kMaxI:
      return integers<integer_most>;
    case Op::kEqI:
      return integers<integer_equal>;
    case Op::kLtI:
      return integers<integer_less>;
    case Op::kLeI:
      return integers<integer_less_equal>;
    case Op::kAndI:
      return integers<integer_bit_and>;
    case Op::kOrI:
      return integers<integer_bit_or>;
    case Op::kXorI:
      return integers<integer_bit_xor>;
    case Op::kShlI:
      return integers<integer_left>;
    case Op::kShrI:
      return integers<integer_right>;
    default:
      return unsigned_handler(n);
  }
}

}  // namespace tilewright::stackvm
