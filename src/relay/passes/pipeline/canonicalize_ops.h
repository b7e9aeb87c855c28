// SPDX-License-Identifier: Apache-2.0
// CanonicalizeOps: nn.bias_add becomes add of a bias that broadcasts.
// What: bias_add(x, b, axis) -> add(x, expand_dims(b)); a constant bias is reshaped at once.
// Requires: typed module.
// Ensures: no nn.bias_add remains.
// Why here: fusion, layout and folding rules know one form of bias only.
// Test: tests/relay/passes/canonicalize_ops.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> canonicalize_ops(const Module& module, PassContext& context);
}  // namespace tilewright::relay
