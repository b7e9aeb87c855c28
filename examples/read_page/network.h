// SPDX-License-Identifier: Apache-2.0
// A compiled network with one float32 picture as input and one float32 output, for one of the sizes it was compiled
// for.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tilewright/runtime.h"

namespace read_page {

class Network {
 public:
  Network(const std::string& path, int threads) : Network(path, tilewright::Model(path), 0, threads) {}
  // Every size the file has. They share its weights.
  static std::vector<Network> sizes(const std::string& path, int threads) {
    const tilewright::Model model(path);
    std::vector<Network> out;
    for (size_t i = 0; i < model.num_variants(); ++i) out.push_back(Network(path, model, i, threads));
    return out;
  }

  const std::vector<int64_t>& input_shape() const { return input_shape_; }
  const std::vector<int64_t>& output_shape() const { return output_shape_; }
  std::string metadata(const char* key) const { return model_.metadata(key); }
  // Fill the input, then run; the output is valid until the next run.
  float* input() { return executor_.input<float>(0).data(); }
  const float* run() {
    executor_.run();
    return executor_.output<float>(0).data();
  }

 private:
  Network(const std::string& path, const tilewright::Model& model, size_t variant, int threads)
      : model_(model), executor_(model_, threads) {
    const auto fits = [](const auto& tensors) { return tensors.size() == 1 && tensors[0].dtype == "float32"; };
    if (fits(model_.inputs()) && fits(model_.outputs())) {
      input_shape_ = model_.variant_inputs(variant)[0].shape;
      output_shape_ = model_.variant_outputs(variant)[0].shape;
      executor_.select_variant(variant);
    }
    if (input_shape_.size() != 4)
      throw std::runtime_error(path +
                               ": a network with one float32 input [1, 3, height, width] and one output is needed");
  }

  tilewright::Model model_;
  tilewright::Executor executor_;
  std::vector<int64_t> input_shape_, output_shape_;
};

}  // namespace read_page
