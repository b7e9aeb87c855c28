// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/simplify_expr.h"

#include <map>
#include <string_view>

#include "relay/passes/pipeline/fold_constant.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr int kMaxSteps = 64;   // rules applied in sequence to one expression
constexpr int kMostRounds = 4;  // passes over the graph; chains settle in one, since operands are simplified first

using RulesByOp = std::map<std::string_view, std::vector<Expr (*)(const Expr&)>>;

const RulesByOp& simplify_rules() {
  static const RulesByOp kRules = [] {
    RulesByOp out;
    for (auto table : {shape_rules(), arithmetic_rules()})
      for (const SimplifyRule& rule : table) out[rule.op].push_back(rule.apply);
    return out;
  }();
  return kRules;
}

Expr simplify_once(const Expr& e) {
  if (const auto* item = as<TupleGetItemNode>(e)) {
    const auto* tuple = as<TupleNode>(item->tuple);
    return tuple ? tuple->fields[static_cast<size_t>(item->index)] : Expr();
  }
  const OpDef* op = called_op(e);
  auto it = op ? simplify_rules().find(op->name) : simplify_rules().end();
  if (it == simplify_rules().end()) return {};
  for (auto apply : it->second)
    if (Expr out = apply(e); out && !(out == e)) return out;
  return {};
}

Expr simplify(const Expr& original, Expr e) {
  for (int step = 0; step < kMaxSteps; ++step) {
    Expr next = simplify_once(e);
    if (!next) return e;
    // Unknown dimensions are equal by identity only; a rewrite with new ones would not match its users' types.
    if (!type_equal(next->type, e->type)) return e;
    // A fill is kept as an operator; FoldConstant decides whether to store it.
    const bool fills = is_call_to(next, "full") || is_call_to(next, "zeros") || is_call_to(next, "ones");
    e = fills ? next : fold_expr(next, kFoldBytes);
  }
  return e;
}

}  // namespace

Result<Module> simplify_expr(const Module& module, PassContext&) {
  Module current = module;
  for (int round = 0; round < kMostRounds; ++round) {
    Module next = rewrite_module(current, simplify);
    if (next.functions == current.functions) break;
    current = std::move(next);
  }
  return current;
}

}  // namespace tilewright::relay
