// SPDX-License-Identifier: Apache-2.0
// Errors of invalid command lines.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright {

// The error for `what` the parser reported about `words`, for `verb` (may be empty) and its long options: the hint
// suggests an option with a similar name, else the help.
Diagnostic usage_error(std::string what, const std::string& verb, std::span<const std::string> options,
                       std::span<const char* const> words);

}  // namespace tilewright
