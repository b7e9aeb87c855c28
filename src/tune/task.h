// SPDX-License-Identifier: Apache-2.0
// What can be tuned in a model: its fused groups that have more than one kernel to choose from, each once.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "relay/expr.h"
#include "tune/space.h"

namespace tilewright::tune {

// A group by itself, as a text that a process of its own measures: a module whose main calls the group, and the types
// of the constants it reads, whose values do not matter.
struct TrialModule {
  std::string text;
  std::vector<std::pair<DataType, std::vector<int64_t>>> constants;
};

struct Task {
  Workload workload;
  std::string target;  // canonical
  std::string group;   // the operators of the kernel it was found in: "nn.conv2d+add+nn.relu"
  TrialModule module;
  KnobSpace space;
  Configuration chosen;  // the cost model's choice, which may be an implementation of another task
  uint64_t calls = 1;    // in the model
  double flops = 0;      // of one call
  double predicted_us = 0;
};

// In the order of the model. Errors: those of lowering.
Result<std::vector<Task>> extract_tasks(const relay::Module& fused, const Target& target);

}  // namespace tilewright::tune
