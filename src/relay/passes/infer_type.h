// SPDX-License-Identifier: Apache-2.0
// InferType: types of a module that was built or read with gaps.
// What: infers every incomplete type from its operands again, through calls of global functions, until nothing changes.
// Requires: parameters typed, or only passed on.
// Ensures: no incomplete type remains. Errors: TypeMismatch where operands do not fit or a type cannot be known.
// Why here: first, for texts and user passes; modules of front ends are complete already.
// Test: tests/relay/passes/infer_type*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> infer_type(const Module& module, PassContext& context);
}  // namespace tilewright::relay
