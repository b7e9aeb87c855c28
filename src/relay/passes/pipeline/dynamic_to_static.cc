// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/dynamic_to_static.h"

#include "relay/ops/tensor/dynamic.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

Result<Module> dynamic_to_static(const Module& module, PassContext& context) {
  Module current = module;
  for (;;) {
    Module folded = TW_TRY(fold_constant(current, context));
    std::optional<Diagnostic> failure;
    bool changed = false;
    Module next = rewrite_module(folded, [&](const Expr&, const Expr& e) -> Expr {
      auto form = static_form(e);
      if (!form || failure) return e;
      const auto& c = *as<CallNode>(e);
      auto made = try_call(form->op->name, form->operands, form->attrs, c.span);
      if (!made.ok()) {
        failure = made.error();
        return e;
      }
      changed = true;
      return *made;
    });
    if (failure) return *failure;
    if (!changed) return folded;
    current = std::move(next);
  }
}

}  // namespace tilewright::relay
