// SPDX-License-Identifier: Apache-2.0
// The classic JSON form: what the classic stack wrote is read, what we write is read back alike, damaged files are
// refused.
#include "relay/classic/json.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/format.h"
#include "relay/text.h"
#include "relay/verifier.h"
#include "test_folders.h"

namespace tilewright::relay {
namespace {

std::string file(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(std::string(TW_TEST_DATA) + "/classic/" + name).rdbuf();
  return text.str();
}

void expect_round_trip(const Module& module) {
  std::string text = save_json(module);
  auto again = load_json(text);
  ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << text;
  EXPECT_TRUE(structural_equal(module, *again)) << print_module(module).text << print_module(*again).text;
}

TEST(RelayJson, TheClassicStacksFileIsItsText) {
  auto from_json = load_json(file("smallnet.json"));
  ASSERT_TRUE(from_json.ok()) << from_json.error().str();
  auto from_text = parse_module(file("smallnet.relay"));
  ASSERT_TRUE(from_text.ok()) << from_text.error().str();
  EXPECT_TRUE(verify_module(*from_json).ok());
  EXPECT_TRUE(structural_equal(*from_json, *from_text)) << print_module(*from_json).text;
  expect_round_trip(*from_json);
  EXPECT_EQ(save_json(load_json(save_json(*from_json)).value()), save_json(*from_json));
}

TEST(RelayJson, ATextsMetadataSectionHoldsItsConstants) {
  auto module = parse_module(file("branch.relay"));
  ASSERT_TRUE(module.ok()) << module.error().str();
  ModuleText printed = print_module(*module);
  ASSERT_EQ(printed.constants.size(), 1u);
  EXPECT_EQ(printed.constants[0].shape(), (std::vector<int64_t>{16, 8}));
  EXPECT_NE(printed.constants[0].at_double(0), 0);
  TextOptions whole;
  whole.metadata = true;
  auto again = parse_module(print_module(*module, whole).text);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_TRUE(structural_equal(*module, *again));
}

TEST(RelayJson, TheWholeLanguageRoundTrips) {
  for (const char* text : {
           "type List[A] {\n Cons(A, List[A]), Nil }\n"
           "def @length[A](%l: List[A]) -> int32 { match (%l) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 } }\n"
           "def @main(%x: Tensor[(N, ?), float32]) -> int32 { @length(Cons(%x, Nil)) }\n",
           "def @main(%x: float32, %c: bool) {\n let %r = ref(%x);\n let %u = ref_write(%r, exp(%x));\n"
           "let %f = fn (%y: float32, Primitive=1, name=\"a\\\"b\", axes=[1, 2], s=[\"p\"]) -> float32 { %y * 2f };\n"
           "if (%c) { %f(ref_read(%r)) } else { 1f } }\n",
           "def @main(%x: Tensor[(1, 4, 8, 8), float32]) {\n %0 = split(%x, indices_or_sections=2, axis=1);\n"
           "%1 = strided_slice(%0.0, begin=[0], end=[1], axes=[2]);\n"
           "(nn.pad(%1, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), clip(%0.1, a_min=0f, a_max=6f), split(%x, "
           "indices_or_sections=[1, 3], axis=1),"
           " sum(%x, axis=[2, 3]), image.resize2d(%x, size=[4, 4]), cast(%x, dtype=\"int8\"), transpose(%x), topk(%x, "
           "k=1, is_ascend=True)) }\n",
       }) {
    auto module = parse_module(std::string("#[version = \"0.0.5\"]\n") + text);
    ASSERT_TRUE(module.ok()) << module.error().str();
    expect_round_trip(*module);
  }
}

TEST(RelayJson, EveryConstantDtypeRoundTrips) {
  for (DataType d : {kBool, kInt8, kUInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    Module module;
    module.functions["main"] = make_function({}, make_constant(Tensor::zeros(d, {2, 3})));
    expect_round_trip(module);
  }
}

TEST(RelayJson, DamagedFilesAreRefused) {
  for (
      auto [text, message] : std::vector<std::pair<std::string, std::string>>{
          {"", "not valid JSON"},
          {"[1, 2]", "not a module"},
          {R"({"root": 1, "nodes": [{"type_key": ""}, 3]})", "not an object"},
          {R"({"root": 7, "nodes": [{"type_key": ""}]})", "the root is ''"},
          {R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Function", "attrs": {"params": "0", "body": "1"}}]})",
           "its own operand"},
          {R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Function", "attrs": {"params": "0", "body": "0"}}]})",
           "missing"},
          {R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Function", "attrs": {"params": "0", "body": "2"}}, {"type_key": "relay.Constant", "attrs": {"data": "5"}}]})",
           "tensor is missing"},
          {R"({"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Function", "attrs": {"params": "0", "body": "2"}}, {"type_key": "relay.Call", "attrs": {"op": "3"}}, {"type_key": "Op", "repr_str": "nope"}]})",
           "no operator is called nope"},
      }) {
    auto result = load_json(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().str().find(message), std::string::npos) << result.error().str();
  }
  std::string deep(200000, '[');
  EXPECT_FALSE(load_json(deep).ok());
}

// A file cut short or changed in any one place gives a module or a diagnostic.
TEST(RelayJson, CutsAndFlipsNeverCrash) {
  auto module = parse_module(
      "#[version = \"0.0.5\"]\ntype L { C(int32, L), E }\n"
      "def @main(%x: Tensor[(2, 3), float32], %l: L) { (nn.dense(%x, meta[relay.Constant][0]), match (%l) { C(%a, _) "
      "=> %a, E => 1 }) }",
      std::vector<Tensor>{Tensor::zeros(kFloat32, {4, 3})});
  ASSERT_TRUE(module.ok()) << module.error().str();
  const std::string text = save_json(*module);
#if defined(__SANITIZE_ADDRESS__)
  constexpr size_t kStep = 23;  // the whole text would take minutes
#else
  constexpr size_t kStep = 1;
#endif
  for (size_t cut = 0; cut < text.size(); cut += 7 * kStep) EXPECT_FALSE(load_json(text.substr(0, cut)).ok());
  for (size_t at = 0; at < text.size(); at += kStep)
    for (unsigned char flip : {1, 4, 16}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      auto result = load_json(damaged);
      if (result.ok()) (void)verify_module(*result).ok();
    }
}

}  // namespace
}  // namespace tilewright::relay
