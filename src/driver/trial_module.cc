// SPDX-License-Identifier: Apache-2.0
#include "driver/trial_module.h"

#include <map>
#include <set>

#include "base/format.h"
#include "driver/build.h"
#include "driver/model_library.h"
#include "driver/verify.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {
using namespace relay;

// Chooses for each group what its trial says.
class ByTrial : public lower::KernelChooser {
 public:
  explicit ByTrial(const std::vector<tune::Trial>& trials) : trials_(trials) {}
  void add(const ExprNode* function, size_t trial) { of_[function] = trial; }
  // Why the trial's kernel was not made; empty if it was.
  std::string why_not(size_t trial) const {
    const auto found = refused_.find(trial);
    return found == refused_.end() ? "" : found->second;
  }

  lower::Decision choose(const lower::Problem& p, std::span<const lower::Candidate> candidates) const override {
    const auto trial = of_.find(p.group.function);
    if (trial == of_.end() || trials_[trial->second].implementation.empty())
      return KernelChooser::choose(p, candidates);
    const tune::Trial& wanted = trials_[trial->second];
    for (size_t i = 0; i < candidates.size(); ++i)
      if (wanted.implementation == candidates[i].implementation->name) {
        if (candidates[i].implementation->instantiate(p, wanted.configuration)) return {i, wanted.configuration};
        refused_[trial->second] =
            format("{} has no configuration '{}' here", wanted.implementation, wanted.configuration);
        return KernelChooser::choose(p, candidates);
      }
    refused_.try_emplace(trial->second, format("'{}' is no kernel of this group", wanted.implementation));
    return KernelChooser::choose(p, candidates);
  }

 private:
  const std::vector<tune::Trial>& trials_;
  std::map<const ExprNode*, size_t> of_;
  mutable std::map<size_t, std::string> refused_;
};

Expr copy_of(const Expr& x) {
  const Expr v = make_var("x", x->type);
  return call_function(make_function({v}, call("copy", {v}), {{"Primitive", int64_t{1}}}), {x});
}

// The functions of one trial: the group and its operand copies.
struct Parts {
  Expr group;
  std::vector<Expr> copies;
  Expr call;
};

// Replaces parameters of the parsed text by copies of `operands`.
Result<Parts> parts_of(const tune::TrialModule& module, const std::vector<Tensor>& constants,
                       std::vector<Expr>* operands) {
  ParseOptions parse;
  parse.origin = "a task's text";
  const Module parsed = TW_TRY(parse_module(module.text, constants, parse));
  const FunctionNode* main = parsed.main_function();
  const auto* body = main ? as<CallNode>(main->body) : nullptr;
  if (!body || !as<FunctionNode>(body->callee))
    return Diagnostic(ErrorCode::kProtocolError, "a task's text is no call of one group");
  if (operands->empty()) *operands = main->params;
  Parts out;
  std::map<const VarNode*, Expr> values;
  for (size_t i = 0; i < main->params.size(); ++i) {
    const Expr copy = copy_of((*operands)[i]);
    out.copies.push_back(as<CallNode>(copy)->callee);
    values[as<VarNode>(main->params[i])] = copy;
  }
  out.group = body->callee;
  std::vector<Expr> args;
  for (const Expr& arg : body->args) args.push_back(substitute(arg, values));
  out.call = call_function(out.group, std::move(args));
  return out;
}

std::vector<Tensor> constants_of(const tune::TrialModule& module) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < module.constants.size(); ++i)
    out.push_back(random_tensor(module.constants[i].first, module.constants[i].second, i));
  return out;
}

}  // namespace

Result<std::string> build_trial_library(const tune::Batch& batch, const std::string& path) {
  if (batch.trials.size() != 1) return Diagnostic(ErrorCode::kProtocolError, "one trial is one library");
  ParseOptions parse;
  parse.origin = "a task's text";
  const Module module = TW_TRY(parse_module(batch.module.text, constants_of(batch.module), parse));
  const FunctionNode* main = module.main_function();
  const auto* body = main ? as<CallNode>(main->body) : nullptr;
  if (!body || !as<FunctionNode>(body->callee))
    return Diagnostic(ErrorCode::kProtocolError, "a task's text is no call of one group");
  auto chooser = std::make_shared<ByTrial>(batch.trials);
  chooser->add(body->callee.get(), 0);
  BuildOptions options;
  options.target = batch.target;
  options.name = "trial";
  options.chooser = chooser;
  options.ahead_of_time = AheadOfTime{};
  const Built built = TW_TRY(build_fused(module, options));
  if (std::string why = chooser->why_not(0); !why.empty()) return why;
  const Built* const models[] = {&built};
  TW_TRY_STATUS(write_model_library(models, path));
  return std::string();
}

Result<BuiltTrials> build_trials(const tune::Batch& batch) {
  const std::vector<Tensor> constants = constants_of(batch.module);
  auto chooser = std::make_shared<ByTrial>(batch.trials);
  std::vector<Expr> operands, results;
  std::vector<Parts> parts;
  BuiltTrials out;
  out.trials.resize(batch.trials.size());
  for (size_t i = 0; i < batch.trials.size(); ++i) {
    parts.push_back(TW_TRY(parts_of(batch.module, constants, &operands)));
    chooser->add(parts[i].group.get(), i);
    out.trials[i].first_output = results.size();
    const auto* tuple = as_tuple(parts[i].call->type);
    for (size_t k = 0; tuple && k < tuple->fields.size(); ++k)
      results.push_back(make_get(parts[i].call, static_cast<int64_t>(k)));
    if (!tuple) results.push_back(parts[i].call);
    out.trials[i].outputs = results.size() - out.trials[i].first_output;
  }
  BuildOptions options;
  options.target = batch.target;
  options.name = "trials";
  options.chooser = chooser;
  options.kernel_cache = batch.folder + "/kernels";
  const Built built = TW_TRY(build_fused(Module().with_main(make_function(operands, make_tuple(results))), options));
  std::map<const ExprNode*, size_t> step_of;
  for (size_t i = 0; i < built.lowered.traces.size(); ++i) step_of[built.lowered.traces[i].function.get()] = i;
  for (size_t i = 0; i < parts.size(); ++i) {
    TrialSteps& trial = out.trials[i];
    const auto kernel = step_of.find(parts[i].group.get());
    trial.why = kernel == step_of.end() ? "the group has no kernel as a whole" : chooser->why_not(i);
    trial.built = trial.why.empty();
    if (kernel != step_of.end()) trial.kernel = kernel->second;
    for (const Expr& copy : parts[i].copies)
      if (const auto step = step_of.find(copy.get()); step != step_of.end()) trial.operands.push_back(step->second);
  }
  out.path = batch.folder + "/trials.so";
  TW_TRY_STATUS(export_library(built, out.path, OutputForm::kLibrary));
  return out;
}

}  // namespace tilewright::driver
