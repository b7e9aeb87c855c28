// SPDX-License-Identifier: Apache-2.0
#include "driver/vm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/version.h"
#include "codegen/codegen.h"
#include "driver/relay_file.h"
#include "driver/vm_onnx.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/import.h"
#include "relay/interpreter.h"
#include "relay/op.h"
#include "relay/passes/dynamic_to_static.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {

using runtime::vm::Program;

// Values of more bytes than this are never compiled in: they are data.
constexpr uint64_t kLargestKeyBytes = 4096;
constexpr int64_t kMostDecidingFloats = 4;

// Of an input, or of a result whose size its operand's data say.
bool has_free_size(const relay::Module& module) {
  const auto* main = module.main_function();
  if (!main) return false;
  // Also one of several results (Unique).
  auto free = [](const Type& type) {
    const auto* tuple = as_tuple(type);
    const std::vector<Type> parts = tuple ? tuple->fields : std::vector<Type>{type};
    return std::any_of(parts.begin(), parts.end(), [](const Type& part) {
      const auto* t = as_tensor(part);
      return t && !static_shape(t->shape);
    });
  };
  for (const relay::Expr& p : main->params)
    if (free(p->type)) return true;
  for (const relay::Expr& e : relay::post_order(main->body))
    if (e->kind == relay::ExprKind::kCall && free(e->type)) return true;
  return false;
}

}  // namespace

bool can_be_vm(const std::string& output, const BuildOptions& options) {
  auto form = output_form(output, options.form);
  return options.constants.empty() && form.ok() && *form == OutputForm::kLibrary && !options.system_lib;
}

Result<bool> needs_vm(const std::string& path, const BuildOptions& options) {
  if (TW_TRY(is_relay_file(path))) {
    const relay::Module module = TW_TRY(read_relay_file(path, options, options.shapes));
    if (has_free_size(module)) return true;
    auto program = vm_program(module, options);
    return program.ok() && (program->executable.functions.size() != 1 || program->regions.size() != 1);
  }
  std::vector<std::string> needed;
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.needed_constants = &needed;
  auto module = onnx::import_onnx(path, import);
  if (module.ok()) return has_free_size(*module);
  if (module.error().code == ErrorCode::kFreeDimension || !needed.empty()) return true;
  // Steps between regions: control flow, results whose size data say, sequences, texts.
  auto program = vm_program(path, options);
  return program.ok() && (program->regions.size() != 1 || program->regions[0].format != "onnx");
}

Result<Program> vm_program(const std::string& path, const BuildOptions& options) {
  if (TW_TRY(is_relay_file(path))) {
    auto program = vm_program(TW_TRY(read_relay_file(path, options, options.shapes)), options);
    return program.ok() ? std::move(program) : std::move(program).error().at(path);
  }
  auto bytes = TW_TRY(onnx::map_file(path));
  auto model = onnx::read_model(bytes, "");
  if (!model.ok()) {
    if (auto whole = onnx::read_model(path); !whole.ok()) return std::move(whole).error();
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "a model with free sizes and weights in further files cannot become a VM program", path,
                      "store the weights inside the model file, or give the input sizes with --shape name=1x3x224x224");
  }
  auto program = vm_program(*model, bytes, options);
  if (!program.ok()) return std::move(program).error().at(path);
  return program;
}

Result<Program> vm_program(const onnx::Model& model, const onnx::SharedBytes& bytes, const BuildOptions& options) {
  Program p;
  p.target = options.target;
  using Spec = runtime::vm::TensorSpec;
  std::vector<std::string> names;
  for (const auto& input : model.graph.inputs) {
    if (std::any_of(model.graph.initializers.begin(), model.graph.initializers.end(),
                    [&](const auto& i) { return i.name == input.name; }))
      continue;
    auto given = options.shapes.find(input.name);
    names.push_back(input.name);
    if (input.type.kind != onnx::ValueType::kTensor) {
      if (input.type.kind != onnx::ValueType::kSequence && input.type.kind != onnx::ValueType::kOptional)
        return Diagnostic(ErrorCode::kUnsupportedModel, format("input '{}' is {}", input.name, input.type.str()));
      p.inputs.push_back({input.name, kFloat32, {}, Spec::Kind::kOther});
      continue;
    }
    if (!input.type.elem)
      return Diagnostic(ErrorCode::kMalformedModel, format("input '{}' has no element type", input.name));
    Spec spec{input.name, *input.type.elem, {}};
    if (!input.type.shape) {
      spec.kind = given == options.shapes.end() ? Spec::Kind::kUnranked : Spec::Kind::kTensor;
      if (given != options.shapes.end()) spec.shape = given->second;
      p.inputs.push_back(std::move(spec));
      continue;
    }
    if (given != options.shapes.end() && given->second.size() != input.type.shape->size())
      return Diagnostic(ErrorCode::kShapeMismatch, format("input '{}' has {} dimensions, --shape gives {}", input.name,
                                                          input.type.shape->size(), given->second.size()));
    for (size_t d = 0; d < input.type.shape->size(); ++d) {
      const auto& dim = (*input.type.shape)[d];
      spec.shape.push_back(given != options.shapes.end() && given->second[d] >= 0 ? given->second[d]
                                                                                  : dim.value.value_or(-1));
    }
    p.inputs.push_back(std::move(spec));
  }
  for (const auto& [name, shape] : options.shapes)
    if (std::find(names.begin(), names.end(), name) == names.end())
      return Diagnostic(ErrorCode::kUnknownInput,
                        format("--shape names the input '{}', which the model does not have", name));
  TW_TRY_STATUS(
      compile_graph_to_vm(model, {reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size()}, &p));
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
  built.lowered.params.emplace_back(Tensor::view(kUInt8, {n}, bytes.data(), nullptr));
  return export_library(built, path);
}

Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options) {
  const OutputForm form = TW_TRY(output_form(output, options.form));
  TW_TRY_STATUS(check_options(options));  // a VM program is made without running a pass
  BuildOptions lean = options;
  lean.keep_modules = false;
  auto built = build_onnx(path, lean);
  if (built.ok()) return export_library_and_release(&*built, output, form);
  if (!can_be_vm(output, options) || !TW_TRY(needs_vm(path, options))) return std::move(built).error().at(path);
  return export_program(TW_TRY(vm_program(path, options)), std::filesystem::path(path).stem().string(), output);
}

namespace {

// The region's main with the arguments' shapes; `constants` are parameters that become their values.
Result<relay::Module> with_arguments(const relay::Module& module, const std::map<std::string, Tensor>& arguments,
                                     const std::vector<std::string>& constants) {
  const auto* main = module.main_function();
  std::map<const relay::VarNode*, relay::Expr> values;
  std::vector<relay::Expr> params;
  for (const auto& p : main->params) {
    const auto* var = relay::as<relay::VarNode>(p);
    auto given = arguments.find(var->name);
    if (given == arguments.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("the region's parameter '{}' is not given", var->name));
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

Result<Built> build_relay_region(const onnx::SharedBytes& source, const std::map<std::string, Tensor>& arguments,
                                 const BuildOptions& options, std::vector<std::string>* by_value) {
  relay::ParseOptions parse;
  parse.origin = "region";
  const relay::Module module =
      TW_TRY(relay::parse_module({reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()}, {}, parse));
  if (!module.main_function()) return Diagnostic(ErrorCode::kBadArtifact, "a region has no main function");
  auto built = build(TW_TRY(with_arguments(module, arguments, {})), options);
  if (built.ok() || built.error().code != ErrorCode::kFreeDimension) return built;
  // Sizes that small integers decide: those are compiled in.
  for (const auto& [name, t] : arguments)
    if ((t.dtype().is_integral() || t.dtype().is_bool()) && t.bytes() <= kLargestKeyBytes) by_value->push_back(name);
  auto decided = [&]() -> Result<Built> {
    PassContext context;
    return build(TW_TRY(relay::dynamic_to_static(TW_TRY(with_arguments(module, arguments, *by_value)), context)),
                 options);
  };
  if (!by_value->empty()) built = decided();
  if (built.ok() || built.error().code != ErrorCode::kFreeDimension) return built;
  // Or a few numbers: scales.
  const size_t integers = by_value->size();
  for (const auto& [name, t] : arguments)
    if (t.dtype().is_float() && t.size() <= kMostDecidingFloats) by_value->push_back(name);
  return by_value->size() == integers ? std::move(built) : decided();
}

}  // namespace

namespace {

// The region's graph imported for these arguments. `by_value` receives those that became constants: texts, and what
// sizes and control flow depend on, of up to `largest` bytes.
Result<relay::Module> import_region(const onnx::SharedBytes& source, const std::map<std::string, Tensor>& arguments,
                                    uint64_t largest, std::vector<std::string>* by_value) {
  onnx::Model model = TW_TRY(onnx::read_model(source, ""));
  onnx::ImportOptions import;
  for (auto& info : model.graph.inputs) {
    auto given = arguments.find(info.name);
    if (given == arguments.end()) continue;
    // Between regions a value has the type it has; the file need not know.
    info.type = {};
    info.type.kind = onnx::ValueType::kTensor;
    info.type.elem = given->second.dtype();
    info.type.shape.emplace();
    for (int64_t d : given->second.shape()) info.type.shape->push_back({d, ""});
    if (given->second.dtype().is_string()) import.constants[info.name] = given->second;
  }
  while (true) {
    std::vector<std::string> needed;
    import.needed_constants = &needed;
    auto module = onnx::import_onnx(model, import);
    if (module.ok()) {
      for (const auto& [name, value] : import.constants) by_value->push_back(name);
      return module;
    }
    bool more = false;
    for (const auto& name : needed) {
      auto given = arguments.find(name);
      if (given == arguments.end() || given->second.bytes() > largest || import.constants.count(name)) continue;
      import.constants[name] = given->second;
      more = true;
    }
    if (!more) return module;
  }
}

}  // namespace

Result<Built> build_region(const std::string& format_name, const onnx::SharedBytes& source,
                           const std::map<std::string, Tensor>& arguments, const BuildOptions& options,
                           std::vector<std::string>* by_value) {
  if (format_name == "relay") return build_relay_region(source, arguments, options, by_value);
  if (format_name != "onnx")
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("a region is in the format '{}', which this compiler does not know", format_name));
  return build(TW_TRY(import_region(source, arguments, kLargestKeyBytes, by_value)), options);
}

Result<relay::Module> region_module(const std::string& format_name, const onnx::SharedBytes& source,
                                    const std::map<std::string, Tensor>& arguments) {
  std::vector<std::string> by_value;
  if (format_name != "relay") return import_region(source, arguments, kLargestKeyBytes, &by_value);
  relay::ParseOptions parse;
  parse.origin = "region";
  const relay::Module module =
      TW_TRY(relay::parse_module({reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()}, {}, parse));
  if (!module.main_function()) return Diagnostic(ErrorCode::kBadArtifact, "a region has no main function");
  return with_arguments(module, arguments, {});
}

namespace {

// Operations of the interpreter, roughly: elements made, times the terms of each where an operator contracts.
constexpr double kMostEvaluated = 200'000;
double work_of(const relay::Module& module) {
  double work = 0;
  for (const relay::Expr& e : relay::post_order(module.main_function()->body)) {
    const relay::OpDef* op = relay::called_op(e);
    if (!op) continue;
    auto elements = [](const Type& type) {
      double n = 0;
      auto add = [&n](const Type& t) {
        const auto* tensor = as_tensor(t);
        auto dims = tensor ? static_shape(tensor->shape) : std::nullopt;
        double count = dims ? 1 : HUGE_VAL;
        if (dims)
          for (int64_t d : *dims) count *= static_cast<double>(d);
        n += count;
      };
      if (const auto* tuple = as_tuple(type))
        for (const Type& t : tuple->fields) add(t);
      else
        add(type);
      return n;
    };
    double each = 1;
    const auto& args = relay::as<relay::CallNode>(e)->args;
    // Convolutions, products of matrices and recurrences read all of their weights for some element.
    if ((op->pattern == relay::OpPattern::kOutEWiseFusable || op->pattern == relay::OpPattern::kOpaque) &&
        args.size() > 1 && as_tensor(args[1]->type)) {
      const Shape& weight = as_tensor(args[1]->type)->shape;
      const auto first = weight.empty() ? std::nullopt : weight[0].constant();
      each = std::max(1.0, elements(args[1]->type) / static_cast<double>(std::max<int64_t>(1, first.value_or(1))));
    }
    for (const relay::Expr& a : args) work += elements(a->type) / 4;
    work += elements(e->type) * each;
  }
  return work;
}

}  // namespace

Result<std::vector<Tensor>> evaluate_region(const std::string& format_name, const onnx::SharedBytes& source,
                                            const std::map<std::string, Tensor>& arguments,
                                            std::vector<std::string>* by_value) {
  relay::Module module;
  if (format_name == "relay") {
    module = TW_TRY(region_module(format_name, source, arguments));
  } else if (format_name == "onnx" || format_name == "evaluate") {
    module = TW_TRY(import_region(source, arguments, format_name == "onnx" ? kLargestKeyBytes : UINT64_MAX, by_value));
  } else {
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("a region is in the format '{}', which this compiler cannot evaluate", format_name));
  }
  if (format_name != "evaluate" && !(work_of(module) <= kMostEvaluated))
    return Diagnostic(ErrorCode::kLimitExceeded, "the region is compiled sooner than evaluated");
  std::map<std::string, relay::Value> inputs;
  for (const auto& p : module.main_function()->params) {
    const std::string& name = relay::as<relay::VarNode>(p)->name;
    inputs[name] = relay::value_from(arguments.at(name));
  }
  std::vector<Tensor> out;
  for (const relay::Value& v : TW_TRY(relay::interpret(module, inputs))) out.push_back(relay::to_tensor(v));
  return out;
}

}  // namespace tilewright::driver
