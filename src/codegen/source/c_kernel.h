// SPDX-License-Identifier: Apache-2.0
// One kernel as a C99 function.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

// `static void kernel_NAME(const float *in0, ..., float *out0)` for a function legalised for C: scalar,
// single-threaded, without packed elements or small-float arithmetic. Parameters are marked `@restrict`; the program
// decides, since aliasing depends on the calls. Error: UnsupportedModel for an element type without a C type. `small`:
// for 32-bit processors; indices are int32_t if all 64-bit values are indices. `vectors`: lanes are left, for GNU C.
Result<std::string> c_kernel(const tir::PrimFunc& function, bool small = false, bool vectors = false);

std::string c_kernel_name(const std::string& symbol);

}  // namespace tilewright::codegen
