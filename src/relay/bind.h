// SPDX-License-Identifier: Apache-2.0
// Parameters of main that become constants, or other types.
#pragma once
#include <map>
#include <string>

#include "relay/expr.h"

namespace tilewright::relay {

// main with its parameters of these names replaced by constants; names that it does not have are left alone. Error:
// InvalidArgument (no main).
Result<Module> bind_params(const Module& module, const std::map<std::string, Tensor>& constants);

// main with a name of its own for each parameter: the second "x" becomes "x_1". Variables are who they are; plans and
// programs know their inputs by name.
Module with_distinct_parameters(const Module& module);

// main with the free sizes of these parameters given. Errors: UnknownInput, ShapeMismatch (another rank, or a size that
// is not free), InvalidArgument (no main, a parameter that is no tensor), and those of typing the body anew.
Result<Module> with_shapes(const Module& module, const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tilewright::relay
