// SPDX-License-Identifier: Apache-2.0
// Builds by tuning records.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lower/lower.h"
#include "tune/database.h"

namespace tilewright::driver {

// Errors: those of tune::read_log; InvalidArgument for a file without records.
Result<std::shared_ptr<const tune::RecordChooser>> records_of_file(const std::string& path);

// What plan.metadata calls the records that decided kernels: a JSON list of {step, task, args, implementation,
// configuration, seconds}.
inline constexpr const char* kTuningKey = "tilewright.tuning";
// Writes them into the plan of a build that this chooser made. Without dates: the same records give the same bytes.
void note_records(const tune::RecordChooser& chooser, lower::Lowered* lowered);
// What it wrote; empty for a plan without, or where something else stands under that name.
nlohmann::json read_record_notes(const plan::Plan& plan);

}  // namespace tilewright::driver
