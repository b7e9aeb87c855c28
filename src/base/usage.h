// SPDX-License-Identifier: Apache-2.0
// The error of a command line that was not understood.
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright {

// `what` the parser said of the `words`, for `verb` (may be empty) and the long options that it has: the hint names the
// option that a misspelt one is close to, or else the help.
Diagnostic usage_error(std::string what, const std::string& verb, std::span<const std::string> options,
                       std::span<const char* const> words);

}  // namespace tilewright
