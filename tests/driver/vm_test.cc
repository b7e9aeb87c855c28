// SPDX-License-Identifier: Apache-2.0
// Models whose sizes and control flow are known only when they run: compiled to a file, loaded, run at many sizes, each
// result compared with the interpreter on the model imported for those very inputs.
#include "driver/vm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/format.h"
#include "driver/verify.h"
#include "frontend/onnx/import.h"
#include "relay/interpreter.h"
#include "runtime/vm/compiler_hook.h"
#include "test_folders.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

const std::string kFreeSizes = std::string(TW_TEST_DATA) + "/onnx/free_sizes.onnx";

struct Inputs {
  int64_t n, l;
  bool positive;
  int64_t trips;
  std::vector<int64_t> shape;
};
std::vector<Tensor> tensors(const Inputs& in) {
  return {random_tensor(kFloat32, {in.n, in.l}, static_cast<uint64_t>(in.n * 100 + in.l)),
          Tensor::scalar<uint8_t>(kBool, in.positive), Tensor::scalar<int64_t>(kInt64, in.trips),
          Tensor::from<int64_t>(kInt64, {2}, in.shape)};
}

class VmProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() / format("tw-vm-test-{}.so", getpid())).string();
    auto status = compile_onnx(kFreeSizes, file_, {});
    ASSERT_TRUE(status.ok()) << status.error().str();
    auto artifact = runtime::Artifact::load(file_);
    ASSERT_TRUE(artifact.ok()) << artifact.error().str();
    artifact_ = *artifact;
    auto program = runtime::vm::program_of(artifact_);
    ASSERT_TRUE(program.ok() && *program);
    program_ = *program;
  }
  void TearDown() override { std::filesystem::remove(file_); }
  std::unique_ptr<runtime::vm::ProgramRunner> runner(bool with_compiler = true) {
    runtime::vm::SpecializedOptions options;
    options.threads = 2;
    options.keep = 8;
    auto made = runtime::vm::ProgramRunner::create(
        program_,
        with_compiler ? runtime::vm::specialize_with(program_, tw_compiler_specialize, tw_compiler_last_error_message)
                      : runtime::vm::Specialize(),
        options);
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  std::string file_;
  std::shared_ptr<const runtime::Artifact> artifact_;
  std::shared_ptr<const runtime::vm::Program> program_;
};

TEST_F(VmProgramTest, EverySizeAndBranch) {
  auto vm = runner();
  const Inputs cases[] = {{1, 4, true, 0, {2, 2}}, {3, 5, false, 2, {15, 1}},  {3, 5, true, 2, {5, 3}},
                          {1, 4, true, 0, {2, 2}}, {7, 33, true, 3, {-1, 11}}, {3, 5, false, 2, {15, 1}},
                          {1, 1, false, 1, {1, 1}}};
  for (const Inputs& in : cases) {
    auto inputs = tensors(in);
    auto got = vm->run(inputs);
    ASSERT_TRUE(got.ok()) << got.error().str();
    onnx::ImportOptions import;
    import.shapes["x"] = {in.n, in.l};
    for (size_t i = 1; i < 4; ++i) import.constants[program_->inputs[i].name] = inputs[i];
    auto module = onnx::import_onnx(kFreeSizes, import);
    ASSERT_TRUE(module.ok()) << module.error().str();
    auto expected = relay::interpret(*module, {{"x", relay::value_from(inputs[0])}});
    ASSERT_TRUE(expected.ok()) << expected.error().str();
    ASSERT_EQ(got->size(), expected->size());
    for (size_t k = 0; k < got->size(); ++k) {
      ASSERT_EQ((*got)[k].shape(), (*expected)[k].shape);
      for (int64_t i = 0; i < (*got)[k].size(); ++i)
        EXPECT_NEAR((*got)[k].at_double(i), (*expected)[k].f[static_cast<size_t>(i)], 1e-3);
    }
  }
  EXPECT_LE(vm->functions().kept(), 8u);
  const size_t compiled = vm->functions().compiled();
  EXPECT_TRUE(vm->run(tensors(cases[6])).ok());  // the last one again
  EXPECT_EQ(vm->functions().compiled(), compiled);
}

TEST_F(VmProgramTest, SaysWhatIsWrong) {
  auto vm = runner();
  auto inputs = tensors({2, 3, true, 1, {3, 2}});
  auto fewer = inputs;
  fewer.pop_back();
  EXPECT_EQ(vm->run(fewer).error().code, ErrorCode::kInvalidArgument);
  auto wrong = inputs;
  wrong[0] = random_tensor(kFloat32, {2, 3, 1}, 1);
  EXPECT_EQ(vm->run(wrong).error().code, ErrorCode::kShapeMismatch);
  wrong[0] = random_tensor(kFloat64, {2, 3}, 1);
  EXPECT_EQ(vm->run(wrong).error().code, ErrorCode::kDtypeMismatch);
  auto impossible = tensors({2, 3, true, 1, {4, 2}});
  EXPECT_FALSE(vm->run(impossible).ok());
  EXPECT_TRUE(vm->run(inputs).ok());  // a failed run leaves nothing behind
  auto alone = runner(false);
  EXPECT_NE(alone->run(inputs).error().message.find("no compiler here"), std::string::npos);
  EXPECT_EQ(runtime::Executor::create(artifact_).error().code, ErrorCode::kUnsupportedModel);
}

TEST(VmProgram, FixedSizesStayOrdinary) {
  EXPECT_FALSE(*program_if_needed(std::string(TW_TEST_DATA) + "/onnx/control.onnx", {}));
  EXPECT_TRUE(*program_if_needed(kFreeSizes, {}));
  BuildOptions options;
  options.shapes["nothing"] = {1};
  EXPECT_EQ(vm_program(kFreeSizes, options).error().code, ErrorCode::kUnknownInput);
  options.shapes = {{"x", {2, 3, 4}}};
  EXPECT_EQ(vm_program(kFreeSizes, options).error().code, ErrorCode::kShapeMismatch);
}

}  // namespace
}  // namespace tilewright::driver
