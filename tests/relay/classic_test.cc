// SPDX-License-Identifier: Apache-2.0
// Texts that the classic stack (version 0.9.0) wrote from its own test workloads: we read them, and group their
// operators as it does. The texts are its output with the comments taken out.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>
#include <sstream>

#include "relay/classic/json.h"
#include "relay/passes/default_pipeline.h"
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
  options.zero_missing_constants = true;
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

// What is left of a text when variables are numbered by where they first stand and comments and line breaks are gone.
std::string skeleton(const std::string& text) {
  std::map<std::string, std::string> names;
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "/*") == 0) {
      i = text.find("*/", i) + 2;
    } else if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
    } else if (text[i] == '%') {
      size_t end = i + 1;
      while (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_') ++end;
      out += names.emplace(text.substr(i, end - i), "%" + std::to_string(names.size())).first->second;
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// What we print is what the classic stack printed, but for names of variables and comments. Networks with parallel
// branches are left out: their bindings come in another order.
TEST(ClassicSyntax, IsWhatWePrint) {
  for (const char* name : {"mlp", "dcgan", "mobilenet", "resnet", "vgg", "mlp_fuse0", "mlp_fuse1"}) {
    std::stringstream text;
    text << std::ifstream(std::string(TW_TEST_DATA) + "/classic/" + name + ".txt").rdbuf();
    EXPECT_EQ(skeleton(print_module(read(name)).text), skeleton(text.str())) << name;
  }
}

// The module after the classic pipeline at level 3: blocked layouts, attributes in the metadata section, devices.
TEST(ClassicOptimized, IsReadAndRoundTrips) {
  for (const char* name : {"smallnet_O3", "mlp_O3", "squeezenet_O3"}) {
    Module module = read(name);
    ASSERT_TRUE(module.main_function()) << name;
    Status sound = verify_module(module);
    ASSERT_TRUE(sound.ok()) << sound.error().str();
    ModuleText printed = print_module(module);
    auto again = parse_module(printed.text, printed.constants);
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_TRUE(structural_equal(module, *again)) << name;
    auto json = load_json(save_json(module));
    ASSERT_TRUE(json.ok()) << json.error().str();
    EXPECT_TRUE(structural_equal(module, *json)) << name;
  }
}

TEST(ClassicOptimized, AttributesOfTheMetadataSectionAreChecked) {
  const std::string head =
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 16), float32], %w: Tensor[(2, 16, 5), float32]) {\n  ";
  const std::string section = R"(
}
#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.attrs.DensePackAttrs"], "data": [2]},
 {"type_key": "Array", "data": [3]},
 {"type_key": "relay.attrs.DensePackAttrs", "attrs": {"out_dtype": "float32", "units": "0", "weight_layout": "4"}},
 {"type_key": "runtime.String", "repr_str": "NC5n"}], "b64ndarrays": [], "attrs": {}}
)";
  auto says = [&](const std::string& body, bool with_section = true) {
    auto module = parse_module(head + body + (with_section ? section : std::string("\n}\n")));
    return module.ok() ? "accepted" : module.error().str();
  };
  EXPECT_EQ(says("nn.contrib_dense_pack(%x, %w, meta[relay.attrs.DensePackAttrs][0])"), "accepted");
  for (const auto& [body, message] : std::vector<std::pair<std::string, std::string>>{
           {"nn.contrib_dense_pack(%x, %w, meta[relay.attrs.DensePackAttrs][1])",
            "has no relay.attrs.DensePackAttrs number 1"},
           {"nn.relu(%x, meta[relay.attrs.DensePackAttrs][0])", "does not take"},
           {"nn.dense(%x, %x, meta[relay.attrs.DensePackAttrs][0])", "does not take"},
           {"nn.relu(meta[relay.attrs.DensePackAttrs][0] + %x)", "only meta[relay.Constant][i] is an expression"},
           {"meta[relay.attrs.DensePackAttrs][0]", "only meta[relay.Constant][i] is an expression"},
           {"nn.contrib_dense_pack(meta[relay.attrs.DensePackAttrs][0], %x, %w)", "an attribute"}})
    EXPECT_NE(says(body).find(message), std::string::npos) << body << ": " << says(body);
  EXPECT_NE(
      says("nn.contrib_dense_pack(%x, %w, meta[relay.attrs.DensePackAttrs][0])", false).find("no metadata section"),
      std::string::npos);
}

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
