// SPDX-License-Identifier: Apache-2.0
// Time spent in a VM program's run: kernels of compiled regions, host functions, compilation.
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

// One row per name and source: calls, time, share; most expensive first.
std::string trace_table(const std::vector<TraceEvent>& events);
std::string trace_json(const std::vector<TraceEvent>& events);
// Chrome's trace event format.
std::string trace_chrome(const std::vector<TraceEvent>& events);

}  // namespace tilewright::runtime::vm
