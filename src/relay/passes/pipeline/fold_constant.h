// SPDX-License-Identifier: Apache-2.0
// FoldConstant: calls whose operands are all constants become constants.
// What: evaluates them (constant_call.h); shape_of and ndarray_size of known shapes; fields of tuples; an If whose
// condition is constant becomes its branch.
// Requires: typed module.
// Ensures: no pure call of constants remains, but results that are larger than relay.FoldConstant.max_bytes, or that
// only repeat a smaller constant. Stateful operators are never folded.
// Why here: after passes that leave arithmetic on weights (SimplifyInference, AlterOpLayout's packing).
// Test: tests/relay/passes/fold_constant*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fold_constant(const Module& module, PassContext& context);
// One expression whose operands have been folded: the constant it stands for, or itself.
Expr fold_expr(const Expr& e, int64_t max_bytes);
}  // namespace tilewright::relay
