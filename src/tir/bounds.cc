// SPDX-License-Identifier: Apache-2.0
#include "tir/bounds.h"

#include <algorithm>
#include <cstdlib>

namespace tilewright::tir {
namespace {

arith::Interval values_of(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (!t.is_integral() || t.bits >= 64) return arith::Interval::everything();
  if (t.is_uint()) return {0, (int64_t{1} << t.bits) - 1};
  return {-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
}

// Divides by the parts of the divisor below and above 0: division by 0 has no value.
arith::Interval divided(arith::Interval a, arith::Interval b,
                        arith::Interval (*divide)(arith::Interval, arith::Interval)) {
  if (!b.contains(0)) return divide(a, b);
  const arith::Interval below{b.lo, -1}, above{1, b.hi};
  if (below.empty() && above.empty()) return arith::Interval::everything();
  if (below.empty()) return divide(a, above);
  if (above.empty()) return divide(a, below);
  return arith::join(divide(a, below), divide(a, above));
}

// Truncating division, separately for the dividend's negative and positive parts.
arith::Interval truncated(arith::Interval a, arith::Interval b) {
  const arith::Interval low{a.lo, std::min<int64_t>(a.hi, 0)}, high{std::max<int64_t>(a.lo, 0), a.hi};
  auto negated = [](arith::Interval i) { return arith::sub(arith::Interval::point(0), i); };
  auto positive = [&](arith::Interval x) {
    return b.lo > 0 ? arith::floor_div(x, b) : negated(arith::floor_div(x, negated(b)));
  };
  arith::Interval out{1, 0};
  if (!high.empty()) out = arith::join(out, positive(high));
  if (!low.empty()) out = arith::join(out, negated(positive(negated(low))));
  return out;
}

// The remainder of truncating division has the dividend's sign and is less than the divisor in magnitude.
arith::Interval remainder(arith::Interval a, arith::Interval b) {
  if (!b.bounded()) return a;
  const int64_t most = std::max(std::abs(b.lo), std::abs(b.hi)) - 1;
  return {a.lo >= 0 ? 0 : std::max(a.lo, -most), a.hi <= 0 ? 0 : std::min(a.hi, most)};
}

class Bounds {
 public:
  explicit Bounds(std::span<const VariableRange> ranges) : ranges_(ranges) {}

  arith::Interval of(const PrimExpr& e) const {
    if (auto c = as_const_int(e)) return arith::Interval::point(*c);
    for (const auto& [var, range] : ranges_)
      if (var == e) return range;
    if (const auto* n = as<VarNode>(e); n && n->is_size) return {0, values_of(e->dtype).hi};
    if (is_binary(e->kind)) return operation(static_cast<const BinaryNode&>(*e));
    if (const auto* n = as<CastNode>(e); n && (n->value->dtype.is_integral() || n->value->dtype.is_bool())) {
      const arith::Interval inner = of(n->value), all = values_of(e->dtype);
      return inner.inside(all) || n->value->dtype.bits <= e->dtype.bits ? inner : all;
    }
    if (const auto* n = as<SelectNode>(e)) return arith::join(of(n->on_true), of(n->on_false));
    if (const auto* n = as<CallNode>(e); n && n->op == Intrinsic::k_if_then_else)
      return arith::join(of(n->args[1]), of(n->args[2]));
    return values_of(e->dtype);
  }

 private:
  arith::Interval operation(const BinaryNode& n) const {
    if (!n.a->dtype.is_integral()) return values_of(n.dtype);
    switch (n.kind) {
      case ExprKind::kAdd:
        return arith::add(of(n.a), of(n.b));
      case ExprKind::kSub:
        return arith::sub(of(n.a), of(n.b));
      case ExprKind::kMul:
        return arith::mul(of(n.a), of(n.b));
      case ExprKind::kDiv:
        return divided(of(n.a), of(n.b), truncated);
      case ExprKind::kMod:
        return remainder(of(n.a), of(n.b));
      case ExprKind::kFloorDiv:
        return divided(of(n.a), of(n.b), arith::floor_div);
      case ExprKind::kFloorMod:
        return divided(of(n.a), of(n.b), arith::floor_mod);
      case ExprKind::kMin:
        return arith::min(of(n.a), of(n.b));
      case ExprKind::kMax:
        return arith::max(of(n.a), of(n.b));
      default:
        return bits(n);
    }
  }
  arith::Interval bits(const BinaryNode& n) const {
    const arith::Interval a = of(n.a), b = of(n.b);
    if (n.kind == ExprKind::kBitAnd) {
      if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
      if (a.lo >= 0 || b.lo >= 0) return {0, a.lo >= 0 ? a.hi : b.hi};
    }
    if (n.kind == ExprKind::kShiftRight && b.lo >= 0 && b.hi < 62)
      return arith::floor_div(a, {int64_t{1} << b.lo, int64_t{1} << b.hi});
    if (n.kind == ExprKind::kShiftLeft && b.lo >= 0 && b.hi < 62)
      return arith::mul(a, {int64_t{1} << b.lo, int64_t{1} << b.hi});
    return values_of(n.dtype);
  }
  std::span<const VariableRange> ranges_;
};

}  // namespace

arith::Interval bounds_of(const PrimExpr& e, std::span<const VariableRange> ranges) {
  const arith::Interval plain = Bounds(ranges).of(e), simple = Bounds(ranges).of(simplify_index(e, ranges));
  return {std::max(plain.lo, simple.lo), std::min(plain.hi, simple.hi)};
}

}  // namespace tilewright::tir
