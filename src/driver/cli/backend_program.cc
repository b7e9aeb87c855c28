// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/backend_program.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/work_folder.h"
#include "driver/run_elsewhere.h"
#include "driver/vm.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

using runtime::vm::Object;
using Value = runtime::vm::Value;

Value value_of(const onnx::CaseValue& v) {
  if (v.is_sequence) {
    std::vector<Value> fields;
    for (const Tensor& t : v.sequence) fields.push_back(runtime::vm::make_tensor(t));
    return runtime::vm::make_adt(0, std::move(fields));
  }
  return v.absent ? runtime::vm::make_adt(runtime::vm::kNoneTag, {}) : runtime::vm::make_tensor(v.tensor);
}

Diagnostic differs(const std::string& where, std::string what) {
  return Diagnostic(ErrorCode::kAccuracyExceeded, std::move(what), where);
}

Result<double> compare(const Tensor& ours, const Tensor& expected, const std::string& where) {
  if (ours.dtype() != expected.dtype() || ours.shape() != expected.shape())
    return differs(where, format("{} {} where {} {} is expected", ours.dtype().str(), shape_str(ours.shape()),
                                 expected.dtype().str(), shape_str(expected.shape())));
  if (ours.dtype().is_string()) {
    if (ours.string_values() != expected.string_values()) return differs(where, "other texts than expected");
    return 0.0;
  }
  double worst = 0;
  for (int64_t i = 0; i < ours.size(); ++i) {
    if (!ours.dtype().is_float()) {
      if (ours.at_int(i) != expected.at_int(i))
        return differs(where, format("element {} is {}, not {}", i, ours.at_int(i), expected.at_int(i)));
      continue;
    }
    const double a = ours.at_double(i), b = expected.at_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::fabs(a - b) / (1e-7 + 1e-3 * std::fabs(b));
    worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error);
  }
  return worst;
}

Result<double> compare(const Value& ours, const onnx::CaseValue& expected) {
  if (expected.absent)
    return runtime::vm::is_none(ours) ? Result<double>(0.0) : differs(expected.name, "a value where none is expected");
  if (!expected.is_sequence) {
    if (ours->kind != Object::Kind::kTensor) return differs(expected.name, "not a tensor");
    return compare(ours->tensor, expected.tensor, expected.name);
  }
  if (ours->kind != Object::Kind::kAdt || ours->fields.size() != expected.sequence.size())
    return differs(expected.name, format("not a sequence of {}", expected.sequence.size()));
  double worst = 0;
  for (size_t i = 0; i < expected.sequence.size(); ++i) {
    if (ours->fields[i]->kind != Object::Kind::kTensor) return differs(expected.name, "not a sequence of tensors");
    worst = std::max(
        worst, TW_TRY(compare(ours->fields[i]->tensor, expected.sequence[i], format("{}[{}]", expected.name, i))));
  }
  return worst;
}

// The model's program; if it is to be `ready`, with the kernels of its regions of fixed sizes.
Result<runtime::vm::Program> program_of_case(const onnx::BackendCase& test, const std::string& target, int opt_level,
                                             bool ready) {
  BuildOptions build;
  build.opt_level = opt_level;
  build.target = target;
  auto program = TW_TRY(vm_program(test.model, build));
  if (ready) TW_TRY_STATUS(make_ready(&program, build));
  return program;
}

}  // namespace

Result<double> run_as_program(const onnx::BackendCase& test, const onnx::BackendCase::DataSet& data,
                              const std::string& target, int opt_level, bool without_compiler) {
  auto program = std::make_shared<runtime::vm::Program>(
      TW_TRY(program_of_case(test, target, opt_level, /*ready=*/without_compiler)));
  // Serialised and read back, like a program from a file.
  const std::string written = runtime::vm::write_program(*program);
  *program = TW_TRY(runtime::vm::read_program(std::as_bytes(std::span(written))));
  runtime::vm::SpecializedOptions options;
  options.threads = 1;
  options.evaluate = runtime::vm::evaluate_with(program, tw_compiler_evaluate, tw_compiler_last_error_message);
  runtime::vm::Specialize specialize;
  if (!without_compiler)
    specialize = runtime::vm::specialize_with(program, tw_compiler_specialize, tw_compiler_last_error_message);
  auto runner = TW_TRY(runtime::vm::ProgramRunner::create(program, specialize, options));
  std::vector<Value> inputs;
  for (const auto& spec : program->inputs) {
    auto given =
        std::find_if(data.inputs.begin(), data.inputs.end(), [&](const auto& v) { return v.name == spec.name; });
    if (given == data.inputs.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("the data set has no input '{}'", spec.name));
    inputs.push_back(value_of(*given));
  }
  const auto outputs = TW_TRY(runner->run_values(std::move(inputs)));
  double worst = 0;
  for (size_t i = 0; i < data.outputs.size(); ++i) {
    if (i >= outputs.size() || !outputs[i]) return differs(data.outputs[i].name, "nothing");
    worst = std::max(worst, TW_TRY(compare(outputs[i], data.outputs[i])));
  }
  return worst;
}

Result<double> run_as_program_elsewhere(const onnx::BackendCase& test, const onnx::BackendCase::DataSet& data,
                                        const std::string& target, int opt_level, const std::string& command) {
  const runtime::vm::Program program = TW_TRY(program_of_case(test, target, opt_level, /*ready=*/true));
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-program"));
  const std::string library = place.path() + "/program.so";
  TW_TRY_STATUS(export_program(program, "program", library));
  std::vector<std::pair<std::string, Tensor>> inputs;
  for (const auto& given : data.inputs) {
    if (given.is_sequence || given.absent)
      return Diagnostic(ErrorCode::kUnsupportedModel, "a command has no sequences and no absent values", given.name);
    inputs.emplace_back(given.name, given.tensor);
  }
  std::vector<std::pair<std::string, Tensor>> expected;
  for (const auto& output : data.outputs) {
    if (output.absent) return Diagnostic(ErrorCode::kUnsupportedModel, "a command has no absent values", output.name);
    if (!output.is_sequence) expected.emplace_back(output.name, output.tensor);
    for (const Tensor& item : output.sequence) expected.emplace_back(output.name, item);
  }
  const auto outputs = TW_TRY(run_elsewhere(library, inputs, expected.size(), command));
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, TW_TRY(compare(outputs[i], expected[i].second, expected[i].first)));
  return worst;
}

}  // namespace tilewright::driver
