// SPDX-License-Identifier: Apache-2.0
// DynamicToStatic: dyn.* operators whose shape operands turn out to be constants become their static forms.
// What: folding and conversion alternate until neither changes anything: a shape may be computed from the shape of what
// just became static.
// Requires: typed module.
// Ensures: the same values; a dyn.* operator remains where a value decides.
// Why here: first on models with computed shapes; everything after knows more.
// Test: tests/relay/passes/dynamic_to_static*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> dynamic_to_static(const Module& module, PassContext& context);
}  // namespace tilewright::relay
