// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <cstring>

namespace tilewright {
namespace {
// Folds a 128-bit product, the mixing step of the wyhash family.
uint64_t mix(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  auto p = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(p) ^ static_cast<uint64_t>(p >> 64);
#else  // by halves, on 32-bit processors
  const uint64_t al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
  const uint64_t low = al * bl, first = ah * bl + (low >> 32), second = al * bh + (first & 0xffffffff);
  return ((second << 32) | (low & 0xffffffff)) ^ (ah * bh + (first >> 32) + (second >> 32));
#endif
}
constexpr uint64_t kA = 0x9e3779b97f4a7c15, kB = 0xd6e8feb86659fd93, kC = 0xa0761d6478bd642f;
}  // namespace

uint64_t hash_bytes(const void* data, size_t n, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t h0 = seed ^ kA, h1 = seed ^ kB, total = n;
  auto word = [](const unsigned char* q) {
    uint64_t w;
    std::memcpy(&w, q, 8);
    return w;
  };
  for (; n >= 32; n -= 32, p += 32) {
    h0 = mix(word(p) ^ kA, word(p + 8) ^ h0);
    h1 = mix(word(p + 16) ^ kB, word(p + 24) ^ h1);
  }
  unsigned char tail[32] = {};
  if (n) std::memcpy(tail, p, n);
  h0 = mix(word(tail) ^ kA, word(tail + 8) ^ h0);
  h1 = mix(word(tail + 16) ^ kB, word(tail + 24) ^ h1);
  return mix(h0 ^ kC, h1 ^ total);
}

}  // namespace tilewright
