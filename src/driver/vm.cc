// SPDX-License-Identifier: Apache-2.0
#include "driver/vm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/read_whole.h"
#include "base/version.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"
#include "driver/model_file.h"
#include "driver/relay_file.h"
#include "driver/target_list.h"
#include "driver/torch_file.h"
#include "frontend/onnx/import.h"
#include "interpret/region.h"
#include "program/program.h"
#include "program/region_source.h"
#include "relay/op.h"

namespace tilewright::driver {
using runtime::vm::Program;

bool can_be_vm(const std::string& output, const BuildOptions& options) {
  auto form = output_form(output, options.form);
  return options.constants.empty() && form.ok() && (*form == OutputForm::kLibrary || *form == OutputForm::kByteCode) &&
         !options.system_lib;
}

Result<Compiled> compile_model(const std::string& path, const BuildOptions& options, bool may_be_program) {
  TW_TRY_STATUS(check_options(options));  // building a program runs no pass that would check them
  Compiled out;
  if (!options.more_shapes.empty() || !options.bounds.empty()) {
    out.ordinary = TW_TRY(build_onnx(path, options));
    return out;
  }
  relay::Module module =
      TW_TRY(read_model_file(path, options, may_be_program ? onnx::Programs::kWhereNeeded : onnx::Programs::kRefused));
  const program::Need need = may_be_program ? program::need_of(module) : program::Need::kNone;
  if (need == program::Need::kCertain) {
    out.program = TW_TRY(vm_program(module, options));
    return out;
  }
  // Passes may resolve sizes and branches that the module leaves open.
  const relay::Module kept = need == program::Need::kPossible ? module : relay::Module();
  auto built = build_read(std::move(module), path, options);
  if (built.ok())
    out.ordinary = std::move(*built);
  else if (need == program::Need::kPossible)
    out.program = TW_TRY(vm_program(kept, options));
  else
    return std::move(built).error();
  return out;
}

Result<Compiled> compile_within_usual_bounds(const std::string& path, const BuildOptions& options, bool may_be_program,
                                             std::vector<Bound>* taken) {
  const bool open = may_be_program && options.bounds.empty() && options.more_shapes.empty() && options.params.empty();
  if (open && !TW_TRY(is_relay_file(path)) && !TW_TRY(is_torch_file(path)) &&
      TW_TRY(targets_of(options.target)).size() == 1) {
    TW_TRY_STATUS(check_options(options));
    BuildOptions bounded = options;
    onnx::ReadOptions read;
    read.initializers = false;
    bounded.bounds = usual_bounds(TW_TRY(onnx::read_model(path, read)), options.shapes);
    while (!bounded.bounds.empty()) {
      auto built = build_onnx(path, bounded);
      if (built.ok()) {
        *taken = std::move(bounded.bounds);
        return Compiled{std::move(*built), {}};
      }
      // A model with a table of places takes as many tokens as that has. Any other error, or the need for a program,
      // will recur without bounds.
      Bound& last = bounded.bounds.back();
      if (last.parts == 0 || last.high <= 64 || built.error().code != ErrorCode::kTypeMismatch) break;
      last.high /= 2;
    }
  }
  return compile_model(path, options, may_be_program);
}

Result<std::optional<Program>> program_if_needed(const std::string& path, const BuildOptions& options) {
  const relay::Module module = TW_TRY(read_model_file(path, options, onnx::Programs::kWhereNeeded));
  std::optional<Program> out;
  if (program::need_of(module) != program::Need::kNone) out = TW_TRY(vm_program(module, options));
  return out;
}

Result<Program> vm_program(const std::string& path, const BuildOptions& options) {
  auto program = vm_program(TW_TRY(read_model_file(path, options, onnx::Programs::kAlways)), options);
  return program.ok() ? std::move(program) : std::move(program).error().at(path);
}

Result<Program> vm_program(const onnx::Model& model, const BuildOptions& options) {
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.channel_block = TW_TRY(channel_block(options));
  import.programs = onnx::Programs::kAlways;
  return vm_program(TW_TRY(onnx::import_onnx(model, import)), options);
}

Result<Program> vm_program(const relay::Module& module, const BuildOptions& options) {
  return program::make_program(module, options.target);
}

namespace {

// Zeros for the arguments of a region with fixed argument shapes; nothing for other regions.
std::optional<std::map<std::string, Tensor>> only_arguments(const relay::Module& module) {
  std::map<std::string, Tensor> out;
  for (const relay::Expr& p : module.main_function()->params) {
    const auto* type = as_tensor(p->type);
    const auto shape = type ? static_shape(type->shape) : std::nullopt;
    if (!shape || type->dtype.is_string()) return {};
    out[relay::as<relay::VarNode>(p)->name] = Tensor::zeros(type->dtype, *shape);
  }
  return out;
}

// The region's library; empty if run-time sizes or values determine its code.
Result<std::string> ready_library(const Program& program, size_t index, const BuildOptions& options) {
  auto source = std::make_shared<const std::string>(program.source_of(index));
  auto module = program::read_region(*source, source);
  if (!module.ok()) return std::string();  // as below
  const auto arguments = only_arguments(*module);
  if (!arguments) return std::string();
  BuildOptions own = options;
  own.name = format("region_{}", index);
  own.keep_modules = false;
  own.shapes.clear();
  own.dump_ir.clear();
  std::vector<std::string> by_value;
  auto built =
      build_region(program.regions[index].format, {std::as_bytes(std::span(source->data(), source->size())), source},
                   *arguments, own, &by_value);
  if (!built.ok() || !by_value.empty()) return std::string();  // errors are reported at run time
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-region"));
  const std::string file = place.path() + "/region.so";
  TW_TRY_STATUS(export_library(*built, file, loadable_form(built->target)));
  return read_whole(file);
}

// Removes bytes that no region refers to any more.
void drop_unused(Program* program) {
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> moved;
  std::string kept;
  for (runtime::vm::Region& region : program->regions)
    for (auto& piece : region.pieces) {
      auto [at, fresh] = moved.emplace(piece, kept.size());
      if (fresh) kept.append(program->shared.view(), piece.first, piece.second);
      piece.first = at->second;
    }
  program->shared = std::move(kept);
}

}  // namespace

Status make_ready(Program* program, const BuildOptions& options) {
  bool any = false;
  for (size_t i = 0; i < program->regions.size(); ++i) {
    runtime::vm::Region& region = program->regions[i];
    if (region.format != "relay") continue;
    region.library = TW_TRY(ready_library(*program, i, options));
    if (region.library.empty()) continue;
    region.pieces.clear();
    any = true;
  }
  if (any) drop_unused(program);
  return Ok{};
}

Status export_program(const Program& program, const std::string& name, const std::string& path) {
  Built built;
  built.target = TW_TRY(targets_of(program.target)).back().target;  // of a list, the oldest processor's
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
  return export_library(built, path, loadable_form(built.target));
}

Status check_program_options(const BuildOptions& options) {
  if (options.weights_file.empty()) return Ok{};
  return Diagnostic(ErrorCode::kUnsupportedModel,
                    "the model becomes a VM program, which has its weights in itself: sizes or branches wait for a run",
                    options.weights_file, "leave the weights' file out, or fix the sizes with --shape");
}

Status compile_onnx(const std::string& path, const std::string& output, const BuildOptions& options) {
  const OutputForm form = TW_TRY(output_form(output, options.form));
  BuildOptions lean = options;
  lean.keep_modules = false;
  auto compiled = compile_model(path, lean, can_be_vm(output, options));
  if (!compiled.ok()) return std::move(compiled).error().at(path);
  if (compiled->ordinary) return export_library_and_release(&*compiled->ordinary, output, form, options.progress);
  TW_TRY_STATUS(check_program_options(options));
  TW_TRY_STATUS(make_ready(&*compiled->program, options));
  return export_program(*compiled->program, std::filesystem::path(path).stem().string(), output);
}

Result<Built> build_region(const std::string& format_name, const onnx::SharedBytes& source,
                           const std::map<std::string, Tensor>& arguments, const BuildOptions& options,
                           std::vector<std::string>* by_value) {
  return build(TW_TRY(interpret::region_module(format_name, source, arguments, by_value)), options);
}

}  // namespace tilewright::driver
