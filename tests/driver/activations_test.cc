// SPDX-License-Identifier: Apache-2.0
// Activations far from zero: every result has its own scale, which a tolerance by the largest element would not see.
#include <gtest/gtest.h>

#include <cmath>

#include "driver/build.h"
#include "driver/loaded_build.h"
#include "runtime/executor.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {

// softplus_x, softplus_d, mish_x, mish_d
std::vector<std::vector<double>> results(const std::string& target, const std::vector<double>& at) {
  BuildOptions options;
  options.target = target;
  options.jobs = 1;
  auto built = build_onnx(std::string(TW_TEST_DATA) + "/onnx/far_below_zero.onnx", options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  auto library = load_build(*built);
  EXPECT_TRUE(library.ok()) << library.error().str();
  auto executor = runtime::Executor::create(*library);
  EXPECT_TRUE(executor.ok()) << executor.error().str();
  for (size_t i = 0; i < 2; ++i) {
    auto slot = (*executor)->input(i);
    EXPECT_TRUE(slot.ok());
    const bool wide = (*library)->plan().inputs[i].dtype == kFloat64;
    for (size_t k = 0; k < at.size(); ++k)
      if (wide)
        static_cast<double*>(slot->data)[k] = at[k];
      else
        static_cast<float*>(slot->data)[k] = static_cast<float>(at[k]);
  }
  EXPECT_TRUE((*executor)->run().ok());
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < 4; ++i) {
    auto slot = (*executor)->output(i);
    EXPECT_TRUE(slot.ok());
    out.emplace_back();
    for (size_t k = 0; k < at.size(); ++k)
      out.back().push_back((*library)->plan().outputs[i].dtype == kFloat64 ? static_cast<const double*>(slot->data)[k]
                                                                           : static_cast<const float*>(slot->data)[k]);
  }
  return out;
}

TEST(Activations, SoftplusAndMishFarBelowZero) {
  std::vector<double> at;
  for (int i = 0; i < 40; ++i) at.push_back(-2.0 * i - 1);  // to -79: the exponential is a normal number of float32
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"}) {
    const auto got = results(target, at);
    for (size_t k = 0; k < at.size(); ++k) {
      const double soft = softplus(at[k]), mish = at[k] * std::tanh(soft);
      EXPECT_NEAR(got[0][k] / soft, 1, 5e-7) << target << " at " << at[k];
      EXPECT_NEAR(got[1][k] / soft, 1, 1e-15) << target << " at " << at[k];
      EXPECT_NEAR(got[2][k] / mish, 1, 1e-6) << target << " at " << at[k];
      EXPECT_NEAR(got[3][k] / mish, 1, 2e-15) << target << " at " << at[k];
    }
  }
}

}  // namespace
}  // namespace tilewright::driver
