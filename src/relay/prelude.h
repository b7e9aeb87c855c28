// SPDX-License-Identifier: Apache-2.0
// The types and functions every classic script may count on: List, Option, Tree, and what maps and folds over them.
#pragma once
#include <string_view>

#include "relay/expr.h"

namespace tilewright::relay {

// As Relay text.
std::string_view prelude_text();
// The module with the prelude's types and functions; what it defines itself under one of those names stays. Calls of
// prelude functions by name work in texts that begin with the prelude's.
Result<Module> with_prelude(const Module& module);

}  // namespace tilewright::relay
