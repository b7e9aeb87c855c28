// SPDX-License-Identifier: Apache-2.0
// Models as C99: what the system's compiler makes of them, run, against the reference; and what a C file cannot be.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/work_folder.h"
#include "codegen/backend.h"
#include "driver/graphs.h"
#include "ir/target_kind.h"
#include "test_folders.h"
#include "tilewright/runtime.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
BuildOptions c_options() {
  BuildOptions options;
  options.target = "c";
  options.jobs = 1;
  return options;
}
Module small_network() {
  Expr x = input("x", {1, 3, 12, 12});
  Expr body = relu(bias(conv(x, 8, 3, 3, 1, 1), 8));
  body = relu(conv(body, 8, 1, 3, 2, 1, 8));
  return Module().with_main(make_function({x}, relu(conv(body, 6, 8, 1, 1, 0))));
}

TEST(Source, EveryBackendsKindIsATargetsKind) {
  std::vector<std::string> kinds, backends;
  for (const char* kind : target_kinds()) kinds.emplace_back(kind);
  for (const codegen::Backend& b : codegen::backends()) backends.emplace_back(b.kind);
  EXPECT_EQ(kinds, backends);
}

TEST(Source, Networks) {
  check(small_network(), "c");
  Expr x = input("x", {5, 40});
  check({x},
        call("nn.softmax", {call("nn.dense", {x, constant({24, 40})}, make_default_attrs<DenseAttrs>())},
             make_default_attrs<SoftmaxAttrs>()),
        "c");
}

TEST(Source, ArithmeticOfEveryDtype) {
  for (DataType t :
       {kFloat16, kBFloat16, kFloat32, kFloat64, kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64}) {
    SCOPED_TRACE(t.str());
    Expr a = input("a", {7, 9}, t), b = input("b", {9}, t);
    Expr sum = call("add", {call("multiply", {a, b}), call("subtract", {a, b})});
    check({a, b}, call("maximum", {sum, b}), "c");
  }
}

TEST(Source, FunctionsOfTheLibrary) {
  for (const char* op : {"exp", "tanh", "sigmoid", "erf", "sqrt", "floor", "round", "sin", "atan"})
    for (DataType t : {kFloat32, kFloat64, kFloat16}) {
      SCOPED_TRACE(std::string(op) + " " + t.str());
      Expr x = input("x", {33}, t);
      check({x}, call(op, {call("abs", {x})}), "c");
    }
}

// The weights apart, the declarations alone, and another compiler where it is there.
TEST(Source, FilesForAUsersProgram) {
  const WorkFolder place = WorkFolder::temporary("tilewright-source-test").value();
  BuildOptions options = c_options();
  options.name = "small net";
  auto with = build(small_network(), options);
  ASSERT_TRUE(with.ok()) << with.error().str();
  ASSERT_TRUE(export_library(*with, place.path() + "/net.c").ok());
  const std::string text = contents(place.path() + "/net.c");
  EXPECT_EQ(text, source_of(*with).value());
  EXPECT_EQ(text.find("malloc("), std::string::npos);
  EXPECT_NE(text.find("void small_net_run(const float *x, "), std::string::npos) << text.substr(0, 2000);
  options.weights_file = place.path() + "/net.weights";
  auto apart = build(small_network(), options);
  ASSERT_TRUE(apart.ok());
  Status written = export_library(*apart, place.path() + "/apart.c");
  ASSERT_TRUE(written.ok()) << written.error().str();
  EXPECT_GT(std::filesystem::file_size(options.weights_file), apart->lowered.plan.params_bytes - 64);
  std::ofstream(place.path() + "/main.c") <<
      R"(#define SMALL_NET_DECLARATIONS_ONLY
#include "apart.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void plain(const float *x, float *y, void *workspace);
static double workspace[(SMALL_NET_WORKSPACE_BYTES + 7) / 8];
static float x[3 * 12 * 12], y[6 * 6 * 6], z[6 * 6 * 6];
int main(void) {
  static double weights[1 << 16];
  FILE *file = fopen("net.weights", "rb");
  size_t i;
  if (file == NULL || fread(weights, 1, sizeof weights, file) == 0) return 2;
  fclose(file);
  for (i = 0; i < sizeof x / sizeof *x; ++i) x[i] = (float)(i % 17) * 0.1f - 0.5f;
  small_net_run(x, y, weights, workspace);
  plain(x, z, workspace);
  for (i = 0; i < sizeof y / sizeof *y && y[i] == 0; ++i) continue;
  return i == sizeof y / sizeof *y ? 3 : memcmp(y, z, sizeof y) != 0;
}
)";
  std::ofstream(place.path() + "/plain.c")
      << "#define small_net_run small_net_plain\n#include \"net.c\"\n"
         "void plain(const float *x, float *y, void *workspace);\n"
         "void plain(const float *x, float *y, void *workspace) { small_net_plain(x, y, workspace); }\n";
  for (const char* compiler : {"gcc", "clang-19", "clang"}) {
    if (std::system((std::string("command -v ") + compiler + " >/dev/null").c_str()) != 0) continue;
    const std::string command = "cd " + place.path() + " && " + compiler +
                                " -std=c99 -Wall -Wextra -pedantic -Werror -O2 -o program main.c apart.c plain.c -lm "
                                ">log 2>&1 && ./program";
    EXPECT_EQ(std::system(command.c_str()), 0) << compiler << "\n" << contents(place.path() + "/log");
  }
}

// Kernels by the system's C compiler in a library that the runtime loads.
TEST(Source, LibrariesOfCompiledC) {
  const WorkFolder place = WorkFolder::temporary("tilewright-source-test").value();
  std::vector<std::vector<float>> results;
  for (const char* target : {"llvm", "c"}) {
    BuildOptions options = c_options();
    options.target = target;
    auto built = build(small_network(), options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    const std::string path = place.path() + "/" + target + ".so";
    Status written = export_library(*built, path);
    ASSERT_TRUE(written.ok()) << written.error().str();
    Model model(path);
    Executor executor(model, 2);
    std::vector<float> x(3 * 12 * 12);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 50);
    executor.set_input("x", x, {1, 3, 12, 12});
    executor.run();
    auto y = executor.output<float>(0);
    results.emplace_back(y.begin(), y.end());
  }
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-3);
}

TEST(Source, WhatACFileCannotBe) {
  const std::string here = "/tmp/tilewright-source-test-none";
  auto refused = [](Status s, ErrorCode code, const char* says) {
    ASSERT_FALSE(s.ok()) << says;
    EXPECT_EQ(s.error().code, code) << s.error().str();
    EXPECT_NE(s.error().str().find(says), std::string::npos) << s.error().str();
  };
  BuildOptions options = c_options();
  auto built = build(small_network(), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  refused(export_library(*built, here + ".ll"), ErrorCode::kInvalidArgument, "the target c makes C source");
  refused(export_library(*built, here + ".s"), ErrorCode::kInvalidArgument, "the target c makes C source");
  options.target = "llvm";
  auto library = build(small_network(), options);
  ASSERT_TRUE(library.ok());
  refused(export_library(*library, here + ".c"), ErrorCode::kInvalidArgument, "makes no C source");
  options = c_options();
  options.target = "c -mcpu=znver4";
  refused(check_options(options), ErrorCode::kUnknownTarget, "takes no -mcpu");
  options.target = "d";
  refused(check_options(options), ErrorCode::kUnknownTarget, "target kind 'd' is not known");
  // Two shapes in one file.
  options = c_options();
  options.shapes["x"] = {1, 3, 8, 8};
  options.more_shapes = {{{"x", {2, 3, 8, 8}}}};
  auto two = build_onnx(std::string(TW_TEST_DATA "/onnx/convnet.onnx"), options);
  ASSERT_TRUE(two.ok()) << two.error().str();
  refused(export_library(*two, here + ".c"), ErrorCode::kUnsupportedModel, "one set of input shapes");
  EXPECT_FALSE(std::filesystem::exists(here + ".c"));
}

}  // namespace
}  // namespace tilewright::driver
