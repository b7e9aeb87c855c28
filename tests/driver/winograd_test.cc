// SPDX-License-Identifier: Apache-2.0
// Which convolutions become Winograd, and that whole graphs with them agree with the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "driver/graphs.h"
#include "lower/weight_forms.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using testing::check;

Expr image(std::vector<int64_t> shape) { return make_var("x", tensor_type(to_shape(shape), kFloat32)); }
Tensor weights(int64_t out, int64_t in, int64_t kh = 3, int64_t kw = 3) {
  return random_tensor(kFloat32, {out, in, kh, kw}, 7);
}
Expr weighted_conv(const Expr& x, const Tensor& w, std::vector<int64_t> padding = {1, 1, 1, 1}, int64_t stride = 1,
                   int64_t dilation = 1) {
  return call("nn.conv2d", {x, make_constant(w)}, make_attrs<Conv2DAttrs>([&](auto& a) {
                a.strides = {stride, stride};
                a.dilation = {dilation, dilation};
                a.padding = padding;
                a.channels = w.shape()[0];
                a.kernel_size = std::vector<int64_t>{w.shape()[2], w.shape()[3]};
              }));
}
Module module_of(const Expr& x, const Expr& body) { return Module().with_main(make_function({x}, body)); }

// Names of the chosen convolution kernels, in order.
std::vector<std::string> chosen(const Module& module, const char* target = "llvm -mcpu=x86-64-v4") {
  BuildOptions options;
  options.target = target;
  auto built = build(module, options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  std::vector<std::string> out;
  if (built.ok())
    for (const auto& step : built->lowered.plan.steps)
      if (step.implementation.rfind("conv2d_nchwc.", 0) == 0) out.push_back(step.implementation.substr(13));
  return out;
}

TEST(WinogradChoice, LargeTilesOnLargeMapsDirectWhereItMust) {
  Expr x = image({1, 64, 56, 56});
  EXPECT_EQ(chosen(module_of(x, weighted_conv(x, weights(64, 64)))), std::vector<std::string>{"winograd4"});
  EXPECT_EQ(chosen(module_of(x, weighted_conv(x, weights(64, 64), {1, 1, 1, 1}, 2)))[0].rfind("winograd", 0),
            0u);  // by phases
  EXPECT_EQ(chosen(module_of(x, weighted_conv(x, weights(64, 64), {1, 1, 1, 1}, 3))),
            std::vector<std::string>{"direct"});
  EXPECT_EQ(chosen(module_of(x, weighted_conv(x, weights(64, 64, 1, 1), {0, 0, 0, 0}))),
            std::vector<std::string>{"direct"});
}

TEST(WinogradChoice, DilatedLayersToo) {
  Expr x = image({1, 128, 28, 28});
  const Module module = module_of(x, weighted_conv(x, weights(128, 128), {2, 2, 2, 2}, 1, 2));
  EXPECT_EQ(chosen(module)[0].rfind("winograd", 0), 0u);
  Expr small = image({1, 32, 20, 20});
  check({small}, weighted_conv(small, weights(32, 32), {4, 4, 4, 4}, 1, 4));
}

TEST(WinogradChoice, StrictMathIsDirect) {
  Expr x = image({1, 64, 56, 56});
  const Module module = module_of(x, weighted_conv(x, weights(64, 64)));
  EXPECT_EQ(chosen(module, "llvm -mcpu=x86-64-v4 -math=strict"), std::vector<std::string>{"direct"});
  EXPECT_EQ(chosen(module, "llvm -mcpu=x86-64-v4 -math=default"), std::vector<std::string>{"winograd4"});
  auto strict = parse_target("llvm -mcpu=x86-64-v4 -math=strict");
  ASSERT_TRUE(strict.ok());
  EXPECT_NE(strict->str().find(" -math=strict"), std::string::npos);
  EXPECT_EQ(parse_target("llvm -math=loose").error().code, ErrorCode::kUnknownTarget);
}

TEST(WinogradChoice, WeightsThatAreNotFiniteStayDirect) {
  Expr x = image({1, 64, 56, 56});
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Tensor w = weights(64, 64);
    w.set_double(1234, bad);
    EXPECT_EQ(chosen(module_of(x, weighted_conv(x, w))), std::vector<std::string>{"direct"});
  }
}

// The bytes of all weights that the library of these modules holds, each of them once.
uint64_t weight_bytes(const std::vector<Built>& optimized, const lower::WeightForms* forms) {
  std::map<uint64_t, uint64_t> bytes;
  for (const Built& one : optimized) {
    lower::LowerOptions options;
    options.forms = forms;
    auto lowered = lower::lower_module(one.optimized, one.target, options);
    EXPECT_TRUE(lowered.ok()) << lowered.error().str();
    for (size_t i = 0; lowered.ok() && i < lowered->params.size(); ++i)
      bytes[lowered->params[i].content_hash()] = lowered->plan.params[i].bytes;
  }
  uint64_t sum = 0;
  for (const auto& [hash, size] : bytes) sum += size;
  return sum;
}

// Alone, batches and processors take other tiles, in other widths; together they hold fewer forms.
TEST(WinogradChoice, BatchesAndProcessorsShareWeights) {
  const Tensor first = weights(128, 128), second = weights(192, 128);
  std::vector<Built> all;
  lower::WeightForms forms;
  for (const char* target : {"llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3 -vector-width=512"})
    for (int64_t batch : {1, 2, 3, 5, 8}) {
      Expr x = image({batch, 128, 7, 7});
      BuildOptions options;
      options.target = target;
      auto one = optimize(module_of(x, weighted_conv(weighted_conv(x, first), second)), options);
      ASSERT_TRUE(one.ok()) << one.error().str();
      ASSERT_TRUE(forms.add(one->optimized, one->target).ok());
      all.push_back(std::move(*one));
    }
  forms.agree();
  const uint64_t together = weight_bytes(all, &forms), apart = weight_bytes(all, nullptr);
  EXPECT_LE(together * 12, apart * 10) << together << " and " << apart;
}

TEST(WinogradChoice, RoundingBeyondTheBudgetTakesADirectKernel) {
  // One output channel far above the others: the errors that count are over the whole tensor's scale.
  Expr x = image({1, 64, 28, 28});
  Tensor w = weights(4096, 64);
  for (int64_t i = 0; i < w.size(); ++i) w.set_double(i, (i < 9 * 64 ? 1e4 : 1e-3) * w.at_double(i));
  EXPECT_EQ(chosen(module_of(x, weighted_conv(x, w))), std::vector<std::string>{"direct"});
}

TEST(WinogradGraphs, ResidualsConcatsBatchesAndOddEdges) {
  Expr x = image({2, 48, 30, 27});
  Expr y = call("nn.relu", {weighted_conv(x, weights(40, 48))});
  Expr z = call("add", {weighted_conv(y, weights(40, 40)), y});
  Expr both = call("concatenate", {make_tuple({y, z})}, make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 1; }));
  const Module module = module_of(x, call("nn.relu", {weighted_conv(both, weights(33, 80), {0, 1, 2, 0})}));
  for (const std::string& name : chosen(module)) EXPECT_EQ(name.rfind("winograd", 0), 0u) << name;
  check(module);
  check(module, "llvm -mcpu=x86-64-v3");
  check(module, "llvm -mcpu=x86-64-v2");
}

TEST(WinogradGraphs, StridesOfTwo) {
  Expr x = image({2, 32, 31, 40});
  Expr y = call("nn.relu", {weighted_conv(x, weights(40, 32), {1, 1, 1, 1}, 2)});
  const Module module = module_of(x, call("nn.relu", {weighted_conv(y, weights(33, 40, 5, 5), {2, 2, 2, 2}, 2)}));
  check(module);
  check(module, "llvm -mcpu=x86-64-v3");
}

TEST(WinogradGraphs, TwoMapsWithOneWeight) {
  // The same constant, packed for each map's own register tile.
  Expr x = image({1, 64, 32, 32});
  const Expr w = make_constant(weights(64, 64));
  auto head = [&](const Expr& map) {
    return call("nn.conv2d", {map, w}, make_attrs<Conv2DAttrs>([](auto& a) {
                  a.padding = {1, 1, 1, 1};
                  a.channels = 64;
                  a.kernel_size = std::vector<int64_t>{3, 3};
                }));
  };
  Expr small = call("nn.max_pool2d", {x}, make_attrs<MaxPool2DAttrs>([](auto& a) {
                      a.pool_size = {5, 5}, a.strides = {5, 5};
                    }));
  check(module_of(x, make_tuple({head(x), head(small)})));
}

}  // namespace
}  // namespace tilewright::driver
