// SPDX-License-Identifier: Apache-2.0
// --shape x={1,4}x3x8x8: one library for several shapes, each as if it were compiled alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "driver/build.h"
#include "driver/cli/commands.h"
#include "test_folders.h"
#include "tilewright/compiler.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {

class ShapeVariantsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_variants_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string compiled(const std::string& name, const std::string& shape) {
    CompileOptions options;
    options.shapes = {shape};
    options.kernel_cache = false;
    compile(TW_TEST_DATA "/onnx/convnet.onnx", folder_ + "/" + name, options);
    return folder_ + "/" + name;
  }
  static std::vector<float> run(Executor& executor, int64_t batch) {
    std::vector<float> x(static_cast<size_t>(batch * 3 * 8 * 8));
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.001f * static_cast<float>(i % 997);
    executor.set_input("x", x, {batch, 3, 8, 8});
    executor.run();
    DLTensor y = executor.output(0);
    int64_t count = 1;
    for (int d = 0; d < y.ndim; ++d) count *= y.shape[d];
    const auto* data = static_cast<const float*>(y.data);
    return {data, data + count};
  }
  std::string folder_;
};

TEST_F(ShapeVariantsTest, EachShapeRunsAsIfCompiledAlone) {
  const std::string all = compiled("all.so", "x={1,4,2}x3x8x8");
  Model model(all);
  ASSERT_EQ(model.num_variants(), 3u);
  Executor executor(model, 2);
  for (int64_t size : {4, 1, 2, 1}) {
    const std::string text = std::to_string(size);
    Model alone(compiled("one" + text + ".so", "x=" + text + "x3x8x8"));
    Executor single(alone, 2);
    const auto expected = run(single, size);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(run(executor, size), expected) << size;
  }
  EXPECT_THROW(run(executor, 3), Error);
}

TEST_F(ShapeVariantsTest, WeightsAndKernelsAreShared) {
  driver::BuildOptions options;
  ASSERT_TRUE(driver::add_shapes({"x={1,4,1}x3x8x8"}, &options).ok());
  auto built = driver::build_onnx(TW_TEST_DATA "/onnx/convnet.onnx", options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  const auto& plan = built->lowered.plan;
  ASSERT_EQ(plan.variants.size(), 2u);
  driver::BuildOptions alone;
  alone.shapes = options.shapes;
  auto single = driver::build_onnx(TW_TEST_DATA "/onnx/convnet.onnx", alone);
  ASSERT_TRUE(single.ok());
  EXPECT_LT(plan.params_bytes, 2 * single->lowered.plan.params_bytes) << "convolutions' weights are packed alike";
  // The third variant is the first again: it adds no kernel.
  for (size_t i = 0; i < plan.steps.size(); ++i) EXPECT_EQ(plan.variants[1].steps[i].kernel, plan.steps[i].kernel);
  EXPECT_EQ(plan.kernels.size(), built->lowered.kernels.size());
  EXPECT_EQ(built->objects.size(), plan.kernels.size());
  EXPECT_EQ(plan.params.size(), built->lowered.params.size());
}

TEST_F(ShapeVariantsTest, ShapesAreParsed) {
  auto shapes = [](std::vector<std::string> texts) {
    driver::BuildOptions options;
    auto status = driver::add_shapes(texts, &options);
    EXPECT_TRUE(status.ok()) << status.error().str();
    return options;
  };
  auto o = shapes({"ids=1x{16,128}", "mask=1x{16,128}", "scale=1"});
  EXPECT_EQ(o.shapes["ids"], (std::vector<int64_t>{1, 16}));
  ASSERT_EQ(o.more_shapes.size(), 1u);
  EXPECT_EQ(o.more_shapes[0]["ids"], (std::vector<int64_t>{1, 128}));
  EXPECT_EQ(o.more_shapes[0]["mask"], (std::vector<int64_t>{1, 128}));
  EXPECT_EQ(o.more_shapes[0]["scale"], (std::vector<int64_t>{1}));
  EXPECT_EQ(shapes({"x={7}x2"}).shapes["x"], (std::vector<int64_t>{7, 2}));
  EXPECT_TRUE(shapes({"a=b=3x4"}).shapes.contains("a=b"));
  driver::BuildOptions options;
  for (const char* text : {"x", "=1x2", "x=", "x=1x", "x=1xa", "x=1x{2,3", "x=1x{}", "x=1x{2,}", "x=1x{2,3}4",
                           "x={1,2}x{1,2,3}", "x=-1"}) {
    auto status = driver::add_shapes({text}, &options);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(driver::add_shapes({"x={1,2}", "y={1,2,3}"}, &options).ok());
}

}  // namespace
}  // namespace tilewright
