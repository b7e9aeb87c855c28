// SPDX-License-Identifier: Apache-2.0
// E702, an error of RPC sessions only. It is not in TW_ERROR_CODES, so that the rest of the compiler does not depend on
// it.
#pragma once
#include "base/result.h"

namespace tilewright {

inline constexpr auto kTokenRefused = static_cast<ErrorCode>(702);

}  // namespace tilewright
