// SPDX-License-Identifier: Apache-2.0
// Evaluates main with the operators' reference evaluations, for the frontend's own tests.
#pragma once
#include <unordered_map>

#include "base/format.h"
#include "relay/op.h"

namespace tilewright::onnx {

using Results = std::vector<relay::Value>;

inline Result<Results> interpret(const relay::FunctionNode& main, const std::vector<Tensor>& inputs) {
  std::unordered_map<const relay::ExprNode*, Results> values;
  for (size_t i = 0; i < main.params.size(); ++i) values[main.params[i].get()] = {relay::value_from(inputs.at(i))};
  for (const relay::Expr& e : relay::post_order(main.body)) {
    if (values.count(e.get())) continue;
    if (const auto* c = relay::as<relay::ConstantNode>(e)) values[e.get()] = {relay::value_from(c->data)};
    if (const auto* t = relay::as<relay::TupleNode>(e))
      for (const auto& f : t->fields) values[e.get()].push_back(values[f.get()].at(0));
    if (const auto* g = relay::as<relay::TupleGetItemNode>(e)) values[e.get()] = {values[g->tuple.get()].at(static_cast<size_t>(g->index))};
    const relay::OpDef* op = relay::called_op(e);
    if (!op) continue;
    const auto* call = relay::as<relay::CallNode>(e);
    Results args;
    for (const auto& a : call->args)
      for (const auto& v : values[a.get()]) args.push_back(v);
    if (!op->evaluate) return Diagnostic(ErrorCode::kUnsupportedOp, format("'{}' cannot be evaluated", op->name));
    values[e.get()] = TW_TRY(op->evaluate(relay::EvalArgs{args, call->attrs, e->type}));
  }
  return values[main.body.get()];
}

}  // namespace tilewright::onnx
