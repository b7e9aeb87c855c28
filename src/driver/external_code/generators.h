// SPDX-License-Identifier: Apache-2.0
// Built-in external code generators; a user's generator of the same name takes precedence.
#pragma once
#include <string>
#include <vector>

#include "driver/external.h"

namespace tilewright::driver {

// Null where there is none of the name.
const ExternalCodegen* own_generator(const std::string& name);

// "ccompiler": elementwise add, subtract, multiply and divide, as C. Errors: CodegenFailed, naming an unsupported
// operator.
Result<SavedModule> generate_c(const std::string& symbol, const std::string& graph_json,
                               const std::vector<Tensor>& constants);

}  // namespace tilewright::driver
