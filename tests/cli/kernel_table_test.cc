// SPDX-License-Identifier: Apache-2.0
// Rooflines and predictions beside measured times.
#include "cli/kernel_table.h"

#include <gtest/gtest.h>

namespace tilewright::cli {
namespace {

StepProfile step(std::string implementation, double us, double flops, double bytes, double weights, double predicted,
                 bool parallel = true) {
  StepProfile s;
  s.name = "op", s.source = "node", s.kernel = "k", s.implementation = std::move(implementation);
  s.min_us = us, s.flops = flops, s.bytes = bytes, s.weight_bytes = weights, s.predicted_us = predicted,
  s.parallel = parallel;
  return s;
}

MachinePeak peak(int threads, double gflops) {
  return {threads,
          gflops,
          {{{"L1", 32 << 10, 200.0}, {"L2", 1 << 20, 100.0}, {"L3", 32 << 20, 50.0}, {"memory", UINT64_MAX, 10.0}}}};
}

TEST(KernelTable, RooflineIsTheSlowerOfArithmeticAndTraffic) {
  Profile profile;
  profile.steps = {step("conv2d.direct", 20, 1e6, 64e3, 0, 10),  // 10 us of arithmetic, 0.64 us of traffic from L2
                   step("copy", 1000, 0, 2e6, 0, 0),  // each of two threads has one of 2 MB, which fits its L2: 20 us
                   step("dense.packed", 1000, 1e3, 1e6, 1e6, 50),      // a megabyte of weights from memory: 100 us
                   step("dense.packed", 1000, 1e6, 0, 0, 20, false)};  // one thread runs it: 20 us
  ModelInfo model;
  model.params_bytes = 100 << 20;
  auto rows = kernel_rows(profile, model, peak(1, 50), peak(2, 100));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_NEAR(rows[0].roofline_us, 10, 1e-9);
  EXPECT_STREQ(rows[0].bound, "fma");
  EXPECT_NEAR(rows[0].share_of_roofline(), 0.5, 1e-9);
  EXPECT_NEAR(rows[1].roofline_us, 20, 1e-9);
  EXPECT_STREQ(rows[1].bound, "L2");
  EXPECT_NEAR(rows[2].roofline_us, 100, 1e-9);
  EXPECT_STREQ(rows[2].bound, "memory");
  EXPECT_NEAR(rows[3].roofline_us, 20, 1e-9);
  model.params_bytes = 1000;  // now the weights stay in L1
  EXPECT_STREQ(kernel_rows(profile, model, peak(1, 50), peak(2, 100))[2].bound, "L1");
}

TEST(KernelTable, KernelsThatSaveArithmeticAreListedApart) {
  Profile profile;
  profile.steps = {step("conv2d.winograd", 5, 1e6, 0, 0, 5), step("conv2d.direct", 20, 1e6, 0, 0, 10)};
  auto rows = kernel_rows(profile, {}, peak(1, 100), peak(1, 100));
  EXPECT_TRUE(rows[0].saves_arithmetic);
  EXPECT_FALSE(rows[1].saves_arithmetic);
  std::string table = kernel_table(rows, peak(1, 100));
  EXPECT_NE(table.find("direct kernels: 1 steps, 20.0 us, 50% of the roofline"), std::string::npos) << table;
  EXPECT_NE(table.find("(Winograd), against the direct roofline: 1 steps, 5.0 us, 200%"), std::string::npos) << table;
  EXPECT_LT(table.find("conv2d.direct"), table.find("conv2d.winograd")) << "the slowest comes first";
}

TEST(KernelTable, RankCorrelation) {
  Profile profile;
  auto correlation = [&](std::vector<std::pair<double, double>> pairs, int threads = 1) {
    profile.steps.clear();
    for (auto [predicted, measured] : pairs) profile.steps.push_back(step("x", measured, 0, 0, 0, predicted));
    return prediction_rank_correlation(kernel_rows(profile, {}, peak(1, 1), peak(1, 1)), threads);
  };
  EXPECT_NEAR(correlation({{1, 10}, {2, 20}, {30, 25}}), 1, 1e-12);
  EXPECT_NEAR(correlation({{1, 30}, {2, 20}, {3, 10}}), -1, 1e-12);
  EXPECT_NEAR(correlation({{1, 10}, {2, 30}, {3, 20}, {4, 40}}), 0.8, 1e-12);
  EXPECT_NEAR(correlation({{1, 1}, {1, 1}, {2, 5}}), 1, 1e-12) << "ties share a rank";
  EXPECT_EQ(correlation({{1, 1}}), 0);
  EXPECT_EQ(correlation({{0, 1}, {0, 2}, {0, 3}}), 0) << "nothing was predicted";
  EXPECT_EQ(correlation({{1, 3}, {1, 2}}), 0) << "predictions that do not differ say nothing";
}

TEST(KernelTable, MeasuredPeaksAreOfThisWorld) {
  MachinePeak one = measure_peak(1);
  EXPECT_GT(one.gflops, 0.5);
  // A core does at most 2 x 16 multiply-adds a cycle: more means that the compiler dropped some of them.
  EXPECT_LT(one.gflops, 6 * 64);
  for (const MemoryLevel& level : one.levels) EXPECT_GT(level.gbps, 0.1) << level.name;
  for (size_t i = 1; i < one.levels.size(); ++i)
    EXPECT_LE(one.levels[i].gbps, one.levels[i - 1].gbps) << one.levels[i].name;
  EXPECT_LE(one.levels[0].capacity, one.levels[1].capacity);
  EXPECT_EQ(&one.level_of(1e15), &one.levels[3]);
  EXPECT_EQ(&one.level_of(0), &one.levels[0]);
}

}  // namespace
}  // namespace tilewright::cli
