// SPDX-License-Identifier: Apache-2.0
// Programs that come with the kernels of regions of fixed shapes run where no compiler is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "driver/vm.h"
#include "runtime/vm/compiler_hook.h"
#include "test_folders.h"
#include "tilewright/compiler.h"

namespace tilewright {
namespace {

using runtime::vm::Program;
using runtime::vm::ProgramRunner;

class ReadyProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_ready_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::shared_ptr<const Program> compiled(const std::string& model) {
    compile(TW_TEST_DATA "/onnx/" + model, folder_ + "/model.so");
    auto artifact = runtime::Artifact::load(folder_ + "/model.so");
    EXPECT_TRUE(artifact.ok()) << artifact.error().str();
    auto program = runtime::vm::program_of(*artifact);
    EXPECT_TRUE(program.ok()) << program.error().str();
    return *program;
  }
  std::string folder_;
};

TEST_F(ReadyProgramTest, ControlFlowOverFixedShapesNeedsNoCompiler) {
  const auto ready = compiled("steps.onnx");
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->runs_alone());
  EXPECT_TRUE(ready->shared.empty()) << "weights are in the kernels' libraries";
  auto alone = ProgramRunner::create(ready, {}, {});
  ASSERT_TRUE(alone.ok()) << alone.error().str();
  // The same model compiled when it runs.
  auto made = driver::vm_program(TW_TEST_DATA "/onnx/steps.onnx", {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  const auto late = std::make_shared<const Program>(std::move(*made));
  EXPECT_FALSE(late->runs_alone());
  auto compiling = ProgramRunner::create(
      late, runtime::vm::specialize_with(late, tw_compiler_specialize, tw_compiler_last_error_message), {});
  ASSERT_TRUE(compiling.ok());
  for (double first : {-3.0, 3.0})  // the sum decides a branch
    for (int64_t trips : {0, 1, 5}) {
      Tensor x(kFloat32, {2, 4});
      for (int64_t i = 0; i < 8; ++i) x.set_double(i, first + 0.25 * static_cast<double>(i));
      const Tensor count = Tensor::scalar<int64_t>(kInt64, trips);
      auto got = (*alone)->run({x, count});
      auto wanted = (*compiling)->run({x, count});
      ASSERT_TRUE(got.ok()) << got.error().str();
      ASSERT_TRUE(wanted.ok()) << wanted.error().str();
      for (int64_t i = 0; i < 8; ++i)
        EXPECT_NEAR((*got)[0].at_double(i), (*wanted)[0].at_double(i), 1e-5) << first << " " << trips << " " << i;
    }
  EXPECT_EQ((*alone)->functions().compiled(), 0u);
}

// Both sides have the same sizes, so no value of the input decides what is compiled.
TEST_F(ReadyProgramTest, AnInputThatChoosesNeedsNoCompiler) {
  const auto ready = compiled("switched.onnx");
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->runs_alone());
  auto alone = ProgramRunner::create(ready, {}, {});
  ASSERT_TRUE(alone.ok()) << alone.error().str();
  Tensor x(kFloat32, {2, 4});
  for (int64_t i = 0; i < 8; ++i) x.set_double(i, 0.5 * static_cast<double>(i) - 1);
  for (bool first : {true, false}) {
    Tensor chosen(kBool, {});
    chosen.set_int(0, first);
    auto got = (*alone)->run({x, chosen});
    ASSERT_TRUE(got.ok()) << got.error().str();
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 4; ++k)
          sum += x.at_double(i * 4 + k) * (static_cast<double>(k * 3 + j) - (first ? 5 : 2)) / 8;
        EXPECT_NEAR((*got)[0].at_double(i * 3 + j), 2 * (first ? std::max(sum, 0.0) : std::tanh(sum)), 1e-5);
      }
  }
}

TEST_F(ReadyProgramTest, FreeSizesStillNeedTheCompiler) {
  const auto program = compiled("free_sizes.onnx");
  ASSERT_TRUE(program);
  EXPECT_FALSE(program->runs_alone());
}

TEST_F(ReadyProgramTest, DamagedKernelsAreAnError) {
  Program program = *compiled("steps.onnx");
  for (auto& region : program.regions)
    if (!region.library.empty())
      region.library = std::string(region.library.view().substr(0, region.library.size() / 2));
  const std::string bytes = runtime::vm::write_program(program);
  auto read = runtime::vm::read_program(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(read.ok()) << read.error().str();
  auto runner = ProgramRunner::create(std::make_shared<const Program>(std::move(*read)), {}, {});
  ASSERT_TRUE(runner.ok());
  auto got = (*runner)->run({Tensor::zeros(kFloat32, {2, 4}), Tensor::scalar<int64_t>(kInt64, 1)});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ErrorCode::kBadArtifact) << got.error().str();
}

}  // namespace
}  // namespace tilewright
