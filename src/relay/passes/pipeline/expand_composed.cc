// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/expand_composed.h"

#include "relay/passes/legalize/legalize_rules.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

Expr expanded(const Expr& e) {
  const OpDef* op = called_op(e);
  if (!op || !is_complete(e->type)) return e;
  if (!op->expand) return with_one_filter_a_row(e);
  const auto& call = *as<CallNode>(e);
  std::vector<Type> types;
  for (const Expr& operand : call.args) types.push_back(operand->type);
  // Its operands were checked when the call was made: what is refused now waits for sizes or values.
  auto made = op->expand(TypeArgs{types, call.args, call.attrs, call.span});
  return made.ok() ? *made : e;
}

Result<Module> expand_composed(const Module& module, PassContext&) {
  Module current = module;
  for (bool changed = true; changed;) {
    changed = false;
    current = rewrite_module(current, [&](const Expr&, const Expr& e) {
      Expr out = expanded(e);
      changed |= !(out == e);
      return out;
    });
  }
  return current;
}

}  // namespace tilewright::relay
