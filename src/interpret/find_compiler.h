// SPDX-License-Identifier: Apache-2.0
// The compiler of a process that runs VM programs: linked with it, or its library where that is installed.
#pragma once
#include "runtime/vm/compiler_hook.h"

namespace tilewright::interpret {

struct Compiler {
  runtime::vm::SpecializeFunction specialize = nullptr;  // null: there is no compiler
  runtime::vm::MessageFunction message = nullptr;
};
// The library is looked for beside this code, then on the system's search path, once; it stays loaded.
Compiler find_compiler();

}  // namespace tilewright::interpret
