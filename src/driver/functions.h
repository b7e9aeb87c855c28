// SPDX-License-Identifier: Apache-2.0
// Scheduled tensor expressions to a library whose functions are called by name with tensors
// (base/formats/function_table.h).
#pragma once
#include <memory>
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

using FunctionList = std::span<const std::shared_ptr<const LoweredFunction>>;

// The same function with other statements: each of a sequence is a kernel. They use the function's buffers, and those
// that it wrote it may write. Errors: VerifyFailed (a variable or a buffer that is not there, a dtype).
Result<LoweredFunction> with_body(const LoweredFunction& function, const tir::Stmt& body);

// Kernels as code generation gets them: the passes of kernels done, named after the function. Errors: VerifyFailed.
Result<std::vector<tir::PrimFunc>> finished_kernels(const LoweredFunction& function);

// Puts the functions and their kernels beside what is lowered already, before code generation: a model calls them by
// name as functions with the attribute Extern. Errors: InvalidArgument (a size that no argument says, two functions of
// one name, a loop bound to a device's thread, an intrinsic without a rule), VerifyFailed.
Status add_functions(FunctionList functions, Built* built);
// The code that the functions bring with them as texts of LLVM IR, after their kernels were compiled. Errors:
// CodegenFailed.
Status compile_imports(FunctionList functions, Built* built);

// `target`, `jobs`, `kernel_cache` and `system_lib` of the options count. Errors: InvalidArgument (a size that no
// argument says, two functions of one name), UnsupportedModel, UnknownTarget, CodegenFailed.
Result<Built> build_functions(FunctionList functions, const BuildOptions& options);

}  // namespace tilewright::driver
