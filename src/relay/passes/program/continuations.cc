// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/continuations.h"

#include <set>
#include <unordered_map>

#include "base/format.h"
#include "relay/passes/program/functions.h"
#include "relay/passes/program/normal_forms.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// fn (..., fn (R) -> A) -> A, where A is the last type variable and used nowhere else.
bool takes_continuation(const FunctionNode& function) {
  const Type& result = as_func(function.type)->result;
  if (function.type_variables.empty() || !(function.type_variables.back() == result) || function.params.empty())
    return false;
  const auto* last = as_func(function.params.back()->type);
  return last && last->args.size() == 1 && last->result == result;
}

// Converts one global function, in A-normal form, to CPS.
class Converter {
 public:
  // `name_of`: the converted function's name.
  explicit Converter(std::function<std::string(const std::string&)> name_of) : name_of_(std::move(name_of)) {}

  Expr run(const FunctionNode& function) {
    std::vector<Type> variables = function.type_variables;
    variables.push_back(answer_);
    return converted(function, std::move(variables));
  }

 private:
  // The CPS form of a type: functions take a continuation.
  Type type_of(const Type& type) {
    if (as_tensor(type) || as_variable(type)) return type;
    std::vector<Type> parts = parts_of(type);
    for (Type& part : parts) part = type_of(part);
    if (const auto* f = as_func(type)) {
      Type result = parts.back();
      parts.back() = func_type({result}, answer_);
      return func_type(std::move(parts), answer_, f->variables);
    }
    return with_parts(type, std::move(parts));
  }

  Expr fresh(const Expr& var) {
    return vars_[var.get()] = make_var(as<VarNode>(var)->name, type_of(var->type), var->span);
  }
  Expr continuation(const Type& result) { return make_var("k", func_type({result}, answer_)); }
  Expr given(const Expr& callee, std::vector<Expr> args, const Span& span = {}) {
    return make_node<CallNode>(callee, std::move(args), AttrsRef(), answer_, span);
  }

  Expr converted(const FunctionNode& function, std::vector<Type> variables) {
    std::vector<Expr> params;
    for (const Expr& param : function.params) params.push_back(fresh(param));
    Expr k = continuation(type_of(as_func(function.type)->result));
    params.push_back(k);
    return make_function(params, scope(function.body, k), function.attrs, function.span, std::move(variables));
  }

  // A global or constructor as a value.
  Expr wrapped(const Expr& e) {
    const auto& type = *as_func(e->type);
    std::vector<Expr> params;
    for (const Type& arg : type.args) params.push_back(make_var(format("a{}", params.size()), type_of(arg)));
    const Type result = type_of(type.result);
    Expr k = continuation(result), body;
    if (const auto* global = as<GlobalVarNode>(e)) {
      std::vector<Expr> args = params;
      args.push_back(k);
      body = given(callee_of(*global, type), std::move(args));
    } else {
      body = given(k, {make_node<CallNode>(e, params, AttrsRef(), result, Span())});
    }
    params.push_back(k);
    return make_function(params, body, {}, {}, type.variables);
  }
  Expr callee_of(const GlobalVarNode& global, const FuncTypeNode& type) {
    // Its answer type is a separate variable.
    const Type whole = type_of(global.type);
    const auto* converted = as_func(whole);
    std::vector<Type> variables = type.variables;
    variables.push_back(answer_);
    return make_global_var(name_of_(global.name), func_type(converted->args, converted->result, variables));
  }

  static bool is_direct(const CallNode& call) {
    return as<OpNode>(call.callee) || as<ConstructorNode>(call.callee) || is_closed_function(call.callee);
  }
  static bool needs_continuation(const Expr& e) {
    const auto* call = as<CallNode>(e);
    return (call && !is_direct(*call)) || as<IfNode>(e) || as<MatchNode>(e) || as<LetNode>(e);
  }

  // Values that need no continuation.
  Expr value(const Expr& e) {
    if (as<VarNode>(e)) return vars_.at(e.get());
    if (as<GlobalVarNode>(e) || as<ConstructorNode>(e)) return wrapped(e);
    if (as<ConstantNode>(e) || is_closed_function(e)) return e;
    if (const auto* function = as<FunctionNode>(e)) return converted(*function, function->type_variables);
    if (const auto* call = as<CallNode>(e)) {
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(value(arg));
      return make_node<CallNode>(call->callee, std::move(args), call->attrs, type_of(call->type), call->span);
    }
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = value(kid);
    return with_children(e, kids);
  }

  // A function body, branch or clause: passes its value to the variable `k`.
  Expr scope(const Expr& body, const Expr& k) {
    std::vector<const LetNode*> lets;
    Expr end = body;
    for (const auto* let = as<LetNode>(end); let; let = as<LetNode>(end)) {
      lets.push_back(let);
      fresh(let->var);
      end = let->body;
    }
    Expr rest = needs_continuation(end) ? passed(end, k) : given(k, {value(end)});
    for (size_t i = lets.size(); i-- > 0;) {
      const LetNode& let = *lets[i];
      const Expr& var = vars_.at(let.var.get());
      if (!needs_continuation(let.value)) {
        rest = make_node<LetNode>(var, value(let.value), rest, let.span);
        continue;
      }
      // The rest only passes the value to `k`: `k` itself is the continuation.
      const auto* last = as<CallNode>(rest);
      const bool tail = last && last->callee == k && last->args[0] == var;
      rest = passed(let.value, tail ? k : make_function({var}, rest));
    }
    return rest;
  }

  // Passes the value of `e` to `k`, a variable or a function.
  Expr passed(const Expr& e, const Expr& k) {
    if (const auto* call = as<CallNode>(e)) {
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(value(arg));
      args.push_back(k);
      const auto* global = as<GlobalVarNode>(call->callee);
      return given(global ? callee_of(*global, *as_func(global->type)) : value(call->callee), std::move(args),
                   call->span);
    }
    if (!as<VarNode>(k)) {  // every branch contains it, so bind it once
      Expr joined = make_var("k", k->type);
      return make_node<LetNode>(joined, k, passed(e, joined), Span());
    }
    if (const auto* branch = as<IfNode>(e)) {
      Expr condition = value(branch->condition);
      return make_node<IfNode>(condition, scope(branch->then_branch, k), scope(branch->else_branch, k), e->span);
    }
    if (const auto* match = as<MatchNode>(e)) {
      std::vector<Clause> clauses;
      for (const Clause& clause : match->clauses) {
        std::map<const ExprNode*, Expr> vars;
        for (const Expr& var : pattern_vars(clause.pattern)) vars[var.get()] = fresh(var);
        clauses.push_back({with_pattern_vars(clause.pattern, vars), scope(clause.body, k)});
      }
      return make_match(value(match->data), std::move(clauses), match->complete, e->span);
    }
    return scope(e, k);
  }

  std::function<std::string(const std::string&)> name_of_;
  const Type answer_ = variable_type("answer");
  std::unordered_map<const ExprNode*, Expr> vars_;
};

}  // namespace

Result<Module> to_cps(const Module& module, PassContext& context) {
  const auto* main = module.main_function();
  if (!main || is_closed_function(module.main()) || takes_continuation(*main)) return module;
  TW_TRY_STATUS(check_first_order_data(module));
  Module out = module;
  std::map<std::string, std::string> names;
  std::vector<std::string> waiting;
  auto name_of = [&](const std::string& name) -> std::string {
    auto [it, fresh] = names.try_emplace(name, name + "_cps");
    if (!fresh) return it->second;
    while (out.functions.count(it->second)) it->second += "_";
    // adds the name now; the converted function replaces it later
    out.functions[it->second] = module.functions.at(name);
    waiting.push_back(name);
    return it->second;
  };
  auto converted = [&](const std::string& name) -> Result<Expr> {
    Module one = module;
    one.functions = {{name, module.functions.at(name)}};
    one = TW_TRY(to_a_normal_form(one, context));
    return Converter(name_of).run(*as<FunctionNode>(one.functions.at(name)));
  };
  out.functions["main"] = TW_TRY(converted("main"));
  while (!waiting.empty()) {
    const std::string name = waiting.back();
    waiting.pop_back();
    if (is_closed_function(module.functions.at(name)))
      return Diagnostic(ErrorCode::kUnsupportedModel, format("@{} is an external compiler's", name));
    out.functions[names.at(name)] = TW_TRY(converted(name));
  }
  return out;
}

Result<Module> un_cps(const Module& module, PassContext&) {
  const auto* main = module.main_function();
  if (!main || is_closed_function(module.main()) || !takes_continuation(*main)) return module;
  const Type& result = as_func(main->params.back()->type)->args[0];
  const TypeMap answer{{main->type_variables.back().get(), result}};
  std::vector<Expr> params;
  for (size_t i = 0; i + 1 < main->params.size(); ++i) {
    const Expr& param = main->params[i];
    params.push_back(make_var(as<VarNode>(param)->name, substitute_types(param->type, answer), param->span));
  }
  Expr y = make_var("y", result), identity = make_function({y}, y), k = make_var("k", identity->type);
  std::vector<Expr> args = params;
  args.push_back(k);
  Expr body = applied(*main, args);
  std::vector<Type> variables(main->type_variables.begin(), main->type_variables.end() - 1);
  return module.with_main(make_function(params, make_node<LetNode>(k, identity, body, Span()), main->attrs, main->span,
                                        std::move(variables)));
}

}  // namespace tilewright::relay
