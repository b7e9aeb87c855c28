// SPDX-License-Identifier: Apache-2.0
// SimplifyExpr: local rewrites to fewer or cheaper operators.
// What: the rules of simplify_shape_rules.cc (chains of reshape, transpose, cast, slices; data movement that moves
// nothing) and simplify_arithmetic_rules.cc (neutral elements, chains of constants, powers, clips).
// Requires: typed module.
// Ensures: types are unchanged; integer results are identical, float results up to reassociation of constants. No rule
// applies any more (up to a bound on the rounds).
// Why here: after FoldConstant, which makes the constants the rules look at; before fusion.
// Test: tests/relay/passes/simplify_expr*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

Result<Module> simplify_expr(const Module& module, PassContext& context);

// Results of constant folding are limited to this size.
inline constexpr int64_t kFoldBytes = int64_t{256} << 20;

// A rule gives a replacement for a call of its operator, or null when it does not apply.
struct SimplifyRule {
  const char* op;
  Expr (*apply)(const Expr& call);
};
std::span<const SimplifyRule> shape_rules();
std::span<const SimplifyRule> arithmetic_rules();

}  // namespace tilewright::relay
