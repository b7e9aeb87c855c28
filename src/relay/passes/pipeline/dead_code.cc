// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/dead_code.h"

#include <map>
#include <set>

#include "relay/rewrite.h"
#include "relay/structural.h"

namespace tilewright::relay {
namespace {

bool is_atom(const Expr& e) {
  return as<ConstructorNode>(e) || as<VarNode>(e) || as<ConstantNode>(e) || as<GlobalVarNode>(e);
}

// Whether a binding's value is free of effects, so that it may be dropped or moved. Calls of global functions are
// analysed; recursive ones are assumed pure while being analysed.
class Purity {
 public:
  explicit Purity(const Module& module) : module_(module) {}
  bool operator()(const Expr& e) {
    for (const Expr& part : post_order(e)) {
      const OpDef* op = called_op(part);
      if ((op && op->stateful) || as<RefWriteNode>(part)) return false;
      const auto* call = as<CallNode>(part);
      if (!call || op || as<ConstructorNode>(call->callee) || is_closed_function(call->callee)) continue;
      const auto* global = as<GlobalVarNode>(call->callee);
      if (!global || !of_function(global->name)) return false;
    }
    return true;
  }

 private:
  bool of_function(const std::string& name) {
    auto it = module_.functions.find(name);
    const auto* function = it == module_.functions.end() ? nullptr : as<FunctionNode>(it->second);
    if (!function) return false;
    auto [known, fresh] = known_.try_emplace(name, true);
    if (!fresh) return known->second;
    const bool pure = (*this)(function->body);
    return known_[name] = pure;
  }
  const Module& module_;
  std::map<std::string, bool> known_;
};

// Variables captured by functions inside `root`: a value moved there would be computed at another time.
std::set<const ExprNode*> read_by_closures(const Expr& root) {
  std::set<const ExprNode*> out;
  for (const Expr& e : post_order(root, true))
    if (as<FunctionNode>(e) && !(e == root) && !is_closed_function(e))
      for (const Expr& var : free_variables(e)) out.insert(var.get());
  return out;
}

Expr remove_dead_lets(const Expr& function, const DeadCodeOptions& options, Purity& purity) {
  UseCounts uses = count_uses(function);
  const auto inner = options.inline_once ? read_by_closures(function) : std::set<const ExprNode*>();
  return rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
    const auto* let = as<LetNode>(e);
    if (!let) return e;
    const ExprNode* var = as<LetNode>(original)->var.get();
    int count = uses.at(var);  // the binding itself counts as a use
    if (as<FunctionNode>(
            as<LetNode>(original)->value)) {  // so do a function's calls of itself, which keep nothing alive
      const UseCounts own = count_uses(as<LetNode>(original)->value);
      if (auto it = own.find(var); it != own.end() && it->second + 1 == count) count = 1;
    }
    const bool pure = options.ignore_impurity || purity(let->value);
    if (count == 1 && pure) return let->body;
    if ((options.inline_atoms && is_atom(let->value)) ||
        (options.inline_once && count == 2 && pure && !inner.count(var)))
      return substitute(let->body, {{as<VarNode>(let->var), let->value}});
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

Result<Module> dead_code_elimination(const Module& module, const DeadCodeOptions& options) {
  Module current = module;
  // Removing a binding may make those it read unused.
  for (;;) {
    Purity purity(current);
    Module next =
        rewrite_functions(current, [&](const Expr& function) { return remove_dead_lets(function, options, purity); });
    if (next.functions == current.functions) return current;
    current = std::move(next);
  }
}

Result<Module> dead_code_elimination(const Module& module, PassContext&) {
  return dead_code_elimination(module, DeadCodeOptions{});
}

}  // namespace tilewright::relay
