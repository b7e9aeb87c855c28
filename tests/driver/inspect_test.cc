// SPDX-License-Identifier: Apache-2.0
// `tilewright inspect`: every kind of file it names is shown, libraries for other processors too; damaged ones are
// errors with a code, never a crash.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "driver/build.h"
#include "driver/cli/commands.h"
#include "driver/cli/inspect_file.h"
#include "driver/command.h"
#include "runtime/artifact.h"
#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {

using nlohmann::json;
using tilewright::testing::command;
using tilewright::testing::make_artifact;
using tilewright::testing::read_file;
using tilewright::testing::Said;
using tilewright::testing::small_model;
using tilewright::testing::TempFolder;
using tilewright::testing::write_file;

const std::string kClassic = TW_TEST_DATA "/classic/";

class InspectTest : public ::testing::Test {
 protected:
  // What is shown as JSON; the form for people must be printable, too.
  static json shown(const std::string& path) {
    auto j = inspect_file(path);
    EXPECT_TRUE(j.ok()) << path << ": " << (j.ok() ? "" : j.error().str());
    const Said said = command({"inspect", path});
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_NE(said.out, "");
    return j.ok() ? *j : json();
  }
  std::string compiled(const std::string& name, const std::string& target) const {
    BuildOptions options;
    options.target = target;
    options.shapes["x"] = {1, 3, 8, 8};
    auto built = build_onnx(TW_TEST_DATA "/onnx/convnet.onnx", options);
    EXPECT_TRUE(built.ok()) << built.error().str();
    Status written = export_library(*built, folder_ / name);
    EXPECT_TRUE(written.ok()) << written.error().str();
    return folder_ / name;
  }
  TempFolder folder_;
};

TEST_F(InspectTest, AnExportedProgramOfPyTorchIsShown) {
  const json net = shown(TW_TEST_DATA "/torch/cache.pt2");
  EXPECT_EQ(net["kind"], "torch exported program");
  EXPECT_EQ(net["inputs"][0]["type"], "float32[3]");
  EXPECT_EQ(net["outputs"][0]["name"], "sum_1");
  EXPECT_EQ(shown(TW_TEST_DATA "/torch/picture.pt2")["kind"], "torch exported program");
}

TEST_F(InspectTest, ALibraryForAnotherProcessorIsShown) {
  const std::string path = compiled("arm.so", "llvm -mtriple=aarch64-linux-gnu");
  EXPECT_EQ(runtime::Artifact::load(path).error().code, ErrorCode::kCpuMismatch) << "it cannot be run here";
  const json arm = shown(path), here = shown(compiled("here.so", "llvm -mcpu=x86-64"));
  EXPECT_EQ(arm["machine"], "AArch64");
  EXPECT_EQ(here["machine"], "x86-64");
  EXPECT_EQ(arm["inputs"], here["inputs"]);
  EXPECT_EQ(arm["inputs"][0]["shape"], json({1, 3, 8, 8}));
  ASSERT_EQ(arm["steps"].size(), arm["kernels"].get<size_t>());
  for (const json& step : arm["steps"]) EXPECT_FALSE(step["buffers"].empty());
  EXPECT_FALSE(arm.contains("missing_cpu_features"));
}

TEST_F(InspectTest, FeaturesThatThisMachineLacksAreNamed) {
  auto source = small_model();
  source.plan.cpu_features = {"sse2", "avx1024f"};
  for (bool seal : {true, false}) {
    source.seal = seal;
    make_artifact(source, folder_ / "m.so");
    EXPECT_EQ(runtime::Artifact::load(folder_ / "m.so").error().code, ErrorCode::kCpuMismatch);
    const json j = shown(folder_ / "m.so");
    EXPECT_EQ(j["missing_cpu_features"], json({"avx1024f"}));
    EXPECT_EQ(j["model"], "small");
    EXPECT_EQ(j["steps"][1]["buffers"][0]["space"], "arena");
    EXPECT_EQ(j["steps"][1]["buffers"][1]["space"], "weights");
    EXPECT_EQ(j["weights"][0]["bytes"], 64);
  }
  const Said said = command({"inspect", folder_ / "m.so"});
  EXPECT_NE(said.out.find("avx1024f: this machine cannot run it"), std::string::npos) << said.out;
}

TEST_F(InspectTest, PackagesParamsAndGraphs) {
  const std::string path = compiled("m.tar", "llvm");
  const json package = shown(path);
  ASSERT_EQ(package["members"].size(), 3u);
  EXPECT_EQ(package["library"]["inputs"][0]["name"], "x");
  ASSERT_EQ(std::system(("tar -xf " + path + " -C " + (folder_ / ".")).c_str()), 0);
  const json params = shown(folder_ / "mod.params");
  EXPECT_EQ(params["kind"], "params");
  ASSERT_EQ(params["weights"].size(), package["library"]["weights"].size());
  EXPECT_EQ(params["weights"][0]["shape"], package["library"]["weights"][0]["shape"]);
  uint64_t bytes = 0;
  for (const json& w : params["weights"]) bytes += w["bytes"].get<uint64_t>();
  EXPECT_EQ(params["weights_bytes"], bytes);
  const json graph = shown(folder_ / "mod.json");
  EXPECT_EQ(graph["kind"], "graph json");
  EXPECT_EQ(graph["inputs"][0]["name"], "x");
  EXPECT_EQ(graph["inputs"][0]["type"], "float32[1,3,8,8]");
  EXPECT_EQ(graph["inputs"].size(), 1 + params["weights"].size()) << "weights are inputs of the graph";
  EXPECT_EQ(graph["outputs"].size(), 1u);
  size_t calls = 0;
  for (const auto& [name, count] : graph["operators"].items()) calls += count.get<size_t>();
  EXPECT_EQ(calls, package["library"]["steps"].size());
}

TEST_F(InspectTest, ModulesAndProgramsOfTheClassicStack) {
  const json text = shown(kClassic + "smallnet.relay"), stored = shown(kClassic + "smallnet.json");
  EXPECT_EQ(text["kind"], "relay text");
  EXPECT_EQ(stored["kind"], "relay json");
  EXPECT_FALSE(text["operators"].empty());
  EXPECT_EQ(text["operators"], stored["operators"]);
  EXPECT_EQ(text["inputs"], stored["inputs"]);
  EXPECT_EQ(text["outputs"], stored["outputs"]);
  const json program = shown(kClassic + "vm.ro");
  EXPECT_EQ(program["kind"], "vm executable");
  EXPECT_NE(program["bytecode"].get<std::string>().find("# Ret"), std::string::npos);
  EXPECT_FALSE(program["functions"].empty());
  write_file(folder_ / "notes.json", "{\"a\": [1, 2], \"b\": {}}");
  EXPECT_EQ(shown(folder_ / "notes.json")["keys"].size(), 2u);
  EXPECT_EQ(shown(TW_TEST_DATA "/onnx/convnet.onnx")["kind"], "onnx");
}

TEST_F(InspectTest, OfAFolderTheHintFitsWhatIsInIt) {
  namespace fs = std::filesystem;
  auto hint = [&](const std::string& folder) {
    const Said said = command({"inspect", folder});
    EXPECT_EQ(said.code, kExitInput) << said.out;
    EXPECT_NE(said.error.find("E102 FileNotFound]: " + folder + ": this is a folder"), std::string::npos) << said.error;
    return said.error.substr(said.error.find("hint: ") + 6);
  };
  auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  fs::create_directories(folder_ / "empty");
  has(hint(folder_ / "empty"), "the folder is empty");
  fs::create_directories(folder_ / "other/inner");
  write_file(folder_ / "other/photo.jpg", "");
  has(hint(folder_ / "other"), "name a file");
  fs::create_directories(folder_ / "models/libraries.so");  // a folder, whatever its name
  for (const char* name : {"b.params", "a.onnx", "c.so", "d.json"}) write_file(folder_ / "models/" + name, "");
  has(hint(folder_ / "models"), (folder_ / "models/a.onnx") + ", " + (folder_ / "models/b.params"));
  has(hint(folder_ / "models"), "or 1 more");
  fs::create_directories(folder_ / "cases/test_relu/test_data_set_0");
  write_file(folder_ / "cases/test_relu/model.onnx", "");
  has(hint(folder_ / "cases/test_relu"), "tilewright verify " + (folder_ / "cases/test_relu"));
  has(hint(folder_ / "cases"), "inspect " + (folder_ / "cases/test_relu/model.onnx"));
  const Said device = command({"inspect", "/dev/null"});
  EXPECT_EQ(device.code, kExitInput);
  has(device.error, "this is a device or a pipe");
}

TEST_F(InspectTest, ErrorsAreTyped) {
  struct {
    const char* name;
    std::string bytes;
    ErrorCode code;
  } cases[] = {
      {"a.json", "{\"nodes\": [}", ErrorCode::kParseError},
      {"b.json", "{\"arg_nodes\": 3, \"nodes\": []}", ErrorCode::kBadArtifact},
      {"c.json",
       R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "heads": [[7, 0, 0]], "node_row_ptr": [0, 1]})",
       ErrorCode::kBadArtifact},
      {"d.json", R"({"nodes": [{"op": "null", "inputs": []}], "arg_nodes": [0], "heads": [], "node_row_ptr": [0, 1]})",
       ErrorCode::kBadArtifact},
      {"e.json",
       R"({"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "heads": [], "node_row_ptr": [-1]})",
       ErrorCode::kBadArtifact},
      {"f.json", R"({"root": 1, "nodes": [], "attrs": {}})", ErrorCode::kParseError},
      {"g.relay", "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3), float32]) {\n  nn.relu(%y)\n}\n",
       ErrorCode::kParseError},
      {"h.onnx", std::string(500, 'x'), ErrorCode::kMalformedModel},
      {"i.so",
       "\x7f"
       "ELF",
       ErrorCode::kBadArtifact},
      {"j.tar", std::string(257, 'x') + "ustar" + std::string(250, '\0'), ErrorCode::kBadArtifact},
  };
  for (const auto& c : cases) {
    write_file(folder_ / c.name, c.bytes);
    auto j = inspect_file(folder_ / c.name);
    ASSERT_FALSE(j.ok()) << c.name;
    EXPECT_EQ(j.error().code, c.code) << c.name << ": " << j.error().str();
    const Said said = command({"inspect", folder_ / c.name});
    EXPECT_EQ(said.code, kExitInput) << c.name;
    EXPECT_NE(said.error.find(c.name), std::string::npos) << said.error;
  }
  EXPECT_EQ(inspect_file(folder_ / "absent").error().code, ErrorCode::kFileNotFound);
  EXPECT_EQ(inspect_file("/tmp").error().code, ErrorCode::kFileNotFound);
  auto source = small_model();
  source.symbol = "tw_artifact_v7";
  make_artifact(source, folder_ / "v.so");
  EXPECT_EQ(inspect_file(folder_ / "v.so").error().code, ErrorCode::kArtifactVersion);
  source = small_model();
  source.plan.params_bytes = 1 << 20;
  make_artifact(source, folder_ / "w.so");
  EXPECT_EQ(inspect_file(folder_ / "w.so").error().code, ErrorCode::kBadArtifact);
}

// Any prefix of any of the files, and any bit of it flipped: shown, or one of the errors of a bad input.
TEST_F(InspectTest, DamagedFilesNeverCrash) {
  auto source = small_model();
  source.seal = false;  // nothing tells the reader that it was changed
  make_artifact(source, folder_ / "m.so");
  const std::string package = compiled("m.tar", "llvm");
  ASSERT_EQ(std::system(("tar -xf " + package + " -C " + (folder_ / ".")).c_str()), 0);
  const std::set<ErrorCode> allowed = {
      ErrorCode::kBadArtifact,  ErrorCode::kArtifactVersion, ErrorCode::kMalformedModel, ErrorCode::kParseError,
      ErrorCode::kTypeMismatch, ErrorCode::kUnknownOp,       ErrorCode::kLimitExceeded,  ErrorCode::kUnsupportedModel};
  std::mt19937 random(7);
  for (const std::string& path : {folder_ / "m.so", package, folder_ / "mod.params", folder_ / "mod.json",
                                  kClassic + "smallnet.relay", kClassic + "smallnet.json", kClassic + "vm.ro"}) {
    const std::string bytes = read_file(path);
    ASSERT_FALSE(bytes.empty()) << path;
    for (int i = 0; i < 150; ++i) {
      std::string damaged = i % 3 == 0 ? bytes.substr(0, random() % bytes.size()) : bytes;
      for (int flips = i % 3; flips > 0 && !damaged.empty(); --flips)
        damaged[random() % std::min<size_t>(damaged.size(), i % 2 ? damaged.size() : 1000)] ^=
            static_cast<char>(1u << random() % 8);
      write_file(folder_ / "damaged", damaged);
      auto j = inspect_file(folder_ / "damaged");
      if (j.ok()) continue;
      EXPECT_TRUE(allowed.count(j.error().code)) << path << ": " << j.error().str();
    }
  }
}

}  // namespace
}  // namespace tilewright::driver
