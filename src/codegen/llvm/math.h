// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of the loop IR as LLVM IR, on scalars and vectors of float32 and float64.
//
// All of them are inline polynomials, in float32 and in double, but for pow in double where the result is out of range
// or an operand is no normal number, fmod of quotients beyond 2^51, and sin, cos and tan far from zero (2^15 and 10^6),
// which call libm lane by lane. Largest errors in units of the
// last place, as the tests hold them: exp, exp2, log 1.5; sin, cos, erf, sigmoid, log2, log10, log1p, atan, acos, cosh
// 2; tanh 2.5; tan, asin, sinh, asinh, acosh and atanh 3; pow in double 1.5. NaN, infinities, zeros and the edges of
// the range are as in C. Results below the normal numbers are zero or subnormal as the machine's flush mode says. In
// double sin and cos far out may be 2.5 off.
#pragma once
#include <functional>
#include <span>

#include "ir/target.h"
#include "tir/expr.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tilewright::codegen {

class VectorMath {
 public:
  VectorMath(llvm::IRBuilderBase& builder, const Target& target);
  // `a` are floats (ldexp_int: the second is int32). Not for reductions, if_then_else and integer functions.
  llvm::Value* emit(tir::Intrinsic op, llvm::Value* const* a);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* silu(llvm::Value* x);  // float32: x * sigmoid(x) with one rounding fewer

 private:
  using V = llvm::Value*;
  V number(V like, double value);
  V integer(V like, int64_t value);  // int32 lanes for float32 values
  V bits(V x);                       // float32 -> int32
  V floats(V x);
  V horner(V x, const float* c, int n);
  V by_halves(V x, const float* c, int n);
  V horner(V x, const double* c, int n);
  V unary(unsigned intrinsic, V x);
  V below(V x, double limit);  // x where x < limit or NaN, else limit
  V above(V x, double limit);
  // float32: *n = x * scale rounded to a whole number, |n| < 2^22; the result has n + bias in its low bits.
  V nearest(V x, double scale, int64_t bias, V* n);
  V power_of_two(V biased);                   // 2^n, n + 127 in the low bits, 0 to 255
  V times_power_of_two(V x, V twice_biased);  // x * 2^n, n + 254 in the low bits; |n| <= 252
  V with_sign(V magnitude, V x);              // float32: copysign for a magnitude without a sign, or NaN
  V nan_where(V condition, V x);
  V expm1_core(V r);          // |r| <= ln2/2
  V exp_remainder(V x, V n);  // x - n * ln2
  V exp(V x);
  V exp_nonpositive(V x);
  V exp2(V x);
  V log(V x);
  V log_scaled(V x, double hi, double lo, double exponent_hi, double exponent_lo);
  V tanh(V x);
  V erf(V x);
  V sigmoid_divisor(V x);  // 1 + e^-x
  V sigmoid(V x);
  V pow(V x, V y);
  V ldexp(V x, V n);
  V libm(const char* name, V a, V b = nullptr);
  // math_double.cc: double.
  V double_power(V n);                            // 2^n, n whole and within the normal exponents
  V double_scaled(V x, V n);                      // x * 2^n, n whole
  V double_exp_near_zero(V r);                    // |r| <= ln2/2
  V double_exp_core(V x, V* n, V low = nullptr);  // e^(x + low) = result * 2^n
  V double_exp(V x);
  V double_exp2(V x);
  V double_log(V x, double base, double base_low, double exponent_hi, double exponent_lo);
  V double_log(V x);
  V double_log2(V x);
  V double_log10(V x);
  V double_pow(V x, V y);
  V double_tanh(V x);
  V double_sigmoid(V x);
  V double_erf(V x);
  // math_inverse.cc: float32 and double.
  enum class Trigonometric { kSin, kCos, kTan };
  V odd(V x, V t, std::span<const float> single, std::span<const double> wide);  // x + x*t * P(t)
  V trigonometric(V x, Trigonometric which);
  V near_zero(V x, Trigonometric which);
  // Calls the C library's function if any lane is uncommon, else evaluates `common`.
  V with_fallback(V uncommon, const char* name, V x, V y, const std::function<V()>& common);
  V fmod(V x, V y);
  V atan(V x);
  V asin_half(V x, V* within);  // asin(|x|) in lanes `within`, else half of acos(|x|)
  V asin(V x);
  V acos(V x);
  V half_exp(V a);  // e^a / 2, a >= 0
  V cosh(V x);
  V sinh(V x);
  V log_one_plus(V u, V instead, V argument, double offset);
  V log1p(V x);
  V asinh(V x);
  V acosh(V x);
  V atanh(V x);

  llvm::IRBuilderBase& b_;
  const bool has_fma_, has_scalef_;
};

}  // namespace tilewright::codegen
