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
#include "codegen/llvm/types.h"
#include "codegen/math_coefficients.h"

namespace tilewright::codegen {
namespace {

namespace in = llvm::Intrinsic;
using tir::Intrinsic;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 1.4426950408889634074, kLn2 = 0.69314718055994530942;
// ln2 in two pieces: the first has 9 trailing zero bits in float32, so that its product with |n| < 512 is exact.
constexpr double kLn2Hi = 0x1.62ep-1, kLn2Lo = kLn2 - kLn2Hi;
constexpr int64_t kBias = 127;  // of a float's exponent

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

// Half as long a chain of products, for one product more: the odd powers apart from the even ones.
llvm::Value* VectorMath::by_halves(V x, const float* c, int n) {
  V square = b_.CreateFMul(x, x);
  auto half = [&](int first) {
    int i = n - 1 - (n - 1 - first) % 2;
    V p = number(x, c[i]);
    for (i -= 2; i >= 0; i -= 2) p = fma(p, square, number(x, c[i]));
    return p;
  };
  V odd = half(1);
  return fma(odd, x, half(0));
}

llvm::Value* VectorMath::below(V x, double limit) {
  V l = number(x, limit);
  return b_.CreateSelect(b_.CreateFCmpOLT(l, x), l, x);  // minps(limit, x): keeps a NaN in x
}
llvm::Value* VectorMath::above(V x, double limit) {
  V l = number(x, limit);
  return b_.CreateSelect(b_.CreateFCmpOGT(l, x), l, x);
}

llvm::Value* VectorMath::with_sign(V magnitude, V x) {
  V sign = b_.CreateAnd(bits(x), integer(x, int64_t{1} << 31));
  return floats(b_.CreateOr(bits(magnitude), sign));
}

llvm::Value* VectorMath::nan_where(V condition, V x) {
  return b_.CreateSelect(condition, number(x, std::numeric_limits<double>::quiet_NaN()), x);
}

llvm::Value* VectorMath::nearest(V x, double scale, int64_t bias, V* n) {
  // Adding 1.5 * 2^23 removes a float's fraction: what is left are the low bits of an integer, and no conversion is
  // needed.
  V shift = number(x, 0x1.8p23 + static_cast<double>(bias));
  V whole = scale == 1 ? b_.CreateFAdd(x, shift) : fma(x, number(x, scale), shift);
  *n = b_.CreateFSub(whole, shift);
  return bits(whole);
}

llvm::Value* VectorMath::power_of_two(V biased) {
  return floats(b_.CreateShl(biased, llvm::ConstantInt::get(biased->getType(), 23)));
}

llvm::Value* VectorMath::times_power_of_two(V x, V twice_biased) {
  // Two factors, each a normal number: only the last product rounds, into the subnormal range or to infinity. What
  // `nearest` leaves above n's bits is a multiple of 2^22, which both shifts drop.
  V first = b_.CreateLShr(twice_biased, integer(x, 1)), second = b_.CreateSub(twice_biased, first);
  return b_.CreateFMul(b_.CreateFMul(x, power_of_two(first)), power_of_two(second));
}

llvm::Value* VectorMath::exp_remainder(V x, V n) { return fma(n, number(x, -kLn2Lo), fma(n, number(x, -kLn2Hi), x)); }

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
  V n, whole = nearest(x, kLog2e, 2 * kBias, &n);
  V p = b_.CreateFAdd(expm1_core(exp_remainder(x, n)), number(x, 1));
  if (V scaled = has_scalef_ ? scalef(b_, p, n) : nullptr) return scaled;
  return times_power_of_two(p, whole);
}

llvm::Value* VectorMath::exp_nonpositive(V x) {
  // One factor: where n is -127 its bits are those of zero.
  x = above(x, -88.0);
  V n, whole = nearest(x, kLog2e, kBias, &n);
  V p = b_.CreateFAdd(expm1_core(exp_remainder(x, n)), number(x, 1));
  return b_.CreateFMul(p, power_of_two(whole));
}

llvm::Value* VectorMath::exp2(V x) {
  x = above(below(x, 129.0), -151.0);
  V n, whole = nearest(x, 1, 2 * kBias, &n);
  V r = b_.CreateFSub(x, n);
  V p = fma(r, horner(r, kExp2Tail, std::size(kExp2Tail)), number(x, 1));
  if (V scaled = has_scalef_ ? scalef(b_, p, n) : nullptr) return scaled;
  return times_power_of_two(p, whole);
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

llvm::Value* VectorMath::tanh(V x) {
  // (e^2a - 1) / (e^2a + 1) with e^2a = 2^n + 2^n (e^r - 1): near zero n is 0 and r is 2a itself, so that the numerator
  // keeps its relative precision there. The denominator is the rounded numerator's plus 2: far out their errors cancel.
  V a = unary(in::fabs, x);
  V twice = below(b_.CreateFAdd(a, a), 19.0);  // from 18.03 on the result rounds to 1
  V n, power = power_of_two(nearest(twice, kLog2e, kBias, &n));
  V r = fma(n, number(x, -kLn2), twice);
  V numerator = fma(expm1_core(r), power, b_.CreateFSub(power, number(x, 1)));
  return with_sign(b_.CreateFDiv(numerator, b_.CreateFAdd(numerator, number(x, 2))), x);
}

llvm::Value* VectorMath::sigmoid_divisor(V x) {
  // 1 + 2^(-x log2 e) with 2^n apart from the rest, whose rounding is then a fraction of the sum's. Below -89 the sum
  // is infinite, since the result would be subnormal: n stops, but the remainder grows on; beyond 60 the power is
  // nothing.
  if (!has_fma_) return b_.CreateFAdd(exp(b_.CreateFNeg(x)), number(x, 1));
  constexpr double kHi = -static_cast<double>(static_cast<float>(kLog2e)), kLo = -kLog2e - kHi;
  constexpr double kShift = 0x1.8p23 + kBias;
  x = below(x, 60.0);
  V whole = below(fma(x, number(x, kHi), number(x, kShift)), kShift + 127);
  V n = b_.CreateFSub(whole, number(x, kShift)), power = power_of_two(bits(whole));
  V r = fma(x, number(x, kLo), fma(x, number(x, kHi), b_.CreateFNeg(n)));
  V q = b_.CreateFMul(r, horner(r, kExp2Tail, std::size(kExp2Tail)));
  return b_.CreateFAdd(fma(q, power, number(x, 1)), power);
}

llvm::Value* VectorMath::sigmoid(V x) { return b_.CreateFDiv(number(x, 1), sigmoid_divisor(x)); }

llvm::Value* VectorMath::silu(V x) { return b_.CreateFDiv(x, sigmoid_divisor(x)); }

llvm::Value* VectorMath::erf(V x) {
  V a = unary(in::fabs, x);
  V t = b_.CreateFMul(x, x);
  V small = fma(x, horner(t, kErfSmall, std::size(kErfSmall)), x);
  // 1 - 2^(log2(erfc a)); from 3.95 on it rounds to 1.
  V c = below(a, 3.95);
  V l = by_halves(c, kErfcLog2, std::size(kErfcLog2));
  V n, scale = power_of_two(nearest(l, 1, kBias, &n));
  V r = b_.CreateFSub(l, n);
  V p = fma(r, horner(r, kExp2Short, std::size(kExp2Short)), number(x, 1));
  V large = fma(b_.CreateFNeg(p), scale, number(x, 1));
  return b_.CreateSelect(b_.CreateFCmpOLT(a, number(x, 0.925)), small, with_sign(large, x));
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
    case Intrinsic::k_exp_nonpositive:
      return single ? exp_nonpositive(x) : double_exp(x);
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
      return single ? pow(x, a[1]) : double_pow(x, a[1]);
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
