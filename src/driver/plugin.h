// SPDX-License-Identifier: Apache-2.0
// Code generators that come from outside in C: as structures, or from a shared library.
#pragma once
#include <string>
#include <vector>

#include "driver/external.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {

// Error: InvalidArgument (no name, nothing that generates).
Result<ExternalCodegen> external_codegen(const tw_external_codegen& given);

// Loads a shared library for good and adds the code generators that its tw_compiler_plugin gives. Errors: FileNotFound,
// LinkFailed (what the dynamic linker says), InvalidArgument (no such function).
Status load_plugin(const std::string& path, std::vector<ExternalCodegen>* codegens);

}  // namespace tilewright::driver
