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
#include "runtime/cpu.h"
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

// Whether this processor has what kernels for the target need.
bool source_runs_here(const char* target) {
  auto wanted = codegen::resolve_target(parse_target(target).value());
  return wanted.ok() && runtime::missing_cpu_features(wanted->cpu_features).empty();
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

// Vectors of GNU C: compiled without a warning, equal to the reference.
TEST(Source, VectorsOfGnuC) {
  for (const char* target : {"c -mcpu=x86-64-v2", "c -mcpu=haswell"}) {
    if (!source_runs_here(target)) GTEST_SKIP() << target << " does not run here";
    SCOPED_TRACE(target);
    check(small_network(), target);
    Expr x = input("x", {5, 40});
    std::vector<Expr> inputs = {x},
                      results = {call("nn.softmax",
                                      {call("nn.dense", {x, constant({24, 40})}, make_default_attrs<DenseAttrs>())},
                                      make_default_attrs<SoftmaxAttrs>())};
    for (DataType t : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      inputs.push_back(input(("y" + t.str()).c_str(), {53}, t));
      for (const char* op : {"exp", "log", "tanh", "sigmoid", "erf", "sqrt", "floor", "round", "sin"})
        results.push_back(call(op, {call("abs", {inputs.back()})}));
    }
    for (DataType t : {kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64}) {
      Expr a = input(("a" + t.str()).c_str(), {7, 9}, t), b = input(("b" + t.str()).c_str(), {9}, t);
      Expr sum = call("add", {call("multiply", {a, b}), call("subtract", {a, b})});
      inputs.insert(inputs.end(), {a, b});
      results.push_back(call("where", {call("less", {sum, a}), call("maximum", {sum, b}), a}));
    }
    check(inputs, make_tuple(results), target);
  }
}

// Numbers at which the formulas change, and beyond: against the C library's functions.
TEST(Source, VectorMathAtItsEnds) {
  if (!source_runs_here("c -mcpu=haswell")) GTEST_SKIP() << "haswell does not run here";
  const std::vector<float> given = {0.0F,    -0.0F,   1e-30F, 0.5F,  0.57F, 0.6F,   -0.92F, 0.93F,  1.0F,
                                    3.9F,    -4.0F,   20.0F,  -20.F, 80.0F, -80.0F, 87.5F,  -87.5F, -95.0F,
                                    -103.0F, -150.0F, -3e38F, 1.5F,  2.5F,  -0.75F, 1e-5F,  7.5F,   -7.5F};
  const auto count = static_cast<int64_t>(given.size());
  Expr x = input("x", {count}), numbers = make_constant(Tensor::from<float>(kFloat32, {count}, given));
  Expr apart = call("where", {call("isnan", {x}), x, numbers});  // a value of the run
  std::vector<Expr> results;
  for (const char* op : {"exp", "tanh", "sigmoid", "erf"}) results.push_back(call(op, {apart}));
  results.push_back(call("log", {call("abs", {apart})}));
  check({x}, make_tuple(results), "c -mcpu=haswell");
}

// Processors that no test runs on: the text is compiled, where a compiler for them is there.
TEST(Source, VectorsOfOtherProcessors) {
  const WorkFolder place = WorkFolder::temporary("tilewright-source-test").value();
  int compiled = 0;
  for (const auto& [target, command] :
       {std::pair{"c -mcpu=znver4", "gcc -march=x86-64-v4"}, std::pair{"c -mcpu=haswell", "gcc"},
        std::pair{"c -mcpu=haswell", "clang-19"}, std::pair{"c -mcpu=znver4", "clang-19 -march=x86-64-v4"},
        std::pair{"c -mcpu=cortex-a72", "aarch64-linux-gnu-gcc -march=armv8-a"}}) {
    const std::string line = command, compiler = line.substr(0, line.find(' '));
    if (std::system(("command -v " + compiler + " >/dev/null").c_str()) != 0) continue;
    BuildOptions options = c_options();
    options.target = target;
    auto built = build(small_network(), options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    ASSERT_TRUE(export_library(*built, place.path() + "/net.c").ok());
    EXPECT_NE(contents(place.path() + "/net.c").find("vector_size("), std::string::npos);
    const std::string all = "cd " + place.path() + " && " + line +
                            " -std=gnu99 -Wall -Wextra -pedantic -Werror -O2 -c net.c -o net.o 2>log";
    EXPECT_EQ(std::system(all.c_str()), 0) << all << "\n" << contents(place.path() + "/log");
    ++compiled;
  }
  EXPECT_GT(compiled, 0);
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
  options.target = "c -mcpu=pentium";
  refused(check_options(options), ErrorCode::kUnknownTarget, "the target c knows no processor 'pentium'");
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
