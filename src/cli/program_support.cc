// SPDX-License-Identifier: Apache-2.0
#include "cli/program_support.h"

#include "cli/verbs.h"

namespace tilewright::cli {

using runtime::vm::kCompilerLibrary;

namespace {
constexpr const char* kInterpreterLibrary = "libtilewright_vm.so";
}  // namespace

Result<ProgramSupport> support_for(const runtime::vm::Program& program) {
  ProgramSupport out;
  std::string why;
  if (program.open_regions() > 0)
    out.specialize = reinterpret_cast<runtime::vm::SpecializeFunction>(
        TW_TRY(library_symbol(kCompilerLibrary, "tw_compiler_specialize", &why)));
  if (program.runs_alone()) return out;
  // The interpreter alone is the smaller library.
  for (const char* file : {out.specialize ? kCompilerLibrary : kInterpreterLibrary, kCompilerLibrary}) {
    void* evaluate = TW_TRY(library_symbol(file, "tw_compiler_evaluate", &why));
    if (!evaluate) continue;
    out.evaluate = reinterpret_cast<runtime::vm::EvaluateFunction>(evaluate);
    out.message = reinterpret_cast<runtime::vm::MessageFunction>(
        TW_TRY(library_symbol(file, "tw_compiler_last_error_message", &why)));
    break;
  }
  return out;
}

}  // namespace tilewright::cli
