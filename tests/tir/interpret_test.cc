// SPDX-License-Identifier: Apache-2.0
// The interpreter: rounding of each dtype, masks, sharing, and the errors that generated code could not
// report.
#include "tir/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/small_float.h"
#include "tir/memory.h"
#include "tir/text.h"

namespace tilewright::tir {
namespace {

PrimFunc parsed(const std::string& text) {
  auto f = parse_func(text);
  EXPECT_TRUE(f.ok()) << f.error().str();
  return *f;
}

std::string error_of(const std::string& text, int64_t n = 16) {
  PrimFunc f = parsed(text);
  std::vector<std::vector<double>> memory(f.params.size(), std::vector<double>(n));
  std::vector<void*> pointers;
  for (auto& m : memory) pointers.push_back(m.data());
  Status s = interpret(f, pointers);
  return s.ok() ? "" : s.error().message;
}

TEST(Interpret, RoundsEachOperationToItsDtype) {
  float a = 1.0f / 3, y[2];
  void* buffers[] = {&a, y};
  PrimFunc f = parsed(
      "func f(a: float32[1] readonly, y: float32[2]):\n"
      "  y[0] = a[0] * a[0] - 0.111111104488372802734375\n"
      "  y[1] = fma(a[0], a[0], -0.111111104488372802734375)\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(y[0], a * a - 0.111111104488372802734375f);
  EXPECT_EQ(y[1], std::fma(a, a, -0.111111104488372802734375f));
  EXPECT_NE(y[0], y[1]) << "one rounding or two";
}

TEST(Interpret, SmallFloatsAndPackedIntegers) {
  uint16_t half[2] = {0x3c00, 0x7bff}, bfloat[2] = {0x3f80, 0x0000}, out_half[2], out_bfloat[1];
  uint8_t packed[1] = {0x7f}, out_packed[1] = {0};
  void* buffers[] = {half, bfloat, packed, out_half, out_bfloat, out_packed};
  PrimFunc f = parsed(
      "func f(h: float16[2] readonly, b: bfloat16[2] readonly, q: int4[2] readonly, oh: float16[2], ob: "
      "bfloat16[1], "
      "oq: int4[2]):\n"
      "  oh[ramp(0, 1, 2)] = h[ramp(0, 1, 2)] + broadcast(float16(0.0004), 2)\n"
      "  ob[0] = b[0] + bfloat16(0.01)\n"
      "  oq[ramp(1, -1, 2)] = q[ramp(0, 1, 2)] + broadcast(int4(1), 2)\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(out_half[0], 0x3c00) << "0.0004 is less than half an ulp of 1";
  EXPECT_EQ(out_half[1], 0x7bff);
  EXPECT_EQ(out_bfloat[0], small_float_encode(kBFloatFormat, 1.0 + 0.01));
  EXPECT_EQ(out_packed[0], 0x08) << "-1 + 1 in the high half, 7 + 1 wraps to -8 in the low";
}

TEST(Interpret, MasksTouchOnlyTheirLanes) {
  float x[2] = {1, 2}, y[4] = {9, 9, 9, 9};
  void* buffers[] = {x, y};
  PrimFunc f = parsed(
      "func f(x: float32[2] readonly, y: float32[4]):\n"
      "  let on: boolx4 = ramp(0, 1, 4) < broadcast(2, 4)\n"
      "  y[ramp(0, 1, 4), mask = on or ramp(0, 1, 4) == broadcast(3, 4)] = x[ramp(0, 1, 4), mask = on] + "
      "broadcast(1.0, 4)\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{2, 3, 9, 1}));
}

TEST(Interpret, ReductionsHaveOneOrder) {
  std::vector<float> x = {1e8f, 1, -1e8f, 1, 3, 5}, y(3);
  void* buffers[] = {x.data(), y.data()};
  PrimFunc f = parsed(
      "func f(x: float32[6] readonly, y: float32[3]):\n"
      "  y[0] = reduce_add(x[ramp(0, 1, 4)])\n"
      "  y[1] = reduce_add(x[ramp(0, 1, 6)])\n"
      "  y[2] = reduce_max(x[ramp(0, 1, 6)])\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(y[0], (1e8f + -1e8f) + (1 + 1));
  EXPECT_EQ(y[1], ((1e8f + 1) + (1 + 3)) + (-1e8f + 5));
  EXPECT_EQ(y[2], 1e8f);
}

TEST(Interpret, MaxKeepsTheSecondOperandWhenUnordered) {
  float x[1] = {NAN}, y[2];
  void* buffers[] = {x, y};
  PrimFunc f = parsed(
      "func f(x: float32[1] readonly, y: float32[2]):\n"
      "  y[0] = max(0.0, x[0])\n"
      "  y[1] = max(x[0], 0.0)\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
}

TEST(Interpret, MathCastsAndShuffles) {
  float x[4] = {2.5f, -2.5f, 0.5f, 1e20f}, y[8];
  int32_t z[4];
  void* buffers[] = {x, y, z};
  PrimFunc f = parsed(
      "func f(x: float32[4] readonly, y: float32[8], z: int32[4]):\n"
      "  y[ramp(0, 1, 4)] = round(x[ramp(0, 1, 4)])\n"
      "  y[ramp(4, 1, 2)] = shuffle([x[ramp(0, 1, 4)], broadcast(7.0, 2)], [5, 1])\n"
      "  y[6] = ldexp_int(x[0], int32(3))\n"
      "  y[7] = reinterpret(float32, int32(1065353216))\n"
      "  z[ramp(0, 1, 3)] = cast(int32x3, x[ramp(0, 1, 3)])\n"
      "  z[3] = clz(int32(1)) + popcount(int32(-1))\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(std::vector<float>(y, y + 8), (std::vector<float>{2, -2, 0, 1e20f, 7, -2.5f, 20, 1}));
  EXPECT_EQ(std::vector<int32_t>(z, z + 4), (std::vector<int32_t>{2, -2, 0, 63}));
}

// Bytes of a are unsigned, those of b signed, the lowest first; sums wrap.
TEST(Interpret, WordsOfFourBytes) {
  uint8_t x[8] = {1, 2, 255, 4, 255, 255, 255, 255};
  int32_t w[2] = {static_cast<int32_t>(0x807f02ffu), static_cast<int32_t>(0x80808080u)};
  int32_t z[3] = {10, -2147483647, 0};
  void* buffers[] = {x, w, z};
  PrimFunc f = parsed(
      "func f(x: uint8[8] readonly, w: int32[2] readonly, z: int32[3]):\n"
      "  z[ramp(0, 1, 2)] = dot4(z[ramp(0, 1, 2)], reinterpret(int32x2, x[ramp(0, 1, 8)]), w[ramp(0, 1, 2)])\n"
      "  z[2] = dot4(int32(0), reinterpret(int32, x[ramp(1, 1, 4)]), int32(16843009))\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(z[0], 10 - 1 + 4 + 127 * 255 - 512);
  EXPECT_EQ(z[1], static_cast<int32_t>(-2147483647u - 4u * 255u * 128u));
  EXPECT_EQ(z[2], 2 + 255 + 4 + 255);
}

// Halves are signed; sums of them wrap by themselves.
TEST(Interpret, WordsOfTwoHalves) {
  int32_t w[2] = {static_cast<int32_t>(0x80ff7f02u), static_cast<int32_t>(0xfffe0003u)};
  int32_t z[6] = {};
  void* buffers[] = {w, z};
  PrimFunc f = parsed(
      "func f(w: int32[2] readonly, z: int32[6]):\n"
      "  z[0] = even_bytes(int32(65537), w[0])\n"
      "  z[1] = odd_bytes(int32(0), w[0])\n"
      "  z[2] = low_halves(w[0], w[1])\n"
      "  z[3] = high_halves(w[0], w[1])\n"
      "  z[4] = dot2(int32(10), w[1], w[1])\n"
      "  z[5] = even_bytes(int32(65535), w[0])\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(z[0], 3);  // 1 + 2, and 1 - 1
  EXPECT_EQ(static_cast<uint32_t>(z[1]), 0xff80007fu);
  EXPECT_EQ(static_cast<uint32_t>(z[2]), 0x00037f02u);
  EXPECT_EQ(static_cast<uint32_t>(z[3]), 0xfffe80ffu);
  EXPECT_EQ(z[4], 10 + 9 + 4);
  EXPECT_EQ(static_cast<uint32_t>(z[5]), 0xffff0001u);
}

// Products of bfloat16 are exact in float32.
TEST(Interpret, WordsOfTwoBFloat16) {
  int32_t w[2] = {static_cast<int32_t>(0x40003f80u), static_cast<int32_t>(0xc0404080u)};  // 1, 2; 4, -3
  float z[3] = {0.5f, 0, 0};
  void* buffers[] = {w, z};
  PrimFunc f = parsed(
      "func f(w: int32[2] readonly, z: float32[3]):\n"
      "  z[0] = dot2_bfloat16(z[0], w[0], w[1])\n"
      "  z[ramp(1, 1, 2)] = dot2_bfloat16(z[ramp(1, 1, 2)], w[ramp(0, 1, 2)], w[ramp(0, 1, 2)])\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(std::vector<float>(z, z + 3), (std::vector<float>{0.5f + 4 - 6, 5, 25}));
}

TEST(Interpret, ThreadsTakeTheirShare) {
  PrimFunc f = parsed(
      "func f(y: int64[8]) threads(tid, nthreads):\n"
      "  for i from 0 extent 8:\n"
      "    if i % nthreads == tid:\n"
      "      y[i] = y[i] + tid + 1\n");
  std::vector<int64_t> y(8);
  void* buffers[] = {y.data()};
  for (int64_t t = 0; t < 3; ++t) ASSERT_TRUE(interpret(f, buffers, t, 3).ok());
  EXPECT_EQ(y, (std::vector<int64_t>{1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(Interpret, ReportsWhatGeneratedCodeCouldNot) {
  EXPECT_EQ(error_of("func f(x: float32[4]):\n  for i from 0 extent 5:\n    x[i] = 1.0\n"),
            "writes x[4], which has 4 elements");
  EXPECT_EQ(error_of("func f(x: float32[4], y: float32[4]):\n  for i from 0 extent 4:\n    y[i] = x[i - 1]\n"),
            "reads x[-1], which has 4 elements");
  EXPECT_EQ(error_of("func f(x: int32[4]):\n  x[0] = int32(3) // x[1]\n"),
            "computes FloorDiv of 3 and 0, which is undefined");
  EXPECT_EQ(error_of("func f(x: int32[4]):\n  x[0] = if_then_else(x[1] != int32(0), int32(3) // x[1], int32(0))\n"), "")
      << "only the chosen side runs";
  PrimFunc f = parsed("func f(x: float32[4]):\n  x[0] = 1.0\n");
  EXPECT_FALSE(interpret(f, {}).ok());
  void* none[] = {nullptr};
  EXPECT_FALSE(interpret(f, none).ok());
}

TEST(Interpret, FreshArraysArePoisoned) {
  float y[2];
  void* buffers[] = {y};
  PrimFunc f = parsed(
      "func f(y: float32[2]):\n"
      "  alloc s: float32[2]\n"
      "  alloc r: float32[2] register\n"
      "  s[0] = 1.0\n"
      "  r[0] = 1.0\n"
      "  y[0] = s[0] + r[0]\n"
      "  y[1] = s[1] + r[1]\n");
  ASSERT_TRUE(interpret(f, buffers).ok());
  EXPECT_EQ(y[0], 2);
  EXPECT_TRUE(std::isnan(y[1]));
}

}  // namespace
}  // namespace tilewright::tir
