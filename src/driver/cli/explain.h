// SPDX-License-Identifier: Apache-2.0
// Why each layer got the kernel it has: what applied, what the cost model predicted for it, what was taken.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lower/lower.h"

namespace tilewright::driver {

std::string explain_text(const lower::Lowered& lowered);
// One object per step: {"name", "nodes", "kernel", "shapes", "candidates": [{"implementation", "predicted_us",
// "chosen", ...}]}.
nlohmann::json explain_json(const lower::Lowered& lowered);

}  // namespace tilewright::driver
