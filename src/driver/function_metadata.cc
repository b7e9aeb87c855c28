// SPDX-License-Identifier: Apache-2.0
#include "driver/function_metadata.h"

#include <algorithm>

namespace tilewright::driver {
namespace {

uint64_t bytes_of(const std::vector<plan::TensorInfo>& tensors) {
  uint64_t total = 0;
  for (const plan::TensorInfo& t : tensors) {
    uint64_t n = 1;
    for (int64_t d : t.shape) n *= static_cast<uint64_t>(d);
    total += t.dtype.bytes_for(n);
  }
  return total;
}

}  // namespace

std::vector<FunctionMetadata> function_metadata(const plan::Plan& plan) {
  FunctionMetadata model{"__tvm_main__", 0, plan.params_bytes, 0};
  std::vector<FunctionMetadata> kernels;
  for (const std::string& name : plan.kernels) kernels.push_back({name});
  for (size_t v = 0; v <= plan.variants.size(); ++v) {
    const plan::Plan& p = plan::variant_of(plan, v);
    model.workspace = std::max(model.workspace, p.arena_bytes);
    model.io = std::max(model.io, bytes_of(p.inputs) + bytes_of(p.outputs));
    for (const plan::Step& step : p.steps) {
      FunctionMetadata use;
      for (uint32_t index : step.buffers) {
        const plan::Buffer& b = p.buffers[index];
        (b.space == plan::Space::kScratch  ? use.workspace
         : b.space == plan::Space::kParams ? use.constants
                                           : use.io) += b.bytes;
      }
      FunctionMetadata& kernel = kernels[step.kernel];
      kernel.workspace = std::max(kernel.workspace, use.workspace);
      kernel.constants = std::max(kernel.constants, use.constants);
      kernel.io = std::max(kernel.io, use.io);
    }
  }
  kernels.insert(kernels.begin(), std::move(model));
  return kernels;
}

}  // namespace tilewright::driver
