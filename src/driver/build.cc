// SPDX-License-Identifier: Apache-2.0
#include "driver/build.h"

#include <filesystem>
#include <thread>

#include "base/format.h"
#include "codegen/codegen.h"
#include "codegen/kernel_cache.h"
#include "frontend/onnx/import.h"
#include "relay/passes/pipeline.h"

namespace tilewright::driver {
namespace {

void report(const BuildOptions& options, const char* stage, double fraction) {
  if (options.progress) options.progress(stage, fraction);
}

// A failed internal check becomes an error like any other, with what a report needs.
template <class F>
auto guarded(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const InternalError& e) {
    return Diagnostic(ErrorCode::kInternal, e.what(), {},
                      "this is a bug in Tilewright; please report it with the model");
  } catch (const std::bad_alloc&) {
    return Diagnostic(ErrorCode::kLimitExceeded, "memory ran out", {},
                      "compile on a machine with more memory, or a smaller input shape");
  }
}

Result<Built> run_passes_on(const relay::Module& module, const BuildOptions& options) {
  Built built;
  if (options.keep_modules) built.imported = module;
  built.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(options.target))));
  PassContext context;
  context.opt_level = options.opt_level;
  context.required.insert(options.required_passes.begin(), options.required_passes.end());
  context.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  context.target = built.target;
  context.dump_dir = options.dump_ir;
  context.stop_after = options.stop_after;
  for (const auto& [key, value] : options.config) TW_TRY_STATUS(context.set_config(key, value));
  report(options, "optimise", 0);
  built.optimized = TW_TRY(relay::optimize(module, context, built.target));
  built.passes = context.log;
  return built;
}

// Takes the module, so that without keep_modules its weights go as soon as packed ones have replaced them.
Result<Built> build_module(relay::Module module, const BuildOptions& options) {
  Built built = TW_TRY(run_passes_on(module, options));
  module = {};
  report(options, "lower", 0);
  built.lowered = TW_TRY(lower::lower_module(built.optimized, built.target));
  if (!options.keep_modules) {
    built.optimized = {};
    for (lower::StepTrace& trace : built.lowered.traces)
      for (auto* operands : {&trace.inputs, &trace.outputs})
        for (lower::OperandTrace& operand : *operands) operand.constant = Tensor();
  }
  int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  codegen::KernelCache cache(options.kernel_cache);
  auto kernels = TW_TRY(codegen::compile_kernels(
      built.lowered.kernels, built.target, jobs,
      [&](int done, int total) {
        report(options, "generate code", total ? static_cast<double>(done) / total : 1);
      },
      &cache));
  built.objects = std::move(kernels.objects);
  return built;
}

// `written` is called when the weights are on disk and no longer needed.
Status write_library(const plan::Plan& plan, const std::vector<Tensor>& weights,
                     std::vector<std::string> objects, const Target& target, const std::string& path,
                     const std::function<void()>& written) {
  objects.push_back(TW_TRY(codegen::compile_glue(plan, target)));
  // Each tensor at its offset, zeros between and after.
  static const std::vector<std::byte> kZeros(256);
  std::vector<std::span<const std::byte>> pieces;
  uint64_t at = 0;
  auto pad_to = [&](uint64_t offset) {
    while (at < offset) {
      uint64_t n = std::min<uint64_t>(offset - at, kZeros.size());
      pieces.push_back(std::span(kZeros).first(n));
      at += n;
    }
  };
  for (size_t i = 0; i < plan.params.size(); ++i) {
    pad_to(plan.params[i].offset);
    pieces.push_back({weights[i].raw(), static_cast<size_t>(weights[i].bytes())});
    at += weights[i].bytes();
  }
  pad_to(plan.params_bytes);
  const codegen::ByteSpans params = pieces;
  return codegen::link_shared(objects, path, target, &params, written);
}

}  // namespace

Result<Built> optimize(const relay::Module& module, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> { return run_passes_on(module, options); });
}

Result<Built> build(const relay::Module& module, const BuildOptions& options) {
  return guarded([&] { return build_module(module, options); });
}

Result<Built> build_onnx(const std::string& path, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    report(options, "read model", 0);
    onnx::ImportOptions import;
    import.shapes = options.shapes;
    auto module = TW_TRY(onnx::import_onnx(path, import));
    Built built = TW_TRY(build_module(std::move(module), options));
    built.lowered.plan.model_name = std::filesystem::path(path).stem().string();
    return built;
  });
}

Status export_library(const Built& built, const std::string& path) {
  return guarded([&] {
    return write_library(built.lowered.plan, built.lowered.params, built.objects, built.target, path, {});
  });
}

Status export_library_and_release(Built* built, const std::string& path) {
  return guarded([&] {
    return write_library(built->lowered.plan, built->lowered.params, std::move(built->objects), built->target,
                         path, [&] { built->lowered.params.clear(); });
  });
}

}  // namespace tilewright::driver
