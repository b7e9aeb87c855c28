// SPDX-License-Identifier: Apache-2.0
// The tunable tasks of a model: fused groups with more than one possible kernel, without duplicates.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "relay/expr.h"
#include "tune/space.h"

namespace tilewright::tune {

// A group as text for the measuring process: a module whose main calls the group, and the types of its constants, whose
// values are irrelevant.
struct TrialModule {
  std::string text;
  std::vector<std::pair<DataType, std::vector<int64_t>>> constants;
};

struct Task {
  Workload workload;
  std::string target;  // canonical text
  std::string group;   // operators of the kernel it was found in: "nn.conv2d+add+nn.relu"
  TrialModule module;
  KnobSpace space;
  Configuration chosen;  // the cost model's choice, possibly an implementation of another task
  uint64_t calls = 1;    // number of calls in the model
  double flops = 0;      // per call
  double predicted_us = 0;
};

// In model order. Errors: those of lowering.
Result<std::vector<Task>> extract_tasks(const relay::Module& fused, const Target& target);

}  // namespace tilewright::tune
