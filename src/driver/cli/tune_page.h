// SPDX-License-Identifier: Apache-2.0
// A tuning session as one page for a browser: what it gained, each task with its best kernel, and the curve of best
// times over the trials. One file, nothing from the network.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "tune/session.h"

namespace tilewright::driver {

// A session as `tune --json` prints it; with curves, for the page.
nlohmann::json tuning_report(const tune::Tuning& tuning, const std::string& log, bool interrupted, bool curves);
std::string tuning_page(const std::string& model, const std::string& target, const nlohmann::json& report);

}  // namespace tilewright::driver
