// SPDX-License-Identifier: Apache-2.0
// What runs the parts of a VM program that have no kernels, as far as it is installed.
#pragma once
#include "runtime/vm/compiler_hook.h"

namespace tilewright::cli {

struct ProgramSupport {
  runtime::vm::SpecializeFunction specialize = nullptr;  // the compiler's
  runtime::vm::EvaluateFunction evaluate = nullptr;      // the compiler's, or that of libtilewright_vm.so
  runtime::vm::MessageFunction message = nullptr;
};
// Opens no library for what the program does not need. Errors: LinkFailed (another version).
Result<ProgramSupport> support_for(const runtime::vm::Program& program);

}  // namespace tilewright::cli
