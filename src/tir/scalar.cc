// SPDX-License-Identifier: Apache-2.0
#include "tir/scalar.h"

#include <cmath>

#include "arith/interval.h"
#include "base/small_float.h"

namespace tilewright::tir {

int64_t wrap_integer(DataType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0;
  int unused = 64 - dtype.bits;
  if (unused <= 0) return value;
  uint64_t shifted = static_cast<uint64_t>(value) << unused;
  return dtype.is_int() ? static_cast<int64_t>(shifted) >> unused : static_cast<int64_t>(shifted >> unused);
}

double round_float(DataType dtype, double value) {
  switch (dtype.code) {
    case TypeCode::kFloat:
      if (dtype.bits == 64) return value;
      if (dtype.bits == 32) return static_cast<float>(value);
      return small_float_decode(kHalfFormat, small_float_encode(kHalfFormat, value));
    case TypeCode::kBFloat:
      return small_float_decode(kBFloatFormat, small_float_encode(kBFloatFormat, value));
    default: {
      SmallFloatFormat layout = small_float_format(dtype.code);
      return small_float_decode(layout, small_float_encode(layout, value));
    }
  }
}

bool integer_binary(ExprKind kind, DataType dtype, int64_t a, int64_t b, int64_t* out) {
  const bool is_unsigned = !dtype.is_int();
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  auto wrapped = [&](uint64_t v) {
    *out = wrap_integer(dtype, static_cast<int64_t>(v));
    return true;
  };
  auto truth = [&](bool v) {
    *out = v;
    return true;
  };
  const bool less = is_unsigned ? ua < ub : a < b;
  const bool no_quotient =
      b == 0 || (!is_unsigned && b == -1 && a == wrap_integer(dtype, int64_t{1} << (dtype.bits - 1)));
  switch (kind) {
    case ExprKind::kAdd:
      return wrapped(ua + ub);
    case ExprKind::kSub:
      return wrapped(ua - ub);
    case ExprKind::kMul:
      return wrapped(ua * ub);
    case ExprKind::kDiv:
      if (no_quotient) return false;
      return wrapped(is_unsigned ? ua / ub : static_cast<uint64_t>(a / b));
    case ExprKind::kMod:
      if (no_quotient) return false;
      return wrapped(is_unsigned ? ua % ub : static_cast<uint64_t>(a % b));
    case ExprKind::kFloorDiv:
      if (no_quotient) return false;
      return wrapped(is_unsigned ? ua / ub : static_cast<uint64_t>(arith::floor_div(a, b)));
    case ExprKind::kFloorMod:
      if (no_quotient) return false;
      return wrapped(is_unsigned ? ua % ub : static_cast<uint64_t>(arith::floor_mod(a, b)));
    case ExprKind::kMin:
      return wrapped(less ? ua : ub);
    case ExprKind::kMax:
      return wrapped(less ? ub : ua);
    case ExprKind::kEQ:
      return truth(a == b);
    case ExprKind::kNE:
      return truth(a != b);
    case ExprKind::kLT:
      return truth(less);
    case ExprKind::kLE:
      return truth(less || a == b);
    case ExprKind::kGT:
      return truth(!less && a != b);
    case ExprKind::kGE:
      return truth(!less);
    case ExprKind::kAnd:
      return truth(a != 0 && b != 0);
    case ExprKind::kOr:
      return truth(a != 0 || b != 0);
    case ExprKind::kBitAnd:
      return wrapped(ua & ub);
    case ExprKind::kBitOr:
      return wrapped(ua | ub);
    case ExprKind::kBitXor:
      return wrapped(ua ^ ub);
    case ExprKind::kShiftLeft:
      if (ub >= dtype.bits) return false;
      return wrapped(ua << ub);
    case ExprKind::kShiftRight:
      if (ub >= dtype.bits) return false;
      return wrapped(is_unsigned ? ua >> ub : static_cast<uint64_t>(a >> ub));
    default:
      return false;
  }
}

double float_arithmetic(ExprKind kind, DataType dtype, double a, double b) {
  switch (kind) {
    case ExprKind::kAdd:
      return round_float(dtype, a + b);
    case ExprKind::kSub:
      return round_float(dtype, a - b);
    case ExprKind::kMul:
      return round_float(dtype, a * b);
    case ExprKind::kDiv:
      return round_float(dtype, a / b);
    case ExprKind::kMin:
      return a < b ? a : b;
    case ExprKind::kMax:
      return a > b ? a : b;
    default:
      TW_ICHECK(false, "not an arithmetic operator of floats");
      return 0;
  }
}

bool float_comparison(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::kEQ:
      return a == b;
    case ExprKind::kNE:
      return a != b;
    case ExprKind::kLT:
      return a < b;
    case ExprKind::kLE:
      return a <= b;
    case ExprKind::kGT:
      return a > b;
    case ExprKind::kGE:
      return a >= b;
    default:
      TW_ICHECK(false, "not a comparison");
      return false;
  }
}

double float_fma(DataType dtype, double a, double b, double c) {
  if (dtype.bits == 64) return std::fma(a, b, c);
  // Formats below 24 bits: one float32 fma, then rounding
  // to the format, as on machines without a narrower fma.
  return round_float(dtype, std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}

int64_t float_to_integer(DataType to, double value) {
  if (to.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  if (to.is_int()) {
    double limit = std::ldexp(1.0, to.bits - 1);
    if (value >= limit) return to.bits == 64 ? INT64_MAX : (int64_t{1} << (to.bits - 1)) - 1;
    if (value < -limit) return to.bits == 64 ? INT64_MIN : -(int64_t{1} << (to.bits - 1));
    return static_cast<int64_t>(value);
  }
  double limit = std::ldexp(1.0, to.bits);
  if (value >= limit) return wrap_integer(to, -1);
  return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
}

double integer_to_float(DataType from, DataType to, int64_t value) {
  // float32 directly from the integer: via double it would be rounded twice.
  if (to.code == TypeCode::kFloat && to.bits == 32)
    return from.is_int() ? static_cast<float>(value) : static_cast<float>(static_cast<uint64_t>(value));
  double wide = from.is_int() ? static_cast<double>(value) : static_cast<double>(static_cast<uint64_t>(value));
  return round_float(to, wide);
}

double float_call(Intrinsic op, DataType dtype, double x, double y, double z) {
  switch (op) {
    case Intrinsic::k_fma:
      return float_fma(dtype, x, y, z);
    case Intrinsic::k_exp:
    case Intrinsic::k_exp_nonpositive:
      return std::exp(x);
    case Intrinsic::k_log:
      return std::log(x);
    case Intrinsic::k_sqrt:
      return std::sqrt(x);
    case Intrinsic::k_rsqrt:
      return 1 / std::sqrt(x);
    case Intrinsic::k_tanh:
      return std::tanh(x);
    case Intrinsic::k_erf:
      return std::erf(x);
    case Intrinsic::k_sigmoid:
      return 1 / (1 + std::exp(-x));
    case Intrinsic::k_pow:
      return std::pow(x, y);
    case Intrinsic::k_floor:
      return std::floor(x);
    case Intrinsic::k_ceil:
      return std::ceil(x);
    case Intrinsic::k_round:
      return std::nearbyint(x);
    case Intrinsic::k_trunc:
      return std::trunc(x);
    case Intrinsic::k_fabs:
      return std::fabs(x);
    case Intrinsic::k_sin:
      return std::sin(x);
    case Intrinsic::k_cos:
      return std::cos(x);
    case Intrinsic::k_tan:
      return std::tan(x);
    case Intrinsic::k_asin:
      return std::asin(x);
    case Intrinsic::k_acos:
      return std::acos(x);
    case Intrinsic::k_atan:
      return std::atan(x);
    case Intrinsic::k_sinh:
      return std::sinh(x);
    case Intrinsic::k_cosh:
      return std::cosh(x);
    case Intrinsic::k_asinh:
      return std::asinh(x);
    case Intrinsic::k_acosh:
      return std::acosh(x);
    case Intrinsic::k_atanh:
      return std::atanh(x);
    case Intrinsic::k_exp2:
      return std::exp2(x);
    case Intrinsic::k_log2:
      return std::log2(x);
    case Intrinsic::k_log10:
      return std::log10(x);
    case Intrinsic::k_log1p:
      return std::log1p(x);
    case Intrinsic::k_fmod:
      return std::fmod(x, y);
    case Intrinsic::k_copysign:
      return std::copysign(x, y);
    case Intrinsic::k_ldexp_int:
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz:
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
    case Intrinsic::k_if_then_else:
    case Intrinsic::k_dot4:
    case Intrinsic::k_dot2:
    case Intrinsic::k_dot2_bfloat16:
    case Intrinsic::k_even_bytes:
    case Intrinsic::k_odd_bytes:
    case Intrinsic::k_low_halves:
    case Intrinsic::k_high_halves:
      break;
  }
  TW_ICHECK(false, intrinsic_name(op));
  return 0;
}

}  // namespace tilewright::tir
