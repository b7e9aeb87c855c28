// SPDX-License-Identifier: Apache-2.0
// SimplifyInference: replaces operators of training by their inference forms.
// What: batch_norm -> x * scale + shift with scale and shift computed from its parameters (constants once FoldConstant
// has run); dropout -> its input; instance_norm, group_norm, layer_norm and l2_normalize -> primitive operators.
// Requires: typed module.
// Ensures: none of these operators remains where its first result alone is used.
// Why here: first of the rewriting passes, so that folding and fusion see plain arithmetic. ExpandNormalization does
// the same but keeps layer_norm of the innermost axis, which has a kernel of its own: the default pipeline runs it.
// Test: tests/relay/passes/simplify_inference*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> simplify_inference(const Module& module, PassContext& context);
Result<Module> expand_normalization(const Module& module, PassContext& context);
}  // namespace tilewright::relay
