// SPDX-License-Identifier: Apache-2.0
// Text formatting. fmt's declarations only; its code is compiled once, in format.cc, so that no library needs it.
#pragma once
#include <fmt/core.h>

#include <string>

namespace tilewright {
using fmt::format;
}  // namespace tilewright
