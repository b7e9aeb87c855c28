// SPDX-License-Identifier: Apache-2.0
// Changes layouts by rules about single operators: surrounding operators adapt as far as they can, and layout_transform
// is inserted only between different layouts.
#pragma once
#include <functional>

#include "relay/expr.h"

namespace tilewright::relay {

// The replacement of `call` over `args`, which may already have other layouts and to which `attrs` are adapted; null to
// keep the call. Only operator, attributes and operands of the result are used.
using LayoutRule = std::function<Result<Expr>(const Expr& call, const AttrsRef& attrs, const std::vector<Expr>& args)>;
Result<Module> rewrite_layouts(const Module& module, const LayoutRule& rule);

}  // namespace tilewright::relay
