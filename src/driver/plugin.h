// SPDX-License-Identifier: Apache-2.0
// External code generators in C: given as structures, or by a shared library.
#pragma once
#include <string>
#include <vector>

#include "driver/external.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {

// Error: InvalidArgument (no name, or no generating function).
Result<ExternalCodegen> external_codegen(const tw_external_codegen& given);

// Loads a shared library permanently and adds the code generators returned by its tw_compiler_plugin. Errors:
// FileNotFound, LinkFailed (the dynamic linker's message), InvalidArgument (no such function).
Status load_plugin(const std::string& path, std::vector<ExternalCodegen>* codegens);

}  // namespace tilewright::driver
