// SPDX-License-Identifier: Apache-2.0
#include "driver/build.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <thread>

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/version.h"
#include "codegen/backend.h"
#include "codegen/codegen.h"
#include "codegen/kernel_cache.h"
#include "driver/functions.h"
#include "driver/guarded.h"
#include "driver/left_out.h"
#include "driver/model_file.h"
#include "driver/relay_file.h"
#include "driver/target_list.h"
#include "driver/torch_file.h"
#include "frontend/onnx/file_map.h"
#include "frontend/torch/archive.h"
#include "lower/merge.h"
#include "relay/bind.h"
#include "relay/passes/default_pipeline.h"
#include "runtime/module.h"

namespace tilewright::driver {
namespace {

void report(const BuildOptions& options, const char* stage, double fraction) {
  if (options.progress) options.progress(stage, fraction);
}

Result<PassContext> pass_context(const BuildOptions& options, const Target& target) {
  PassContext context;
  context.opt_level = options.opt_level;
  context.required.insert(options.required_passes.begin(), options.required_passes.end());
  context.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  context.target = target;
  context.dump_dir = options.dump_ir;
  context.stop_after = options.stop_after;
  for (const auto& [key, value] : options.config) TW_TRY_STATUS(context.set_config(key, value));
  context.instruments = options.instruments;
  return context;
}

Result<Built> run_passes_on(const relay::Module& module, const BuildOptions& options) {
  Built built;
  if (options.keep_modules) built.imported = module;
  built.system_lib = options.system_lib;
  built.weights_file = options.weights_file;
  built.ahead_of_time = options.ahead_of_time;
  built.runtime_pools = options.runtime_pools;
  built.graph_in_c = options.graph_in_c;
  built.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(options.target))));
  for (const auto& [device, target] : options.device_targets)
    built.device_targets[device] = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(target))));
  for (const auto& [device, target] : built.device_targets)
    if (codegen::backend_of(target).product != codegen::backend_of(built.target).product)
      return Diagnostic(
          ErrorCode::kUnknownTarget,
          format("the target of {} is {}, and that of the rest {}", device, target.kind, built.target.kind), {},
          "give both targets of one kind");
  for (const auto& [device, target] : built.device_targets)
    if (target.mtriple != built.target.mtriple && !target.mtriple.empty() && !built.target.mtriple.empty())
      return Diagnostic(ErrorCode::kUnknownTarget,
                        format("the target of {} is for {}, and that of the rest for {}", device, target.mtriple,
                               built.target.mtriple),
                        {}, "one library holds code for one processor: give both targets the same -mtriple");
  PassContext context = TW_TRY(pass_context(options, built.target));
  report(options, "optimise", 0);
  const relay::Module named = relay::with_distinct_parameters(module);
  built.optimized = TW_TRY(relay::optimize(TW_TRY(take_external_parts(named, options.external, options.name)), context,
                                           built.target, options.user_passes));
  built.passes = context.log;
  built.dumped = context.dumped;
  return built;
}

// Lowers an optimised module. Without keep_modules its weights are freed as soon as packed ones replace them.
Result<Built> lower_optimized(Built built, const BuildOptions& options, const lower::WeightForms* forms = nullptr) {
  PassContext context = TW_TRY(pass_context(options, built.target));
  context.instruments.clear();  // instruments are for Relay modules
  context.dumped = built.dumped;
  lower::MemoryOptions memory;
  if (options.ahead_of_time) memory = TW_TRY(memory_of(*options.ahead_of_time, built.target));
  if (options.runtime_pools) memory = TW_TRY(memory_of(*options.runtime_pools));
  if (options.graph_in_c) memory = memory_of(*options.graph_in_c, built.target);
  built.lowered = TW_TRY(lower::lower_module(built.optimized, built.target,
                                             {options.chooser.get(), built.device_targets, forms, memory, &context}));
  std::move(context.log.begin(), context.log.end(), std::back_inserter(built.passes));
  built.lowered.plan.model_name = options.name;
  built.lowered.plan.compiler_version = version();
  if (options.graph_in_c || options.classic_names) name_packed_functions(options.name, &built.lowered);
  TW_TRY_STATUS(add_functions(options.functions, &built));
  if (options.runtime_pools) TW_TRY(pools_of(built));  // refuses pools of constants that are too small
  if (options.aot) built.lowered.plan.metadata[kExecutorKey] = kAotExecutor;
  if (!options.bounds.empty()) built.lowered.plan.metadata[plan::kBoundsKey] = bounds_str(options.bounds);
  if (!options.keep_modules) {
    built.optimized = {};
    for (lower::StepTrace& trace : built.lowered.traces)
      for (auto* operands : {&trace.inputs, &trace.outputs})
        for (lower::OperandTrace& operand : *operands) operand.constant = Tensor();
  }
  return built;
}

Status compile_kernels(Built* built, const BuildOptions& options) {
  int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  codegen::KernelCache cache(options.kernel_cache);
  const lower::Lowered& lowered = built->lowered;
  // Compiles device by device, for each device's target.
  for (uint32_t device = 0; device < lowered.plan.devices.size(); ++device) {
    std::vector<tir::PrimFunc> here;
    for (size_t i = 0; i < lowered.kernels.size(); ++i)
      if (lowered.kernel_devices[i] == device) here.push_back(lowered.kernels[i]);
    if (here.empty() && device > 0) continue;
    auto target = built->device_targets.find(lowered.plan.devices[device]);
    auto kernels = TW_TRY(codegen::compile_kernels(
        here, target == built->device_targets.end() ? built->target : target->second, jobs,
        [&](int done, int total) { report(options, "generate code", total ? static_cast<double>(done) / total : 1); },
        &cache));
    std::move(kernels.objects.begin(), kernels.objects.end(), std::back_inserter(built->objects));
  }
  TW_TRY_STATUS(compile_imports(options.functions, built));
  report(options, "external code", 0);
  built->external = TW_TRY(compile_external(lowered.externals, options.external));
  built->lowered.plan.imports = runtime::save_import_tree(built->external.modules);
  return Ok{};
}

Result<const onnx::ValueInfo*> input_of(const onnx::Model& model, const std::string& name) {
  std::string names;
  for (const onnx::ValueInfo& value : model.graph.inputs) {
    if (value.name == name) return &value;
    names += (names.empty() ? "" : ", ") + value.name;
  }
  return Diagnostic(ErrorCode::kUnknownInput, format("the model has no input '{}' to give a constant for", name), {},
                    "its inputs are " + names);
}

// Parses a number into element i, exactly (integers) or rounded (floats); returns what is wrong with it, or an empty
// string.
std::string store_number(std::string_view text, int64_t i, Tensor* tensor) {
  const DataType dtype = tensor->dtype();
  const char *begin = text.data(), *end = begin + text.size();
  auto parsed = [&](auto* value) {
    auto [at, error] = std::from_chars(begin, end, *value);
    return error == std::errc() && at == end;
  };
  std::string too_large = format("has {}, which {} cannot hold", text, dtype.str());
  double real = 0;
  auto [at, error] = std::from_chars(begin, end, real);
  if (at != end || error == std::errc::invalid_argument) return format("has '{}', which is not a number", text);
  if (dtype.is_float()) {
    if (error != std::errc()) return too_large;
    tensor->set_double(i, real);
    return std::isfinite(real) && !std::isfinite(tensor->at_double(i)) ? too_large : "";
  }
  int64_t whole = 0;
  uint64_t large = 0;
  if (dtype == kUInt64 && parsed(&large)) {
    whole = static_cast<int64_t>(large);
  } else if (!parsed(&whole)) {
    // "1e3": integers given as floats, if exact in double.
    if (error != std::errc() || !(std::fabs(real) <= 9007199254740992.0)) return too_large;
    if (real != std::floor(real)) return format("has {}, which is not a whole number", text);
    whole = static_cast<int64_t>(real);
    large = static_cast<uint64_t>(whole);
  }
  tensor->set_int(i, whole);
  const bool held = dtype == kUInt64  ? large == static_cast<uint64_t>(whole) && (text[0] != '-' || whole == 0)
                    : dtype.is_bool() ? whole == 0 || whole == 1
                                      : tensor->at_int(i) == whole;
  return held ? "" : too_large;
}

// The tensor of an input given by --constant, with the dtype and shape that the model declares.
Result<Tensor> constant_of(const onnx::Model& model, const std::string& name, const std::string& text) {
  const onnx::ValueInfo* input = TW_TRY(input_of(model, name));
  auto bad = [&](std::string why) {
    return Diagnostic(ErrorCode::kInvalidArgument, format("the constant for input '{}' {}", name, why), {},
                      format("the input is {}; give numbers ({}=1,3,640,640) or a tensor file ({}=@values.pb)",
                             input->type.str(), name, name));
  };
  if (input->type.kind != onnx::ValueType::kTensor || !input->type.elem || input->type.elem->is_string())
    return bad("cannot be written as numbers");
  const DataType dtype = *input->type.elem;
  Tensor tensor;
  if (!text.empty() && text[0] == '@') {
    auto bytes = onnx::map_file(text.substr(1));
    if (!bytes.ok()) return std::move(bytes).error();
    tensor = TW_TRY(onnx::read_tensor(*bytes)).data;
    if (!(tensor.dtype() == dtype)) return bad(format("is {}, not {}", tensor.dtype().str(), dtype.str()));
  } else {
    std::vector<std::string_view> numbers;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      numbers.push_back(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
    // The declared shape, with one free size computed from the number of values. Without a declaration: one number is a
    // scalar, several a vector.
    std::vector<int64_t> shape;
    const auto count = static_cast<int64_t>(numbers.size());
    if (input->type.shape) {
      int64_t known = 1, free = 0;
      bool fits = true;
      for (const auto& dim : *input->type.shape)
        dim.value ? fits = fits && checked_mul(known, *dim.value, &known) : ++free;
      if (!fits) return bad(format("has {} numbers, and the declared sizes are beyond any memory", count));
      for (const auto& dim : *input->type.shape)
        shape.push_back(dim.value ? *dim.value : free == 1 && known > 0 ? count / known : 1);
    } else if (count != 1) {
      shape = {count};
    }
    auto wanted = checked_element_count(shape);
    if (!wanted.ok() || *wanted != count) return bad(format("has {} numbers", count));
    tensor = Tensor::zeros(dtype, shape);
    for (int64_t i = 0; i < count; ++i)
      if (std::string wrong = store_number(numbers[static_cast<size_t>(i)], i, &tensor); !wrong.empty())
        return bad(std::move(wrong));
  }
  return tensor;
}

Result<onnx::Model> read(const std::string& path) { return onnx::read_model(path); }
Result<onnx::Model> read(const onnx::SharedBytes& bytes) { return onnx::read_model(bytes, ""); }

// Imports the model with these options, for one variant's sizes. The file is read again for each variant, since the
// model does not outlive the import.
template <class Source>
Result<relay::Module> import_model(const Source& source, const BuildOptions& options,
                                   const std::map<std::string, std::vector<int64_t>>& shapes,
                                   onnx::Programs programs = onnx::Programs::kRefused) {
  if constexpr (std::is_same_v<Source, std::string>) {
    if (TW_TRY(is_relay_file(source))) return read_relay_file(source, options, shapes);
    if (TW_TRY(is_torch_file(source))) return read_torch_file(source, options, shapes, programs);
  } else {
    if (torch::is_archive(source.bytes)) return read_torch_file(source, options, shapes, programs);
  }
  if (!options.params.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "an ONNX model holds its weights; --params is for Relay modules",
                      options.params, "leave it out");
  onnx::ImportOptions import;
  import.shapes = shapes;
  import.programs = programs;
  import.channel_block = TW_TRY(channel_block(options));
  const onnx::Model model = TW_TRY(read(source));
  for (const auto& [name, text] : options.constants) import.constants[name] = TW_TRY(constant_of(model, name, text));
  for (const auto& [name, tensor] : options.constant_tensors) {
    const onnx::ValueType& type = TW_TRY(input_of(model, name))->type;
    if (type.kind != onnx::ValueType::kTensor || !type.elem || !(tensor.dtype() == *type.elem))
      return Diagnostic(ErrorCode::kDtypeMismatch, format("the constant for input '{}' is {}, and the input {}", name,
                                                          tensor.dtype().str(), type.str()));
    import.constants[name] = tensor;
  }
  std::vector<std::string> needed;
  import.needed_constants = &needed;
  auto module = onnx::import_onnx(model, import);
  if (module.ok() || needed.empty()) return module;
  Diagnostic error = std::move(module).error();
  for (const std::string& name : needed)
    error.hint +=
        format("{}--constant {}=... compiles with fixed values for this input", error.hint.empty() ? "" : "; ", name);
  return error;
}

// The variants of a library with bounds. Errors: those of bounded_variants; InvalidArgument (not ONNX, several
// processors).
template <class Source>
Result<std::vector<BoundedVariant>> variants_within(const Source& source, const BuildOptions& options, bool exact) {
  bool onnx = true;
  if constexpr (std::is_same_v<Source, std::string>)
    onnx = !TW_TRY(is_relay_file(source)) && !TW_TRY(is_torch_file(source));
  else
    onnx = !torch::is_archive(source.bytes);
  if (!onnx)
    return Diagnostic(ErrorCode::kInvalidArgument, "bounds are for ONNX models", "--bound",
                      "give the sizes with --shape");
  if (!options.more_shapes.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "an input has several shapes, and sizes have bounds", "--bound",
                      "give bounds, or lists of sizes");
  if (TW_TRY(targets_of(options.target)).size() > 1)
    return Diagnostic(ErrorCode::kInvalidArgument, "a library with bounds is for one processor", "--bound",
                      "compile it for each, or for the oldest");
  return bounded_variants(TW_TRY(read(source)), options.bounds, options.shapes, exact);
}

// A plan under construction: the optimised build, and which of its sizes are free.
struct Variation {
  Built built;
  const BoundedVariant* within = nullptr;
  std::vector<relay::FreeDim> inputs, outputs;
};

template <class Source>
Result<Variation> optimized_variant(const Source& source, const BoundedVariant& variant, const BuildOptions& options) {
  Variation out;
  relay::Module module = TW_TRY(import_model(source, options, variant.shapes));
  if (!variant.sizes.empty()) {
    out.within = &variant;
    out.inputs = TW_TRY(free_inputs(variant, module));
    auto bounded = TW_TRY(
        relay::bound_sizes(module, TW_TRY(import_model(source, options, variant.smaller)), variant.sizes, out.inputs));
    module = std::move(bounded.module);
    out.outputs = std::move(bounded.outputs);
  }
  out.built = TW_TRY(run_passes_on(module, options));
  return out;
}

// Optimises variant i. `last`: it will not be requested again.
using MakeVariation = std::function<Result<Variation>(size_t i, const BuildOptions& options, bool last)>;

// Up to this many plans all optimised modules are kept in memory; beyond, passes run twice.
constexpr size_t kPlansInMemory = 16;

// Builds a plan for each variant and processor, processor by processor.
Result<Built> build_plans(size_t variants, const MakeVariation& make, const BuildOptions& options) {
  const auto targets = TW_TRY(targets_of(options.target));
  const size_t plans = variants * targets.size();
  const bool several = plans > 1, together = plans <= kPlansInMemory;
  auto options_of = [&](size_t plan) {
    BuildOptions own = options;
    own.target = targets[plan / variants].text;
    // Variants' external functions get distinct names.
    if (const size_t i = plan % variants; i > 0) own.name += format("_v{}", i);
    return own;
  };
  // All uses of a weight, in all shapes and processors, must be known before it is packed first.
  lower::WeightForms forms;
  std::vector<Variation> optimized;
  for (size_t p = 0; p < plans && several; ++p) {
    Variation v = TW_TRY(make(p % variants, options_of(p), together && p + variants >= plans));
    TW_TRY_STATUS(forms.add(v.built.optimized, v.built.target));
    if (together) optimized.push_back(std::move(v));
  }
  forms.agree();
  std::vector<Built> built;  // by processor
  lower::Variants joined;
  for (size_t p = 0; p < plans; ++p) {
    report(options, "lower", static_cast<double>(p) / static_cast<double>(plans));
    const BuildOptions own = options_of(p);
    Variation v =
        p < optimized.size() ? std::move(optimized[p]) : TW_TRY(make(p % variants, own, p + variants >= plans));
    Built one = TW_TRY(lower_optimized(std::move(v.built), own, several ? &forms : nullptr));
    if (v.within) set_free_sizes(*v.within, v.inputs, v.outputs, &one.lowered.plan);
    if (p % variants == 0) {
      built.push_back(std::move(one));
      joined = {};
    } else {
      joined.add(&built.back().lowered, std::move(one.lowered));
    }
  }
  for (size_t t = 0; t < built.size(); ++t) {
    if (t > 0) name_kernels_for(built[t].target, &built[t].lowered);
    TW_TRY_STATUS(compile_kernels(&built[t], options));
  }
  Built first = std::move(built[0]);
  built.erase(built.begin());
  add_instruction_sets(&first, std::move(built));
  return first;
}

Result<Built> build_modules(std::vector<relay::Module> modules, const BuildOptions& options) {
  return build_plans(
      modules.size(),
      [&](size_t i, const BuildOptions& own, bool last) -> Result<Variation> {
        Variation v;
        v.built = TW_TRY(run_passes_on(modules[i], own));
        if (last) modules[i] = {};  // replaced by packed weights
        return v;
      },
      options);
}

template <class Source>
Result<Built> build_variants(const Source& source, const std::vector<BoundedVariant>& variants,
                             const BuildOptions& options) {
  return build_plans(
      variants.size(),
      [&](size_t i, const BuildOptions& own, bool) { return optimized_variant(source, variants[i], own); }, options);
}

template <class Source>
Result<Built> build_once(const Source& source, const BuildOptions& options, const std::string& name) {
  return guarded([&]() -> Result<Built> {
    if ((options.aot || options.ahead_of_time) && (!options.more_shapes.empty() || !options.bounds.empty()))
      return Diagnostic(ErrorCode::kInvalidArgument,
                        "a library of several shapes cannot have an ahead-of-time executor", {},
                        "compile one library for each shape");
    report(options, "read model", 0);
    BuildOptions named = options;
    if (named.name.empty()) named.name = name;
    if (!options.bounds.empty()) {
      auto made = build_variants(source, TW_TRY(variants_within(source, options, false)), named);
      const bool usual = std::any_of(options.bounds.begin(), options.bounds.end(), [](auto& b) { return b.parts > 0; });
      if (made.ok() || usual || made.error().code != ErrorCode::kUnsupportedModel) return made;
      // An operator needs exact sizes: compile every size separately, if there are few.
      auto exact = variants_within(source, options, true);
      return exact.ok() ? build_variants(source, *exact, named) : made;
    }
    std::vector<relay::Module> modules = {TW_TRY(import_model(source, options, options.shapes))};
    for (const auto& shapes : options.more_shapes) modules.push_back(TW_TRY(import_model(source, options, shapes)));
    return build_modules(std::move(modules), named);
  });
}

template <class Source>
Result<Built> build_from(const Source& source, const BuildOptions& options, const std::string& name) {
  return naming_left_out_passes(options, [&](const BuildOptions& o) { return build_once(source, o, name); });
}

// Keeps the module, whose weights are freed as they are packed, only where it may be built once more.
Result<Built> build_one(relay::Module module, const BuildOptions& options) {
  const bool again = !options.disabled_passes.empty();
  return naming_left_out_passes(options, [&](const BuildOptions& o) {
    return guarded([&]() -> Result<Built> {
      std::vector<relay::Module> modules;
      modules.push_back(again ? module : std::move(module));
      return build_modules(std::move(modules), o);
    });
  });
}

}  // namespace

Status check_options(const BuildOptions& options) {
  PassContext context = TW_TRY(pass_context(options, TW_TRY(targets_of(options.target))[0].target));
  return context.check_names(pass_names(relay::all_passes()));
}

Result<Built> optimize(const relay::Module& module, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    BuildOptions best = options;
    best.target = TW_TRY(targets_of(options.target))[0].text;
    return run_passes_on(module, best);
  });
}

Result<Built> build_fused(const relay::Module& fused, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    Built built;
    built.optimized = fused;
    built.ahead_of_time = options.ahead_of_time;
    built.graph_in_c = options.graph_in_c;
    built.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(options.target))));
    report(options, "lower", 0);
    built = TW_TRY(lower_optimized(std::move(built), options));
    TW_TRY_STATUS(compile_kernels(&built, options));
    return built;
  });
}

Result<Built> build(const relay::Module& module, const BuildOptions& options) { return build_one(module, options); }

Result<int64_t> channel_block(const BuildOptions& options) {
  return TW_TRY(targets_of(options.target))[0].target.vector_bits == 256 ? 8 : 16;
}

Result<relay::Module> read_model_file(const std::string& path, const BuildOptions& options, onnx::Programs programs) {
  return guarded([&]() -> Result<relay::Module> {
    report(options, "read model", 0);
    return import_model(path, options, options.shapes, programs);
  });
}

Result<Built> build_read(relay::Module module, const std::string& path, const BuildOptions& options) {
  BuildOptions named = options;
  if (named.name.empty()) named.name = std::filesystem::path(path).stem().string();
  return build_one(std::move(module), named);
}

Result<Built> build_onnx(const std::string& path, const BuildOptions& options) {
  return build_from(path, options, std::filesystem::path(path).stem().string());
}

Result<Built> build_onnx(const onnx::SharedBytes& bytes, const BuildOptions& options) {
  return build_from(bytes, options, "");
}

}  // namespace tilewright::driver
