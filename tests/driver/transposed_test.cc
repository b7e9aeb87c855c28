// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of pictures and signals: depthwise ones by phases, few channels straight into plain rows.
#include <gtest/gtest.h>

#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using testing::check;
using testing::constant;
using testing::input;
using testing::relu;
using Sizes = std::vector<int64_t>;

struct TransposedCase {
  Sizes data;
  int64_t out_per_group;
  Sizes kernel, strides, padding, output_padding{0, 0};
  int64_t groups = 1;
};
Expr transposed(const Expr& x, const TransposedCase& c) {
  Expr y = call("nn.conv2d_transpose", {x, constant({c.data[1], c.out_per_group, c.kernel[0], c.kernel[1]})},
                make_attrs<Conv2DTransposeAttrs>([&](auto& a) {
                  a.strides = c.strides, a.padding = c.padding, a.output_padding = c.output_padding;
                  a.groups = c.groups, a.channels = c.out_per_group * c.groups, a.kernel_size = c.kernel;
                  a.kernel_layout = "IOHW";
                }));
  return relu(testing::bias(y, c.out_per_group * c.groups));
}

void check_all(const std::vector<TransposedCase>& cases, const std::string& implementation) {
  for (const TransposedCase& c : cases)
    for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"}) {
      SCOPED_TRACE(shape_str(c.data) + " " + shape_str(c.kernel) + " " + target);
      Expr x = input("x", c.data);
      Expr y = transposed(x, c);
      check({x}, y, target);
      BuildOptions options;
      options.target = target;
      auto built = build(relay::Module().with_main(make_function({x}, y)), options);
      ASSERT_TRUE(built.ok()) << built.error().str();
      bool found = false;
      for (const auto& step : built->lowered.plan.steps) found |= step.implementation == implementation;
      EXPECT_TRUE(found);
    }
}

TEST(Transposed, EachChannelForItself) {
  check_all({{{1, 32, 9, 11}, 1, {4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, 32},
             {{2, 19, 7, 6}, 1, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 19},
             {{1, 40, 5, 6}, 1, {2, 2}, {3, 3}, {0, 0, 0, 0}, {1, 1}, 40}},  // pixels that no tap reaches
            "conv2d_transpose_nchwc.depthwise");
}

TEST(Transposed, FewChannelsFillPlainRows) {
  check_all({{{1, 48, 16, 18}, 2, {4, 4}, {2, 2}, {1, 1, 1, 1}},         // overlapping taps
             {{1, 20, 6, 15}, 1, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},  // uneven ones
             {{1, 20, 1, 37}, 1, {1, 8}, {1, 4}, {0, 2, 0, 2}},          // a signal: both taps in one vector
             {{2, 24, 1, 37}, 1, {1, 3}, {1, 5}, {0, 0, 0, 0}, {0, 1}},  // phases without taps
             {{2, 24, 7, 5}, 2, {2, 2}, {2, 2}, {0, 0, 0, 0}},
             {{1, 24, 7, 40}, 2, {3, 3}, {1, 1}, {1, 1, 1, 1}},
             {{1, 16, 5, 5}, 2, {3, 3}, {2, 2}, {2, 2, 1, 1}, {1, 1}}},
            "conv2d_transpose_nchwc.plain_rows");
}

}  // namespace
}  // namespace tilewright::driver
