// SPDX-License-Identifier: Apache-2.0
// Prints functions over arrays as the classic stack's script, which Python can read back
// (python/tilewright/classic/script).
#pragma once
#include <string>

#include "tir/block.h"

namespace tilewright::te {
// One function with its decorator, under its own name or its name in a module. `canonical`: numbers instead of names,
// so that equal functions have equal texts.
std::string to_script(const tir::BlockFunction& function, const std::string& def_name = {}, bool canonical = false);
}  // namespace tilewright::te
