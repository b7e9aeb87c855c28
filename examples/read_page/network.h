// SPDX-License-Identifier: Apache-2.0
// A compiled network with one float32 picture as input and one float32 output.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/runtime.h"

namespace read_page {

class Network {
 public:
  Network(const std::string& path, int threads) : model_(path), executor_(model_, threads) {
    const auto fits = [](const auto& tensors) {
      return tensors.size() == 1 && tensors[0].dtype == "float32";
    };
    if (!fits(model_.inputs()) || !fits(model_.outputs()) || input_shape().size() != 4)
      throw std::runtime_error(
          path + ": a network with one float32 input [1, 3, height, width] and one output is needed");
  }

  const std::vector<int64_t>& input_shape() const { return model_.inputs()[0].shape; }
  const std::vector<int64_t>& output_shape() const { return model_.outputs()[0].shape; }
  std::string metadata(const char* key) const { return model_.metadata(key); }
  // Fill the input, then run; the output is valid until the next run.
  float* input() { return executor_.input<float>(0).data(); }
  const float* run() {
    executor_.run();
    return executor_.output<float>(0).data();
  }

 private:
  tilewright::Model model_;
  tilewright::Executor executor_;
};

}  // namespace read_page
