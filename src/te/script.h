// SPDX-License-Identifier: Apache-2.0
// Functions over arrays as the classic stack's script, which Python reads again (python/tilewright/classic/script).
#pragma once
#include <string>

#include "tir/block.h"

namespace tilewright::te {
// One function, with its decorator, under its own name or that of its place in a module. `canonical`: with numbers in
// the place of names, so that equal functions have equal texts.
std::string to_script(const tir::BlockFunction& function, const std::string& def_name = {}, bool canonical = false);
}  // namespace tilewright::te
