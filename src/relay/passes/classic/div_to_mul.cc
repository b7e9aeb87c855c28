// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/div_to_mul.h"

#include "relay/rewrite.h"

namespace tilewright::relay {

Result<Module> div_to_mul(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) {
    if (!is_call_to(e, "divide")) return e;
    const Tensor* divisor = constant_data(arg(e, 1));
    if (!divisor || !divisor->dtype().is_float()) return e;
    Tensor reciprocal = Tensor::zeros(divisor->dtype(), divisor->shape());
    for (int64_t i = 0; i < divisor->size(); ++i) {
      if (divisor->at_double(i) == 0) return e;
      reciprocal.set_double(i, 1 / divisor->at_double(i));
    }
    return call("multiply", {arg(e, 0), make_constant(std::move(reciprocal), arg(e, 1)->span)}, {}, e->span);
  });
}

}  // namespace tilewright::relay
