// SPDX-License-Identifier: Apache-2.0
// ExpandComposed: composed operators become the operators they are made of.
// What: each call of an operator whose record has an `expand` becomes that expansion, until none is left; calls with
//   types not yet known, and those whose expansion needs sizes or values that are not known, stay. Depthwise
//   convolutions of several filters a channel get the kernel (channels * filters, 1, ...).
// Requires: typed module. Ensures: the same values and types.
// Why here: before everything that knows operators by name, in the default pipeline; once more when DynamicToStatic
//   has made values and sizes constant.
// Test: tests/relay/passes/expand_composed*.txt; tests/driver/composed_test.cc compiles every case of the operators
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> expand_composed(const Module& module, PassContext& context);
// One call; the expression itself where it is not composed or has to stay. The expansion may hold composed calls.
Expr expanded(const Expr& e);
// A depthwise convolution whose kernel is (channels, filters, ...) over one of (channels * filters, 1, ...).
Expr with_one_filter_a_row(const Expr& e);
}  // namespace tilewright::relay
