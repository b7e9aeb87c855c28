// SPDX-License-Identifier: Apache-2.0
// Evaluates calls with constant operands, for constant folding. Exact in the
// result's dtype; the large float32 weights of packing and normalisation
// folding take native paths, since the interpreter's doubles would be slow.
#pragma once
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// Whether evaluate_constant_call accepts this expression: a call of an operator that is not stateful, with operands
// that are constants or tuples of constants.
bool is_constant_call(const Expr& expr);
// One tensor per tensor of the (flattened) result. Errors: what the operator reports (such as an integer division by
// zero), LimitExceeded when small operands would give a large result (the call should then stay).
Result<std::vector<Tensor>> evaluate_constant_call(const Expr& expr);

}  // namespace tilewright::relay
