// SPDX-License-Identifier: Apache-2.0
// The execution plan's bytes: round trip, and a reader that survives everything.
#include "base/formats/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

namespace tilewright::plan {
namespace {

Plan small_plan() {
  Plan p;
  p.model_name = "net";
  p.compiler_version = "0.1.0";
  p.target = "llvm -mcpu=znver4";
  p.cpu_features = {"avx2", "fma"};
  p.inputs = {{"x", kFloat32, {1, 3, 8, 8}}, {"n", kInt64, {}}};
  p.outputs = {{"y", kFloat32, {1, 10}}};
  p.kernels = {"conv", "dense"};
  p.arena_bytes = 4096;
  p.scratch_bytes = 1024;
  p.externals = {"tvmgen_net_unit_main_0"};
  p.devices = {1, 12};
  p.device_arena_bytes = {512};
  p.params_bytes = 1024;
  p.buffers = {{Space::kInput, 0, 0, 768, kFloat32, {1, 3, 8, 8}, "NCHW", "x"},
               {Space::kParams, 0, 64, 256, kFloat32, {64}, "", "w"},
               {Space::kArena, 0, 128, 1024, kFloat32, {1, 1, 4, 4, 16}, "NCHW16c", "t"},
               {Space::kOutput, 0, 0, 40, kFloat32, {1, 10}, "", "y"},
               {Space::kScratch, 0, 64, 960, kFloat32, {240}, "", "scratch"},
               {Space::kArena, 0, 64, 40, kFloat32, {10}, "", "there", 1}};
  p.steps = {{0, {0, 1, 2}, true, "nn.conv2d+nn.relu", "Conv_0", 1e6, 2048, 12.5, "conv2d.direct"},
             {1, {2, 3}, false, "nn.dense", "Gemm_1"}};
  p.steps.push_back({0, {0, 5}, false, "unit.dense", "Gemm_2", 0, 0, 0, "external.unit", 1, StepKind::kExternal});
  p.steps.push_back({0, {5, 3}, false, "device_copy", "", 0, 0, 0, "device_copy", 1, StepKind::kCopy});
  p.params = {{"w", kFloat32, {64}, "O64o", 64, 256}};
  p.metadata = {{"author", "someone"}, {"character", "a\nb\nc"}};
  // The same model for another input shape, with buffers and steps of its own.
  Plan other = p;
  other.inputs[0].shape = {1, 3, 4, 4};
  other.buffers = {{Space::kInput, 0, 0, 192, kFloat32, {1, 3, 4, 4}, "NCHW", "x"},
                   {Space::kParams, 0, 64, 256, kFloat32, {64}, "", "w"},
                   {Space::kOutput, 0, 0, 40, kFloat32, {1, 10}, "", "y"}};
  other.steps = {{1, {0, 1, 2}, true, "nn.dense", "Gemm_1"}};
  other.arena_bytes = 128;
  other.scratch_bytes = 64;
  other.device_arena_bytes = {0};
  p.variants = {other};
  // And for a range of sizes.
  other.free_sizes = {{"height", 2, 4, {{false, 0, 2}}}, {"classes", 5, 20, {{true, 0, 1, 0, 2}}}};
  other.buffers.push_back({Space::kInput, 3, 0, 8, kInt64, {1}, "", "size of classes"});
  other.steps[0].buffers.push_back(3);
  p.variants.push_back(other);
  return p;
}

std::span<const std::byte> as_bytes(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

TEST(Plan, RoundTrip) {
  std::string bytes = write_plan(small_plan());
  auto plan = read_plan(as_bytes(bytes));
  ASSERT_TRUE(plan.ok()) << plan.error().str();
  EXPECT_EQ(write_plan(*plan), bytes);
  EXPECT_EQ(plan->inputs[1].dtype, kInt64);
  EXPECT_EQ(plan->buffers[2].layout, "NCHW16c");
  EXPECT_EQ(plan->steps[0].buffers, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(plan->steps[0].parallel);
  EXPECT_EQ(plan->steps[0].implementation, "conv2d.direct");
  EXPECT_EQ(plan->metadata.at("character"), "a\nb\nc");
}

TEST(Plan, VariantsShareKernelsAndWeights) {
  auto plan = read_plan(as_bytes(write_plan(small_plan())));
  ASSERT_TRUE(plan.ok()) << plan.error().str();
  ASSERT_EQ(plan->variants.size(), 2u);
  const Plan& other = variant_of(*plan, 1);
  EXPECT_EQ(&variant_of(*plan, 0), &*plan);
  EXPECT_EQ(other.inputs[0].shape, (std::vector<int64_t>{1, 3, 4, 4}));
  EXPECT_EQ(other.arena_bytes, 128u);
  EXPECT_EQ(other.steps.size(), 1u);
  EXPECT_EQ(other.kernels, plan->kernels);
  EXPECT_EQ(other.params.size(), plan->params.size());
  EXPECT_EQ(other.metadata, plan->metadata);
  EXPECT_EQ(other.params_bytes, plan->params_bytes);
}

TEST(Plan, VariantsThatDisagreeAreRefused) {
  auto refused = [](auto change) {
    Plan p = small_plan();
    change(p.variants[0]);
    auto plan = read_plan(as_bytes(write_plan(p)));
    return !plan.ok() && plan.error().code == ErrorCode::kBadArtifact;
  };
  EXPECT_FALSE(refused([](Plan&) {}));
  EXPECT_TRUE(refused([](Plan& v) { v.inputs[0].name = "z"; }));
  EXPECT_TRUE(refused([](Plan& v) { v.inputs[1].dtype = kFloat32; }));
  EXPECT_TRUE(refused([](Plan& v) { v.inputs.pop_back(); }));
  EXPECT_TRUE(refused([](Plan& v) { v.outputs.clear(); }));
  EXPECT_TRUE(refused([](Plan& v) { v.steps[0].kernel = 2; }));
  EXPECT_TRUE(refused([](Plan& v) { v.steps[0].buffers = {3}; }));
  EXPECT_TRUE(refused([](Plan& v) { v.buffers[0].bytes = 193; }));
  EXPECT_TRUE(refused([](Plan& v) { v.buffers[1].offset = 1024; }));
  EXPECT_TRUE(refused([](Plan& v) { v.scratch_bytes = 256; }));
}

TEST(Plan, FreeSizesAreDimensions) {
  auto refused = [](auto change) {
    Plan p = small_plan();
    change(p.variants[1].free_sizes, p.variants[1]);
    auto plan = read_plan(as_bytes(write_plan(p)));
    return !plan.ok() && plan.error().code == ErrorCode::kBadArtifact;
  };
  using Sizes = std::vector<FreeSize>;
  EXPECT_FALSE(refused([](Sizes&, Plan&) {}));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].dims[0].tensor = 2; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].dims[0].axis = 4; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].dims[0].axis = 1; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].dims[0].divide = 2; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[1].dims[0].divide = 0; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[1].dims[0].add = -6; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].low = 5; }));
  EXPECT_TRUE(refused([](Sizes& s, Plan&) { s[0].low = -1; }));
  EXPECT_TRUE(refused([](Sizes&, Plan& v) { v.buffers.back().index = 4; }));
  EXPECT_TRUE(refused([](Sizes&, Plan& v) { v.buffers.back().bytes = 16; }));
  EXPECT_TRUE(refused([](Sizes&, Plan& v) { v.free_sizes.clear(); }));
}

TEST(Plan, EmptyPlanRoundTrips) {
  std::string bytes = write_plan(Plan{});
  auto plan = read_plan(as_bytes(bytes));
  ASSERT_TRUE(plan.ok()) << plan.error().str();
  EXPECT_EQ(write_plan(*plan), bytes);
}

TEST(Plan, EveryTruncationIsRefused) {
  std::string bytes = write_plan(small_plan());
  for (size_t n = 0; n < bytes.size(); ++n) {
    auto plan = read_plan(as_bytes(bytes.substr(0, n)));
    ASSERT_FALSE(plan.ok()) << n;
    EXPECT_EQ(plan.error().code, ErrorCode::kBadArtifact) << n;
  }
  bytes += '\0';
  EXPECT_FALSE(read_plan(as_bytes(bytes)).ok());
}

// A flipped bit may leave a valid plan; then it must hold what the runtime relies on.
void expect_safe(const Plan& p) {
  for (const Plan& variant : p.variants) {
    expect_safe(variant);
    ASSERT_EQ(variant.inputs.size(), p.inputs.size());
    ASSERT_EQ(variant.outputs.size(), p.outputs.size());
    for (size_t i = 0; i < p.inputs.size(); ++i)
      ASSERT_TRUE(variant.inputs[i].name == p.inputs[i].name && variant.inputs[i].dtype == p.inputs[i].dtype);
  }
  for (const auto& step : p.steps) {
    ASSERT_LT(step.kernel, step.kind == StepKind::kKernel     ? p.kernels.size()
                           : step.kind == StepKind::kExternal ? p.externals.size()
                                                              : 1);
    for (uint32_t b : step.buffers) ASSERT_LT(b, p.buffers.size());
    if (step.kind == StepKind::kCopy) {
      ASSERT_EQ(step.buffers.size(), 2u);
    }
    if (step.kind == StepKind::kCopy) {
      ASSERT_EQ(p.buffers[step.buffers[0]].bytes, p.buffers[step.buffers[1]].bytes);
    }
  }
  ASSERT_LE(p.scratch_bytes, p.arena_bytes);
  for (const FreeSize& size : p.free_sizes)
    for (const FreeSize::Dim& d : size.dims) {
      ASSERT_LT(d.tensor, (d.output ? p.outputs : p.inputs).size());
      const auto& shape = (d.output ? p.outputs : p.inputs)[d.tensor].shape;
      ASSERT_LT(d.axis, shape.size());
      ASSERT_GE((size.low + d.add) / d.divide, 0);
      ASSERT_EQ((size.largest + d.add) / d.divide, shape[d.axis]);
    }
  for (const auto& b : p.buffers) {
    ASSERT_LT(b.device, p.devices.size());
    if (b.space == Space::kArena) {
      ASSERT_LE(b.offset + b.bytes, b.device == 0 ? p.arena_bytes : p.device_arena_bytes.at(b.device - 1));
    }
    if (b.space == Space::kScratch) {
      ASSERT_LE(b.offset + b.bytes, p.scratch_bytes);
    }
    if (b.space == Space::kParams) {
      ASSERT_LE(b.offset + b.bytes, p.params_bytes);
    }
    if (b.space == Space::kInput) {
      ASSERT_LT(b.index, p.inputs.size() + p.free_sizes.size());
    }
    if (b.space == Space::kInput && b.index >= p.inputs.size()) {
      ASSERT_LE(b.offset + b.bytes, 8u);
    }
    if (b.space == Space::kOutput) {
      ASSERT_LT(b.index, p.outputs.size());
    }
  }
}

TEST(Plan, EveryBitFlipIsSafe) {
  std::string bytes = write_plan(small_plan());
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      auto plan = read_plan(as_bytes(damaged));
      if (plan.ok())
        expect_safe(*plan);
      else
        ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) * 3);
}

TEST(Plan, RandomDamageIsSafe) {
  std::string bytes = write_plan(small_plan());
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + round % 8; ++k) {
      size_t at = random() % damaged.size();
      if (round % 3 == 0)
        damaged[at] = static_cast<char>(0xff);
      else
        damaged[at] = static_cast<char>(random());
    }
    auto plan = read_plan(as_bytes(damaged));
    if (plan.ok()) expect_safe(*plan);
  }
}

TEST(Plan, WrongContentsAreRefused) {
  struct Case {
    const char* what;
    std::function<void(Plan&)> damage;
  };
  const uint64_t huge = std::numeric_limits<uint64_t>::max() - 63;
  const Case cases[] = {
      {"kernel", [](Plan& p) { p.steps[0].kernel = 2; }},
      {"step buffer", [](Plan& p) { p.steps[1].buffers[0] = 6; }},
      {"external function", [](Plan& p) { p.steps[2].kernel = 1; }},
      {"external tensor", [](Plan& p) { p.buffers[5].shape = {11}; }},
      {"external in parallel", [](Plan& p) { p.steps[2].parallel = true; }},
      {"external scratch", [](Plan& p) { p.steps[2].buffers[0] = 4; }},
      {"copy of another size", [](Plan& p) { p.steps[3].buffers[0] = 2; }},
      {"copy of three", [](Plan& p) { p.steps[3].buffers.push_back(3); }},
      {"device", [](Plan& p) { p.buffers[5].device = 2; }},
      {"device memory", [](Plan& p) { p.device_arena_bytes[0] = 64; }},
      {"device memory missing", [](Plan& p) { p.device_arena_bytes.clear(); }},
      {"first device", [](Plan& p) { p.devices[0] = 12; }},
      {"arena extent", [](Plan& p) { p.buffers[2].bytes = 4096; }},
      {"arena offset overflow", [&](Plan& p) { p.buffers[2].offset = huge; }},
      {"params extent", [](Plan& p) { p.buffers[1].bytes = 1025; }},
      {"params alignment", [](Plan& p) { p.buffers[1].offset = 2; }},
      {"input index", [](Plan& p) { p.buffers[0].index = 2; }},
      {"input extent", [](Plan& p) { p.buffers[0].bytes = 769; }},
      {"output extent", [](Plan& p) { p.buffers[3].offset = 4; }},
      {"param extent", [](Plan& p) { p.params[0].bytes = 2048; }},
      {"param shape", [](Plan& p) { p.params[0].shape = {65}; }},
      {"negative dim", [](Plan& p) { p.outputs[0].shape = {-1}; }},
      {"huge shape",
       [](Plan& p) {
         p.inputs[0].shape = {1 << 30, 1 << 30};
       }},
      {"rank", [](Plan& p) { p.inputs[0].shape.assign(33, 1); }},
      {"dtype bits",
       [](Plan& p) {
         p.inputs[0].dtype = {TypeCode::kFloat, 31, 1};
       }},
      {"dtype lanes",
       [](Plan& p) {
         p.inputs[0].dtype = {TypeCode::kFloat, 32, 4};
       }},
      {"scratch extent", [](Plan& p) { p.buffers[4].bytes = 964; }},
      {"scratch beyond the arena", [](Plan& p) { p.scratch_bytes = 8192; }},
      {"scratch out of line", [](Plan& p) { p.scratch_bytes = 1000; }},
      {"arena size", [&](Plan& p) { p.arena_bytes = huge; }},
  };
  for (const auto& c : cases) {
    Plan p = small_plan();
    c.damage(p);
    auto plan = read_plan(as_bytes(write_plan(p)));
    ASSERT_FALSE(plan.ok()) << c.what;
    EXPECT_EQ(plan.error().code, ErrorCode::kBadArtifact) << c.what;
  }
}

TEST(Plan, AnotherVersionNamesTheWriter) {
  std::string bytes = write_plan(small_plan());
  bytes[4] = 9;
  auto plan = read_plan(as_bytes(bytes));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kArtifactVersion);
  EXPECT_NE(plan.error().message.find("0.1.0"), std::string::npos) << plan.error().message;
}

}  // namespace
}  // namespace tilewright::plan
