// SPDX-License-Identifier: Apache-2.0
// DivToMul: divisions by constants become multiplications by their reciprocals.
// What: divide(x, c) -> multiply(x, 1 / c) for floating constants c without zeros.
// Requires: typed module.
// Ensures: the same results up to one rounding of the reciprocal.
// Why here: not in the default pipeline, where a quotient stays a quotient.
// Test: tests/relay/passes/div_to_mul*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> div_to_mul(const Module& module, PassContext& context);
}  // namespace tilewright::relay
