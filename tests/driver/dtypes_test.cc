// SPDX-License-Identifier: Apache-2.0
// Products, convolutions, windows, norms and small networks in every dtype, against the reference interpreter: register
// tiles of each width, sums of narrow integers, small floats through float32 (docs/decisions/012-small-floats.md).
#include <cmath>

#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

constexpr DataType kAll[] = {kFloat16, kBFloat16, kFloat32, kFloat64, kInt8,   kInt16,
                             kInt32,   kInt64,    kUInt8,   kUInt16,  kUInt32, kUInt64};
constexpr DataType kFloats[] = {kFloat16, kBFloat16, kFloat64};

Expr number(DataType dtype, std::vector<int64_t> shape, uint64_t seed = 7) {
  return make_constant(random_tensor(dtype, shape, seed));
}
// Which kernels a program got, by name.
std::string implementation_of(const std::vector<Expr>& inputs, const Expr& body, const char* target = "llvm") {
  BuildOptions options;
  options.target = target;
  options.jobs = 1;
  auto built = build(Module().with_main(make_function(inputs, body)), options);
  if (!built.ok()) return built.error().str();
  std::string out;
  for (const auto& step : built->lowered.plan.steps) out += step.implementation + "\n";
  return out;
}

TEST(Dtypes, ProductsWithConstants) {
  for (DataType t : kAll)
    for (std::vector<int64_t> mkn : {std::vector<int64_t>{7, 7, 7}, {1, 40, 70}, {37, 33, 19}, {3, 5, 1}}) {
      SCOPED_TRACE(t.str() + shape_str(mkn));
      Expr x = input("x", {mkn[0], mkn[1]}, t);
      check({x}, call("nn.dense", {x, number(t, {mkn[2], mkn[1]})}, make_default_attrs<DenseAttrs>()));
      check({x}, call("nn.matmul", {x, number(t, {mkn[1], mkn[2]})}, make_default_attrs<MatmulAttrs>()));
    }
}
TEST(Dtypes, ProductsOfActivations) {
  for (DataType t : kAll)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        SCOPED_TRACE(t.str() + (ta ? " a" : "") + (tb ? " b" : ""));
        Expr a = input("a", ta ? std::vector<int64_t>{33, 9} : std::vector<int64_t>{9, 33}, t);
        Expr b = input("b", tb ? std::vector<int64_t>{21, 33} : std::vector<int64_t>{33, 21}, t);
        check({a, b}, call("nn.matmul", {a, b},
                           make_attrs<MatmulAttrs>([&](auto& m) { m.transpose_a = ta, m.transpose_b = tb; })));
      }
}
// Batches that are broadcast on one side, on both, and not at all.
TEST(Dtypes, BatchesOfProducts) {
  for (DataType t : {kFloat32, kFloat64, kInt32, kFloat16})
    for (bool tb : {false, true}) {
      SCOPED_TRACE(t.str());
      auto product = [&](std::vector<int64_t> a_batch, std::vector<int64_t> b_batch) {
        a_batch.insert(a_batch.end(), {6, 20}), b_batch.insert(b_batch.end(), {tb ? 11 : 20, tb ? 20 : 11});
        Expr a = input("a", a_batch, t), b = input("b", b_batch, t);
        check({a, b}, call("nn.batch_matmul", {a, b},
                           make_attrs<BatchMatmulAttrs>([&](auto& m) { m.transpose_a = false, m.transpose_b = tb; })));
      };
      product({3}, {3});
      product({2, 3}, {2, 3});
      product({2, 1}, {1, 3});
      product({2, 3}, {1, 3});
      product({1}, {4});
    }
}
TEST(Dtypes, ResultsWiderThanTheirOperands) {
  for (auto [in, out] : {std::pair{kInt8, kInt32}, std::pair{kInt8, kInt64}, std::pair{kUInt8, kInt32},
                         std::pair{kInt32, kInt64}, std::pair{kFloat16, kFloat32}, std::pair{kFloat32, kFloat64}}) {
    SCOPED_TRACE(in.str() + " to " + out.str());
    Expr x = input("x", {5, 24}, in);
    check({x}, call("nn.dense", {x, number(in, {9, 24})},
                    make_attrs<DenseAttrs>([out = out](auto& a) { a.out_dtype = out.str(); })));
  }
}
TEST(Dtypes, EinsumIsProducts) {
  auto of = [&](DataType t, const char* equation, std::vector<std::vector<int64_t>> shapes) {
    SCOPED_TRACE(t.str() + " " + equation);
    std::vector<Expr> inputs;
    for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back(input(i ? i > 1 ? "c" : "b" : "a", shapes[i], t));
    Expr e = call("einsum", {make_tuple(inputs)}, make_attrs<EinsumAttrs>([&](auto& a) { a.equation = equation; }));
    check(inputs, e);
    return implementation_of(inputs, e);
  };
  for (DataType t : {kFloat32, kFloat64, kInt32, kFloat16}) {
    EXPECT_EQ(of(t, "bhid,bhjd->bhij", {{2, 3, 5, 8}, {2, 3, 7, 8}}).find("direct"), std::string::npos);
    of(t, "bhij,bhjd->bihd", {{2, 3, 5, 7}, {2, 3, 7, 8}});
    of(t, "ij,jk->ki", {{5, 6}, {6, 7}});
    of(t, "ij,kj,kl->il", {{5, 6}, {4, 6}, {4, 3}});
    of(t, "i,j->ij", {{5}, {6}});
    of(t, "abc,b->c", {{2, 3, 4}, {3}});
    of(t, "...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 6}});
    of(t, "ij->ji", {{3, 4}});
    of(t, "ii->i", {{4, 4}});
    of(t, "ijk->", {{3, 4, 5}});
  }
}

Expr conv_of(DataType t, Expr x, int64_t out, int64_t in_per_group, int64_t k, int64_t stride, int64_t groups = 1) {
  return call("nn.conv2d", {x, number(t, {out, in_per_group, k, k})}, make_attrs<Conv2DAttrs>([&](auto& a) {
                a.strides = {stride, stride};
                a.padding = {k / 2, k / 2, k / 2, k / 2};
                a.groups = groups;
                a.channels = out;
                a.kernel_size = std::vector<int64_t>{k, k};
              }));
}
TEST(Dtypes, Convolutions) {
  for (DataType t : kAll) {
    SCOPED_TRACE(t.str());
    Expr x = input("x", {1, 3, 15, 13}, t);
    Expr stem = conv_of(t, x, 20, 3, 3, 2);
    Expr y = call("nn.relu", {call("add", {stem, number(t, {20, 1, 1}, 9)})});
    check({x}, conv_of(t, conv_of(t, y, 20, 1, 3, 1, 20), 33, 20, 1, 1));
    Expr z = input("z", {2, 8, 21}, t);
    check({z}, call("nn.conv1d", {z, number(t, {6, 8, 5})}, make_attrs<Conv1DAttrs>([](auto& a) {
                      a.padding = {2, 2};
                      a.channels = 6;
                      a.kernel_size = std::vector<int64_t>{5};
                    })));
  }
}
TEST(Dtypes, ConvolutionsOfOtherWidthsAreBlocked) {
  for (DataType t : {kFloat64, kInt32, kInt64, kFloat16}) {
    Expr x = input("x", {1, 32, 14, 14}, t);
    EXPECT_NE(implementation_of({x}, conv_of(t, x, 32, 32, 3, 2)).find("conv2d_nchwc"), std::string::npos) << t.str();
  }
}
TEST(Dtypes, WinogradOfDoubles) {
  Expr x = input("x", {1, 64, 28, 28}, kFloat64);
  Expr y = conv_of(kFloat64, x, 64, 64, 3, 1);
  EXPECT_NE(implementation_of({x}, y).find("winograd"), std::string::npos);
  VerifyOptions options;
  options.build.jobs = 1;
  options.rtol = 1e-10, options.atol = 1e-12;  // far below float32's roundings
  auto report = verify_module(Module().with_main(make_function({x}, y)), options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_TRUE(report->ok()) << report->outputs[0];
}
// Weights that are all halves stay so, for few rows, whatever the model's dtype.
TEST(Dtypes, WeightsKeptInSixteenBits) {
  for (DataType kept : {kFloat16, kBFloat16}) {
    Tensor weights(kFloat32, {300, 400}), narrow(kept, {1});
    for (int64_t i = 0; i < weights.size(); ++i) {
      narrow.set_double(0, std::ldexp(static_cast<double>(i % 251 - 125) / 3,
                                      static_cast<int>(i % 25) - 18 - (kept == kBFloat16 ? 90 : 0)));
      weights.set_double(i, narrow.at_double(0));
    }
    for (int64_t rows : {1, 3, 40}) {
      Expr x = input("x", {rows, 400});
      Expr y = call("nn.dense", {x, make_constant(weights)}, make_default_attrs<DenseAttrs>());
      check({x}, y);
      BuildOptions options;
      options.jobs = 1;
      auto built = build(Module().with_main(make_function({x}, y)), options);
      ASSERT_TRUE(built.ok());
      EXPECT_EQ(built->lowered.plan.params[0].dtype, rows <= 4 ? kept : kFloat32) << kept.str() << " " << rows;
    }
  }
}
// A converter's sqrt(2) is the half nearest to it; the formula is GELU all the same.
TEST(Dtypes, GeluOfHalvesIsOneOperator) {
  Expr x = input("x", {4, 64}, kFloat16);
  Expr y = call("nn.dense", {x, number(kFloat16, {32, 64})}, make_default_attrs<DenseAttrs>());
  auto scalar = [](double v) { return make_scalar(v, kFloat16); };
  Expr inside = call("add", {call("erf", {call("divide", {y, scalar(std::sqrt(2.0))})}), scalar(1)});
  Expr z = call("multiply", {call("multiply", {y, scalar(0.5)}), inside});
  check({x}, z);
  BuildOptions options;
  options.jobs = 1;
  auto built = build(Module().with_main(make_function({x}, z)), options);
  ASSERT_TRUE(built.ok());
  EXPECT_NE(built->lowered.plan.steps.back().name.find("nn.gelu"), std::string::npos)
      << built->lowered.plan.steps.back().name;
}
TEST(Dtypes, Pools) {
  for (DataType t : kAll) {
    SCOPED_TRACE(t.str());
    Expr x = input("x", {1, 16, 13, 12}, t);
    auto pool = [&](auto tag, const char* op) {
      using A = decltype(tag);
      return call(op, {x}, make_attrs<A>([](auto& a) {
                    a.pool_size = {3, 3};
                    a.strides = {2, 2};
                    a.padding = {1, 1, 1, 1};
                  }));
    };
    check({x}, pool(MaxPool2DAttrs(), "nn.max_pool2d"));
    check({x}, pool(AvgPool2DAttrs(), "nn.avg_pool2d"));
  }
}
TEST(Dtypes, Resizes) {
  for (DataType t : kAll)
    for (const char* method : {"nearest_neighbor", "linear", "cubic"}) {
      SCOPED_TRACE(t.str() + " " + method);
      Expr x = input("x", {1, 3, 5, 4}, t);
      check({x}, call("image.resize2d", {x}, make_attrs<Resize2DAttrs>([&](auto& a) {
                        a.size = {10, 8};
                        a.method = method;
                        a.coordinate_transformation_mode = "half_pixel";
                      })));
    }
}
TEST(Dtypes, Normalisations) {
  for (DataType t : kFloats) {
    SCOPED_TRACE(t.str());
    Expr x = input("x", {6, 40}, t);
    check({x}, call("nn.softmax", {x}, make_default_attrs<SoftmaxAttrs>()));
    check({x}, call("nn.layer_norm", {x, number(t, {40}), number(t, {40}, 9)}, make_default_attrs<LayerNormAttrs>()));
    check({x}, call("mean", {x}, make_attrs<ReduceAttrs>([](auto& a) { a.axis = std::vector<int64_t>{1}; })));
  }
}
TEST(Dtypes, Transposes) {
  for (DataType t : kAll) {
    SCOPED_TRACE(t.str());
    Expr x = input("x", {3, 37, 21}, t);
    check({x}, call("transpose", {x}, make_attrs<TransposeAttrs>([](auto& a) { a.axes = {0, 2, 1}; })));
    check({x}, call("transpose", {x}, make_attrs<TransposeAttrs>([](auto& a) {
                      a.axes = {2, 0, 1};
                    })),
          "llvm -mcpu=haswell");
  }
}
// A residual network and a transformer's block, whole.
TEST(Dtypes, NetworksOfSmallFloats) {
  for (DataType t : kFloats) {
    SCOPED_TRACE(t.str());
    Expr x = input("x", {1, 3, 24, 24}, t);
    Expr y = call("nn.relu", {conv_of(t, x, 16, 3, 3, 2)});
    Expr z =
        call("nn.relu", {call("add", {conv_of(t, call("nn.relu", {conv_of(t, y, 16, 16, 3, 1)}), 16, 16, 3, 1), y})});
    Expr p = call("nn.batch_flatten", {call("nn.global_avg_pool2d", {z}, make_default_attrs<GlobalPool2DAttrs>())});
    check({x}, call("nn.softmax", {call("nn.dense", {p, number(t, {10, 16})}, make_default_attrs<DenseAttrs>())},
                    make_default_attrs<SoftmaxAttrs>()));
    Expr s = input("s", {1, 12, 32}, t);
    auto dense = [&](const Expr& of, uint64_t seed) {
      return call("nn.dense", {of, number(t, {32, 32}, seed)}, make_default_attrs<DenseAttrs>());
    };
    auto heads = [&](const Expr& of) {
      return call("transpose", {call("reshape", {of}, make_attrs<ReshapeAttrs>([](auto& a) {
                                       a.newshape = {1, 12, 4, 8};
                                     }))},
                  make_attrs<TransposeAttrs>([](auto& a) {
                    a.axes = {0, 2, 1, 3};
                  }));
    };
    auto product = [&](const Expr& a, const Expr& b, bool tb) {
      return call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>([&](auto& m) { m.transpose_b = tb; }));
    };
    Expr shares =
        call("nn.softmax", {product(heads(dense(s, 1)), heads(dense(s, 2)), true)}, make_default_attrs<SoftmaxAttrs>());
    Expr mixed = product(shares, heads(dense(s, 3)), false);
    check({s}, call("nn.gelu", {call("reshape", {call("transpose", {mixed}, make_attrs<TransposeAttrs>([](auto& a) {
                                                        a.axes = {0, 2, 1, 3};
                                                      }))},
                                     make_attrs<ReshapeAttrs>([](auto& a) {
                                       a.newshape = {1, 12, 32};
                                     }))}));
  }
}

}  // namespace
}  // namespace tilewright::driver
