// SPDX-License-Identifier: Apache-2.0
#include "te/region.h"

#include "tir/walk.h"

namespace tilewright::te {

using tir::ExprKind;
using tir::PrimExpr;

namespace {

class RegionFinder {
 public:
  RegionFinder(const Running& running, const Scopes& scopes) : running_(running), scopes_(scopes) {}

  std::optional<Region> of(const PrimExpr& e) const {
    if (auto found = running_.find(e.get()); found != running_.end()) return found->second;
    if (!varies(e)) return Region{e, e};
    if (tir::is_binary(e->kind)) {
      const auto& n = static_cast<const tir::BinaryNode&>(*e);
      const auto a = of(n.a), b = of(n.b);
      return a && b ? combined(e->kind, *a, *b) : std::nullopt;
    }
    if (const auto* n = tir::as<tir::SelectNode>(e)) return either(n->on_true, n->on_false);
    if (const auto* n = tir::as<tir::CallNode>(e); n && n->op == tir::Intrinsic::k_if_then_else)
      return either(n->args[1], n->args[2]);
    return std::nullopt;
  }

 private:
  // A load counts as varying, since memory may be written in between.
  bool varies(const PrimExpr& e) const {
    bool found = false;
    tir::for_each_expr(e, [&](const PrimExpr& part) {
      found = found || part->kind == ExprKind::kLoad || part->kind == ExprKind::kRead || running_.count(part.get());
    });
    return found;
  }

  std::optional<Region> either(const PrimExpr& a, const PrimExpr& b) const {
    const auto x = of(a), y = of(b);
    return x && y ? std::optional(hull(*x, *y, scopes_)) : std::nullopt;
  }

  std::optional<Region> combined(ExprKind kind, const Region& a, const Region& b) const {
    const bool fixed = b.lo == b.hi;
    auto positive = [&] { return scopes_.proves(tir::gt(b.lo, tir::make_int(0))); };
    switch (kind) {
      case ExprKind::kAdd:
        return Region{a.lo + b.lo, a.hi + b.hi};
      case ExprKind::kSub:
        return Region{a.lo - b.hi, a.hi - b.lo};
      case ExprKind::kMul:
        if (!fixed) return a.lo == a.hi ? combined(kind, b, a) : std::nullopt;
        if (scopes_.proves(tir::ge(b.lo, tir::make_int(0)))) return Region{a.lo * b.lo, a.hi * b.lo};
        if (scopes_.proves(tir::le(b.lo, tir::make_int(0)))) return Region{a.hi * b.lo, a.lo * b.lo};
        return std::nullopt;
      case ExprKind::kFloorDiv:
        if (!fixed || !positive()) return std::nullopt;
        return Region{tir::floordiv(a.lo, b.lo), tir::floordiv(a.hi, b.lo)};
      case ExprKind::kFloorMod:
        if (!fixed || !positive()) return std::nullopt;
        if (scopes_.proves(tir::eq(tir::floordiv(a.lo, b.lo), tir::floordiv(a.hi, b.lo))))
          return Region{tir::floormod(a.lo, b.lo), tir::floormod(a.hi, b.lo)};
        return Region{tir::make_int(0), b.lo - 1};
      case ExprKind::kMin:
        return Region{tir::min(a.lo, b.lo), tir::min(a.hi, b.hi)};
      case ExprKind::kMax:
        return Region{tir::max(a.lo, b.lo), tir::max(a.hi, b.hi)};
      default:
        return std::nullopt;
    }
  }

  const Running& running_;
  const Scopes& scopes_;
};

}  // namespace

std::optional<Region> region_of(const PrimExpr& index, const Running& running, const Scopes& scopes) {
  // In linear form each variable occurs once, so that cancelling terms are not counted twice.
  auto found = RegionFinder(running, scopes).of(scopes.simplify(index));
  if (found) found->lo = scopes.simplify(found->lo), found->hi = scopes.simplify(found->hi);
  return found;
}

Region hull(const Region& a, const Region& b, const Scopes& scopes) {
  auto least = [&](const PrimExpr& x, const PrimExpr& y) {
    return scopes.proves(tir::le(x, y)) ? x : scopes.proves(tir::le(y, x)) ? y : tir::min(x, y);
  };
  auto greatest = [&](const PrimExpr& x, const PrimExpr& y) {
    return scopes.proves(tir::ge(x, y)) ? x : scopes.proves(tir::ge(y, x)) ? y : tir::max(x, y);
  };
  return {least(a.lo, b.lo), greatest(a.hi, b.hi)};
}

}  // namespace tilewright::te
