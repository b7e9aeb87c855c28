// SPDX-License-Identifier: Apache-2.0
// CapturePostDfsIndexInSpans: replaces spans by post-DFS indices and dominators.
// What: spans become "index:I:D": I counts the function's expressions in post order, called operators and parameters
// included; D is the index of its immediate post-dominator, -1 for the function itself.
// Requires: nothing.
// Ensures: an equal module. Model node names are lost by that.
// Why here: not in the default pipeline; for tools that point at parts of a graph.
// Test: tests/relay/passes_test.cc (CapturePostDfsIndexInSpans), tests/relay/passes/capture_post_dfs_index.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> capture_post_dfs_index_in_spans(const Module& module, PassContext& context);
}  // namespace tilewright::relay
