// SPDX-License-Identifier: Apache-2.0
// Builds scheduled tensor expressions to a library of functions called by name with tensors
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
  // The order of arguments: false: the next of lowered's tensors; true: the next of its scalars, which are the first of
  // its sizes.
  std::vector<bool> scalar;
};

using FunctionList = std::span<const std::shared_ptr<const LoweredFunction>>;

// The function with another body: each statement of a sequence is a kernel. They may access the function's buffers, and
// write those it wrote. Errors: VerifyFailed (an unknown variable or buffer, a dtype).
Result<LoweredFunction> with_body(const LoweredFunction& function, const tir::Stmt& body);

// The function's kernels after kernel passes, ready for code generation and named after the function. Errors:
// VerifyFailed.
Result<std::vector<tir::PrimFunc>> finished_kernels(const LoweredFunction& function);

// A kernel as a function of its own, over buffers of one dimension.
LoweredFunction function_of_kernel(const tir::PrimFunc& kernel);

// Adds the functions and their kernels to a lowered model before code generation: the model calls them by name as
// functions with the attribute Extern. Errors: InvalidArgument (a size that no argument determines, duplicate names, a
// loop bound to a device's thread, an intrinsic without a rule), VerifyFailed.
Status add_functions(FunctionList functions, Built* built);
// Compiles LLVM IR that the functions import,
// after their kernels. Errors: CodegenFailed.
Status compile_imports(FunctionList functions, Built* built);

// Uses `target`, `jobs`, `kernel_cache` and `system_lib` of the options. Errors: InvalidArgument (a size that no
// argument determines, duplicate names), UnsupportedModel, UnknownTarget, CodegenFailed.
Result<Built> build_functions(FunctionList functions, const BuildOptions& options);

}  // namespace tilewright::driver
