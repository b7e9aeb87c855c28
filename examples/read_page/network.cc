// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <stdexcept>

namespace read_page {

static void check(int32_t code) {
  if (code != 0) throw std::runtime_error(tw_last_error_message());
}

static std::vector<int64_t> shape_of(const tw_tensor_info& info) {
  return {info.shape, info.shape + info.ndim};
}

static float* data_of(const DLTensor& tensor) {
  return reinterpret_cast<float*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

Network::Network(const std::string& path, int threads) {
  tw_module* module = nullptr;
  check(tw_module_load(path.c_str(), nullptr, &module));
  module_.reset(module);
  tw_executor_options options{};
  options.size = sizeof(options);
  options.num_threads = threads;
  options.spin_us = -1;
  tw_executor* executor = nullptr;
  check(tw_executor_create(module, &options, &executor));
  executor_.reset(executor);

  tw_tensor_info in{}, out{};
  in.size = out.size = sizeof(tw_tensor_info);
  check(tw_module_get_input_info(module, 0, &in));
  check(tw_module_get_output_info(module, 0, &out));
  if (std::string(in.dtype_name) != "float32" || std::string(out.dtype_name) != "float32" || in.ndim != 4)
    throw std::runtime_error(path + ": a network with a float32 input [1, 3, height, width] is needed here");
  input_shape_ = shape_of(in);
  output_shape_ = shape_of(out);
  DLTensor tensor{};
  check(tw_executor_get_input(executor, 0, &tensor));
  input_ = data_of(tensor);
}

const float* Network::run() {
  check(tw_executor_run(executor_.get()));
  DLTensor tensor{};
  check(tw_executor_get_output(executor_.get(), 0, &tensor));
  return data_of(tensor);
}

std::string Network::metadata(const char* key) const {
  const char* value = nullptr;
  check(tw_module_get_metadata(module_.get(), key, &value));
  return value ? value : "";
}

}  // namespace read_page
