// SPDX-License-Identifier: Apache-2.0
// The row of byte code in the table of backends: what the runtime runs by itself, on any processor (docs/stackvm.md).
#pragma once
#include "codegen/backend.h"

namespace tilewright::codegen {
Backend stackvm_backend();
}  // namespace tilewright::codegen
