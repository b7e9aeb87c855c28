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

std::vector<FunctionMetadata> function_metadata(const lower::Lowered& lowered) {
  const plan::Plan& plan = lowered.plan;
  std::vector<FunctionMetadata> model, functions;
  for (int32_t device : plan.devices) model.push_back({"__tvm_main__", device});
  model[0].constants = plan.params_bytes;
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    functions.push_back({plan.kernels[i], plan.devices[lowered.kernel_devices[i]]});
  for (const std::string& name : plan.externals) functions.push_back({name});
  for (size_t v = 0; v <= plan.variants.size(); ++v) {
    const plan::Plan& p = plan::variant_of(plan, v);
    for (size_t d = 0; d < model.size(); ++d)
      model[d].workspace = std::max(model[d].workspace, d == 0 ? p.arena_bytes : p.device_arena_bytes[d - 1]);
    model[0].io = std::max(model[0].io, bytes_of(p.inputs) + bytes_of(p.outputs));
    for (const plan::Step& step : p.steps) {
      if (step.kind == plan::StepKind::kCopy) continue;
      FunctionMetadata use;
      for (uint32_t index : step.buffers) {
        const plan::Buffer& b = p.buffers[index];
        (b.space == plan::Space::kScratch  ? use.workspace
         : b.space == plan::Space::kParams ? use.constants
                                           : use.io) += b.bytes;
      }
      FunctionMetadata& f = functions[step.kernel + (step.kind == plan::StepKind::kExternal ? plan.kernels.size() : 0)];
      f.workspace = std::max(f.workspace, use.workspace);
      f.constants = std::max(f.constants, use.constants);
      f.io = std::max(f.io, use.io);
    }
  }
  model.insert(model.end(), functions.begin(), functions.end());
  return model;
}

}  // namespace tilewright::driver
