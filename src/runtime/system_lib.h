// SPDX-License-Identifier: Apache-2.0
// What is linked into the program itself: models compiled for a system library, which name themselves before main, and
// functions that the program names.
#pragma once
#include <memory>
#include <string>

#include "runtime/module.h"

namespace tilewright::runtime {

// What tw_system_lib_register of tilewright/c_api.h is told; `function` calls the address where that is a function of
// the program. Made there: this file is part of the compiler as well, which has the C interface from elsewhere.
void register_system_symbol(const std::string& name, const void* address, FunctionRef function = {});

// The module of all that: each model is a library that it imports. A model's name makes its executor, as the functions
// of a library do where there is only one; the other names are the program's functions. It is a new one when something
// has been named since. Errors: those of Artifact::linked and of the loaders of modules that a model imports.
Result<std::shared_ptr<Module>> system_lib();

}  // namespace tilewright::runtime
