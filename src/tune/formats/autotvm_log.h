// SPDX-License-Identifier: Apache-2.0
// The classic stack's tuning log, which we use, too: one JSON object per line, appended after each trial, so that an
// interrupted session loses at most one line.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::tune {

// Why a trial has no time, in the classic numbering.
enum class MeasureError : int {
  kNone = 0,
  kInstantiation = 1,  // no such kernel
  kCompileHost = 2,
  kCompileDevice = 3,
  kRuntimeDevice = 4,  // it crashed or was killed
  kWrongAnswer = 5,
  kBuildTimeout = 6,
  kRunTimeout = 7,
  kUnknown = 8,
};
const char* error_text(MeasureError error);  // "RUN_TIMEOUT"

struct Record {
  std::string target;  // as written in the log
  std::string name;    // the task's name
  nlohmann::json args;
  uint64_t index = 0;         // of the configuration, in the writer's space
  nlohmann::json code_hash;   // null or a string
  nlohmann::json entity;      // [[knob, kind, value], ...]
  std::vector<double> costs;  // seconds
  int error = 0;
  double all_cost = 0, timestamp = 0;  // in seconds

  std::string key() const { return name + args.dump(); }
  bool ok() const { return error == 0 && !costs.empty(); }
  // The mean in seconds; of more than two costs without the minimum and maximum, as in the classic stack.
  double cost() const;
};

// One line, without newline.
std::string to_line(const Record& record);
// Error: ParseError naming `origin`.
Result<Record> parse_record(std::string_view line, const std::string& origin);

struct Log {
  std::vector<Record> records;
  int other_versions = 0;  // records of an unsupported version
  bool cut = false;        // the last line is incomplete
};
Result<Log> parse_log(std::string_view text, const std::string& origin);
// Errors: FileNotFound, ParseError with the line number.
Result<Log> read_log(const std::string& path);

// Appends one record atomically. Error: CannotWrite.
Status append_record(const std::string& path, const Record& record);

}  // namespace tilewright::tune
