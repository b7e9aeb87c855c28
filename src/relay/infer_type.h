// SPDX-License-Identifier: Apache-2.0
// InferType: completes the types of a module that was built or read with gaps.
// What: unification. Every gap becomes an unknown; calls, bindings, branches, patterns and references equate types, and
// solving the equations determines the unknowns, also across recursion and polymorphic functions. Operators are typed
// once their operands are; untyped weights get the type that their operator's attributes imply.
// Requires: nothing. A complete module is unchanged.
// Ensures: no incomplete type remains, except for values whose types are known only at run time.
// Errors: TypeMismatch where operands do not fit or a type remains undetermined.
// Why here: first, for texts and user passes; front ends give complete modules.
// Test: tests/relay/passes/infer_type*.txt, tests/relay/language_test.cc
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> infer_type(const Module& module, PassContext& context);
// Whether a value of one type may be used as one of the other: what is not known agrees with everything.
bool types_agree(const Type& a, const Type& b);
// Whether the type is that of a function of any types: it has variables.
bool takes_any_types(const Type& t);
// The type of a value that is of one type or of the other: a dimension that one of them leaves open is open.
Type type_of_either(const Type& a, const Type& b);
}  // namespace tilewright::relay
