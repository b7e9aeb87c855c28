// SPDX-License-Identifier: Apache-2.0
// Passes over functions rather than operators.
// DefuseOps: calls of Primitive functions become their bodies (the inverse of FuseOps).
// Inline: calls of function literals, and of global functions with the attribute Inline=1, become their bodies; the
// globals stay, for RemoveUnusedFunctions. Recursive ones are left alone.
// LabelOps: Primitive functions get hash="<16 digits>" of their text, equal for equal functions, and the layout
// attributes of the operators inside; records and kernels of the classic tools are found by them.
// Requires: typed module.
// Ensures: the same results.
// Tests: tests/relay/passes/{defuse_ops,inline,label_ops}.txt
#pragma once
#include <set>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// The function's body with arguments substituted. Variables bound in the body are renamed in each copy.
Expr applied(const FunctionNode& function, const std::vector<Expr>& args);
// Whether it is a function type or contains one.
bool holds_function(const Type& type);
// Error: UnsupportedModel when a constructor of the module's data types takes functions.
Status check_first_order_data(const Module& module);
// The globals a function calls, directly or through others.
std::set<std::string> reached_from(const Module& module, const std::string& start);
Result<Module> defuse_ops(const Module& module, PassContext& context);
Result<Module> inline_functions(const Module& module, PassContext& context);
Result<Module> label_ops(const Module& module, PassContext& context);
}  // namespace tilewright::relay
