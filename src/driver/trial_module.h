// SPDX-License-Identifier: Apache-2.0
// Builds a batch of tuning trials as one library: for each trial a copy of the
// group in the trial's configuration, with its own copies of the operands,
// including the halos that a producer in a model would leave around them.
#pragma once
#include <string>
#include <vector>

#include "tune/trial.h"

namespace tilewright::driver {

struct TrialSteps {
  bool built = false;                    // false: no such kernel exists
  std::string why;                       // why it does not exist
  std::vector<size_t> operands;          // the steps that copy them
  size_t kernel = 0;                     // step of the group's kernel
  size_t first_output = 0, outputs = 0;  // indices of the library's outputs
};

struct BuiltTrials {
  std::string path;  // of the library, in the batch's folder
  std::vector<TrialSteps> trials;
};

// Errors: those of parsing and of a build.
Result<BuiltTrials> build_trials(const tune::Batch& batch);

// Writes the batch's first trial as a Model Library Format at `path`: a C program with the group's operands as inputs,
// to be measured on a device. Returns why no such kernel exists, or an empty string on success. Errors: those of a
// build.
Result<std::string> build_trial_library(const tune::Batch& batch, const std::string& path);

}  // namespace tilewright::driver
