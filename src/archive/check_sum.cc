// SPDX-License-Identifier: Apache-2.0
// Weights are most of an archive and are only looked at: their sums took half of an import. On x86 sixteen bytes are
// folded into the next ones by products without carries (Gopal et al., Fast CRC Computation for Generic Polynomials
// Using PCLMULQDQ Instruction, 2009); what is left, and other processors, are zlib's.
#include "archive/check_sum.h"

#ifdef TW_ZLIB
#include <zlib.h>
#endif

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::archive {
namespace {

// Continues a sum that has not been complemented.
uint32_t continued(uint32_t state, std::span<const std::byte> bytes) {
#ifdef TW_ZLIB
  return ~static_cast<uint32_t>(crc32_z(~state, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
#else
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0);
      table[i] = value;
    }
    return table;
  }();
  for (const std::byte b : bytes) state = (state >> 8) ^ kTable[(state ^ static_cast<uint32_t>(b)) & 0xff];
  return state;
#endif
}

#if defined(__x86_64__)
constexpr size_t kLane = 16, kLanes = 4;

[[gnu::target("pclmul,sse2"), gnu::always_inline]] inline __m128i lane_at(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
// A lane that has moved on by as much as the powers of x say, one for each half, and what stands there.
[[gnu::target("pclmul,sse2"), gnu::always_inline]] inline __m128i moved(__m128i lane, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, powers, 0x00), high = _mm_clmulepi64_si128(lane, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Of `count` whole lanes, at least four: a lane that has the same sum, from 0 on. The four are written out: they wait
// for no other, and this file is not compiled for speed.
[[gnu::target("pclmul,sse2")]] std::array<std::byte, kLane> folded(uint32_t state, const std::byte* at, size_t count) {
  const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(lane_at(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = lane_at(at + kLane), c = lane_at(at + 2 * kLane), d = lane_at(at + 3 * kLane);
  for (at += kLanes * kLane, count -= kLanes; count >= kLanes; at += kLanes * kLane, count -= kLanes) {
    a = moved(a, by_four, lane_at(at));
    b = moved(b, by_four, lane_at(at + kLane));
    c = moved(c, by_four, lane_at(at + 2 * kLane));
    d = moved(d, by_four, lane_at(at + 3 * kLane));
  }
  a = moved(moved(moved(a, by_one, b), by_one, c), by_one, d);
  for (; count > 0; at += kLane, --count) a = moved(a, by_one, lane_at(at));
  std::array<std::byte, kLane> out{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.data()), a);
  return out;
}
#endif

}  // namespace

uint32_t crc32_of(std::span<const std::byte> bytes) {
  uint32_t state = 0xffffffffu;
#if defined(__x86_64__)
  static const bool has_products = __builtin_cpu_supports("pclmul");
  if (const size_t whole = bytes.size() / kLane * kLane; has_products && whole >= kLanes * kLane) {
    state = continued(0, folded(state, bytes.data(), whole / kLane));
    bytes = bytes.subspan(whole);
  }
#endif
  return ~continued(state, bytes);
}

}  // namespace tilewright::archive
