// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fast_math.h"

#include "relay/rewrite.h"

namespace tilewright::relay {

Result<Module> fast_math(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"exp", "fast_exp"}, {"tanh", "fast_tanh"}, {"erf", "fast_erf"}, {"nn.softmax", "nn.fast_softmax"}};
    for (auto [plain, fast] : kNames)
      if (const CallNode* c = as_call(e, plain)) return call(fast, c->args, c->attrs, c->span);
    return e;
  });
}

}  // namespace tilewright::relay
