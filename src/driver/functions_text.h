// SPDX-License-Identifier: Apache-2.0
// A scheduled function as a text, for another process that builds it. Not a format that is kept: both ends are one
// version.
#pragma once
#include <string>

#include "driver/functions.h"

namespace tilewright::driver {

// One line of JSON. Error: InvalidArgument (a size that only a call knows, a loop that is bound to a device's
// thread, calls of functions of the runtime, LLVM IR of the schedule's).
Result<std::string> to_text(const LoweredFunction& function);
// Errors: ProtocolError, ParseError, VerifyFailed.
Result<LoweredFunction> parse_function(const std::string& text);

}  // namespace tilewright::driver
