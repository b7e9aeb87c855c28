// SPDX-License-Identifier: Apache-2.0
// The public C and C++ interfaces end to end: compile a model, load it, run it, damage it.
#include "tilewright/compiler.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "test_folders.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {

class CompilerApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_test_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string compiled() {
    compile(model_, folder_ + "/m.so", {.target = "llvm", .shapes = {"x=1x3x8x8"}});
    return folder_ + "/m.so";
  }
  static std::vector<float> run(const std::string& path, int threads) {
    Model model(path);
    Executor executor(model, threads);
    std::vector<float> x(3 * 8 * 8);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    executor.set_input("x", x, {1, 3, 8, 8});
    executor.run();
    auto y = executor.output<float>(0);
    return {y.begin(), y.end()};
  }
  std::string folder_, model_ = TW_TEST_DATA "/onnx/convnet.onnx";
};

TEST_F(CompilerApiTest, CompilesLoadsAndRuns) {
  std::string path = compiled();
  auto one = run(path, 1);
  ASSERT_FALSE(one.empty());
  float largest = 0;
  for (float v : one) {
    ASSERT_TRUE(std::isfinite(v));
    largest = std::max(largest, std::abs(v));
  }
  EXPECT_GT(largest, 0);
  for (int threads : {2, 3}) EXPECT_EQ(run(path, threads), one) << threads;
}

TEST_F(CompilerApiTest, SameModelSameBytes) {
  auto read = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string first = read(compiled());
  EXPECT_EQ(read(compiled()), first);
}

TEST_F(CompilerApiTest, ErrorsHaveCodes) {
  auto code = [&](const std::string& model, const std::string& output, const CompileOptions& options) {
    try {
      compile(model, output, options);
    } catch (const CompileError& e) {
      EXPECT_NE(std::string(e.what()).find("error[E" + std::to_string(e.code())), std::string::npos) << e.what();
      return e.code();
    }
    return 0;
  };
  std::string out = folder_ + "/m.so";
  EXPECT_EQ(code(folder_ + "/absent.onnx", out, {}), 102);
  EXPECT_EQ(code(model_, out, {}), 0);  // its batch is free: a VM program
  std::filesystem::remove(out);
  EXPECT_EQ(code(model_, out, {.shapes = {"nonsense"}}), 101);
  EXPECT_EQ(code(model_, out, {.target = "vax", .shapes = {"x=1x3x8x8"}}), 401);
  EXPECT_EQ(code(model_, "/nonexistent/m.so", {.shapes = {"x=1x3x8x8"}}), 103);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(tw_compiler_compile_onnx(nullptr, nullptr, nullptr), 101);
}

// 1 refused, 0 loaded, -1 crashed.
int load_in_child(const std::string& path) {
  pid_t child = fork();
  if (child == 0) {
    tw_module* module = nullptr;
    _exit(tw_module_load(path.c_str(), nullptr, &module) == 501 ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CompilerApiTest, DamagedArtifactsAreRefused) {
  std::ifstream in(compiled(), std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  Model model(folder_ + "/m.so");
  uint64_t weights = model.info().params_bytes;
  auto write = [&](const std::string& data) {
    std::ofstream(folder_ + "/d.so", std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
    return folder_ + "/d.so";
  };
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    size_t n = i < 20 ? static_cast<size_t>(i) * 16 : random() % (bytes.size() - 64);
    EXPECT_EQ(load_in_child(write(bytes.substr(0, n))), 1) << "cut to " << n << " of " << bytes.size();
  }
  int accepted = 0;
  const int rounds = 200;
  for (int i = 0; i < rounds; ++i) {
    std::string damaged = bytes;
    size_t at = i < 60 ? random() % 1024 : random() % (bytes.size() - 8);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (i % 8)));
    int result = load_in_child(write(damaged));
    EXPECT_GE(result, 0) << "crashed with byte " << at << " damaged";
    accepted += result == 0;
  }
  // Only flips in the weights go unseen (they are checked on request), so at most their share of the file.
  double share = static_cast<double>(weights + 4096) / static_cast<double>(bytes.size());
  EXPECT_LE(accepted, static_cast<int>(rounds * std::min(1.0, share * 1.5)) + 1);
}

}  // namespace
}  // namespace tilewright
