// SPDX-License-Identifier: Apache-2.0
// Configurations are decided once, before buffers are planned, by a chooser that may take any that an implementation
// lists; what they say is what the kernel is.
#include <set>

#include "driver/build.h"
#include "driver/graphs.h"
#include "driver/machine.h"
#include "lower/strategy.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;
using lower::Candidate, lower::Decision, lower::KernelChooser, lower::Problem;

// The cost model's implementation in the n-th configuration that it lists, or its last one.
struct Nth : KernelChooser {
  explicit Nth(size_t n) : n(n) {}
  Decision choose(const Problem& p, std::span<const Candidate> candidates) const override {
    Decision d = KernelChooser::choose(p, candidates);
    const auto all = candidates[d.candidate].implementation->configs(p, n + 1);
    d.config = all.back().text;
    if (all.size() > 1) ++asked;
    return d;
  }
  size_t n;
  mutable int asked = 0;
};

// What it is told, for every call; or, empty, the first guess.
struct Says : KernelChooser {
  explicit Says(std::string config) : config(std::move(config)) {}
  Decision choose(const Problem& p, std::span<const Candidate> candidates) const override {
    return {KernelChooser::choose(p, candidates).candidate, config};
  }
  std::string config;
};

Expr dense(Expr x, int64_t out, int64_t in) { return call("nn.dense", {x, constant({out, in})}); }

Expr transposed(Expr x, int64_t in, int64_t out) {
  return call("nn.conv2d_transpose", {x, constant({in, out, 3, 3})}, make_attrs<Conv2DTransposeAttrs>([&](auto& a) {
                a.strides = {2, 2};
                a.padding = {1, 1, 1, 1};
                a.channels = out;
                a.kernel_size = std::vector<int64_t>{3, 3};
              }));
}

// Of what has no template: loops over tiles.
Expr grouped_transposed(Expr x) {
  return call("nn.conv2d_transpose", {x, constant({16, 3, 3, 3})}, make_attrs<Conv2DTransposeAttrs>([&](auto& a) {
                a.padding = {1, 1, 1, 1};
                a.channels = 12;
                a.groups = 4;
                a.kernel_size = std::vector<int64_t>{3, 3};
              }));
}

Expr product(Expr a, Expr b) {
  return call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>([](auto& m) { m.transpose_b = true; }));
}

struct ConfiguredCase {
  std::vector<Expr> inputs;
  Expr body;
};
std::vector<ConfiguredCase> cases() {
  Expr x = input("x", {1, 16, 12, 10}), rows = input("r", {20, 48}), a = input("a", {2, 9, 33}),
       b = input("b", {2, 21, 33}), line = input("l", {1, 6, 40});
  return {{{x}, relu(bias(conv(relu(conv(x, 32, 16, 1, 1, 0)), 24, 32, 3, 1, 1), 24))},
          {{x}, conv(relu(conv(x, 16, 1, 3, 1, 1, 16)), 8, 16, 1, 1, 0)},
          {{x}, transposed(relu(conv(x, 16, 16, 3, 1, 1)), 16, 8)},
          {{x}, relu(grouped_transposed(x))},
          {{x}, call("nn.lrn", {x}, make_attrs<LRNAttrs>([](auto& a) { a.size = 5; }))},
          {{rows}, relu(dense(rows, 70, 48))},
          {{a, b}, product(a, b)},
          {{line}, call("nn.conv1d", {line, constant({5, 6, 3})}, make_attrs<Conv1DAttrs>([](auto& c) {
                          c.strides = {1};
                          c.padding = {1, 1};
                          c.dilation = {1};
                          c.channels = 5;
                          c.kernel_size = std::vector<int64_t>{3};
                        }))}};
}

TEST(Configurations, EveryListedOneIsAKernelThatAgreesWithTheReference) {
  for (const char* target : runnable({"llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"}))
    for (size_t n : {1, 7, 40}) {
      auto chooser = std::make_shared<Nth>(n);
      VerifyOptions options;
      options.build.target = target;
      options.build.jobs = 1;
      options.build.chooser = chooser;
      for (const ConfiguredCase& c : cases()) {
        auto report = verify_module(Module().with_main(make_function(c.inputs, c.body)), options);
        ASSERT_TRUE(report.ok()) << report.error().str();
        for (const auto& m : report->mismatches) ADD_FAILURE() << n << ": " << m.kernel << " (" << m.step << ")";
        EXPECT_TRUE(report->taken_apart.empty()) << n;
      }
      EXPECT_GE(chooser->asked, 10) << "most of these have several";
    }
}

// What the steps of a module were configured as.
std::vector<std::string> configured(const ConfiguredCase& c, std::shared_ptr<const KernelChooser> chooser,
                                    size_t* kernels) {
  BuildOptions options;
  options.target = "llvm -mcpu=x86-64-v4";
  options.chooser = std::move(chooser);
  auto built = build(Module().with_main(make_function(c.inputs, c.body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  std::vector<std::string> out;
  for (const auto& trace : built->lowered.traces)
    if (trace.choice->kernel) out.push_back(trace.choice->configuration);
  *kernels = built->lowered.kernels.size();
  return out;
}

// Two products of one shape in configurations that differ in the unrolling alone are two kernels: they were one.
TEST(Configurations, EveryFieldTellsKernelsApart) {
  struct Unrolls : KernelChooser {
    Decision choose(const Problem& p, std::span<const Candidate> candidates) const override {
      Decision d = KernelChooser::choose(p, candidates);
      const size_t at = d.config.find("k_unroll=");
      if (at != std::string::npos) d.config.replace(at, 10, "k_unroll=" + std::to_string(1 + calls++));
      return d;
    }
    mutable int calls = 0;
  };
  Expr a = input("a", {20, 48}), b = input("b", {20, 48});
  const ConfiguredCase two{{a, b}, make_tuple({dense(a, 64, 48), dense(b, 64, 48)})};
  size_t alike = 0, apart = 0;
  configured(two, nullptr, &alike);
  const auto texts = configured(two, std::make_shared<Unrolls>(), &apart);
  EXPECT_EQ(alike, 1u);
  EXPECT_EQ(apart, 2u);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0], texts[1]);
}

// Rows of a 1x1 convolution run together unless a neighbour needs zeros between them, and that is known, said and kept
// before its kernel is made.
TEST(Configurations, RowsRunTogetherWhereNothingLiesBetween) {
  Expr x = input("x", {1, 64, 17, 17});
  Expr inner = relu(conv(relu(conv(x, 64, 64, 1, 1, 0)), 64, 64, 1, 1, 0));
  size_t kernels = 0;
  const auto alone = configured({{x}, inner}, nullptr, &kernels);
  const auto padded = configured({{x}, conv(inner, 64, 64, 3, 2, 1)}, nullptr, &kernels);
  ASSERT_EQ(alone.size(), 2u);
  ASSERT_EQ(padded.size(), 3u);
  EXPECT_NE(alone[1].find("flatten=true"), std::string::npos) << alone[1];
  EXPECT_EQ(padded[0], alone[0]);
  EXPECT_NE(padded[1].find("flatten=false"), std::string::npos) << padded[1];
}

TEST(Configurations, OneThatIsNoneIsAnErrorThatSaysSo) {
  Expr rows = input("r", {20, 48});
  for (const char* text : {"", "mr=0 nr=1 k_unroll=1 dots=false weights=float32", "mr=1 nr=1 k_unroll=1 dot=true",
                           "mr=1 nr=1 k_unroll=1 dots=false weights=bfloat16", "6 rows x 2 vectors"}) {
    BuildOptions options;
    options.chooser = std::make_shared<Says>(text);
    auto built = build(Module().with_main(make_function({rows}, dense(rows, 64, 48))), options);
    ASSERT_FALSE(built.ok()) << text;
    EXPECT_EQ(built.error().code, ErrorCode::kInvalidArgument) << built.error().str();
    EXPECT_NE(built.error().str().find("dense.packed has no configuration '" + std::string(text) + "'"),
              std::string::npos)
        << built.error().str();
    EXPECT_NE(built.error().hint.find("k_unroll="), std::string::npos) << built.error().str();
  }
}

// The steps of lowering are passes: timed, verified and dumped by the same runner.
TEST(Configurations, LoweringRunsAsListedSteps) {
  Expr x = input("x", {1, 16, 8, 8});
  BuildOptions options;
  auto built = build(Module().with_main(make_function({x}, conv(x, 16, 16, 3, 1, 1))), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  std::vector<std::string> names;
  for (const PassRecord& record : built->passes) names.push_back(record.name);
  const std::vector<std::string> steps{"ChooseKernels", "PlaceTensors", "SettleConfigurations", "RepackWeights",
                                       "PlanBuffers",   "DescribePlan", "EmitKernels"};
  ASSERT_GE(names.size(), steps.size());
  EXPECT_TRUE(std::equal(steps.begin(), steps.end(), names.end() - static_cast<std::ptrdiff_t>(steps.size())));
}

}  // namespace
}  // namespace tilewright::driver
