// SPDX-License-Identifier: Apache-2.0
// TorchScript's branches and loops that only a run decides: Relay's `if`, and a function that calls itself last. Their
// graphs see the names around them and change tensors and lists there; what they change comes out as results.
#pragma once
#include "frontend/torch/importer.h"

namespace tilewright::torch {

// The outputs of the graph that the condition chooses.
Values branch_at_run_time(NodeContext& c, const Expr& condition, const Graph& then_graph, const Graph& else_graph);

// Body: (step, carried...) -> (whether to go on, carried...). `limit`: steps at most, null for no limit. Steps count
// from `first`.
struct ScriptLoop {
  const Graph& body;
  Expr limit, goes_on;
  int64_t first = 0;
};
Values loop_at_run_time(NodeContext& c, const ScriptLoop& loop, const Values& carried);

// A branch's or step's results as expressions of the same types: values of other types lose them.
void agree_on_types(NodeContext& c, std::vector<Expr>* a, std::vector<Expr>* b);
// A scalar truth value.
Expr truth_of(NodeContext& c, const Expr& e);

}  // namespace tilewright::torch
