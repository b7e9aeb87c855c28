// SPDX-License-Identifier: Apache-2.0
// PartialEvaluate: evaluates at compile time what is known then.
// What: calls of known functions become their bodies (recursive ones while an argument is a known constructor, tuple or
// constant, and up to a limit), matches on known constructors their clause, branches on constants one side, fields of
// known tuples the field; reads of a function's own references become what was written last where the order is known;
// constants fold, dead bindings go. Functions that create references come out in A-normal form.
// Requires: typed module.
// Ensures: the same values; effects (writes to references, stateful operators) stay in order and number.
// Why here: before compilation to bytecode: closures and lists that only structured the program disappear.
// Test: tests/relay/passes/partial_evaluate*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> partial_evaluate(const Module& module, PassContext& context);
}  // namespace tilewright::relay
