// SPDX-License-Identifier: Apache-2.0
// Run-time control flow in Relay's form: an If, and a tail-recursive function for each loop. Values that the subgraphs
// capture are bound to variables around them, so that they are computed once.
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

// Body: (items...) -> (items...), applied to each position of the sequences.
Values map_at_run_time(NodeContext& c, const Graph& body);

}  // namespace tilewright::onnx
