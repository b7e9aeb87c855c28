// SPDX-License-Identifier: Apache-2.0
// Continuation-passing style: a function passes its result to a continuation instead of returning it.
// ToCPS: main gets a continuation as its last parameter and returns what that returns. The same for the functions it
// reaches, as copies named NAME_cps, and for functions inside functions; every call is then a tail call, and operators
// are bound by lets in their order.
// UnCPS: gives main its direct form; what it calls keeps CPS.
// Requires: typed module; data types whose constructors hold no functions (error: UnsupportedModel).
// Ensures: the same values in the same order; UnCPS after ToCPS gives main its first type again. A main that takes
// functions takes them in this form.
// Why here: on request only; partial evaluation sees through references and branches in this form.
// Test: tests/relay/passes/to_cps*.txt, un_cps*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> to_cps(const Module& module, PassContext& context);
Result<Module> un_cps(const Module& module, PassContext& context);
}  // namespace tilewright::relay
