// SPDX-License-Identifier: Apache-2.0
// Evaluates a call whose operands are all constants, for folding: exact in the result's dtype, with native paths for
// the large float32 weights that packing and normalisation folding go through (the interpreter's doubles would be
// slow).
#pragma once
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// Whether evaluate_constant_call takes this expression: a call to an operator that is not stateful, over Constants or
// Tuples of Constants.
bool is_constant_call(const Expr& expr);
// One tensor per tensor of the (flattened) result. Errors: what the operator reports (an integer division by zero,
// say), LimitExceeded when a large result would come from small operands (leave the call as it is).
Result<std::vector<Tensor>> evaluate_constant_call(const Expr& expr);

}  // namespace tilewright::relay
