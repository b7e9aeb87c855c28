// SPDX-License-Identifier: Apache-2.0
// Lowering as a sequence of steps: each is a function over the state; the pass runner (ir/pass.h) runs, times, verifies
// and dumps them.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/format.h"
#include "lower/buffers.h"
#include "lower/lower.h"

namespace tilewright::lower {

// The state that is passed from step to step.
struct LoweringState {
  Graph graph;
  Buffers buffers;
  Lowered out;
};

// Inputs of the steps, and error details.
struct LoweringSetting {
  const Target& target;
  const KernelChooser& chooser;
  const DeviceTargets& device_targets;
  const MemoryOptions& memory;
  // The module function for whose group no kernel could be made although its operators may have kernels; else null.
  const relay::FunctionNode* culprit = nullptr;

  const Target& target_of(const Graph& graph, const Group& group) const;
};

// A step returns whether it changed anything.
using LoweringStep = Result<bool> (*)(LoweringSetting*, LoweringState*);
// Chooses an implementation and configuration for every group without one. Errors: UnsupportedOp, for all such groups
// at once.
Result<bool> choose_kernels(LoweringSetting* setting, LoweringState* state);
// Calls place(): views, copies, halos.
Result<bool> place_tensors(LoweringSetting* setting, LoweringState* state);
// Chooses implementations for copies, and configurations that depend on halos. Choices are final afterwards.
Result<bool> settle_configurations(LoweringSetting* setting, LoweringState* state);
// Packs constants for the chosen kernels; tables become parameters.
Result<bool> repack_weights(LoweringSetting* setting, LoweringState* state);
// Calls plan_buffers().
Result<bool> assign_buffers(LoweringSetting* setting, LoweringState* state);
// Describes the model in the plan: inputs, outputs, parameters, memory.
Result<bool> describe_plan(LoweringSetting* setting, LoweringState* state);
// Emits kernels, equal ones once, and the steps that call them.
Result<bool> emit_kernels(LoweringSetting* setting, LoweringState* state);

// The state as text, one line per item.
std::string to_text(const LoweringState& state);
// Error: VerifyFailed with the violated invariant.
Status verify_lowering(const LoweringState& state);

// Runs `work` on a group; if the group has several operators, a failed check becomes an error that names the group.
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
