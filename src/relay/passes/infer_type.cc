// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/infer_type.h"

#include "base/format.h"
#include "relay/passes/rewrite.h"
#include "relay/text.h"

namespace tilewright::relay {
namespace {

bool incomplete(const Type& type) {
  if (type->kind == TypeKind::kIncomplete) return true;
  if (const auto* tuple = as_tuple(type))
    for (const Type& field : tuple->fields)
      if (incomplete(field)) return true;
  if (const auto* function = as_func(type)) {
    for (const Type& arg : function->args)
      if (incomplete(arg)) return true;
    return incomplete(function->result);
  }
  return false;
}

// The same node, its type inferred from its operands again.
Result<Expr> inferred(const Expr& e, const Module& module) {
  if (const auto* global = as<GlobalVarNode>(e)) {
    auto it = module.functions.find(global->name);
    return it == module.functions.end() ? e : make_global_var(global->name, it->second->type);
  }
  if (const OpDef* op = called_op(e)) {
    const auto& call = *as<CallNode>(e);
    return try_call(op->name, call.args, call.attrs, call.span);
  }
  if (const auto* call = as<CallNode>(e))
    if (const auto* function = as_func(call->callee->type); function && function->args.size() != call->args.size())
      return Diagnostic(ErrorCode::kTypeMismatch, format("a function of {} parameters is called with {} arguments",
                                                         function->args.size(), call->args.size()), call->span ? *call->span : "");
  if (const auto* item = as<TupleGetItemNode>(e))
    if (const auto* tuple = as_tuple(item->tuple->type); !incomplete(item->tuple->type) &&
        (!tuple || item->index >= static_cast<int64_t>(tuple->fields.size())))
      return Diagnostic(ErrorCode::kTypeMismatch, format("there is no field {} in {}", item->index, type_str(item->tuple->type)));
  if (const auto* let = as<LetNode>(e); let && incomplete(let->var->type) && !incomplete(let->value->type)) {
    Expr var = make_var(as<VarNode>(let->var)->name, let->value->type, let->var->span);
    Expr body = substitute(let->body, {{as<VarNode>(let->var), var}});
    return Expr(make_node<LetNode>(var, let->value, body, e->span));
  }
  if (children(e).empty()) return e;
  return with_children(e, children(e));
}

}  // namespace

Result<Module> infer_type(const Module& module, PassContext&) {
  Module current = module;
  // Each round carries types across one more call of a global; a let binding's variable takes a round of its own.
  const size_t rounds = 4 + 2 * module.functions.size();
  for (size_t round = 0; round < rounds; ++round) {
    std::optional<Diagnostic> failure;
    Module next = rewrite_module(current, [&](const Expr&, const Expr& e) {
      if (e->kind == ExprKind::kOp || !incomplete(e->type) || failure) return e;
      auto result = inferred(e, current);
      if (result.ok()) return *result;
      failure = result.error();
      return e;
    });
    if (failure) return *failure;
    bool gaps = false;
    for (auto& [name, function] : next.functions)
      for (const Expr& e : post_order(function, true)) gaps |= e->kind != ExprKind::kOp && incomplete(e->type);
    current = std::move(next);
    if (!gaps) return current;
  }
  for (auto& [name, function] : current.functions)
    for (const Expr& e : post_order(function, true))
      if (const auto* var = as<VarNode>(e); var && incomplete(e->type))
        return Diagnostic(ErrorCode::kTypeMismatch, format("the type of %{} is not known", var->name), "@" + name,
                          "write it, for instance %x: Tensor[(1, 3), float32]");
  return Diagnostic(ErrorCode::kTypeMismatch, "some types cannot be inferred", "", "write the results' types of recursive functions");
}

}  // namespace tilewright::relay
