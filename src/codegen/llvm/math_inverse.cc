// SPDX-License-Identifier: Apache-2.0
// Trigonometric, hyperbolic and inverse functions in float32 and double: reduction to short intervals around zero, then
// odd polynomials (tools/fit_vector_math).
#include <llvm/IR/IRBuilder.h>

#include <iterator>
#include <limits>
#include <span>

#include "codegen/llvm/math.h"
#include "codegen/llvm/types.h"
#include "codegen/math_coefficients.h"

namespace tilewright::codegen {
namespace {

namespace in = llvm::Intrinsic;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi2 = 1.57079632679489661923, kPi2DoubleLow = 0x1.1a62633145c07p-54;

bool is_double(llvm::Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

// Splits a constant into the sum of two numbers of x's type.
std::pair<double, double> in_two(llvm::Value* x, double value, double low) {
  if (is_double(x)) return {value, low};
  const double hi = static_cast<float>(value);
  return {hi, value - hi};
}

}  // namespace

llvm::Value* VectorMath::odd(V x, V t, std::span<const float> single, std::span<const double> wide) {
  V p = is_double(x) ? horner(t, wide.data(), static_cast<int>(wide.size()))
                     : horner(t, single.data(), static_cast<int>(single.size()));
  return fma(b_.CreateFMul(x, t), p, x);
}

llvm::Value* VectorMath::trigonometric(V x, Trigonometric which) {
  // Cody-Waite reduction by pi/2 is accurate below a limit; beyond it, and for infinities, libm is called.
  const double limit = is_double(x) ? 1e6 : 32768;
  V a = unary(in::fabs, x);
  V far = b_.CreateFCmpUGE(a, number(x, limit));
  constexpr const char* kNames[] = {"sin", "cos", "tan"};
  return with_fallback(far, kNames[static_cast<int>(which)], x, nullptr, [&] { return near_zero(x, which); });
}

llvm::Value* VectorMath::near_zero(V x, Trigonometric which) {
  const bool wide = is_double(x);
  V n = unary(in::rint, b_.CreateFMul(x, number(x, 1 / kPi2)));
  // pi/2 as a sum of pieces that exceeds double precision. With fma they can have full length; without it every product
  // but the last must be exact: 9 bits for n < 2^15. In double they are always short: 33 bits for n < 2^20.
  constexpr double kFma[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  constexpr double kShort[] = {0x1.92p+0, 0x1.fbp-12, 0x1.51p-22, 0x1.0bp-34, 0x1.184698p-44};
  constexpr double kDouble[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
  V r = x;
  for (double piece : wide       ? std::span<const double>(kDouble)
                      : has_fma_ ? std::span<const double>(kFma)
                                 : std::span<const double>(kShort))
    r = fma(n, number(x, -piece), r);
  V q = b_.CreateFreeze(b_.CreateFPToSI(n, integer(x, 0)->getType()));
  if (which == Trigonometric::kCos) q = b_.CreateAdd(q, integer(x, 1));
  V t = b_.CreateFMul(r, r);
  V sine = odd(r, t, kSinTail, kSinDouble);
  V tail = wide ? horner(t, kCosDouble, std::size(kCosDouble)) : horner(t, kCosTail, std::size(kCosTail));
  tail = fma(tail, b_.CreateFMul(t, t), b_.CreateFMul(t, number(x, -0.5)));
  V cosine = b_.CreateFAdd(tail, number(x, 1));
  V is_odd = b_.CreateICmpNE(b_.CreateAnd(q, integer(x, 1)), integer(x, 0));
  V fast = b_.CreateSelect(is_odd, cosine, sine);
  V negative = b_.CreateICmpNE(b_.CreateAnd(q, integer(x, 2)), integer(x, 0));
  if (which == Trigonometric::kTan) {
    fast = b_.CreateFDiv(fast, b_.CreateSelect(is_odd, sine, cosine));
    negative = is_odd;
  }
  fast = b_.CreateSelect(negative, b_.CreateFNeg(fast), fast);
  if (which != Trigonometric::kCos) fast = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(x, 0)), x, fast);  // keeps -0
  return fast;
}

llvm::Value* VectorMath::with_fallback(V uncommon, const char* name, V x, V y, const std::function<V()>& common) {
  V any = lanes_of(x) == 1 ? uncommon : b_.CreateOrReduce(uncommon);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(b_.getContext(), label, function); };
  llvm::BasicBlock *near_block = block("math.near"), *far_block = block("math.far"), *done = block("math.done");
  b_.CreateCondBr(any, far_block, near_block);
  b_.SetInsertPoint(far_block);
  V slow = libm(name, x, y);
  far_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(near_block);
  V fast = common();
  near_block = b_.GetInsertBlock();
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(x->getType(), 2);
  result->addIncoming(slow, far_block);
  result->addIncoming(fast, near_block);
  return result;
}

llvm::Value* VectorMath::fmod(V x, V y) {
  // x - q * y is exact for the integral quotient q and its neighbours; below 2^51 a quotient rounded in double is one
  // of these. Everything else, including division by zero and infinities, goes to libm.
  if (!has_fma_) return libm("fmod", x, y);
  llvm::Type* f64 = with_lanes(b_.getDoubleTy(), lanes_of(x));
  V a = is_double(x) ? x : b_.CreateFPExt(x, f64), b = is_double(y) ? y : b_.CreateFPExt(y, f64);
  V quotient = b_.CreateFDiv(a, b);
  V size = unary(in::fabs, b), far = b_.CreateFCmpUGE(unary(in::fabs, quotient), number(a, 0x1p51));
  far = b_.CreateOr(far, b_.CreateFCmpOLT(size, number(a, 0x1p-900)));  // products would be inexact
  far = b_.CreateOr(far, b_.CreateFCmpUGE(size, number(a, 0x1p1000)));
  return with_fallback(far, "fmod", x, y, [&]() -> V {
    V r = fma(b_.CreateFNeg(unary(in::trunc, quotient)), b, a);
    // The result has x's sign: if the quotient was rounded up, the remainder is too small by one divisor.
    V toward = b_.CreateBinaryIntrinsic(in::copysign, size, a);
    V crossed =
        b_.CreateFCmpOLT(b_.CreateFMul(r, b_.CreateBinaryIntrinsic(in::copysign, number(a, 1), a)), number(a, 0));
    r = b_.CreateSelect(crossed, b_.CreateFAdd(r, toward), r);
    r = b_.CreateSelect(b_.CreateFCmpOGE(unary(in::fabs, r), size), b_.CreateFSub(r, toward), r);
    r = b_.CreateBinaryIntrinsic(in::copysign, r, a);
    return is_double(x) ? r : b_.CreateFPTrunc(r, x->getType());
  });
}

llvm::Value* VectorMath::atan(V x) {
  V a = unary(in::fabs, x), one = number(x, 1);
  const auto [right, right_low] = in_two(x, kPi2, kPi2DoubleLow);
  if (!is_double(x)) {
    // atan(a) = pi/2 + atan(-1/a)
    V far = b_.CreateFCmpOGT(a, one);
    V z = b_.CreateSelect(far, b_.CreateFDiv(number(x, -1), a), a);
    V p = odd(z, b_.CreateFMul(z, z), kAtan, kAtanDouble);
    V turned = b_.CreateFAdd(b_.CreateFAdd(p, number(x, right_low)), number(x, right));
    return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(far, turned, p), x);
  }
  // Three ranges about tan(pi/8) and tan(3 pi/8), one quotient: atan(a) = pi/4 + atan((a - 1) / (a + 1)).
  V far = b_.CreateFCmpOGT(a, number(x, 2.414213562373095)),
    middle = b_.CreateFCmpOGT(a, number(x, 0.41421356237309503));
  V quotient = b_.CreateFDiv(b_.CreateSelect(far, number(x, -1), b_.CreateFSub(a, one)),
                             b_.CreateSelect(far, a, b_.CreateFAdd(a, one)));
  V z = b_.CreateSelect(middle, quotient, a);
  V p = odd(z, b_.CreateFMul(z, z), kAtan, kAtanDouble);
  V base = b_.CreateSelect(far, number(x, right), number(x, right / 2)),
    low = b_.CreateSelect(far, number(x, right_low), number(x, right_low / 2));
  V turned = b_.CreateFAdd(base, b_.CreateFAdd(p, low));
  return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(middle, turned, p), x);
}

llvm::Value* VectorMath::asin_half(V x, V* within) {
  // Up to 1/2 by the series; above, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)), whose radicand is exact.
  V a = unary(in::fabs, x);
  *within = b_.CreateFCmpOLE(a, number(x, 0.5));
  V half = b_.CreateFMul(b_.CreateFSub(number(x, 1), a), number(x, 0.5));
  V t = b_.CreateSelect(*within, b_.CreateFMul(a, a), half);
  V s = b_.CreateSelect(*within, a, unary(in::sqrt, half));
  return odd(s, t, kAsin, kAsinDouble);
}

llvm::Value* VectorMath::asin(V x) {
  const auto [right, right_low] = in_two(x, kPi2, kPi2DoubleLow);
  V within, p = asin_half(x, &within);
  V far = b_.CreateFSub(number(x, right), b_.CreateFSub(b_.CreateFAdd(p, p), number(x, right_low)));
  return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(within, p, far), x);
}

llvm::Value* VectorMath::acos(V x) {
  const auto [right, right_low] = in_two(x, kPi2, kPi2DoubleLow);
  V within, p = asin_half(x, &within);
  V middle = b_.CreateFSub(number(x, right),
                           b_.CreateFSub(b_.CreateBinaryIntrinsic(in::copysign, p, x), number(x, right_low)));
  V twice = b_.CreateFAdd(p, p);
  V turned = b_.CreateFSub(number(x, 2 * right), b_.CreateFSub(twice, number(x, 2 * right_low)));
  V far = b_.CreateSelect(b_.CreateFCmpOLT(x, number(x, 0)), turned, twice);
  return b_.CreateSelect(within, middle, far);
}

llvm::Value* VectorMath::half_exp(V a) {
  // Decreases the exponent instead of halving the power, which may overflow where its half does not.
  if (is_double(a)) {
    V n, p = double_exp_core(below(a, 712.0), &n);
    return double_scaled(p, b_.CreateFSub(n, number(a, 1)));
  }
  a = below(a, 90.0);
  constexpr double kLog2e = 1.4426950408889634074;
  V n, whole = nearest(a, kLog2e, 253, &n);
  return times_power_of_two(b_.CreateFAdd(expm1_core(exp_remainder(a, n)), number(a, 1)), whole);
}

llvm::Value* VectorMath::cosh(V x) {
  V h = half_exp(unary(in::fabs, x));
  return b_.CreateFAdd(h, b_.CreateFDiv(number(x, 0.25), h));
}

llvm::Value* VectorMath::sinh(V x) {
  V a = unary(in::fabs, x), h = half_exp(a);
  V large = b_.CreateFSub(h, b_.CreateFDiv(number(x, 0.25), h));
  V small = odd(a, b_.CreateFMul(a, a), kSinh, kSinhDouble);
  return b_.CreateBinaryIntrinsic(in::copysign, b_.CreateSelect(b_.CreateFCmpOLT(a, number(x, 1)), small, large), x);
}

llvm::Value* VectorMath::log_one_plus(V u, V instead, V argument, double offset) {
  // A first-order correction restores what 1 + u loses; in lanes `instead`, log(argument) + offset.
  V w = b_.CreateFAdd(u, number(u, 1));
  V lost = b_.CreateFDiv(b_.CreateFSub(u, b_.CreateFSub(w, number(u, 1))), w);
  w = b_.CreateSelect(instead, argument, w);
  lost = b_.CreateSelect(instead, number(u, offset), lost);
  return b_.CreateFAdd(is_double(u) ? double_log(w) : log(w), lost);
}

llvm::Value* VectorMath::log1p(V x) {
  V up = b_.CreateFAdd(x, number(x, 1));
  V endless = b_.CreateOr(b_.CreateFCmpOEQ(x, number(x, kInf)), b_.CreateFCmpOEQ(up, number(x, 0)));
  return b_.CreateBinaryIntrinsic(in::copysign, log_one_plus(x, endless, up, 0), x);
}

namespace {
constexpr double kLn2 = 0.69314718055994530942;
// From here on x^2 + 1 rounds to x^2.
double square_is_all(llvm::Value* x) { return is_double(x) ? 0x1p28 : 0x1p13; }
}  // namespace

llvm::Value* VectorMath::asinh(V x) {
  V a = unary(in::fabs, x), t = b_.CreateFMul(a, a);
  V root = unary(in::sqrt, b_.CreateFAdd(t, number(x, 1)));
  V u = b_.CreateFAdd(a, b_.CreateFDiv(t, b_.CreateFAdd(root, number(x, 1))));
  V far = b_.CreateFCmpOGT(a, number(x, square_is_all(x)));
  return b_.CreateBinaryIntrinsic(in::copysign, log_one_plus(u, far, a, kLn2), x);
}

llvm::Value* VectorMath::acosh(V x) {
  V t = b_.CreateFSub(x, number(x, 1));
  V u = b_.CreateFAdd(t, unary(in::sqrt, fma(t, t, b_.CreateFAdd(t, t))));
  V far = b_.CreateFCmpOGT(x, number(x, square_is_all(x)));
  return nan_where(b_.CreateFCmpULT(x, number(x, 1)), log_one_plus(u, far, x, kLn2));
}

llvm::Value* VectorMath::atanh(V x) {
  V a = unary(in::fabs, x);
  V u = b_.CreateFDiv(b_.CreateFAdd(a, a), b_.CreateFSub(number(x, 1), a));
  V infinite = b_.CreateFCmpOEQ(u, number(x, kInf));
  V result = b_.CreateFMul(log_one_plus(u, infinite, u, 0), number(x, 0.5));
  return b_.CreateBinaryIntrinsic(in::copysign, result, x);
}

}  // namespace tilewright::codegen
