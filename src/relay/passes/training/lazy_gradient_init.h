// SPDX-License-Identifier: Apache-2.0
// LazyGradientInit: creates tensors of zeros or ones only where they are needed.
// What: constants of only zeros or only ones (more than one element), zeros, ones, zeros_like and ones_like are known
// by their value through add, subtract, multiply, negative, transposes, reshapes, broadcasts and sums of zeros: x + 0
// is x, x * 1 is x, x * 0 is 0 (also where x is not finite). Where other operators, functions and results need the
// tensor, it is a call of zeros or ones, which takes no memory before.
// Requires: typed module; only tensors of known shapes are touched.
// Ensures: the same results, where what is multiplied by zero is finite.
// Why here: behind FirstOrderGradient, which seeds with ones and has zeros for what nothing depends on.
// Test: tests/relay/passes/lazy_gradient_init*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> lazy_gradient_init(const Module& module, PassContext& context);
}  // namespace tilewright::relay
