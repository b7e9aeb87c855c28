// SPDX-License-Identifier: Apache-2.0
// Options of the classic stack that are accepted so that scripts run, but are for another tool or device, or ask for
// what is always done. Each one's line says so.
#pragma once
#include <span>

#include "ir/pass_context.h"

namespace tilewright::classic {

std::span<const ConfigKeyInfo> keys_without_effect();

}  // namespace tilewright::classic
