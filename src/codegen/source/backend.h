// SPDX-License-Identifier: Apache-2.0
// C's row in the table of backends: C99 for any processor.
#pragma once
#include "codegen/backend.h"

namespace tilewright::codegen {
Backend c_backend();
}  // namespace tilewright::codegen
