// SPDX-License-Identifier: Apache-2.0
// The default pipeline on a small residual network with batch normalisation: which groups come out, and that the
// interpreter computes the same before and after, at every level and with every pass left out once.
#include "relay/passes/default_pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "relay/interpreter.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::relay {
namespace {

double noise(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(*state >> 40) / (1 << 24) - 0.5;
}

constexpr const char* kNetwork = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 12, 12), float32], %unused: float32) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0], strides=[2, 2], padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %1 = nn.batch_norm(%0, meta[relay.Constant][1], meta[relay.Constant][2], meta[relay.Constant][3], meta[relay.Constant][4]);
  %2 = nn.relu(%1.0);
  %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[1, 1]);
  %4 = nn.conv2d(%3, meta[relay.Constant][5], padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %5 = nn.batch_norm(%4, meta[relay.Constant][1], meta[relay.Constant][2], meta[relay.Constant][3], meta[relay.Constant][4]);
  %6 = nn.relu(%5.0);
  %7 = nn.conv2d(%6, meta[relay.Constant][6], padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  %8 = nn.batch_norm(%7, meta[relay.Constant][1], meta[relay.Constant][2], meta[relay.Constant][3], meta[relay.Constant][4]);
  %9 = nn.conv2d(%3, meta[relay.Constant][7], channels=16, kernel_size=[1, 1]);
  %10 = nn.batch_norm(%9, meta[relay.Constant][1], meta[relay.Constant][2], meta[relay.Constant][3], meta[relay.Constant][4]);
  %11 = add(%8.0, %10.0);
  %12 = nn.relu(%11);
  %13 = nn.global_avg_pool2d(%12);
  %14 = nn.dropout(%13);
  %15 = nn.batch_flatten(%14.0);
  %16 = nn.dense(%15, meta[relay.Constant][8], units=4);
  %17 = nn.bias_add(%16, meta[relay.Constant][9]);
  @head(%17)
}
def @head(%x: Tensor[(1, 4), float32], Inline=1) -> Tensor[(1, 4), float32] {
  nn.softmax(%x)
}
def @never(%x: float32) -> float32 {
  exp(%x)
}
)";

Module network() {
  std::vector<std::vector<int64_t>> shapes = {{16, 3, 3, 3},  {16},           {16},           {16},    {16},
                                              {16, 16, 3, 3}, {16, 16, 3, 3}, {16, 16, 1, 1}, {4, 16}, {4}};
  std::vector<Tensor> constants;
  uint64_t state = 7;
  for (size_t k = 0; k < shapes.size(); ++k) {
    Tensor t(kFloat32, shapes[k]);
    for (float& v : t.as_mutable<float>()) v = static_cast<float>(k == 4 ? 1 + noise(&state) : noise(&state));
    constants.push_back(t);
  }
  auto module = parse_module(kNetwork, constants);
  EXPECT_TRUE(module.ok()) << module.error().str();
  return *module;
}

std::vector<Value> results(const Module& module) {
  Value x = make_value(kFloat32, {1, 3, 12, 12});
  uint64_t state = 1;
  for (double& v : x.f) v = static_cast<float>(noise(&state));
  InterpretOptions options;
  options.module = &module;
  auto out = interpret(module, {{"x", x}, {"unused", make_value(kFloat32, {})}}, options);
  EXPECT_TRUE(out.ok()) << out.error().str();
  return out.ok() ? *out : std::vector<Value>();
}

void expect_close(const std::vector<Value>& a, const std::vector<Value>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k)
    for (size_t i = 0; i < a[k].f.size(); ++i) ASSERT_NEAR(a[k].f[i], b[k].f[i], 1e-6);
}

std::map<std::string, int> groups_of(const Module& module) {
  std::map<std::string, int> out;
  for (const Expr& e : post_order(module.main(), true)) {
    const auto* function = as<FunctionNode>(e);
    if (!function || !function->primitive()) continue;
    std::string ops;
    for (const Expr& part : post_order(function->body))
      if (const OpDef* op = called_op(part)) ops += (ops.empty() ? "" : " ") + std::string(op->name);
    ++out[ops];
  }
  return out;
}

Target plain_target() { return Target(); }  // no vectors: layouts stay plain
Target blocked_target() {
  Target target;
  target.vector_bits = 512;
  return target;
}

TEST(DefaultPipeline, BatchNormDisappearsIntoWeights) {
  PassContext context;
  context.disabled = {"AlterOpLayout"};
  auto result = optimize(network(), context, plain_target());
  ASSERT_TRUE(result.ok()) << result.error().str();
  auto groups = groups_of(*result);
  EXPECT_EQ(groups["nn.conv2d add nn.relu"], 2);
  EXPECT_EQ(groups["nn.conv2d add add nn.relu"], 1);
  EXPECT_EQ(groups["nn.conv2d add"], 1);
  EXPECT_EQ(groups["nn.dense add"], 1);
  EXPECT_EQ(groups["nn.softmax"], 1);
  EXPECT_EQ(result->functions.count("never"), 0u);
  expect_close(results(network()), results(*result));
}

TEST(DefaultPipeline, EveryLevelAndTargetComputesTheSame) {
  auto expected = results(network());
  for (int level = 0; level <= 4; ++level)
    for (const Target& target : {plain_target(), blocked_target()}) {
      PassContext context;
      context.opt_level = level;
      auto result = optimize(network(), context, target);
      ASSERT_TRUE(result.ok()) << "level " << level << ": " << result.error().str();
      expect_close(expected, results(*result));
    }
}

TEST(DefaultPipeline, EveryPassCanBeLeftOut) {
  auto expected = results(network());
  for (const std::string& name : default_pipeline()) {
    PassContext context;
    context.disabled = {name};
    auto result = optimize(network(), context, blocked_target());
    ASSERT_TRUE(result.ok()) << "without " << name << ": " << result.error().str();
    expect_close(expected, results(*result));
  }
}

TEST(DefaultPipeline, WithoutFusionEachOperatorIsAGroup) {
  PassContext context;
  context.disabled = {"FuseOps"};
  auto result = optimize(network(), context, plain_target());
  ASSERT_TRUE(result.ok()) << result.error().str();
  for (const auto& [operators, count] : groups_of(*result))
    EXPECT_EQ(operators.find(' '), std::string::npos) << operators << ", " << count << " times";
  for (const Expr& e : post_order(result->main())) EXPECT_EQ(called_op(e), nullptr) << "an operator outside of a group";
}

TEST(DefaultPipeline, EveryPrefixOfABisectionComputesTheSame) {
  auto expected = results(network());
  PassContext whole;
  ASSERT_TRUE(optimize(network(), whole, blocked_target()).ok());
  for (int64_t stop = 0; stop <= whole.optional_passes_run; ++stop) {
    PassContext context;
    context.stop_after = stop;
    auto result = optimize(network(), context, blocked_target());
    ASSERT_TRUE(result.ok()) << stop << ": " << result.error().str();
    expect_close(expected, results(*result));
    for (const Expr& e : post_order(result->main()))
      EXPECT_EQ(called_op(e), nullptr) << "an operator outside of a group";
  }
}

// Running it again on its result changes nothing that is computed, and twice on the input gives equal text.
TEST(DefaultPipeline, IsDeterministic) {
  PassContext first, second;
  auto a = optimize(network(), first, blocked_target()), b = optimize(network(), second, blocked_target());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(print_module(*a).text, print_module(*b).text);
}

// A chain as long as the largest models, under the default stack.
TEST(DefaultPipeline, LongChainsDoNotRecurse) {
  Expr x = make_var("x", tensor_type({4}, kFloat32)), e = x;
  for (int i = 0; i < 30000; ++i) e = call(i % 3 == 0 ? "tanh" : i % 3 == 1 ? "exp" : "negative", {e});
  Module module;
  module.functions["main"] = make_function({x}, e);
  PassContext context;
  auto result = optimize(module, context, blocked_target());
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_TRUE(verify_module(*result).ok());
}

}  // namespace
}  // namespace tilewright::relay
