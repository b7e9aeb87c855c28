// SPDX-License-Identifier: Apache-2.0
// The steps that choose implementations and configurations.
#include <algorithm>

#include "lower/steps.h"

namespace tilewright::lower {
namespace {

// External functions and copies between devices.
std::shared_ptr<const Choice> plain_choice(const Graph& graph, const Group& group) {
  auto plain = std::make_shared<Choice>();
  plain->implementation = group.kind == plan::StepKind::kExternal
                              ? "external." + (group.compiler.empty() ? "linked" : group.compiler)
                              : "device_copy";
  for (const auto* list : {&group.inputs, &group.outputs})
    for (int id : *list) {
      const GraphTensor& t = graph.tensors[id];
      plain->cost.bytes += static_cast<double>(t.dtype.bytes_for(static_cast<uint64_t>(topi::product(t.shape))));
    }
  plain->parallel = false;
  return plain;
}

// Collects all missing operators into one error.
Diagnostic all_missing(const std::vector<std::string>& missing) {
  std::string all = missing[0];
  for (size_t i = 1; i < missing.size() && i < 20; ++i) all += "\n  " + missing[i];
  if (missing.size() > 20) all += format("\n  and {} more", missing.size() - 20);
  return Diagnostic(ErrorCode::kUnsupportedOp, all, {}, "`tilewright ops` lists the operators that compile");
}

}  // namespace

const Target& LoweringSetting::target_of(const Graph& graph, const Group& group) const {
  auto found = device_targets.find(graph.devices[graph.tensors[group.outputs[0]].device]);
  return found == device_targets.end() ? target : found->second;
}

Result<bool> choose_kernels(LoweringSetting* setting, LoweringState* state) {
  Graph& graph = state->graph;
  std::vector<std::string> missing;
  bool any = false;
  for (Group& group : graph.groups) {
    if (group.choice) continue;
    any = true;
    if (group.plain()) {
      group.choice = plain_choice(graph, group);
      continue;
    }
    auto choice = watched(setting, group, [&] {
      return choose_implementation(graph, group, setting->target_of(graph, group), setting->chooser);
    });
    if (setting->culprit) return std::move(choice).error();
    if (choice.ok()) {
      group.choice = *choice;
      continue;
    }
    // Not an unsupported model: either sizes are missing, or the chooser named something that does not exist.
    const ErrorCode code = choice.error().code;
    if (code == ErrorCode::kFreeDimension || code == ErrorCode::kInvalidArgument) return std::move(choice).error();
    std::string line = (choice.error().where.empty() ? "" : choice.error().where + ": ") + choice.error().message;
    if (std::find(missing.begin(), missing.end(), line) == missing.end()) missing.push_back(std::move(line));
  }
  if (!missing.empty()) return all_missing(missing);
  return any;
}

Result<bool> place_tensors(LoweringSetting*, LoweringState* state) {
  place(&state->graph);
  return true;
}

Result<bool> settle_configurations(LoweringSetting* setting, LoweringState* state) {
  bool changed = TW_TRY(choose_kernels(setting, state));
  for (Group& group : state->graph.groups) {
    if (!group.choice->kernel || !group.choice->kernel->by_place) continue;
    const Target& target = setting->target_of(state->graph, group);
    auto settled =
        TW_TRY(watched(setting, group, [&] { return choose_in_place(state->graph, group, target, setting->chooser); }));
    changed = changed || settled->configuration != group.choice->configuration;
    group.choice = std::move(settled);
  }
  return changed;
}

}  // namespace tilewright::lower
