// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/specialized.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime::vm {
namespace {

DLTensor view_of(const Tensor& t, std::vector<int64_t>* shape) {
  *shape = t.shape();
  return {const_cast<std::byte*>(t.raw()), {kDLCPU, 0}, static_cast<int32_t>(shape->size()), to_dlpack(t.dtype()), shape->data(), nullptr, 0};
}

std::string bytes_of(const Tensor& t) { return {reinterpret_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())}; }

}  // namespace

SpecializedFunctions::SpecializedFunctions(std::shared_ptr<const Program> program, Specialize specialize, const SpecializedOptions& options)
    : program_(std::move(program)), specialize_(std::move(specialize)), options_(options), pool_(std::make_shared<MemoryPool>(options.keep_bytes)) {}

Result<SpecializedFunctions::Entry*> SpecializedFunctions::entry_for(size_t index, std::span<const Tensor> arguments) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->index != index) continue;
    bool same = true;
    for (size_t i = 0; same && i < arguments.size(); ++i) same = it->shapes[i] == arguments[i].shape();
    for (size_t i = 0; same && i < it->values.size(); ++i) {
      const Tensor& t = arguments[it->values[i].first];
      const std::string& kept = it->values[i].second;
      same = t.bytes() == kept.size() && (kept.empty() || std::memcmp(t.raw(), kept.data(), kept.size()) == 0);
    }
    if (!same) continue;
    entries_.splice(entries_.begin(), entries_, it);
    return &entries_.front();
  }
  if (!specialize_)
    return Diagnostic(ErrorCode::kUnsupportedModel, "the program has to be compiled for these shapes, and there is no compiler here", {},
                      "install the compiler beside the runtime, or compile the model for fixed shapes with --shape");
  auto made = TW_TRY(specialize_(index, arguments));
  ++compiled_;
  Entry entry{index, {}, {}, nullptr, {}};
  for (const Tensor& t : arguments) entry.shapes.push_back(t.shape());
  for (size_t i : made.by_value) entry.values.emplace_back(i, bytes_of(arguments[i]));
  const auto& names = program_->regions[index].inputs;
  for (const auto& info : made.artifact->plan().inputs) {
    auto at = std::find(names.begin(), names.end(), info.name);
    if (at == names.end()) return Diagnostic(ErrorCode::kInternal, format("the specialisation has an input '{}' that its region lacks", info.name));
    entry.arguments.push_back(static_cast<size_t>(at - names.begin()));
  }
  entry.executor = TW_TRY(Executor::create(made.artifact, {options_.threads, -1}));
  entries_.push_front(std::move(entry));
  while (entries_.size() > std::max<size_t>(1, options_.keep)) entries_.pop_back();
  return &entries_.front();
}

Status SpecializedFunctions::call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) {
  std::vector<Tensor> arguments;
  for (const Value& v : inputs) {
    if (!v || v->kind != Object::Kind::kTensor) return Diagnostic(ErrorCode::kTypeMismatch, format("argument {} of a kernel is not a tensor", arguments.size()));
    arguments.push_back(v->tensor);
  }
  if (index >= program_->regions.size() || arguments.size() != program_->regions[index].inputs.size())
    return Diagnostic(ErrorCode::kBadArtifact, format("region {} does not take {} arguments", index, arguments.size()));
  Entry* entry = TW_TRY(entry_for(index, arguments));
  const plan::Plan& plan = entry->executor->plan();
  if (plan.outputs.size() != outputs.size())
    return Diagnostic(ErrorCode::kBadArtifact, format("a region makes {} tensors where {} are expected", plan.outputs.size(), outputs.size()));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    DLTensor view = view_of(arguments[entry->arguments[i]], &shape);
    TW_TRY_STATUS(entry->executor->bind_input(i, &view));
  }
  std::vector<Tensor> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool given = outputs[i] && outputs[i]->kind == Object::Kind::kTensor;
    made.push_back(given ? outputs[i]->tensor : TW_TRY(pool_->allocate(plan.outputs[i].dtype, plan.outputs[i].shape)));
    DLTensor view = view_of(made.back(), &shape);
    TW_TRY_STATUS(entry->executor->bind_output(i, &view));
  }
  TW_TRY_STATUS(entry->executor->run());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i]) outputs[i] = make_tensor(std::move(made[i]));
  return Ok{};
}

Result<std::unique_ptr<ProgramRunner>> ProgramRunner::create(const std::shared_ptr<const Program>& program, Specialize specialize, const SpecializedOptions& options) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner);
  runner->program_ = program;
  runner->functions_ = std::make_shared<SpecializedFunctions>(program, std::move(specialize), options);
  runner->machine_ = TW_TRY(VirtualMachine::create(std::shared_ptr<const Executable>(program, &program->executable), runner->functions_));
  return runner;
}

Result<std::vector<Tensor>> ProgramRunner::run(std::vector<Tensor> inputs) {
  const auto& specs = program_->inputs;
  if (inputs.size() != specs.size()) return Diagnostic(ErrorCode::kInvalidArgument, format("the program takes {} inputs, {} are given", specs.size(), inputs.size()));
  std::vector<Value> arguments;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Tensor& t = inputs[i];
    if (!(t.dtype() == specs[i].dtype)) return Diagnostic(ErrorCode::kDtypeMismatch, format("expected {}, got {}", specs[i].dtype.str(), t.dtype().str()), format("input '{}'", specs[i].name));
    bool fits = t.shape().size() == specs[i].shape.size();
    for (size_t d = 0; fits && d < specs[i].shape.size(); ++d) fits = specs[i].shape[d] == -1 || specs[i].shape[d] == t.shape()[d];
    if (!fits) return Diagnostic(ErrorCode::kShapeMismatch, format("the tensor is {}, the model takes {}", shape_str(t.shape()), free_shape_str(specs[i].shape)), format("input '{}'", specs[i].name));
    arguments.push_back(make_tensor(t));
  }
  Value result = TW_TRY(machine_->invoke("main", std::move(arguments)));
  std::vector<Tensor> out;
  std::vector<Value> parts;
  if (result && result->kind == Object::Kind::kAdt) parts = result->fields;
  else parts = {result};
  for (const Value& v : parts) {
    if (!v || v->kind != Object::Kind::kTensor) return Diagnostic(ErrorCode::kTypeMismatch, "the program's result is not a tensor or a tuple of tensors");
    out.push_back(v->tensor);
  }
  return out;
}

Result<std::shared_ptr<const Program>> program_of(const Artifact& artifact) {
  const auto& plan = artifact.plan();
  auto kind = plan.metadata.find("kind");
  if (kind == plan.metadata.end() || kind->second != kProgramKind) return std::shared_ptr<const Program>();
  if (plan.params.size() != 1) return Diagnostic(ErrorCode::kBadArtifact, "the artifact lacks its VM program", artifact.path(), "compile the model again");
  auto program = read_program({artifact.params() + plan.params[0].offset, static_cast<size_t>(plan.params[0].bytes)});
  if (!program.ok()) return std::move(program).error().at(artifact.path());
  return std::shared_ptr<const Program>(std::make_shared<Program>(std::move(*program)));
}

}  // namespace tilewright::runtime::vm
