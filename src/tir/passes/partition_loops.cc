// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "tir/passes/loop_rewrites.h"
#include "tir/passes/rewritable.h"
#include "tir/passes/simplify.h"

namespace tilewright::tir {
namespace {

constexpr int kMaxCuts = 16;  // each copies a loop's body

// e as coefficient * var + rest, where the coefficient is a constant.
struct LinearIn {
  int64_t coefficient = 0;
  PrimExpr rest;
};
std::optional<LinearIn> linear_in(const PrimExpr& e, const ExprNode* var) {
  if (e.get() == var) return LinearIn{1, make_int(0, e->dtype)};
  if (!uses(e, var)) return LinearIn{0, e};
  auto* binary = as<BinaryNode>(e);
  if (!binary) return std::nullopt;
  auto a = linear_in(binary->a, var), b = linear_in(binary->b, var);
  if (!a || !b) return std::nullopt;
  if (e->kind == ExprKind::kAdd) return LinearIn{a->coefficient + b->coefficient, a->rest + b->rest};
  if (e->kind == ExprKind::kSub) return LinearIn{a->coefficient - b->coefficient, a->rest - b->rest};
  if (e->kind != ExprKind::kMul) return std::nullopt;
  if (auto factor = as_const_int(binary->b)) return LinearIn{a->coefficient * *factor, a->rest * *factor};
  if (auto factor = as_const_int(binary->a)) return LinearIn{b->coefficient * *factor, b->rest * *factor};
  return std::nullopt;
}

// What is negative exactly where the comparison holds.
std::optional<PrimExpr> negative_where(const PrimExpr& condition) {
  auto* c = as<BinaryNode>(condition);
  if (!c || !c->a->dtype.is_int() || c->a->dtype.lanes != 1 || c->a->dtype.bits < 32) return std::nullopt;
  switch (c->kind) {
    case ExprKind::kLT:
      return c->a - c->b;
    case ExprKind::kLE:
      return c->a - c->b - 1;
    case ExprKind::kGT:
      return c->b - c->a;
    case ExprKind::kGE:
      return c->b - c->a - 1;
    default:
      return std::nullopt;
  }
}

// Where a condition inside a loop becomes, or stops being, always true.
struct Cut {
  size_t which;  // among the terms of all conditions in the loop, in the order of a walk
  PrimExpr at;
  bool holds_before;
  bool exact;  // on the other side it never holds
};

// Walks the terms of conditions inside a loop. (A term is known by its number: parts of loops may be shared.)
class Conditions {
 public:
  explicit Conditions(const ForNode& loop) : loop_(loop) {}

  std::optional<Cut> first_cut() {
    walk(loop_.body);
    return cut_;
  }
  // The loop's body in which the term has a known value.
  static Stmt with(const ForNode& loop, size_t which, bool value) {
    Conditions walk(loop);
    walk.dropped_ = which, walk.value_ = value;
    return walk.walk(loop.body);
  }

 private:
  Stmt walk(const Stmt& s) {
    auto* inner = as<ForNode>(s);
    const size_t known = unknown_.size();
    if (auto* let = as<LetStmtNode>(s)) unknown_.push_back(let->var.get());
    if (auto* block = as<BlockNode>(s))
      for (const BlockAxis& axis : block->axes) unknown_.push_back(axis.var.get());
    Stmt made = s;
    if (auto* branch = as<IfNode>(s)) {
      PrimExpr condition = terms(branch->condition);
      Stmt yes = walk(branch->then_case), no = branch->else_case ? walk(branch->else_case) : Stmt{};
      if (dropped_) made = make_if(std::move(condition), std::move(yes), std::move(no));
    } else {
      if (inner) inner_.push_back(inner);
      made = map_children(
          s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return walk(child); });
      if (inner) inner_.pop_back();
    }
    unknown_.resize(known);
    return made;
  }

  PrimExpr terms(const PrimExpr& condition) {
    if (condition->kind == ExprKind::kAnd) {
      auto* both = as<BinaryNode>(condition);
      PrimExpr a = terms(both->a), b = terms(both->b);
      return dropped_ ? logical_and(std::move(a), std::move(b)) : condition;
    }
    const size_t which = count_++;
    if (dropped_) return which == *dropped_ ? make_int(value_ ? 1 : 0, kBool) : condition;
    if (!cut_)
      if (auto change = change_of(condition)) {
        change->which = which;
        cut_ = std::move(change);
      }
    return condition;
  }

  std::optional<Cut> change_of(const PrimExpr& condition) const {
    auto negative = negative_where(condition);
    if (!negative || !uses(*negative, loop_.var.get()) || !is_arithmetic(*negative)) return std::nullopt;
    PrimExpr largest = *negative;
    bool exact = true;
    for (size_t i = inner_.size(); i-- > 0;) {
      const ForNode& inner = *inner_[i];
      auto form = linear_in(largest, inner.var.get());
      if (!form || !is_arithmetic(inner.min) || !is_arithmetic(inner.extent)) return std::nullopt;
      if (form->coefficient == 0) continue;
      const PrimExpr end = form->coefficient > 0 ? inner.min + inner.extent - 1 : inner.min;
      if (end->dtype != largest->dtype) return std::nullopt;
      largest = form->rest + end * form->coefficient;
      exact = false;
    }
    for (const ExprNode* var : unknown_)
      if (uses(largest, var)) return std::nullopt;
    auto form = linear_in(largest, loop_.var.get());
    if (!form || form->coefficient == 0 || form->rest->dtype != loop_.var->dtype) return std::nullopt;
    const bool before = form->coefficient > 0;
    const PrimExpr bound = before ? make_int(-1, form->rest->dtype) - form->rest : form->rest;
    return Cut{0, simplify_index(floordiv(bound, std::abs(form->coefficient)) + 1, {}), before, exact};
  }

  const ForNode& loop_;
  std::vector<const ForNode*> inner_;
  std::vector<const ExprNode*> unknown_;  // variables of which no range is known
  std::optional<size_t> dropped_;
  bool value_ = true;
  size_t count_ = 0;
  std::optional<Cut> cut_;
};

class Partition {
 public:
  explicit Partition(bool constant_bounds) : constant_bounds_(constant_bounds) {}

  Stmt of(const Stmt& s) {
    auto* loop = as<ForNode>(s);
    if (loop && loop->for_kind == ForKind::kSerial && (constant_bounds_ || !as_const_int(loop->extent)) &&
        cuts_ < kMaxCuts)
      if (auto cut = Conditions(*loop).first_cut()) return divided(*loop, *cut);
    return map_children(
        s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return of(child); });
  }

 private:
  Stmt divided(const ForNode& loop, const Cut& cut) {
    ++cuts_;
    const PrimExpr end = loop.min + loop.extent;
    const PrimExpr at = simplify_index(max(loop.min, min(end, cut.at)), {});
    const Stmt holds = Conditions::with(loop, cut.which, true);
    const Stmt other = cut.exact ? Conditions::with(loop, cut.which, false) : loop.body;
    // A part in which the condition is left, since other variables decide it too, is not divided by it again.
    auto part = [&](const PrimExpr& from, const PrimExpr& to, bool first) {
      const Stmt body = first == cut.holds_before ? holds : other;
      const PrimExpr extent = simplify_index(to - from, {});
      if (as_const_int(extent) == 0) return seq({});
      if (as_const_int(extent) == 1) return of(substitute(body, {{loop.var.get(), from}}));
      auto around = [&](const Stmt& inside) {
        return is_empty(inside) ? inside : make_for(loop.var, from, extent, inside, loop.for_kind, loop.annotations);
      };
      return body == loop.body ? around(of(body)) : of(around(body));
    };
    return seq({part(loop.min, at, true), part(at, end, false)});
  }

  const bool constant_bounds_;
  int cuts_ = 0;
};

}  // namespace

Stmt partition_loops(const Stmt& s, bool constant_bounds) { return Partition(constant_bounds).of(s); }

}  // namespace tilewright::tir
