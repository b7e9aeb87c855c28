// SPDX-License-Identifier: Apache-2.0
// LambdaLift: functions inside functions become global ones.
// What: a function that takes nothing from outside becomes a global; one that does becomes a global that is given those
//   values and returns it (marked Closure=1), called where it stood. A function that names the variable it is bound to
//   names the global instead.
// Requires: typed module. Ensures: the same values; only the functions that Closure functions return remain nested.
// Why here: before compilation to bytecode, which has code for globals only. Fused functions stay.
// EtaExpand: a global or a constructor used as a value becomes a function that calls it.
// Test: tests/relay/passes/lambda_lift*.txt, eta_expand*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> lambda_lift(const Module& module, PassContext& context);
Result<Module> eta_expand(const Module& module, PassContext& context);
// One kind of them, both, or neither.
Result<Module> eta_expand(const Module& module, bool constructors, bool globals);
}  // namespace tilewright::relay
