// SPDX-License-Identifier: Apache-2.0
// Code generators that come with the compiler; a user's of the same name goes first.
#pragma once
#include <string>
#include <vector>

#include "driver/external.h"

namespace tilewright::driver {

// Null where there is none of the name.
const ExternalCodegen* own_generator(const std::string& name);

// "ccompiler": element-wise add, subtract, multiply and divide of numbers, as C. Errors: CodegenFailed, naming what it
// cannot write.
Result<SavedModule> generate_c(const std::string& symbol, const std::string& graph_json,
                               const std::vector<Tensor>& constants);

}  // namespace tilewright::driver
