// SPDX-License-Identifier: Apache-2.0
// Random kernels through the whole pipeline and through each pass: what they leave in memory must stay the
// same, bit for bit, and their text must parse into the same text.
#include "tir/cases.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"
#include "tir/passes/lower_kernel.h"
#include "tir/passes/scalarize.h"
#include "tir/random_kernel.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// In parts, which the cores share: a sanitizer makes them take minutes.
class RandomKernelPart : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(From, RandomKernelPart, testing::Range(0u, 600u, 100u));

TEST_P(RandomKernelPart, PassesKeepWhatTheyCompute) {
  int vector_code = 0, kernels = 0;
  for (unsigned seed = GetParam(); seed < GetParam() + 100; ++seed) {
    SCOPED_TRACE(seed);
    PrimFunc f = RandomKernel(seed).function();
    int64_t nodes = 0;
    for_each_expr(f.body, [&](const PrimExpr&) { ++nodes; });
    Status valid = verify(f);
    ASSERT_TRUE(valid.ok()) << valid.error().str() << "\n" << to_text(f);
    std::string error;
    auto before = run_on_random(f, seed, &error, 2);
    ASSERT_TRUE(error.empty()) << error << "\n" << to_text(f);
    PrimFunc now = f;
    for (int p = 0; p < kKernelPassCount; ++p) {
      PrimFunc next = kKernelPasses[p].run(now);
      Status s = verify(next);
      ASSERT_TRUE(s.ok()) << kKernelPasses[p].name << ": " << s.error().str() << "\n"
                          << to_text(now) << "\n"
                          << to_text(next);
      auto after = run_on_random(next, seed, &error, 2);
      ASSERT_TRUE(error.empty()) << kKernelPasses[p].name << ": " << error << "\n"
                                 << to_text(now) << "\n"
                                 << to_text(next);
      ASSERT_EQ(before, after) << kKernelPasses[p].name << "\n" << to_text(now) << "\n" << to_text(next);
      now = next;
    }
    ASSERT_TRUE(verify(now, Form::kFinal).ok());
    ++kernels;
    bool vectors = false;
    for_each_stmt(now.body,
                  [&](const Stmt& s) { vectors |= as<StoreNode>(s) && as<StoreNode>(s)->index->dtype.lanes > 1; });
    vector_code += vectors;
  }
  EXPECT_GT(vector_code * 4, kernels) << "too few kernels had loops that became vectors";
}

// What backends have done to a kernel keeps what it computes, too.
TEST_P(RandomKernelPart, LegalisationKeepsWhatTheyCompute) {
  for (unsigned seed = GetParam(); seed < GetParam() + 50; ++seed) {
    SCOPED_TRACE(seed);
    const KernelPass legalisation[] = {{"legalize_sub_bytes", legalize_sub_bytes},
                                       {"scalarize", seed % 2 == 0 ? scalarize : scalarize_by_loops},
                                       {"legalize_small_floats", legalize_small_floats}};
    PrimFunc now = lower_kernel(RandomKernel(seed).function()).value();
    std::string error;
    const auto before = run_on_random(now, seed, &error, 2);
    ASSERT_TRUE(error.empty()) << error;
    for (const KernelPass& pass : legalisation) {
      const PrimFunc next = pass.run(now);
      Status s = verify(next, Form::kFinal);
      ASSERT_TRUE(s.ok()) << pass.name << ": " << s.error().str() << "\n" << to_text(now) << "\n" << to_text(next);
      ASSERT_EQ(before, run_on_random(next, seed, &error, 2)) << pass.name << "\n"
                                                              << to_text(now) << "\n"
                                                              << to_text(next) << error;
      now = next;
    }
    for_each_expr(now.body, [&](const PrimExpr& e) { ASSERT_EQ(e->dtype.lanes, 1) << to_text(now); });
  }
}

TEST(RandomKernels, TextRoundTrips) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    for (const PrimFunc& f : {RandomKernel(seed).function(), lower_kernel(RandomKernel(seed).function()).value()}) {
      const std::string text = to_text(f);
      auto again = parse_func(text);
      ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << text;
      ASSERT_EQ(to_text(*again), text);
    }
  }
}

}  // namespace
}  // namespace tilewright::tir
