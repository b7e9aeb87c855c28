// SPDX-License-Identifier: Apache-2.0
// Where the time of a VM program's run goes: kernels of compiled regions, functions of the runtime, compilation.
#pragma once
#include <string>
#include <vector>

#include "runtime/profile.h"

namespace tilewright::runtime::vm {

struct TraceEvent {
  std::string name;    // "nn.conv2d+nn.relu", "NonZero", "compile region_3"
  std::string source;  // the model's nodes, or the region
  Interval time;
};

// One row for each name and source: calls, time, share; the most expensive first.
std::string trace_table(const std::vector<TraceEvent>& events);
std::string trace_json(const std::vector<TraceEvent>& events);
// Chrome's trace event format.
std::string trace_chrome(const std::vector<TraceEvent>& events);

}  // namespace tilewright::runtime::vm
