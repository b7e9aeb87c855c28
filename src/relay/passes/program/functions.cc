// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/functions.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/hash.h"
#include "ir/string_fields.h"
#include "relay/rewrite.h"
#include "relay/text.h"

namespace tilewright::relay {
namespace {

bool has_flag(const FunctionNode& function, const char* name) {
  auto it = function.attrs.find(name);
  if (it == function.attrs.end()) return false;
  const auto* number = std::get_if<int64_t>(&it->second);
  const auto* flag = std::get_if<bool>(&it->second);
  return number ? *number != 0 : flag && *flag;
}

class LayoutFields : public StringFields {
 public:
  explicit LayoutFields(DictAttrs* out) : out_(out) {}
  void field(const char* name, std::string* value) override {
    if (std::string_view(name).find("layout") != std::string_view::npos && !value->empty()) (*out_)[name] = *value;
  }

 private:
  DictAttrs* out_;
};

Expr labelled(const Expr& e) {
  const auto* function = as<FunctionNode>(e);
  if (!function || !function->primitive() || function->attrs.count("hash")) return e;
  DictAttrs attrs = function->attrs;
  for (const Expr& part : post_order(function->body))
    if (const auto* call = as<CallNode>(part); call && call->attrs) {
      LayoutFields visitor(&attrs);
      const_cast<AttrsNode*>(call->attrs.get())->visit(visitor);  // the visitor does not modify
    }
  std::string text = print_expr(make_function(function->params, function->body));
  uint64_t hash = hash_bytes(text.data(), text.size());
  // The text refers to tensors but does not contain their data, which is hashed as well.
  for (const Expr& part : post_order(function->body))
    if (const auto* constant = as<ConstantNode>(part); constant && !constant->data.dtype().is_string())
      hash = hash_bytes(constant->data.raw(), constant->data.bytes(), hash);
  attrs["hash"] = format("{:016x}", hash);
  return make_function(function->params, function->body, std::move(attrs), function->span, function->type_variables);
}

}  // namespace

Expr applied(const FunctionNode& function, const std::vector<Expr>& args) {
  std::map<const VarNode*, Expr> values;
  // The type arguments of a polymorphic function at this call.
  TypeMap types;
  if (!function.type_variables.empty()) {
    std::vector<Type> wanted, given;
    for (const Expr& param : function.params) wanted.push_back(param->type);
    for (const Expr& arg : args) given.push_back(arg->type);
    Type all = func_type(wanted, tuple_type(function.type_variables), function.type_variables);
    Type found = applied_type(*as_func(all), given);
    for (size_t i = 0; i < function.type_variables.size(); ++i)
      types[function.type_variables[i].get()] = as_tuple(found)->fields[i];
  }
  auto rename = [&](const Expr& var) {
    values[as<VarNode>(var)] = make_var(as<VarNode>(var)->name, substitute_types(var->type, types), var->span);
  };
  for (const Expr& e : post_order(function.body, true)) {
    if (const auto* let = as<LetNode>(e)) rename(let->var);
    if (const auto* match = as<MatchNode>(e))
      for (const Clause& clause : match->clauses)
        for (const Expr& var : pattern_vars(clause.pattern)) rename(var);
    // Closed functions are shared between copies.
    if (const auto* inner = as<FunctionNode>(e); inner && !is_closed_function(e))
      for (const Expr& param : inner->params) rename(param);
  }
  for (size_t i = 0; i < args.size(); ++i) values[as<VarNode>(function.params[i])] = args[i];
  Expr body = substitute(function.body, values);
  // A shared node is one evaluation: each copy of the body has effects of its own.
  body = rewrite_expr(body, [](const Expr& original, const Expr& e) -> Expr {
    if (!(original == e)) return e;
    if (const auto* read = as<RefReadNode>(e)) return make_node<RefReadNode>(read->reference, e->span);
    if (const auto* write = as<RefWriteNode>(e))
      return make_node<RefWriteNode>(write->reference, write->value, e->span);
    if (const auto* made = as<RefCreateNode>(e)) return make_node<RefCreateNode>(made->value, e->span);
    const auto* call = as<CallNode>(e);
    const OpDef* op = called_op(e);
    if (!call || (op ? !op->stateful : as<ConstructorNode>(call->callee) != nullptr)) return e;
    return make_node<CallNode>(call->callee, call->args, call->attrs, call->type, call->span);
  });
  if (types.empty()) return body;
  return rewrite_expr(body, [&](const Expr&, const Expr& e) -> Expr {
    const auto* call = as<CallNode>(e);
    if (!call || called_op(e)) return e;
    Type now = substitute_types(call->type, types);
    return now == call->type ? e : Expr(make_node<CallNode>(call->callee, call->args, call->attrs, now, call->span));
  });
}

bool holds_function(const Type& type) {
  if (as_func(type)) return true;
  if (as_tensor(type)) return false;
  const std::vector<Type> parts = parts_of(type);
  return std::any_of(parts.begin(), parts.end(), holds_function);
}

Status check_first_order_data(const Module& module) {
  for (auto& [name, type] : module.types)
    for (const Expr& constructor : type.constructors)
      for (const Type& field : as_func(constructor->type)->args)
        if (holds_function(field))
          return Diagnostic(ErrorCode::kUnsupportedModel, format("the data type {} holds functions", name), {},
                            "run PartialEvaluate first");
  return Ok{};
}

std::set<std::string> reached_from(const Module& module, const std::string& start) {
  std::set<std::string> out;
  std::vector<std::string> waiting{start};
  while (!waiting.empty()) {
    auto it = module.functions.find(waiting.back());
    waiting.pop_back();
    if (it == module.functions.end()) continue;
    for (const Expr& e : post_order(it->second, true))
      if (const auto* global = as<GlobalVarNode>(e); global && out.insert(global->name).second)
        waiting.push_back(global->name);
  }
  return out;
}

Result<Module> defuse_ops(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    const auto* call = as<CallNode>(e);
    const auto* function = call ? as<FunctionNode>(call->callee) : nullptr;
    return function && function->primitive() ? applied(*function, call->args) : e;
  });
}

Result<Module> inline_functions(const Module& module, PassContext&) {
  Module current = module;
  // Repeats instead of ordering callees first; that is cheap, and recursion is excluded below.
  for (size_t round = 0; round <= module.functions.size(); ++round) {
    Module next = rewrite_module(current, [&](const Expr&, const Expr& e) -> Expr {
      const auto* call = as<CallNode>(e);
      if (const auto* literal = call ? as<FunctionNode>(call->callee) : nullptr;
          literal && !is_closed_function(call->callee))
        return applied(*literal, call->args);
      const auto* global = call ? as<GlobalVarNode>(call->callee) : nullptr;
      auto it = global ? current.functions.find(global->name) : current.functions.end();
      if (it == current.functions.end()) return e;
      const auto* function = as<FunctionNode>(it->second);
      if (!function || is_closed_function(it->second) || !has_flag(*function, "Inline") ||
          reached_from(current, global->name).count(global->name))
        return e;
      return applied(*function, call->args);
    });
    if (next.functions == current.functions) break;
    current = std::move(next);
  }
  // Removes functions that have been inlined everywhere; one that nothing called before is an entry and stays.
  std::set<std::string> called, still;
  for (const Module* m : {&module, static_cast<const Module*>(&current)})
    for (const auto& [name, function] : m->functions)
      for (const Expr& e : post_order(function, true))
        if (const auto* global = as<GlobalVarNode>(e)) (m == &module ? called : still).insert(global->name);
  std::erase_if(current.functions, [&](const auto& entry) {
    const auto* function = as<FunctionNode>(entry.second);
    return function && has_flag(*function, "Inline") && called.count(entry.first) && !still.count(entry.first);
  });
  return current;
}

Result<Module> label_ops(const Module& module, PassContext&) {
  // Functions shared by several globals stay shared.
  std::unordered_map<const ExprNode*, Expr> done;
  auto label = [&](const Expr& e) {
    auto [it, fresh] = done.try_emplace(e.get());
    if (fresh) it->second = labelled(e);
    return it->second;
  };
  Module out =
      rewrite_module(module, [&](const Expr& original, const Expr& e) { return original == e ? label(e) : e; });
  for (auto& [name, function] : out.functions) function = label(function);
  return out;
}

}  // namespace tilewright::relay
