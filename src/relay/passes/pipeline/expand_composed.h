// SPDX-License-Identifier: Apache-2.0
// ExpandComposed: replaces composed operators by their expansions.
// What: each call of an operator whose record has an `expand` becomes that expansion, until none is left; calls with
// types not yet known, and those whose expansion needs sizes or values that are not known, stay. Depthwise convolutions
// with several filters per channel get the kernel (channels * filters, 1, ...).
// Requires: typed module.
// Ensures: the same values and types.
// Why here: before everything that knows operators by name, in the default pipeline; once more when DynamicToStatic has
// made values and sizes constant.
// Test: tests/relay/passes/expand_composed*.txt; tests/driver/composed_test.cc compiles every case of the operators
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> expand_composed(const Module& module, PassContext& context);
// Expands one call; returns the expression itself if it is not composed or cannot be expanded yet. The expansion may
// contain composed calls.
Expr expanded(const Expr& e);
// Converts a depthwise kernel (channels, filters, ...) to the form (channels * filters, 1, ...).
Expr with_one_filter_a_row(const Expr& e);
}  // namespace tilewright::relay
