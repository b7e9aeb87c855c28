// SPDX-License-Identifier: Apache-2.0
// Weights in a file of their own: shared by artifacts, grown by others, found beside them, and refused when they are
// not what an artifact was compiled with.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>

#include "base/formats/weights_file.h"
#include "base/work_folder.h"
#include "driver/build.h"
#include "driver/cli/inspect_file.h"
#include "driver/graphs.h"
#include "runtime/executor.h"
#include "runtime/link_file.h"
#include "test_folders.h"
#include "tilewright/compiler.h"
#include "tilewright/runtime.h"

namespace tilewright::driver {
namespace {
namespace fs = std::filesystem;
using namespace testing;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class WeightsApart : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return place_.path() + "/" + name; }
  // Two products of `rows` rows with weights that a seed makes.
  static relay::Module model(int64_t rows, unsigned seed = 1) {
    Expr x = input("x", {rows, 64});
    std::mt19937 random(seed);
    auto weight = [&](int64_t n, int64_t k) {
      Tensor t = Tensor::zeros(kFloat32, {n, k});
      for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, static_cast<double>(random() % 1000) / 1000 - 0.5);
      return relay::make_constant(t);
    };
    Expr h = call("nn.relu", {call("nn.dense", {x, weight(96, 64)})});
    return relay::Module().with_main(relay::make_function({x}, call("nn.dense", {h, weight(32, 96)})));
  }
  Status written(const relay::Module& module, const std::string& name, const std::string& weights,
                 const std::string& target = "llvm", bool system_lib = false) const {
    BuildOptions options;
    options.jobs = 1, options.target = target, options.name = "net", options.system_lib = system_lib;
    if (!weights.empty()) options.weights_file = at(weights);
    const Built built = TW_TRY(build(module, options));
    return export_library(built, at(name));
  }
  static std::vector<float> input_of(int64_t rows) {
    std::vector<float> x(static_cast<size_t>(rows * 64));
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(i % 97);
    return x;
  }
  static std::vector<float> run(const Model& model, int64_t rows) {
    Executor executor(model, 2);
    executor.set_input("x", input_of(rows), {rows, 64});
    executor.run();
    auto y = executor.output<float>(0);
    return {y.begin(), y.end()};
  }
  void shell(const std::string& command) const {
    const int status = std::system(("cd " + place_.path() + " && (" + command + ") >log 2>&1").c_str());
    ASSERT_EQ(status, 0) << command << "\n" << contents(at("log"));
  }
  static void refused(const std::function<void()>& load, int code, const std::string& says) {
    try {
      load();
      FAIL() << "loaded, where an error should say " << says;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  }
  const WorkFolder place_ = WorkFolder::temporary("tilewright-weights-test").value();
};

#define EXPECT_WRITTEN(...)                             \
  do {                                                  \
    const Status status_ = (__VA_ARGS__);               \
    ASSERT_TRUE(status_.ok()) << status_.error().str(); \
  } while (0)

TEST_F(WeightsApart, ArtifactsOfOneModelShareAFile) {
  EXPECT_WRITTEN(written(model(4), "inside.so", ""));
  EXPECT_WRITTEN(written(model(4), "four.so", "net.weights"));
  const std::string first = contents(at("net.weights"));
  EXPECT_GT(first.size(), 64u * 96 * 4);
  EXPECT_LT(fs::file_size(at("four.so")), fs::file_size(at("inside.so")) - 64 * 96 * 4);
  // The same again: nothing is written. Another number of rows: what is packed otherwise comes behind.
  const auto time = fs::last_write_time(at("net.weights"));
  EXPECT_WRITTEN(written(model(4), "again.so", "net.weights"));
  EXPECT_EQ(fs::last_write_time(at("net.weights")), time);
  EXPECT_EQ(contents(at("four.so")), contents(at("again.so"))) << "the same model, other bytes";
  for (auto [rows, name, target] : {std::tuple{1, "one.so", "llvm"}, std::tuple{50, "fifty.so", "llvm"},
                                    std::tuple{4, "old.so", "llvm -mcpu=x86-64-v3"}})
    EXPECT_WRITTEN(written(model(rows), name, "net.weights", target));
  const std::string grown = contents(at("net.weights"));
  EXPECT_EQ(grown.compare(kWeightsStart, 64 * 96 * 4, first, kWeightsStart, 64 * 96 * 4), 0);
  EXPECT_LT(grown.size(), 4 * first.size());
  // One mapping for all of them, and the results of a library that has its own.
  const Model four(at("four.so")), one(at("one.so")), inside(at("inside.so"));
  EXPECT_EQ(run(four, 4), run(inside, 4));
  EXPECT_EQ(run(Model(at("old.so"), true), 4).size(), 4u * 32);
  auto a = runtime::Artifact::load(at("four.so")), b = runtime::Artifact::load(at("one.so"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ((*a)->params(), (*b)->params());
  // The generated entry of both kinds.
  runtime::ExecutorOptions entry;
  entry.generated_entry = true;
  auto executor = runtime::Executor::create(*a, entry);
  ASSERT_TRUE(executor.ok()) << executor.error().str();
}

TEST_F(WeightsApart, WhatIsNotTheFileIsAnError) {
  EXPECT_WRITTEN(written(model(4), "net.so", "net.weights"));
  const std::string whole = contents(at("net.weights"));
  const auto load = [&] { Model(at("net.so"), true); };
  EXPECT_NO_THROW(load());
  auto put = [&](const std::string& bytes) {
    fs::remove(at("net.weights"));
    std::ofstream(at("net.weights"), std::ios::binary) << bytes;
  };
  put(whole.substr(0, whole.size() - 40));
  refused(load, 501, "cut off");
  put(whole.substr(0, 20));
  refused(load, 501, "cut off");
  put("");
  refused(load, 501, "empty");
  put("no weights, but a text that is longer than the head of a file of weights would be, by some words");
  refused(load, 501, "not a file of weights");
  std::string damaged = whole;
  damaged[kWeightsStart + 1000] = static_cast<char>(damaged[kWeightsStart + 1000] ^ 1);
  put(damaged);
  refused(load, 501, "does not match its check sum");
  auto inspected = inspect_file(at("net.weights"));
  EXPECT_FALSE(inspected.ok());
  for (size_t i = 0; i < kWeightsHeadBytes - 16; ++i) {
    damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    put(damaged);
    refused(load, 501, "");
  }
  fs::remove(at("net.weights"));
  refused(load, 102, "a file of their own");
  // Another model's.
  EXPECT_WRITTEN(written(model(4, 2), "other.so", "net.weights"));
  refused(load, 501, "does not hold");
  // A folder further: beside each other they find each other, and by name.
  put(whole);
  fs::create_directory(at("moved"));
  fs::rename(at("net.so"), at("moved/net.so"));
  refused([&] { Model(at("moved/net.so")); }, 102, "a file of their own");
  EXPECT_EQ(run(Model(at("moved/net.so"), false, at("net.weights")), 4).size(), 4u * 32);
  fs::rename(at("net.weights"), at("moved/net.weights"));
  EXPECT_EQ(run(Model(at("moved/net.so")), 4).size(), 4u * 32);
}

TEST_F(WeightsApart, WhatCannotBeWritten) {
  std::ofstream(at("text.txt")) << "a text of the user's";
  auto refused_write = [&](const std::string& name, const std::string& weights, ErrorCode code, const char* says) {
    Status s = written(model(4), name, weights);
    ASSERT_FALSE(s.ok()) << says;
    EXPECT_EQ(s.error().code, code) << s.error().str();
    EXPECT_NE(s.error().str().find(says), std::string::npos) << s.error().str();
    EXPECT_FALSE(fs::exists(at(name)));
  };
  refused_write("net.so", "text.txt", ErrorCode::kInvalidArgument, "no file of weights");
  EXPECT_EQ(contents(at("text.txt")), "a text of the user's");
  refused_write("net.so", "net.so", ErrorCode::kInvalidArgument, "one name");
  refused_write("net.so", "none/net.weights", ErrorCode::kCannotWrite, "");
  CompileOptions options;
  options.weights = at("net.weights");
  try {
    compile(TW_TEST_DATA "/onnx/free_sizes.onnx", at("program.so"), options);
    FAIL() << "a program has its weights in itself";
  } catch (const CompileError& e) {
    EXPECT_EQ(e.code(), 203) << e.what();
  }
}

TEST_F(WeightsApart, InspectShowsThem) {
  EXPECT_WRITTEN(written(model(4), "net.so", "net.weights"));
  auto artifact = inspect_file(at("net.so")), weights = inspect_file(at("net.weights"));
  ASSERT_TRUE(artifact.ok()) << artifact.error().str();
  ASSERT_TRUE(weights.ok()) << weights.error().str();
  EXPECT_EQ((*artifact)["weights_file"], "net.weights");
  EXPECT_EQ((*weights)["tensors"], (*artifact)["weights"].size());
  EXPECT_EQ((*weights)["weights_bytes"], (*artifact)["weights_bytes"]);
}

TEST_F(WeightsApart, ObjectsArchivesAndPackages) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the system's compiler links without sanitizers";
#endif
  EXPECT_WRITTEN(written(model(4), "inside.so", ""));
  const std::vector<float> expected = run(Model(at("inside.so")), 4);
  for (const char* form : {"o", "a", "tar"}) {
    SCOPED_TRACE(form);
    EXPECT_WRITTEN(written(model(4), std::string("net.") + form, "net.weights"));
    auto loaded = runtime::load_linked(at(std::string("net.") + form), form);
    ASSERT_TRUE(loaded.ok()) << loaded.error().str();
    const auto* library = dynamic_cast<runtime::LibraryModule*>(loaded->get());
    auto executor = runtime::Executor::create(library->artifact());
    ASSERT_TRUE(executor.ok()) << executor.error().str();
  }
  for (const char* form : {"ll", "bc"}) {
    EXPECT_WRITTEN(written(model(4), std::string("net.") + form, "net.weights"));
    EXPECT_WRITTEN(compile_ir_file(at(std::string("net.") + form), at(std::string(form) + ".so")));
    EXPECT_EQ(run(Model(at(std::string(form) + ".so")), 4), expected);
  }
  std::ofstream(at("main.c")) << R"(
#include <stdio.h>
#include <stdlib.h>
#include "tilewright/standalone.h"
int main(void) {
  static float x[256], y[128];
  static _Alignas(64) char weights[1 << 20];
  FILE* f = fopen("net.weights", "rb");
  if (!f || fread(weights, 1, sizeof weights, f) == 0) return 1;
  fclose(f);
  void *inputs[] = {x}, *outputs[] = {y}, *arena = aligned_alloc(64, (tw_arena_bytes + 127) / 64 * 64);
  for (int i = 0; i < 256; ++i) x[i] = 0.01f * (float)(i % 97);
  if (tw_run_with_weights(inputs, outputs, arena, weights)) return 2;
  f = fopen("y.bin", "wb");
  fwrite(y, 4, 128, f);
  return fclose(f);
}
)";
  for (const char* form : {"net.a", "net.o"}) {
    fs::remove(at("y.bin"));
    shell(std::string("cc -I " TW_SOURCE_DIR "/include main.c ") + form + " -lm -o main && ./main");
    const std::string bytes = contents(at("y.bin"));
    ASSERT_EQ(bytes.size(), expected.size() * 4);
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0) << form;
  }
}

TEST_F(WeightsApart, ModelsThatAProgramFindsByName) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the program is built without sanitizers";
#endif
  EXPECT_WRITTEN(written(model(4), "net.a", "net.weights", "llvm", /*system_lib=*/true));
  std::ofstream(at("main.c")) << R"(
#include <stdio.h>
#include "tilewright/c_api.h"
int main(void) {
  tw_module *lib, *model;
  tw_executor* run;
  if (tw_system_lib(&lib)) return puts(tw_last_error_message()), 2;
  if (tw_module_get_import(lib, 0, &model) || tw_executor_create(model, 0, &run)) return 3;
  DLTensor x;
  return tw_executor_get_input(run, 0, &x) || tw_executor_run(run) ? 4 : 0;
}
)";
  shell("cc main.c -o main -Wl,--whole-archive net.a -Wl,--no-whole-archive -I " TW_SOURCE_DIR
        "/include -L " TW_BUILD_DIR " -Wl,-rpath," TW_BUILD_DIR " -ltilewright_runtime -lm && ./main");
  shell("mv net.weights away && ! ./main > said && grep 'a file of their own' said");
}

}  // namespace
}  // namespace tilewright::driver
