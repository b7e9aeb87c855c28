// SPDX-License-Identifier: Apache-2.0
// Removes unused code.
// RemoveUnusedFunctions: global functions that main does not reach; runs first, so that later passes need not process
// them.
// DeadCodeElimination: let bindings whose variable is not used (stateful values stay); a let of an atom, and with
// inline_once one of a value used once in the same scope, is replaced by the value.
// Requires: typed module.
// Ensures: the same results.
// Tests: tests/relay/passes/remove_unused_functions.txt, dead_code*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// Whether evaluating `e` has effects: it writes a reference, draws random numbers, or calls a function that cannot be
// analysed.
bool has_effect(const Expr& e);
Result<Module> remove_unused_functions(const Module& module, PassContext& context);
Result<Module> dead_code_elimination(const Module& module, PassContext& context);
struct DeadCodeOptions {
  bool inline_once = false;      // inlines values with a single use
  bool ignore_impurity = false;  // removes bindings with effects, too
  bool inline_atoms = true;      // inlines variables and constants, however often they are used
};
Result<Module> dead_code_elimination(const Module& module, const DeadCodeOptions& options);
}  // namespace tilewright::relay
