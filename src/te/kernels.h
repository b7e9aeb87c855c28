// SPDX-License-Identifier: Apache-2.0
// What the kernels of a function have in common, however they were made.
#pragma once
#include <string>
#include <vector>

#include "te/flatten.h"
#include "te/lower.h"

namespace tilewright::te {

// The statements of a script's own body: each becomes a kernel, or a call of the runtime's function. Arrays that live
// in the outermost blocks are workspaces of all of them. `arguments`: the function's buffers, in order.
Status add_statements(const tir::Stmt& body, Flatten& flatten, const std::string& name,
                      const std::vector<tir::Buffer>& arguments, Lowered* out);
// All kernels take the same buffers; what none of them writes is read-only. Sizes are bound at their start.
void finish_parameters(const std::vector<tir::Buffer>& arguments, Lowered* out);
std::string kernel_name(const std::string& function, const Lowered& out);

}  // namespace tilewright::te
