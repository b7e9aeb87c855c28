// SPDX-License-Identifier: Apache-2.0
// FirstOrderGradient: makes every function return its result and its gradient.
// What: fn(params) -> R becomes fn(params) -> (R, (gradient of the sum of R's elements by each param, ...)): reverse
// mode differentiation by each operator's rule (OpFacts::gradient).
// Requires: typed dataflow (no branches, bindings or closures: ToGraphNormalForm first), static shapes.
// Ensures: the first field equals the old result.
// Error: UnsupportedModel for an operator without a rule, by name.
// Why here: on request only.
// Test: tests/relay/passes/first_order_gradient*.txt, tests/relay/language_test.cc (against differences)
#pragma once
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> first_order_gradient(const Module& module, PassContext& context);

// The gradients of the sum of y's elements with respect to each of xs; zeros where y does not depend on it.
Result<std::vector<Expr>> gradients_of(const Expr& y, const std::vector<Expr>& xs);
}  // namespace tilewright::relay
