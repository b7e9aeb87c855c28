// SPDX-License-Identifier: Apache-2.0
// The shortest pipeline that compiles, until relay/passes/pipeline.h replaces it.
#pragma once
#include "relay/op.h"
#include "relay/passes/alter_op_layout.h"
#include "relay/passes/fuse_ops.h"
namespace tilewright::relay {
inline Result<Module> tmp_fold(const Module& m) {
  const auto* main = m.main_function();
  Expr body = rewrite_graph(main->body, [&](const Expr&, const Expr& e) -> Expr {
    const auto* c = as<CallNode>(e);
    const OpDef* op = called_op(e);
    if (!c || !op || !op->evaluate || op->stateful) return e;
    std::vector<Value> in;
    for (const Expr& a : c->args) {
      const auto* k = as<ConstantNode>(a);
      if (!k) return e;
      in.push_back(value_from(k->data));
    }
    if (!as_tensor(e->type)) return e;
    auto r = op->evaluate(EvalArgs{in, c->attrs, e->type});
    if (!r.ok()) return e;
    return make_constant(to_tensor((*r)[0]), e->span);
  });
  return m.with_main(make_function(main->params, body, main->attrs, main->span));
}
inline Result<Module> optimize(const Module& m, PassContext& ctx) {
  Module a = TW_TRY(tmp_fold(m));
  const auto* main = a.main_function();
  Expr body = rewrite_graph(main->body, [&](const Expr&, const Expr& e) -> Expr {
    if (!is_call_to(e, "nn.bias_add")) return e;
    const auto* c = as<CallNode>(e);
    const auto* k = as<ConstantNode>(c->args[1]);
    auto rank = as_tensor(e->type)->shape.size();
    if (!k || rank != 4) return e;
    return call("add", {c->args[0], make_constant(k->data.reshaped({k->data.size(), 1, 1}), k->span)}, {}, e->span);
  });
  a = a.with_main(make_function(main->params, body, main->attrs, main->span));
  if (ctx.opt_level >= 3) a = TW_TRY(alter_op_layout(a, ctx));
  a = TW_TRY(tmp_fold(a));
  return fuse_ops(a, ctx);
}
}
