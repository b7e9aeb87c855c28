// SPDX-License-Identifier: Apache-2.0
// Layouts changed by rules about single operators: the operators around follow as far as they can, and layout_transform
// stands only where layouts meet.
#pragma once
#include <functional>

#include "relay/expr.h"

namespace tilewright::relay {

// The call that takes `call`'s place, over `args`, which may lie in other layouts already, with `attrs`, which follow
// them; null to leave it. Only its operator, attributes and operands are looked at.
using LayoutRule = std::function<Result<Expr>(const Expr& call, const AttrsRef& attrs, const std::vector<Expr>& args)>;
Result<Module> rewrite_layouts(const Module& module, const LayoutRule& rule);

}  // namespace tilewright::relay
