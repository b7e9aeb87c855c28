// SPDX-License-Identifier: Apache-2.0
#include "tune/task.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lower/lower.h"
#include "relay/text.h"

namespace tilewright::tune {
namespace {

// Decides like the cost model and records the alternatives.
class Witness : public lower::KernelChooser {
 public:
  struct Site {
    relay::Expr function;  // keeps the group's address from being reused
    struct Kind {
      Workload workload;
      std::string key;  // of the workload
      std::vector<const lower::Implementation*> implementations;
    };
    std::vector<Kind> kinds;  // one per workload
    lower::Decision decision;
    const lower::Implementation* implementation = nullptr;
  };

  lower::Decision choose(const lower::Problem& problem, std::span<const lower::Candidate> candidates) const override {
    lower::Decision decision = KernelChooser::choose(problem, candidates);
    auto [slot, fresh] = sites_.try_emplace(problem.group.function);
    Site& site = slot->second;
    site.function = relay::Expr(problem.group.function);
    site.decision = decision;
    site.implementation = candidates[decision.candidate].implementation;
    if (fresh) {
      // Loops for what has no template are not worth trying beside one.
      for (const lower::Candidate& candidate : candidates)
        if (candidate.implementation->plevel > lower::kLastResort || candidate.implementation == site.implementation)
          add(problem, *candidate.implementation, &site);
      std::sort(site.kinds.begin(), site.kinds.end(),
                [](const Site::Kind& a, const Site::Kind& b) { return a.workload.name < b.workload.name; });
      for (Site::Kind& kind : site.kinds)
        if (auto [space, first] = spaces_.try_emplace(kind.key); first)
          space->second = Space{problem.group.function, KnobSpace(problem, kind.implementations)};
    } else {
      // Called again, with the chosen implementation, once halos are known.
      for (Site::Kind& kind : site.kinds)
        if (Space& space = spaces_.at(kind.key);
            space.of == problem.group.function && std::find(kind.implementations.begin(), kind.implementations.end(),
                                                            site.implementation) != kind.implementations.end())
          space.space = KnobSpace(problem, kind.implementations);
    }
    return decision;
  }

  const Site* site(const relay::ExprNode* function) const {
    const auto found = sites_.find(function);
    return found == sites_.end() ? nullptr : &found->second;
  }

  const KnobSpace& space(const std::string& key) const { return spaces_.at(key).space; }

 private:
  // Of the first group with the workload: to list its configurations takes longer than all else here.
  struct Space {
    const relay::ExprNode* of = nullptr;
    KnobSpace space;
  };
  static void add(const lower::Problem& problem, const lower::Implementation& implementation, Site* site) {
    Workload workload = workload_of(problem, implementation);
    std::string key = workload.key();
    for (Site::Kind& kind : site->kinds)
      if (kind.key == key) {
        kind.implementations.push_back(&implementation);
        return;
      }
    site->kinds.push_back({std::move(workload), std::move(key), {&implementation}});
  }
  mutable std::unordered_map<const relay::ExprNode*, Site> sites_;
  mutable std::map<std::string, Space> spaces_;  // by the workload's key
};

// Wraps the group in a main function with its operands as parameters and constants.
TrialModule trial_module(const lower::StepTrace& trace) {
  const auto* function = relay::as<relay::FunctionNode>(trace.function);
  std::vector<relay::Expr> params, args;
  size_t next = 0;
  auto operand = [&](const Type& type) {
    const Tensor& constant = trace.inputs[next++].constant;
    if (constant.defined()) return relay::make_constant(constant);
    params.push_back(relay::make_var("p" + std::to_string(params.size()), type));
    return params.back();
  };
  for (const relay::Expr& param : function->params) {
    const auto* tuple = as_tuple(param->type);
    if (!tuple) {
      args.push_back(operand(param->type));
      continue;
    }
    std::vector<relay::Expr> fields;
    for (const Type& field : tuple->fields) fields.push_back(operand(field));
    args.push_back(relay::make_tuple(std::move(fields)));
  }
  const relay::Expr main = relay::make_function(params, relay::call_function(trace.function, args));
  relay::ModuleText printed = relay::print_module(relay::Module().with_main(main));
  TrialModule out{std::move(printed.text), {}};
  for (const Tensor& constant : printed.constants) out.constants.emplace_back(constant.dtype(), constant.shape());
  return out;
}

}  // namespace

Result<std::vector<Task>> extract_tasks(const relay::Module& fused, const Target& target) {
  const Witness witness;
  lower::LowerOptions options;
  options.chooser = &witness;
  const lower::Lowered lowered = TW_TRY(lower::lower_module(fused, target, options));
  std::vector<Task> tasks;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < lowered.traces.size(); ++i) {
    const lower::StepTrace& trace = lowered.traces[i];
    const Witness::Site* site = witness.site(trace.function.get());
    if (!site) continue;
    for (const Witness::Site::Kind& kind : site->kinds) {
      const KnobSpace& space = witness.space(kind.key);
      if (!space.worth_tuning()) continue;
      auto [slot, fresh] = known.try_emplace(kind.key, tasks.size());
      if (!fresh) {
        ++tasks[slot->second].calls;
        continue;
      }
      Task task;
      task.workload = kind.workload;
      task.target = target.str();
      task.group = lowered.plan.steps[i].name;
      task.module = trial_module(trace);
      task.space = space;
      task.chosen = {site->implementation, trace.choice->configuration};
      task.flops = trace.choice->cost.flops;
      task.predicted_us = trace.choice->cost.microseconds;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

}  // namespace tilewright::tune
