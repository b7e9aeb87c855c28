// SPDX-License-Identifier: Apache-2.0
#include "driver/tuned.h"

#include "base/format.h"

namespace tilewright::driver {

Result<std::shared_ptr<const tune::RecordChooser>> records_of_file(const std::string& path) {
  tune::Log log = TW_TRY(tune::read_log(path));
  if (log.records.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      log.other_versions > 0
                          ? format("its {} records are of a version that is no longer read", log.other_versions)
                          : "there are no tuning records in it",
                      path, "`tilewright tune` writes some");
  return std::shared_ptr<const tune::RecordChooser>(std::make_shared<tune::RecordChooser>(std::move(log.records)));
}

void note_records(const tune::RecordChooser& chooser, lower::Lowered* lowered) {
  nlohmann::json steps = nlohmann::json::array();
  for (size_t i = 0; i < lowered->traces.size(); ++i) {
    const lower::StepTrace& trace = lowered->traces[i];
    const tune::Record* record = chooser.record_of(trace.function.get());
    if (!record) continue;
    steps.push_back({{"step", i},
                     {"task", record->name},
                     {"args", record->args},
                     {"implementation", trace.choice->implementation},
                     {"configuration", trace.choice->configuration},
                     {"seconds", record->cost()}});
  }
  if (!steps.empty()) lowered->plan.metadata[kTuningKey] = steps.dump();
}

nlohmann::json read_record_notes(const plan::Plan& plan) {
  const auto found = plan.metadata.find(kTuningKey);
  if (found == plan.metadata.end()) return {};
  nlohmann::json notes = nlohmann::json::parse(found->second, nullptr, false);
  if (!notes.is_array()) return {};
  for (const auto& n : notes)
    if (!n.is_object() || !n.contains("step") || !n.contains("seconds") || !n["seconds"].is_number() ||
        !n.value("task", nlohmann::json()).is_string() || !n.value("implementation", nlohmann::json()).is_string() ||
        !n.value("configuration", nlohmann::json()).is_string())
      return {};
  return notes;
}

}  // namespace tilewright::driver
