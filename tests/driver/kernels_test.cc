// SPDX-License-Identifier: Apache-2.0
// Every operator that compiles, against the reference interpreter: small graphs through the whole way (passes,
// lowering, machine code), checked kernel by kernel and at the outputs.
#include <random>
#include <sstream>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

// Products of few rows by weights of 4 and 8 bits in blocks.
Expr block_product(Expr x, int64_t n, int64_t k, int64_t bits, int64_t block) {
  const int64_t blocks = (k + block - 1) / block;
  Expr weight = make_constant(random_tensor(kUInt8, {n, blocks, block * bits / 8}, 3)),
       zeros = make_constant(random_tensor(kFloat32, {n, blocks}, 4));
  return call("nn.block_dense", {std::move(x), weight, constant({n, blocks}, 5), zeros},
              make_attrs<BlockDenseAttrs>([&](auto& a) { a.bits = bits, a.block = block; }));
}
TEST(Kernels, ProductsOfBlocks) {
  for (int64_t bits : {4, 8})
    for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"}) {
      Expr x = input("x", {1, 96}), y = input("y", {2, 3, 50}), z = input("z", {1, 256});
      check({x}, relu(call("add", {block_product(x, 64, 96, bits, 32), constant({64}, 6)})), target);
      check({y}, block_product(y, 37, 50, bits, 16), target);
      check({z}, block_product(z, 5, 256, bits, 256), target);
    }
}
TEST(Kernels, ProductsOfBlocksThatARunKnows) {
  for (int64_t bits : {4, 8}) {
    Expr x = input("x", {2, 40}), w = input("w", {7, 3, 2 * bits}, kUInt8);
    Expr scales = constant({7, 3}, 5), zeros = constant({7, 3}, 6);
    check({x, w}, call("nn.block_dense", {x, w, scales, zeros},
                       make_attrs<BlockDenseAttrs>([&](auto& a) { a.bits = bits, a.block = 16; })));
  }
}

TEST(Kernels, StemConvolution) {
  Expr x = input("x", {1, 3, 23, 19});
  check({x}, relu(bias(conv(x, 20, 3, 7, 2, 3), 20)));
}
TEST(Kernels, PointwiseChain) {
  Expr x = input("x", {1, 24, 9, 11});
  check({x}, bias(conv(relu(bias(conv(x, 40, 24, 1, 1, 0), 40)), 16, 40, 1, 1, 0), 16));
}
TEST(Kernels, ThreeByThreeWithResidual) {
  Expr x = input("x", {1, 32, 14, 14});
  Expr y = relu(bias(conv(x, 32, 32, 3, 1, 1), 32));
  check({x}, relu(call("add", {bias(conv(y, 32, 32, 3, 1, 1), 32), x})));
}
TEST(Kernels, StridedAndDilated) {
  Expr x = input("x", {2, 17, 15, 13});
  check({x}, conv(conv(x, 33, 17, 3, 2, 1), 16, 33, 3, 1, 2, 1, 2));
  for (int64_t dilation : {6, 12, 20}) check({x}, conv(conv(x, 40, 17, 1, 1, 0), 24, 40, 3, 1, dilation, 1, dilation));
}
TEST(Kernels, Depthwise) {
  for (int64_t k : {3, 5})
    for (int64_t stride : {1, 2}) {
      Expr x = input("x", {1, 24, 13, 17});
      check({x}, relu(bias(conv(conv(x, 24, 24, 1, 1, 0), 24, 1, k, stride, k / 2, 24), 24)));
    }
}
TEST(Kernels, GroupedConvolutions) {
  Expr x = input("x", {1, 64, 7, 7});
  check({x}, conv(x, 64, 32, 3, 1, 1, 2));
  check({x}, conv(x, 32, 4, 3, 1, 1, 16));
}
// Groups of 8 and 24 channels in blocks of 16, the last of which stays half empty; its lanes must not reach what
// follows.
TEST(Kernels, NarrowGroups) {
  Expr x = input("x", {2, 40, 9, 7});
  check({x}, conv(relu(bias(conv(relu(bias(conv(x, 40, 40, 1, 1, 0), 40)), 40, 8, 3, 2, 1, 5), 40)), 32, 40, 1, 1, 0));
  Expr y = input("y", {1, 72, 6, 10});
  check({y},
        conv(call("sigmoid", {bias(conv(relu(conv(y, 72, 72, 1, 1, 0)), 24, 24, 3, 1, 1, 3), 24)}), 16, 24, 1, 1, 0));
  check({y}, relu(bias(conv(conv(y, 48, 72, 1, 1, 0), 144, 8, 1, 1, 0, 6), 144)));
}
// Several groups in a block, and groups that end within one; the last block need not be full; over windows, strides and
// sizes that nothing was made for.
TEST(Kernels, SeveralGroupsInABlock) {
  std::mt19937 random(5);
  auto draw = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"})
    for (int64_t width : {2, 4, 8, 12, 24})
      for (int64_t window : {1, 3, 5}) {
        const int64_t groups = draw(2, 9), channels = (std::max<int64_t>(1, 16 / width) - 1 + groups) * width;
        const int64_t dilation = draw(1, 2), stride = draw(1, 3), pad = draw(0, window / 2);
        Expr x = input(
            "x", {draw(1, 2), channels, draw(1, 12) + dilation * (window - 1), draw(1, 33) + dilation * (window - 1)});
        Expr y = relu(bias(conv(x, channels, width, window, stride, pad, channels / width, dilation), channels));
        check({x}, conv(y, 24, channels, 1, 1, 0), target);
      }
}
// The lanes that such a layer moves meet their products at once: moved ahead, they push the tile's sums to the stack
// (322 accesses for Sapphire Rapids).
TEST(Kernels, NarrowGroupsKeepTheirSums) {
  for (const char* name : {"llvm -mcpu=sapphirerapids", "llvm -mcpu=znver4"}) {
    SCOPED_TRACE(name);
    Expr x = input("x", {1, 48, 80, 9}), y = relu(bias(conv(x, 48, 8, 3, 2, 1, 6), 48));
    BuildOptions options;
    options.target = name;
    auto built = build(Module().with_main(make_function({x}, y)), options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    const Target target = codegen::resolve_target(parse_target(name).value()).value();
    for (const auto& kernel : built->lowered.kernels) {
      std::istringstream lines(codegen::kernel_text(kernel, target, "s").value());
      int products = 0, spilled = 0;
      for (std::string line; std::getline(lines, line);) {
        products += line.find("vfmadd") != std::string::npos;
        spilled += line.find("zmm") != std::string::npos && line.find("(%rsp)") != std::string::npos;
      }
      EXPECT_LE(spilled, products / 4) << kernel.name;
    }
  }
}

// A comparison that becomes a number is a mask over ones.
TEST(Kernels, ComparisonsBecomeNumbersByAMask) {
  for (const char* name : {"llvm -mcpu=haswell", "llvm -mcpu=znver4"}) {
    SCOPED_TRACE(name);
    Expr a = input("a", {64, 64}), b = input("b", {64, 64});
    Expr y = call("cast", {call("equal", {a, b})}, make_attrs<CastAttrs>([](auto& attrs) { attrs.dtype = kFloat32; }));
    BuildOptions options;
    options.target = name;
    auto built = build(Module().with_main(make_function({a, b}, y)), options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    const Target target = codegen::resolve_target(parse_target(name).value()).value();
    ASSERT_EQ(built->lowered.kernels.size(), 1u);
    const std::string text = codegen::kernel_text(built->lowered.kernels[0], target, "s").value();
    EXPECT_NE(text.find("vcmpeq"), std::string::npos);
    EXPECT_EQ(text.find("vcvt"), std::string::npos);
  }
}

TEST(Kernels, AddOfTwoConvolutionsAndSqueezeExcite) {
  Expr x = input("x", {1, 32, 8, 8});
  Expr y = bias(conv(x, 32, 32, 3, 1, 1), 32);
  Expr s = call("sigmoid",
                {bias(conv(relu(bias(conv(call("nn.global_avg_pool2d", {y}, make_default_attrs<GlobalPool2DAttrs>()), 8,
                                          32, 1, 1, 0),
                                     8)),
                           32, 8, 1, 1, 0),
                      32)});
  check({x}, call("multiply", {y, s}));
}
TEST(Kernels, Pools) {
  Expr x = input("x", {1, 32, 13, 13});
  Expr y = relu(conv(x, 32, 32, 1, 1, 0));
  auto pool = [&](auto tag, const char* op, int64_t k, int64_t stride, int64_t pad, bool ceil_mode) {
    using A = decltype(tag);
    check({x}, call(op, {y}, make_attrs<A>([&](auto& a) {
                      a.pool_size = {k, k};
                      a.strides = {stride, stride};
                      a.padding = {pad, pad, pad, pad};
                      a.ceil_mode = ceil_mode;
                    })));
    check({x}, call(op, {x}, make_attrs<A>([&](auto& a) {
                      a.pool_size = {k, k};
                      a.strides = {stride, stride};
                      a.padding = {pad, pad, pad, pad};
                      a.ceil_mode = ceil_mode;
                    })));
  };
  pool(MaxPool2DAttrs(), "nn.max_pool2d", 3, 2, 1, false);
  pool(MaxPool2DAttrs(), "nn.max_pool2d", 3, 2, 0, true);
  pool(AvgPool2DAttrs(), "nn.avg_pool2d", 3, 1, 1, false);
  pool(AvgPool2DAttrs(), "nn.avg_pool2d", 2, 2, 0, false);
}
// With ceil_mode a window longer than its axis has one output, which hangs over the end.
TEST(Kernels, PoolsOfAxesShorterThanTheirWindow) {
  for (int64_t size : {1, 2}) {
    for (int64_t channels : {3, 32}) {
      Expr x = input("x", {1, channels, size, 5});
      auto pool = [&](auto tag, const char* op, int64_t pad) {
        using A = decltype(tag);
        Expr y = call(op, {relu(x)}, make_attrs<A>([&](auto& a) {
                        a.pool_size = {3, 2};
                        a.strides = {3, 2};
                        a.padding = {pad, 0, 0, 0};
                        a.ceil_mode = true;
                      }));
        EXPECT_EQ(type_str(y->type), format("Tensor[(1, {}, 1, 3), float32]", channels));
        check({x}, y);
      };
      pool(MaxPool2DAttrs(), "nn.max_pool2d", 0);
      pool(MaxPool2DAttrs(), "nn.max_pool2d", 1);
      pool(AvgPool2DAttrs(), "nn.avg_pool2d", 0);
    }
  }
}
TEST(Kernels, ConcatAndSplitOfChannels) {
  Expr x = input("x", {1, 32, 6, 6});
  Expr a = relu(conv(x, 16, 32, 3, 1, 1)), b = relu(conv(x, 32, 32, 1, 1, 0));
  Expr joined = call("concatenate", {make_tuple({a, b})}, make_attrs<ConcatenateAttrs>([](auto& t) { t.axis = 1; }));
  check({x}, conv(joined, 16, 48, 3, 1, 1));
  check({x}, joined);
  Expr odd = call("concatenate", {make_tuple({relu(conv(x, 12, 32, 1, 1, 0)), b, a})},
                  make_attrs<ConcatenateAttrs>([](auto& t) { t.axis = 1; }));
  check({x}, conv(odd, 16, 60, 3, 1, 1));
  Expr parts = call("split", {b}, make_attrs<SplitAttrs>([](auto& t) {
                      t.axis = 1;
                      t.sections = 2;
                    }));
  check({x}, call("add", {conv(make_get(parts, 0), 16, 16, 3, 1, 1), make_get(parts, 1)}));
}
// A constant of few columns is kept as rows along the reduction, whichever way it comes.
TEST(Kernels, ProductsOfFewColumns) {
  Expr x = input("x", {2, 30, 515});
  check({x}, relu(call("add", {call("nn.dense", {x, constant({10, 515})}, make_default_attrs<DenseAttrs>()),
                               constant({10}, 3)})));
  Expr y = input("y", {61, 515});
  check({y}, relu(call("nn.matmul", {y, constant({515, 9})},
                       make_attrs<MatmulAttrs>([](auto& t) { t.transpose_a = t.transpose_b = false; }))));
}
TEST(Kernels, DenseAndMatmul) {
  Expr x = input("x", {5, 37});
  check({x}, relu(call("add", {call("nn.dense", {x, constant({50, 37})}, make_default_attrs<DenseAttrs>()),
                               constant({50}, 3)})));
  Expr one = input("x", {1, 64});
  check({one}, call("nn.dense", {one, constant({1000, 64})}, make_default_attrs<DenseAttrs>()));
  Expr batched = input("x", {2, 7, 20});
  check({batched}, call("add", {call("nn.dense", {batched, constant({33, 20})}, make_default_attrs<DenseAttrs>()),
                                constant({33}, 5)}));
  Expr a = input("a", {6, 9, 16}), b = input("b", {6, 11, 16}), c = input("c", {6, 16, 10});
  check({a, b}, call("nn.batch_matmul", {a, b}, make_default_attrs<BatchMatmulAttrs>()));
  check({a, c}, call("nn.batch_matmul", {a, c}, make_attrs<BatchMatmulAttrs>([](auto& t) { t.transpose_b = false; })));
}
TEST(Kernels, ElementwiseFamilies) {
  Expr x = input("x", {3, 37});
  for (const char* op : {"abs", "ceil", "cos", "erf", "exp", "floor", "negative", "round", "sigmoid", "sign", "sin",
                         "tanh", "atan", "cosh", "nn.relu"})
    check({x}, call(op, {x}));
  Expr positive = call("add", {call("abs", {x}), make_scalar(0.5)});
  for (const char* op : {"log", "sqrt", "rsqrt", "log2"}) check({x}, call(op, {positive}));
  Expr y = input("y", {1, 37}), z = input("z", {3, 1});
  for (const char* op : {"add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal", "equal"})
    check({x, y}, call(op, {x, y}));
  check({x, z}, call("divide", {x, call("add", {call("abs", {z}), make_scalar(1)})}));
  check({x, z}, call("power", {call("add", {call("abs", {x}), make_scalar(0.1)}), z}));
  check({x, y, z}, call("where", {call("less", {x, y}), y, z}));
}
// Dense around zero, through the tails where Phi saturates, and the special values.
TEST(Kernels, Gelu) {
  Expr x = input("x", {4, 33});
  auto rows = [](std::vector<float> values) {
    return make_constant(Tensor::from<float>(kFloat32, {4, 1}, std::span<const float>(values)));
  };
  for (const char* target : {"llvm", "llvm -mcpu=x86-64-v2"})
    check({x}, call("nn.gelu", {call("multiply", {x, rows({0.01f, 2, 8, 1000})})}), target);
  const float inf = std::numeric_limits<float>::infinity();
  check({x}, call("nn.gelu", {call("add", {x, rows({inf, -inf, 1e30f, -1e30f})})}));
}

TEST(Kernels, Transforms) {
  Expr x = input("x", {2, 6, 5, 16});
  auto transpose = [&](Expr e, std::vector<int64_t> axes) {
    return call("transpose", {e}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = axes; }));
  };
  auto reshape = [&](Expr e, std::vector<int64_t> to) {
    return call("reshape", {e}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = to; }));
  };
  check({x}, relu(transpose(x, {0, 2, 1, 3})));
  check({x}, relu(transpose(x, {0, 3, 1, 2})));
  check({x},
        call("add", {reshape(transpose(reshape(x, {2, 2, 3, 5, 16}), {0, 2, 1, 3, 4}), {2, 6, 80}), constant({80})}));
  check({x}, relu(call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([](auto& a) {
                         a.begin = {1, 2};
                         a.end = {9, 14};
                         a.strides = {2, 3};
                         a.axes = std::vector<int64_t>{2, 3};
                       }))));
  check({x}, relu(call("concatenate", {make_tuple({x, call("exp", {x})})},
                       make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 3; }))));
  check({x}, call("take", {x, ints({3, 0, 5})}, make_attrs<TakeAttrs>([](auto& a) { a.axis = 1; })));
  check({x}, call("nn.pad", {x, make_scalar(0.25)}, make_attrs<PadAttrs>([](auto& a) {
                    a.pad_width = {{0, 0}, {1, 0}, {0, 2}, {3, 1}};
                  })));
  check({x}, call("tile", {x}, make_attrs<TileAttrs>([](auto& a) { a.reps = {1, 2, 1, 2}; })));
}
// Any layout into any other, blocks of one size into blocks of another, padded ones included.
TEST(Kernels, Layouts) {
  auto changed = [](std::vector<int64_t> shape, const char* from, const char* to,
                    std::optional<int64_t> channels = {}) {
    Expr x = input("x", shape);
    check({x}, call("layout_transform", {x}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                      a.src_layout = from, a.dst_layout = to;
                      a.channels = channels;
                    })));
  };
  changed({2, 20, 5, 6}, "NCHW", "NHWC");
  changed({2, 5, 6, 20}, "NHWC", "NCHW16c");
  changed({2, 2, 5, 6, 16}, "NCHW16c", "NHWC", 20);
  changed({2, 2, 5, 6, 16}, "NCHW16c", "NCHW8c");
  changed({2, 2, 5, 6, 16}, "NCHW16c", "NCHW8c", 20);
  changed({3, 20, 3, 3}, "OIHW", "OIHW16i16o");
  changed({2, 1, 3, 3, 16, 16}, "OIHW16i16o", "HWIO");
  changed({2, 20, 6}, "NCW", "NCW16c");
  // Weights that padding makes many times larger are laid out in the compiler all the same.
  Expr x = input("x", {1, 64, 12, 12});
  check({x}, conv(x, 3, 64, 9, 1, 4));
}
TEST(Kernels, ReductionsAndNormalisation) {
  Expr x = input("x", {3, 5, 21});
  for (const char* op : {"sum", "mean", "max", "min"})
    for (std::vector<int64_t> axes : {std::vector<int64_t>{2}, {1}, {0, 2}, {-1, -2}})
      for (bool keep : {false, true})
        check({x}, call(op, {relu(x)}, make_attrs<ReduceAttrs>([&](auto& a) {
                          a.axis = axes;
                          a.keepdims = keep;
                        })));
  for (int64_t axis : {-1, 1}) {
    check({x}, call("nn.softmax", {x}, make_attrs<SoftmaxAttrs>([&](auto& a) { a.axis = axis; })));
    check({x}, call("argmax", {x}, make_attrs<ArgReduceAttrs>([&](auto& a) { a.axis = std::vector<int64_t>{axis}; })));
  }
  check({x}, relu(call("nn.layer_norm", {x, constant({21}), constant({21}, 2)}, make_default_attrs<LayerNormAttrs>())));
}
// The same code for narrower vectors and fewer registers.
TEST(Kernels, OtherTargets) {
  for (const char* target : {"llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"}) {
    Expr x = input("x", {1, 20, 10, 9});
    Expr y = relu(bias(conv(relu(bias(conv(x, 24, 20, 3, 1, 1), 24)), 24, 1, 3, 2, 1, 24), 24));
    check({x}, call("nn.dense", {call("nn.batch_flatten", {y}), constant({10, 600})}, make_default_attrs<DenseAttrs>()),
          target);
  }
}

// The last product of a language model: a table whose rows are looked up, too. Both read the same bytes.
TEST(Kernels, ATableOfWordsIsStoredOnce) {
  constexpr int64_t kWords = 16421, kWidth = 256;  // above 16 MiB, the last tile of rows is partial
  for (const char* target : {"llvm", "llvm -mcpu=haswell"}) {
    const Expr table = constant({kWords, kWidth}), word = input("word", {1}, kInt64),
               scale = input("scale", {1, kWidth});
    const Expr row = call("take", {table, word}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
    const Expr logits =
        call("nn.dense", {call("multiply", {row, scale}), table}, make_attrs<relay::DenseAttrs>([](auto&) {}));
    const auto module = relay::Module().with_main(relay::make_function({word, scale}, logits));
    check(module, target, {{"word", Tensor::from<int64_t>(kInt64, {1}, std::vector<int64_t>{kWords - 1})}});
    BuildOptions options;
    options.target = target;
    auto built = build(module, options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    EXPECT_LT(built->lowered.plan.params_bytes, 4 * kWords * kWidth + 4096) << target;
  }
}

}  // namespace
}  // namespace tilewright::driver
