// SPDX-License-Identifier: Apache-2.0
// Relay modules as files: what the classic stack saved, compiled by the command line and by C++.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "driver/command.h"
#include "runtime/artifact_maker.h"
#include "runtime/params_file.h"
#include "test_folders.h"
#include "tilewright/vm.h"

namespace tilewright {
namespace {

using namespace tilewright::testing;
const std::string kClassicFiles = TW_TEST_DATA "/classic/";

std::vector<float> floats(const runtime::NamedTensor& t) {
  std::vector<float> out(t.data.size() / sizeof(float));
  std::memcpy(out.data(), t.data.data(), t.data.size());
  return out;
}

// Input and output of the classic stack's own build of smallnet.
struct Classic {
  std::vector<float> x, out;
  Classic() {
    const std::string file = read_file(kClassicFiles + "smallnet_io.params");
    auto tensors = runtime::read_params_file(std::as_bytes(std::span(file)));
    EXPECT_TRUE(tensors.ok());
    for (const auto& t : *tensors) (t.name == "x" ? x : out) = floats(t);
  }
};

void near(const Span<const float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5 * (1 + std::abs(expected[i])));
}

TEST(RelayFile, WhatTheClassicStackSavedGivesItsResults) {
  TempFolder folder;
  const Classic classic;
  size_t of_text = 0;
  for (const char* name : {"smallnet.json", "smallnet.relay"}) {
    const Said said = command(
        {"compile", kClassicFiles + name, "--params", kClassicFiles + "smallnet.params", "-o", folder / "net.so"});
    ASSERT_EQ(said.code, 0) << said.error;
    EXPECT_NE(said.out.find("input  x: float32 1x3x32x32\n"), std::string::npos) << said.out;
    Model model(folder / "net.so");
    ASSERT_EQ(model.inputs().size(), 1u);
    Executor executor(model, 1);
    executor.set_input("x", classic.x, {1, 3, 32, 32});
    executor.run();
    near(executor.output<float>(0), classic.out);
    of_text = read_file(folder / "net.so").size();
  }
  CompileOptions options;
  options.params = kClassicFiles + "smallnet.params";
  compile(kClassicFiles + "smallnet.relay", folder / "cpp.so", options);
  EXPECT_EQ(read_file(folder / "cpp.so").size(), of_text);
  const Said verified =
      command({"verify", kClassicFiles + "smallnet.relay", "--params", kClassicFiles + "smallnet.params"});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
}

// Without weights they are inputs; with a part of them, the others are.
TEST(RelayFile, WeightsThatAreNotGivenAreInputs) {
  TempFolder folder;
  ASSERT_EQ(command({"compile", kClassicFiles + "smallnet.relay", "-o", folder / "net.so", "--quiet"}).code, 0);
  EXPECT_EQ(Model(folder / "net.so").inputs().size(), 10u);
}

TEST(RelayFile, FreeSizesAndRecursion) {
  TempFolder folder;
  write_file(folder / "free.relay", R"(#[version = "0.0.5"]
def @main(%x: Tensor[(?, 4), float32]) -> Tensor[(?, 4), float32] {
  nn.relu(add(%x, 1f))
}
)");
  Said said = command({"compile", folder / "free.relay", "-o", folder / "free.so"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_NE(said.out.find("VM program"), std::string::npos) << said.out;
  VirtualMachine vm(folder / "free.so");
  for (int64_t n : {1, 3}) {
    vm.set_input("x", std::vector<float>(static_cast<size_t>(n) * 4, 2), {n, 4});
    vm.run();
    EXPECT_EQ(vm.shape(0), (std::vector<int64_t>{n, 4}));
    near(vm.output<float>(0), std::vector<float>(static_cast<size_t>(n) * 4, 3));
  }
  said = command({"compile", folder / "free.relay", "-o", folder / "fixed.so", "--shape", "x=2x4"});
  ASSERT_EQ(said.code, 0) << said.error;
  Executor fixed(Model(folder / "fixed.so"), 1);
  fixed.set_input("x", std::vector<float>(8, -3), {2, 4});
  fixed.run();
  near(fixed.output<float>(0), std::vector<float>(8, 0));
  // Two shapes in one library.
  said = command({"compile", folder / "free.relay", "-o", folder / "two.so", "--shape", "x={2,5}x4"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(Model(folder / "two.so").num_variants(), 2u);

  write_file(folder / "sum.relay", R"(#[version = "0.0.5"]
def @sum(%i: int32, %to: int32) -> int32 {
  if (equal(%i, 0)) { %to } else { @sum(subtract(%i, 1), add(%to, %i)) }
}
def @main(%n: int32) -> int32 { @sum(%n, 0) }
)");
  said = command({"compile", folder / "sum.relay", "-o", folder / "sum.so", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  VirtualMachine sum(folder / "sum.so");
  sum.set_input("n", std::vector<int32_t>{100}, {});
  sum.run();
  EXPECT_EQ(sum.output<int32_t>(0)[0], 5050);
}

TEST(RelayFile, WrongOnesAreErrors) {
  TempFolder folder;
  write_file(folder / "cut.relay", read_file(kClassicFiles + "smallnet.relay").substr(0, 900));
  write_file(folder / "cut.json", read_file(kClassicFiles + "smallnet.json").substr(0, 9000));
  write_file(folder / "other.json", "{\"a\": 1}");
  write_file(folder / "cut.params", read_file(kClassicFiles + "smallnet.params").substr(0, 900));
  write_file(folder / "empty.relay", "#[version = \"0.0.5\"]\n");
  const std::string net = kClassicFiles + "smallnet.relay", weights = kClassicFiles + "smallnet.params";
  struct {
    std::vector<std::string> words;
    const char* error;
  } cases[] = {
      {{folder / "cut.relay"}, "E303"},
      {{folder / "cut.json"}, "E303"},
      {{folder / "other.json"}, "E201"},
      {{kClassicFiles + "smallnet_graph.json"}, "E201"},
      {{folder / "none.relay"}, "E102"},
      {{folder / "empty.relay"}, "main"},
      {{net, "--params", folder / "none.params"}, "E102"},
      {{net, "--params", folder / "cut.params"}, "E501"},
      {{net, "--params", net}, "E501"},
      {{net, "--constant", "x=1"}, "E101"},
      {{net, "--params", weights, "--shape", "x=1x3x16x16"}, "E505"},
      {{net, "--params", weights, "--shape", "z=1x3x16x16"}, "E504"},
      {{TW_TEST_DATA "/onnx/convnet.onnx", "--shape", "x=1x3x8x8", "--params", weights}, "E101"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words{"compile"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    words.insert(words.end(), {"-o", folder / "m.so"});
    const Said said = command(words);
    EXPECT_EQ(said.code, c.error == std::string("E101") ? 1 : 2) << c.words[0] << said.error;
    EXPECT_NE(said.error.find(c.error), std::string::npos) << c.error << ": " << said.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "m.so"));
  }
}

}  // namespace
}  // namespace tilewright
