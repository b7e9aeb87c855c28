// SPDX-License-Identifier: Apache-2.0
// Measured times of a run per step, and reports of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/artifact.h"

namespace tilewright::runtime {

struct Interval {
  int64_t begin_ns = 0, end_ns = 0;  // both 0: the thread did not take part
};

struct StepProfile {
  std::string name, source, kernel, shapes;
  double min_us = 0, median_us = 0, mean_us = 0;  // from the first thread's start to the last one's end
  double busy_us = 0;                             // mean time in the kernel, summed over threads
  double flops = 0, bytes = 0, predicted_us = 0;
  bool parallel = false;
  std::string implementation;
  double weight_bytes = 0;     // the part of `bytes` in constants
  std::vector<Interval> last;  // per thread, in the last repeat
};

class Profile {
 public:
  // `times` holds one interval per repeat, step and thread.
  Profile(const plan::Plan& plan, const std::vector<Interval>& times, uint64_t repeats, int threads);
  const std::vector<StepProfile>& steps() const { return steps_; }
  std::string table() const;  // sorted by time
  std::string json() const;
  std::string trace() const;                              // Chrome's trace event format, the last repeat
  Result<std::string> text(std::string_view form) const;  // "table", "json" or "trace"; InvalidArgument otherwise

 private:
  std::string model_, target_;
  int threads_;
  uint64_t repeats_;
  double total_us_ = 0;  // sum of the steps' means
  std::vector<StepProfile> steps_;
};

// A string as a JSON literal; invalid UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace tilewright::runtime
