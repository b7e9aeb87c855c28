// SPDX-License-Identifier: Apache-2.0
// What nothing reads disappears.
// RemoveUnusedFunctions: global functions that main does not reach. First in the order: later passes do not touch them.
// DeadCodeElimination: let bindings whose variable is not used (stateful values stay); a let of an atom, and with
//   inline_once one of a value used once in the same scope, is replaced by the value.
// Requires: typed module. Ensures: the same results. Tests: tests/relay/passes/remove_unused_functions.txt,
// dead_code*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// Whether evaluating `e` may do something besides giving a value: it writes a reference, draws random numbers, or calls
// a function that is not looked into.
bool has_effect(const Expr& e);
Result<Module> remove_unused_functions(const Module& module, PassContext& context);
Result<Module> dead_code_elimination(const Module& module, PassContext& context);
struct DeadCodeOptions {
  bool inline_once = false;      // values used once go to their use
  bool ignore_impurity = false;  // effects do not keep a binding
};
Result<Module> dead_code_elimination(const Module& module, const DeadCodeOptions& options);
}  // namespace tilewright::relay
