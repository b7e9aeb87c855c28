// SPDX-License-Identifier: Apache-2.0
// Special functions, computed in float64 by series, asymptotic series and continued fractions.
#include <cmath>
#include <utility>
#include <vector>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace special {
namespace {

// Arithmetic on float64 expressions.
struct Real {
  NodeContext* c;
  Expr e;
  Real of(double v) const { return {c, c->scalar(v, kFloat64)}; }
  Real call(const char* op) const { return {c, c->call(op, {e})}; }
};
Real operator+(const Real& a, const Real& b) { return {a.c, a.c->add(a.e, b.e)}; }
Real operator-(const Real& a, const Real& b) { return {a.c, a.c->sub(a.e, b.e)}; }
Real operator*(const Real& a, const Real& b) { return {a.c, a.c->mul(a.e, b.e)}; }
Real operator/(const Real& a, const Real& b) { return {a.c, a.c->div(a.e, b.e)}; }
Real operator+(const Real& a, double b) { return a + a.of(b); }
Real operator-(const Real& a, double b) { return a - a.of(b); }
Real operator*(const Real& a, double b) { return a * a.of(b); }
Real operator/(const Real& a, double b) { return a / a.of(b); }
Real operator/(double a, const Real& b) { return b.of(a) / b; }
Real operator-(double a, const Real& b) { return b.of(a) - b; }
Real operator-(const Real& a) { return a.call("negative"); }

struct Truth {
  NodeContext* c;
  Expr e;
  Real choose(const Real& yes, const Real& no) const { return {c, c->where(e, yes.e, no.e)}; }
};
Truth operator<(const Real& a, double b) { return {a.c, a.c->call("less", {a.e, a.of(b).e})}; }
Truth operator==(const Real& a, double b) { return {a.c, a.c->call("equal", {a.e, a.of(b).e})}; }
Real least(const Real& a, double b) { return {a.c, a.c->call("minimum", {a.e, a.of(b).e})}; }
Real most(const Real& a, double b) { return {a.c, a.c->call("maximum", {a.e, a.of(b).e})}; }
Real log(const Real& a) { return a.call("log"); }
Real exp(const Real& a) { return a.call("exp"); }
Real sqrt(const Real& a) { return a.call("sqrt"); }
Real abs(const Real& a) { return a.call("abs"); }

Real argument(NodeContext& c) { return {&c, c.cast(c.tensor("self"), kFloat64)}; }
Values as_given(NodeContext& c, const Real& r) {
  const DataType dtype = c.dtype(c.tensor("self"));
  return {c.cast(r.e, dtype.is_float() ? dtype : kFloat32)};
}

// ---- the gamma function

constexpr int kShift = 8;  // Stirling's series is taken this far to the right

// log(gamma(x)) of x >= 0.5: by Stirling's series beyond kShift, and what lies between by the recurrence.
Real log_gamma_right(const Real& x) {
  const Truth small = x < kShift;
  const Real low = least(x, kShift);
  Real product = low;
  for (int i = 1; i < kShift; ++i) product = product * (low + i);
  const Real z = small.choose(x + kShift, x), inverse = 1 / z, square = inverse * inverse;
  Real series = square.of(1.0 / 1188);
  for (const double term : {-1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12}) series = series * square + term;
  const Real stirling = (z - 0.5) * log(z) - z + 0.5 * std::log(2 * M_PI) + series * inverse;
  return small.choose(stirling - log(product), stirling);
}
// By the reflection formula to the left of 0.5.
Real log_gamma(const Real& x) {
  const Truth left = x < 0.5;
  const Real right = log_gamma_right(left.choose(1 - x, x));
  const Real turn = x - x.call("floor");  // the sine of a large argument has lost its fraction
  const Real reflected = std::log(M_PI) - log(abs((turn * M_PI).call("sin"))) - right;
  const Truth endless{x.c, x.c->call("isinf", {x.e})};
  return endless.choose(x.of(HUGE_VAL), left.choose(reflected, right));
}
Values lgamma(NodeContext& c) { return as_given(c, log_gamma(argument(c))); }
// Of p dimensions.
Values mvlgamma(NodeContext& c) {
  const int64_t p = c.integer("p");
  if (p < 1 || p > 64) c.unsupported(format("{} dimensions", p));
  const Real x = argument(c);
  Real sum = x.of(0.25 * std::log(M_PI) * static_cast<double>(p * (p - 1)));
  for (int64_t i = 0; i < p; ++i) sum = sum + log_gamma(x - 0.5 * static_cast<double>(i));
  return as_given(c, sum);
}
Real psi(const Real& x) {
  const Truth left = x < 0.5;
  const Real right = left.choose(1 - x, x), low = least(right, kShift);
  Real steps = 1 / low;
  for (int i = 1; i < kShift; ++i) steps = steps + 1 / (low + i);
  const Truth small = right < kShift;
  const Real z = small.choose(right + kShift, right), square = 1 / (z * z);
  Real series = square.of(-1.0 / 132);
  for (const double term : {1.0 / 240, -1.0 / 252, 1.0 / 120, -1.0 / 12}) series = series * square + term;
  const Real far = log(z) - 0.5 / z + series * square;
  const Real value = small.choose(far - steps, far);
  const Real turn = (x - x.call("floor")) * M_PI;
  return left.choose(value - turn.call("cos") * M_PI / turn.call("sin"), value);
}
Values digamma(NodeContext& c) {
  const Real x = argument(c);
  const Truth at_zero = x == 0;
  return as_given(c, at_zero.choose(x.of(-HUGE_VAL), psi(x)));
}
// The sum over k >= 0 of (x + k)^-s for x >= 0.5, by Euler's and Maclaurin's formula (DLMF 25.11.28).
Real hurwitz_zeta(int64_t s, const Real& x) {
  const auto power = static_cast<double>(s);
  auto inverse = [&](const Real& y) { return Real{y.c, y.c->call("power", {y.e, y.of(-power).e})}; };
  const int64_t steps = 12 + s;
  Real sum = inverse(x);
  for (int64_t k = 1; k < steps; ++k) sum = sum + inverse(x + static_cast<double>(k));
  const Real z = x + static_cast<double>(steps), square = 1 / (z * z);
  // Bernoulli's numbers over factorials, times s (s + 1) ... (s + 2j - 2).
  Real series = z.of(0);
  double rising = power;
  Real way = 1 / z;
  double j = 1;
  for (const double term : {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160}) {
    series = series + way * (term * rising);
    way = way * square;
    rising *= (power + 2 * j - 1) * (power + 2 * j);
    ++j;
  }
  return sum + inverse(z) * (z / (power - 1) + 0.5 + series);
}
// The n-th derivative of pi cot(pi x), a polynomial in the cotangent.
Real cotangent_derivative(int64_t n, const Real& x) {
  std::vector<double> factors = {0, M_PI};
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> next(factors.size() + 1);
    for (size_t k = 1; k < factors.size(); ++k) {
      const double slope = -M_PI * static_cast<double>(k) * factors[k];
      next[k - 1] += slope;
      next[k + 1] += slope;
    }
    factors = std::move(next);
  }
  const Real turn = (x - x.call("floor")) * M_PI, cotangent = turn.call("cos") / turn.call("sin");
  Real sum = x.of(0);
  for (size_t k = factors.size(); k-- > 0;) sum = sum * cotangent + factors[k];
  return sum;
}
// Derivatives of digamma; by reflection to the left of 0.5.
Values polygamma(NodeContext& c) {
  const int64_t n = c.integer("n");
  if (n == 0) return digamma(c);
  constexpr int64_t kMostDerivatives = 20;
  if (n < 0 || n > kMostDerivatives) c.unsupported(format("derivative {} of the digamma function", n));
  const Real x = argument(c);
  const double sign = n % 2 == 0 ? -1 : 1;
  const Truth left = x < 0.5, whole{x.c, c.call("equal", {x.e, x.call("floor").e})};
  const Real right = hurwitz_zeta(n + 1, left.choose(1 - x, x)) * std::tgamma(static_cast<double>(n + 1));
  const Real reflected = whole.choose(x.of(sign * HUGE_VAL), -right - cotangent_derivative(n, x));
  return as_given(c, left.choose(reflected, right * sign));
}

// ---- modified Bessel functions of the first kind

constexpr double kFar = 16;  // beyond it the asymptotic series is exact to 1e-13
constexpr int kTerms = 42, kFarTerms = 14;

// Times exp(-|x|) if `scaled`.
template <int kOrder, bool kScaled>
Values bessel(NodeContext& c) {
  const Real x = argument(c), size = abs(x);
  const Real near = least(size, kFar), far = most(size, kFar), t = near * near * 0.25;
  Real sum = x.of(1);
  for (int k = kTerms; k >= 1; --k) sum = sum * t / (1.0 * k * (k + kOrder)) + 1;
  if (kOrder == 1) sum = sum * near * 0.5;
  Real tail = x.of(1);
  for (int k = kFarTerms; k >= 1; --k)
    tail = tail * ((2.0 * k - 1) * (2.0 * k - 1) - 4.0 * kOrder) / (far * (8.0 * k)) + 1;
  tail = tail / sqrt(far * (2 * M_PI));
  if (kScaled)
    sum = sum * exp(-near);
  else
    tail = tail * exp(far);
  const Real value = (size < kFar).choose(sum, tail);
  return as_given(c, kOrder == 1 ? value * x.call("sign") : value);
}

// ---- the complementary error function and the normal distribution

// exp(x * x) * erfc(x) of x >= 2, by a continued fraction.
Real scaled_tail(const Real& x) {
  Real below = x;
  for (int k = 40; k >= 1; --k) below = x + (0.5 * k) / below;
  return (1 / std::sqrt(M_PI)) / below;
}
Real complement(const Real& x) {
  const Real far = most(x, 2);
  return (x < 2).choose(1 - x.call("erf"), exp(-(far * far)) * scaled_tail(far));
}
Real scaled_complement(const Real& x) {
  const Real near = least(x, 2);
  return (x < 2).choose(exp(near * near) * (1 - near.call("erf")), scaled_tail(most(x, 2)));
}
Values erfc(NodeContext& c) { return as_given(c, complement(argument(c))); }
Values erfcx(NodeContext& c) { return as_given(c, scaled_complement(argument(c))); }
Values normal(NodeContext& c) { return as_given(c, complement(argument(c) * -std::sqrt(0.5)) * 0.5); }
Values log_normal(NodeContext& c) {
  const Real x = argument(c), low = least(x, -1);
  const Real tail = log(scaled_complement(low * -std::sqrt(0.5)) * 0.5) - low * low * 0.5;
  return as_given(c, (x < -1).choose(tail, log(complement(most(x, -1) * -std::sqrt(0.5)) * 0.5)));
}

// ---- others

Values entropy(NodeContext& c) {
  const Real x = argument(c);
  return as_given(c, (x == 0).choose(x.of(0), (x < 0).choose(x.of(-HUGE_VAL), -x * log(x))));
}
Values log_add_exp2(NodeContext& c) {
  const Real a = argument(c), b{&c, c.cast(c.tensor("other"), kFloat64)};
  const Real larger{&c, c.call("maximum", {a.e, b.e})}, apart = abs(a - b);
  const Truth same{&c, c.call("equal", {a.e, b.e})};  // two infinities have no difference
  const Real value = larger + log(exp(apart * -std::log(2.0)) + 1) / std::log(2.0);
  return as_given(c, same.choose(a + 1, value));
}
Values float_power(NodeContext& c) {
  auto wide = [&](const Value& v) { return c.cast(v.expr, kFloat64); };
  return {c.call("power", {wide(c.positional(0)), wide(c.positional(1))})};
}

constexpr ConverterEntry kTable[] = {
    {"aten.lgamma", lgamma},
    {"aten.special_gammaln", lgamma},
    {"aten.mvlgamma", mvlgamma},
    {"aten.special_multigammaln", mvlgamma},
    {"aten.digamma", digamma},
    {"aten.special_digamma", digamma},
    {"aten.special_psi", digamma},
    {"aten.polygamma", polygamma},
    {"aten.special_polygamma", polygamma},
    {"aten.i0", bessel<0, false>},
    {"aten.special_i0", bessel<0, false>},
    {"aten.special_i0e", bessel<0, true>},
    {"aten.special_i1", bessel<1, false>},
    {"aten.special_i1e", bessel<1, true>},
    {"aten.special_modified_bessel_i0", bessel<0, false>},
    {"aten.special_modified_bessel_i1", bessel<1, false>},
    {"aten.erfc", erfc},
    {"aten.special_erfc", erfc},
    {"aten.special_erfcx", erfcx},
    {"aten.special_ndtr", normal},
    {"aten.special_log_ndtr", log_normal},
    {"aten.special_entr", entropy},
    {"aten.logaddexp2", log_add_exp2},
    {"aten.float_power", float_power},
};

}  // namespace
}  // namespace special

std::span<const ConverterEntry> special_converters() { return special::kTable; }

}  // namespace tilewright::torch
