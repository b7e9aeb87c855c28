// SPDX-License-Identifier: Apache-2.0
// Scheduled tensor expressions to a library whose functions are called by name with tensors
// (base/formats/function_table.h).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "driver/build.h"
#include "te/lower.h"

namespace tilewright::driver {

struct LoweredFunction {
  std::string name;
  te::Lowered lowered;
  // The arguments in the caller's order: the next of lowered's tensors, or (true) the next of its scalars, which are
  // the first of its sizes.
  std::vector<bool> scalar;
};

// The same function with other statements: each of a sequence is a kernel. They use the function's buffers, and those
// that it wrote it may write. Errors: VerifyFailed (a variable or a buffer that is not there, a dtype).
Result<LoweredFunction> with_body(const LoweredFunction& function, const tir::Stmt& body);

// Kernels as code generation gets them: the passes of kernels done, named after the function. Errors: VerifyFailed.
Result<std::vector<tir::PrimFunc>> finished_kernels(const LoweredFunction& function);

// `target`, `jobs`, `kernel_cache` and `system_lib` of the options count. Errors: InvalidArgument (a size that no
// argument says, two functions of one name), UnsupportedModel, UnknownTarget, CodegenFailed.
Result<Built> build_functions(std::span<const LoweredFunction> functions, const BuildOptions& options);

}  // namespace tilewright::driver
