// SPDX-License-Identifier: Apache-2.0
// Prints and verifies the state of a lowering between steps.
#include <algorithm>

#include "lower/steps.h"
#include "tir/text.h"

namespace tilewright::lower {
namespace {

std::string numbers(const std::vector<int>& list) {
  std::string out;
  for (int id : list) out += format("{}%{}", out.empty() ? "" : " ", id);
  return out;
}

std::string tensor_line(const LoweringState& state, size_t id) {
  const GraphTensor& t = state.graph.tensors[id];
  const char* kind = t.kind == GraphTensor::Kind::kInput   ? " input"
                     : t.kind == GraphTensor::Kind::kParam ? " param"
                     : t.is_output                         ? " output"
                                                           : "";
  std::string out = format("%{}: {}[{}]{} {}", id, t.dtype.str(), shape_str(t.shape), kind, t.name);
  if (!t.halo.empty()) out += format(", halo {} {}", shape_str(t.halo.before), shape_str(t.halo.after));
  if (id < state.buffers.tensors.size()) {
    const Placement& p = state.buffers.tensors[id];
    out += format(", storage {} from byte {} on, {} bytes", p.storage, p.storage_offset, p.bytes);
  }
  return out + "\n";
}

std::string group_line(const LoweringState& state, size_t i) {
  static constexpr const char* kRenamings[] = {"", ", reshape", ", concat", ", slice", ", within"};
  const Group& group = state.graph.groups[i];
  std::string out = format("{}: {} = {}({})", i, numbers(group.outputs), group.name, numbers(group.inputs));
  if (!group.source.empty()) out += format(" of {}", group.source);
  if (i < state.buffers.elided.size() && state.buffers.elided[i]) return out + ", no kernel\n";
  out += kRenamings[static_cast<size_t>(group.renaming.kind)];
  if (group.choice) out += format(", {} [{}]", group.choice->implementation, group.choice->configuration);
  return out + "\n";
}

std::string storage_line(const Storage& s, size_t i) {
  return format("storage {}: {} bytes of {} {} at {}, groups {} to {}\n", i, s.bytes, plan::name_of(s.space), s.index,
                s.offset, s.first_use, s.last_use);
}

Diagnostic broken(const std::string& what) { return Diagnostic(ErrorCode::kVerifyFailed, what); }

Status verify_groups(const Graph& graph) {
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    const Group& group = graph.groups[i];
    if (group.choice && group.choice->halos.size() > group.inputs.size())
      return broken(format("group {} ({}) has more halos than inputs", i, group.name));
    for (int id : group.inputs)
      if (graph.tensors[id].producer >= static_cast<int>(i))
        return broken(format("group {} ({}) reads %{} before it is made", i, group.name, id));
  }
  return Ok{};
}

Status verify_buffers(const LoweringState& state) {
  const Buffers& buffers = state.buffers;
  for (size_t id = 0; id < buffers.tensors.size(); ++id) {
    const Placement& p = buffers.tensors[id];
    if (p.storage < 0 || p.storage_offset < 0 || p.storage_offset + p.bytes > buffers.storages[p.storage].bytes)
      return broken(format("%{} lies outside its storage", id));
  }
  // Storages that are live at the same time must not overlap.
  std::vector<size_t> order;
  for (size_t i = 0; i < buffers.storages.size(); ++i)
    if (buffers.storages[i].space == plan::Space::kArena && buffers.storages[i].last_use >= 0) order.push_back(i);
  auto key = [&](size_t i) { return std::pair{buffers.storages[i].device, buffers.storages[i].offset}; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  for (size_t k = 0; k < order.size(); ++k)
    for (size_t m = k + 1; m < order.size(); ++m) {
      const Storage &a = buffers.storages[order[k]], &b = buffers.storages[order[m]];
      if (a.device != b.device || a.offset + a.extent <= b.offset) break;
      if (a.first_use <= b.last_use && b.first_use <= a.last_use)
        return broken(format("storages {} and {} overlap", order[k], order[m]));
    }
  return Ok{};
}

}  // namespace

std::string to_text(const LoweringState& state) {
  std::string out;
  for (size_t id = 0; id < state.graph.tensors.size(); ++id) out += tensor_line(state, id);
  for (size_t i = 0; i < state.graph.groups.size(); ++i) out += group_line(state, i);
  for (size_t i = 0; i < state.buffers.storages.size(); ++i) out += storage_line(state.buffers.storages[i], i);
  if (state.buffers.arena_bytes > 0) out += format("arena: {} bytes\n", state.buffers.arena_bytes);
  for (const tir::PrimFunc& kernel : state.out.kernels) out += "\n" + tir::to_text(kernel);
  return out;
}

Status verify_lowering(const LoweringState& state) {
  TW_TRY_STATUS(verify_groups(state.graph));
  TW_TRY_STATUS(verify_buffers(state));
  const Lowered& out = state.out;
  if (out.kernels.size() != out.plan.kernels.size() || out.params.size() != out.plan.params.size() ||
      out.traces.size() != out.plan.steps.size())
    return broken("the plan does not name what there is");
  return Ok{};
}

}  // namespace tilewright::lower
