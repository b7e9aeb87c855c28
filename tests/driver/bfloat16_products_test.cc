// SPDX-License-Identifier: Apache-2.0
// -math=bf16: products by constant weights in pairs of bfloat16, against the interpreter on the same rounded operands
// kernel by kernel, and whole against float32 within what the roundings allow.
#include <cmath>
#include <random>

#include "base/format.h"
#include "codegen/codegen.h"
#include "codegen/processor.h"
#include "driver/build.h"
#include "driver/graphs.h"
#include "tir/text.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

constexpr const char* kWithInstruction = "llvm -mcpu=x86-64-v4 -mattr=+avx512bf16 -math=bf16";

bool has_here(const char* feature) {
  auto target = codegen::resolve_target(parse_target("llvm").value());
  return target.ok() && codegen::has_feature(*target, feature);
}
bool runs_here() { return has_here("avx512bf16") || has_here("bf16"); }
// A target of this processor whose pairs are worth while: some have the instruction and are slow at it.
const char* here() { return has_here("avx512bf16") ? kWithInstruction : "llvm -math=bf16"; }

Expr product(const char* op, const Expr& x, std::vector<int64_t> weight, uint64_t seed) {
  return call(
      op, {x, constant(std::move(weight), seed)},
      std::string_view(op) == "nn.dense" ? make_default_attrs<DenseAttrs>() : make_default_attrs<MatmulAttrs>());
}

Result<Built> built_for(const std::vector<Expr>& inputs, const Expr& body, const std::string& target) {
  BuildOptions options;
  options.target = target;
  return build(Module().with_main(make_function(inputs, body)), options);
}

int kernels_of_pairs(const Built& built) {
  int found = 0;
  for (const auto& kernel : built.lowered.kernels)
    found += tir::to_text(kernel).find("dot2_bfloat16(") != std::string::npos;
  return found;
}

// How often the machine code of all kernels has an instruction.
size_t instructions(const Built& built, const std::string& target, const std::string& name) {
  const Target machine = codegen::resolve_target(parse_target(target).value()).value();
  size_t found = 0;
  for (const auto& kernel : built.lowered.kernels) {
    auto text = codegen::kernel_text(kernel, machine, "s");
    EXPECT_TRUE(text.ok()) << text.error().str();
    for (size_t at = 0; text.ok() && (at = text->find(name, at)) != std::string::npos; ++at) ++found;
  }
  return found;
}

TEST(BFloat16Products, ProductsOfEveryDepth) {
  if (!runs_here()) GTEST_SKIP() << "this processor does not multiply pairs of bfloat16";
  std::mt19937_64 random(5);
  for (int i = 0; i < 12; ++i) {
    const int64_t m = 1 + static_cast<int64_t>(random() % 20), k = 16 + static_cast<int64_t>(random() % 70),
                  n = 8 + static_cast<int64_t>(random() % 50);
    SCOPED_TRACE(format("{}x{}x{}", m, k, n));
    Expr x = input("x", {m, k});
    check({x}, relu(product("nn.dense", x, {n, k}, random())), here());
    check({x}, product("nn.matmul", product("nn.dense", x, {n, k}, random()), {n, 9}, random()), here());
  }
}

TEST(BFloat16Products, ConvolutionsOfEveryKind) {
  if (!runs_here()) GTEST_SKIP() << "this processor does not multiply pairs of bfloat16";
  struct Case {
    int64_t in, out, size, kernel, stride, pad, dilation;
  };
  for (const Case& c : {Case{32, 40, 7, 3, 2, 1, 1},
                        {24, 33, 9, 1, 1, 0, 1},
                        {48, 16, 8, 1, 2, 0, 1},
                        {18, 9, 8, 3, 2, 1, 1},
                        {16, 20, 19, 7, 2, 3, 1},
                        {32, 32, 9, 5, 2, 2, 1},
                        {50, 8, 5, 2, 2, 0, 1}}) {
    SCOPED_TRACE(format("{}->{} {} k{} s{} p{}", c.in, c.out, c.size, c.kernel, c.stride, c.pad));
    Expr x = input("x", {1, c.in, c.size, c.size});
    Expr y = relu(bias(conv(x, c.out, c.in, c.kernel, c.stride, c.pad, 1, c.dilation), c.out));
    check({x}, y, here());
    auto made = built_for({x}, y, kWithInstruction);
    ASSERT_TRUE(made.ok()) << made.error().str();
    EXPECT_EQ(kernels_of_pairs(*made), 1);
    EXPECT_GT(instructions(*made, kWithInstruction, "vdpbf16ps"), 0u);
  }
}

// Layers hand bfloat16 on: the cast is in the kernel that makes the value, not one of its own.
TEST(BFloat16Products, CastsJoinTheirProducers) {
  Expr x = input("x", {20, 64});
  Expr hidden = relu(product("nn.dense", x, {96, 64}, 1));
  auto made = built_for({x}, relu(product("nn.dense", hidden, {64, 96}, 2)), kWithInstruction);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(kernels_of_pairs(*made), 2);
  EXPECT_EQ(made->lowered.kernels.size(), 3u);  // and the input's cast
}

TEST(BFloat16Products, OnlyWithTheUsersWordAndTheInstruction) {
  Expr x = input("x", {20, 64});
  Expr y = product("nn.dense", x, {96, 64}, 1);
  for (const char* target : {"llvm -mcpu=x86-64-v4 -mattr=+avx512bf16", "llvm -mcpu=x86-64-v4 -math=bf16",
                             "llvm -mcpu=haswell -math=bf16"}) {
    auto made = built_for({x}, y, target);
    ASSERT_TRUE(made.ok()) << made.error().str();
    EXPECT_EQ(kernels_of_pairs(*made), 0) << target;
  }
}

// Where the instruction takes four times a multiply-add's time, products gain only by weights that take half the way.
TEST(BFloat16Products, OnSlowProcessorsOnlyWhatWaitsForWeights) {
  const std::string target = "llvm -mcpu=sapphirerapids -math=bf16";
  for (auto [rows, pairs] : {std::pair{1, 1}, {4, 1}, {16, 0}, {197, 0}}) {
    Expr x = input("x", {rows, 1024});
    auto dense = built_for({x}, product("nn.dense", x, {2048, 1024}, 1), target);
    ASSERT_TRUE(dense.ok()) << dense.error().str();
    EXPECT_EQ(kernels_of_pairs(*dense), pairs) << rows;
    auto matrix = built_for({x}, product("nn.matmul", x, {1024, 2048}, 1), target);
    ASSERT_TRUE(matrix.ok()) << matrix.error().str();
    EXPECT_EQ(kernels_of_pairs(*matrix), pairs) << rows;
  }
  Expr x = input("x", {1, 64, 14, 14});
  auto made = built_for({x}, conv(x, 128, 64, 1, 1, 0), target);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(kernels_of_pairs(*made), 0);
}

// The largest difference from float32, as a share of the largest result, of a product of k terms in [-1, 1): each is
// off by at most two roundings of 2^-9, as likely up as down.
TEST(BFloat16Products, ErrorIsThatOfTheRoundedOperands) {
  if (!runs_here()) GTEST_SKIP() << "this processor does not multiply pairs of bfloat16";
  VerifyOptions options;
  options.build.target = here();
  options.layers = false;
  for (int64_t k : {64, 1024}) {
    Expr x = input("x", {16, k});
    auto report = verify_module(Module().with_main(make_function({x}, product("nn.dense", x, {64, k}, 3))), options);
    ASSERT_TRUE(report.ok()) << report.error().str();
    EXPECT_LE(report->largest_output_error, 0.5);
    EXPECT_GT(report->largest_output_error, 0.01) << "no rounding at all?";
  }
}

}  // namespace
}  // namespace tilewright::driver
