// SPDX-License-Identifier: Apache-2.0
#include "tune/trial.h"

#include <cmath>
#include <numeric>

namespace tilewright::tune {
namespace {
using nlohmann::json;

constexpr const char* kMessageNames[] = {"building", "running", "timing", "done", "failed"};
constexpr double kNever = 1e9;  // seconds, for failures

Diagnostic not_a_message(const std::string& what) {
  return Diagnostic(ErrorCode::kProtocolError, "a measuring process said what is no message: " + what, {},
                    "install matching versions of the compiler and the runtime");
}

std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

Result<TrialResult> read_result(const json& j) {
  TrialResult out;
  out.error = static_cast<MeasureError>(j.at("error").get<int>());
  if (j.at("error") < 0 || j.at("error") > static_cast<int>(MeasureError::kUnknown))
    return not_a_message("an error's number");
  out.message = j.at("message");
  out.seconds = j.at("seconds");
  for (const json& cost : j.at("costs")) {
    out.costs.push_back(cost);
    if (!std::isfinite(out.costs.back()) || out.costs.back() <= 0) return not_a_message("a time");
  }
  if (out.error == MeasureError::kNone && out.costs.empty()) return not_a_message("a result without times");
  return out;
}

}  // namespace

double TrialResult::cost() const {
  if (error != MeasureError::kNone || costs.empty()) return kNever;
  return std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
}

std::string to_line(const Batch& batch) {
  json j{{"target", batch.target}, {"folder", batch.folder}, {"text", batch.module.text}, {"constants", json::array()}};
  for (const auto& [dtype, shape] : batch.module.constants) j["constants"].push_back({dtype.str(), shape});
  for (const Trial& trial : batch.trials) j["trials"].push_back({trial.implementation, trial.configuration});
  const TimingOptions& t = batch.timing;
  j["timing"] = {t.threads,          t.seconds,     t.repeat, t.number,      t.min_repeat_ms,
                 t.cooldown_seconds, t.flush_cache, t.check,  t.memory_bytes};
  return dumped(j);
}

Result<Batch> parse_batch(const std::string& line) {
  try {
    const json j = json::parse(line);
    Batch batch;
    batch.target = j.at("target"), batch.folder = j.at("folder"), batch.module.text = j.at("text");
    for (const json& constant : j.at("constants"))
      batch.module.constants.emplace_back(TW_TRY(parse_dtype(constant.at(0).get<std::string>())),
                                          constant.at(1).get<std::vector<int64_t>>());
    for (const json& trial : j.at("trials")) batch.trials.push_back({trial.at(0), trial.at(1)});
    const json& t = j.at("timing");
    batch.timing = {t.at(0), t.at(1), t.at(2), t.at(3), t.at(4), t.at(5), t.at(6), t.at(7), t.at(8)};
    if (batch.trials.empty()) return not_a_message("a batch without trials");
    return batch;
  } catch (const json::exception& e) {
    return not_a_message(e.what());
  }
}

std::string to_line(const Message& message) {
  json j{{"kind", kMessageNames[static_cast<int>(message.kind)]}};
  if (message.kind == Message::Kind::kRunning) j["trial"] = message.trial;
  if (message.kind == Message::Kind::kFailed) j["text"] = message.text;
  for (const TrialResult& r : message.results)
    j["results"].push_back(
        {{"costs", r.costs}, {"error", static_cast<int>(r.error)}, {"message", r.message}, {"seconds", r.seconds}});
  return dumped(j);
}

Result<Message> parse_message(const std::string& line) {
  try {
    const json j = json::parse(line);
    Message message;
    const std::string kind = j.at("kind");
    int number = 0;
    while (number < 5 && kind != kMessageNames[number]) ++number;
    if (number == 5) return not_a_message(kind);
    message.kind = static_cast<Message::Kind>(number);
    if (message.kind == Message::Kind::kRunning) message.trial = j.at("trial");
    if (message.kind == Message::Kind::kFailed) message.text = j.at("text");
    if (message.kind == Message::Kind::kDone)
      for (const json& result : j.at("results")) message.results.push_back(TW_TRY(read_result(result)));
    return message;
  } catch (const json::exception& e) {
    return not_a_message(e.what());
  }
}

}  // namespace tilewright::tune
