// SPDX-License-Identifier: Apache-2.0
// Explains the choice of kernels: for each layer, what applied, its predicted cost, and what was chosen.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lower/lower.h"
#include "tune/database.h"

namespace tilewright::driver {

// `records`: tuning records used for the choice besides the cost model; may be null.
std::string explain_text(const lower::Lowered& lowered, const tune::RecordChooser* records = nullptr);
// One object per step: {"name", "nodes", "kernel", "shapes", "candidates": [{"implementation", "predicted_us",
// "chosen", ...}]}, and the "record" that decided.
nlohmann::json explain_json(const lower::Lowered& lowered, const tune::RecordChooser* records = nullptr);

}  // namespace tilewright::driver
