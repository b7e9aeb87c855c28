// SPDX-License-Identifier: Apache-2.0
// Advice for errors: every error is shown with a hint.
#pragma once
#include "base/result.h"

namespace tilewright {

// The error's own hint, or the one for its code; empty if the message is the text of another error, which contains a
// hint.
std::string advice(const Diagnostic& error);

}  // namespace tilewright
