// SPDX-License-Identifier: Apache-2.0
// Products of bytes by constant bytes: the kernels of words of four (topi/words.h) against the reference interpreter,
// whose integers are exact, on processors with and without an instruction for them.
#include <random>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/build.h"
#include "driver/graphs.h"
#include "driver/machine.h"
#include "tir/text.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

std::vector<const char*> runnable_targets() {
  return runnable(
      {"llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64", "llvm -mcpu=skylake-avx512"});
}

Expr as_int32(const Expr& x) {
  return call("cast", {x}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kInt32; }));
}
// x - zero, as models write it; no zero: the widened integers.
Expr without_zero(const Expr& x, int zero) {
  if (zero == 0) return as_int32(x);
  return call("subtract", {as_int32(x), make_constant(Tensor::scalar<int32_t>(kInt32, zero))});
}
Expr bytes(DataType dtype, std::vector<int64_t> shape, uint64_t seed) {
  return make_constant(random_tensor(dtype, shape, seed));
}
// What a quantised network does with sums: in the scale of the next layer, rounded and bounded.
Expr requantized(const Expr& sums, double scale, int zero) {
  auto f64 = [](const Expr& x) {
    return call("cast", {x}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kFloat64; }));
  };
  auto number = [](double v) { return make_constant(Tensor::scalar<double>(kFloat64, v)); };
  Expr steps = call("nearbyint", {call("multiply", {f64(sums), number(scale)})});
  Expr bounded = call("clip", {call("add", {steps, number(zero)})}, make_attrs<ClipAttrs>([](auto& a) {
                        a.a_min = 0;
                        a.a_max = 255;
                      }));
  return call("cast", {bounded}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kUInt8; }));
}
Expr convolution(const Expr& x, const Expr& w, std::vector<int64_t> kernel, int64_t stride, int64_t pad, int64_t groups,
                 int64_t dilation) {
  return call("nn.conv2d", {x, w}, make_attrs<Conv2DAttrs>([&](auto& a) {
                a.strides = {stride, stride};
                a.padding = {pad, pad, pad, pad};
                a.dilation = {dilation, dilation};
                a.groups = groups;
                a.kernel_size = std::move(kernel);
              }));
}
TEST(ByteProducts, DenseOfEveryDepth) {
  std::mt19937_64 random(3);
  for (const char* target : runnable_targets())
    for (int i = 0; i < 6; ++i) {
      const int64_t m = 1 + static_cast<int64_t>(random() % 20), k = 1 + static_cast<int64_t>(random() % 70),
                    n = 1 + static_cast<int64_t>(random() % 50);
      const DataType data = random() % 2 ? kUInt8 : kInt8;
      const int zero = data == kUInt8 ? static_cast<int>(random() % 256) : static_cast<int>(random() % 256) - 128;
      SCOPED_TRACE(format("{} {}x{}x{} {} {}", target, m, k, n, data.str(), zero));
      Expr x = input("x", {m, k}, data);
      Expr sums = call("nn.dense", {without_zero(x, i % 2 ? zero : 0), as_int32(bytes(kInt8, {n, k}, random()))},
                       make_default_attrs<DenseAttrs>());
      check({x}, sums, target);
      check({x}, requantized(sums, 0.0031, 7), target);
    }
}

// Weights of unsigned bytes, whose zero points leave int8; a zero point that a run brings.
TEST(ByteProducts, ShiftedWeightsAndZeroPointsOfARun) {
  for (const char* target : runnable_targets()) {
    SCOPED_TRACE(target);
    Expr x = input("x", {5, 37}, kUInt8), z = input("z", {}, kUInt8);
    Expr w = bytes(kUInt8, {37, 21}, 5);
    auto product = [&](const Expr& data, int weight_zero) {
      return call("nn.matmul", {data, without_zero(w, weight_zero)}, make_default_attrs<MatmulAttrs>());
    };
    check({x}, product(as_int32(x), 128), target);
    check({x}, product(without_zero(x, 9), 3), target);
    check({x, z}, product(call("subtract", {as_int32(x), as_int32(z)}), 128), target);
  }
}

// Float32 decides what float64 would, but next to the middle of two integers; at ties, around them, and where sums are
// more than float32 holds.
TEST(ByteProducts, BytesOfSumsRoundAsInFloat64) {
  std::mt19937_64 random(11);
  for (const char* target : {"llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64"})
    for (double scale : {0.5, 0.25, 1.5, 0.0017, 1.0 / 3, 1e-7, 0x1p-24, 0.00390625 * (1 + 0x1p-30), -0.3, 1e300}) {
      std::vector<int32_t> sums{INT32_MIN, INT32_MAX, 0, 1, -1, (1 << 24) + 1, -(1 << 24) - 1};
      for (int k = -300; k < 300; ++k)
        for (int near : {-1, 0, 1}) {
          const double at = std::round((k + 0.5) / scale) + near;
          if (std::fabs(at) < 2e9) sums.push_back(static_cast<int32_t>(at));
        }
      for (int i = 0; i < 500; ++i) sums.push_back(static_cast<int32_t>(random() % 4096) - 2048);
      const auto count = static_cast<int64_t>(sums.size());
      const Expr x = input("x", {count}, kInt32);
      for (int zero : {0, 30, 255})
        check({x}, requantized(x, scale, zero), {{"x", Tensor::from<int32_t>(kInt32, {count}, sums)}}, target);
    }
}

TEST(ByteProducts, ConvolutionsOfEveryKind) {
  struct Case {
    int64_t in, out, size, kernel, stride, pad, groups, dilation;
  };
  const Case cases[] = {
      {3, 20, 19, 7, 2, 3, 1, 1},  {3, 8, 11, 3, 1, 1, 1, 1},   {1, 5, 9, 5, 3, 2, 1, 1},   {3, 16, 9, 3, 1, 2, 1, 2},
      {32, 40, 7, 3, 1, 1, 1, 1},  {24, 33, 9, 1, 1, 0, 1, 1},  {48, 16, 8, 1, 2, 0, 1, 1}, {19, 7, 8, 3, 2, 1, 1, 1},
      {64, 64, 6, 3, 1, 1, 2, 1},  {32, 32, 9, 3, 1, 2, 1, 2},  {8, 24, 5, 3, 1, 1, 1, 1},  {12, 12, 6, 3, 1, 1, 12, 1},
      {35, 50, 13, 3, 1, 1, 1, 1}, {48, 33, 10, 3, 1, 0, 1, 1},
  };
  std::mt19937_64 random(11);
  for (const char* target : runnable_targets())
    for (const Case& c : cases) {
      const DataType data = random() % 3 ? kUInt8 : kInt8;
      const int zero = random() % 2 ? 0 : static_cast<int>(random() % 100);
      SCOPED_TRACE(format("{} {}->{} {} k{} s{} p{} g{} d{} {} zero {}", target, c.in, c.out, c.size, c.kernel,
                          c.stride, c.pad, c.groups, c.dilation, data.str(), zero));
      Expr x = input("x", {1, c.in, c.size, c.size}, data);
      Expr w = as_int32(bytes(kInt8, {c.out, c.in / c.groups, c.kernel, c.kernel}, random()));
      Expr sums = convolution(without_zero(x, zero), w, {c.kernel, c.kernel}, c.stride, c.pad, c.groups, c.dilation);
      check({x}, requantized(sums, 0.0017, 30), target);
    }
}

// The sums that come nearest to int32's ends, and those of Winograd's transformed halves.
TEST(ByteProducts, LargestSums) {
  for (const char* target : runnable_targets())
    for (int64_t weight : {-128, 127}) {
      SCOPED_TRACE(format("{} {}", target, weight));
      Expr x = input("x", {1, 260, 4, 4}, kUInt8);
      Expr large = call("maximum", {x, make_constant(Tensor::scalar<uint8_t>(kUInt8, 253))});
      Tensor w(kInt8, {33, 260, 3, 3});
      for (int64_t i = 0; i < w.size(); ++i) w.set_int(i, i % 7 == 3 ? -1 - weight : weight);
      check({x}, convolution(as_int32(large), as_int32(make_constant(w)), {3, 3}, 1, 1, 1, 1), target);
    }
}

// How many kernels of a program sum words.
int kernels_of_words(const std::vector<Expr>& inputs, const Expr& body) {
  BuildOptions options;
  options.target = "llvm -mcpu=cascadelake";
  auto built = build(Module().with_main(make_function(inputs, body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  int products = 0;
  for (const auto& kernel : built->lowered.kernels) {
    products += tir::to_text(kernel).find("dot4(") != std::string::npos;
    for (const auto& param : kernel.params) EXPECT_NE(param->dtype.element(), kFloat32) << kernel.name;
  }
  return products;
}

// Whatever the processor: a product that is written in bytes, too.
TEST(ByteProducts, WrittenInBytes) {
  std::mt19937_64 random(23);
  for (const char* target : runnable_targets())
    for (int i = 0; i < 4; ++i) {
      const int64_t m = 1 + static_cast<int64_t>(random() % 20), k = 1 + static_cast<int64_t>(random() % 150),
                    n = 2 + static_cast<int64_t>(random() % 50);
      SCOPED_TRACE(format("{} {}x{}x{}", target, m, k, n));
      Expr x = input("x", {m, k}, kUInt8);
      Expr sums = call("nn.matmul", {x, bytes(kInt8, {k, n}, random())},
                       make_attrs<MatmulAttrs>([](auto& a) { a.out_dtype = "int32"; }));
      check({x}, sums, target);
      check({x}, requantized(sums, 0.003, 100), target);
      EXPECT_EQ(kernels_of_words({x}, requantized(sums, 0.003, 100)), 1);
    }
}

// Bytes stay bytes between layers: no float convolution, no float tensor.
TEST(ByteProducts, LayersHandBytesOn) {
  Expr x = input("x", {1, 32, 12, 12}, kUInt8);
  auto layer = [&](const Expr& in, uint64_t seed) {
    return requantized(convolution(as_int32(in), as_int32(bytes(kInt8, {32, 32, 3, 3}, seed)), {3, 3}, 1, 1, 1, 1),
                       0.001, 0);
  };
  Expr pooled = call("nn.max_pool2d", {layer(x, 1)}, make_attrs<MaxPool2DAttrs>([](auto& a) {
                       a.pool_size = {2, 2};
                       a.strides = {2, 2};
                     }));
  Expr out = layer(pooled, 2);
  for (const char* target : runnable_targets()) check({x}, out, target);
  EXPECT_GE(kernels_of_words({x}, out), 1);
}

// What quantised networks compute between two layers, in the words of QLinearSigmoid and QLinearMul: bytes of bytes.
Expr activation(const Expr& x, const char* op, double scale, double out_scale) {
  auto f32 = [](double v) { return make_constant(Tensor::scalar<float>(kFloat32, static_cast<float>(v))); };
  auto as = [](const Expr& e, DataType t) {
    return call("cast", {e}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = t; }));
  };
  auto quantized = [&](const Expr& value, double step, double zero) {
    Expr sum = call("add", {call("nearbyint", {call("divide", {value, f32(step)})}), f32(zero)});
    return as(call("clip", {sum}, make_attrs<ClipAttrs>([](auto& a) { a.a_min = 0, a.a_max = 255; })), kUInt8);
  };
  const Expr real = call("multiply", {call("subtract", {as(x, kFloat32), f32(117)}), f32(scale)});
  const Expr gate = quantized(call(op, {real}), 1 / 256.0, 0);
  return quantized(call("multiply", {real, call("multiply", {as(gate, kFloat32), f32(1 / 256.0)})}), out_scale, 9);
}

TEST(ByteProducts, ActivationsBetweenLayers) {
  std::mt19937_64 random(31);
  for (const char* target : {"llvm", "llvm -mcpu=haswell"})
    for (const char* op : {"sigmoid", "tanh", "exp"})
      for (int64_t channels : {16, 19}) {
        SCOPED_TRACE(format("{} {} {}", target, op, channels));
        Expr x = input("x", {1, channels, 7, 9}, kUInt8);
        check({x}, activation(x, op, 0.031, 0.017), target);
        Expr w = as_int32(bytes(kInt8, {32, channels, 3, 3}, random()));
        Expr layer = requantized(convolution(as_int32(x), w, {3, 3}, 1, 1, 1, 1), 0.0011, 120);
        check({x}, activation(layer, op, 0.027, 0.019), target);
      }
}

// Two look-ups among 128 bytes where there is an instruction for them, and the functions nowhere.
TEST(ByteProducts, ActivationsAreLookedUp) {
  Expr x = input("x", {1, 32, 8, 8}, kUInt8);
  Expr y = activation(x, "sigmoid", 0.031, 0.017);
  for (const auto& [name, looks_up] :
       {std::pair("llvm -mcpu=icelake-server", true), {"llvm -mcpu=cascadelake", false}}) {
    BuildOptions options;
    options.target = name;
    auto built = build(Module().with_main(make_function({x}, y)), options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    const Target target = codegen::resolve_target(parse_target(name).value()).value();
    std::string code;
    for (const auto& kernel : built->lowered.kernels) code += codegen::kernel_text(kernel, target, "s").value();
    EXPECT_EQ(code.find("vpermi2b") != std::string::npos || code.find("vpermt2b") != std::string::npos, looks_up)
        << name;
    EXPECT_EQ(code.find("vdivps") == std::string::npos, looks_up) << name;
  }
}

// The assembly of a program's kernels for a processor.
std::string assembly_of(const std::vector<Expr>& inputs, const Expr& body, const char* name) {
  BuildOptions options;
  options.target = name;
  auto built = build(Module().with_main(make_function(inputs, body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  const Target target = codegen::resolve_target(parse_target(name).value()).value();
  std::string code;
  for (const auto& kernel : built->lowered.kernels) {
    code += codegen::kernel_text(kernel, target, "s").value();
    for (const auto& param : kernel.params) EXPECT_NE(param->dtype.element(), kFloat32) << kernel.name;
  }
  return code;
}

// Each processor's exact instruction, never the saturating one, and no sum in floats.
TEST(ByteProducts, InstructionsOfEachProcessor) {
  struct Case {
    const char *target, *expected;
  };
  const Case cases[] = {{"llvm -mcpu=x86-64-v2", "pmaddwd"},    {"llvm -mcpu=haswell", "vpmaddwd"},
                        {"llvm -mcpu=znver3", "vpmaddwd"},      {"llvm -mcpu=skylake-avx512", "vpmaddwd"},
                        {"llvm -mcpu=cascadelake", "vpdpbusd"}, {"llvm -mcpu=alderlake", "vpdpbusd"}};
  Expr x = input("x", {1, 32, 8, 8}, kUInt8), rows = input("x", {9, 40}, kInt8);
  const Expr layer = requantized(
      convolution(without_zero(x, 7), as_int32(bytes(kInt8, {64, 32, 3, 3}, 3)), {3, 3}, 1, 1, 1, 1), 0.001, 0);
  const Expr dense = requantized(
      call("nn.dense", {without_zero(rows, 3), as_int32(bytes(kInt8, {24, 40}, 5))}, make_default_attrs<DenseAttrs>()),
      0.003, 9);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.target);
    for (const std::string& code : {assembly_of({x}, layer, c.target), assembly_of({rows}, dense, c.target)}) {
      EXPECT_NE(code.find(c.expected), std::string::npos);
      EXPECT_EQ(code.find("pmaddubsw"), std::string::npos);
    }
  }
}

// Kernels for several processors read weights packed for the widest vectors, which a narrower one takes in pieces.
TEST(ByteProducts, VectorsWiderThanTheProcessors) {
  for (const char* name : {"llvm -mcpu=haswell -vector-width=512", "llvm -mcpu=x86-64-v2 -vector-width=512"}) {
    SCOPED_TRACE(name);
    Expr x = input("x", {1, 32, 8, 8}, kUInt8);
    const Expr layer = requantized(
        convolution(without_zero(x, 7), as_int32(bytes(kInt8, {48, 32, 3, 3}, 3)), {3, 3}, 1, 1, 1, 1), 0.001, 0);
    check({x}, layer, name);
    const std::string code = assembly_of({x}, layer, name);
    EXPECT_NE(code.find("pmaddwd"), std::string::npos);
    EXPECT_EQ(code.find("pmulld"), std::string::npos);
  }
}

}  // namespace
}  // namespace tilewright::driver
