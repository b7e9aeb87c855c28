// SPDX-License-Identifier: Apache-2.0
// Functions of floats, by the C library.
#include <algorithm>
#include <cmath>

#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

struct MathOf {
  static double exp(double a, double) { return std::exp(a); }
  static double log(double a, double) { return std::log(a); }
  static double sqrt(double a, double) { return std::sqrt(a); }
  static double rsqrt(double a, double) { return 1 / std::sqrt(a); }
  static double tanh(double a, double) { return std::tanh(a); }
  static double erf(double a, double) { return std::erf(a); }
  static double sigmoid(double a, double) { return 1 / (1 + std::exp(-a)); }
  static double floor(double a, double) { return std::floor(a); }
  static double ceil(double a, double) { return std::ceil(a); }
  static double round(double a, double) { return std::rint(a); }  // halves to even, which no one changes
  static double trunc(double a, double) { return std::trunc(a); }
  static double fabs(double a, double) { return std::fabs(a); }
  static double sin(double a, double) { return std::sin(a); }
  static double cos(double a, double) { return std::cos(a); }
  static double tan(double a, double) { return std::tan(a); }
  static double asin(double a, double) { return std::asin(a); }
  static double acos(double a, double) { return std::acos(a); }
  static double atan(double a, double) { return std::atan(a); }
  static double sinh(double a, double) { return std::sinh(a); }
  static double cosh(double a, double) { return std::cosh(a); }
  static double asinh(double a, double) { return std::asinh(a); }
  static double acosh(double a, double) { return std::acosh(a); }
  static double atanh(double a, double) { return std::atanh(a); }
  static double exp2(double a, double) { return std::exp2(a); }
  static double log2(double a, double) { return std::log2(a); }
  static double log10(double a, double) { return std::log10(a); }
  static double pow(double a, double b) { return std::pow(a, b); }
  static double fmod(double a, double b) { return std::fmod(a, b); }
  static double copysign(double a, double b) { return std::copysign(a, b); }
  static double log1p(double a, double) { return std::log1p(a); }
};

constexpr double (*kFunctions[])(double, double) = {
#define TW_MATH(name) MathOf::name,
    TW_STACKVM_MATH(TW_MATH)
#undef TW_MATH
};

// Those of float32 as well in double and rounded: half of the functions, and nearer to the exact result.
template <class T>
const Step* function(State& s, const Step* step) {
  auto* f = kFunctions[static_cast<size_t>(step->value)];
  T* to = s.at<T>(step->to);
  const T *a = s.at<T>(step->a), *b = s.at<T>(step->b);
  for (unsigned i = 0; i < step->lanes; ++i)
    to[i] = static_cast<T>(f(static_cast<double>(a[i]), static_cast<double>(b[i])));
  return step + 1;
}

template <class T>
const Step* scale(State& s, const Step* step) {
  T* to = s.at<T>(step->to);
  const T* a = s.at<T>(step->a);
  const int64_t* b = s.at<int64_t>(step->b);
  for (unsigned i = 0; i < step->lanes; ++i)
    to[i] = std::ldexp(a[i], static_cast<int>(std::clamp<int64_t>(b[i], -4000, 4000)));
  return step + 1;
}

template <class T>
const Step* classify(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const T* a = s.at<T>(step->a);
  for (unsigned i = 0; i < step->lanes; ++i)
    to[i] = step->value == 0 ? std::isnan(a[i]) : step->value == 1 ? std::isinf(a[i]) : std::isfinite(a[i]);
  return step + 1;
}

}  // namespace

Handler math_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kMathF:
      return function<float>;
    case Op::kMathD:
      return function<double>;
    case Op::kLdexpF:
      return scale<float>;
    case Op::kLdexpD:
      return scale<double>;
    case Op::kClassF:
      return classify<float>;
    case Op::kClassD:
      return classify<double>;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::stackvm
