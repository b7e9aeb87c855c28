// SPDX-License-Identifier: Apache-2.0
#include "driver/build.h"

#include <filesystem>
#include <thread>

#include "base/format.h"
#include "codegen/codegen.h"
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
    return Diagnostic(ErrorCode::kInternal, e.what(), {}, "this is a bug in Tilewright; please report it with the model");
  } catch (const std::bad_alloc&) {
    return Diagnostic(ErrorCode::kLimitExceeded, "memory ran out", {}, "compile on a machine with more memory, or a smaller input shape");
  }
}

Result<Built> run_passes_on(const relay::Module& module, const BuildOptions& options) {
  Built built;
  built.imported = module;
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

}  // namespace

Result<Built> optimize(const relay::Module& module, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> { return run_passes_on(module, options); });
}

Result<Built> build(const relay::Module& module, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    Built built = TW_TRY(run_passes_on(module, options));
    report(options, "lower", 0);
    built.lowered = TW_TRY(lower::lower_module(built.optimized, built.target));
    int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    auto kernels = TW_TRY(codegen::compile_kernels(built.lowered.kernels, built.target, jobs, [&](int done, int total) {
      report(options, "generate code", total ? static_cast<double>(done) / total : 1);
    }));
    built.objects = std::move(kernels.objects);
    return built;
  });
}

Result<Built> build_onnx(const std::string& path, const BuildOptions& options) {
  return guarded([&]() -> Result<Built> {
    report(options, "read model", 0);
    onnx::ImportOptions import;
    import.shapes = options.shapes;
    auto module = TW_TRY(onnx::import_onnx(path, import));
    Built built = TW_TRY(build(module, options));
    built.lowered.plan.model_name = std::filesystem::path(path).stem().string();
    return built;
  });
}

Status export_library(const Built& built, const std::string& path) {
  return guarded([&]() -> Status {
    plan::Plan plan = built.lowered.plan;
    std::vector<std::string> objects = built.objects;
    objects.push_back(TW_TRY(codegen::compile_glue(plan, built.target)));
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
      const Tensor& t = built.lowered.params[i];
      pieces.push_back({t.raw(), static_cast<size_t>(t.bytes())});
      at += t.bytes();
    }
    pad_to(plan.params_bytes);
    const codegen::ByteSpans params = pieces;
    return codegen::link_shared(objects, path, built.target, &params);
  });
}

}  // namespace tilewright::driver
