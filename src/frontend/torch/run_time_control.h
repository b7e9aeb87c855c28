// SPDX-License-Identifier: Apache-2.0
// TorchScript's branches and loops with conditions known only at run time: Relay's `if`, and a tail-recursive function.
// Their graphs see the surrounding names and mutate tensors and lists there; what they mutate becomes additional
// results.
#pragma once
#include "frontend/torch/importer.h"

namespace tilewright::torch {

// The outputs of the graph that the condition selects.
Values branch_at_run_time(NodeContext& c, const Expr& condition, const Graph& then_graph, const Graph& else_graph);

// Body: (step, carried...) -> (whether to continue, carried...). `limit`: the maximum number of iterations, null for
// none. Iterations are counted from `first`.
struct ScriptLoop {
  const Graph& body;
  Expr limit, goes_on;
  int64_t first = 0;
};
Values loop_at_run_time(NodeContext& c, const ScriptLoop& loop, const Values& carried);

// Gives the results of two branches (or iterations) the same types; where types differ they are hidden.
void agree_on_types(NodeContext& c, std::vector<Expr>* a, std::vector<Expr>* b);
// The expression as a scalar boolean.
Expr truth_of(NodeContext& c, const Expr& e);

}  // namespace tilewright::torch
