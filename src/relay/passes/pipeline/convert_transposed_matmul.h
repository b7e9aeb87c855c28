// SPDX-License-Identifier: Apache-2.0
// ConvertTransposedMatmul: absorbs transposes of the last two axes into matrix products.
// What: batch_matmul(transpose(a), b) -> batch_matmul with transpose_a flipped (likewise b, and nn.matmul);
// nn.matmul(a, constant) -> nn.dense over the transposed constant; batch_matmul(a, constant matrix) -> nn.dense.
// Requires: typed module.
// Ensures: the same function; a product with a constant right side is an nn.dense.
// Why here: before FoldConstant transposes the weights, and before fusion sees the transposes.
// Test: tests/relay/passes/convert_transposed_matmul*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> convert_transposed_matmul(const Module& module, PassContext& context);
}  // namespace tilewright::relay
