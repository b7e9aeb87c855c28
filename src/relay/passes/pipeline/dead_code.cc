// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/dead_code.h"

#include <set>

#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool is_atom(const Expr& e) {
  return as<ConstructorNode>(e) || as<VarNode>(e) || as<ConstantNode>(e) || as<GlobalVarNode>(e);
}

Expr remove_dead_lets(const Expr& function) {
  UseCounts uses = count_uses(function);
  return rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
    const auto* let = as<LetNode>(e);
    if (!let) return e;
    // One use is the binding itself.
    if (uses.at(as<LetNode>(original)->var.get()) == 1 && !has_effect(let->value)) return let->body;
    if (is_atom(let->value)) return substitute(let->body, {{as<VarNode>(let->var), let->value}});
    return e;
  });
}

}  // namespace

bool has_effect(const Expr& e) {
  for (const Expr& part : post_order(e)) {
    const OpDef* op = called_op(part);
    if (op && op->stateful) return true;
    if (as<RefWriteNode>(part)) return true;
    if (const auto* call = as<CallNode>(part);
        call && !op && !as<ConstructorNode>(call->callee) && !is_closed_function(call->callee))
      return true;
  }
  return false;
}

Result<Module> remove_unused_functions(const Module& module, PassContext&) {
  if (!module.main()) return module;
  std::set<std::string> reached{"main"};
  std::vector<std::string> waiting{"main"};
  while (!waiting.empty()) {
    Expr function = module.functions.at(waiting.back());
    waiting.pop_back();
    for (const Expr& e : post_order(function, true))
      if (const auto* global = as<GlobalVarNode>(e); global && module.functions.count(global->name))
        if (reached.insert(global->name).second) waiting.push_back(global->name);
  }
  Module out = module;
  std::erase_if(out.functions, [&](const auto& entry) { return !reached.count(entry.first); });
  return out;
}

Result<Module> dead_code_elimination(const Module& module, PassContext&) {
  Module current = module;
  // Removing one binding may leave those it read unused.
  for (;;) {
    Module next = rewrite_functions(current, remove_dead_lets);
    if (next.functions == current.functions) return current;
    current = std::move(next);
  }
}

}  // namespace tilewright::relay
