// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/canonicalize_cast.h"

#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool widens(const Expr& e) {
  return is_call_to(e, "cast") && attrs_of<CastAttrs>(e).dtype.bits > tensor_of(arg(e, 0)).dtype.bits;
}

Expr separate_casts(const Expr& function) {
  UseCounts uses = count_uses(function);
  return rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
    const OpDef* op = called_op(e);
    if (!op || op->pattern > OpPattern::kBroadcast || std::string_view(op->name) == "cast") return e;
    const auto& call = *as<CallNode>(e);
    std::vector<Expr> args = call.args;
    bool changed = false;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!widens(args[i]) || uses[arg(original, i).get()] < 2) continue;
      const auto& cast = *as<CallNode>(args[i]);
      args[i] = make_node<CallNode>(cast.callee, cast.args, cast.attrs, cast.type, cast.span);
      changed = true;
    }
    return changed ? Expr(make_node<CallNode>(call.callee, std::move(args), call.attrs, call.type, call.span)) : e;
  });
}

}  // namespace

Result<Module> canonicalize_cast(const Module& module, PassContext&) {
  return rewrite_functions(module, separate_casts);
}

}  // namespace tilewright::relay
