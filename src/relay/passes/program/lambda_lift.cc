// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/lambda_lift.h"

#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// The free variables of `e`, in order of first use.
std::vector<Expr> captured_variables(const Expr& e) {
  std::unordered_set<const ExprNode*> bound;
  std::vector<Expr> order = post_order(e, true), out;
  for (const Expr& part : order) {
    if (const auto* function = as<FunctionNode>(part))
      for (const Expr& param : function->params) bound.insert(param.get());
    if (const auto* let = as<LetNode>(part)) bound.insert(let->var.get());
    if (const auto* match = as<MatchNode>(part))
      for (const Clause& clause : match->clauses)
        for (const Expr& var : pattern_vars(clause.pattern)) bound.insert(var.get());
  }
  for (const Expr& part : order)
    if (as<VarNode>(part) && !bound.count(part.get())) out.push_back(part);
  return out;
}

class Lifter {
 public:
  explicit Lifter(const Module& module) : out_(module) {}

  Module run() {
    std::vector<std::string> names;
    for (auto& [name, function] : out_.functions) names.push_back(name);
    for (const std::string& name : names) {
      Expr function = out_.functions.at(name);
      const auto* node = as<FunctionNode>(function);
      if (!node || is_closed_function(function) || node->attrs.count("Closure")) continue;
      base_ = name;
      Expr body = lifted(node->body);
      if (as<FunctionNode>(body) && !is_closed_function(body)) body = lift(body, {});
      if (!(body == node->body)) out_.functions[name] = with_body(*node, body);
    }
    return std::move(out_);
  }

 private:
  // Innermost functions first: rewrite_expr works bottom-up.
  Expr lifted(const Expr& body) {
    return rewrite_expr(body, [&](const Expr&, const Expr& e) -> Expr {
      if (const auto* let = as<LetNode>(e))
        if (as<FunctionNode>(let->value) && !is_closed_function(let->value)) {
          Expr value = lift(let->value, let->var);
          return make_node<LetNode>(let->var, value, let->body, e->span);
        }
      return lift_operands(e);
    });
  }

  // Functions used as values other than directly in a let.
  Expr lift_operands(const Expr& e) {
    if (as<LetNode>(e) || as<FunctionNode>(e)) {
      const auto* function = as<FunctionNode>(e);
      if (!function || is_closed_function(e) || !as<FunctionNode>(function->body) || is_closed_function(function->body))
        return e;
      return with_body(*function, lift(function->body, {}));
    }
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids)
      if (as<FunctionNode>(kid) && !is_closed_function(kid)) kid = lift(kid, {});
    return with_children(e, kids);
  }

  Expr lift(const Expr& e, const Expr& self) {
    auto [it, fresh] = done_.try_emplace(e.get());
    if (!fresh) return it->second.second;
    const auto& function = *as<FunctionNode>(e);
    std::vector<Expr> captured = captured_variables(e), params;
    bool recursive = self && std::find(captured.begin(), captured.end(), self) != captured.end();
    std::erase_if(captured, [&](const Expr& var) { return var == self; });
    std::string name;
    do name = format("{}_lifted_{}", base_, next_++);
    while (out_.functions.count(name));
    std::map<const VarNode*, Expr> values;
    for (const Expr& var : captured) {
      params.push_back(make_var(as<VarNode>(var)->name, var->type, var->span));
      values[as<VarNode>(var)] = params.back();
    }
    std::vector<Type> given;
    for (const Expr& var : captured) given.push_back(var->type);
    Expr global = make_global_var(name, captured.empty() ? e->type : func_type(given, e->type));
    if (recursive) values[as<VarNode>(self)] = captured.empty() ? global : call_function(global, params);
    Expr body = substitute(e, values);
    out_.functions[name] =
        captured.empty() ? body : make_function(params, body, {{"Closure", int64_t{1}}}, function.span);
    Expr result = captured.empty() ? global : call_function(global, captured, function.span);
    done_[e.get()] = {e, result};
    return result;
  }

  Module out_;
  std::string base_;
  int64_t next_ = 0;
  // holds the function, so that the key's address stays valid
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> done_;
};

}  // namespace

Result<Module> lambda_lift(const Module& module, PassContext&) {
  Module out = Lifter(module).run();
  return out.functions == module.functions ? module : out;
}

Result<Module> eta_expand(const Module& module, bool constructors, bool globals) {
  return rewrite_module(module, [=](const Expr&, const Expr& e) -> Expr {
    auto expanded = [=](const Expr& value) -> Expr {
      const auto* type = as_func(value->type);
      if (!type || !((globals && as<GlobalVarNode>(value)) || (constructors && as<ConstructorNode>(value))))
        return value;
      std::vector<Expr> params;
      for (const Type& t : type->args) params.push_back(make_var(format("eta_{}", params.size()), t));
      return make_function(params, call_function(value, params), {}, {}, type->variables);
    };
    std::vector<Expr> kids = children(e);
    // The callee of a call is not a value.
    for (size_t i = as<CallNode>(e) && !called_op(e) ? 1 : 0; i < kids.size(); ++i) kids[i] = expanded(kids[i]);
    return with_children(e, kids);
  });
}

Result<Module> eta_expand(const Module& module, PassContext&) { return eta_expand(module, true, true); }

}  // namespace tilewright::relay
