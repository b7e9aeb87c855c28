// SPDX-License-Identifier: Apache-2.0
// LLVM's row in the table of backends: machine code for x86, ARM and RISC-V.
#pragma once
#include "codegen/backend.h"

namespace tilewright::codegen {
Backend llvm_backend();
}  // namespace tilewright::codegen
