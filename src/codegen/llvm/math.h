// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of the loop IR as LLVM IR, on scalars and vectors of float32 and float64.
//
// float32: exp, exp2, log, log2, log10, tanh, erf, sigmoid, sin, cos and pow are inline polynomials, at most 2 units in
// the last place from the true value, with NaN, infinities, zeros and the edges of the range as in C. Results below
// 2^-126 are zero or subnormal as the machine's flush mode says. The other functions, and float64, call libm lane by
// lane.
#pragma once
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
  llvm::Value* silu(llvm::Value* x);  // float32: x * sigmoid(x) with one rounding less

 private:
  using V = llvm::Value*;
  V number(V like, double value);
  V integer(V like, int64_t value);  // int32 lanes for float32 values
  V bits(V x);                       // float32 -> int32
  V floats(V x);
  V horner(V x, const float* c, int n);
  V horner(V x, const double* c, int n);
  V unary(unsigned intrinsic, V x);
  V below(V x, double limit);  // x where x < limit or NaN, else limit
  V above(V x, double limit);
  V positive_below(V x, double limit);  // x >= 0; a NaN becomes the limit
  V times_power_of_two(V x, V n);       // float32; |n| <= 252
  V nan_where(V condition, V x);
  V expm1_core(V r);         // |r| <= ln2/2
  V exp_reduced(V x, V* n);  // n = rint(x / ln2) as float; the remainder
  V exp(V x);
  V exp2(V x);
  V log(V x);
  V log_scaled(V x, double hi, double lo, double exponent_hi, double exponent_lo);
  V tanh(V x);
  V erf(V x);
  V nearest_power(V x, double scale, V* n);  // 2^n, n the whole number next to x * scale, at least -126 and at most 127
  V sigmoid_divisor(V x);                    // 1 + e^-x
  V sigmoid(V x);
  V sin_or_cos(V x, bool cosine);
  V pow(V x, V y);
  V ldexp(V x, V n);
  V libm(const char* name, V a, V b = nullptr);

  llvm::IRBuilderBase& b_;
  const bool has_fma_, has_scalef_;
};

}  // namespace tilewright::codegen
