// SPDX-License-Identifier: Apache-2.0
// Vector math in double against the long double functions of the C library, in units of the last place.
#include <cmath>
#include <limits>
#include <random>

#include "codegen/library.h"

namespace tilewright::codegen {
namespace {

using namespace tir;

struct DoubleFunction {
  const char* name;
  Intrinsic op;
  long double (*exact)(long double);
  double low, high, ulps;
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

// The ranges reach past where results over- or underflow.
const DoubleFunction kDoubleFunctions[] = {
    {"exp", Intrinsic::k_exp, std::exp, -750, 712, 1.5},
    {"exp_near", Intrinsic::k_exp, std::exp, -1, 1, 1.5},
    {"exp2", Intrinsic::k_exp2, std::exp2, -1080, 1026, 1.5},
    {"log", Intrinsic::k_log, std::log, 1e-320, 1e308, 1.5},
    {"log_near_one", Intrinsic::k_log, std::log, 0.5, 2, 1.5},
    {"log2", Intrinsic::k_log2, std::log2, 0.4, 2.5, 2},
    {"log2_wide", Intrinsic::k_log2, std::log2, 1e-320, 1e308, 2},
    {"log10", Intrinsic::k_log10, std::log10, 0.4, 20, 2},
    {"log10_wide", Intrinsic::k_log10, std::log10, 1e-320, 1e308, 2},
    {"log1p", Intrinsic::k_log1p, std::log1p, -0.999, 10, 2},
    {"log1p_small", Intrinsic::k_log1p, std::log1p, 1e-300, 1, 2},
    {"log1p_wide", Intrinsic::k_log1p, std::log1p, 1, 1e308, 2},
    {"tanh", Intrinsic::k_tanh, std::tanh, -25, 25, 2},
    {"tanh_middle", Intrinsic::k_tanh, std::tanh, 0.3, 0.8, 2},
    {"tanh_small", Intrinsic::k_tanh, std::tanh, -1e-3, 1e-3, 2},
    {"erf", Intrinsic::k_erf, std::erf, -7, 7, 2},
    {"erf_middle", Intrinsic::k_erf, std::erf, 0.8, 1.3, 2},
    {"sigmoid", Intrinsic::k_sigmoid, sigmoid, -700, 700, 3},
    {"sigmoid_near", Intrinsic::k_sigmoid, sigmoid, -4, 4, 2},
    {"sin", Intrinsic::k_sin, std::sin, -30, 30, 2},
    {"sin_far", Intrinsic::k_sin, std::sin, -1e6, 1e6, 2.5},
    {"cos", Intrinsic::k_cos, std::cos, -30, 30, 2},
    {"cos_far", Intrinsic::k_cos, std::cos, -2e6, 2e6, 2.5},
    {"tan", Intrinsic::k_tan, std::tan, -10, 10, 3},
    {"asin", Intrinsic::k_asin, std::asin, -1, 1, 3},
    {"acos", Intrinsic::k_acos, std::acos, -1, 1, 2},
    {"atan", Intrinsic::k_atan, std::atan, -50, 50, 2},
    {"sinh", Intrinsic::k_sinh, std::sinh, -711, 711, 3},
    {"sinh_near", Intrinsic::k_sinh, std::sinh, -2, 2, 3},
    {"cosh", Intrinsic::k_cosh, std::cosh, -711, 711, 2},
    {"asinh", Intrinsic::k_asinh, std::asinh, -1e4, 1e4, 3},
    {"asinh_near", Intrinsic::k_asinh, std::asinh, -1, 1, 3},
    {"asinh_wide", Intrinsic::k_asinh, std::asinh, 1e-300, 1e300, 3},
    {"acosh", Intrinsic::k_acosh, std::acosh, 1, 1e4, 3},
    {"acosh_near", Intrinsic::k_acosh, std::acosh, 1, 1.5, 3},
    {"atanh", Intrinsic::k_atanh, std::atanh, -0.9999, 0.9999, 3},
    {"atanh_small", Intrinsic::k_atanh, std::atanh, -1e-3, 1e-3, 3},
};

// Distance in units of the last place of a double with the exact value's exponent; subnormals share the smallest unit.
double ulps(double got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(got) || std::fabs(exact) > std::numeric_limits<double>::max())
    return std::isinf(got) && std::fabs(exact) >= std::numeric_limits<double>::max() && (got > 0) == (exact > 0) ? 0
                                                                                                                 : 1e9;
  const int exponent = std::max(-1022, std::ilogb(exact == 0 ? 1e-4000L : exact));
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 52));
}

TEST(MathDouble, DenseSweeps) {
  constexpr int64_t n = 1 << 15;
  for (const Target& target : targets()) {
    std::vector<PrimFunc> kernels;
    for (const DoubleFunction& f : kDoubleFunctions)
      kernels.push_back(elementwise(std::string("tw_") + f.name, {kFloat64}, kFloat64, n, target.vector_bits / 64,
                                    [&](auto v) { return intrinsic(f.op, {v[0]}); }));
    Library library(kernels, target);
    // Without fma the products of the polynomials round too.
    const double slack = target.vector_bits < 256 ? 1.5 : 1;
    for (size_t k = 0; k < kernels.size(); ++k) {
      const DoubleFunction& f = kDoubleFunctions[k];
      Aligned<double> in(n), out(n);
      std::mt19937_64 random(5);
      const bool log_scale = f.low > 0 && f.high / f.low > 1e6;
      for (size_t i = 0; i < in.size; ++i) {
        const double t =
            (static_cast<double>(i) + static_cast<double>(random() >> 11) * 0x1p-53) / static_cast<double>(n);
        in.data[i] = log_scale ? std::exp(std::log(f.low) + t * (std::log(f.high) - std::log(f.low)))
                               : f.low + t * (f.high - f.low);
      }
      library.run(k, {in.data, out.data});
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < in.size; ++i)
        if (double e = ulps(out[i], f.exact(in[i])); e > worst) worst = e, where = i;
      EXPECT_LE(worst, f.ulps * slack) << f.name << " on " << target.mcpu << " at " << in[where] << ": " << out[where]
                                       << " for " << static_cast<double>(f.exact(in[where]));
      if (getenv("TW_PRINT_ULPS")) printf("%-14s %-10s %.2f ulp\n", f.name, target.mcpu.c_str(), worst);
    }
  }
}

TEST(MathDouble, EdgesMatchTheCLibrary) {
  const double inf = INFINITY, nan = NAN, tiny = 0x1p-1074;
  const std::vector<double> edges{0,          -0., inf, -inf,     nan,       tiny, -tiny, 0x1p-1022,
                                  -0x1p-1022, 1,   -1,  0x1p1023, -0x1p1023, 1e-9, 710.3, -745};
  for (const Target& target : targets()) {
    std::vector<PrimFunc> kernels;
    for (const DoubleFunction& f : kDoubleFunctions)
      kernels.push_back(elementwise(std::string("tw_") + f.name, {kFloat64}, kFloat64, 16, target.vector_bits / 64,
                                    [&](auto v) { return intrinsic(f.op, {v[0]}); }));
    Library library(kernels, target);
    for (size_t k = 0; k < kernels.size(); ++k) {
      const DoubleFunction& f = kDoubleFunctions[k];
      Aligned<double> in(16), out(16);
      std::copy(edges.begin(), edges.end(), in.data);
      library.run(k, {in.data, out.data});
      for (size_t i = 0; i < 16; ++i) {
        const long double want = f.exact(in[i]);
        EXPECT_LE(ulps(out[i], want), 4) << f.name << "(" << in[i] << ") gave " << out[i] << " on " << target.mcpu;
        if (want == 0) {
          EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << f.name << "(" << in[i] << ")";
        }
      }
    }
  }
}

// Bases and exponents of all sizes whose powers are in range and near its ends, with the edges of both: each edge once
// in a vector of common numbers too.
TEST(MathDouble, Powers) {
  const double inf = INFINITY, tiny = 0x1p-1074, most = std::numeric_limits<double>::max();
  const std::vector<double> edges{0,     -0.,         1,           -1,     inf,         -inf,  NAN,    tiny,
                                  -tiny, most,        -most,       2,      -2,          3,     -3,     0.5,
                                  -0.5,  1 + 0x1p-52, 1 - 0x1p-53, 0x1p53, -0x1p53 - 2, 1e300, -1e300, 0x1p-1022};
  std::vector<double> xs, ys;
  for (double a : edges)
    for (double b : edges) {
      xs.insert(xs.end(), {a, 1.5, a, 0.75}), ys.insert(ys.end(), {b, b, 3, 2.25});
    }
  std::mt19937_64 random(11);
  auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  while (xs.size() < (1 << 16)) {
    const int kind = static_cast<int>(random() % 4);
    const double x = kind == 0   ? std::ldexp(0.5 + unit(), static_cast<int>(random() % 2000) - 1000)
                     : kind == 1 ? 1 + (unit() - 0.5) * std::ldexp(1, -static_cast<int>(random() % 40))
                                 : 0.01 + 8 * unit();
    const double far = 720 / std::fabs(std::log(x)), y = (2 * unit() - 1) * (random() % 2 ? far : std::fmin(far, 5));
    xs.push_back(kind == 3 ? -x : x), ys.push_back(kind == 3 ? std::trunc(y) : y);
  }
  const auto n = static_cast<int64_t>(xs.size());
  Aligned<double> x(xs.size()), y(xs.size()), out(xs.size());
  std::copy(xs.begin(), xs.end(), x.data), std::copy(ys.begin(), ys.end(), y.data);
  for (const Target& target : targets()) {
    Library library({elementwise("tw_pow", {kFloat64, kFloat64}, kFloat64, n, target.vector_bits / 64,
                                 [](auto v) {
                                   return intrinsic(Intrinsic::k_pow, {v[0], v[1]});
                                 })},
                    target);
    library.run(0, {x.data, y.data, out.data});
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      const long double want = std::pow(static_cast<long double>(xs[i]), static_cast<long double>(ys[i]));
      if (want == 0) {
        EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << "pow(" << xs[i] << ", " << ys[i] << ")";
      }
      if (double e = ulps(out[i], want); e > worst) worst = e, where = i;
    }
    EXPECT_LE(worst, 1.5) << "pow(" << xs[where] << ", " << ys[where] << ") gave " << out[where] << " on "
                          << target.mcpu;
    if (getenv("TW_PRINT_ULPS")) printf("pow            %-10s %.2f ulp\n", target.mcpu.c_str(), worst);
  }
}

// The remainder is exact: no tolerance.
template <class T>
void remainders_match(DataType dtype) {
  const T inf = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max(),
          least = std::numeric_limits<T>::min(), tiny = std::numeric_limits<T>::denorm_min();
  const std::vector<T> edges{0,   T(-0.0), 1,    -1,    3,    T(0.1), T(-0.7), 7,       T(1e9),
                             inf, -inf,    most, least, tiny, T(NAN), T(5.5),  T(1e20), T(1e-20)};
  std::vector<T> xs, ys;
  for (T a : edges)
    for (T b : edges) xs.push_back(a), ys.push_back(b);
  std::mt19937_64 random(3);
  while (xs.size() < (1 << 14)) {
    auto number = [&](int range) {
      return static_cast<T>(std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                       static_cast<int>(random() % static_cast<uint64_t>(range)) - range / 2) *
                            (random() % 2 ? 1 : -1));
    };
    // Half of them whole multiples or their neighbours, where a quotient is on the edge.
    const T y = number(12);
    const T x =
        random() % 2 ? number(40) : std::nextafter(y * static_cast<T>(random() % 100000), random() % 2 ? inf : -inf);
    xs.push_back(x), ys.push_back(y);
  }
  const auto n = static_cast<int64_t>(xs.size());
  Aligned<T> x(xs.size()), y(xs.size()), out(xs.size());
  std::copy(xs.begin(), xs.end(), x.data), std::copy(ys.begin(), ys.end(), y.data);
  for (const Target& target : targets()) {
    Library library({elementwise("tw_remainder", {dtype, dtype}, dtype, n, target.vector_bits / dtype.bits,
                                 [](auto v) {
                                   return intrinsic(Intrinsic::k_fmod, {v[0], v[1]});
                                 })},
                    target);
    library.run(0, {x.data, y.data, out.data});
    for (size_t i = 0; i < xs.size(); ++i) {
      const T want = std::fmod(xs[i], ys[i]);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(out[i]) : out[i] == want && std::signbit(out[i]) == std::signbit(want))
          << "fmod(" << xs[i] << ", " << ys[i] << ") gave " << out[i] << ", not " << want << " on " << target.mcpu;
    }
  }
}
TEST(MathDouble, RemaindersAreExact) {
  remainders_match<float>(kFloat32);
  remainders_match<double>(kFloat64);
}

}  // namespace
}  // namespace tilewright::codegen
