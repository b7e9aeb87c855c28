// SPDX-License-Identifier: Apache-2.0
// Unfolds a function to one graph of operators: bindings, function calls, tuples and references are executed in program
// order; branches on run-time values stay. Errors: UnsupportedModel (matches, recursion, references written in a
// branch), LimitExceeded.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// The function itself if there is nothing to unfold.
Result<Expr> unfolded(const Module& module, const Expr& function);
}  // namespace tilewright::relay
