// SPDX-License-Identifier: Apache-2.0
// The processors that the target c knows by name: microcontrollers without vectors, and those for whose vectors kernels
// are written with GNU vector types.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/target.h"

namespace tilewright::codegen {

// 32-bit processors without vectors, on which quantised models keep bytes (relay/passes/quantize/byte_products.h).
bool is_small_c(const Target& target);
// Whether C for it has vectors.
bool is_vector_c(const Target& target);
// Completes a target c with an -mcpu. Error: UnknownTarget, with the known names.
Result<Target> resolve_c_processor(Target target);
// The dialect and the machine options for C compilers: "-std=c99", or "-std=gnu99", "-march=x86-64-v3".
std::vector<std::string> c_compiler_options(const Target& target);
// The machine options alone, for comments: "-march=x86-64-v3"; empty if there are none.
std::string c_machine_option(const std::string& mcpu);

}  // namespace tilewright::codegen
