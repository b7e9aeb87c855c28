// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/canonicalize_ops.h"

#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

Result<Module> canonicalize_ops(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    if (!is_call_to(e, "nn.bias_add")) return e;
    Expr bias = arg(e, 1);
    size_t rank = tensor_of(arg(e, 0)).shape.size();
    int64_t trailing = static_cast<int64_t>(rank) - 1 - positive_axis(attrs_of<BiasAddAttrs>(e).axis, rank);
    if (trailing > 0) {
      bias = call("expand_dims", {bias}, make_attrs<ExpandDimsAttrs>([&](auto& a) {
                    a.axis = 1;
                    a.num_newaxis = trailing;
                  }),
                  e->span);
    }
    return call("add", {arg(e, 0), bias}, {}, e->span);
  });
}

}  // namespace tilewright::relay
