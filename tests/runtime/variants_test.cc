// SPDX-License-Identifier: Apache-2.0
// One library for several input shapes: the input's shape picks the plan.
#include "runtime/artifact_maker.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {
using namespace tilewright::testing;

// The small model for four rows and for two, and an input that both have in one shape.
ArtifactSource two_shapes() {
  ArtifactSource a = small_model();
  plan::Plan& p = a.plan;
  p.inputs.push_back({"bias", kFloat32, {1}});
  p.buffers.push_back({plan::Space::kInput, 1, 0, 4, kFloat32, {1}, "", "bias"});
  p.kernels = {"add_one", "scale", "add_one_2", "scale_2"};
  p.steps[1].buffers = {1, 2, 4, 3};
  a.kernels = R"(
static void add(void* const* b, int64_t rows, int64_t tid, int64_t n) {
  const float* x = b[0]; float* t = b[1];
  for (int64_t r = rows * tid / n; r < rows * (tid + 1) / n; ++r) for (int i = 0; i < 16; ++i) t[r * 16 + i] = x[r * 16 + i] + 1;
}
static void times(void* const* b, int rows) {
  const float* t = b[0]; const float* w = b[1]; const float* bias = b[2]; float* y = b[3];
  for (int i = 0; i < 16 * rows; ++i) y[i] = t[i] * w[i % 16] + bias[0];
}
void add_one(void* const* b, int64_t tid, int64_t n) { add(b, 4, tid, n); }
void scale(void* const* b, int64_t tid, int64_t n) { times(b, 4); }
void add_one_2(void* const* b, int64_t tid, int64_t n) { add(b, 2, tid, n); }
void scale_2(void* const* b, int64_t tid, int64_t n) { times(b, 2); })";
  plan::Plan other = p;
  other.inputs[0].shape = other.outputs[0].shape = {2, 16};
  other.arena_bytes = 128;
  for (size_t i : {0, 1, 3}) other.buffers[i].bytes = 128, other.buffers[i].shape = {2, 16};
  other.steps[0].kernel = 2, other.steps[1].kernel = 3;
  p.variants = {other};
  return a;
}

class VariantsTest : public ::testing::Test {
 protected:
  void SetUp() override { make_artifact(two_shapes(), folder_ / "m.so"); }
  static std::vector<float> output(const Executor& executor, std::vector<int64_t> shape) {
    DLTensor y = executor.output(0);
    EXPECT_EQ(std::vector<int64_t>(y.shape, y.shape + y.ndim), shape);
    const auto* data = static_cast<const float*>(y.data);
    return {data, data + shape[0] * shape[1]};
  }
  TempFolder folder_;
};

TEST_F(VariantsTest, TheInputsShapePicksThePlan) {
  Model model(folder_ / "m.so");
  ASSERT_EQ(model.num_variants(), 2u);
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(model.variant_inputs(1)[0].shape, (std::vector<int64_t>{2, 16}));
  EXPECT_EQ(model.variant_outputs(1)[0].shape, (std::vector<int64_t>{2, 16}));
  EXPECT_THROW(model.variant_inputs(2), Error);
  for (int threads : {1, 2, 3}) {
    Executor executor(model, threads);
    executor.set_input("bias", std::vector<float>{10}, {1});
    for (int round = 0; round < 3; ++round) {
      executor.set_input("x", std::vector<float>(64, 1.0f + round), {4, 16});
      executor.run();
      EXPECT_EQ(output(executor, {4, 16})[63], (2.0f + round) * 7.5f + 10);
      executor.set_input("x", std::vector<float>(32, 3.0f), {2, 16});
      executor.run();  // the bias has the same shape in both and stays set
      EXPECT_EQ(output(executor, {2, 16})[31], 4.0f * 7.5f + 10);
    }
  }
}

TEST_F(VariantsTest, AnInputOfAnotherShapeMustBeSetAgain) {
  Model model(folder_ / "m.so");
  Executor executor(model, 1);
  executor.set_input("x", std::vector<float>(64, 1.0f), {4, 16});
  executor.set_input("bias", std::vector<float>{0}, {1});
  executor.run();
  executor.select_variant(1);
  try {
    executor.run();
    ADD_FAILURE() << "x was set for the other shape only";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 101);
  }
  float* x = executor.input<float>(0).data();
  for (int i = 0; i < 32; ++i) x[i] = 5;
  executor.run();
  EXPECT_EQ(output(executor, {2, 16})[31], 6 * 7.5f);
  executor.select_variant(0);
  EXPECT_THROW(executor.run(), Error) << "what x had before the other variant is stale";
  EXPECT_THROW(executor.select_variant(2), Error);
}

TEST_F(VariantsTest, AShapeThatNoneHasIsAnErrorThatListsThem) {
  Model model(folder_ / "m.so");
  Executor executor(model, 1);
  try {
    executor.set_input("x", std::vector<float>(48, 1.0f), {3, 16});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 505);
    for (const char* shape : {"4x16", "2x16", "3x16"})
      EXPECT_NE(std::string(e.what()).find(shape), std::string::npos) << e.what();
  }
  EXPECT_THROW(executor.set_input("bias", std::vector<float>{1, 2}, {2}), Error);
}

TEST_F(VariantsTest, BoundMemoryAndProfilesFollowTheVariant) {
  Model model(folder_ / "m.so");
  Executor executor(model, 2);
  std::vector<float> x(32, 1.0f), bias{1};
  std::vector<int64_t> shape{2, 16}, one{1};
  executor.bind_input("x", Executor::view(x.data(), shape));
  executor.bind_input("bias", Executor::view(bias.data(), one));
  executor.run();
  EXPECT_EQ(output(executor, {2, 16})[31], 16);
  x[31] = 3;
  executor.run();
  EXPECT_EQ(output(executor, {2, 16})[31], 31);
  EXPECT_EQ(executor.profile(3).steps[0].kernel, "add_one_2");
  executor.set_input("x", std::vector<float>(64, 0.0f), {4, 16});
  EXPECT_EQ(executor.profile(3).steps[0].kernel, "add_one");
}

}  // namespace
}  // namespace tilewright
