// SPDX-License-Identifier: Apache-2.0
// Results that the last cache does not hold until they are read are stored past the caches.
#include "base/format.h"
#include "driver/build.h"
#include "driver/graphs.h"
#include "lower/lower.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

// For each kernel, whether its results are stored past the caches.
std::vector<bool> streamed(const std::vector<Expr>& inputs, const Expr& body, const std::string& cpu) {
  BuildOptions options;
  options.target = "llvm -mcpu=" + cpu;
  auto built = optimize(Module().with_main(make_function(inputs, body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  auto lowered = lower::lower_module(built->optimized, built->target);
  EXPECT_TRUE(lowered.ok()) << lowered.error().str();
  std::vector<bool> out;
  for (const tir::PrimFunc& kernel : lowered->kernels) {
    bool any = false;
    for (const tir::Buffer& p : kernel.params) {
      any = any || p->streamed;
      EXPECT_FALSE(p->streamed && p->read_only) << kernel.name;
    }
    out.push_back(any);
  }
  return out;
}

Expr sum_of(const std::vector<Expr>& inputs) { return call("add", {inputs[0], inputs[1]}); }
std::vector<Expr> two(int64_t mib) { return {input("x", {mib, 1 << 18}), input("y", {mib, 1 << 18})}; }

TEST(StreamedResults, AreThoseBeyondTheLastCacheOfTheMachine) {
  // Two operands and a result, against 20 MiB (five eighths of 32) and 10 (of 16).
  std::vector<Expr> x = two(6);
  EXPECT_EQ(streamed(x, sum_of(x), "znver4"), std::vector{false});
  EXPECT_EQ(streamed(x, sum_of(x), "znver2"), std::vector{true});
  x = two(7);
  EXPECT_EQ(streamed(x, sum_of(x), "znver4"), std::vector{true});
}

// Rows that are not whole vectors share cache lines, which would be written in parts.
TEST(StreamedResults, AreOfWholeVectors) {
  auto of = [](int64_t width) {
    const std::vector<Expr> x{input("x", {64, 1 << 10, width})};
    return streamed(x, call("negative", {x[0]}), "haswell");
  };
  EXPECT_EQ(of(56), std::vector{true});
  EXPECT_EQ(of(55), std::vector{false});
  const std::vector<Expr> x{input("x", {64, 1 << 10, 60})};
  auto softmax = call("nn.softmax", {x[0]}, make_default_attrs<SoftmaxAttrs>());
  EXPECT_EQ(streamed(x, softmax, "haswell"), std::vector{false});
  EXPECT_EQ(streamed(x, softmax, "x86-64-v2"), std::vector{true});
}

// A line in which two runs of a row meet would be stored past the caches in one part and through them in the other.
TEST(StreamedResults, AreOfWholeVectorsInEachRun) {
  auto of = [](int64_t width) {
    const std::vector<Expr> x{input("x", {64, 1 << 10, width}, kFloat16), input("y", {64, 1 << 10, width}, kFloat16)};
    return streamed(x, call("concatenate", {make_tuple(x)}, make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = -1; })),
                    "znver4");
  };
  EXPECT_EQ(of(128), std::vector{true});
  EXPECT_EQ(of(112), std::vector{false});
}

TEST(StreamedResults, AKernelThatReadsItsResultsKeepsThemInTheCaches) {
  const std::vector<Expr> x{input("x", {64, 512, 512}), input("w", {64, 512, 512})};
  EXPECT_EQ(streamed(x, call("nn.batch_matmul", {x[0], x[1]}, make_default_attrs<BatchMatmulAttrs>()), "znver4"),
            std::vector{false});
}

}  // namespace
}  // namespace tilewright::driver
