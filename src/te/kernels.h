// SPDX-License-Identifier: Apache-2.0
// Common parts of a function's kernels, whether they come from a schedule or from blocks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "te/flatten.h"
#include "te/lower.h"

namespace tilewright::te {

// The statements of a script's own body: each becomes a kernel, or a call of a runtime function. Arrays of the
// outermost blocks become workspaces shared by all. `arguments`: the function's buffers in order.
Status add_statements(const tir::Stmt& body, Flatten& flatten, const std::string& name,
                      const std::vector<tir::Buffer>& arguments, Lowered* out);
// Gives all kernels the same parameters; buffers that none writes are read-only. Sizes are bound at the start.
void finish_parameters(const std::vector<tir::Buffer>& arguments, Lowered* out);
// A free variable is a size of int32 or int64, or a float32 or float64 that the call gives; otherwise the reason is
// returned. And the variable that has its value in kernels: int64, or the float itself.
std::optional<Diagnostic> check_scalar(const tir::PrimExpr& var);
tir::PrimExpr scalar_value(const tir::PrimExpr& var);
// The function with memory of one element as its last parameter, which gets what it returns; the function itself if it
// returns nothing. Errors: InvalidArgument (it returns out of a loop, or values of two dtypes).
Result<tir::BlockFunction> with_result(const tir::BlockFunction& function, bool* has_result);
std::string kernel_name(const std::string& function, const Lowered& out);

}  // namespace tilewright::te
