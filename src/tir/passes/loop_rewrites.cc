// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/loop_rewrites.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tir/block.h"
#include "tir/passes/rewritable.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"

namespace tilewright::tir {
namespace {

Stmt hoisted(const Stmt& s) {
  auto* loop = as<ForNode>(s);
  auto* branch = loop ? as<IfNode>(loop->body) : nullptr;
  if (!branch || uses(branch->condition, loop->var.get()) || !is_arithmetic(branch->condition)) return s;
  auto around = [&](const Stmt& body) {
    return body ? hoisted(make_for(loop->var, loop->min, loop->extent, body, loop->for_kind, loop->annotations))
                : Stmt{};
  };
  return make_if(branch->condition, around(branch->then_case), around(branch->else_case));
}

class Unrolling {
 public:
  explicit Unrolling(int64_t most) : most_(most) {}

  // The statement, and how many iterations its innermost loops have together; more than any limit if unknown.
  std::pair<Stmt, int64_t> of(const Stmt& s) const {
    int64_t steps = 1;
    const Stmt inner = map_children(
        s, [](const PrimExpr& e) { return e; },
        [&](const Stmt& child) {
          auto [made, count] = of(child);
          steps = std::max(steps, count);
          return made;
        });
    auto* loop = as<ForNode>(inner);
    if (loop == nullptr) return {inner, steps};
    auto extent = as_const_int(simplify_index(loop->extent, {}));
    if (!extent || *extent < 0 || *extent > kMaxUnroll) return {inner, kMaxUnroll + 1};
    steps = std::min(kMaxUnroll + 1, steps * *extent);
    const bool asked = loop->for_kind == ForKind::kUnrolled;
    if (!asked && (loop->for_kind != ForKind::kSerial || steps > most_)) return {inner, steps};
    std::vector<Stmt> iterations;
    for (int64_t i = 0; i < *extent; ++i)
      iterations.push_back(substitute(loop->body, {{loop->var.get(), loop->min + i}}));
    return {seq(std::move(iterations)), steps};
  }

 private:
  const int64_t most_;
};

// Calls of C functions may do anything; every other expression only has a value.
bool calls_out(const PrimExpr& e) {
  bool found = false;
  for_each_expr(e, [&](const PrimExpr& part) { found |= part->kind == ExprKind::kExtern; });
  return found;
}

Stmt without_no_op(const Stmt& s) {
  if (const auto* n = as<CallExternNode>(s)) return n->name == kEvaluate && !calls_out(n->args[0].value) ? seq({}) : s;
  if (const auto* n = as<ForNode>(s)) {
    const auto extent = as_const_int(simplify_index(n->extent, {}));
    return is_empty(n->body) || (extent && *extent <= 0) ? seq({}) : s;
  }
  if (const auto* n = as<LetStmtNode>(s)) return is_empty(n->body) && !calls_out(n->value) ? seq({}) : s;
  if (const auto* n = as<IfNode>(s)) {
    const bool nothing = is_empty(n->then_case) && (!n->else_case || is_empty(n->else_case));
    return nothing && !calls_out(n->condition) ? seq({}) : s;
  }
  return s;
}

// Whether a value may only be computed where it is chosen. A choice protects its own values.
bool is_unsafe(const PrimExpr& e) {
  if (e->kind == ExprKind::kLoad || e->kind == ExprKind::kRead || e->kind == ExprKind::kExtern) return true;
  if (const auto* n = as<CallNode>(e); n && n->op == Intrinsic::k_if_then_else) return is_unsafe(n->args[0]);
  bool found = false;
  for_each_child(e, [&](const PrimExpr& child) { found = found || is_unsafe(child); });
  return found;
}

}  // namespace

Stmt remove_no_ops(const Stmt& s) {
  return mutate(
      s, [](PrimExpr e) { return e; }, without_no_op);
}

Stmt rewrite_unsafe_selects(const Stmt& s) {
  return mutate(s, [](PrimExpr e) {
    const auto* n = as<SelectNode>(e);
    if (!n || n->condition->dtype.lanes > 1 || !(is_unsafe(n->on_true) || is_unsafe(n->on_false))) return e;
    return intrinsic(Intrinsic::k_if_then_else, {n->condition, n->on_true, n->on_false});
  });
}

Stmt hoist_conditions(const Stmt& s) {
  return mutate(
      s, [](PrimExpr e) { return e; }, hoisted);
}

Stmt unroll_loops(const Stmt& s, int64_t most) { return Unrolling(most).of(s).first; }

std::span<const StmtPass> loop_rewrites() {
  static constexpr StmtPass kPasses[] = {
      {"hoist_conditions", [](const Stmt& s, int64_t) { return hoist_conditions(s); }},
      {"partition_loops",
       [](const Stmt& s, int64_t constant_bounds) { return partition_loops(s, constant_bounds != 0); }},
      {"eliminate_common_subexpressions", [](const Stmt& s, int64_t) { return eliminate_common_subexpressions(s); }},
      {"simplify", [](const Stmt& s, int64_t) { return simplify_statement(s); }},
      {"unroll_loops", unroll_loops},
      {"vectorize_loops", [](const Stmt& s, int64_t) { return vectorize_loops(s); }},
      {"remove_no_ops", [](const Stmt& s, int64_t) { return remove_no_ops(s); }},
      {"rewrite_unsafe_selects", [](const Stmt& s, int64_t) { return rewrite_unsafe_selects(s); }},
      {"narrow_indices", narrow_indices},
  };
  return kPasses;
}

}  // namespace tilewright::tir
