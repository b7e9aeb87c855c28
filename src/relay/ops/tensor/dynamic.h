// SPDX-License-Identifier: Apache-2.0
// The dyn.* operators: a static operator whose attributes (a shape, an axis, a count) are operands. Each is one row of
// a table that says how values of those operands become the static operator's attributes; typing, evaluation and the
// DynamicToStatic pass all read it.
#pragma once
#include <optional>
#include <span>

#include "relay/op.h"

namespace tilewright::relay {

struct StaticForm {
  const OpDef* op = nullptr;
  std::vector<Expr> operands;  // those that stay
  AttrsRef attrs;
};
// The static operator of a call of a dyn.* one whose deciding operands are constants; nothing for anything else.
std::optional<StaticForm> static_form(const Expr& call);

}  // namespace tilewright::relay
