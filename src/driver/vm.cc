// SPDX-License-Identifier: Apache-2.0
#include "driver/vm.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/version.h"
#include "codegen/codegen.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/import.h"
#include "relay/passes/dynamic_to_static.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {

using runtime::vm::Instruction;
using runtime::vm::Opcode;
using runtime::vm::Program;

// Values of more bytes than this are never compiled in: they are data.
constexpr uint64_t kLargestKeyBytes = 4096;

bool has_free_input(const relay::Module& module) {
  const auto* main = module.main_function();
  return main && std::any_of(main->params.begin(), main->params.end(), [](const relay::Expr& p) {
           const auto* t = as_tensor(p->type);
           return t && !static_shape(t->shape);
         });
}

// main(inputs) = region(inputs): one packed call, and a tuple when there are several outputs.
runtime::vm::Function main_of(const std::vector<runtime::vm::TensorSpec>& inputs, size_t outputs) {
  runtime::vm::Function f;
  f.name = "main";
  const auto n = static_cast<int64_t>(inputs.size()), m = static_cast<int64_t>(outputs);
  for (const auto& t : inputs) f.params.push_back(t.name);
  f.param_devices.assign(inputs.size(), 0);
  Instruction call{Opcode::kInvokePacked, {0, n + m, m}};
  for (int64_t r = 0; r < n + m; ++r) call.fields.push_back(r);
  f.code.push_back(std::move(call));
  int64_t result = n;
  f.registers = n + m;
  if (m != 1) {
    Instruction tuple{Opcode::kAllocADT, {0, m, n + m}};
    for (int64_t r = n; r < n + m; ++r) tuple.fields.push_back(r);
    f.code.push_back(std::move(tuple));
    result = n + m;
    ++f.registers;
  }
  f.code.push_back({Opcode::kRet, {result}});
  return f;
}

}  // namespace

bool can_be_vm(const std::string& output, const BuildOptions& options) { return options.constants.empty() && output_form(output) == OutputForm::kLibrary; }

Result<bool> needs_vm(const std::string& path, const BuildOptions& options) {
  std::vector<std::string> needed;
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.needed_constants = &needed;
  auto module = onnx::import_onnx(path, import);
  if (module.ok()) return has_free_input(*module);
  return module.error().code == ErrorCode::kFreeDimension || !needed.empty();
}

Result<Program> vm_program(const std::string& path, const BuildOptions& options) {
  auto bytes = TW_TRY(onnx::map_file(path));
  auto model = onnx::read_model(bytes, "");
  if (!model.ok()) {
    if (auto whole = onnx::read_model(path); !whole.ok()) return std::move(whole).error();
    return Diagnostic(ErrorCode::kUnsupportedModel, "a model with free sizes and weights in further files cannot become a VM program", path,
                      "store the weights inside the model file, or give the input sizes with --shape name=1x3x224x224");
  }
  Program p;
  p.target = options.target;
  std::vector<std::string> names;
  for (const auto& input : model->graph.inputs) {
    if (std::any_of(model->graph.initializers.begin(), model->graph.initializers.end(), [&](const auto& i) { return i.name == input.name; })) continue;
    if (input.type.kind != onnx::ValueType::kTensor || !input.type.elem || !input.type.shape)
      return Diagnostic(ErrorCode::kUnsupportedModel, format("input '{}' is {}, not a tensor of known rank", input.name, input.type.str()), path);
    runtime::vm::TensorSpec spec{input.name, *input.type.elem, {}};
    auto given = options.shapes.find(input.name);
    if (given != options.shapes.end() && given->second.size() != input.type.shape->size())
      return Diagnostic(ErrorCode::kShapeMismatch, format("input '{}' has {} dimensions, --shape gives {}", input.name, input.type.shape->size(), given->second.size()), path);
    for (size_t d = 0; d < input.type.shape->size(); ++d) {
      const auto& dim = (*input.type.shape)[d];
      spec.shape.push_back(given != options.shapes.end() && given->second[d] >= 0 ? given->second[d] : dim.value.value_or(-1));
    }
    names.push_back(input.name);
    p.inputs.push_back(std::move(spec));
  }
  for (const auto& [name, shape] : options.shapes)
    if (std::find(names.begin(), names.end(), name) == names.end()) return Diagnostic(ErrorCode::kUnknownInput, format("--shape names the input '{}', which the model does not have", name), path);
  for (const auto& output : model->graph.outputs) p.outputs.push_back(output.name);
  p.regions.push_back({"onnx", names, std::string(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size())});
  p.executable.primitives = {"region_0"};
  p.executable.functions = {main_of(p.inputs, p.outputs.size())};
  TW_TRY_STATUS(runtime::vm::verify_executable(p.executable));
  return p;
}

Status export_program(const Program& program, const std::string& name, const std::string& path) {
  Built built;
  built.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(program.target))));
  plan::Plan& plan = built.lowered.plan;
  const std::string bytes = runtime::vm::write_program(program);
  const auto n = static_cast<int64_t>(bytes.size());
  plan.model_name = name;
  plan.compiler_version = version();
  plan.target = built.target.str();
  plan.cpu_features = built.target.cpu_features;
  plan.metadata["kind"] = runtime::vm::kProgramKind;
  plan.params.push_back({"program", kUInt8, {n}, "", 0, static_cast<uint64_t>(n)});
  plan.params_bytes = (static_cast<uint64_t>(n) + 63) / 64 * 64 + 64;
  built.lowered.params.push_back(Tensor::view(kUInt8, {n}, bytes.data(), nullptr));
  return export_library(built, path);
}

Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options) {
  BuildOptions lean = options;
  lean.keep_modules = false;
  auto built = build_onnx(path, lean);
  if (built.ok()) return export_library_and_release(&*built, output);
  if (!can_be_vm(output, options) || !TW_TRY(needs_vm(path, options))) return std::move(built).error().at(path);
  return export_program(TW_TRY(vm_program(path, options)), std::filesystem::path(path).stem().string(), output);
}

namespace {

// The region's main with the arguments' shapes; `constants` are parameters that become their values.
Result<relay::Module> with_arguments(const relay::Module& module, const std::map<std::string, Tensor>& arguments, const std::vector<std::string>& constants) {
  const auto* main = module.main_function();
  std::map<const relay::VarNode*, relay::Expr> values;
  std::vector<relay::Expr> params;
  for (const auto& p : main->params) {
    const auto* var = relay::as<relay::VarNode>(p);
    auto given = arguments.find(var->name);
    if (given == arguments.end()) return Diagnostic(ErrorCode::kUnknownInput, format("the region's parameter '{}' is not given", var->name));
    const Tensor& t = given->second;
    if (std::find(constants.begin(), constants.end(), var->name) != constants.end()) {
      Tensor copy(t.dtype(), t.shape());
      if (t.bytes()) std::memcpy(copy.mutable_raw(), t.raw(), t.bytes());
      values[var] = relay::make_constant(std::move(copy));
      continue;
    }
    params.push_back(relay::make_var(var->name, tensor_type(to_shape(t.shape()), t.dtype())));
    values[var] = params.back();
  }
  return relay::Module().with_main(relay::make_function(std::move(params), relay::substitute(main->body, values)));
}

Result<Built> build_relay_region(const onnx::SharedBytes& source, const std::map<std::string, Tensor>& arguments, const BuildOptions& options,
                                 std::vector<std::string>* by_value) {
  relay::ParseOptions parse;
  parse.origin = "region";
  const relay::Module module = TW_TRY(relay::parse_module({reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()}, {}, parse));
  if (!module.main_function()) return Diagnostic(ErrorCode::kBadArtifact, "a region has no main function");
  auto built = build(TW_TRY(with_arguments(module, arguments, {})), options);
  if (built.ok() || built.error().code != ErrorCode::kFreeDimension) return built;
  // Sizes that small integers decide: those are compiled in.
  for (const auto& [name, t] : arguments)
    if ((t.dtype().is_integral() || t.dtype().is_bool()) && t.bytes() <= kLargestKeyBytes) by_value->push_back(name);
  if (by_value->empty()) return built;
  PassContext context;
  return build(TW_TRY(relay::dynamic_to_static(TW_TRY(with_arguments(module, arguments, *by_value)), context)), options);
}

}  // namespace

Result<Built> build_region(const std::string& format_name, const onnx::SharedBytes& source, const std::map<std::string, Tensor>& arguments,
                           const BuildOptions& options, std::vector<std::string>* by_value) {
  if (format_name == "relay") return build_relay_region(source, arguments, options, by_value);
  if (format_name != "onnx") return Diagnostic(ErrorCode::kBadArtifact, format("a region is in the format '{}', which this compiler does not know", format_name));
  const onnx::Model model = TW_TRY(onnx::read_model(source, ""));
  onnx::ImportOptions import;
  for (const auto& info : model.graph.inputs) {
    auto given = arguments.find(info.name);
    if (given == arguments.end()) continue;
    auto& shape = import.shapes[info.name] = given->second.shape();
    for (size_t d = 0; info.type.shape && d < shape.size() && d < info.type.shape->size(); ++d)
      if ((*info.type.shape)[d].value) shape[d] = -1;  // fixed in the model already
  }
  while (true) {
    std::vector<std::string> needed;
    import.needed_constants = &needed;
    auto module = onnx::import_onnx(model, import);
    if (module.ok()) {
      for (const auto& [name, value] : import.constants) by_value->push_back(name);
      return build(*module, options);
    }
    bool more = false;
    for (const auto& name : needed) {
      auto given = arguments.find(name);
      if (given == arguments.end() || given->second.bytes() > kLargestKeyBytes || import.constants.count(name)) continue;
      import.constants[name] = given->second;
      import.shapes.erase(name);
      more = true;
    }
    if (!more) return std::move(module).error();
  }
}

}  // namespace tilewright::driver
