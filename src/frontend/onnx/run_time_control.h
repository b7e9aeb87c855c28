// SPDX-License-Identifier: Apache-2.0
// Control flow that only a run decides, as Relay's own: an If, and for loops a function that calls itself last. What
// their graphs read from outside is bound to variables around them, so that it is computed once.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

Values branch_at_run_time(NodeContext& c, const Graph& then_graph, const Graph& else_graph);

// Body: (step, condition, carried...) -> (condition, carried..., collected...).
Values loop_at_run_time(NodeContext& c, const Graph& body);

struct ScanAxes {
  size_t states = 0;
  std::vector<int64_t> in_axes, in_back, out_axes, out_back;
};
// Body: (state..., slices...) -> (state..., slices...).
Values scan_at_run_time(NodeContext& c, const Graph& body, const ScanAxes& axes);

// Body: (items...) -> (items...), for each place of the sequences.
Values map_at_run_time(NodeContext& c, const Graph& body);

}  // namespace tilewright::onnx
