// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/legalize_small_floats.h"

#include <numeric>

#include "tir/walk.h"

namespace tilewright::tir {
namespace {

bool is_narrow_float(DataType t) { return t.is_float() && t.bits <= 16; }

PrimExpr widened(const PrimExpr& e) { return is_narrow_float(e->dtype) ? cast(kFloat32, e) : e; }

PrimExpr combined(Intrinsic op, const PrimExpr& a, const PrimExpr& b) {
  return op == Intrinsic::k_reduce_add ? a + b : op == Intrinsic::k_reduce_max ? max(a, b) : min(a, b);
}

// In the order that tir/expr.h defines for reductions; each step rounds.
PrimExpr reduced(Intrinsic op, PrimExpr vector) {
  const DataType type = vector->dtype.element();
  auto step = [&](const PrimExpr& a, const PrimExpr& b) { return cast(type, combined(op, widened(a), widened(b))); };
  int n = vector->dtype.lanes;
  for (; n > 1 && n % 2 == 0; n /= 2) {
    std::vector<int> low(static_cast<size_t>(n / 2)), high(static_cast<size_t>(n / 2));
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), n / 2);
    vector = step(shuffle({vector}, low), shuffle({vector}, high));
  }
  PrimExpr out = n == 1 ? vector : shuffle({vector}, {0});
  for (int i = 1; i < n; ++i) out = step(out, shuffle({vector}, {i}));
  return out;
}

// Tests of a value's class are comparisons of its bits without the sign; null: another function.
PrimExpr tested(Intrinsic op, const PrimExpr& x) {
  if (x->dtype.element() != kFloat16 && x->dtype.element() != kBFloat16) return {};
  const DataType words = kInt16.with_lanes(x->dtype.lanes);
  const PrimExpr infinity = make_const(words, x->dtype.element() == kFloat16 ? 0x7c00 : 0x7f80);
  const PrimExpr bits = binary(ExprKind::kBitAnd, reinterpret(words, x), make_const(words, 0x7fff));
  switch (op) {
    case Intrinsic::k_isinf:
      return eq(bits, infinity);
    case Intrinsic::k_isnan:
      return lt(infinity, bits);
    case Intrinsic::k_isfinite:
      return lt(bits, infinity);
    default:
      return {};
  }
}

PrimExpr in_float32(PrimExpr e) {
  if (is_binary(e->kind)) {
    const auto& n = static_cast<const BinaryNode&>(*e);
    if (!is_narrow_float(n.a->dtype)) return e;
    PrimExpr wide = binary(n.kind, widened(n.a), widened(n.b));
    return is_comparison(n.kind) ? wide : cast(n.dtype.element(), wide);
  }
  if (e->kind != ExprKind::kCall) return e;
  const auto& n = static_cast<const CallNode&>(*e);
  if (n.op == Intrinsic::k_if_then_else || !is_narrow_float(n.args[0]->dtype)) return e;
  if (n.op == Intrinsic::k_reduce_add || n.op == Intrinsic::k_reduce_max || n.op == Intrinsic::k_reduce_min)
    return reduced(n.op, n.args[0]);
  if (PrimExpr test = tested(n.op, n.args[0])) return test;
  std::vector<PrimExpr> args;
  for (const PrimExpr& a : n.args) args.push_back(widened(a));
  PrimExpr wide = intrinsic(n.op, std::move(args));
  return n.dtype.is_bool() ? wide : cast(n.dtype.element(), wide);
}

}  // namespace

PrimFunc legalize_small_floats(PrimFunc function) {
  function.body = mutate(function.body, in_float32);
  return function;
}

}  // namespace tilewright::tir
