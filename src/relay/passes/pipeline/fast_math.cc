// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fast_math.h"

#include "relay/rewrite.h"

namespace tilewright::relay {

Result<Module> fast_math(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    const OpDef* op = called_op(e);
    if (!op || !op->facts.fast_form) return e;
    const auto& c = *as<CallNode>(e);
    return call(op->facts.fast_form, c.args, c.attrs, c.span);
  });
}

}  // namespace tilewright::relay
