// SPDX-License-Identifier: Apache-2.0
// Classic options that are accepted but have no effect: they are for another tool or device, or request what is always
// done. Each entry says why.
#pragma once
#include <span>

#include "ir/pass_context.h"

namespace tilewright::classic {

std::span<const ConfigKeyInfo> keys_without_effect();

}  // namespace tilewright::classic
