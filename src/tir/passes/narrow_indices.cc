// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "tir/bounds.h"
#include "tir/passes/loop_rewrites.h"
#include "tir/passes/simplify.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

bool is_index_operator(ExprKind kind) {
  static constexpr ExprKind kOf[] = {ExprKind::kAdd,      ExprKind::kSub, ExprKind::kMul,
                                     ExprKind::kDiv,      ExprKind::kMod, ExprKind::kFloorDiv,
                                     ExprKind::kFloorMod, ExprKind::kMin, ExprKind::kMax};
  return std::find(std::begin(kOf), std::end(kOf), kind) != std::end(kOf);
}

class Narrowing {
 public:
  explicit Narrowing(int bits) : type_{TypeCode::kInt, static_cast<uint8_t>(bits), 1} {}

  Stmt of(const Stmt& s) {
    collect(s);
    // An expression that stays wide keeps its variables wide, which may keep others.
    for (bool again = !narrow_.empty(); again;) {
      again = false;
      for (const auto& [e, owner] : places_)
        if (!narrowed(e)) {
          again |= narrow_.erase(owner) > 0;
          for_each_expr(e, [&](const PrimExpr& part) { again |= narrow_.erase(part.get()) > 0; });
        }
    }
    return narrow_.empty() ? s : stmt(s);
  }

 private:
  bool is_wide(const PrimExpr& e) const {
    return e->dtype.is_int() && e->dtype.lanes == 1 && e->dtype.bits > type_.bits;
  }
  bool holds(const PrimExpr& e) const {
    const arith::Interval all{-(int64_t{1} << (type_.bits - 1)), (int64_t{1} << (type_.bits - 1)) - 1};
    return bounds_of(e, ranges_).inside(all);
  }

  void add(const std::vector<PrimExpr>& list) {
    for (const PrimExpr& e : list) places_.push_back({e, nullptr});
  }

  // The loops whose variables may be narrow, and the indices and operands of comparisons.
  void collect(const Stmt& s) {
    if (const auto* n = as<ForNode>(s)) {
      const arith::Interval first = bounds_of(n->min, ranges_), count = bounds_of(n->extent, ranges_);
      const arith::Interval values = arith::add(first, {0, std::max<int64_t>(count.hi, 1) - 1});
      ranges_.emplace_back(n->var, values);
      if (is_wide(n->var) && holds(n->var) && holds(n->min) && holds(n->extent)) {
        narrow_.emplace(n->var.get(), make_var(static_cast<const VarNode&>(*n->var).name, type_));
        places_.push_back({n->min, n->var.get()}), places_.push_back({n->extent, n->var.get()});
      }
    }
    if (const auto* n = as<WriteNode>(s)) add(n->indices);
    if (const auto* n = as<StoreNode>(s)) add({n->index});
    for_each_own_expr(s, [&](const PrimExpr& own) {
      for_each_expr(own, [&](const PrimExpr& e) {
        if (const auto* n = as<ReadNode>(e)) add(n->indices);
        if (const auto* n = as<LoadNode>(e)) add({n->index});
        if (is_comparison(e->kind))
          for (const PrimExpr& side : {static_cast<const BinaryNode&>(*e).a, static_cast<const BinaryNode&>(*e).b})
            if (is_wide(side)) add({side});
      });
    });
    for_each_child(s, [&](const Stmt& child) { collect(child); });
  }

  // The expression in the narrow type; null if it needs more bits.
  PrimExpr narrowed(const PrimExpr& e) const {
    if (!e->dtype.is_int() || e->dtype.lanes > 1 || e->dtype.bits <= type_.bits)
      return e->dtype == type_ ? e : PrimExpr();
    if (const auto found = narrow_.find(e.get()); found != narrow_.end()) return found->second;
    if (!holds(e)) return {};
    if (const auto number = as_const_int(e)) return make_int(*number, type_);
    if (const auto* n = as<CastNode>(e)) return n->value->dtype == type_ ? n->value : PrimExpr();
    if (!is_index_operator(e->kind)) return {};
    const PrimExpr a = narrowed(static_cast<const BinaryNode&>(*e).a),
                   b = narrowed(static_cast<const BinaryNode&>(*e).b);
    return a && b ? binary(e->kind, a, b) : PrimExpr();
  }

  std::vector<PrimExpr> indices(const std::vector<PrimExpr>& list) {
    std::vector<PrimExpr> out;
    for (const PrimExpr& i : list) out.push_back(index(i));
    return out;
  }
  PrimExpr index(const PrimExpr& e) {
    const PrimExpr made = narrowed(e);
    return made ? made : expr(e);
  }
  PrimExpr expr(const PrimExpr& e) {
    if (const auto found = narrow_.find(e.get()); found != narrow_.end()) return cast(e->dtype, found->second);
    if (const auto* n = as<ReadNode>(e)) return read(n->dtype, n->source, n->name, indices(n->indices));
    if (is_comparison(e->kind)) {
      const auto& n = static_cast<const BinaryNode&>(*e);
      if (const PrimExpr a = narrowed(n.a), b = narrowed(n.b); a && b) return binary(e->kind, a, b);
    }
    return map_children(e, [this](const PrimExpr& child) { return expr(child); });
  }
  Stmt stmt(const Stmt& s) {
    if (const auto* n = as<ForNode>(s))
      if (const auto found = narrow_.find(n->var.get()); found != narrow_.end())
        return make_for(found->second, index(n->min), index(n->extent), stmt(n->body), n->for_kind, n->annotations);
    if (const auto* n = as<WriteNode>(s)) return write(n->target, n->name, indices(n->indices), expr(n->value));
    return map_children(
        s, [this](const PrimExpr& e) { return expr(e); }, [this](const Stmt& child) { return stmt(child); });
  }

  const DataType type_;
  std::vector<VariableRange> ranges_;
  struct Place {
    PrimExpr expr;
    const ExprNode* owner;  // of a bound, its loop's variable
  };
  std::vector<Place> places_;
  std::unordered_map<const ExprNode*, PrimExpr> narrow_;  // by the wide variable
};

}  // namespace

Stmt narrow_indices(const Stmt& s, int64_t bits) {
  return bits < 8 || bits >= 64 ? s : Narrowing(static_cast<int>(bits)).of(s);
}

}  // namespace tilewright::tir
