// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include "ir/pass.h"
#include "lower/steps.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// Steps work on copies, so that the runner can compare before and after.
using Lowering = std::shared_ptr<const LoweringState>;

struct StepEntry {
  const char* name;
  LoweringStep step;
  const char* doc;
};
constexpr StepEntry kSteps[] = {
    {"ChooseKernels", choose_kernels, "An implementation and its configuration for every group"},
    {"PlaceTensors", place_tensors, "Views instead of copies, zeros around what padded kernels read"},
    {"SettleConfigurations", settle_configurations, "Configurations that depend on where operands lie"},
    {"RepackWeights", repack_weights, "Constants as the chosen kernels read them"},
    {"PlanBuffers", assign_buffers, "One arena, planned by lifetimes"},
    {"DescribePlan", describe_plan, "The plan's inputs, outputs and parameters"},
    {"EmitKernels", emit_kernels, "Loop functions, equal ones once, and the steps that call them"},
};

PassLevel<Lowering> lowering_level() {
  PassLevel<Lowering> level;
  level.print = [](const Lowering& l) { return to_text(*l); };
  level.verify = [](const Lowering& after, const Lowering&) { return verify_lowering(*after); };
  level.same = [](const Lowering& a, const Lowering& b) { return a == b; };
  return level;
}

// Errors of steps are returned through `failed` unchanged: the user's model caused them, not a pass.
std::vector<Pass<Lowering>> lowering_passes(LoweringSetting* setting, std::optional<Diagnostic>* failed) {
  std::vector<Pass<Lowering>> passes;
  for (const StepEntry& entry : kSteps) {
    auto run = [setting, failed, step = entry.step](const Lowering& before, PassContext&) -> Result<Lowering> {
      auto after = std::make_shared<LoweringState>(*before);
      auto changed = step(setting, after.get());
      if (!changed.ok()) return *failed = std::move(changed).error(), **failed;
      return *changed ? Lowering(std::move(after)) : before;
    };
    passes.push_back({{entry.name, 0, entry.doc, true}, std::move(run)});
  }
  return passes;
}

Result<Lowered> run_steps(const Module& module, LoweringSetting* setting, const WeightForms* forms,
                          PassContext* context) {
  auto start = std::make_shared<LoweringState>();
  start->graph = TW_TRY(extract_graph(module));
  start->graph.forms = forms;
  start->graph.apart = setting->memory.apart;
  start->out.plan.metadata = module.metadata;
  std::optional<Diagnostic> failed;
  const auto passes = lowering_passes(setting, &failed);
  const std::span<const Pass<Lowering>> table(passes);
  auto done = run_passes(Lowering(std::move(start)), pass_names(table), table, lowering_level(), *context);
  if (failed) return *std::move(failed);
  if (!done.ok()) return std::move(done).error();
  return (*done)->out;
}

}  // namespace

Result<Lowered> lower_module(const Module& fused, const Target& target, const LowerOptions& options) {
  const KernelChooser by_cost;
  PassContext own;
  Module module = split_groups(fused);
  std::vector<std::string> taken_apart;
  for (;;) {
    LoweringSetting setting{target, options.chooser ? *options.chooser : by_cost, options.device_targets,
                            options.memory};
    auto lowered = run_steps(module, &setting, options.forms, options.context ? options.context : &own);
    if (!setting.culprit) {
      if (lowered.ok()) lowered->taken_apart = std::move(taken_apart);
      return lowered;
    }
    taken_apart.push_back(lowered.error().message);
    module = split_groups(module, setting.culprit);
  }
}

}  // namespace tilewright::lower
