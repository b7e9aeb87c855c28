// SPDX-License-Identifier: Apache-2.0
// Defunctionalization: eliminates functions as values.
// What: polymorphic functions that main reaches are copied for each instantiation; functions inside functions become
// global ones (LambdaLift). Then each type of function values becomes a data type ClosureN with one constructor for
// each function that is used as such a value, over its captured values; a call of a value becomes a call of
// @apply_ClosureN, which matches the constructor and calls the function.
// Requires: typed module whose main is neither polymorphic nor takes or gives functions.
// Ensures: the same results; no value is a function, no function polymorphic. Functions main does not reach go. A
// program that has no functions as values stays as it is.
// Errors: UnsupportedModel for what main takes or gives, for data types whose constructors hold functions, for
// polymorphic functions inside functions; LimitExceeded when copies do not come to an end.
// Why here: on request, for executors and code generators without closures.
// Test: tests/relay/passes/defunctionalization*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> defunctionalization(const Module& module, PassContext& context);
}  // namespace tilewright::relay
