// SPDX-License-Identifier: Apache-2.0
// The protocol with the measuring process, one JSON object per line.
// Internal, never read from a network, but checked like untrusted
// input, since a measuring process may be in any state when it answers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tune/formats/autotvm_log.h"
#include "tune/task.h"

namespace tilewright::tune {

// A kernel to measure, by name: the measuring process has its own Problem.
struct Trial {
  std::string implementation;  // empty: the cost model's choice
  std::string configuration;   // its text
};

struct TrialResult {
  std::vector<double> costs;  // seconds per call; empty if it failed
  MeasureError error = MeasureError::kUnknown;
  std::string message;  // of a failure
  double seconds = 0;   // time to build and measure
  double cost() const;  // the mean; huge if it failed
};

struct TimingOptions {
  int threads = 0;       // 0: default thread count
  double seconds = 0.2;  // for a whole batch, if `repeat` is 0: interleaved, dropping slow trials
  int repeat = 0;        // measurements of each trial separately
  int number = 1;        // runs per measurement
  double min_repeat_ms = 0;
  double cooldown_seconds = 0;
  bool flush_cache = false;   // before each measurement
  bool check = true;          // compare results with the first trial's
  uint64_t memory_bytes = 0;  // limit for the process; 0: half of the machine's memory
};

// A batch; the first trial is the baseline.
struct Batch {
  std::string target;
  TrialModule module;
  std::vector<Trial> trials;
  TimingOptions timing;
  std::string folder;  // the process may write here
};

std::string to_line(const Batch& batch);
Result<Batch> parse_batch(const std::string& line);

// Messages of the measuring process, in order: kBuilding; kRunning for each trial before its first run; kTiming once;
// finally kDone or, if the whole batch cannot be built, kFailed.
struct Message {
  enum class Kind { kBuilding, kRunning, kTiming, kDone, kFailed } kind = Kind::kFailed;
  size_t trial = 0;                  // kRunning
  std::vector<TrialResult> results;  // kDone: one per trial
  std::string text;                  // kFailed
};
std::string to_line(const Message& message);
// Error: ProtocolError.
Result<Message> parse_message(const std::string& line);

}  // namespace tilewright::tune
