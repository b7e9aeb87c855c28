// SPDX-License-Identifier: Apache-2.0
// VM programs' C interface (tilewright/vm.h), in the compiler's library and in libtilewright_vm.so.
#include <algorithm>
#include <atomic>

#include "base/format.h"
#include "interpret/find_compiler.h"
#include "runtime/artifact.h"
#include "runtime/c_support.h"
#include "runtime/vm/compiler_hook.h"
#include "runtime/vm/text_view.h"
#include "tilewright/vm.h"

using namespace tilewright;
using runtime::guarded;
using runtime::vm::Object;
using runtime::vm::TensorSpec;
using runtime::vm::Value;

struct tw_vm {
  std::shared_ptr<const runtime::vm::Program> program;
  std::unique_ptr<runtime::vm::ProgramRunner> runner;
  std::atomic<bool> interrupt{false};
  std::vector<std::string> dtypes;  // of the inputs, referenced by tw_tensor_info
  std::vector<Value> inputs;
  struct Output {
    tw_vm_kind kind = TW_VM_TENSOR;
    std::vector<Tensor> items;  // data that views refer to
    std::vector<runtime::vm::TextView> views;
  };
  std::vector<Output> outputs;  // empty before the first run
  std::string text;             // the last profile's
};

namespace {

Result<std::unique_ptr<tw_vm>> load(const std::string& path, const tw_vm_options& options) {
  auto vm = std::make_unique<tw_vm>();
  auto artifact = TW_TRY(runtime::Artifact::load(path));
  vm->program = TW_TRY(runtime::vm::program_of(artifact));
  if (!vm->program)
    return Diagnostic(ErrorCode::kUnsupportedModel, "the library is no VM program: its sizes are fixed", path,
                      "run it with tilewright::Executor (tilewright/runtime.h)");
  runtime::vm::SpecializedOptions chosen;
  chosen.threads = options.num_threads;
  if (options.keep > 0) chosen.keep = static_cast<size_t>(options.keep);
  if (options.always_compile) chosen.evaluate_first = 0;
  chosen.interrupt = &vm->interrupt;
  chosen.evaluate = runtime::vm::evaluate_with(vm->program, tw_compiler_evaluate, tw_compiler_last_error_message);
  runtime::vm::Specialize specialize;
  const interpret::Compiler compiler =
      vm->program->open_regions() > 0 ? interpret::find_compiler() : interpret::Compiler();
  if (compiler.specialize)
    specialize = runtime::vm::specialize_with(vm->program, compiler.specialize, compiler.message);
  vm->runner = TW_TRY(runtime::vm::ProgramRunner::create(vm->program, specialize, chosen));
  vm->inputs.resize(vm->program->inputs.size());
  for (const TensorSpec& input : vm->program->inputs)
    vm->dtypes.push_back(input.kind == TensorSpec::Kind::kOther ? "sequence or optional" : input.dtype.str());
  return vm;
}

Result<size_t> input_at(const tw_vm& vm, const char* name) {
  for (size_t i = 0; i < vm.program->inputs.size(); ++i)
    if (vm.program->inputs[i].name == name) return i;
  std::string known;
  for (const TensorSpec& input : vm.program->inputs) known += (known.empty() ? "" : ", ") + input.name;
  return Diagnostic(ErrorCode::kUnknownInput, format("there is no input '{}'", name), {},
                    "the inputs are " + (known.empty() ? "none" : known));
}

Result<Tensor> copy_of(const DLTensor& tensor, const std::string& role) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
    return Diagnostic(ErrorCode::kInvalidArgument, "the tensor has no shape", role);
  plan::TensorInfo info;
  info.dtype = TW_TRY(runtime::from_dlpack(tensor.dtype));
  info.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  TW_TRY_STATUS(runtime::check_tensor(&tensor, info, role));
  Tensor out(info.dtype, info.shape);
  if (out.bytes() > 0) TW_TRY_STATUS(runtime::copy_from(tensor, info.dtype, out.mutable_raw()));
  return out;
}

Status set_value(tw_vm* vm, const char* name, tw_vm_kind kind, const tw_text_tensor* items, uint64_t count) {
  TW_REQUIRE(vm);
  TW_REQUIRE(name);
  const size_t index = TW_TRY(input_at(*vm, name));
  const TensorSpec& input = vm->program->inputs[index];
  const bool tensor = kind == TW_VM_TENSOR;
  if (count > 0) TW_REQUIRE(items);
  if (kind < TW_VM_TENSOR || kind > TW_VM_NONE || (tensor && count != 1) || (kind == TW_VM_NONE && count != 0))
    return Diagnostic(ErrorCode::kInvalidArgument, format("input '{}': one tensor, a sequence or nothing", name));
  if (!tensor && input.kind != TensorSpec::Kind::kOther)
    return Diagnostic(ErrorCode::kTypeMismatch, "it is a tensor", format("input '{}'", name));
  std::vector<Value> fields;
  for (uint64_t i = 0; i < count; ++i) {
    Tensor copy = items[i].texts ? TW_TRY(runtime::vm::tensor_of(items[i]))
                                 : TW_TRY(copy_of(items[i].tensor, format("input '{}'", name)));
    if (tensor) TW_TRY_STATUS(runtime::vm::check_input(input, copy));
    fields.push_back(runtime::vm::make_tensor(std::move(copy)));
  }
  vm->inputs[index] =
      tensor ? fields[0] : runtime::vm::make_adt(kind == TW_VM_NONE ? runtime::vm::kNoneTag : 0, std::move(fields));
  return Ok{};
}

Result<tw_vm::Output> output_of(const Value& value, const std::string& name) {
  tw_vm::Output out;
  const Diagnostic other(ErrorCode::kTypeMismatch, "the output is no tensor and no sequence of tensors", name,
                         "give the model outputs that are tensors");
  if (!value) return other;
  if (value->kind == Object::Kind::kTensor) {
    out.items.push_back(value->tensor);
  } else if (value->kind == Object::Kind::kAdt) {
    out.kind = value->tag == runtime::vm::kNoneTag && value->fields.empty() ? TW_VM_NONE : TW_VM_SEQUENCE;
    for (const Value& field : value->fields) {
      if (!field || field->kind != Object::Kind::kTensor) return other;
      out.items.push_back(field->tensor);
    }
  } else {
    return other;
  }
  for (const Tensor& t : out.items) out.views.emplace_back(t);
  return out;
}

Status run(tw_vm* vm) {
  TW_REQUIRE(vm);
  for (size_t i = 0; i < vm->inputs.size(); ++i)
    if (!vm->inputs[i])
      return Diagnostic(ErrorCode::kInvalidArgument, "nothing is given",
                        format("input '{}'", vm->program->inputs[i].name), "set every input before the run");
  vm->outputs.clear();
  auto results = vm->runner->run_values(vm->inputs);
  vm->interrupt = false;
  for (const Value& value : TW_TRY(std::move(results)))
    vm->outputs.push_back(TW_TRY(output_of(value, vm->program->outputs[vm->outputs.size()])));
  return Ok{};
}

Status check_place(size_t count, uint64_t index, const char* kind) {
  if (index < count) return Ok{};
  return Diagnostic(ErrorCode::kUnknownInput, format("there is no {} {}; there are {}", kind, index, count));
}

Result<const tw_vm::Output*> output_at(const tw_vm* vm, uint64_t index) {
  TW_REQUIRE(vm);
  TW_TRY_STATUS(check_place(vm->program->outputs.size(), index, "output"));
  if (index >= vm->outputs.size())
    return Diagnostic(ErrorCode::kInvalidArgument, "no run has given outputs yet", {}, "call tw_vm_run");
  return &vm->outputs[index];
}

}  // namespace

extern "C" {

int32_t tw_vm_load(const char* path, const tw_vm_options* options, tw_vm** out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(path);
    TW_REQUIRE(out);
    *out = nullptr;
    *out = TW_TRY(load(path, TW_TRY(runtime::options_of(options)))).release();
    return Ok{};
  });
}

void tw_vm_free(tw_vm* vm) { delete vm; }

uint64_t tw_vm_num_inputs(const tw_vm* vm) { return vm ? vm->inputs.size() : 0; }
uint64_t tw_vm_num_outputs(const tw_vm* vm) { return vm ? vm->program->outputs.size() : 0; }

int32_t tw_vm_get_input_info(const tw_vm* vm, uint64_t index, tw_tensor_info* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(vm);
    TW_TRY_STATUS(check_place(vm->inputs.size(), index, "input"));
    const TensorSpec& input = vm->program->inputs[index];
    const bool ranked = input.kind == TensorSpec::Kind::kTensor;
    const bool plain = input.kind != TensorSpec::Kind::kOther && !input.dtype.is_string();
    return runtime::deliver({0, input.name.c_str(), vm->dtypes[index].c_str(),
                             plain ? runtime::to_dlpack(input.dtype) : DLDataType{kDLOpaqueHandle, 0, 0},
                             ranked ? static_cast<int32_t>(input.shape.size()) : -1, input.shape.data(), 0},
                            out);
  });
}

int32_t tw_vm_get_output_name(const tw_vm* vm, uint64_t index, const char** name) {
  return guarded([&]() -> Status {
    TW_REQUIRE(vm);
    TW_REQUIRE(name);
    TW_TRY_STATUS(check_place(vm->program->outputs.size(), index, "output"));
    *name = vm->program->outputs[index].c_str();
    return Ok{};
  });
}

int32_t tw_vm_set_input(tw_vm* vm, const char* name, const DLTensor* tensor) {
  return guarded([&]() -> Status {
    TW_REQUIRE(tensor);
    const tw_text_tensor item{*tensor, nullptr, nullptr};
    return set_value(vm, name, TW_VM_TENSOR, &item, 1);
  });
}

int32_t tw_vm_set_value(tw_vm* vm, const char* name, tw_vm_kind kind, const tw_text_tensor* items, uint64_t count) {
  return guarded([&] { return set_value(vm, name, kind, items, count); });
}

int32_t tw_vm_run(tw_vm* vm) {
  return guarded([&] { return run(vm); });
}

void tw_vm_interrupt(tw_vm* vm) {
  if (vm) vm->interrupt = true;
}

int32_t tw_vm_get_output_kind(const tw_vm* vm, uint64_t index, tw_vm_kind* kind, uint64_t* count) {
  return guarded([&]() -> Status {
    TW_REQUIRE(kind);
    const tw_vm::Output* output = TW_TRY(output_at(vm, index));
    *kind = output->kind;
    if (count) *count = output->items.size();
    return Ok{};
  });
}

int32_t tw_vm_get_output_item(const tw_vm* vm, uint64_t index, uint64_t item, tw_text_tensor* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(out);
    const tw_vm::Output* output = TW_TRY(output_at(vm, index));
    if (item >= output->views.size())
      return Diagnostic(ErrorCode::kUnknownInput,
                        format("output {} has no item {}; it has {}", index, item, output->views.size()));
    *out = output->views[item].tensor();
    return Ok{};
  });
}

int32_t tw_vm_get_output(const tw_vm* vm, uint64_t index, DLTensor* out) {
  return guarded([&]() -> Status {
    TW_REQUIRE(out);
    const tw_vm::Output* output = TW_TRY(output_at(vm, index));
    if (output->kind != TW_VM_TENSOR)
      return Diagnostic(ErrorCode::kTypeMismatch, format("output {} is not a tensor", index), {},
                        "ask tw_vm_get_output_kind, then tw_vm_get_output_item");
    const tw_text_tensor& value = output->views[0].tensor();
    if (value.texts)
      return Diagnostic(ErrorCode::kDtypeMismatch, format("output {} holds texts", index), {},
                        "ask tw_vm_get_output_item");
    *out = value.tensor;
    return Ok{};
  });
}

int32_t tw_vm_profile(tw_vm* vm, const char* form, const char** text) {
  return guarded([&]() -> Status {
    TW_REQUIRE(vm);
    TW_REQUIRE(form);
    TW_REQUIRE(text);
    const std::string_view name = form;
    auto* const write = name == "table"   ? runtime::vm::trace_table
                        : name == "json"  ? runtime::vm::trace_json
                        : name == "trace" ? runtime::vm::trace_chrome
                                          : nullptr;
    if (!write)
      return Diagnostic(ErrorCode::kInvalidArgument, format("there is no form '{}' of a profile", name), {},
                        "take table, json or trace");
    std::vector<runtime::vm::TraceEvent> events;
    vm->runner->set_trace(&events);
    Status status = run(vm);
    vm->runner->set_trace(nullptr);
    TW_TRY_STATUS(std::move(status));
    vm->text = write(events);
    *text = vm->text.c_str();
    return Ok{};
  });
}

uint64_t tw_vm_num_compiled(const tw_vm* vm) { return vm ? vm->runner->functions().compiled() : 0; }
uint64_t tw_vm_num_interpreted(const tw_vm* vm) { return vm ? vm->runner->functions().interpreted_regions() : 0; }

}  // extern "C"
