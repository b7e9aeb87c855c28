// SPDX-License-Identifier: Apache-2.0
// Binds parameters of main: to constants, or to types with known sizes.
#pragma once
#include <map>
#include <string>

#include "relay/expr.h"

namespace tilewright::relay {

// main with the parameters of these names replaced by constants; other names are ignored. Error: InvalidArgument (no
// main).
Result<Module> bind_params(const Module& module, const std::map<std::string, Tensor>& constants);

// main with distinct parameter names: a second "x" becomes "x_1". The IR identifies variables by object, plans and
// programs by name.
Module with_distinct_parameters(const Module& module);

// main with sizes for the free dimensions of these parameters. Errors: UnknownInput, ShapeMismatch (another rank, or a
// dimension that is not free), InvalidArgument (no main, a parameter that is no tensor), and those of inferring the
// body's types again.
Result<Module> with_shapes(const Module& module, const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tilewright::relay
