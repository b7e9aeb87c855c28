// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/capture_post_dfs_index.h"

#include "base/format.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// Operands with the called operator first.
std::vector<Expr> all_operands(const Expr& e) {
  std::vector<Expr> out = children(e);
  if (called_op(e)) out.insert(out.begin(), as<CallNode>(e)->callee);
  return out;
}

Expr with_span(const Expr& e, const Span& span) {
  switch (e->kind) {
    case ExprKind::kOp:
    case ExprKind::kConstructor:
    case ExprKind::kGlobalVar:
      return e;
    case ExprKind::kVar:
      return make_var(as<VarNode>(e)->name, e->type, span);
    case ExprKind::kConstant:
      return make_constant(as<ConstantNode>(e)->data, span);
    case ExprKind::kCall: {
      const auto* c = as<CallNode>(e);
      return make_node<CallNode>(c->callee, c->args, c->attrs, c->type, span);
    }
    case ExprKind::kFunction: {
      const auto* f = as<FunctionNode>(e);
      return make_node<FunctionNode>(f->params, f->body, f->attrs, span, f->type_variables, as_func(f->type)->result);
    }
    case ExprKind::kTuple:
      return make_tuple(as<TupleNode>(e)->fields, span);
    case ExprKind::kTupleGetItem:
      return make_get(as<TupleGetItemNode>(e)->tuple, as<TupleGetItemNode>(e)->index, span);
    case ExprKind::kLet:
      return make_node<LetNode>(as<LetNode>(e)->var, as<LetNode>(e)->value, as<LetNode>(e)->body, span);
    case ExprKind::kIf: {
      const auto* i = as<IfNode>(e);
      return make_node<IfNode>(i->condition, i->then_branch, i->else_branch, span);
    }
    case ExprKind::kMatch: {
      const auto* m = as<MatchNode>(e);
      return make_match(m->data, m->clauses, m->complete, span);
    }
    case ExprKind::kRefCreate:
      return make_node<RefCreateNode>(as<RefCreateNode>(e)->value, span);
    case ExprKind::kRefRead:
      return make_node<RefReadNode>(as<RefReadNode>(e)->reference, span);
    case ExprKind::kRefWrite:
      return make_node<RefWriteNode>(as<RefWriteNode>(e)->reference, as<RefWriteNode>(e)->value, span);
  }
  return e;
}

}  // namespace

Result<Module> capture_post_dfs_index_in_spans(const Module& module, PassContext&) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    if (!as<FunctionNode>(function)) continue;
    const std::vector<Expr> order = post_order_over(function, all_operands);
    std::unordered_map<const ExprNode*, size_t> place;
    for (size_t i = 0; i < order.size(); ++i) place[order[i].get()] = i;
    // Users have higher indices. The immediate post-dominator is the lowest common ancestor of the users.
    std::vector<size_t> through(order.size(), order.size());
    through.back() = order.size() - 1;
    for (size_t user = order.size(); user-- > 0;)
      for (const Expr& operand : all_operands(order[user])) {
        const size_t at = place.at(operand.get());
        size_t a = through[at], b = user;
        if (at >= user) continue;  // a variable in its own binding
        while (a != b && a != order.size()) (a < b ? a : b) = through[a < b ? a : b];
        through[at] = b;
      }
    std::unordered_map<const ExprNode*, Span> spans;
    for (size_t i = 0; i < order.size(); ++i)
      spans[order[i].get()] =
          make_span(format("index:{}:{}", i, i + 1 == order.size() ? -1 : static_cast<int64_t>(through[i])));
    function = rewrite_graph(
        function, [&](const Expr& e, const Expr& rebuilt) { return with_span(rebuilt, spans.at(e.get())); }, true);
  }
  return out;
}

}  // namespace tilewright::relay
