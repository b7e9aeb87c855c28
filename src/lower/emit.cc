// SPDX-License-Identifier: Apache-2.0
// The step that emits kernels and the plan's steps.
#include <map>

#include "lower/kernel_function.h"
#include "lower/steps.h"

namespace tilewright::lower {
namespace {

// Kernels, buffers and external functions emitted so far, by key.
class Emission {
 public:
  Emission(LoweringSetting* setting, LoweringState* state)
      : setting_(*setting), state_(*state), graph_(state->graph), out_(state->out) {}

  Status emit(const Group& group) {
    const Choice& choice = *group.choice;
    plan::Step step;
    step.kind = group.kind;
    if (group.kind == plan::StepKind::kKernel) step.kernel = TW_TRY(kernel_of(group));
    if (group.kind == plan::StepKind::kExternal) step.kernel = external_of(group);
    for (int id : group.plain() ? group.inputs : distinct_inputs(group)) step.buffers.push_back(buffer_of(id));
    for (int id : group.outputs) step.buffers.push_back(buffer_of(id));
    step.outputs = static_cast<uint32_t>(group.outputs.size());
    if (choice.scratch_bytes > 0) step.buffers.push_back(scratch_buffer(group, choice.scratch_bytes));
    step.parallel = is_parallel(graph_, group);
    step.name = group.name;
    step.source = group.source;
    step.flops = choice.cost.flops;
    step.bytes = choice.cost.bytes;
    step.predicted_us = choice.cost.microseconds;
    step.implementation = choice.implementation;
    out_.plan.steps.push_back(std::move(step));
    StepTrace trace;
    trace.function = relay::Expr(group.function);
    for (int id : group.inputs) trace.inputs.push_back(operand_trace(id));
    for (int id : group.outputs) trace.outputs.push_back(operand_trace(id));
    trace.choice = group.choice;
    out_.traces.push_back(std::move(trace));
    return Ok{};
  }

 private:
  // The index of the group's kernel, emitted if it is new.
  Result<uint32_t> kernel_of(const Group& group) {
    const uint32_t device = graph_.tensors[group.outputs[0]].device;
    auto [slot, fresh] = kernels_.try_emplace(format("{} ", device) + kernel_key(graph_, group, state_.buffers),
                                              static_cast<uint32_t>(out_.kernels.size()));
    if (fresh) {
      const std::string base = symbol_of(group.name);
      const int copies = names_[base]++;
      auto kernel = kernel_function(state_, group, setting_.target_of(graph_, group),
                                    copies == 0 ? base : format("{}_{}", base, copies));
      if (!kernel.ok()) return std::move(kernel).error().at(group.source);
      out_.plan.kernels.push_back(kernel->name);
      out_.kernels.push_back(std::move(*kernel));
      out_.kernel_devices.push_back(device);
    }
    return slot->second;
  }

  // Calls of one module function share one external function.
  uint32_t external_of(const Group& group) {
    for (uint32_t i = 0; i < out_.externals.size(); ++i)
      if (out_.externals[i].symbol == group.external) return i;
    out_.externals.push_back({group.external, group.compiler, relay::Expr(group.function)});
    out_.plan.externals.push_back(group.external);
    return static_cast<uint32_t>(out_.externals.size()) - 1;
  }

  uint32_t buffer_of(int id) {
    const Placement& p = state_.buffers.tensors[id];
    const Storage& s = state_.buffers.storages[p.storage];
    const GraphTensor& t = graph_.tensors[id];
    auto [it, fresh] = buffers_.try_emplace(id, static_cast<uint32_t>(out_.plan.buffers.size()));
    if (!fresh) return it->second;
    plan::Buffer b;
    b.space = s.space;
    b.index = s.index;
    b.offset = static_cast<uint64_t>(
        p.storage_offset + (s.space == plan::Space::kArena || s.space == plan::Space::kParams ? s.offset : 0));
    b.bytes = static_cast<uint64_t>(p.bytes);
    b.dtype = t.dtype;
    b.shape = t.shape;
    if (graph_.apart && !t.halo.empty())
      for (size_t d = 0; d < b.shape.size(); ++d) b.shape[d] += t.halo.before[d] + t.halo.after[d];
    b.layout = t.layout;
    b.name = t.name;
    b.device = t.device;
    out_.plan.buffers.push_back(std::move(b));
    return it->second;
  }

  // Scratch per thread, or a buffer in the arena.
  uint32_t scratch_buffer(const Group& group, int64_t bytes) {
    const auto g = static_cast<size_t>(&group - state_.graph.groups.data());
    const int storage = state_.buffers.scratch.empty() ? -1 : state_.buffers.scratch[g];
    const int64_t at = storage < 0 ? 0 : state_.buffers.storages[storage].offset;
    auto [it, fresh] = scratch_.try_emplace({bytes, at}, static_cast<uint32_t>(out_.plan.buffers.size()));
    if (fresh) {
      plan::Buffer b;
      b.space = plan::Space::kScratch;
      b.offset = static_cast<uint64_t>(at);
      b.bytes = static_cast<uint64_t>(bytes);
      b.dtype = kFloat32;
      b.shape = {bytes / 4};
      b.name = "scratch";
      out_.plan.buffers.push_back(std::move(b));
    }
    return it->second;
  }

  OperandTrace operand_trace(int id) {
    const GraphTensor& t = graph_.tensors[id];
    const Placement& p = state_.buffers.tensors[id];
    OperandTrace o{buffer_of(id), t.dtype, t.shape, p.strides, p.offset, {}};
    if (t.kind == GraphTensor::Kind::kParam) o.constant = t.data;
    return o;
  }

  const LoweringSetting& setting_;
  const LoweringState& state_;
  const Graph& graph_;
  Lowered& out_;
  std::map<std::string, uint32_t> kernels_;
  std::map<std::string, int> names_;
  std::map<int, uint32_t> buffers_;                          // by tensor
  std::map<std::pair<int64_t, int64_t>, uint32_t> scratch_;  // by size and offset
};

}  // namespace

Result<bool> emit_kernels(LoweringSetting* setting, LoweringState* state) {
  Emission emission(setting, state);
  for (size_t i = 0; i < state->graph.groups.size(); ++i) {
    const Group& group = state->graph.groups[i];
    if (state->buffers.elided[i]) continue;
    TW_TRY_STATUS(watched(setting, group, [&]() -> Status { return emission.emit(group); }));
  }
  return true;
}

}  // namespace tilewright::lower
