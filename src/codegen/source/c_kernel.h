// SPDX-License-Identifier: Apache-2.0
// One kernel as a C99 function.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

// `static void kernel_NAME(const float *in0, ..., float *out0)` of a function that was legalised for C: scalar, one
// thread, no packed elements, no arithmetic on small floats. Parameters are written `@restrict`, for the program to
// decide: whether they overlap depends on the calls. Error: UnsupportedModel for an element type that C does not have.
// `small`: for a processor of 32 bits; indices are int32_t where every value of 64 bits is one.
Result<std::string> c_kernel(const tir::PrimFunc& function, bool small = false);

std::string c_kernel_name(const std::string& symbol);

}  // namespace tilewright::codegen
