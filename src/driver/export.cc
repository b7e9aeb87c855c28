// SPDX-License-Identifier: Apache-2.0
// Writes a built model in its output forms.

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "base/formats/stackvm.h"
#include "base/hash.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "codegen/source/c_processors.h"
#include "codegen/source/c_program.h"
#include "driver/build.h"
#include "driver/external_code/c_source.h"
#include "driver/guarded.h"
#include "driver/model_library.h"
#include "driver/tar_writer.h"
#include "driver/weights_apart.h"
#include "runtime/classic/graph_json.h"
#include "runtime/link_file.h"
#include "runtime/params_file.h"

namespace tilewright::driver {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string params_file(const plan::Plan& plan, const std::vector<lower::Weight>& weights) {
  std::vector<runtime::NamedTensor> tensors;
  std::vector<Tensor> contents;
  if (!plan.weights_file.empty()) return runtime::write_params_file(tensors);
  for (size_t i = 0; i < plan.params.size(); ++i) {
    const Tensor& t = contents.emplace_back(weights[i].tensor());
    tensors.push_back({plan.params[i].name, t.dtype(), t.shape(), {t.raw(), static_cast<size_t>(t.bytes())}});
  }
  return runtime::write_params_file(tensors);
}

std::vector<codegen::WeightPiece> weight_pieces(const plan::Plan& plan, const std::vector<lower::Weight>& weights,
                                                const Progress& progress) {
  static const std::vector<std::byte> kZeros(256);
  std::vector<codegen::WeightPiece> pieces;
  if (!plan.weights_file.empty()) return pieces;
  uint64_t at = 0;
  auto pad_to = [&](uint64_t offset) {
    while (at < offset) {
      uint64_t n = std::min<uint64_t>(offset - at, kZeros.size());
      pieces.emplace_back(std::span(kZeros).first(n));
      at += n;
    }
  };
  for (size_t i = 0; i < plan.params.size(); ++i) {
    pad_to(plan.params[i].offset);
    pieces.emplace_back(weights[i].bytes(), [&weight = weights[i], &progress, at, all = plan.params_bytes] {
      if (progress) progress("write weights", static_cast<double>(at) / static_cast<double>(all));
      return weight.tensor();
    });
    at += weights[i].bytes();
  }
  pad_to(plan.params_bytes);
  return pieces;
}

namespace {

// A build's content for output.
struct Output {
  const plan::Plan& plan;  // with several processors, the best one's
  std::vector<plan::Plan> others;
  const std::vector<lower::Weight>& weights;
  const std::vector<std::string>& kernels;  // objects
  const Built& built;
  std::function<void()> written = {};  // called when weights are written and no longer needed
  Progress progress = {};
};

Result<std::string> source_text(const Output& out) {
  if (out.built.ahead_of_time) return ahead_of_time_source(out.built);
  if (!codegen::backend_of(out.built.target).makes_source())
    return Diagnostic(ErrorCode::kInvalidArgument, format("the target {} makes no C source", out.built.target.kind), {},
                      "compile for the target c");
  if (out.plan.outputs.empty() && out.plan.metadata.count(plan::kFunctionsKey))
    return codegen::c_kernel_functions(out.built.lowered.kernels, out.kernels);
  return codegen::c_program({out.plan, out.built.lowered.kernels, out.kernels,
                             [&](size_t i) { return out.weights[i].tensor(); }, !out.plan.weights_file.empty()});
}

// The target for the parts of a library besides kernels: for the target c, any processor like this one.
Result<Target> link_target(const Output& out) {
  if (!codegen::backend_of(out.built.target).makes_source()) return out.built.target;
  Target host;
  host.mcpu = "generic";
  return codegen::resolve_target(std::move(host));
}

// The plan, the programs and the weights as one file (base/formats/stackvm.h).
Status write_byte_code(const Output& out, const std::string& path) {
  if (!out.built.external.sources.empty())
    return Diagnostic(ErrorCode::kUnsupportedModel, "byte code calls no C source of an external code generator", path,
                      "compile for the target llvm");
  const std::vector<codegen::WeightPiece> pieces = weight_pieces(out.plan, out.weights, out.progress);
  uint64_t hash = 0;
  std::string weights;
  weights.reserve(codegen::weight_bytes(pieces));
  codegen::for_each_piece(pieces, [&](const std::byte* data, uint64_t bytes) {
    weights.append(reinterpret_cast<const char*>(data), bytes);
  });
  hash = hash_bytes(weights.data(), weights.size());
  const stackvm::FileHead head =
      stackvm::write_file_head(plan::write_plan(out.plan), out.kernels, weights.size(), hash);
  std::string file = head.bytes;
  if (!weights.empty()) {
    file.reserve(head.params_offset + weights.size());
    file.resize(head.params_offset);
    file += weights;
  }
  TW_TRY_STATUS(write_whole(path, file));
  if (out.written) out.written();
  return Ok{};
}

// Compiles C kernels to an object with the system's compiler, to be used like our own machine code.
Result<std::string> compiled_source(const Output& out) {
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-source"));
  const std::string source = place.path() + "/kernels.c", object = place.path() + "/kernels.o";
  // Every call is in the plan: it says which kernels write where they read.
  const bool known = !out.plan.steps.empty() && out.plan.variants.empty();
  TW_TRY_STATUS(write_part(
      source, codegen::c_kernel_functions(out.built.lowered.kernels, out.kernels, known ? &out.plan : nullptr),
      source));
  std::vector<std::string> command = codegen::c_compiler_options(out.built.target);
  command.insert(command.end(), {"-O2", "-fPIC", "-fvisibility=hidden", "-c", "-o", object, source});
  TW_TRY_STATUS(runtime::run_c_compiler(command, place.path()));
  return read_whole(object);
}

// `imports`: whether the plans contain the import tree.
Result<std::vector<std::string>> own_objects(const Output& out, bool imports) {
  if (codegen::backend_of(out.built.target).makes_byte_code())
    return Diagnostic(ErrorCode::kInvalidArgument, "the target stackvm makes byte code, not objects", {},
                      "compile for the target llvm or c");
  const Target target = TW_TRY(link_target(out));
  std::vector<std::string> objects = out.kernels;
  if (codegen::backend_of(out.built.target).makes_source()) objects = {TW_TRY(compiled_source(out))};
  std::vector<plan::Plan> plans = {out.plan};
  plans.insert(plans.end(), out.others.begin(), out.others.end());
  std::vector<codegen::InstructionSetPlan> sets;
  for (size_t i = 0; i < plans.size(); ++i) {
    plans[i].imports = imports ? out.plan.imports : "";  // imports are common to all processors
    sets.push_back({&plans[i], i == 0 ? &target : &out.built.others[i - 1].target});
    if (i == 0) continue;
    const auto& more = out.built.others[i - 1].objects;
    objects.insert(objects.end(), more.begin(), more.end());
  }
  objects.push_back(TW_TRY(codegen::compile_glue(sets, out.built.system_lib)));
  return objects;
}

// A library's objects, with the source of external code generators, compiled by the system's compiler for the library's
// machine; and the shared libraries that the source names, if the objects are linked into one (`shared`).
struct Parts {
  std::vector<std::string> objects, libraries;
};
Result<Parts> parts_of(const Output& out, bool shared) {
  Parts parts;
  std::vector<std::string>& objects = parts.objects;
  objects = TW_TRY(own_objects(out, /*imports=*/true));
  const std::string own = object_machine(objects.back());
  for (const CSource& source : out.built.external.sources) {
    std::string made = TW_TRY(compile_c_source(source));
    if (const std::string other = object_machine(made); other != own)
      return Diagnostic(
          ErrorCode::kLinkFailed,
          format("the C source of '{}' was compiled for {}, and the library is for {}",
                 source.functions.empty() ? std::string("an external code generator") : source.functions[0], other,
                 own),
          {},
          "set CC to a compiler for that machine, or export with one: "
          "export_library(path, fcompile=cc.cross_compiler(...))");
    objects.push_back(std::move(made));
    if (!shared) continue;
    for (std::string& library : TW_TRY(libraries_of(source))) parts.libraries.push_back(std::move(library));
  }
  return parts;
}

// For errors about an intermediate file: names the requested output.
Diagnostic about(Diagnostic error, const std::string& path) {
  error.where = path;
  return error;
}

// The weights for the linker: null if they are a separate file.
const codegen::WeightPieces* in_artifact(const plan::Plan& plan, const codegen::WeightPieces* pieces) {
  return plan.weights_file.empty() ? pieces : nullptr;
}

Result<std::vector<std::string>> write_objects(const Output& out, const std::string& folder, bool in_c) {
  const auto pieces = weight_pieces(out.plan, out.weights, out.progress);
  const codegen::WeightPieces params = pieces;
  const auto objects = TW_TRY(own_objects(out, /*imports=*/false));  // they are in devc.o
  TW_TRY_STATUS(codegen::link_relocatable(objects, folder + "/lib0.o", TW_TRY(link_target(out)),
                                          in_artifact(out.plan, &params), out.written));
  std::vector<std::string> names = {"lib0.o"};
  for (const CSource& source : out.built.external.sources) {
    // Otherwise kept as source: it needs another compiler, or options that only the user's linking step knows.
    auto object = compile_c_source(source);
    const bool fits = object.ok() && object_machine(*object) == object_machine(objects.back());
    names.push_back(format("lib{}.{}", names.size(), fits ? "o" : source.form));
    TW_TRY_STATUS(write_part(folder + "/" + names.back(), fits ? *object : with_classic_headers(source.code), folder));
  }
  if (out.plan.imports.empty()) return names;
  names.push_back(in_c ? "devc.c" : "devc.o");
  const std::string file = folder + "/" + names.back();
  TW_TRY_STATUS(write_part(file,
                           in_c ? runtime::imports_to_c(out.plan.imports)
                                : TW_TRY(codegen::compile_imports(out.plan.imports, TW_TRY(link_target(out)))),
                           file));
  return names;
}

// Writes the folder's files, then named contents, to a tar file beside it.
using Contents = std::vector<std::pair<std::string, std::string>>;
Status pack(const WorkFolder& folder, const std::vector<std::string>& names, const Contents& contents,
            const std::string& path) {
  std::error_code error;
  const std::string package = folder.path() + "/package";
  std::ofstream out(package, std::ios::binary);
  TarWriter tar(out);
  bool copied = true;
  for (const std::string& name : names) copied = tar.add_file(name, folder.path() + "/" + name) && copied;
  for (const auto& [name, bytes] : contents) tar.add(name, bytes);
  tar.finish();
  out.close();
  if (!out || !copied) return cannot_write(path, "no space, or the folder vanished");
  fs::rename(package, path, error);
  if (error) return cannot_write(path, error.message());
  return Ok{};
}

Status write_package(const Output& out, const std::string& path) {
  const WorkFolder folder = TW_TRY(WorkFolder::beside(path));
  const auto pieces = weight_pieces(out.plan, out.weights, out.progress);
  const codegen::WeightPieces params = pieces;
  const Parts parts = TW_TRY(parts_of(out, /*shared=*/true));
  if (Status linked = codegen::link_shared(parts.objects, folder.path() + "/mod.so", TW_TRY(link_target(out)),
                                           in_artifact(out.plan, &params), {}, parts.libraries);
      !linked.ok())
    return about(std::move(linked).error(), path);
  const Contents contents = {{"mod.json", runtime::write_graph_json(out.plan)},
                             {"mod.params", params_file(out.plan, out.weights)}};
  return pack(folder, {"mod.so"}, contents, path);
}

Status write_text(const Output& out, const std::string& path, std::string_view form) {
  const lower::Lowered& lowered = out.built.lowered;
  std::vector<const Target*> targets;
  for (uint32_t device : lowered.kernel_devices) {
    auto own = out.built.device_targets.find(out.plan.devices[device]);
    targets.push_back(own == out.built.device_targets.end() ? &out.built.target : &own->second);
  }
  const auto pieces = weight_pieces(out.plan, out.weights, out.progress);
  const std::string text = TW_TRY(
      codegen::artifact_text(lowered.kernels, targets, out.plan, out.built.target, pieces, out.built.system_lib, form));
  return write_whole(path, text);
}

bool is_linked(OutputForm form) {
  return form == OutputForm::kLibrary || form == OutputForm::kObject || form == OutputForm::kArchive;
}

// Links for a form that is_linked.
Status link_as(OutputForm form, const Parts& parts, const std::string& path, const Target& target,
               const codegen::WeightPieces* params = nullptr, const std::function<void()>& written = {}) {
  if (form == OutputForm::kLibrary)
    return codegen::link_shared(parts.objects, path, target, params, written, parts.libraries);
  return (form == OutputForm::kObject ? codegen::link_relocatable : codegen::write_archive)(parts.objects, path, target,
                                                                                            params, written);
}

// Checks that the backend can produce the form.
Status check_form(const Output& out, const std::string& path, OutputForm form) {
  const bool byte_code = codegen::backend_of(out.built.target).makes_byte_code();
  if (byte_code && form != OutputForm::kByteCode)
    return Diagnostic(ErrorCode::kInvalidArgument, "the target stackvm makes byte code, which no linker takes", path,
                      "name the output .stackvm, or compile for the target llvm or c");
  if (!byte_code && form == OutputForm::kByteCode)
    return Diagnostic(ErrorCode::kInvalidArgument, format("the target {} makes no byte code", out.built.target.kind),
                      path, "compile with --target stackvm");
  const bool source = codegen::backend_of(out.built.target).makes_source();
  if (source && (form == OutputForm::kIr || form == OutputForm::kBitcode || form == OutputForm::kAssembly))
    return Diagnostic(ErrorCode::kInvalidArgument, "the target c makes C source", path,
                      "name the output .c, or .so, .o, .a or .tar, for which the system's C compiler is run");
  bool free = false;
  for (size_t v = 0; v <= out.plan.variants.size(); ++v)
    free = free || !plan::variant_of(out.plan, v).free_sizes.empty();
  if (free && form != OutputForm::kLibrary && form != OutputForm::kPackage && form != OutputForm::kByteCode)
    return Diagnostic(ErrorCode::kInvalidArgument, "a model with ranges of sizes needs the runtime", path,
                      "write a shared library (.so), or give bounds of few sizes");
  if (form == OutputForm::kModelLibrary && !out.built.weights_file.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "a Model Library Format holds the weights itself", path,
                      "leave --weights out");
  if (!source && form == OutputForm::kSource && !out.built.ahead_of_time)
    return Diagnostic(ErrorCode::kInvalidArgument, format("the target {} makes no C source", out.built.target.kind),
                      path, "compile with --target c");
  if (!out.others.empty() && (form == OutputForm::kIr || form == OutputForm::kBitcode || form == OutputForm::kAssembly))
    return Diagnostic(ErrorCode::kInvalidArgument,
                      "a text holds the kernels of one processor, and the target lists several", path,
                      "name one with -mcpu, or write a library (.so), an object (.o) or an archive (.a)");
  std::error_code error;
  if (!out.built.weights_file.empty() &&
      fs::weakly_canonical(out.built.weights_file, error) == fs::weakly_canonical(path, error))
    return Diagnostic(ErrorCode::kInvalidArgument, "the weights' file and the output have one name", path,
                      "name another file for the weights");
  return Ok{};
}

Status write_form(const Output& out, const std::string& path, OutputForm form) {
  switch (form) {
    case OutputForm::kModelLibrary: {
      const Built* models[] = {&out.built};
      return write_model_library(models, path);
    }
    case OutputForm::kSource:
      return write_whole(path, TW_TRY(source_text(out)));
    case OutputForm::kByteCode:
      return write_byte_code(out, path);
    case OutputForm::kPackage:
      return write_package(out, path);
    case OutputForm::kIr:
      return write_text(out, path, "ll");
    case OutputForm::kBitcode:
      return write_text(out, path, "bc");
    case OutputForm::kAssembly:
      return write_text(out, path, "s");
    case OutputForm::kObjects:
    case OutputForm::kObjectsC: {
      const WorkFolder folder = TW_TRY(WorkFolder::beside(path));
      auto names = write_objects(out, folder.path(), form == OutputForm::kObjectsC);
      if (!names.ok()) return about(std::move(names).error(), path);
      return pack(folder, *names, {}, path);
    }
    case OutputForm::kLibrary:
    case OutputForm::kObject:
    case OutputForm::kArchive:
      break;
  }
  const Parts parts = TW_TRY(parts_of(out, form == OutputForm::kLibrary));
  const auto pieces = weight_pieces(out.plan, out.weights, out.progress);
  const codegen::WeightPieces params = pieces;
  return link_as(form, parts, path, TW_TRY(link_target(out)), in_artifact(out.plan, &params), out.written);
}

Status write_output(const Output& out, const std::string& path, OutputForm form) {
  std::error_code error;
  if (path.empty() || fs::path(path).filename().empty()) return cannot_write(path, "this is not a file name");
  if (fs::is_directory(path, error)) return cannot_write(path, "there is a folder of this name");
  if ((form == OutputForm::kObject || form == OutputForm::kArchive) && !out.plan.externals.empty() &&
      !out.built.system_lib)
    return Diagnostic(
        ErrorCode::kUnsupportedModel,
        format(
            "the model calls '{}' of an imported module, and a program that links '{}' has no runtime to find it with",
            out.plan.externals[0], path),
        {}, "write a shared library (.so), or compile for a system library, which has the runtime");
  if ((form == OutputForm::kIr || form == OutputForm::kBitcode || form == OutputForm::kAssembly) &&
      !out.built.external.sources.empty())
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "the library has C source of an external code generator, which has no such text", path,
                      "write a shared library (.so) or its objects (.tar)");
  TW_TRY_STATUS(check_form(out, path, form));
  if (out.built.weights_file.empty()) return write_form(out, path, form);
  auto written = [&out, all = static_cast<double>(out.plan.params_bytes)](uint64_t bytes) {
    if (out.progress) out.progress("write weights", static_cast<double>(bytes) / all);
  };
  std::vector<plan::Plan> apart = {out.plan};
  apart.insert(apart.end(), out.others.begin(), out.others.end());
  TW_TRY_STATUS(put_weights_apart(apart, out.weights, out.built.weights_file, path, written));
  if (out.written) out.written();
  const std::vector<lower::Weight> none;
  return write_form({apart[0], {apart.begin() + 1, apart.end()}, none, out.kernels, out.built}, path, form);
}

struct Form {
  const char* name;
  const char* ending;  // null: only by name
  OutputForm form;
};
constexpr Form kForms[] = {
    {"library", ".so", OutputForm::kLibrary},
    {"object", ".o", OutputForm::kObject},
    {"archive", ".a", OutputForm::kArchive},
    {"package", ".tar", OutputForm::kPackage},
    {"ir", ".ll", OutputForm::kIr},
    {"bitcode", ".bc", OutputForm::kBitcode},
    {"assembly", ".s", OutputForm::kAssembly},
    {"source", ".c", OutputForm::kSource},
    {"stackvm", ".stackvm", OutputForm::kByteCode},
    {"objects", nullptr, OutputForm::kObjects},
    {"objects-c", nullptr, OutputForm::kObjectsC},
    {"mlf", nullptr, OutputForm::kModelLibrary},
};

Output output_of(const Built& built) {
  std::vector<plan::Plan> others;
  for (const Built& other : built.others) others.push_back(other.lowered.plan);
  return {built.lowered.plan, std::move(others), built.lowered.params, built.objects, built};
}

}  // namespace

OutputForm output_form(const std::string& path) {
  for (const Form& f : kForms)
    if (f.ending && path.ends_with(f.ending)) return f.form;
  return OutputForm::kLibrary;
}

Result<OutputForm> output_form(const std::string& path, const std::string& name) {
  if (name.empty()) return output_form(path);
  std::string names;
  for (const Form& f : kForms) {
    if (name == f.name) return f.form;
    names += (names.empty() ? "" : ", ") + std::string(f.name);
  }
  return Diagnostic(ErrorCode::kInvalidArgument, format("there is no output form '{}'", name), {},
                    "there are " + names);
}

OutputForm loadable_form(const Target& target) {
  return codegen::backend_of(target).makes_byte_code() ? OutputForm::kByteCode : OutputForm::kLibrary;
}

Status export_library(const Built& built, const std::string& path, OutputForm form) {
  return guarded([&] { return write_output(output_of(built), path, form); });
}

Status export_library(const Built& built, const std::string& path) {
  return export_library(built, path, output_form(path));
}

Status export_library_and_release(Built* built, const std::string& path, OutputForm form, const Progress& progress) {
  return guarded([&] {
    Output out = output_of(*built);
    out.written = [&] { built->lowered.params.clear(); };
    out.progress = progress;
    return write_output(out, path, form);
  });
}

Result<std::vector<std::string>> export_objects(const Built& built, const std::string& folder, bool in_c) {
  return guarded([&] { return write_objects(output_of(built), folder, in_c); });
}

Result<std::string> source_of(const Built& built) {
  return guarded([&] { return source_text(output_of(built)); });
}

Status compile_ir_file(const std::string& path, const std::string& output, OutputForm form) {
  return guarded([&]() -> Status {
    if (!is_linked(form))
      return Diagnostic(ErrorCode::kInvalidArgument, "LLVM IR becomes a library, an object or an archive, nothing else",
                        output, "name the output .so, .o or .a; other forms are written from the model");
    const codegen::IrObject made = TW_TRY(codegen::compile_ir(path));
    return link_as(form, Parts{{made.object}, {}}, output, made.target);
  });
}

Status compile_ir_file(const std::string& path, const std::string& output) {
  return compile_ir_file(path, output, output_form(output));
}

}  // namespace tilewright::driver
