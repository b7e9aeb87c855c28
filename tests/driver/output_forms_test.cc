// SPDX-License-Identifier: Apache-2.0
// The files a model can become, used the way their users use them, and inputs that become constants.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "driver/build.h"
#include "relay/expr.h"
#include "runtime/link_file.h"
#include "test_folders.h"
#include "tilewright/compiler.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {

class OutputFormsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_forms_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string compiled(const std::string& name) {
    CompileOptions options;
    options.shapes = {"x=1x3x8x8"};
    options.kernel_cache = false;
    compile(TW_TEST_DATA "/onnx/convnet.onnx", folder_ + "/" + name, options);
    return folder_ + "/" + name;
  }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void shell(const std::string& command) {
    int status = std::system(("cd " + folder_ + " && " + command + " >log 2>&1").c_str());
    ASSERT_EQ(status, 0) << command << "\n" << read(folder_ + "/log");
  }
  static std::vector<float> run(const std::string& path) {
    Model model(path);
    Executor executor(model, 2);
    std::vector<float> x(3 * 8 * 8);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i);
    executor.set_input("x", x, {1, 3, 8, 8});
    executor.run();
    auto y = executor.output<float>(0);
    return {y.begin(), y.end()};
  }
  int code(const std::string& output, const CompileOptions& options, const std::string& says = "") {
    try {
      compile(TW_TEST_DATA "/onnx/shape_input.onnx", folder_ + "/" + output, options);
    } catch (const CompileError& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
      return e.code();
    }
    return 0;
  }
  std::string folder_;
};

TEST_F(OutputFormsTest, TheNamesEndDecides) {
  using driver::OutputForm, driver::output_form;
  EXPECT_EQ(output_form("a.so"), OutputForm::kLibrary);
  EXPECT_EQ(output_form("model"), OutputForm::kLibrary);
  EXPECT_EQ(output_form("dir.o/model"), OutputForm::kLibrary);
  EXPECT_EQ(output_form("a.o"), OutputForm::kObject);
  EXPECT_EQ(output_form("lib.a"), OutputForm::kArchive);
  EXPECT_EQ(output_form("m.tar"), OutputForm::kPackage);
  EXPECT_EQ(output_form("m.ll"), OutputForm::kIr);
  EXPECT_EQ(output_form("m.bc"), OutputForm::kBitcode);
  EXPECT_EQ(output_form("m.s"), OutputForm::kAssembly);
  EXPECT_EQ(*output_form("m.tar", "objects"), OutputForm::kObjects);
}

// Objects carry a seal as libraries do: the linker would take damaged code as it is, and the first run end by a signal.
TEST_F(OutputFormsTest, DamagedObjectsAreRefusedBeforeTheyAreLinked) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the system's compiler links without sanitizers";
#endif
  for (const char* name : {"m.o", "m.a", "m.tar"}) {
    CompileOptions options;
    options.shapes = {"x=1x3x8x8"};
    options.kernel_cache = false;
    if (name == std::string("m.tar")) options.format = "objects";
    compile(TW_TEST_DATA "/onnx/convnet.onnx", folder_ + "/" + name, options);
    const std::string path = folder_ + "/" + name, whole = read(path);
    const std::string form = path.substr(path.rfind('.') + 1);
    auto loaded = runtime::load_linked(path, form);
    ASSERT_TRUE(loaded.ok()) << loaded.error().str();
    for (size_t at : {whole.size() / 3, whole.size() / 2, whole.size() * 3 / 4}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
      std::ofstream(path, std::ios::binary) << damaged;
      auto refused = runtime::load_linked(path, form);
      ASSERT_FALSE(refused.ok()) << name << " with a damaged byte at " << at;
      EXPECT_EQ(refused.error().code, ErrorCode::kBadArtifact) << refused.error().str();
    }
  }
}

// Inputs that become constants keep every digit, and what their dtype cannot hold is refused.
TEST_F(OutputFormsTest, ConstantsOfEveryDtypeAreExactOrRefused) {
  auto given = [](const std::string& name, const std::string& text, size_t output) -> Result<Tensor> {
    driver::BuildOptions options;
    options.constants[name] = text;
    options.kernel_cache = "";
    const std::string model = name == "huge" ? "huge_input" : "typed_inputs";
    auto built = driver::build_onnx(TW_TEST_DATA "/onnx/" + model + ".onnx", options);
    if (!built.ok()) return std::move(built).error();
    const auto* outputs = relay::as<relay::TupleNode>(built->imported.main_function()->body);
    const auto* constant = relay::as<relay::ConstantNode>(outputs->fields[output]);
    if (!constant) return Diagnostic(ErrorCode::kInternal, "the output is not a constant");
    return constant->data;
  };
  auto whole = given("whole", "9007199254740993,-9223372036854775808", 0);
  ASSERT_TRUE(whole.ok()) << whole.error().str();
  EXPECT_EQ(whole->at_int(0), 9007199254740993);
  EXPECT_EQ(whole->at_int(1), INT64_MIN);
  EXPECT_EQ(static_cast<uint64_t>(given("large", "18446744073709551615", 1)->at_int(0)), UINT64_MAX);
  EXPECT_EQ(given("byte", "255,1e1", 2)->at_int(1), 10);
  EXPECT_EQ(given("real", "-2.5e-3", 3)->at_double(0), -2.5e-3f);
  auto refused = [&](const std::string& name, const std::string& text, const std::string& says) {
    auto r = given(name, text, 0);
    ASSERT_FALSE(r.ok()) << name << "=" << text;
    EXPECT_EQ(r.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(r.error().message.find(says), std::string::npos) << r.error().message;
  };
  refused("whole", "9223372036854775808,0", "which int64 cannot hold");
  refused("whole", "1e300,0", "which int64 cannot hold");
  refused("whole", "1.5,0", "not a whole number");
  refused("large", "-1", "which uint64 cannot hold");
  refused("byte", "300,0", "has 300, which uint8 cannot hold");
  refused("byte", "-1,0", "which uint8 cannot hold");
  refused("real", "1e300", "which float32 cannot hold");
  refused("half", "1e5", "which float16 cannot hold");
  refused("truth", "2", "which bool cannot hold");
  refused("real", "one", "not a number");
  refused("huge", "1", "beyond any memory");
}

TEST_F(OutputFormsTest, ACProgramLinksTheArchiveOrTheObject) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the program is built without sanitizers";
#endif
  const std::vector<float> expected = run(compiled("m.so"));
  compiled("m.a");
  compiled("m.o");
  std::ofstream(folder_ + "/main.c") << R"(
#include <stdio.h>
#include <stdlib.h>
#include "tilewright/standalone.h"
int main(void) {
  static float x[192], y[4096];
  void *inputs[] = {x}, *outputs[] = {y}, *arena = aligned_alloc(64, (tw_arena_bytes + 63) / 64 * 64);
  for (int i = 0; i < 192; ++i) x[i] = 0.01f * (float)i;
  if (!arena || tw_run(inputs, outputs, arena)) return 1;
  FILE* f = fopen("y.bin", "wb");
  fwrite(y, 4, )" << expected.size() << R"(, f);
  return fclose(f);
}
)";
  for (const char* form : {"m.a", "m.o"}) {
    std::filesystem::remove(folder_ + "/y.bin");
    shell(std::string("cc -I " TW_SOURCE_DIR "/include main.c ") + form + " -lm -o main && ./main");
    const std::string bytes = read(folder_ + "/y.bin");
    ASSERT_EQ(bytes.size(), expected.size() * 4);
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0)
        << form << ": another result than the library's";
  }
}

TEST_F(OutputFormsTest, ACProgramRunsEveryShapeVariant) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the program is built without sanitizers";
#endif
  CompileOptions options;
  options.shapes = {"x={1,2}x3x8x8"};
  options.kernel_cache = false;
  for (const char* form : {"v.so", "v.a"}) compile(TW_TEST_DATA "/onnx/convnet.onnx", folder_ + "/" + form, options);
  std::ofstream(folder_ + "/main.c") << R"(
#include <stdio.h>
#include <stdlib.h>
#include "tilewright/standalone.h"
int main(void) {
  static float x[384], y[2][4096];
  void *inputs[] = {x}, *arena = aligned_alloc(64, (tw_arena_bytes + 63) / 64 * 64);
  for (int i = 0; i < 384; ++i) x[i] = 0.01f * (float)i;
  if (!arena || tw_num_variants != 2) return 1;
  for (uint64_t v = 0; v < 2; ++v) {
    void* outputs[] = {y[v]};
    if (tw_run_variant(v, inputs, outputs, arena)) return 2;
  }
  if (tw_run_variant(2, inputs, inputs, arena) != 101 || x[5] != 0.01f * 5.0f) return 3;
  FILE* f = fopen("y.bin", "wb");
  fwrite(y, 4, 8192, f);
  return fclose(f);
}
)";
  shell("cc -I " TW_SOURCE_DIR "/include main.c v.a -lm -o main && ./main");
  const std::string bytes = read(folder_ + "/y.bin");
  ASSERT_EQ(bytes.size(), 2u * 4096 * 4);
  Model model(folder_ + "/v.so");
  for (size_t v = 0; v < 2; ++v) {
    Executor executor(model, 1);
    std::vector<float> x((v + 1) * 192);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i);
    executor.set_input("x", x, {static_cast<int64_t>(v + 1), 3, 8, 8});
    executor.run();
    auto y = executor.output<float>(0);
    EXPECT_EQ(std::memcmp(bytes.data() + v * 4096 * 4, y.data(), y.size() * 4), 0) << "variant " << v;
  }
}

TEST_F(OutputFormsTest, ALinkerMakesALibraryTheRuntimeLoads) {
  const std::vector<float> expected = run(compiled("m.so"));
  compiled("m.o");
  compiled("m.a");
  shell("cc -shared -o o.so m.o -lm && cc -shared -o a.so -Wl,--whole-archive m.a -Wl,--no-whole-archive -lm");
  EXPECT_EQ(run(folder_ + "/o.so"), expected);
  EXPECT_EQ(run(folder_ + "/a.so"), expected);
}

TEST_F(OutputFormsTest, APackageHoldsLibraryGraphAndWeights) {
  const std::vector<float> expected = run(compiled("m.so"));
  compiled("m.tar");
  shell("tar tf m.tar");
  EXPECT_EQ(read(folder_ + "/log"), "mod.so\nmod.json\nmod.params\n");
  shell("tar xf m.tar");
  EXPECT_EQ(read(folder_ + "/mod.so"), read(folder_ + "/m.so"));
  EXPECT_EQ(run(folder_ + "/mod.so"), expected);
  EXPECT_NE(read(folder_ + "/mod.json").find("\"nodes\""), std::string::npos);
  // The weights may be given again: they are what the library has.
  Model model(folder_ + "/mod.so");
  Executor executor(model, 1);
  const std::string params = read(folder_ + "/mod.params");
  executor.load_params(params.data(), params.size());
  std::vector<float> x(192);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i);
  executor.set_input("x", x, {1, 3, 8, 8});
  executor.run();
  auto y = executor.output<float>(0);
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), expected);
}

TEST_F(OutputFormsTest, TextsOfEverythingBecomeTheSameLibrary) {
  const std::vector<float> expected = run(compiled("m.so"));
  for (const char* name : {"m.ll", "m.bc"}) {
    compile_ir(compiled(name), folder_ + "/from_ir.so");
    EXPECT_EQ(run(folder_ + "/from_ir.so"), expected) << name;
    compile_ir(folder_ + "/" + name, folder_ + "/from_ir.o");
    shell("cc -shared -o linked.so from_ir.o -lm");
    EXPECT_EQ(run(folder_ + "/linked.so"), expected) << name;
  }
  compiled("m.s");
  shell("cc -shared -o s.so m.s -lm");
  EXPECT_EQ(run(folder_ + "/s.so"), expected);
  EXPECT_NE(read(folder_ + "/m.ll").find("target triple"), std::string::npos);
  std::ofstream(folder_ + "/bad.ll") << "define void @f() {";
  try {
    compile_ir(folder_ + "/bad.ll", folder_ + "/bad.so");
    ADD_FAILURE();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.code(), static_cast<int>(ErrorCode::kParseError)) << e.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/bad.so"));
  compile_ir(folder_ + "/m.ll", folder_ + "/from_ir.a");
  shell("cc -shared -o archive.so -Wl,--whole-archive from_ir.a -Wl,--no-whole-archive -lm");
  EXPECT_EQ(run(folder_ + "/archive.so"), expected);
  try {
    compile_ir(folder_ + "/m.ll", folder_ + "/from_ir.tar");
    ADD_FAILURE();
  } catch (const CompileError& e) {
    EXPECT_EQ(e.code(), static_cast<int>(ErrorCode::kInvalidArgument)) << e.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/from_ir.tar"));
}

TEST_F(OutputFormsTest, ObjectsAsTheClassicStackLaysThemOut) {
  const std::vector<float> expected = run(compiled("m.so"));
  CompileOptions options;
  options.shapes = {"x=1x3x8x8"};
  options.kernel_cache = false;
  options.format = "objects";
  compile(TW_TEST_DATA "/onnx/convnet.onnx", folder_ + "/m.tar", options);
  shell("tar tf m.tar");
  EXPECT_EQ(read(folder_ + "/log"), "lib0.o\n") << "nothing is imported";
  shell("tar xf m.tar && cc -shared -o o.so lib0.o -lm");
  EXPECT_EQ(run(folder_ + "/o.so"), expected);
  options.format = "nonsense";
  EXPECT_EQ(code("n.tar", options, "no output form"), 101);
}

// Names of kernels are the object's own: a program may have functions of the same names.
TEST_F(OutputFormsTest, AnObjectShowsOnlyItsInterface) {
  compiled("m.o");
  shell("nm --defined-only -g m.o | awk '{print $3}' | sort");
  EXPECT_EQ(read(folder_ + "/log"),
            "__tvm_ffi_main\ntw_arena_bytes\ntw_artifact_v1\ntw_num_variants\ntw_run\ntw_run_variant\n");
}

TEST_F(OutputFormsTest, EveryFormIsDeterministicAndLeavesNothingElse) {
  for (const char* name : {"m.o", "m.a", "m.tar", "m.ll", "m.bc", "m.s"}) {
    const std::string first = read(compiled(name));
    EXPECT_EQ(read(compiled(name)), first) << name;
    EXPECT_FALSE(first.empty());
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 6u);
  for (const char* name : {"/nonexistent/m.o", "/nonexistent/m.a", "/nonexistent/m.tar", "/nonexistent/m.ll"}) {
    try {
      compile(TW_TEST_DATA "/onnx/convnet.onnx", name, {.shapes = {"x=1x3x8x8"}});
      ADD_FAILURE() << name;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.code(), 103) << e.what();
    }
  }
}

TEST_F(OutputFormsTest, InputsBecomeConstants) {
  CompileOptions options;
  options.kernel_cache = false;
  options.constants = {"sizes=3,-1", "factor=2.5"};
  ASSERT_EQ(code("m.so", options), 0);
  Model model(folder_ + "/m.so");
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.outputs()[0].shape, (std::vector<int64_t>{3, 4}));
  Executor executor(model, 1);
  executor.set_input("x", std::vector<float>(12, 2.0f), {2, 6});
  executor.run();
  for (float v : executor.output<float>(0)) EXPECT_EQ(v, 5.0f);
}

TEST_F(OutputFormsTest, WrongConstantsAreErrors) {
  auto with = [](std::vector<std::string> constants) {
    CompileOptions options;
    options.kernel_cache = false;
    options.constants = std::move(constants);
    return options;
  };
  EXPECT_NE(code("m.o", with({}), "--constant sizes="), 0) << "the error says how to go on";
  EXPECT_EQ(code("m.so", with({})), 0) << "a library can be a VM program";
  std::filesystem::remove(folder_ + "/m.so");
  EXPECT_EQ(code("m.so", with({"nonsense"}), "no input name"), 101);
  EXPECT_EQ(code("m.so", with({"size=1"}), "its inputs are x, sizes, factor"), 504);
  EXPECT_EQ(code("m.so", with({"sizes=3,four"}), "'four', which is not a number"), 101);
  EXPECT_EQ(code("m.so", with({"sizes=3.5,4"}), "not a whole number"), 101);
  EXPECT_EQ(code("m.so", with({"sizes="}), "not a number"), 101);
  EXPECT_EQ(code("m.so", with({"sizes=3,4", "factor=1,2"}), "has 2 numbers"), 101);
  EXPECT_EQ(code("m.so", with({"x=1,2,3"}), "has 3 numbers"), 101);
  EXPECT_EQ(code("m.so", with({"sizes=@/nonexistent.pb"})), 102);
  std::ofstream(folder_ + "/bad.pb") << "not a tensor";
  EXPECT_EQ(code("m.so", with({"sizes=@" + folder_ + "/bad.pb"})), 201);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/m.so"));
}

}  // namespace
}  // namespace tilewright
