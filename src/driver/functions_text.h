// SPDX-License-Identifier: Apache-2.0
// Serialises a scheduled function for another process that builds it. Not a stable format: both ends have the same
// version.
#pragma once
#include <string>

#include "driver/functions.h"

namespace tilewright::driver {

// One line of JSON. Error: InvalidArgument (a size known only at a call, a loop bound to a device's thread, calls of
// runtime functions, LLVM IR imported by the schedule).
Result<std::string> to_text(const LoweredFunction& function);
// Errors: ProtocolError, ParseError, VerifyFailed.
Result<LoweredFunction> parse_function(const std::string& text);

}  // namespace tilewright::driver
