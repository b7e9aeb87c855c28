// SPDX-License-Identifier: Apache-2.0
// Convolutions, transposed ones and pools over volumes: which kernels they get, and that these agree with the
// reference.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using testing::check;
using testing::constant;
using testing::input;
using testing::relu;
using Sizes = std::vector<int64_t>;

struct Window {
  Sizes kernel, strides{1, 1, 1}, padding{0, 0, 0, 0, 0, 0}, dilation{1, 1, 1};
  int64_t groups = 1;
  Sizes output_padding{0, 0, 0};
};
Expr conv3d(const Expr& x, int64_t out, int64_t in_per_group, const Window& w) {
  return call("nn.conv3d", {x, constant({out, in_per_group, w.kernel[0], w.kernel[1], w.kernel[2]})},
              make_attrs<Conv3DAttrs>([&](auto& a) {
                a.strides = w.strides, a.padding = w.padding, a.dilation = w.dilation, a.groups = w.groups;
                a.channels = out, a.kernel_size = w.kernel;
              }));
}
Expr transposed(const Expr& x, int64_t in, int64_t out_per_group, const Window& w) {
  return call("nn.conv3d_transpose", {x, constant({in, out_per_group, w.kernel[0], w.kernel[1], w.kernel[2]})},
              make_attrs<Conv3DTransposeAttrs>([&](auto& a) {
                a.strides = w.strides, a.padding = w.padding, a.groups = w.groups;
                a.output_padding = w.output_padding, a.kernel_layout = "IODHW";
                a.channels = out_per_group * w.groups, a.kernel_size = w.kernel;
              }));
}
Expr volume_bias(const Expr& x, int64_t channels) { return call("add", {x, constant({channels, 1, 1, 1}, 11)}); }

std::vector<std::string> chosen(const Expr& x, const Expr& body, const char* target) {
  BuildOptions options;
  options.target = target;
  auto built = build(Module().with_main(make_function({x}, body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  std::vector<std::string> out;
  if (built.ok())
    for (const auto& step : built->lowered.plan.steps)
      if (step.implementation.find("conv3d") != std::string::npos) out.push_back(step.implementation);
  return out;
}

constexpr const char* kTargets[] = {"llvm", "llvm -math=strict", "llvm -mcpu=x86-64-v3"};

TEST(Volumes, ConvolutionsOfEveryShape) {
  const std::pair<Sizes, Window> cases[] = {
      {{1, 16, 4, 10, 12}, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}}},
      {{2, 35, 3, 9, 7}, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}}},    // channels that fill no block
      {{1, 32, 7, 11, 11}, {{3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}}},  // phases in all directions
      {{1, 3, 5, 17, 20}, {{3, 7, 7}, {1, 2, 2}, {1, 3, 3, 1, 3, 3}}},   // a stem
      {{1, 24, 6, 8, 9}, {{3, 1, 1}, {1, 1, 1}, {1, 0, 0, 1, 0, 0}}},    // the depth alone
      {{1, 24, 9, 8, 9}, {{3, 1, 1}, {2, 1, 1}, {1, 0, 0, 1, 0, 0}}},
      {{1, 24, 6, 8, 9}, {{1, 3, 3}, {1, 1, 1}, {0, 1, 1, 0, 1, 1}}},  // planes by themselves
      {{1, 20, 5, 8, 9}, {{1, 3, 3}, {2, 1, 1}, {0, 1, 1, 0, 1, 1}}},
      {{1, 48, 5, 6, 6}, {{1, 1, 1}, {2, 2, 2}}},
      {{1, 48, 5, 6, 6}, {{1, 1, 1}}},
      {{1, 32, 9, 12, 10}, {{3, 3, 3}, {1, 1, 1}, {2, 2, 2, 2, 2, 2}, {2, 2, 2}}},
      {{1, 32, 1, 7, 7}, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}}},  // two of three taps meet padding only
      {{1, 17, 6, 7, 8}, {{2, 3, 4}, {1, 1, 1}, {0, 1, 2, 1, 0, 1}}},  // uneven padding
      {{1, 16, 12, 9, 9}, {{5, 3, 3}, {3, 1, 1}, {2, 1, 1, 2, 1, 1}, {2, 1, 1}}},
      {{1, 64, 4, 9, 9}, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 2}},
  };
  for (const auto& [shape, window] : cases)
    for (const char* target : kTargets) {
      SCOPED_TRACE(shape_str(shape) + " " + shape_str(window.kernel) + " " + target);
      Expr x = input("x", shape);
      Expr y =
          relu(volume_bias(conv3d(x, 40 * window.groups - 8 * (window.groups > 1), shape[1] / window.groups, window),
                           40 * window.groups - 8 * (window.groups > 1)));
      check({x}, y, target);
    }
}

TEST(Volumes, TheCostModelTakesWinogradForCubes) {
  const Window cube{{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}};
  Expr x = input("x", {1, 64, 8, 28, 28});
  const auto fast = chosen(x, conv3d(x, 64, 64, cube), "llvm -mcpu=x86-64-v4");
  ASSERT_EQ(fast.size(), 1u);
  EXPECT_EQ(fast[0].rfind("conv3d_ncdhwc.winograd", 0), 0u) << fast[0];
  EXPECT_EQ(chosen(x, conv3d(x, 64, 64, cube), "llvm -mcpu=x86-64-v4 -math=strict"),
            std::vector<std::string>{"conv3d_ncdhwc.direct"});
}

TEST(Volumes, TransposedByPhases) {
  const std::tuple<Sizes, int64_t, Window> cases[] = {
      {{1, 32, 4, 5, 6}, 24, {{2, 2, 2}, {2, 2, 2}}},
      {{2, 20, 3, 4, 5}, 16, {{3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 1, {1, 1, 1}}},
      {{1, 16, 3, 4, 5}, 16, {{4, 4, 3}, {2, 2, 1}, {1, 1, 1, 1, 1, 1}}},
      {{1, 16, 3, 4, 5}, 16, {{1, 2, 2}, {1, 2, 2}}},
      {{1, 32, 2, 3, 4},
       16,
       {{2, 2, 2}, {3, 3, 3}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}, 2, {1, 0, 1}}},  // pixels without taps
  };
  for (const auto& [shape, out, window] : cases)
    for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"}) {
      SCOPED_TRACE(shape_str(shape) + " " + shape_str(window.kernel) + " " + target);
      Expr x = input("x", shape);
      Expr y = relu(volume_bias(transposed(x, shape[1], out, window), out * window.groups));
      check({x}, y, target);
      const auto names = chosen(x, y, target);
      EXPECT_EQ(names, std::vector<std::string>{"conv3d_transpose_ncdhwc.phases"});
    }
}

TEST(Volumes, EachChannelForItself) {
  const std::pair<Sizes, Window> cases[] = {
      {{1, 24, 5, 9, 11}, {{3, 3, 3}, {1, 2, 2}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 24}},
      {{2, 37, 4, 6, 7}, {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 37}},
      {{1, 24, 9, 6, 7}, {{5, 1, 1}, {1, 1, 1}, {2, 0, 0, 2, 0, 0}, {1, 1, 1}, 24}},
  };
  for (const auto& [shape, window] : cases)
    for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"}) {
      SCOPED_TRACE(shape_str(shape) + " " + shape_str(window.kernel) + " " + target);
      Expr x = input("x", shape);
      Expr y = relu(volume_bias(conv3d(x, shape[1], 1, window), shape[1]));
      check({x}, y, target);
      EXPECT_EQ(chosen(x, y, target), std::vector<std::string>{"conv3d_ncdhwc.depthwise"});
    }
}

TEST(Volumes, NetworksStayInBlocks) {
  Expr x = input("x", {2, 16, 6, 12, 10});
  const Window cube{{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}};
  Expr a = relu(volume_bias(conv3d(x, 32, 16, cube), 32));
  Expr pooled = call("nn.max_pool3d", {a}, make_attrs<MaxPool3DAttrs>([](auto& p) {
                       p.pool_size = {3, 3, 3}, p.strides = {2, 2, 2}, p.padding = {1, 1, 1, 1, 1, 1};
                     }));
  Expr mean = call("nn.avg_pool3d", {a}, make_attrs<AvgPool3DAttrs>([](auto& p) {
                     p.pool_size = {2, 3, 2}, p.strides = {2, 2, 2}, p.padding = {0, 1, 0, 0, 1, 0};
                   }));
  Expr joined =
      call("concatenate", {make_tuple({pooled, mean})}, make_attrs<ConcatenateAttrs>([](auto& c) { c.axis = 1; }));
  Expr b = call("add", {conv3d(joined, 64, 64, cube), joined});
  Expr tail = call("mean", {relu(b)}, make_attrs<ReduceAttrs>([](auto& r) {
                     r.axis = Sizes{2, 3, 4}, r.keepdims = true;
                   }));
  check({x}, tail);
  check({x}, tail, "llvm -mcpu=x86-64-v3");
  // One change of layout, for the input: everything else stays in blocks.
  BuildOptions options;
  auto built = build(Module().with_main(make_function({x}, tail)), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  std::string changes;
  for (const auto& step : built->lowered.plan.steps)
    if (step.name.find("layout_transform") != std::string::npos) changes += step.name + "\n";
  EXPECT_EQ(std::count(changes.begin(), changes.end(), '\n'), 1) << changes;
}

}  // namespace
}  // namespace tilewright::driver
