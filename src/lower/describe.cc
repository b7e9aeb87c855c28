// SPDX-License-Identifier: Apache-2.0
// The steps that describe parameters, scratch and the model's interface in the plan.
#include <algorithm>

#include "lower/steps.h"

namespace tilewright::lower {
namespace {

const GraphTensor& param_root(const LoweringState& state, int storage) {
  const Graph& graph = state.graph;
  for (size_t id = 0; id < graph.tensors.size(); ++id)
    if (state.buffers.tensors[id].storage == storage && graph.tensors[id].kind == GraphTensor::Kind::kParam)
      return graph.tensors[id];
  internal_error(__FILE__, __LINE__, "a parameter storage without its tensor");
}

// Lays out the parameters that kernels read, in order of first use.
void describe_params(LoweringState* state) {
  plan::Plan& p = state->out.plan;
  std::vector<bool> used(state->buffers.storages.size(), false);
  uint64_t at = 0;
  for (size_t g = 0; g < state->graph.groups.size(); ++g) {
    if (state->buffers.elided[g]) continue;
    for (int id : state->graph.groups[g].inputs) {
      const Placement& place = state->buffers.tensors[id];
      Storage& s = state->buffers.storages[place.storage];
      if (s.space != plan::Space::kParams || used[place.storage]) continue;
      used[place.storage] = true;
      s.offset = static_cast<int64_t>(at);
      const GraphTensor& root = param_root(*state, place.storage);
      p.params.push_back({root.name, root.dtype, root.shape, "", at, static_cast<uint64_t>(s.bytes)});
      state->out.params.push_back(root.weight);
      at = (at + static_cast<uint64_t>(s.bytes) + 63) / 64 * 64;
    }
  }
  // Kernels may load a full vector at the last element.
  p.params_bytes = at == 0 ? 0 : at + 64;
}

// Every thread's scratch has the size of the largest kernel's, rounded to whole pages so that threads do not share
// cache lines. With one thread the scratch lies in the arena, where each kernel's part is planned.
void reserve_scratch(const MemoryOptions& memory, LoweringState* state) {
  plan::Plan& p = state->out.plan;
  p.arena_bytes = (p.arena_bytes + 63) / 64 * 64;  // buffers may be aligned to less
  if (memory.one_thread) {
    p.scratch_bytes = p.arena_bytes;
    return;
  }
  uint64_t most = 0;
  for (const Group& group : state->graph.groups)
    most = std::max(most, static_cast<uint64_t>(group.choice->scratch_bytes));
  if (most == 0) return;
  p.scratch_bytes = (most + 4095) / 4096 * 4096;
  p.arena_bytes = (p.arena_bytes + 4095) / 4096 * 4096 + p.scratch_bytes;
}

}  // namespace

Result<bool> assign_buffers(LoweringSetting* setting, LoweringState* state) {
  state->buffers = TW_TRY(plan_buffers(state->graph, setting->memory));
  return true;
}

Result<bool> describe_plan(LoweringSetting* setting, LoweringState* state) {
  const Graph& graph = state->graph;
  plan::Plan& p = state->out.plan;
  p.target = setting->target.str();
  p.cpu_features = setting->target.cpu_features;
  p.devices = graph.devices;
  for (int32_t device : p.devices)
    if (auto other = setting->device_targets.find(device); other != setting->device_targets.end())
      for (const std::string& feature : other->second.cpu_features)
        if (std::find(p.cpu_features.begin(), p.cpu_features.end(), feature) == p.cpu_features.end())
          p.cpu_features.push_back(feature);
  p.arena_bytes = static_cast<uint64_t>(state->buffers.arena_bytes);
  p.device_arena_bytes.assign(state->buffers.device_arena_bytes.begin(), state->buffers.device_arena_bytes.end());
  for (int id : graph.inputs) {
    const GraphTensor& t = graph.tensors[id];
    p.inputs.push_back({t.name, t.dtype, t.shape});
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const GraphTensor& t = graph.tensors[graph.outputs[i]];
    p.outputs.push_back({graph.output_names[i], t.dtype, t.shape});
  }
  describe_params(state);
  reserve_scratch(setting->memory, state);
  state->out.pools = state->buffers.pools;
  state->out.input_offsets = state->buffers.inputs;
  state->out.output_offsets = state->buffers.outputs;
  return true;
}

}  // namespace tilewright::lower
