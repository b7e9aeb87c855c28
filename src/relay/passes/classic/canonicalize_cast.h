// SPDX-License-Identifier: Apache-2.0
// CanonicalizeCast: a widening cast with several users becomes one cast for each.
// What: elementwise and broadcasting operators get a cast of their own where they share one to a wider dtype.
// Requires: typed module.
// Ensures: the same values; narrowing casts and casts with one user stay.
// Why here: before fusion, which then keeps the narrow tensor between kernels instead of the wide one.
// Test: tests/relay/passes/canonicalize_cast*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> canonicalize_cast(const Module& module, PassContext& context);
}  // namespace tilewright::relay
