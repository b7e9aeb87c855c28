// SPDX-License-Identifier: Apache-2.0
#include "tir/modular.h"

#include <numeric>

#include "arith/interval.h"

namespace tilewright::tir {
namespace {

constexpr int64_t kMost = int64_t{1} << 62;

ModularSet anything() { return {1, 0}; }

ModularSet normal(int64_t coefficient, int64_t base) {
  if (coefficient == INT64_MIN || base == INT64_MIN) return anything();
  coefficient = coefficient < 0 ? -coefficient : coefficient;
  if (coefficient != 0) base = arith::floor_mod(base, coefficient);
  return {coefficient, base};
}

// The union of both, for selects.
ModularSet join(ModularSet a, ModularSet b) {
  int64_t apart;
  if (__builtin_sub_overflow(a.base, b.base, &apart) || apart == INT64_MIN) return anything();
  const int64_t all = std::gcd(std::gcd(a.coefficient, b.coefficient), apart);
  return all == 0 ? a : normal(all, a.base);
}

ModularSet sum(ModularSet a, ModularSet b) {
  int64_t base;
  if (__builtin_add_overflow(a.base, b.base, &base)) return anything();
  return normal(std::gcd(a.coefficient, b.coefficient), base);
}

ModularSet product(ModularSet a, ModularSet b) {
  int64_t pq, pn, mq, base;
  if (__builtin_mul_overflow(a.coefficient, b.coefficient, &pq) || __builtin_mul_overflow(a.coefficient, b.base, &pn) ||
      __builtin_mul_overflow(a.base, b.coefficient, &mq) || __builtin_mul_overflow(a.base, b.base, &base))
    return anything();
  if (pq == INT64_MIN || pn == INT64_MIN || mq == INT64_MIN) return anything();
  return normal(std::gcd(std::gcd(pq, pn), mq), base);
}

ModularSet negated(ModularSet a) { return a.base == INT64_MIN ? anything() : normal(a.coefficient, -a.base); }

class Multiples {
 public:
  explicit Multiples(std::span<const VariableMultiples> known) : known_(known) {}

  ModularSet of(const PrimExpr& e) {
    if (auto constant = as_const_int(e); constant && e->dtype.lanes == 1) return {0, *constant};
    if (e->kind == ExprKind::kVar) {
      for (const auto& [var, set] : known_)
        if (var == e) return set;
      return anything();
    }
    if (const auto* n = as<CastNode>(e)) return n->value->dtype.is_integral() ? of(n->value) : anything();
    if (const auto* n = as<SelectNode>(e)) return join(of(n->on_true), of(n->on_false));
    if (const auto* n = as<CallNode>(e); n && n->op == Intrinsic::k_if_then_else)
      return join(of(n->args[1]), of(n->args[2]));
    return is_binary(e->kind) ? operation(static_cast<const BinaryNode&>(*e)) : anything();
  }

 private:
  ModularSet operation(const BinaryNode& n) {
    if (!n.dtype.is_integral()) return anything();
    const ModularSet a = of(n.a), b = of(n.b);
    switch (n.kind) {
      case ExprKind::kAdd:
        return sum(a, b);
      case ExprKind::kSub:
        return sum(a, negated(b));
      case ExprKind::kMul:
        return product(a, b);
      case ExprKind::kMin:
      case ExprKind::kMax:
        return join(a, b);
      case ExprKind::kShiftLeft:
        if (b.coefficient == 0 && b.base >= 0 && b.base < 62) return product(a, {0, int64_t{1} << b.base});
        return anything();
      case ExprKind::kDiv:
        return quotient(a, b, false);
      case ExprKind::kFloorDiv:
        return quotient(a, b, true);
      case ExprKind::kMod:
      case ExprKind::kFloorMod:
        return remainder(a, b, n.kind == ExprKind::kFloorMod);
      default:
        return anything();
    }
  }
  // Exact if the divisor divides the coefficient: (4x + 3) / 2 is 2x + 1. Truncation differs for negative values with a
  // remainder.
  static ModularSet quotient(ModularSet a, ModularSet b, bool down) {
    if (b.coefficient != 0 || b.base == 0 || a.coefficient % b.base != 0) return anything();
    if (a.base % b.base != 0 && (!down || b.base < 0)) return anything();
    return normal(a.coefficient / b.base, arith::floor_div(a.base, b.base));
  }
  // A truncated remainder differs from the other by 0 or the divisor, so that only what the divisor's multiples leave
  // is known of it; of a multiple both are 0.
  static ModularSet remainder(ModularSet a, ModularSet b, bool down) {
    if (b.coefficient != 0 || b.base <= 0 || b.base > kMost) return anything();
    const int64_t step = std::gcd(a.coefficient, b.base);
    if (step == 0) return anything();
    if (a.coefficient % b.base == 0 && (down || a.base % b.base == 0)) return {0, arith::floor_mod(a.base, b.base)};
    return normal(step, a.base);
  }
  std::span<const VariableMultiples> known_;
};

}  // namespace

ModularSet intersect(ModularSet a, ModularSet b) {
  if (a.coefficient == 0) return a;
  if (b.coefficient == 0) return b;
  if (a.coefficient > (int64_t{1} << 31) || b.coefficient > (int64_t{1} << 31)) return a;
  const int64_t step = std::gcd(a.coefficient, b.coefficient);
  if (arith::floor_mod(a.base - b.base, step) != 0) return a;
  // At most b.coefficient / step steps lead to a common number.
  const int64_t all = a.coefficient / step * b.coefficient;
  int64_t base = a.base;
  for (int64_t i = 0; i < b.coefficient / step && i < (1 << 20); ++i, base += a.coefficient)
    if (arith::floor_mod(base - b.base, b.coefficient) == 0) return normal(all, base);
  return a;
}

ModularSet modular_set(const PrimExpr& e, std::span<const VariableMultiples> known) { return Multiples(known).of(e); }

}  // namespace tilewright::tir
