// SPDX-License-Identifier: Apache-2.0
// A function as one graph of operators: bindings, calls of functions, tuples and references are carried out as the
// program would, in its order; branches on what only a run knows stay.
// Errors: UnsupportedModel (matches, recursion, references that a branch writes), LimitExceeded.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// The function itself where there is nothing to carry out.
Result<Expr> unfolded(const Module& module, const Expr& function);
}  // namespace tilewright::relay
