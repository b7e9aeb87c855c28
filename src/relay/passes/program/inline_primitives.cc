// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/inline_primitives.h"

#include <set>

#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool is_primitive(const Expr& e) {
  const auto* function = as<FunctionNode>(e);
  return function && function->primitive();
}

}  // namespace

Result<Module> inline_primitives(const Module& module, PassContext&) {
  Module out = rewrite_functions(module, [&](const Expr& function) {
    std::map<const VarNode*, Expr> bound;
    for (const Expr& e : post_order(function, true))
      if (const auto* let = as<LetNode>(e); let && is_primitive(let->value)) bound[as<VarNode>(let->var)] = let->value;
    return rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
      // All uses of its variable have been replaced.
      if (const auto* let = as<LetNode>(original); let && is_primitive(let->value)) return as<LetNode>(e)->body;
      const auto* call = as<CallNode>(original);
      if (!call) return e;
      const std::vector<Expr>& args = as<CallNode>(e)->args;
      if (const auto* var = as<VarNode>(call->callee))
        if (auto it = bound.find(var); it != bound.end()) return call_function(it->second, args, e->span);
      if (const auto* global = as<GlobalVarNode>(call->callee))
        if (auto it = module.functions.find(global->name); it != module.functions.end() && is_primitive(it->second))
          return call_function(it->second, args, e->span);
      return e;
    });
  });
  std::set<std::string> used;
  for (const auto& [name, function] : out.functions)
    for (const Expr& e : post_order(function, true))
      if (const auto* global = as<GlobalVarNode>(e)) used.insert(global->name);
  for (const auto& [name, function] : module.functions)
    if (name != "main" && is_primitive(function) && !used.count(name)) out.functions.erase(name);
  return out;
}

}  // namespace tilewright::relay
