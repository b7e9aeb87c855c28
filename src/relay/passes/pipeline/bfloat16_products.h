// SPDX-License-Identifier: Apache-2.0
// BFloat16Products: products of float32 by constant weights take bfloat16 operands, with the user's word.
// What: nn.dense and nn.matmul by a constant matrix, and nn.conv2d of one group by constant weights, become products of
//   operands rounded to bfloat16 whose sums are float32. Convolutions that Winograd's way computes with at most as many
//   multiplications, and those of few or odd channels, stay as they are.
// Requires: typed module, weights folded; -math=bf16 in the target and a processor that multiplies pairs of bfloat16.
// Ensures: types as before; every operator but these products computes in float32 still.
// Why here: behind everything that recognises float32 graphs, before layouts. The casts of activations join the kernels
//   that make them.
// Test: tests/relay/passes/bfloat16_products*.txt, tests/driver/bfloat16_products_test.cc
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> bfloat16_products(const Module& module, PassContext& context);
}  // namespace tilewright::relay
