// SPDX-License-Identifier: Apache-2.0
// A tuning session as a single HTML page without external resources: the gain, each task's best kernel, and best time
// over trials.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "tune/session.h"

namespace tilewright::driver {

// A session as printed by `tune --json`; with curves, for the page.
nlohmann::json tuning_report(const tune::Tuning& tuning, const std::string& log, bool interrupted, bool curves);
std::string tuning_page(const std::string& model, const std::string& target, const nlohmann::json& report);

}  // namespace tilewright::driver
