// SPDX-License-Identifier: Apache-2.0
// LambdaLift: lifts nested functions to globals.
// What: a function without captures becomes a global; one with captures becomes the result of a new global that takes
// the captured values (marked Closure=1), called in its place. A function that names the variable it is bound to names
// the global instead.
// Requires: typed module.
// Ensures: the same values; only the functions that Closure functions return remain nested.
// Why here: before compilation to bytecode, which has code for globals only. Fused functions stay.
// EtaExpand: a global or a constructor used as a value becomes a function that calls it.
// Test: tests/relay/passes/lambda_lift*.txt, eta_expand*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> lambda_lift(const Module& module, PassContext& context);
Result<Module> eta_expand(const Module& module, PassContext& context);
// Expands constructors, globals, both or neither.
Result<Module> eta_expand(const Module& module, bool constructors, bool globals);
}  // namespace tilewright::relay
