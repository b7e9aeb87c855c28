// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/loop_rewrites.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tir/passes/rewritable.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll.h"

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

}  // namespace

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
  };
  return kPasses;
}

}  // namespace tilewright::tir
