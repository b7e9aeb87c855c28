// SPDX-License-Identifier: Apache-2.0
#include "driver/vm_verify.h"

#include <cmath>

#include "base/format.h"
#include "driver/vm.h"
#include "interpret/region.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

using Program = runtime::vm::Program;

// Adds to the report what verify_module finds for a region on these arguments.
Status verify_region(const Program& program, size_t index, std::span<const Tensor> arguments,
                     const VerifyOptions& options, VerifyReport* report) {
  const auto& region = program.regions[index];
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < arguments.size(); ++i) values[region.inputs[i]] = arguments[i];
  auto source = std::make_shared<const std::string>(program.source_of(index));
  VerifyOptions of_region = options;
  of_region.inputs = values;
  of_region.expected.clear();
  std::vector<std::string> by_value;
  const relay::Module module =
      TW_TRY(interpret::region_module(region.format, {std::as_bytes(std::span(*source)), source}, values, &by_value));
  auto found = TW_TRY(verify_module(module, of_region));
  report->steps += found.steps;
  report->ties += found.ties;
  if (!found.steps_add_up)
    report->largest_output_error = std::max(report->largest_output_error, found.largest_output_error);
  for (auto& m : found.mismatches) report->mismatches.push_back(std::move(m));
  if (report->pass_to_blame.empty()) report->pass_to_blame = found.pass_to_blame;
  return Ok{};
}

double worst_of(const Tensor& ours, const Tensor& expected, const VerifyOptions& options) {
  double magnitude = 0, worst = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.at_double(i))) magnitude = std::max(magnitude, std::fabs(expected.at_double(i)));
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = ours.at_double(i), b = expected.at_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double budget =
        ours.dtype().is_float() ? options.rtol * std::fabs(b) + options.atol * magnitude + options.absolute_atol : 0;
    const double ratio = budget > 0 ? std::fabs(a - b) / budget : HUGE_VAL;
    worst = std::max(worst, std::isnan(ratio) ? HUGE_VAL : ratio);
  }
  return worst;
}

}  // namespace

Result<VerifyReport> verify_program(Program made, const std::string& path, const VerifyOptions& options) {
  auto program = std::make_shared<const Program>(std::move(made));
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < program->inputs.size(); ++i) {
    const auto& spec = program->inputs[i];
    if (auto given = options.inputs.find(spec.name); given != options.inputs.end()) {
      inputs.push_back(given->second);
      continue;
    }
    for (int64_t d : spec.shape)
      if (d < 0)
        return Diagnostic(ErrorCode::kFreeDimension,
                          format("input '{}' is {}", spec.name, runtime::vm::free_shape_str(spec.shape)), path,
                          format("type --shape {}=, with a size for each '?'", spec.name));
    if (spec.kind != runtime::vm::TensorSpec::Kind::kTensor || spec.dtype.is_string())
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("there are no random values for the input '{}'", spec.name), path,
                        "give a folder with input_*.pb to --against");
    inputs.push_back(random_tensor(spec.dtype, spec.shape, options.seed + i));
  }
  VerifyReport report;
  const auto compile = runtime::vm::specialize_with(program, tw_compiler_specialize, tw_compiler_last_error_message);
  runtime::vm::SpecializedOptions run;
  run.evaluate_first = 0;  // compiled code is to be verified, not the interpreter
  run.evaluate = runtime::vm::evaluate_with(program, tw_compiler_evaluate, tw_compiler_last_error_message);
  auto runner = TW_TRY(runtime::vm::ProgramRunner::create(
      program,
      [&](size_t index, std::span<const Tensor> arguments) -> Result<runtime::vm::Specialization> {
        TW_TRY_STATUS(verify_region(*program, index, arguments, options, &report));
        return compile(index, arguments);
      },
      run));
  const auto outputs = TW_TRY(runner->run(std::move(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = i < program->outputs.size() ? program->outputs[i] : format("output {}", i);
    std::string line = format("{}: {} {}", name, outputs[i].dtype().str(), shape_str(outputs[i].shape()));
    if (auto expected = options.expected.find(name); expected != options.expected.end()) {
      const Tensor& e = expected->second;
      const bool alike = e.dtype() == outputs[i].dtype() && e.shape() == outputs[i].shape();
      const double worst = !alike                  ? HUGE_VAL
                           : e.dtype().is_string() ? (e.string_values() == outputs[i].string_values() ? 0 : HUGE_VAL)
                                                   : worst_of(outputs[i], e, options);
      report.largest_output_error = std::max(report.largest_output_error, worst);
      line += alike ? format(", {:.3g} of the budget", worst)
                    : format(" where {} {} is expected", e.dtype().str(), shape_str(e.shape()));
    }
    report.outputs.push_back(std::move(line));
  }
  report.outputs.push_back(
      format("a VM program: {} specialisations of its regions checked", runner->functions().compiled()));
  return report;
}

}  // namespace tilewright::driver
