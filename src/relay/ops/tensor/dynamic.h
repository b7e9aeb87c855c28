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
  std::vector<Expr> operands;  // those that remain operands
  AttrsRef attrs;
};
// The static form of a dyn.* call whose deciding operands (shape, axis, count) are constants; nothing for other calls.
std::optional<StaticForm> static_form(const Expr& call);

}  // namespace tilewright::relay
