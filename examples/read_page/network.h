// SPDX-License-Identifier: Apache-2.0
// A compiled network with one float32 input and one float32 output, on top of the runtime's C interface.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/c_api.h"

namespace read_page {

class Network {
 public:
  // Maps the artifact; throws std::runtime_error with the runtime's own message.
  Network(const std::string& path, int threads);

  const std::vector<int64_t>& input_shape() const { return input_shape_; }
  const std::vector<int64_t>& output_shape() const { return output_shape_; }
  float* input() { return input_; }  // fill it, then run()
  const float* run();                // the output; valid until the next run
  std::string metadata(const char* key) const;

 private:
  struct FreeModule {
    void operator()(tw_module* module) const { tw_module_free(module); }
  };
  struct FreeExecutor {
    void operator()(tw_executor* executor) const { tw_executor_free(executor); }
  };
  std::unique_ptr<tw_module, FreeModule> module_;
  std::unique_ptr<tw_executor, FreeExecutor> executor_;
  std::vector<int64_t> input_shape_, output_shape_;
  float* input_ = nullptr;
};

}  // namespace read_page
