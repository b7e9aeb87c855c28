// SPDX-License-Identifier: Apache-2.0
// Which vectors of bytes are seen as functions of others, and their tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tir/passes/byte_functions.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// What a function stores last, as a function of bytes; null where it is none.
const ByteFunction* of_last_store(const PrimFunc& f, const std::unordered_map<const ExprNode*, ByteFunction>& all) {
  const ByteFunction* out = nullptr;
  for_each_stmt(f.body, [&](const Stmt& s) {
    if (s->kind != StmtKind::kStore) return;
    const auto found = all.find(static_cast<const StoreNode&>(*s).value.get());
    out = found == all.end() ? nullptr : &found->second;
  });
  return out;
}

// A sigmoid between two scales, of what a sum leaves: the table's source is the sum in bytes, not the sum.
TEST(ByteFunctions, ActivationOfAQuantizedSum) {
  const PrimFunc f = parse_func(
                         "func f(x: int32[16] readonly, y: uint8[16]):\n"
                         "  %0 = cast(uint8x16, max(min(cast(float32x16, x[ramp(0, 1, 16)]), broadcast(255.0, 16)), "
                         "broadcast(0.0, 16)))\n"
                         "  %1 = cast(float32x16, %0) * broadcast(0.0625, 16) - broadcast(8.0, 16)\n"
                         "  y[ramp(0, 1, 16)] = cast(uint8x16, round(%1 * sigmoid(%1) * broadcast(16.0, 16)) + "
                         "broadcast(10.0, 16))\n")
                         .value();
  const auto all = byte_functions(f, 10);
  const ByteFunction* found = of_last_store(f, all);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->source->dtype, kUInt8.with_lanes(16));
  EXPECT_EQ(found->source->kind, ExprKind::kCast);
  int different = 0;
  for (int b = 0; b < 256; ++b) {
    const double x = b * 0.0625 - 8, value = std::nearbyint(x / (1 + std::exp(-x)) * 16) + 10;
    different += found->table[static_cast<size_t>(b)] != static_cast<uint8_t>(value);
  }
  EXPECT_EQ(different, 0);
  EXPECT_EQ(byte_functions(f, 100).size(), 0u) << "a price nobody pays";
}

// Signed bytes by their bits.
TEST(ByteFunctions, SignedBytes) {
  const PrimFunc f = parse_func(
                         "func f(x: int8[8] readonly, y: int8[8]):\n"
                         "  y[ramp(0, 1, 8)] = cast(int8x8, round(tanh(cast(float32x8, x[ramp(0, 1, 8)]) * "
                         "broadcast(0.03125, 8)) * broadcast(127.0, 8)))\n")
                         .value();
  const auto all = byte_functions(f, 10);
  const ByteFunction* found = of_last_store(f, all);
  ASSERT_NE(found, nullptr);
  for (int b = -128; b < 128; ++b)
    EXPECT_EQ(static_cast<int8_t>(found->table[static_cast<uint8_t>(b)]),
              static_cast<int8_t>(std::nearbyint(std::tanh(b * 0.03125) * 127)))
        << b;
}

// Two operands, a scale of each lane, other lanes of the source, and what is cheap anyway.
TEST(ByteFunctions, OthersStay) {
  for (const char* value :
       {"tanh(cast(float32x16, x[ramp(0, 1, 16)]) + cast(float32x16, x[ramp(16, 1, 16)]))",
        "tanh(cast(float32x16, x[ramp(0, 1, 16)]) * s[ramp(0, 1, 16)])",
        "tanh(shuffle([cast(float32x16, x[ramp(0, 1, 16)])], [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]))",
        "max(cast(float32x16, x[ramp(0, 1, 16)]), broadcast(3.0, 16))"}) {
    auto f = parse_func(std::string("func f(x: uint8[32] readonly, s: float32[16] readonly, y: uint8[16]):\n"
                                    "  y[ramp(0, 1, 16)] = cast(uint8x16, ") +
                        value + ")\n");
    ASSERT_TRUE(f.ok()) << f.error().str();
    EXPECT_EQ(byte_functions(*f, 10).size(), 0u) << value;
  }
}

}  // namespace
}  // namespace tilewright::tir
