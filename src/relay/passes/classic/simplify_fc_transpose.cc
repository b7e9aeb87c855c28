// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/simplify_fc_transpose.h"

#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/passes/classic/weight_parameters.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::vector<std::string>> kWeights{"relay.SimplifyFCTranspose.target_weight_name", {}};

}  // namespace

Expr with_used_params(const Expr& function, const Expr& body) {
  const auto& node = *as<FunctionNode>(function);
  if (body == node.body) return function;
  std::vector<Expr> bound, old, added;
  for (const Expr& e : post_order(body, true)) {
    if (const auto* let = as<LetNode>(e)) bound.push_back(let->var);
    if (const auto* inner = as<FunctionNode>(e)) bound.insert(bound.end(), inner->params.begin(), inner->params.end());
    if (const auto* match = as<MatchNode>(e))
      for (const Clause& clause : match->clauses)
        for (const Expr& v : pattern_vars(clause.pattern)) bound.push_back(v);
  }
  auto among = [](const std::vector<Expr>& list, const Expr& e) {
    return std::find(list.begin(), list.end(), e) != list.end();
  };
  for (const Expr& e : post_order(body, true))
    if (as<VarNode>(e) && !among(bound, e)) (among(node.params, e) ? old : added).push_back(e);
  old.insert(old.end(), added.begin(), added.end());
  return with_body(node, std::move(old), body);
}

Result<Module> simplify_fc_transpose(const Module& module, PassContext& context) {
  const std::vector<std::string> names = context.get(kWeights);
  return rewrite_functions(module, [&](const Expr& function) {
    std::map<const ExprNode*, Expr> made;  // by weight
    Expr body = rewrite_expr(as<FunctionNode>(function)->body, [&](const Expr&, const Expr& e) {
      if (!is_call_to(e, "nn.dense") || !is_call_to(arg(e, 1), "transpose")) return e;
      const Expr& turned = arg(e, 1);
      const auto* weight = as<VarNode>(arg(turned, 0));
      if (!weight || std::find(names.begin(), names.end(), weight->name) == names.end()) return e;
      Expr& other = made[weight];
      if (!other) other = make_var(weight->name + ".T", turned->type, arg(turned, 0)->span);
      return call("nn.dense", {arg(e, 0), other}, as<CallNode>(e)->attrs, e->span);
    });
    return with_used_params(function, body);
  });
}

}  // namespace tilewright::relay
