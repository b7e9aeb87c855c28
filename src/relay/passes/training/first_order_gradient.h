// SPDX-License-Identifier: Apache-2.0
// FirstOrderGradient: every function gives its result and its gradient.
// What: fn(params) -> R becomes fn(params) -> (R, (gradient of the sum of R's elements by each param, ...)): reverse
// mode over the graph,
//   one rule per operator (gradient_rules.cc).
// Requires: typed dataflow (no branches, bindings or closures: ToGraphNormalForm first), static shapes.
// Ensures: the first field equals the old result. Error: UnsupportedModel for an operator without a rule, by name.
// Why here: on request only.
// Test: tests/relay/passes/first_order_gradient*.txt, tests/relay/gradient_test.cc (against differences)
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> first_order_gradient(const Module& module, PassContext& context);

// The gradient of each operand of `call` when its result's is `gradient`; a null one means zero. Nothing when there is
// no rule.
using Gradients = std::vector<Expr>;
std::optional<Gradients> operand_gradients(const Expr& call, const Expr& gradient);
bool has_gradient_rule(const Expr& call);
}  // namespace tilewright::relay
