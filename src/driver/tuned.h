// SPDX-License-Identifier: Apache-2.0
// Builds that use tuning records.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lower/lower.h"
#include "tune/database.h"

namespace tilewright::driver {

// Errors: those of tune::read_log; InvalidArgument for a file without records.
Result<std::shared_ptr<const tune::RecordChooser>> records_of_file(const std::string& path);

// Key in plan.metadata for the records that decided kernels: a JSON list of {step, task, args, implementation,
// configuration, seconds}.
inline constexpr const char* kTuningKey = "tilewright.tuning";
// Writes them to the plan of a build made with this chooser. Without dates, so that equal records give equal bytes.
void note_records(const tune::RecordChooser& chooser, lower::Lowered* lowered);
// Reads them back; empty if absent or not in this format.
nlohmann::json read_record_notes(const plan::Plan& plan);

}  // namespace tilewright::driver
