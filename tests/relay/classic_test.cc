// SPDX-License-Identifier: Apache-2.0
// Texts that the classic stack (version 0.9.0) wrote from its own test workloads: we read them, and group their
// operators as it does. The texts are its output with the comments taken out.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "relay/passes/pipeline.h"
#include "relay/text.h"
#include "relay/verifier.h"
#include "test_folders.h"

namespace tilewright::relay {
namespace {

Module read(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(std::string(TW_TEST_DATA) + "/classic/" + name + ".txt").rdbuf();
  ParseOptions options;
  options.origin = name;
  auto module = parse_module(text.str(), {}, options);
  EXPECT_TRUE(module.ok()) << module.error().str();
  return module.ok() ? *module : Module();
}

class ClassicText : public testing::TestWithParam<const char*> {};

TEST_P(ClassicText, IsReadAndRoundTrips) {
  Module module = read(GetParam());
  Status sound = verify_module(module);
  ASSERT_TRUE(sound.ok()) << sound.error().str();
  ModuleText printed = print_module(module);
  auto again = parse_module(printed.text, printed.constants);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_TRUE(structural_equal(module, *again));
}

INSTANTIATE_TEST_SUITE_P(Zoo, ClassicText,
                         testing::Values("mlp", "dcgan", "squeezenet", "mobilenet", "resnet", "vgg", "inception_v3"),
                         [](const auto& info) { return std::string(info.param); });

class ClassicFusion : public testing::TestWithParam<const char*> {};

// The classic result without fusion, taken apart and fused by us, is the classic result with fusion.
TEST_P(ClassicFusion, GroupsAlike) {
  std::string name = GetParam();
  Module unfused = read(name + "_fuse0"), expected = read(name + "_fuse1");
  PassContext context;
  ASSERT_TRUE(context.set_config("relay.FuseOps.in_place", false).ok());  // the classic stack has no such rule
  auto result = run_passes(unfused, {"DefuseOps", "FuseOps"}, context);
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_TRUE(structural_equal(*result, expected)) << print_module(*result).text;
  // And our level 0 is theirs.
  context.opt_level = 0;
  context.required = {"DefuseOps"};
  auto single = run_passes(unfused, {"DefuseOps", "FuseOps"}, context);
  ASSERT_TRUE(single.ok()) << single.error().str();
  EXPECT_TRUE(structural_equal(*single, unfused)) << print_module(*single).text;
}

INSTANTIATE_TEST_SUITE_P(Workloads, ClassicFusion,
                         testing::Values("mlp", "dcgan", "squeezenet", "mobilenet", "resnet", "inception_v3"),
                         [](const auto& info) { return std::string(info.param); });

// The whole default pipeline on real graphs with unknown weights: sound after each pass, nothing left that has no
// kernel.
TEST_P(ClassicText, GoesThroughTheDefaultPipeline) {
  PassContext context;
  Target target;
  target.vector_bits = 512;
  auto result = optimize(read(GetParam()), context, target);
  ASSERT_TRUE(result.ok()) << result.error().str();
  for (const Expr& e : post_order(result->main(), true)) {
    EXPECT_FALSE(is_call_to(e, "nn.batch_norm"));
    EXPECT_FALSE(is_call_to(e, "nn.bias_add"));
  }
}

TEST(Optimize, RefusesUnknownPassNames) {
  PassContext context;
  context.disabled = {"FuseOp"};
  auto result = optimize(read("mlp"), context, Target());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownPass);
  EXPECT_NE(result.error().hint.find("FuseOps"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::relay
