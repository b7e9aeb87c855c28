// SPDX-License-Identifier: Apache-2.0
// Convolutions with weights that were transformed ahead, against the convolution itself.
#include "driver/graphs.h"
#include "relay/interpreter.h"
#include "relay/ops/nn/attrs_winograd.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using namespace relay;

Expr transformed(const Expr& weight, int64_t tile) {
  Expr points = call("nn.contrib_conv2d_winograd_weight_transform", {weight},
                     make_attrs<ConvWinogradWeightTransformAttrs>([&](auto& a) { a.tile_size = tile; }));
  return call("transpose", {points}, make_attrs<TransposeAttrs>([](auto& a) {
                a.axes = std::vector<int64_t>{0, 1, 3, 2};
              }));
}
Expr tiled(const Expr& x, const Expr& weight, int64_t tile, int64_t kernel) {
  return call("nn.contrib_conv2d_winograd_without_weight_transform", {x, transformed(weight, tile)},
              make_attrs<Conv2DWinogradAttrs>([&](auto& a) {
                a.tile_size = tile;
                a.padding = {1, 1, 1, 1};
                a.kernel_size = std::vector<int64_t>{kernel, kernel};
              }));
}

// Every tile and kernel: the same sums in the reference, whose doubles leave no more than the conditioning of the
// largest tiles.
TEST(ClassicWinograd, EveryTile) {
  for (int64_t kernel = 3; kernel <= 7; ++kernel)
    for (int64_t tile = 2; tile <= 8; ++tile) {
      SCOPED_TRACE(::testing::Message() << "F(" << tile << ", " << kernel << ")");
      Expr x = input("x", {1, 2, 11, 9}), w = constant({3, 2, kernel, kernel});
      Expr plain = conv(x, 3, 2, kernel, 1, 1);
      plain = call("nn.conv2d", {x, w}, as<CallNode>(plain)->attrs);
      const Environment values{{x.get(), {value_from(random_tensor(kFloat32, {1, 2, 11, 9}, 3))}}};
      auto a = evaluate(tiled(x, w, tile, kernel), values), b = evaluate(plain, values);
      ASSERT_TRUE(a.ok()) << a.error().str();
      ASSERT_TRUE(b.ok());
      ASSERT_EQ((*a)[0].shape, (*b)[0].shape);
      // The matrices are float32 constants: 1/3 and its like are rounded.
      for (size_t i = 0; i < (*a)[0].f.size(); ++i)
        ASSERT_NEAR((*a)[0].f[i], (*b)[0].f[i], tile + kernel > 10 ? 2e-2 : 1e-4);
    }
}
TEST(ClassicWinograd, Compiles) {
  Expr x = input("x", {2, 8, 13, 12});
  for (int64_t tile : {2, 4, 6}) check({x}, relu(bias(tiled(x, constant({16, 8, 3, 3}), tile, 3), 16)));
}

TEST(ClassicWinograd, Refusals) {
  auto of = [](std::vector<int64_t> x, std::vector<int64_t> w, auto fill) {
    return error_of("nn.contrib_conv2d_winograd_without_weight_transform", {input("x", x), input("w", w)},
                    make_attrs<Conv2DWinogradAttrs>([&](auto& a) {
                      a.tile_size = 2;
                      fill(a);
                    }));
  };
  EXPECT_EQ(of({1, 3, 5, 5}, {4, 4, 3, 2}, [](auto&) {}), "");
  EXPECT_EQ(of({1, 4, 5, 5}, {4, 4, 3, 2}, [](auto&) {}), "the data has 4 channels, the transformed weight 3");
  EXPECT_EQ(of({1, 3, 5, 5}, {4, 4, 3, 2},
               [](auto& a) {
                 a.strides = {2, 2};
               }),
            "Winograd's tiles are for strides, dilation and groups of 1");
  EXPECT_EQ(of({1, 3, 5, 5}, {4, 4, 3, 2}, [](auto& a) { a.tile_size = 9; }), "tile_size 9 is not from 2 to 8");
  EXPECT_EQ(of({1, 3, 5, 5}, {5, 5, 3, 2},
               [](auto& a) {
                 a.kernel_size = std::vector<int64_t>{3, 3};
               }),
            "the transformed weight (5, 5, 3, 2) is not that of tiles of 2 and a kernel (3, 3)");
  EXPECT_EQ(of({1, 3, 1, 1}, {4, 4, 3, 2}, [](auto&) {}), "a window of 3 does not fit an axis of 1");
  EXPECT_EQ(error_of("nn.contrib_conv2d_winograd_weight_transform", {input("w", {4, 4, 3, 5})},
                     make_attrs<ConvWinogradWeightTransformAttrs>([](auto& a) { a.tile_size = 2; })),
            "the kernel is not square");
  EXPECT_EQ(error_of("nn.contrib_conv2d_gemm_without_weight_transform",
                     {input("x", {1, 4, 4, 3}), input("w", {1, 1, 4, 8})}, make_attrs<Conv2DAttrs>([](auto& a) {
                       a.data_layout = "NHWC";
                       a.channels = 4;
                       a.kernel_size = std::vector<int64_t>{3, 3};
                     })),
            "panels (1, 1, 4, 8) do not hold a kernel (3, 3) of 3 channels for 4");
}

}  // namespace
}  // namespace tilewright::driver
