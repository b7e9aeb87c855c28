// SPDX-License-Identifier: Apache-2.0
// Vector math in double, in classical forms: two-constant reductions (Cody and Waite, Software Manual for the
// Elementary Functions), log by its odd series around one, erf as 1 - exp(log(erfc)).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <iterator>
#include <limits>

#include "codegen/llvm/math.h"
#include "codegen/llvm/types.h"
#include "codegen/math_coefficients.h"

namespace tilewright::codegen {
namespace {

namespace in = llvm::Intrinsic;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 1.4426950408889634074;
// ln2 in two pieces: the first has 32 trailing zero bits, so that its product with an exponent is exact.
constexpr double kLn2Hi = 0x1.62e42feep-1, kLn2Lo = 0x1.a39ef35793c76p-33;
constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;

}  // namespace

llvm::Value* VectorMath::double_power(V n) {
  // Adding 1.5 * 2^52 removes a double's fraction: its low bits are n, which a shift moves to the exponent.
  constexpr double kShift = 0x1.8p52 + 1023;
  llvm::Type* i64 = with_lanes(b_.getInt64Ty(), lanes_of(n));
  V low = b_.CreateBitCast(b_.CreateFAdd(n, number(n, kShift)), i64);
  return b_.CreateBitCast(b_.CreateShl(low, llvm::ConstantInt::get(i64, 52)), n->getType());
}

llvm::Value* VectorMath::double_scaled(V x, V n) {
  if (has_scalef_ && lanes_of(x) == 8)
    return b_.CreateIntrinsic(in::x86_avx512_mask_scalef_pd_512, {},
                              {x, n, x, llvm::Constant::getAllOnesValue(b_.getInt8Ty()), b_.getInt32(4)});
  // Two factors, each a normal number: only the last product rounds, into the subnormal range or to infinity.
  V half = unary(in::floor, b_.CreateFMul(n, number(n, 0.5)));
  return b_.CreateFMul(b_.CreateFMul(x, double_power(half)), double_power(b_.CreateFSub(n, half)));
}

llvm::Value* VectorMath::double_exp_core(V x, V* n, V low) {
  *n = unary(in::rint, b_.CreateFMul(x, number(x, kLog2e)));
  V r = fma(*n, number(x, -kLn2Hi), x);
  r = fma(*n, number(x, -kLn2Lo), r);
  return double_exp_near_zero(low ? b_.CreateFAdd(r, low) : r);
}

llvm::Value* VectorMath::double_exp_near_zero(V r) {
  V tail = horner(r, kExpm1Double, std::size(kExpm1Double));
  return b_.CreateFAdd(fma(b_.CreateFMul(r, r), tail, r), number(r, 1));
}

llvm::Value* VectorMath::double_exp(V x) {
  x = above(below(x, 710.0), -746.0);
  V n, p = double_exp_core(x, &n);
  return double_scaled(p, n);
}

llvm::Value* VectorMath::double_exp2(V x) {
  x = above(below(x, 1025.0), -1076.0);
  V n = unary(in::rint, x);
  return double_scaled(double_exp_near_zero(b_.CreateFMul(b_.CreateFSub(x, n), number(x, 0x1.62e42fefa39efp-1))), n);
}

// log(x) = e * ln2 + log(m), m in [sqrt(1/2), sqrt(2)); with s = f / (2 + f), f = m - 1:
// log(m) = f - (f^2/2 - s * (f^2/2 + s^2 * Q(s^2))).
llvm::Value* VectorMath::double_log(V x, double base, double base_low, double exponent_hi, double exponent_lo) {
  llvm::Type* i64 = with_lanes(b_.getInt64Ty(), lanes_of(x));
  auto whole = [&](int64_t v) { return llvm::ConstantInt::getSigned(i64, v); };
  V subnormal = b_.CreateFCmpOLT(x, number(x, 0x1p-1022));
  V scaled = b_.CreateSelect(subnormal, b_.CreateFMul(x, number(x, 0x1p54)), x);
  V i = b_.CreateSub(b_.CreateBitCast(scaled, i64), whole(kSqrtHalf));
  // Truncated before the conversion: AVX2 cannot convert 64-bit integers.
  V e = b_.CreateSIToFP(b_.CreateTrunc(b_.CreateAShr(i, whole(52)), integer(x, 0)->getType()), x->getType());
  e = b_.CreateFSub(e, b_.CreateSelect(subnormal, number(x, 54), number(x, 0)));
  V m = b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(i, whole(0xfffffffffffff)), whole(kSqrtHalf)), x->getType());
  V f = b_.CreateFSub(m, number(x, 1));
  V s = b_.CreateFDiv(f, b_.CreateFAdd(f, number(x, 2)));
  V z = b_.CreateFMul(s, s);
  V rest = b_.CreateFMul(z, horner(z, kLogDouble, std::size(kLogDouble)));
  V half = b_.CreateFMul(b_.CreateFMul(f, number(x, 0.5)), f);
  V tail = b_.CreateFMul(s, b_.CreateFAdd(half, rest));
  V result;
  if (base == 1) {
    tail = fma(e, number(x, exponent_lo), tail);
    result = fma(e, number(x, exponent_hi), b_.CreateFSub(f, b_.CreateFSub(half, tail)));
  } else {
    V natural = b_.CreateFSub(f, b_.CreateFSub(half, tail));
    V low = fma(natural, number(x, base_low), b_.CreateFMul(e, number(x, exponent_lo)));
    result = fma(e, number(x, exponent_hi), fma(natural, number(x, base), low));
  }
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, kInf)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, 0)), number(x, -kInf), result);
  return nan_where(b_.CreateFCmpULT(x, number(x, 0)), result);  // negative or NaN
}

llvm::Value* VectorMath::double_log(V x) { return double_log(x, 1, 0, kLn2Hi, kLn2Lo); }
llvm::Value* VectorMath::double_log2(V x) { return double_log(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0); }
llvm::Value* VectorMath::double_log10(V x) {
  return double_log(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57, 0x1.34413509fp-2, 0x1.e7fbcc47c4acdp-40);
}

// |x|^y = e^(y * log|x|), where the logarithm and its product are sums of two doubles: the product is up to 709, and an
// error of it is one of the result relative to that. Fast two-sums (Dekker, Numerische Mathematik 18) whose first
// operand is the larger or zero.
llvm::Value* VectorMath::double_pow(V x, V y) {
  if (!has_fma_) return libm("pow", x, y);
  llvm::Type* i64 = with_lanes(b_.getInt64Ty(), lanes_of(x));
  auto whole = [&](int64_t v) { return llvm::ConstantInt::getSigned(i64, v); };
  auto negative = [&](V v) { return b_.CreateFNeg(v); };
  auto twice = [&](V v) { return b_.CreateFAdd(v, v); };
  // a * b as a sum.
  auto product = [&](V a, V b, V* low) {
    V high = b_.CreateFMul(a, b);
    *low = fma(a, b, negative(high));
    return high;
  };
  auto sum = [&](V a, V b, V* low) {
    V high = b_.CreateFAdd(a, b);
    *low = b_.CreateFSub(b, b_.CreateFSub(high, a));
    return high;
  };
  V size = unary(in::fabs, x);
  V i = b_.CreateSub(b_.CreateBitCast(size, i64), whole(kSqrtHalf));
  V e = b_.CreateSIToFP(b_.CreateTrunc(b_.CreateAShr(i, whole(52)), integer(x, 0)->getType()), x->getType());
  V m = b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(i, whole(0xfffffffffffff)), whole(kSqrtHalf)), x->getType());
  // s = (m - 1) / (m + 1), log m = 2 atanh s = 2 (s + s (s^2/3 + s^4 P(s^2))).
  V one = number(x, 1), f = b_.CreateFSub(m, one), g_low, g = b_.CreateFAdd(m, one);
  g_low = b_.CreateFSub(m, b_.CreateFSub(g, one));
  V r = b_.CreateFDiv(one, g), s = b_.CreateFMul(f, r);
  V s_low = b_.CreateFMul(r, fma(negative(s), g_low, fma(negative(s), g, f)));
  V q_low, q = product(s, s, &q_low);
  q_low = fma(twice(s), s_low, q_low);
  constexpr double kThird = 1.0 / 3, kThirdLow = 0x1.5555555555555p-56;
  V cube_low, cube = product(q, number(x, kThird), &cube_low);
  cube_low = fma(q_low, number(x, kThird), fma(q, number(x, kThirdLow), cube_low));
  V tail = b_.CreateFMul(b_.CreateFMul(q, q), horner(q, kAtanhTailDouble, std::size(kAtanhTailDouble)));
  V u_low, u = sum(cube, tail, &u_low);
  u_low = b_.CreateFAdd(u_low, cube_low);
  V v_low, v = product(s, u, &v_low);
  v_low = fma(s, u_low, fma(s_low, u, v_low));
  V h_low, h = sum(b_.CreateFMul(e, number(x, kLn2Hi)), twice(s), &h_low);
  V log_low, log = sum(h, twice(v), &log_low);
  log_low = b_.CreateFAdd(log_low, fma(e, number(x, kLn2Lo), h_low));
  log_low = b_.CreateFAdd(log_low, twice(b_.CreateFAdd(s_low, v_low)));
  V z_low, z = product(y, log, &z_low);
  z_low = fma(y, log_low, z_low);

  V is_whole = b_.CreateFCmpOEQ(unary(in::trunc, y), y), below_zero = b_.CreateFCmpOLT(x, number(x, 0));
  V uncommon = b_.CreateOr(b_.CreateFCmpULT(size, number(x, 0x1p-1022)), b_.CreateFCmpUGE(size, number(x, kInf)));
  uncommon = b_.CreateOr(uncommon, b_.CreateFCmpUGE(unary(in::fabs, z), number(x, 708)));
  uncommon = b_.CreateOr(uncommon, b_.CreateAnd(below_zero, b_.CreateNot(is_whole)));
  return with_fallback(uncommon, "pow", x, y, [&]() -> V {
    V n, p = double_exp_core(z, &n, z_low);
    p = b_.CreateFMul(p, double_power(n));
    V half = b_.CreateFMul(y, number(y, 0.5)), is_odd = b_.CreateFCmpUNE(unary(in::trunc, half), half);
    return b_.CreateSelect(b_.CreateAnd(below_zero, is_odd), negative(p), p);
  });
}

llvm::Value* VectorMath::double_tanh(V x) {
  V a = unary(in::fabs, x), t = b_.CreateFMul(x, x);
  V small = fma(b_.CreateFMul(x, t), horner(t, kTanhDouble, std::size(kTanhDouble)), x);
  // From 20 on it rounds to 1.
  V n, p = double_exp_core(below(b_.CreateFAdd(a, a), 40.0), &n);
  V d = fma(p, double_power(n), number(x, 1));
  V large = b_.CreateFSub(number(x, 1), b_.CreateFDiv(number(x, 2), d));
  return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(b_.CreateFCmpULT(a, number(x, 0.575)), small, large),
                                  x);
}

llvm::Value* VectorMath::double_sigmoid(V x) {
  return b_.CreateFDiv(number(x, 1), b_.CreateFAdd(double_exp(b_.CreateFNeg(x)), number(x, 1)));
}

llvm::Value* VectorMath::double_erf(V x) {
  V a = unary(in::fabs, x), t = b_.CreateFMul(x, x);
  V small = fma(x, horner(below(t, 1.0), kErfSmallDouble, std::size(kErfSmallDouble)), x);
  // From 5.92 on it rounds to 1.
  V n, p = double_exp_core(horner(below(a, 6.0), kErfcLogDouble, std::size(kErfcLogDouble)), &n);
  V large = fma(b_.CreateFNeg(p), double_power(n), number(x, 1));
  large = b_.CreateBinaryIntrinsic(in::copysign, large, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, number(x, 1.0)), small, large);
}

}  // namespace tilewright::codegen
