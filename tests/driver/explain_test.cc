// SPDX-License-Identifier: Apache-2.0
// compile --explain: every layer with what applied, what was predicted and what was taken.
#include "driver/cli/explain.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver/build.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {

Built built() {
  BuildOptions options;
  options.shapes = {{"x", {1, 3, 8, 8}}};
  auto result = build_onnx(TW_TEST_DATA "/onnx/convnet.onnx", options);
  EXPECT_TRUE(result.ok()) << result.error().str();
  return std::move(result).value();
}

TEST(Explain, EveryLayerHasOneChosenKernelWithThePlansPrediction) {
  const Built model = built();
  const nlohmann::json layers = explain_json(model.lowered);
  ASSERT_EQ(layers.size(), model.lowered.plan.steps.size());
  ASSERT_FALSE(layers.empty());
  bool weighed = false;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& step = model.lowered.plan.steps[i];
    int chosen = 0;
    for (const auto& c : layers[i]["candidates"]) {
      if (!c["chosen"]) continue;
      ++chosen;
      EXPECT_EQ(c["implementation"], step.implementation);
      EXPECT_EQ(c["predicted_us"], step.predicted_us);
      if (!c.contains("other_configurations")) continue;
      weighed = true;
      EXPECT_NE(c["configuration"], "");
      for (const auto& other : c["other_configurations"]) {
        EXPECT_NE(other["configuration"], c["configuration"]);
        // The search keeps the simpler of two configurations within a thousandth.
        EXPECT_GE(other["predicted_us"].get<double>(), 0.998 * step.predicted_us) << layers[i]["name"];
      }
    }
    EXPECT_EQ(chosen, 1) << layers[i].dump(1);
    EXPECT_EQ(layers[i]["kernel"], model.lowered.plan.kernels[step.kernel]);
  }
  EXPECT_TRUE(weighed) << "a convolution has tiles to choose from";
}

TEST(Explain, TheTextNamesLayersCandidatesAndTheChoice) {
  const Built model = built();
  const std::string text = explain_text(model.lowered);
  EXPECT_EQ(text.rfind(std::to_string(model.lowered.plan.steps.size()) + " steps, predicted ", 0), 0u) << text;
  for (const auto& step : model.lowered.plan.steps) {
    EXPECT_NE(text.find("  " + step.name + "  "), std::string::npos) << step.name;
    EXPECT_NE(text.find("* " + step.implementation), std::string::npos) << step.implementation;
  }
}

}  // namespace
}  // namespace tilewright::driver
