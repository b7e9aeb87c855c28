// SPDX-License-Identifier: Apache-2.0
// Whole numbers beside ties are right on both sides; anything else that is a step away is wrong.
#include "driver/verify_ties.h"

#include "driver/graphs.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {

using testing::call;
using testing::Expr;

relay::Environment arguments_of(const Expr& x, std::vector<double> values) {
  relay::Value v = relay::make_value(kFloat32, {static_cast<int64_t>(values.size())});
  v.f = std::move(values);
  return {{x.get(), {v}}};
}

TEST(VerifyTies, ValuesNextToATieHaveTwoSides) {
  const Expr x = testing::input("x", {5});
  const Expr body = call("nearbyint", {x});
  auto sides = rounded_both_ways(body, arguments_of(x, {2.499999, 2.5, -7.5, 2.49, 3}));
  ASSERT_TRUE(sides.ok()) << sides.error().str();
  ASSERT_TRUE(sides->has_value());
  EXPECT_EQ((*sides)->low[0].f, (std::vector<double>{2, 2, -8, 2, 3}));
  EXPECT_EQ((*sides)->high[0].f, (std::vector<double>{3, 3, -7, 2, 3}));
}

TEST(VerifyTies, WhatRoundsNothingHasNone) {
  const Expr x = testing::input("x", {1});
  auto sides = rounded_both_ways(call("exp", {x}), arguments_of(x, {1}));
  ASSERT_TRUE(sides.ok()) << sides.error().str();
  EXPECT_FALSE(sides->has_value());
}

// On processors without dot products of bytes a sum of this model's is rounded from float32 beside a tie.
TEST(VerifyTies, AQuantizedModelIsRight) {
  auto report = verify_onnx(TW_TEST_DATA "/onnx/quantized.onnx", {});
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_TRUE(report->ok());
  EXPECT_LE(report->ties, 2U);
}

}  // namespace
}  // namespace tilewright::driver
