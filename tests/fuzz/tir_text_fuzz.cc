// SPDX-License-Identifier: Apache-2.0
// fuzz-room: tir
// Text that parses is a verified function, whose own text parses into the same text; everything else is a diagnostic.
#include <string>
#include <string_view>
#include <vector>

#include "tir/random_kernel.h"
#include "tir/text.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (unsigned seed : {0u, 1u, 80u}) seeds->push_back(tir::to_text(tir::RandomKernel(seed).function()));
  seeds->push_back(
      "func all(x: float32[64] readonly align 64, h: float16[8], b: bool[4], q: int4[2], u: uint64[2]) threads(t, n):\n"
      "  alloc acc: float32x16[2] register:\n"
      "    acc[0] = fma(broadcast(-0.0, 16), x[ramp(0, 1, 16)], acc[1])\n"
      "  alloc s: float32[16] stack align 64\n"
      "  let m: boolx4 = ramp(t, 3, 4) < broadcast(7, 4) or not ramp(1, 1, 4) == broadcast(2, 4)\n"
      "  %0 = x[ramp(8, -1, 4), mask = m] * shuffle([x[ramp(0, 1, 4)], broadcast(0.1, 2)], [0, 5, 1, 2])\n"
      "  s[ramp(0, 2, 4), mask = m] = %0 + %0\n"
      "  if b[t % 4]:\n"
      "    h[0] = cast(float16, reinterpret(float32, int32(7))) + let(v: float16 = float16(nan), v - v)\n"
      "  else:\n"
      "    u[1] = uint64(18446744073709551615) ^ u[0] | uint64(2) & uint64(3) << uint64(4)\n"
      "  q[0] = select(n > 3, int4(-8), q[1] // int4(3))\n");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto function = tir::parse_func(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!function.ok()) return 0;
  const std::string text = tir::to_text(*function);
  auto again = tir::parse_func(text);
  if (!again.ok() || tir::to_text(*again) != text) __builtin_trap();
  return 0;
}
