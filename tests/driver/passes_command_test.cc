// SPDX-License-Identifier: Apache-2.0
// `tilewright passes --run`: what a failed pass left behind is a file that repeats the failure, weights included. And
// the usage errors of the verbs that compile.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "driver/cli/commands.h"
#include "driver/command.h"
#include "relay/op.h"
#include "relay/passes/table.h"
#include "relay/text.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {

using namespace relay;
using tilewright::testing::command;
using tilewright::testing::Said;

class PassesCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_test_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST_F(PassesCommandTest, RepeatsAFailureFromItsDump) {
  // weights + x, of which a pass of the user's says no.
  Expr x = make_var("x", tensor_type(to_shape({2}), kFloat32));
  const float values[] = {1.5f, -2.25f};
  Expr weights = make_constant(Tensor::from<float>(kFloat32, {2}, values));
  Expr doubled = call("add", {weights, weights});
  Module module = Module().with_main(make_function({x}, call("add", {doubled, x})));
  PassContext context;
  context.dump_dir = folder_ + "/dump";
  const Pass<Module> refuse{{"Refuse", 0, "fails"}, [](const Module&, PassContext&) -> Result<Module> {
                              return Diagnostic(ErrorCode::kTypeMismatch, "no");
                            }};
  auto failed = run_passes(module, {"Refuse"}, context, std::span(&refuse, 1));
  ASSERT_FALSE(failed.ok());
  const std::string kept = folder_ + "/dump/001_Refuse.failed_on.txt", made = folder_ + "/made.txt";
  EXPECT_NE(failed.error().hint.find("tilewright passes --run Refuse " + kept), std::string::npos)
      << failed.error().hint;

  Said said = command({"passes", "--run", "FoldConstant,DeadCodeElimination", kept, "-o", made});
  EXPECT_EQ(said.code, 0) << said.error;
  std::ifstream in(made);
  auto folded = parse_module(std::string{std::istreambuf_iterator<char>(in), {}});
  ASSERT_TRUE(folded.ok()) << folded.error().str();
  const ModuleText again = print_module(*folded);
  ASSERT_EQ(again.constants.size(), 1u) << again.text;
  const auto sums = again.constants[0].as<float>();
  EXPECT_EQ(std::vector<float>(sums.begin(), sums.end()), (std::vector<float>{3.0f, -4.5f}));
}

TEST_F(PassesCommandTest, PrintsWhatPassesMakeOfAText) {
  std::string file = write("m.txt",
                           "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) {\n  %0 = add(%x, 1f);\n  %1 = "
                           "add(%x, 1f);\n  multiply(%0, %1)\n}\n");
  Said said = command({"passes", "--run", "EliminateCommonSubexpr", file});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(said.out.find("%1"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("multiply(%0, %0)"), std::string::npos) << said.out;
}

TEST_F(PassesCommandTest, RefusesWhatItCannotRun) {
  std::string good =
      write("m.txt", "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) {\n  add(%x, 1f)\n}\n");
  std::string bad = write("bad.txt", "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) {\n  add(%x,\n}\n");
  Said said = command({"passes", "--run", "FuseOpz", good});
  EXPECT_EQ(said.code, kExitUsage);
  EXPECT_NE(said.error.find("FuseOps"), std::string::npos) << said.error;
  said = command({"passes", "--run", "FuseOps", bad});
  EXPECT_EQ(said.code, kExitInput);
  EXPECT_NE(said.error.find("bad.txt:4"), std::string::npos) << said.error;
  EXPECT_EQ(command({"passes", "--run", "FuseOps", folder_ + "/absent.txt"}).code, kExitInput);
  EXPECT_EQ(command({"passes", "--run", "FuseOps"}).code, kExitUsage);
  EXPECT_EQ(command({"passes", good}).code, kExitUsage);
  EXPECT_EQ(command({"passes", "--run", "FuseOps", good, "--target", "vax"}).code, kExitUsage);
  EXPECT_NE(command({"passes", "--run", "FuseOps", good, "-o", folder_ + "/no/such/m.txt"}).code, 0);
}

TEST_F(PassesCommandTest, UsageErrorsAreTyped) {
  const std::string model = TW_TEST_DATA "/onnx/convnet.onnx", out = folder_ + "/m.so";  // its batch is free
  struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {
      {{"compile", model, "-o", out, "--disable-pass", "FuseOpz"}, "error[E305 UnknownPass]"},
      {{"compile", model, "-o", out, "--require-pass", "FuseOpz"}, "FuseOps"},
      {{"compile", model, "-o", out, "--opt-level", "17"}, "error[E101 InvalidArgument]"},
      {{"compile", model, "-o", out, "--target", "vax"}, "error[E401 UnknownTarget]"},
      {{"compile"}, "try 'tilewright compile --help'"},
      {{"ops", "--nope"}, "error[E101 InvalidArgument]"},
  };
  for (const auto& c : cases) {
    Said said = command(c.words);
    EXPECT_EQ(said.code, kExitUsage) << c.says;
    EXPECT_NE(said.error.find(c.says), std::string::npos) << said.error;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  EXPECT_EQ(command({"compile", "--help"}).code, kExitOk);
}

}  // namespace
}  // namespace tilewright::driver
