// SPDX-License-Identifier: Apache-2.0
// SimplifyFCTranspose: dense layers of the named weights read them pre-transposed.
// What: nn.dense(x, transpose(w)) -> nn.dense(x, w.T) for every parameter w named in
// relay.SimplifyFCTranspose.target_weight_name; "w.T" is a new parameter of the transposed type.
// Requires: typed module.
// Ensures: the same results when w.T is given w's transpose. Parameters that nothing uses any more are gone, new ones
// stand last.
// Why here: not in the default pipeline, which folds transposes of constants; a script runs it together with the
// parameters' values (relay.data_dep_optimization.simplify_fc_transpose).
// Test: tests/relay/passes/simplify_fc_transpose*.txt, python/tests/test_sparse.py
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> simplify_fc_transpose(const Module& module, PassContext& context);
}  // namespace tilewright::relay
