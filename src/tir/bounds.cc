// SPDX-License-Identifier: Apache-2.0
#include "tir/bounds.h"

#include <algorithm>

namespace tilewright::tir {
namespace {

arith::Interval values_of(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (!t.is_integral() || t.bits >= 64) return arith::Interval::everything();
  if (t.is_uint()) return {0, (int64_t{1} << t.bits) - 1};
  return {-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
}

arith::Interval bounds(const PrimExpr& e, std::span<const VariableRange> ranges) {
  auto of = [&](const PrimExpr& part) { return bounds(part, ranges); };
  const arith::Interval all = values_of(e->dtype);
  if (auto c = as_const_int(e)) return arith::Interval::point(*c);
  for (const auto& [var, range] : ranges)
    if (var == e) return range;
  auto within = [&](arith::Interval i) { return i.inside(all) ? i : all; };
  if (is_binary(e->kind)) {
    const auto& n = static_cast<const BinaryNode&>(*e);
    switch (e->kind) {
      case ExprKind::kAdd:
        return within(arith::add(of(n.a), of(n.b)));
      case ExprKind::kSub:
        return within(arith::sub(of(n.a), of(n.b)));
      case ExprKind::kMul:
        return within(arith::mul(of(n.a), of(n.b)));
      case ExprKind::kFloorDiv:
        return within(arith::floor_div(of(n.a), of(n.b)));
      case ExprKind::kFloorMod:
        return within(arith::floor_mod(of(n.a), of(n.b)));
      case ExprKind::kMin:
        return arith::min(of(n.a), of(n.b));
      case ExprKind::kMax:
        return arith::max(of(n.a), of(n.b));
      default:
        return all;
    }
  }
  if (const auto* n = as<CastNode>(e); n && n->value->dtype.is_integral()) return within(of(n->value));
  if (const auto* n = as<SelectNode>(e)) return arith::join(of(n->on_true), of(n->on_false));
  if (const auto* n = as<CallNode>(e); n && n->op == Intrinsic::k_if_then_else)
    return arith::join(of(n->args[1]), of(n->args[2]));
  return all;
}

}  // namespace

arith::Interval bounds_of(const PrimExpr& e, std::span<const VariableRange> ranges) {
  const arith::Interval plain = bounds(e, ranges), simple = bounds(simplify_expr(e, ranges), ranges);
  return {std::max(plain.lo, simple.lo), std::min(plain.hi, simple.hi)};
}

}  // namespace tilewright::tir
