// SPDX-License-Identifier: Apache-2.0
// Whole numbers beside ties are right on both sides; anything else that is a step away is wrong.
#include "driver/verify_ties.h"

#include "driver/graphs.h"
#include "driver/verify.h"
#include "relay/calls.h"
#include "relay/passes/table.h"
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

// A thousand values, of which some lie beside ties when what they are multiplied by is rounded otherwise.
TEST(VerifyTies, PassesAreNotAccusedOfTies) {
  const Expr x = testing::input("x", {1000});
  auto scaled = [&](double by) {
    const Expr scale = relay::make_constant(Tensor::scalar<float>(kFloat32, static_cast<float>(by)));
    return call("nearbyint", {call("multiply", {x, scale})});
  };
  relay::Module module;
  module.functions["main"] = relay::make_function({x}, scaled(100));
  relay::Value values = relay::make_value(kFloat32, {1000});
  for (int i = 0; i < 1000; ++i) values.f[static_cast<size_t>(i)] = (i % 7 + 0.5) / 100;
  auto sides = rounded_both_ways(module, {{"x", values}});
  ASSERT_TRUE(sides.ok()) << sides.error().str();
  ASSERT_TRUE(sides->has_value());
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ((*sides)->low[0].f[i] + 1, (*sides)->high[0].f[i]);
}

TEST(VerifyTies, FactsNameWhatRounds) {
  for (const char* op : {"nearbyint", "round", "floor", "ceil", "trunc"})
    EXPECT_TRUE(relay::find_op(op)->facts.rounds) << op;
  EXPECT_FALSE(relay::find_op("abs")->facts.rounds);
}

// The pass that changes the result is named, though passes that every build needs run after it.
TEST(VerifyTies, ThePassThatIsWrongIsNamed) {
  const Expr x = testing::input("x", {4});
  relay::Module module;
  module.functions["main"] = relay::make_function({x}, call("nn.relu", {call("exp", {x})}));
  VerifyOptions options;
  for (const Pass<relay::Module>& pass : relay::all_passes()) {
    if (pass.info.name != std::string("SimplifyExpr")) continue;
    auto broken = pass;
    broken.run = [](const relay::Module& m, PassContext&) -> Result<relay::Module> {
      relay::Module out = m;
      for (auto& [name, function] : out.functions)
        function = relay::rewrite_graph(function, [](const Expr&, const Expr& e) {
          return relay::as_call(e, "exp") ? relay::one("exp", relay::one("negative", relay::arg(e, 0))) : e;
        });
      return out;
    };
    options.build.user_passes.push_back(broken);
  }
  ASSERT_EQ(options.build.user_passes.size(), 1U);
  auto report = verify_module(module, options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_FALSE(report->ok());
  EXPECT_EQ(report->pass_to_blame, "SimplifyExpr");
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
