// SPDX-License-Identifier: Apache-2.0
// InlinePrimitives: inlines fused functions, let-bound or global, as literals at their calls.
// What: let %f = fn (...) { ... } marked Primitive; ... %f(x) -> fn (...) { ... }(x). Calls of global primitive
// functions likewise; those that nothing calls any more go.
// Requires: typed module.
// Ensures: the same results; the calls' functions are those that FuseOps made.
// Why here: not in the default pipeline; behind ToANormalForm or LambdaLift, for what looks for calls of primitive
// functions.
// Test: tests/relay/passes/inline_primitives*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> inline_primitives(const Module& module, PassContext& context);
}  // namespace tilewright::relay
