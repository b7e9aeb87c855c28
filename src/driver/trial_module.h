// SPDX-License-Identifier: Apache-2.0
// A batch of trials as one library: a fused module with a copy of the group for each trial, in the trial's
// configuration, behind a copy of its operands, so that each has operands of its own with the zeros it reads around
// them, as a producer in a model would leave them.
#pragma once
#include <string>
#include <vector>

#include "tune/trial.h"

namespace tilewright::driver {

struct TrialSteps {
  bool built = false;                    // false: there is no such kernel
  std::string why;                       // there is none
  std::vector<size_t> operands;          // steps that copy them
  size_t kernel = 0;                     // the step
  size_t first_output = 0, outputs = 0;  // of the library
};

struct BuiltTrials {
  std::string path;  // of the library, in the batch's folder
  std::vector<TrialSteps> trials;
};

// Errors: those of parsing and of a build.
Result<BuiltTrials> build_trials(const tune::Batch& batch);

// The batch's first trial alone as a Model Library Format at `path`: a program in C whose inputs are the group's
// operands, to be measured on a device. Why there is no such kernel; empty: it was written. Errors: those of a build.
Result<std::string> build_trial_library(const tune::Batch& batch, const std::string& path);

}  // namespace tilewright::driver
