// SPDX-License-Identifier: Apache-2.0
#include "codegen/backend.h"

#include <algorithm>

#include "base/format.h"
#include "codegen/llvm/backend.h"
#include "codegen/source/backend.h"
#include "codegen/stackvm/backend.h"

namespace tilewright::codegen {

std::span<const Backend> backends() {
  static const Backend kTable[] = {llvm_backend(), c_backend(), stackvm_backend()};
  return kTable;
}

const Backend& backend_of(const Target& target) {
  for (const Backend& b : backends())
    if (target.kind == b.kind) return b;
  TW_ICHECK(false, format("target kind '{}' has no backend", target.kind));
  return backends()[0];
}

Result<Target> resolve_target(Target target) {
  const Backend& backend = backend_of(target);
  return backend.resolve(std::move(target));
}

Result<Kernels> compile_kernels(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                                const std::function<void(int, int)>& progress, KernelCache* cache) {
  return backend_of(target).compile(functions, target, jobs, progress, cache);
}

Result<std::string> kernel_text(const tir::PrimFunc& function, const Target& target, std::string_view form) {
  const Backend& backend = backend_of(target);
  std::string forms;
  for (const char* f : backend.text_forms) {
    if (form == f) return backend.text(function, target, form);
    forms += (forms.empty() ? "" : " or ") + std::string(f);
  }
  return Diagnostic(ErrorCode::kInvalidArgument, format("there is no kernel text in the form '{}'", form), {},
                    "use " + forms);
}

}  // namespace tilewright::codegen
