// SPDX-License-Identifier: Apache-2.0
// The system library: models linked into the program, which register themselves before main, and functions that the
// program registers.
#pragma once
#include <memory>
#include <string>

#include "runtime/module.h"

namespace tilewright::runtime {

// Implements tw_system_lib_register of tilewright/c_api.h; `function` calls the address if that is a function. A
// separate entry point, because this file is also part of the compiler, which gets the C interface from elsewhere.
void register_system_symbol(const std::string& name, const void* address, FunctionRef function = {});

// The module of all that: each model is an imported library. A model's name makes its executor, and if there is only
// one, its library's functions are available; other names are the program's functions. Registering more creates a new
// module. Errors: those of Artifact::linked and of the loaders of imported modules.
Result<std::shared_ptr<Module>> system_lib();

}  // namespace tilewright::runtime
