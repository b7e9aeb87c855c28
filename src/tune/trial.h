// SPDX-License-Identifier: Apache-2.0
// What a measuring process is asked and what it says, one JSON object a line. It is the compiler's own: never read from
// a network, but checked like anything from outside, since a process that measures may be anything by the time it
// answers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tune/formats/autotvm_log.h"
#include "tune/task.h"

namespace tilewright::tune {

// A kernel to measure, by name: the measuring process has a Problem of its own.
struct Trial {
  std::string implementation;  // empty: what the cost model chooses
  std::string configuration;   // its text
};

struct TrialResult {
  std::vector<double> costs;  // seconds of one call; empty where it failed
  MeasureError error = MeasureError::kUnknown;
  std::string message;  // of a failure
  double seconds = 0;   // what it took to build and measure
  double cost() const;  // the mean; huge where it failed
};

struct TimingOptions {
  int threads = 0;       // 0: as many as a run would have
  double seconds = 0.2;  // for all trials of a batch together, when `repeat` is 0: in turns, slow ones drop out
  int repeat = 0;        // how many times each is measured by itself
  int number = 1;        // runs of one measurement
  double min_repeat_ms = 0;
  double cooldown_seconds = 0;
  bool flush_cache = false;   // before each measurement
  bool check = true;          // results are compared with the first trial's
  uint64_t memory_bytes = 0;  // that the process may have; 0: half of the machine's
};

// A batch; the first trial is the one that others are compared with.
struct Batch {
  std::string target;
  TrialModule module;
  std::vector<Trial> trials;
  TimingOptions timing;
  std::string folder;  // where the process may write
};

std::string to_line(const Batch& batch);
Result<Batch> parse_batch(const std::string& line);

// What the measuring process says, in this order: kBuilding, then for every trial kRunning before it first runs, once
// kTiming, at the end kDone or, when the batch as a whole cannot be built, kFailed.
struct Message {
  enum class Kind { kBuilding, kRunning, kTiming, kDone, kFailed } kind = Kind::kFailed;
  size_t trial = 0;                  // kRunning
  std::vector<TrialResult> results;  // kDone, one for each trial
  std::string text;                  // kFailed
};
std::string to_line(const Message& message);
// Error: ProtocolError.
Result<Message> parse_message(const std::string& line);

}  // namespace tilewright::tune
