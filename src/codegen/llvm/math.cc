// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <string>

#include "codegen/llvm/machine.h"
#include "codegen/llvm/math_coefficients.h"
#include "codegen/llvm/types.h"

namespace tilewright::codegen {
namespace {

namespace in = llvm::Intrinsic;
using tir::Intrinsic;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 1.4426950408889634074, kLn2 = 0.69314718055994530942;
// ln2 in two pieces: the first has 9 trailing zero bits in float32, so that its product with |n| < 512 is exact.
constexpr double kLn2Hi = 0x1.62ep-1, kLn2Lo = kLn2 - kLn2Hi;

// Whether fma is an instruction in the precisions that kernels use.
bool multiplies_and_adds(const Target& target) {
  switch (processor_of(target).architecture) {
    case Architecture::kX86_64:
    case Architecture::kX86:
      return has_feature(target, "fma");
    case Architecture::kAArch64:
      return true;
    case Architecture::kArm:
      return has_feature(target, "vfp4");
    case Architecture::kRiscv64:
    case Architecture::kRiscv32:
      return has_feature(target, "d");
  }
  return false;
}

bool is_double(llvm::Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

}  // namespace

VectorMath::VectorMath(llvm::IRBuilderBase& builder, const Target& target)
    : b_(builder), has_fma_(multiplies_and_adds(target)), has_scalef_(has_feature(target, "avx512f")) {}

llvm::Value* VectorMath::number(V like, double value) { return llvm::ConstantFP::get(like->getType(), value); }
llvm::Value* VectorMath::integer(V like, int64_t value) {
  return llvm::ConstantInt::get(with_lanes(b_.getInt32Ty(), lanes_of(like)), static_cast<uint64_t>(value));
}
llvm::Value* VectorMath::bits(V x) { return b_.CreateBitCast(x, with_lanes(b_.getInt32Ty(), lanes_of(x))); }
llvm::Value* VectorMath::floats(V x) { return b_.CreateBitCast(x, with_lanes(b_.getFloatTy(), lanes_of(x))); }
llvm::Value* VectorMath::unary(unsigned intrinsic, V x) {
  return b_.CreateUnaryIntrinsic(static_cast<in::ID>(intrinsic), x);
}

llvm::Value* VectorMath::fma(V a, V b, V c) {
  // Without the instruction an exact fma is a library call per lane; such CPUs use a product and a sum.
  return b_.CreateIntrinsic(has_fma_ ? in::fma : in::fmuladd, {a->getType()}, {a, b, c});
}

llvm::Value* VectorMath::horner(V x, const float* c, int n) {
  V p = number(x, c[n - 1]);
  for (int i = n - 2; i >= 0; --i) p = fma(p, x, number(x, c[i]));
  return p;
}
llvm::Value* VectorMath::horner(V x, const double* c, int n) {
  V p = number(x, c[n - 1]);
  for (int i = n - 2; i >= 0; --i) p = fma(p, x, number(x, c[i]));
  return p;
}

llvm::Value* VectorMath::below(V x, double limit) {
  V l = number(x, limit);
  return b_.CreateSelect(b_.CreateFCmpOLT(l, x), l, x);  // minps(limit, x): keeps a NaN in x
}
llvm::Value* VectorMath::above(V x, double limit) {
  V l = number(x, limit);
  return b_.CreateSelect(b_.CreateFCmpOGT(l, x), l, x);
}

llvm::Value* VectorMath::positive_below(V x, double limit) {
  // Non-negative floats are ordered like their bits, and integer comparisons use other ports.
  return floats(b_.CreateBinaryIntrinsic(in::smin, bits(x), bits(number(x, limit))));
}

llvm::Value* VectorMath::nan_where(V condition, V x) {
  return b_.CreateSelect(condition, number(x, std::numeric_limits<double>::quiet_NaN()), x);
}

llvm::Value* VectorMath::times_power_of_two(V x, V n) {
  // Two factors, each a normal number: only the last product rounds, into the subnormal range or to infinity.
  V first = b_.CreateAShr(n, integer(x, 1)), second = b_.CreateSub(n, first);
  auto power = [&](V e) { return floats(b_.CreateShl(b_.CreateAdd(e, integer(x, 127)), integer(x, 23))); };
  return b_.CreateFMul(b_.CreateFMul(x, power(first)), power(second));
}

llvm::Value* VectorMath::exp_reduced(V x, V* n) {
  *n = unary(in::rint, b_.CreateFMul(x, number(x, kLog2e)));
  V r = fma(*n, number(x, -kLn2Hi), x);
  return fma(*n, number(x, -kLn2Lo), r);
}

llvm::Value* VectorMath::expm1_core(V r) {
  V tail = horner(r, kExpm1Tail, std::size(kExpm1Tail));
  return fma(b_.CreateFMul(r, r), tail, r);
}

namespace {
// x * 2^n by the AVX-512 instruction, with n a float vector of integers; null if the type has none.
llvm::Value* scalef(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* n) {
  if (lanes_of(x) != 16) return nullptr;
  llvm::Value* all = llvm::Constant::getAllOnesValue(b.getInt16Ty());
  return b.CreateIntrinsic(in::x86_avx512_mask_scalef_ps_512, {},
                           {x, n, x, all, b.getInt32(4 /* rounding mode of MXCSR */)});
}
}  // namespace

llvm::Value* VectorMath::exp(V x) {
  // Beyond these bounds the result is infinity or zero; clamping keeps n within what two factors can scale.
  x = above(below(x, 89.0), -104.5);
  V n, r = exp_reduced(x, &n);
  V p = b_.CreateFAdd(expm1_core(r), number(x, 1));
  if (V scaled = has_scalef_ ? scalef(b_, p, n) : nullptr) return scaled;
  return times_power_of_two(p, b_.CreateFreeze(b_.CreateFPToSI(n, integer(x, 0)->getType())));
}

llvm::Value* VectorMath::exp2(V x) {
  x = above(below(x, 129.0), -151.0);
  V n = unary(in::rint, x);
  V r = b_.CreateFSub(x, n);
  V p = fma(r, horner(r, kExp2Tail, std::size(kExp2Tail)), number(x, 1));
  if (V scaled = has_scalef_ ? scalef(b_, p, n) : nullptr) return scaled;
  return times_power_of_two(p, b_.CreateFreeze(b_.CreateFPToSI(n, integer(x, 0)->getType())));
}

// log(x) = e * ln2 + log(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), times hi + lo (the change of base).
llvm::Value* VectorMath::log_scaled(V x, double hi, double lo, double exponent_hi, double exponent_lo) {
  V subnormal = b_.CreateFCmpOLT(x, number(x, 0x1p-126));
  V scaled = b_.CreateSelect(subnormal, b_.CreateFMul(x, number(x, 0x1p24)), x);
  V i = b_.CreateSub(bits(scaled), integer(x, 0x3f3504f3));  // from sqrt(1/2)
  V e = b_.CreateSIToFP(b_.CreateAShr(i, integer(x, 23)), x->getType());
  e = b_.CreateFSub(e, b_.CreateSelect(subnormal, number(x, 24), number(x, 0)));
  V m = floats(b_.CreateAdd(b_.CreateAnd(i, integer(x, 0x7fffff)), integer(x, 0x3f3504f3)));
  V f = b_.CreateFSub(m, number(x, 1));
  V f2 = b_.CreateFMul(f, f);
  V tail = b_.CreateFMul(b_.CreateFMul(f2, f), horner(f, kLogTail, std::size(kLogTail)));
  V result;
  if (hi == 1) {
    tail = fma(e, number(x, exponent_lo), tail);
    tail = fma(f2, number(x, -0.5), tail);
    result = fma(e, number(x, exponent_hi), b_.CreateFAdd(f, tail));
  } else {
    // f * hi dominates; the rest is a few percent of it.
    tail = fma(f2, number(x, -0.5), tail);
    V rest = fma(tail, number(x, hi), b_.CreateFMul(f, number(x, lo)));
    rest = fma(e, number(x, exponent_lo), rest);
    result = fma(e, number(x, exponent_hi), fma(f, number(x, hi), rest));
  }
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, kInf)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, 0)), number(x, -kInf), result);
  return nan_where(b_.CreateFCmpULT(x, number(x, 0)), result);  // negative or NaN
}

llvm::Value* VectorMath::log(V x) { return log_scaled(x, 1, 0, kLn2Hi, kLn2Lo); }

llvm::Value* VectorMath::nearest_power(V x, double scale, V* n) {
  // Adding 1.5 * 2^23 removes a float's fraction; the shift makes its low bits n + 127, the exponent of 2^n. Clamping
  // (including infinities and NaNs) is done on integers, which use other ports than products.
  constexpr double kShift = 0x1.8p23 + 127;
  constexpr int64_t kBits = 0x4b40007f;
  V whole = bits(fma(x, number(x, scale), number(x, kShift)));
  whole = b_.CreateBinaryIntrinsic(in::smin, whole, integer(x, kBits + 127));
  whole = b_.CreateBinaryIntrinsic(in::smax, whole, integer(x, kBits - 126));
  *n = b_.CreateFSub(floats(whole), number(x, kShift));
  return floats(b_.CreateShl(whole, integer(x, 23)));
}

llvm::Value* VectorMath::tanh(V x) {
  // Small values by a polynomial, which keeps them exact in the relative sense; the others as 1 - 2 / (e^2a + 1), whose
  // subtraction at least halves errors: a shorter polynomial than exp's is enough, and one product for the remainder.
  constexpr double kScale = 2 * kLog2e;
  V a = unary(in::fabs, x), t = b_.CreateFMul(x, x);
  V small = fma(b_.CreateFMul(x, t), horner(t, kTanhSmall, std::size(kTanhSmall)), x);
  V n, power = nearest_power(a, kScale, &n);
  V r = fma(a, number(x, kScale), b_.CreateFNeg(n));  // n is clamped: beyond, r and the result keep growing
  V q = b_.CreateFMul(r, horner(r, kExp2Short, std::size(kExp2Short)));
  V d = fma(q, power, b_.CreateFAdd(power, number(x, 1)));
  V large = b_.CreateFSub(number(x, 1), b_.CreateFDiv(number(x, 2), d));
  return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(b_.CreateFCmpULT(a, number(x, 0.575)), small, large),
                                  x);
}

llvm::Value* VectorMath::sigmoid_divisor(V x) {
  // 1 + 2^(-x log2 e), rounded once where it matters: the fraction is added to
  // 2^n + 1, which is exact for n up to 22; larger powers lose bits only at the
  // end. Below -89 the sum is infinite, since the result would be subnormal.
  if (!has_fma_) return b_.CreateFAdd(exp(b_.CreateFNeg(x)), number(x, 1));
  V n, power = nearest_power(x, -kLog2e, &n);
  constexpr double kHi = -static_cast<double>(static_cast<float>(kLog2e)), kLo = -kLog2e - kHi;
  V r = fma(x, number(x, kHi), b_.CreateFNeg(n));
  r = above(fma(x, number(x, kLo), r),
            -1);  // beyond 87 the power is negligible, below -88 the sum overflows with r
  V q = b_.CreateFMul(r, horner(r, kExp2Tail, std::size(kExp2Tail)));
  V part = positive_below(power, 0x1p22);
  V sum = fma(q, power, b_.CreateFAdd(part, number(x, 1)));
  return b_.CreateFAdd(sum, b_.CreateFSub(power, part));
}

llvm::Value* VectorMath::sigmoid(V x) { return b_.CreateFDiv(number(x, 1), sigmoid_divisor(x)); }

llvm::Value* VectorMath::silu(V x) { return b_.CreateFDiv(x, sigmoid_divisor(x)); }

llvm::Value* VectorMath::erf(V x) {
  V a = unary(in::fabs, x);
  V t = b_.CreateFMul(x, x);
  V small = fma(x, horner(below(t, 1.0), kErfSmall, std::size(kErfSmall)), x);
  // 1 - exp(log(erfc a)); from 3.95 on it rounds to 1.
  V c = below(a, 3.95);
  V l = horner(c, kErfcLog, std::size(kErfcLog));
  V n, r = exp_reduced(l, &n);
  V p = b_.CreateFAdd(expm1_core(r), number(x, 1));
  V scale = floats(b_.CreateShl(
      b_.CreateAdd(b_.CreateFreeze(b_.CreateFPToSI(n, integer(x, 0)->getType())), integer(x, 127)), integer(x, 23)));
  V large = fma(b_.CreateFNeg(p), scale, number(x, 1));
  large = b_.CreateBinaryIntrinsic(in::copysign, large, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, number(x, 0.925)), small, large);
}

llvm::Value* VectorMath::ldexp(V x, V n) {
  // Scales in three steps: one factor for the first part of n, two for the rest, each a normal number. Beyond twice the
  // exponent range all results are zero or infinite.
  const bool wide = is_double(x);
  const int mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  llvm::Type* type = with_lanes(wide ? b_.getInt64Ty() : b_.getInt32Ty(), lanes_of(x));
  auto value = [&](int64_t v) { return llvm::ConstantInt::getSigned(type, v); };
  auto clamped = [&](V v, int64_t limit) {
    return b_.CreateBinaryIntrinsic(in::smin, b_.CreateBinaryIntrinsic(in::smax, v, value(-limit)), value(limit));
  };
  auto power = [&](V e) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(e, value(bias)), value(mantissa)), x->getType());
  };
  V all = clamped(wide ? b_.CreateSExt(n, type) : n, 2 * bias + mantissa + 3);
  V first = clamped(all, bias - 1);
  V rest = b_.CreateSub(all, first);
  V half = b_.CreateAShr(rest, value(1));
  V scaled = b_.CreateFMul(x, power(first));
  V far = b_.CreateFMul(b_.CreateFMul(scaled, power(half)), power(b_.CreateSub(rest, half)));
  return b_.CreateSelect(b_.CreateICmpEQ(rest, value(0)), scaled, far);
}

llvm::Value* VectorMath::pow(V x, V y) {
  // |x|^y = 2^(y * log2|x|) in double, whose 29 additional bits cover the error growth by y * log2|x| <= 150.
  llvm::Type* f64 = with_lanes(b_.getDoubleTy(), lanes_of(x));
  llvm::Type* i64 = with_lanes(b_.getInt64Ty(), lanes_of(x));
  auto i64_of = [&](int64_t v) { return llvm::ConstantInt::getSigned(i64, v); };
  V a = b_.CreateFPExt(unary(in::fabs, x), f64);  // float subnormals are normal in double
  V d = b_.CreateFPExt(y, f64);
  constexpr int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  V i = b_.CreateSub(b_.CreateBitCast(a, i64), i64_of(kSqrtHalf));
  V e32 = b_.CreateTrunc(b_.CreateAShr(i, i64_of(52)), integer(x, 0)->getType());
  V e = b_.CreateSIToFP(e32, f64);
  V m = b_.CreateBitCast(b_.CreateAdd(b_.CreateAnd(i, i64_of(0xfffffffffffff)), i64_of(kSqrtHalf)), f64);
  V s = b_.CreateFDiv(b_.CreateFSub(m, number(m, 1)), b_.CreateFAdd(m, number(m, 1)));
  V log2 = fma(s, horner(b_.CreateFMul(s, s), kLog2Double, std::size(kLog2Double)), e);
  V z = b_.CreateFMul(d, log2);
  z = above(below(z, 300.0), -300.0);
  V n = unary(in::rint, z);
  V p = horner(b_.CreateFSub(z, n), kExp2Double, std::size(kExp2Double));
  V n64 = b_.CreateSExt(b_.CreateFreeze(b_.CreateFPToSI(n, integer(x, 0)->getType())), i64);
  V scale = b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n64, i64_of(1023)), i64_of(52)), f64);
  V result = b_.CreateFPTrunc(b_.CreateFMul(p, scale), x->getType());

  V zero = number(x, 0), one = number(x, 1), inf = number(x, kInf);
  V y_whole = b_.CreateFCmpOEQ(unary(in::trunc, y), y);
  V half = b_.CreateFMul(y, number(y, 0.5));
  V y_odd = b_.CreateAnd(y_whole, b_.CreateFCmpUNE(unary(in::trunc, half), half));
  V negative = b_.CreateICmpSLT(bits(x), integer(x, 0));
  V ax = unary(in::fabs, x), ay = unary(in::fabs, y);
  // Zero or infinite base, then infinite exponent: 0 or infinity, depending on whether the power grows.
  V base_edge = b_.CreateOr(b_.CreateFCmpOEQ(ax, zero), b_.CreateFCmpOEQ(ax, inf));
  V grows = b_.CreateXor(b_.CreateFCmpOEQ(ax, inf), b_.CreateFCmpOLT(y, zero));
  result = b_.CreateSelect(base_edge, b_.CreateSelect(grows, inf, zero), result);
  V y_inf = b_.CreateFCmpOEQ(ay, inf);
  V y_grows = b_.CreateXor(b_.CreateFCmpOGT(ax, one), b_.CreateFCmpOLT(y, zero));
  V y_edge = b_.CreateSelect(b_.CreateFCmpOEQ(ax, one), one, b_.CreateSelect(y_grows, inf, zero));
  result = b_.CreateSelect(y_inf, y_edge, result);
  result = b_.CreateSelect(b_.CreateAnd(negative, y_odd), b_.CreateFNeg(result), result);
  V no_root = b_.CreateAnd(b_.CreateAnd(b_.CreateFCmpOLT(x, zero), b_.CreateFCmpOGT(x, number(x, -kInf))),
                           b_.CreateNot(b_.CreateOr(y_whole, y_inf)));
  result = nan_where(b_.CreateOr(no_root, b_.CreateFCmpUNO(x, y)), result);
  V is_one = b_.CreateOr(b_.CreateFCmpOEQ(y, zero), b_.CreateFCmpOEQ(x, one));
  return b_.CreateSelect(is_one, one, result);
}

llvm::Value* VectorMath::libm(const char* name, V a, V b) {
  llvm::Type* element = a->getType()->getScalarType();
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  std::vector<llvm::Type*> types(b ? 2 : 1, element);
  llvm::FunctionCallee callee = module->getOrInsertFunction(std::string(name) + (element->isFloatTy() ? "f" : ""),
                                                            llvm::FunctionType::get(element, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();  // errno is not used
  function->setWillReturn();
  auto call = [&](V x, V y) { return b ? b_.CreateCall(callee, {x, y}) : b_.CreateCall(callee, {x}); };
  if (lanes_of(a) == 1) return call(a, b);
  V out = llvm::PoisonValue::get(a->getType());
  for (int i = 0; i < lanes_of(a); ++i)
    out = b_.CreateInsertElement(out, call(b_.CreateExtractElement(a, i), b ? b_.CreateExtractElement(b, i) : nullptr),
                                 i);
  return out;
}

llvm::Value* VectorMath::emit(Intrinsic op, V const* a) {
  V x = a[0];
  const bool single = !is_double(x);
  switch (op) {
    case Intrinsic::k_fma:
      return fma(a[0], a[1], a[2]);
    case Intrinsic::k_exp:
      return single ? exp(x) : double_exp(x);
    case Intrinsic::k_log:
      return single ? log(x) : double_log(x);
    case Intrinsic::k_sqrt:
      return unary(in::sqrt, x);
    case Intrinsic::k_rsqrt:
      return b_.CreateFDiv(number(x, 1), unary(in::sqrt, x));
    case Intrinsic::k_tanh:
      return single ? tanh(x) : double_tanh(x);
    case Intrinsic::k_erf:
      return single ? erf(x) : double_erf(x);
    case Intrinsic::k_sigmoid:
      return single ? sigmoid(x) : double_sigmoid(x);
    case Intrinsic::k_pow:
      return single ? pow(x, a[1]) : libm("pow", x, a[1]);
    case Intrinsic::k_floor:
      return unary(in::floor, x);
    case Intrinsic::k_ceil:
      return unary(in::ceil, x);
    case Intrinsic::k_round:
      return unary(in::rint, x);  // half to even: the rounding mode is never changed
    case Intrinsic::k_trunc:
      return unary(in::trunc, x);
    case Intrinsic::k_fabs:
      return unary(in::fabs, x);
    case Intrinsic::k_sin:
      return trigonometric(x, Trigonometric::kSin);
    case Intrinsic::k_cos:
      return trigonometric(x, Trigonometric::kCos);
    case Intrinsic::k_tan:
      return trigonometric(x, Trigonometric::kTan);
    case Intrinsic::k_asin:
      return asin(x);
    case Intrinsic::k_acos:
      return acos(x);
    case Intrinsic::k_atan:
      return atan(x);
    case Intrinsic::k_sinh:
      return sinh(x);
    case Intrinsic::k_cosh:
      return cosh(x);
    case Intrinsic::k_asinh:
      return asinh(x);
    case Intrinsic::k_acosh:
      return acosh(x);
    case Intrinsic::k_atanh:
      return atanh(x);
    case Intrinsic::k_exp2:
      return single ? exp2(x) : double_exp2(x);
    case Intrinsic::k_log2:
      if (!single) return double_log2(x);
      return log_scaled(x, static_cast<float>(kLog2e), kLog2e - static_cast<float>(kLog2e), 1, 0);
    case Intrinsic::k_log10: {
      if (!single) return double_log10(x);
      constexpr double kLog10e = 0.43429448190325182765, kLog10Two = 0.30102999566398119521;
      constexpr double kTwoHi = 0x1.344p-2;  // 11 significant bits: its product with the exponent is exact
      return log_scaled(x, static_cast<float>(kLog10e), kLog10e - static_cast<float>(kLog10e), kTwoHi,
                        kLog10Two - kTwoHi);
    }
    case Intrinsic::k_log1p:
      return log1p(x);
    case Intrinsic::k_fmod:
      return fmod(x, a[1]);
    case Intrinsic::k_copysign:
      return b_.CreateBinaryIntrinsic(in::copysign, x, a[1]);
    case Intrinsic::k_isnan:
      return b_.CreateFCmpUNO(x, x);
    case Intrinsic::k_isinf:
      return b_.CreateFCmpOEQ(unary(in::fabs, x), number(x, kInf));
    case Intrinsic::k_isfinite:
      return b_.CreateFCmpONE(unary(in::fabs, x), number(x, kInf));
    case Intrinsic::k_ldexp_int:
      return ldexp(x, a[1]);
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
  return nullptr;
}

}  // namespace tilewright::codegen
