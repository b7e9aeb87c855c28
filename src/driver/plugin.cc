// SPDX-License-Identifier: Apache-2.0
#include "driver/plugin.h"

#include <dlfcn.h>

#include "base/plugin.h"
#include "runtime/dltensor.h"

namespace tilewright::driver {
namespace {

// The module or error that a generator passed to its callback.
struct GeneratorResult {
  bool done = false;
  Result<SavedModule> module = Diagnostic(ErrorCode::kCodegenFailed, "it delivered nothing");
};

}  // namespace

Result<ExternalCodegen> external_codegen(const tw_external_codegen& given) {
  if (given.size < sizeof(tw_external_codegen) || !given.name || !given.generate)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      "an external code generator needs its size, a name and a function that generates");
  ExternalCodegen out;
  out.name = given.name;
  if (given.patterns) out.patterns = given.patterns;
  if (given.supports)
    out.supports = [supports = given.supports, context = given.context](const std::string& graph) -> Result<bool> {
      return supports(context, graph.c_str()) != 0;
    };
  out.generate = [generate = given.generate, context = given.context](
                     const std::string& symbol, const std::string& graph, const std::vector<Tensor>& constants) {
    std::vector<DLTensor> views;
    for (const Tensor& t : constants)
      views.push_back({const_cast<std::byte*>(t.raw()),
                       {kDLCPU, 0},
                       static_cast<int32_t>(t.shape().size()),
                       runtime::to_dlpack(t.dtype()),
                       const_cast<int64_t*>(t.shape().data()),
                       nullptr,
                       0});
    GeneratorResult result;
    generate(
        context, symbol.c_str(), graph.c_str(), views.data(), views.size(),
        [](void* receiver, const char* key, const void* data, uint64_t size) {
          auto& to = *static_cast<GeneratorResult*>(receiver);
          const std::string bytes =
              data ? std::string(static_cast<const char*>(data), static_cast<size_t>(size)) : std::string();
          if (to.done)
            to.module = Diagnostic(ErrorCode::kCodegenFailed, "it delivered more than one module");
          else if (key)
            to.module = SavedModule{key, bytes, {}};
          else
            to.module = Diagnostic(ErrorCode::kCodegenFailed, bytes.empty() ? "it failed without a message" : bytes);
          to.done = true;
        },
        &result);
    return std::move(result.module);
  };
  return out;
}

Status load_plugin(const std::string& path, std::vector<ExternalCodegen>* codegens) {
  void* library = TW_TRY(open_plugin(path));
  using Entry = const tw_external_codegen* (*)(uint64_t*);
  auto entry = reinterpret_cast<Entry>(dlsym(library, "tw_compiler_plugin"));
  if (!entry)
    return Diagnostic(ErrorCode::kInvalidArgument, "the plug-in has no function tw_compiler_plugin", path,
                      "docs/external-codegen.md shows one");
  uint64_t count = 0;
  const tw_external_codegen* list = entry(&count);
  for (uint64_t i = 0; list && i < count; ++i) codegens->push_back(TW_TRY(external_codegen(list[i])));
  return Ok{};
}

}  // namespace tilewright::driver
