// SPDX-License-Identifier: Apache-2.0
// Headers included by C source of classic code generators: the packed convention and its tensors.
#pragma once
#include <string_view>

namespace tilewright::driver {

// The replacement of `#include <name>`; null for other headers.
const char* classic_header(std::string_view name);

}  // namespace tilewright::driver
