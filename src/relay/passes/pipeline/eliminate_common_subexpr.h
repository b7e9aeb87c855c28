// SPDX-License-Identifier: Apache-2.0
// EliminateCommonSubexpr: equal expressions become one.
// What: hashes every expression over its operands' representatives; equal constants merge too (by content).
// Requires: typed module.
// Ensures: within one function no two pure calls with the same operator, attributes and operands. Stateful calls stay
// apart; nested functions are looked at on their own, so nothing moves out of them.
// Why here: after passes that write the same helper expressions many times.
// Test: tests/relay/passes/eliminate_common_subexpr*.txt
#pragma once
#include <functional>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> eliminate_common_subexpr(const Module& module, PassContext& context);
// Calls for which `skip` holds are not merged.
Result<Module> eliminate_common_subexpr_except(const Module& module, const std::function<bool(const Expr&)>& skip);
}  // namespace tilewright::relay
