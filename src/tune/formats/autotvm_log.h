// SPDX-License-Identifier: Apache-2.0
// The classic stack's tuning log, which is ours too: one JSON object a line, greppable, appended to as trials end, so
// that an interrupted session loses one line at most.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::tune {

// Why a trial has no time. The classic numbers.
enum class MeasureError : int {
  kNone = 0,
  kInstantiation = 1,  // there is no such kernel
  kCompileHost = 2,
  kCompileDevice = 3,
  kRuntimeDevice = 4,  // it crashed, or was killed
  kWrongAnswer = 5,
  kBuildTimeout = 6,
  kRunTimeout = 7,
  kUnknown = 8,
};
const char* error_text(MeasureError error);  // "RUN_TIMEOUT"

struct Record {
  std::string target;  // as it was written
  std::string name;    // the task's
  nlohmann::json args;
  uint64_t index = 0;         // of the configuration, in the space of whoever wrote it
  nlohmann::json code_hash;   // null or a text
  nlohmann::json entity;      // [[knob, kind, value], ...]
  std::vector<double> costs;  // seconds
  int error = 0;
  double all_cost = 0, timestamp = 0;  // seconds

  std::string key() const { return name + args.dump(); }
  bool ok() const { return error == 0 && !costs.empty(); }
  // Seconds; with more than two costs without the least and the most, as the classic stack has it.
  double cost() const;
};

// One line, without its end.
std::string to_line(const Record& record);
// Error: ParseError naming `origin`.
Result<Record> parse_record(std::string_view line, const std::string& origin);

struct Log {
  std::vector<Record> records;
  int other_versions = 0;  // records of a version that is no longer read
  bool cut = false;        // the last line was not written whole
};
Result<Log> parse_log(std::string_view text, const std::string& origin);
// Errors: FileNotFound, ParseError with the line's number.
Result<Log> read_log(const std::string& path);

// Appends one record at once. Error: CannotWrite.
Status append_record(const std::string& path, const Record& record);

}  // namespace tilewright::tune
