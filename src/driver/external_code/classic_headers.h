// SPDX-License-Identifier: Apache-2.0
// The headers that C source of classic code generators includes: the packed convention and the tensors it passes.
#pragma once
#include <string_view>

namespace tilewright::driver {

// The text that stands for `#include <name>`; null where the name is not one of them.
const char* classic_header(std::string_view name);

}  // namespace tilewright::driver
