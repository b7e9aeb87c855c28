// SPDX-License-Identifier: Apache-2.0
// What is done for operands in memory: rows as long as it allows, vectors of narrow elements, last vectors over the
// ones before, pieces of far lines in the first cache.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "driver/build.h"
#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

constexpr const char* kHere[] = {"llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"};

template <class T>
Expr along(const char* op, std::vector<Expr> args, int64_t axis) {
  return call(op, std::move(args), make_attrs<T>([&](auto& a) { a.axis = axis; }));
}

TEST(LongRows, OfNarrowElementsAreTakenAndTurned) {
  for (DataType t : {kUInt8, kBool, kFloat16, kInt64})
    for (int64_t width : {5, 33, 100}) {
      SCOPED_TRACE(t.str() + " " + std::to_string(width));
      Expr x = input("x", {6, 4, width}, t), i = ints({3, -1, 0, 2, 3});
      check({x}, call("take", {x, i}, make_attrs<TakeAttrs>([](auto& a) { a.axis = 1, a.mode = "fast"; })));
      check({x}, call("take", {x, ints({3, -1, 0, 9, 3})}, make_attrs<TakeAttrs>([](auto& a) { a.axis = 0; })));
      check({x}, along<ReverseAttrs>("reverse", {x}, 1));
      for (auto [seq, batch] : {std::pair{0, 1}, std::pair{1, 0}, std::pair{2, 0}}) {
        Expr n = ints(batch == 1 ? std::vector<int64_t>{2, 6, 1, 4} : std::vector<int64_t>{4, 2, 1, 3, 4, 2});
        check({x}, call("reverse_sequence", {x, n},
                        make_attrs<ReverseSequenceAttrs>([&](auto& a) { a.seq_axis = seq, a.batch_axis = batch; })));
      }
    }
}

TEST(LongRows, PlanesAreJoinedAndCutWhole) {
  for (DataType t : {kUInt8, kFloat32, kFloat16})
    for (const char* target : kHere) {
      Expr x = input("x", {3, 2, 7, 5}, t), y = input("y", {3, 4, 7, 5}, t), w = input("w", {3, 6, 7, 5}, t);
      check({x, y}, along<ConcatenateAttrs>("concatenate", {make_tuple({x, y, x})}, 1), target);
      check({x, w}, along<ConcatenateAttrs>("concatenate", {make_tuple({x, w})}, -3), target);
      Expr parts = call("split", {w}, make_attrs<SplitAttrs>([](auto& a) {
                          a.axis = 1, a.indices_or_sections = {1, 4};
                        }));
      check({w}, make_tuple({make_get(parts, 2), make_get(parts, 0), make_get(parts, 1)}), target);
    }
}

// Rows of every rest: the last vector lies over the one before it, or the row is shorter than one.
TEST(LongRows, EndInAVectorOverTheOneBefore) {
  for (const char* target : kHere)
    for (int64_t width = 1; width <= 21; width += 1) {
      Expr x = input("x", {2, 3, width + 2});
      check({x}, call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                        a.begin = {0, 1, 1}, a.end = {2, 3, 1 + width};
                      })),
            target);
      Expr y = input("y", {2, 2, width});
      check({y}, call("nn.pad", {y, make_scalar(3.0)}, make_attrs<PadAttrs>([](auto& a) {
                        a.pad_width = {{0, 0}, {1, 0}, {2, 1}};
                      })),
            target);
    }
}

// Planes of pixels are one row of each channel, and the other way round, in several lines at once.
TEST(LongRows, OfPixelsAreTurned) {
  for (DataType t : {kUInt8, kBool, kFloat16, kFloat32, kInt64})
    for (auto [high, wide, channels] : {std::tuple{7, 9, 20}, std::tuple{46, 45, 6}, std::tuple{33, 1, 40}})
      for (const char* target : kHere) {
        SCOPED_TRACE(t.str() + " " + std::to_string(high));
        auto turn = [](const Expr& e, std::vector<int64_t> axes) {
          return call("transpose", {e}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = axes; }));
        };
        Expr x = input("x", {2, high, wide, channels}, t), y = input("y", {2, channels, high, wide}, t);
        check({x}, turn(x, {0, 3, 1, 2}), target);
        check({y}, turn(y, {0, 2, 3, 1}), target);
      }
}

TEST(LongRows, SumsOfFarLines) {
  for (DataType t : {kFloat32, kFloat64, kFloat16, kInt8, kInt32})
    for (const char* op : {"sum", "max"}) {
      SCOPED_TRACE(std::string(op) + " " + t.str());
      const int64_t lines = t.bits <= 16 ? 70 : 11;
      Expr x = input("x", {2, lines, 2, 9003}, t), y = input("y", {lines, 3, 4104}, t);
      auto over = [&](std::vector<int64_t> axes) {
        return make_attrs<ReduceAttrs>([&](auto& a) { a.axis = axes, a.keepdims = true; });
      };
      check({x}, call(op, {x}, over({1})), "llvm -mcpu=haswell");
      check({y}, call(op, {y}, over({0, 1})), "llvm -mcpu=haswell");
    }
}

// Products whose B has rows so far apart that a panel's lines would share few sets of the first cache.
TEST(LongRows, PanelsOfFarRowsAreCopied) {
  for (DataType t : {kFloat32, kFloat64, kFloat16, kInt8})
    for (auto [m, k, n] : {std::tuple{67, 150, 320}, std::tuple{100, 140, 256}, std::tuple{64, 530, 37}}) {
      SCOPED_TRACE(t.str());
      Expr a = input("a", {m, k}, t), b = input("b", {k, n}, t);
      Expr c = input("c", {2, m, k}, t), d = input("d", {2, k, n}, t);
      for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"}) {
        check({a, b}, call("nn.matmul", {a, b}, make_default_attrs<MatmulAttrs>()), target);
        check({c, d},
              call("nn.batch_matmul", {c, d}, make_attrs<BatchMatmulAttrs>([](auto& at) { at.transpose_b = false; })),
              target);
      }
    }
}

// Lines of which the leading digits tell all elements apart, some of them, or none.
TEST(LongRows, AreSortedByAsManyDigitsAsItTakes) {
  auto first = [](const Expr& x, int64_t k, bool ascending) {
    return call("topk", {x},
                make_attrs<TopKAttrs>([&](auto& a) { a.k = k, a.is_ascend = ascending, a.dtype = kInt64; }));
  };
  for (DataType t : {kFloat64, kInt64, kFloat32, kFloat16, kBFloat16})
    for (int kind = 0; kind < 6; ++kind) {
      const int64_t n = kind < 3 ? 700 : 300;
      SCOPED_TRACE(t.str() + " " + std::to_string(kind));
      Expr x = input("x", {3, n}, t);
      Tensor values(t, {3, n});
      for (int64_t i = 0; i < values.size(); ++i) {
        const auto mixed = static_cast<double>(i * 7919 % 4099);
        const double near = t == kInt64 ? mixed : 1 + std::ldexp(mixed, -52);
        values.set_double(i, kind % 3 == 0 ? std::sin(mixed) * 1000 : kind % 3 == 1 ? std::floor(mixed / 16) : near);
      }
      if (kind % 3 == 2)
        values.set_double(n / 2, t == kInt64 ? 0x1p60 : 60000), values.set_double(7, t == kInt64 ? -0x1p60 : -60000);
      if (t.is_float() && kind % 3 == 1) {
        const double special[] = {std::nan(""), -0.0, 0, std::numeric_limits<double>::infinity(), -2, std::nan("")};
        for (int64_t i = 0; i < 6; ++i) values.set_double(50 * i, special[i]);
      }
      for (bool ascending : {false, true})
        for (int64_t k : {int64_t{20}, int64_t{100}, n - 30}) check({x}, first(x, k, ascending), {{"x", values}});
    }
}

TEST(LongRows, KindsOfSmallFloats) {
  const double inf = std::numeric_limits<double>::infinity();
  for (DataType t : {kFloat16, kBFloat16}) {
    Expr x = input("x", {37}, t);
    Tensor values(t, {37});
    const double some[] = {0, -0.0, 1, inf, -inf, std::nan(""), -std::nan(""), 65504, -65504, 6e-8, -6e-5};
    for (int64_t i = 0; i < 37; ++i) values.set_double(i, some[i % 11]);
    for (const char* op : {"isinf", "isnan", "isfinite"}) check({x}, call(op, {x}), {{"x", values}});
  }
}

// A power of which one exponent is known only at run time.
TEST(LongRows, OneExponentForAll) {
  for (DataType t : {kInt32, kInt64, kUInt8})
    for (int exponent : {-3, -2, -1, 0, 1, 2, 5, 7, 8, 9, 31}) {
      if (exponent < 0 && t.is_uint()) continue;
      SCOPED_TRACE(exponent);
      Expr x = input("x", {5, 21}, t), y = input("y", {}, t);
      Tensor base(t, {5, 21}), by(t, {});
      for (int64_t i = 0; i < base.size(); ++i) base.set_double(i, t.is_uint() ? i % 3 : i % 3 - 1);
      by.set_double(0, exponent);
      check({x, y}, call("power", {x, y}), {{"x", base}, {"y", by}});
      if (exponent < 0 || exponent > 8 || t.bits < 32) continue;
      for (int64_t i = 0; i < base.size(); ++i)
        base.set_double(i, static_cast<double>(i % 25 - 12) / (exponent > 5 ? 4 : 1));
      check({x, y}, call("power", {x, y}), {{"x", base}, {"y", by}});
    }
}

// What widens a row's elements and what narrows its results belong to the kernel over the rows.
TEST(LongRows, OfHalvesAreNormalisedInOneKernel) {
  for (DataType t : {kFloat16, kBFloat16}) {
    Expr x = input("x", {6, 40}, t);
    const Expr g = make_constant(random_tensor(t, {40}, 3)), b = make_constant(random_tensor(t, {40}, 4));
    for (const Expr& y : {call("nn.softmax", {x}, make_default_attrs<SoftmaxAttrs>()),
                          call("nn.layer_norm", {x, g, b}, make_default_attrs<LayerNormAttrs>())}) {
      check({x}, y);
      BuildOptions options;
      options.jobs = 1;
      auto built = build(Module().with_main(make_function({x}, y)), options);
      ASSERT_TRUE(built.ok());
      EXPECT_EQ(built->lowered.kernels.size(), 1U) << t.str();
    }
  }
}

// The mean of a channel is far from zero: the scaled values and the shift nearly cancel.
TEST(LongRows, ChannelsFarFromZeroAreNormalised) {
  Expr x = input("x", {2, 3, 40, 30});
  Tensor values(kFloat32, {2, 3, 40, 30});
  for (int64_t i = 0; i < values.size(); ++i)
    values.set_double(i, 50 * static_cast<double>(i / 1200) + std::sin(static_cast<double>(i)));
  auto norm = [&](bool scale, bool center) {
    return call("nn.instance_norm", {x, constant({3}), constant({3}, 9)},
                make_attrs<InstanceNormAttrs>([&](auto& a) { a.scale = scale, a.center = center; }));
  };
  for (bool scale : {false, true})
    for (bool center : {false, true}) check({x}, norm(scale, center), {{"x", values}});
}

// Channels are one row each where all that is fused lies as densely, else a row of lines.
TEST(LongRows, ChannelsAreNormalisedOneByOne) {
  auto norm = [](const Expr& x, int64_t channels) {
    return call("nn.instance_norm", {x, constant({channels}), constant({channels}, 9)},
                make_default_attrs<InstanceNormAttrs>());
  };
  const std::vector<std::vector<int64_t>> shapes{{2, 3, 7, 5},  {1, 2, 1, 1},     {3, 5, 37},   {1, 4, 3, 4, 9},
                                                 {1, 2, 6, 16}, {1, 1, 150, 120}, {2, 2, 64, 3}};
  for (const char* target : kHere)
    for (const auto& shape : shapes) {
      SCOPED_TRACE(std::string(target) + " " + shape_str(shape));
      Expr x = input("x", shape), y = norm(x, shape[1]);
      check({x}, y, target);
      check({x}, call("nn.relu", {y}), target);
      check({x}, call("add", {y, constant({shape.back()}, 5)}), target);
      Expr r = input("r", shape), c = input("c", {shape[1], 1});
      check({x, r}, call("add", {r, y}), target);
      if (shape.size() == 3) check({x, c}, call("multiply", {y, c}), target);
      check({x}, norm(call("exp", {x}), shape[1]), target);
      if (shape.size() == 4) check({x}, norm(conv(x, 6, shape[1], 3, 1, 1), 6), target);
    }
  Expr x = input("x", {1, 64, 56, 56});
  auto built = build(Module().with_main(make_function({x}, norm(x, 64))), BuildOptions());
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(built->lowered.kernels.size(), 1U);
}

// Both extremes of all elements: less than a vector, less than a piece, pieces and a rest.
TEST(LongRows, ExtremesAreReadOnce) {
  for (const char* target : kHere)
    for (DataType t : {kFloat32, kFloat64, kFloat16, kInt8, kInt64})
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{}, {1}, {7}, {3, 37}, {1024}, {2, 5, 411}, {0, 3}}) {
        SCOPED_TRACE(t.str() + " " + shape_str(shape));
        Expr x = input("x", shape, t), y = call("min_max", {x});
        check({x}, make_tuple({make_get(y, 0), make_get(y, 1)}), target);
      }
  Expr x = input("x", {2000});
  Expr y = call("min_max", {x});
  for (int64_t at : {0, 1023, 1024, 1999}) {
    Tensor values = Tensor::zeros(kFloat32, {2000});
    values.set_double(at, at % 2 ? 5 : -5);
    values.set_double(1999 - at, 7);
    check({x}, make_tuple({make_get(y, 0), make_get(y, 1)}), {{"x", values}});
  }
}

// Blocks of pixels become channels: the columns of a block are phases of a row.
TEST(LongRows, BlocksBecomeChannels) {
  for (const char* target : kHere)
    for (DataType t : {kFloat32, kInt64, kUInt8})
      for (auto [block, wide] : {std::pair{2, 40}, {2, 6}, {3, 21}, {4, 36}, {5, 20}, {1, 9}}) {
        SCOPED_TRACE(t.str() + " " + std::to_string(block));
        Expr x = input("x", {2, 3, int64_t{block} * 3, int64_t{block} * wide}, t);
        check({x}, call("nn.space_to_depth", {x}, make_attrs<SubPixelAttrs>([&](auto& a) { a.block_size = block; })),
              target);
      }
}

// Close rows of the result are written as one stretch, whatever tiles and lines are left.
TEST(LongRows, ChannelsMoveLast) {
  for (const char* target : kHere)
    for (DataType t : {kFloat32, kInt64, kFloat16, kUInt8})
      for (int64_t channels : {3, 20, 64, 70}) {
        SCOPED_TRACE(t.str() + " " + std::to_string(channels));
        Expr x = input("x", {2, channels, 29, 71}, t), y = input("y", {29, 71, channels}, t);
        check({x}, call("transpose", {x}, make_attrs<TransposeAttrs>([](auto& a) { a.axes = {0, 2, 3, 1}; })), target);
        check({y}, call("transpose", {y}, make_attrs<TransposeAttrs>([](auto& a) { a.axes = {2, 0, 1}; })), target);
      }
}

// The extreme of a row, a column or all elements is NaN where one of them is, wherever that lies.
TEST(LongRows, ExtremesKeepNaN) {
  for (const char* target : {"llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64"})
    for (const DataType dtype : {kFloat32, kFloat64, kFloat16})
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{5, 7}, {9, 131}, {131, 9}, {64, 256}})
        for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {0, 1}}) {
          SCOPED_TRACE(format("{} {} {}", target, dtype.str(), shape_str(shape)));
          Tensor data = random_tensor(dtype, shape, 3);
          for (const auto& [row, column] : {std::pair<int64_t, int64_t>{0, 0}, {1, shape[1] - 1}, {3, shape[1] / 2}})
            data.set_double(row * shape[1] + column, NAN);
          const Expr x = input("x", shape, dtype);
          std::vector<Expr> extremes;
          for (const char* op : {"max", "min"})
            extremes.push_back(call(op, {x}, make_attrs<relay::ReduceAttrs>([&](auto& a) { a.axis = axes; })));
          if (axes.size() == 2) extremes.push_back(relay::make_get(call("min_max", {x}), 1));
          check({x}, relay::make_tuple(extremes), {{"x", data}}, target);
        }
}

}  // namespace
}  // namespace tilewright::driver
