// SPDX-License-Identifier: Apache-2.0
// Lowering, step by step: each is a function over the state, and the pass runner (ir/pass.h) runs, times, verifies and
// dumps them.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/format.h"
#include "lower/buffers.h"
#include "lower/lower.h"

namespace tilewright::lower {

// What the steps hand on.
struct LoweringState {
  Graph graph;
  Buffers buffers;
  Lowered out;
};

// What they are told, and what one that fails says.
struct LoweringSetting {
  const Target& target;
  const KernelChooser& chooser;
  const DeviceTargets& device_targets;
  const MemoryOptions& memory;
  // The function of the module whose group no kernel could be made of, when its operators may have kernels; else null.
  const relay::FunctionNode* culprit = nullptr;

  const Target& target_of(const Graph& graph, const Group& group) const;
};

// Each says whether it changed anything.
using LoweringStep = Result<bool> (*)(LoweringSetting*, LoweringState*);
// Gives every group without a choice an implementation and its configuration. Errors: UnsupportedOp, all of them at
// once.
Result<bool> choose_kernels(LoweringSetting* setting, LoweringState* state);
// place(): views, copies, halos.
Result<bool> place_tensors(LoweringSetting* setting, LoweringState* state);
// The copies' choices, and the configurations that depend on halos. After it, nothing is chosen any more.
Result<bool> settle_configurations(LoweringSetting* setting, LoweringState* state);
// Constants become what the chosen kernels read, tables become parameters.
Result<bool> repack_weights(LoweringSetting* setting, LoweringState* state);
// plan_buffers().
Result<bool> assign_buffers(LoweringSetting* setting, LoweringState* state);
// What the plan says of the model: inputs, outputs, parameters, memory.
Result<bool> describe_plan(LoweringSetting* setting, LoweringState* state);
// Kernels, equal ones once, and the steps that call them.
Result<bool> emit_kernels(LoweringSetting* setting, LoweringState* state);

// Everything that is known so far, a line for each thing.
std::string to_text(const LoweringState& state);
// Error: VerifyFailed with what does not hold.
Status verify_lowering(const LoweringState& state);

// Runs `work` on a group of several operators so that a failed check within it is an error that names the group.
template <class F>
auto watched(LoweringSetting* setting, const Group& group, F&& work) -> decltype(work()) {
  const bool several = group.name.find('+') != std::string::npos && !group.plain();
  if (!several) return work();
  std::string why;
  try {
    auto out = work();
    if (out.ok() || out.error().code != ErrorCode::kInternal) return out;
    why = out.error().message;
  } catch (const InternalError& e) {
    why = e.what();
  }
  setting->culprit = group.function;
  return Diagnostic(ErrorCode::kInternal,
                    format("{}{}: {}", group.name, group.source.empty() ? "" : format(" of {}", group.source), why));
}

}  // namespace tilewright::lower
