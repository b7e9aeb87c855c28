// SPDX-License-Identifier: Apache-2.0
// tilewright quantize: what it writes computes nearly the same, and what it is given wrong it names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "driver/calibration.h"
#include "driver/command.h"
#include "driver/loaded_build.h"
#include "frontend/onnx/proto.h"
#include "inputs/file.h"
#include "inputs/npy.h"
#include "test_folders.h"

namespace tilewright {
namespace {

using driver::CalibrationMethod;
using ::tilewright::testing::command;

std::string model(const char* name) { return std::string(TW_SOURCE_DIR) + "/tests/data/onnx/" + name; }

class QuantizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "quantize_test" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/samples");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Tensor random(std::vector<int64_t> shape, uint64_t seed) {
    Tensor t(kFloat32, std::move(shape));
    std::mt19937_64 engine(seed);
    for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, static_cast<double>(engine() >> 11) * 0x1p-52 - 1);
    return t;
  }
  void save(const std::string& name, const Tensor& t) {
    const std::string bytes = *inputs::write_npy(t);
    ASSERT_TRUE(inputs::write_file(folder_ + "/samples/" + name, inputs::bytes_of(bytes)).ok());
  }
  testing::Said quantize(const std::string& path, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"quantize", path, "--calibrate", folder_ + "/samples", "-o", out()};
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  }
  std::string out() const { return folder_ + "/out.onnx"; }
  Tensor run(const std::string& path, const Tensor& x, const std::string& target = "llvm") {
    driver::BuildOptions options;
    options.target = target;
    options.shapes["x"] = x.shape();
    auto built = driver::build_onnx(path, options);
    EXPECT_TRUE(built.ok()) << built.error().str();
    auto executor = runtime::Executor::create(*driver::load_build(*built));
    return driver::run_once(**executor, {x})->at(0);
  }
  std::string folder_;
};

TEST_F(QuantizeTest, WhatIsWrittenIsNearTheModelAndTheTableSaysHowNear) {
  save("a.npy", random({6, 3, 8, 8}, 1));
  save("b.npy", random({1, 3, 8, 8}, 2));
  for (const char* method : {"minmax", "entropy", "percentile"}) {
    const auto said = quantize(model("convnet.onnx"), {"--json", "--method", method});
    ASSERT_EQ(said.code, 0) << said.error;
    const auto facts = nlohmann::json::parse(said.out);
    EXPECT_EQ(facts["samples"], 7);
    ASSERT_EQ(facts["layers"].size(), 2u);
    for (const auto& layer : facts["layers"]) {
      EXPECT_TRUE(layer["int8"]) << layer.dump();
      EXPECT_GT(layer["alone_db"], 25) << method;
      EXPECT_GT(layer["so_far_db"], 20) << method;
      EXPECT_LE(layer["so_far_db"].get<double>(), layer["alone_db"].get<double>() + 3);
    }
    // The normalisation is gone, both products are between pairs, and the values are near.
    auto written = onnx::read_model(out());
    ASSERT_TRUE(written.ok()) << written.error().str();
    size_t pairs = 0;
    for (const auto& n : written->graph.nodes) {
      EXPECT_NE(n.op_type, "BatchNormalization");
      pairs += n.op_type == "QuantizeLinear";
    }
    EXPECT_EQ(pairs, 4u);  // the input, the Relu's result, and the two values it becomes on the way to the product
    const Tensor x = random({1, 3, 8, 8}, 3);
    const Tensor exact = run(model("convnet.onnx"), x), bytes = run(out(), x);
    double most = 0, error = 0;
    for (int64_t i = 0; i < exact.size(); ++i) {
      most = std::max(most, std::fabs(exact.at_double(i)));
      error = std::max(error, std::fabs(exact.at_double(i) - bytes.at_double(i)));
    }
    EXPECT_LT(error, 0.1 * most) << method;
    EXPECT_GT(error, 0) << "nothing was quantized";
  }
}

TEST_F(QuantizeTest, LayersStayInFloatWhenAskedOrWhenTheyHurt) {
  save("a.npy", random({4, 3, 8, 8}, 1));
  auto kept = [&](std::vector<std::string> words) {
    words.push_back("--json");
    const auto said = quantize(model("convnet.onnx"), words);
    EXPECT_EQ(said.code, 0) << said.error;
    std::vector<std::string> reasons;
    const auto facts = nlohmann::json::parse(said.out);
    for (const auto& layer : facts["layers"]) reasons.push_back(layer["kept"]);
    return reasons;
  };
  const auto layers = nlohmann::json::parse(quantize(model("convnet.onnx"), {"--json"}).out)["layers"];
  EXPECT_EQ(kept({"--keep", layers[0]["name"]}), (std::vector<std::string>{"asked for", ""}));
  EXPECT_EQ(kept({"--layer-db", "500"}), (std::vector<std::string>(2, "its own result suffers")));
  EXPECT_EQ(kept({"--output-db", "500"}), (std::vector<std::string>(2, "the outputs suffer")));
}

// Without an instruction for bytes a 3x3 layer of small maps has integer weights, one of large maps Winograd's floats.
TEST_F(QuantizeTest, PairsAroundSmallMapsAreIntegers) {
  for (int64_t size : {14, 28, 56}) {
    std::ofstream(folder_ + "/layer.relay")
        << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 32, " << size << ", " << size << R"(), uint8]) {
  %0 = qnn.dequantize(%x, 0.5f, 3);
  %1 = qnn.dequantize(ones(shape=[32, 32, 3, 3], dtype="int8"), 0.25f, 0);
  %2 = nn.conv2d(%0, %1, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3]);
  qnn.quantize(%2, 0.5f, 3, out_dtype="uint8", rounding="TONEVEN")
})";
    const auto said = command({"compile", folder_ + "/layer.relay", "--target", "llvm -mcpu=haswell", "--explain", "-o",
                               folder_ + "/layer.so"});
    ASSERT_EQ(said.code, 0) << said.error;
    // Winograd's weights are one row of numbers: transformed halves, two to a word, or floats.
    EXPECT_EQ(said.out.find(" int32[8192] ") != std::string::npos, size <= 28) << said.out;
  }
}

TEST_F(QuantizeTest, OneScaleForAWeightLosesMore) {
  save("a.npy", random({4, 3, 8, 8}, 1));
  auto weights = [&](std::vector<std::string> words) {
    words.push_back("--json");
    return nlohmann::json::parse(quantize(model("convnet.onnx"), words).out)["layers"][0]["weights_db"].get<double>();
  };
  EXPECT_LT(weights({"--per-tensor"}), weights({}));
}

TEST_F(QuantizeTest, SamplesThatDoNotFitAreNamed) {
  auto said = quantize(model("convnet.onnx"));
  EXPECT_EQ(said.code, 1) << said.error;
  EXPECT_NE(said.error.find("no samples"), std::string::npos) << said.error;
  save("a.npy", random({4, 3, 8, 8}, 1));
  EXPECT_NE(quantize(model("convnet.onnx"), {"--keep", "no such layer"}).error.find("E101"), std::string::npos);
  EXPECT_NE(quantize(model("quantized.onnx")).error.find("error[E"), std::string::npos);
  save("b.npy", random({4, 3, 8, 9}, 1));
  said = quantize(model("convnet.onnx"));
  EXPECT_NE(said.error.find("E505"), std::string::npos) << said.error;
  EXPECT_NE(said.error.find("b.npy"), std::string::npos) << said.error;
  Tensor bad = random({1, 3, 8, 8}, 1);
  bad.set_double(5, std::nan(""));
  save("b.npy", bad);
  said = quantize(model("convnet.onnx"));
  EXPECT_NE(said.error.find("not finite"), std::string::npos) << said.error;
  EXPECT_FALSE(std::filesystem::exists(out()));
  std::filesystem::remove_all(folder_ + "/samples");
  EXPECT_NE(quantize(model("convnet.onnx")).error.find("E102"), std::string::npos);
}

TEST(Calibration, RareExtremesAreCutByThePercentileAndByEntropy) {
  std::mt19937_64 engine(4);
  std::normal_distribution<float> normal;
  Tensor t(kFloat32, {100000});
  for (float& v : t.as_mutable<float>()) v = normal(engine);
  t.set_double(7, 60);
  driver::ValueStatistics statistics;
  ASSERT_TRUE(statistics.see_extremes(t));
  statistics.see_histogram(t);
  EXPECT_EQ(statistics.range(CalibrationMethod::kMinMax, 0).high, 60);
  const auto rare = statistics.range(CalibrationMethod::kPercentile, 99.99);
  EXPECT_GT(rare.high, 3);
  EXPECT_LT(rare.high, 5);
  EXPECT_LT(rare.low, -3);
  EXPECT_GT(rare.low, -5);
  const auto close = statistics.range(CalibrationMethod::kEntropy, 0);
  EXPECT_GT(close.high, 2.5);
  EXPECT_LT(close.high, 30);
  // Nothing to cut: the range is what was seen, however many zeros there are.
  Tensor flat = Tensor::zeros(kFloat32, {100000});
  for (int64_t i = 0; i < 50000; ++i) flat.set_double(i, static_cast<double>(i) / 50000 * 6);
  driver::ValueStatistics even;
  ASSERT_TRUE(even.see_extremes(flat));
  even.see_histogram(flat);
  EXPECT_GT(even.range(CalibrationMethod::kEntropy, 0).high, 5.5);
  EXPECT_GT(even.range(CalibrationMethod::kPercentile, 99.9).high, 5.9);
}

}  // namespace
}  // namespace tilewright
