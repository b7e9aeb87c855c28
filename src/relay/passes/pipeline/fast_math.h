// SPDX-License-Identifier: Apache-2.0
// FastMath: exp, tanh, erf and softmax become their approximated forms.
// What: the same operator under its fast_ name. Here both have the same kernels, vectorised polynomials within a few
// units in the last place; the names are for what reads them.
// Requires: nothing.
// Ensures: the same values within those units; every other operator stays.
// Why here: level 4, after layouts, where nothing matches these operators any more.
// Test: tests/relay/passes/fast_math*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fast_math(const Module& module, PassContext& context);
}  // namespace tilewright::relay
