// SPDX-License-Identifier: Apache-2.0
// Graphs with explicit bindings.
// ToBasicBlockNormalForm: a value used in more than one scope (a branch of an If and outside, both branches) is bound
// by a let in the innermost scope that holds all its uses; values used in one scope stay a graph.
// ToANormalForm: every operation is bound by a let, operands are variables and constants.
// Requires: typed module.
// Ensures: the same results, each value computed once and where its scope says.
// Tests: tests/relay/passes/to_*_normal_form.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// ToGraphNormalForm: inlines let bindings as shared subexpressions. Bindings of recursive functions and of values with
// effects (references, stateful operators, function calls) stay.
Result<Module> to_graph_normal_form(const Module& module, PassContext& context);
Result<Module> to_basic_block_normal_form(const Module& module, PassContext& context);
Result<Module> to_a_normal_form(const Module& module, PassContext& context);
}  // namespace tilewright::relay
