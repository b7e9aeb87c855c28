// SPDX-License-Identifier: Apache-2.0
// The rules a function of the loop IR keeps between passes; never changes anything. Error: VerifyFailed, which names
// the kernel and the statement.
//
// Checked: every variable and buffer is used inside its scope and bound once on the way to it; dtypes agree; stores do
// not hit read-only buffers; constant indices are inside their buffer; depth stays below the limits of tir/walk.h. The
// final form (what code generation takes) also has no vectorized or unrolled loop left and constant indices of register
// buffers.
#pragma once
#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

enum class Form : uint8_t { kAny, kFinal };
Status verify(const PrimFunc& function, Form form = Form::kAny);

}  // namespace tilewright::tir
