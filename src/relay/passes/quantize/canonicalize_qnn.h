// SPDX-License-Identifier: Apache-2.0
// CanonicalizeQnn: quantised operators become plain ones.
// What: makes scales and zero points explicit: products of integers minus their zero points, and requantisation in
// float64, so that rounding gives the correct integer.
// Requires: types.
// Ensures: the values that the operators' references define; no qnn operator is left.
// Why here: before all rewrites, which know plain operators only, and before IntegerProducts.
// Test: tests/relay/passes/canonicalize_qnn*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> canonicalize_qnn(const Module& module, PassContext& context);
}  // namespace tilewright::relay
