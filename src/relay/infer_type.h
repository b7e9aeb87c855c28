// SPDX-License-Identifier: Apache-2.0
// InferType: types of a module that was built or read with gaps.
// What: every gap becomes an unknown; calls, bindings, branches, patterns and references say which types are one, and
// solving
//   that decides the unknowns, through recursion and polymorphic functions, too. Operators are typed once their
//   operands are; weights without a type get the one that their operator's attributes ask for.
// Requires: nothing. A complete module stays as it is.
// Ensures: no incomplete type remains, but in modules with values whose types only a run has, which stay as they are.
// Errors: TypeMismatch where operands do not fit or a type cannot be known. Why here: first, for texts and user passes;
// modules of front ends are complete already. Test: tests/relay/passes/infer_type*.txt, tests/relay/language_test.cc
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> infer_type(const Module& module, PassContext& context);
}  // namespace tilewright::relay
