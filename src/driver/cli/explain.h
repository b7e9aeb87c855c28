// SPDX-License-Identifier: Apache-2.0
// Why each layer got the kernel it has: what applied, what the cost model predicted for it, what was taken.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lower/lower.h"
#include "tune/database.h"

namespace tilewright::driver {

// `records`: what the kernels were chosen by, besides the cost model; may be null.
std::string explain_text(const lower::Lowered& lowered, const tune::RecordChooser* records = nullptr);
// One object per step: {"name", "nodes", "kernel", "shapes", "candidates": [{"implementation", "predicted_us",
// "chosen", ...}]}, and the "record" that decided.
nlohmann::json explain_json(const lower::Lowered& lowered, const tune::RecordChooser* records = nullptr);

}  // namespace tilewright::driver
