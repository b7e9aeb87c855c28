// SPDX-License-Identifier: Apache-2.0
// What to do about an error: no error is shown without it.
#pragma once
#include "base/result.h"

namespace tilewright {

// The error's hint, or else what its code calls for; empty where the message is another error's text, which brings one.
std::string advice(const Diagnostic& error);

}  // namespace tilewright
