// SPDX-License-Identifier: Apache-2.0
// Elementwise and broadcasting operators, as defined by ONNX's operator specifications and numpy broadcasting.
#include <cmath>
#include <iterator>
#include <limits>

#include "base/format.h"
#include "lower/compute.h"
#include "relay/ops/attrs.h"

namespace tilewright::lower {
namespace {
using namespace tir;
using A = const ComputeArgs&;

PrimExpr x_of(A a) { return a.broadcast_operand(0); }
PrimExpr constant(A a, const PrimExpr& like, double v) { return make_const(like->dtype, v); }

// Unary intrinsics. Float functions are not applied to integers: type inference rejects that.
template <Intrinsic op>
PrimExpr unary(A a) {
  return intrinsic(op, {x_of(a)});
}
// floor, ceil, round, trunc leave integers alone.
template <Intrinsic op>
PrimExpr rounding(A a) {
  PrimExpr x = x_of(a);
  return x->dtype.is_float() ? intrinsic(op, {x}) : x;
}
// Rounds halves away from zero, exactly: the truncated part is known.
PrimExpr round_away(A a) {
  PrimExpr operand = x_of(a);
  if (!operand->dtype.is_float()) return operand;
  PrimExpr x = make_var("x", operand->dtype), whole = make_var("whole", operand->dtype);
  PrimExpr step = select(lt(x, constant(a, x, 0)), constant(a, x, -1), constant(a, x, 1));
  PrimExpr rest = intrinsic(Intrinsic::k_fabs, {x - whole});
  PrimExpr rounded = select(lt(rest, constant(a, x, 0.5)), whole, whole + step);
  // Infinities and NaN are unchanged: their fractional part is NaN.
  PrimExpr out = select(binary(ExprKind::kEQ, rest, rest), rounded, whole);
  return let(x, operand, let(whole, intrinsic(Intrinsic::k_trunc, {x}), out));
}
template <ExprKind kind>
PrimExpr arithmetic(A a) {
  return binary(kind, a.broadcast_operand(0), a.broadcast_operand(1));
}

bool is_number(const PrimExpr& e) {
  const auto* all = e->kind == ExprKind::kBroadcast ? static_cast<const BroadcastNode*>(e.get()) : nullptr;
  const auto value = as_const_float(all ? all->value : e);
  return value && !std::isnan(*value);
}

// Maximum or minimum that propagates NaN. The machine's operation returns its second operand if one is NaN, so a
// constant goes first, and otherwise the first operand is tested.
template <ExprKind kind>
PrimExpr extreme(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  if (!x->dtype.is_float() || is_number(x)) return binary(kind, x, y);
  if (is_number(y)) return binary(kind, y, x);
  return select(ne(x, x), x, binary(kind, x, y));
}

PrimExpr floor_divide(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  return x->dtype.is_float() ? intrinsic(Intrinsic::k_floor, {div(x, y)}) : floordiv(x, y);
}
// The remainder with the divisor's sign (numpy, ONNX Mod with fmod=0).
PrimExpr floor_mod(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  return x->dtype.is_float() ? x - intrinsic(Intrinsic::k_floor, {div(x, y)}) * y : floormod(x, y);
}
// The remainder with the dividend's sign (C's %, ONNX Mod with fmod=1).
PrimExpr trunc_mod(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  return x->dtype.is_float() ? intrinsic(Intrinsic::k_fmod, {x, y}) : x - div(x, y) * y;
}
PrimExpr trunc_divide(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  return x->dtype.is_float() ? intrinsic(Intrinsic::k_trunc, {div(x, y)}) : div(x, y);
}
// Integer power by squaring. Exponents above 63 matter only by parity, since any base other than 0, 1 and -1 overflows.
// Negative exponents are defined for 1 and -1 only.
PrimExpr whole_power(const PrimExpr& base, const PrimExpr& exponent) {
  const DataType t = base->dtype;
  const PrimExpr x = make_var("x", t), y = make_var("y", t), e = make_var("e", t);
  auto number = [&](int64_t v) { return make_const(t, static_cast<double>(v)); };
  auto odd = [&](const PrimExpr& v) { return ne(binary(ExprKind::kBitAnd, v, number(1)), number(0)); };
  // By the lowest bits of e.
  auto power = [&](int bits) {
    std::vector<std::pair<PrimExpr, PrimExpr>> steps;  // variables with their values
    PrimExpr square = x, result = select(odd(e), x, number(1));
    for (int bit = 1; bit < bits; ++bit) {
      const PrimExpr next = make_var("square", t), product = make_var("product", t);
      steps.emplace_back(next, square * square);
      const PrimExpr set = odd(binary(ExprKind::kShiftRight, e, number(bit)));
      steps.emplace_back(product, select(set, result * next, result));
      square = next, result = product;
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) result = let(step->first, step->second, result);
    return result;
  };
  PrimExpr result = power(6);
  // One exponent for all lanes, which is small as a rule: one branch saves most of the products.
  if (const auto* all = as<BroadcastNode>(exponent); all && t.lanes > 1) {
    const PrimExpr zero = make_const(t.element(), 0), eight = make_const(t.element(), 8);
    PrimExpr few = lt(all->value, eight);
    if (t.is_int()) few = logical_and(le(zero, all->value), few);
    result = intrinsic(Intrinsic::k_if_then_else, {few, power(3), result});
  }
  if (t.is_int()) {
    const PrimExpr one = select(odd(y), x, number(1));  // for bases 1 and -1
    const PrimExpr unit = logical_or(eq(x, number(1)), eq(x, number(-1)));
    result = select(lt(y, number(0)), select(unit, one, number(0)), result);
  }
  const PrimExpr bounded = min(y, number(62) + binary(ExprKind::kBitAnd, y, number(1)));
  return let(x, base, let(y, exponent, let(e, bounded, result)));
}
// Shifts by the width or more, which the loop IR leaves undefined: nothing is left, or the sign.
PrimExpr shifted(ExprKind kind, A a) {
  const PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  const PrimExpr& by = y->kind == ExprKind::kBroadcast ? as<BroadcastNode>(y)->value : y;
  const int64_t most = x->dtype.bits - 1;
  if (const auto* known = by->kind == ExprKind::kIntImm ? as<IntImmNode>(by) : nullptr;
      known && known->value >= 0 && known->value <= most)
    return binary(kind, x, y);
  auto number = [&](int64_t v) { return make_const(x->dtype, static_cast<double>(v)); };
  PrimExpr fits = le(y, number(most));
  if (x->dtype.is_int()) fits = logical_and(ge(y, number(0)), fits);
  const PrimExpr out = binary(kind, x, select(fits, y, number(most)));
  return kind == ExprKind::kShiftRight && x->dtype.is_int() ? out : select(fits, out, number(0));
}
template <ExprKind kKind>
PrimExpr shift(A a) {
  return shifted(kKind, a);
}
PrimExpr power(A a) {
  PrimExpr x = a.broadcast_operand(0), y = a.broadcast_operand(1);
  return x->dtype.is_float() ? intrinsic(Intrinsic::k_pow, {x, y}) : whole_power(x, y);
}
PrimExpr absolute(A a) {
  PrimExpr x = x_of(a);
  if (x->dtype.is_float()) return intrinsic(Intrinsic::k_fabs, {x});
  return x->dtype.is_uint() ? x : max(x, constant(a, x, 0) - x);
}
PrimExpr sign(A a) {
  PrimExpr x = x_of(a), zero = constant(a, x, 0), one = constant(a, x, 1);
  PrimExpr negative = x->dtype.is_uint() ? zero : constant(a, x, -1);
  // NaN fails both comparisons and is returned.
  return select(lt(zero, x), one, select(lt(x, zero), negative, x));
}
PrimExpr relu(A a) {
  PrimExpr x = x_of(a);
  return max(constant(a, x, 0), x);  // NaN is kept: see clip
}
PrimExpr clip(A a) {
  const auto& attrs = a.attrs<relay::ClipAttrs>();
  PrimExpr x = x_of(a);
  // Integer bounds outside the type's range are clamped to it.
  double lo = attrs.a_min, hi = attrs.a_max;
  if (x->dtype.is_integral()) {
    int bits = x->dtype.bits - (x->dtype.is_int() ? 1 : 0);
    double top = std::ldexp(1.0, bits);
    lo = std::max(lo, x->dtype.is_int() ? -top : 0.0);
    if (hi >= top) return max(x, constant(a, x, lo));
  }
  // Constants go first: comparison with NaN is false and selects the second operand, so that NaN is kept.
  return min(constant(a, x, hi), max(constant(a, x, lo), x));
}
PrimExpr leaky_relu(A a) {
  PrimExpr x = x_of(a);
  return select(lt(x, constant(a, x, 0)), x * constant(a, x, a.attrs<relay::LeakyReluAttrs>().alpha), x);
}
PrimExpr cast_to(A a) {
  PrimExpr x = x_of(a);
  DataType to = a.out.dtype;
  if (to.is_bool()) return binary(ExprKind::kNE, x, constant(a, x, 0));
  return cast(to, x);
}
PrimExpr reinterpreted(A a) { return reinterpret(a.out.dtype.with_lanes(a.lanes), x_of(a)); }
PrimExpr full(A a) { return broadcast(a.at(0, {}, 1), a.lanes); }
PrimExpr identity(A a) { return x_of(a); }
PrimExpr negative(A a) {
  PrimExpr x = x_of(a);
  return x->dtype.is_float() ? x * constant(a, x, -1) : constant(a, x, 0) - x;
}
PrimExpr reciprocal_sqrt(A a) { return intrinsic(Intrinsic::k_rsqrt, {x_of(a)}); }
PrimExpr invert(A a) { return logical_not(x_of(a)); }
PrimExpr bitwise_not(A a) {
  PrimExpr x = x_of(a);
  return binary(ExprKind::kBitXor, x, constant(a, x, -1));
}
PrimExpr logical_xor(A a) { return binary(ExprKind::kNE, a.broadcast_operand(0), a.broadcast_operand(1)); }
PrimExpr where(A a) { return select(a.broadcast_operand(0), a.broadcast_operand(1), a.broadcast_operand(2)); }

// (Phi(x) - 1/2) / x as a polynomial in 2 * x^2 / range^2 - 1, centred, because powers of x^2 itself would cancel.
// Minimax relative to x (Lawson's iteration on Chebyshev nodes); the polynomial's own error is 2.5e-8.
constexpr double kGeluRange = 5.375;
constexpr double kGeluPhi[] = {0x1.0d62ap-3,   -0x1.0cca12p-4,  0x1.8edfd4p-5,  -0x1.41fefep-5,  0x1.0714c4p-5,
                               -0x1.a41fb4p-6, 0x1.3f0904p-6,   -0x1.c35f48p-7, 0x1.3582fap-7,   -0x1.a95d8ep-8,
                               0x1.cdc41p-9,   -0x1.320356p-10, 0x1.b78f3ap-11, -0x1.f5264ap-11, 0x1.7c20a8p-12};

// x * Phi(x): its error is a few roundings of x, as with the erf formula, at half the cost. GELU dominates the
// epilogues of transformers.
PrimExpr gelu(A a) {
  PrimExpr operand = x_of(a);
  if (operand->dtype.element() != kFloat32) {
    PrimExpr half = constant(a, operand, 0.5),
             erf = intrinsic(Intrinsic::k_erf, {operand * constant(a, operand, std::sqrt(0.5))});
    return operand * half * (constant(a, operand, 1) + erf);
  }
  PrimExpr x = make_var("x", operand->dtype), t = make_var("t", operand->dtype), s = make_var("s", operand->dtype);
  auto number = [&](double v) { return constant(a, operand, v); };
  PrimExpr p = number(kGeluPhi[std::size(kGeluPhi) - 1]);
  for (size_t i = std::size(kGeluPhi) - 1; i-- > 0;) p = fma(p, s, number(kGeluPhi[i]));
  // Outside the range, Phi rounds to 0 or 1; NaN is kept.
  const double limit = kGeluRange * kGeluRange;
  PrimExpr y = select(lt(t, number(limit)), x * fma(x, p, number(0.5)), max(number(0), x));
  return let(x, operand, let(t, x * x, let(s, fma(t, number(2 / limit), number(-1)), y)));
}

// Operand 1 is a vector along `axis` of the data.
PrimExpr channel_operand(A a, int64_t axis) {
  size_t rank = a.index.size(), at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  if (a.in_dim(1, 0) == 1) return broadcast(a.at(1, {make_int(0)}, 1), a.lanes);
  if (at + 1 == rank) return a.at(1, {a.index[at]}, a.lanes);
  return broadcast(a.at(1, {a.index[at]}, 1), a.lanes);
}
PrimExpr bias_add(A a) { return x_of(a) + channel_operand(a, a.attrs<relay::BiasAddAttrs>().axis); }
PrimExpr prelu(A a) {
  PrimExpr x = x_of(a);
  return select(lt(x, constant(a, x, 0)), x * channel_operand(a, a.attrs<relay::PReluAttrs>().axis), x);
}

constexpr ComputeDef kElementwiseComputes[] = {
    {"abs", absolute},
    {"acos", unary<Intrinsic::k_acos>},
    {"acosh", unary<Intrinsic::k_acosh>},
    {"add", arithmetic<ExprKind::kAdd>},
    {"asin", unary<Intrinsic::k_asin>},
    {"asinh", unary<Intrinsic::k_asinh>},
    {"atan", unary<Intrinsic::k_atan>},
    {"atanh", unary<Intrinsic::k_atanh>},
    {"bitwise_and", arithmetic<ExprKind::kBitAnd>},
    {"bitwise_not", bitwise_not},
    {"bitwise_or", arithmetic<ExprKind::kBitOr>},
    {"bitwise_xor", arithmetic<ExprKind::kBitXor>},
    {"cast", cast_to},
    {"ceil", rounding<Intrinsic::k_ceil>},
    {"clip", clip},
    {"copy", identity},
    {"cos", unary<Intrinsic::k_cos>},
    {"cosh", unary<Intrinsic::k_cosh>},
    {"device_copy", identity},  // all devices of a build share the CPU's memory
    {"divide", arithmetic<ExprKind::kDiv>},
    {"equal", arithmetic<ExprKind::kEQ>},
    {"erf", unary<Intrinsic::k_erf>},
    {"exp", unary<Intrinsic::k_exp>},
    {"fast_erf", unary<Intrinsic::k_erf>},
    {"fast_exp", unary<Intrinsic::k_exp>},
    {"fast_tanh", unary<Intrinsic::k_tanh>},
    {"floor", rounding<Intrinsic::k_floor>},
    {"floor_divide", floor_divide},
    {"floor_mod", floor_mod},
    {"full", full},
    {"greater", arithmetic<ExprKind::kGT>},
    {"greater_equal", arithmetic<ExprKind::kGE>},
    {"isfinite", unary<Intrinsic::k_isfinite>},
    {"isinf", unary<Intrinsic::k_isinf>},
    {"isnan", unary<Intrinsic::k_isnan>},
    {"left_shift", shift<ExprKind::kShiftLeft>},
    {"less", arithmetic<ExprKind::kLT>},
    {"less_equal", arithmetic<ExprKind::kLE>},
    {"log", unary<Intrinsic::k_log>},
    {"log10", unary<Intrinsic::k_log10>},
    {"log1p", unary<Intrinsic::k_log1p>},
    {"log2", unary<Intrinsic::k_log2>},
    {"logical_and", arithmetic<ExprKind::kAnd>},
    {"logical_not", invert},
    {"logical_or", arithmetic<ExprKind::kOr>},
    {"logical_xor", logical_xor},
    {"maximum", extreme<ExprKind::kMax>},
    {"minimum", extreme<ExprKind::kMin>},
    {"mod", trunc_mod},
    {"multiply", arithmetic<ExprKind::kMul>},
    {"nearbyint", rounding<Intrinsic::k_round>},
    {"negative", negative},
    {"nn.bias_add", bias_add},
    {"nn.dropout", identity},
    {"nn.gelu", gelu},
    {"nn.leaky_relu", leaky_relu},
    {"nn.prelu", prelu},
    {"nn.relu", relu},
    {"not_equal", arithmetic<ExprKind::kNE>},
    {"power", power},
    {"reinterpret", reinterpreted},
    {"right_shift", shift<ExprKind::kShiftRight>},
    {"round", round_away},
    {"rsqrt", reciprocal_sqrt},
    {"sigmoid", unary<Intrinsic::k_sigmoid>},
    {"sign", sign},
    {"sin", unary<Intrinsic::k_sin>},
    {"sinh", unary<Intrinsic::k_sinh>},
    {"sqrt", unary<Intrinsic::k_sqrt>},
    {"subtract", arithmetic<ExprKind::kSub>},
    {"tan", unary<Intrinsic::k_tan>},
    {"tanh", unary<Intrinsic::k_tanh>},
    {"trunc", rounding<Intrinsic::k_trunc>},
    {"trunc_divide", trunc_divide},
    {"trunc_mod", trunc_mod},
    {"where", where},
};

}  // namespace

std::span<const ComputeDef> elementwise_computes() { return kElementwiseComputes; }

}  // namespace tilewright::lower
