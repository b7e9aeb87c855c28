// SPDX-License-Identifier: Apache-2.0
// Vector math against the double functions of the C library, in units of the last place of float32.
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/library.h"

namespace tilewright::codegen {
namespace {

using namespace tir;

struct Function {
  const char* name;
  Intrinsic op;
  double (*exact)(double);
  double low, high, ulps;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }

// The ranges reach past where results over- or underflow.
const Function kFunctions[] = {
    {"exp", Intrinsic::k_exp, std::exp, -110, 95, 1.5},
    {"exp_nonpositive", Intrinsic::k_exp_nonpositive, std::exp, -87.3, 0, 1.5},
    {"exp2", Intrinsic::k_exp2, std::exp2, -155, 130, 1.5},
    {"log", Intrinsic::k_log, std::log, 1e-45, 3e38, 1.5},
    {"log_near_one", Intrinsic::k_log, std::log, 0.5, 2, 1.5},
    {"log2", Intrinsic::k_log2, std::log2, 0.4, 2.5, 2},
    {"log2_wide", Intrinsic::k_log2, std::log2, 1e-45, 3e38, 2},
    {"log10", Intrinsic::k_log10, std::log10, 0.4, 20, 2},
    {"log10_wide", Intrinsic::k_log10, std::log10, 1e-45, 3e38, 2},
    {"log1p", Intrinsic::k_log1p, std::log1p, -0.999, 10, 2},
    {"log1p_small", Intrinsic::k_log1p, std::log1p, 1e-37, 1, 2},
    {"log1p_wide", Intrinsic::k_log1p, std::log1p, 1, 3e38, 2},
    {"tanh", Intrinsic::k_tanh, std::tanh, -12, 12, 2.5},
    {"tanh_middle", Intrinsic::k_tanh, std::tanh, 0.05, 0.8, 2.5},
    {"tanh_small", Intrinsic::k_tanh, std::tanh, -1e-3, 1e-3, 2.5},
    {"erf", Intrinsic::k_erf, std::erf, -5, 5, 2},
    {"sigmoid", Intrinsic::k_sigmoid, sigmoid, -85, 85, 2},
    {"sin", Intrinsic::k_sin, std::sin, -30, 30, 2},
    {"sin_far", Intrinsic::k_sin, std::sin, -40000, 40000, 2},
    {"cos", Intrinsic::k_cos, std::cos, -30, 30, 2},
    {"cos_far", Intrinsic::k_cos, std::cos, -40000, 40000, 2},
    {"rsqrt", Intrinsic::k_rsqrt, rsqrt, 1e-30, 1e30, 1.5},
    {"tan", Intrinsic::k_tan, std::tan, -10, 10, 3},
    {"asin", Intrinsic::k_asin, std::asin, -1, 1, 3},
    {"acos", Intrinsic::k_acos, std::acos, -1, 1, 2},
    {"atan", Intrinsic::k_atan, std::atan, -50, 50, 2},
    {"sinh", Intrinsic::k_sinh, std::sinh, -80, 80, 3},
    {"sinh_near", Intrinsic::k_sinh, std::sinh, -2, 2, 3},
    {"cosh", Intrinsic::k_cosh, std::cosh, -80, 80, 2},
    {"asinh", Intrinsic::k_asinh, std::asinh, -1e4, 1e4, 3},
    {"asinh_near", Intrinsic::k_asinh, std::asinh, -1, 1, 3},
    {"acosh_near", Intrinsic::k_acosh, std::acosh, 1, 1.5, 3},
    {"tan_far", Intrinsic::k_tan, std::tan, -40000, 40000, 3},
    {"acosh", Intrinsic::k_acosh, std::acosh, 1, 1e4, 3},
    {"atanh", Intrinsic::k_atanh, std::atanh, -0.999, 0.999, 3},
};

// Distance in units of the last place of a float with the exact value's exponent; subnormals share the smallest unit.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(got) || std::fabs(exact) >= 0x1.ffffffp127)
    return std::isinf(got) && std::fabs(exact) > 0x1.fffffep127 && (got > 0) == (exact > 0) ? 0
           : got == exact                                                                   ? 0
                                                                                            : 1e9;
  const int exponent = std::max(-126, std::ilogb(exact == 0 ? 1e-300 : exact));
  return std::fabs(got - exact) / std::ldexp(1.0, exponent - 23);
}

std::vector<float> sweep(const Function& f, int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  std::mt19937 random(5);
  const bool log_scale = f.low > 0 && f.high / f.low > 1e6;
  for (size_t i = 0; i < x.size(); ++i) {
    const double t = (static_cast<double>(i) + random() / 4294967296.0) / static_cast<double>(n);
    x[i] = static_cast<float>(log_scale ? std::exp(std::log(f.low) + t * (std::log(f.high) - std::log(f.low)))
                                        : f.low + t * (f.high - f.low));
  }
  return x;
}

TEST(Math, DenseSweeps) {
  constexpr int64_t n = 1 << 18;
  for (const Target& target : targets()) {
    const int lanes = target.vector_bits / 32;
    std::vector<PrimFunc> kernels;
    for (const Function& f : kFunctions)
      kernels.push_back(
          elementwise(f.name, {kFloat32}, kFloat32, n, lanes, [&](auto v) { return intrinsic(f.op, {v[0]}); }));
    Library library(kernels, target);
    // Without fma the products of the polynomials round too.
    const double slack = target.vector_bits < 256 ? 1.5 : 1;
    for (size_t k = 0; k < kernels.size(); ++k) {
      const Function& f = kFunctions[k];
      Aligned<float> in(n), out(n);
      std::vector<float> x = sweep(f, n);
      std::copy(x.begin(), x.end(), in.data);
      library.run(k, {in.data, out.data});
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < in.size; ++i)
        if (double e = ulps(out[i], f.exact(in[i])); e > worst) worst = e, where = i;
      EXPECT_LE(worst, f.ulps * slack) << f.name << " on " << target.mcpu << " at " << in[where] << ": " << out[where]
                                       << " for " << f.exact(in[where]);
      RecordProperty(std::string(f.name) + "_" + target.mcpu, std::to_string(worst));
      if (getenv("TW_PRINT_ULPS")) printf("%-14s %-10s %.2f ulp\n", f.name, target.mcpu.c_str(), worst);
    }
  }
}

// Every exponent of float32, both signs, 128 mantissas each: nothing goes wrong between the ranges of the dense sweeps.
TEST(Math, EveryExponent) {
  constexpr size_t n = 2 * 254 * 128;
  Aligned<float> in(n), out(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t exponent = static_cast<uint32_t>(i / 128 % 254 + 1),
                   mantissa = static_cast<uint32_t>(i % 128 * 66053 + i / 128 % 509);
    const uint32_t bits = (i / 128 / 254 ? 0x80000000u : 0u) | exponent << 23 | (mantissa & 0x7fffff);
    std::memcpy(&in.data[i], &bits, 4);
  }
  for (const Target& target : targets()) {
    const double slack = target.vector_bits < 256 ? 1.5 : 1;
    std::vector<const Function*> functions;
    std::vector<PrimFunc> kernels;
    for (const Function& f : kFunctions) {
      if (std::strchr(f.name, '_')) continue;  // another range of a function that is there
      functions.push_back(&f);
      kernels.push_back(elementwise(f.name, {kFloat32}, kFloat32, n, target.vector_bits / 32,
                                    [&](auto v) { return intrinsic(f.op, {v[0]}); }));
    }
    Library library(kernels, target);
    for (size_t k = 0; k < kernels.size(); ++k) {
      const Function& f = *functions[k];
      library.run(k, {in.data, out.data});
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < n; ++i) {
        const double exact = f.exact(in[i]);
        // Below the normal numbers a result may be zero.
        const double e = std::fabs(exact) < 0x1p-126 ? (std::fabs(out[i]) <= 0x1p-126f ? 0 : 1e9) : ulps(out[i], exact);
        if (e > worst) worst = e, where = i;
      }
      EXPECT_LE(worst, f.ulps * slack) << f.name << " on " << target.mcpu << " at " << in[where] << ": " << out[where]
                                       << " for " << f.exact(in[where]);
      if (getenv("TW_PRINT_ULPS"))
        printf("%-14s %-10s %.2f ulp over every exponent\n", f.name, target.mcpu.c_str(), worst);
    }
  }
}

TEST(Math, EdgesMatchTheCLibrary) {
  const float inf = INFINITY, nan = NAN, tiny = 0x1p-149f;
  const std::vector<float> edges{
      0,     -0.f, inf,   -inf, nan, tiny, -tiny, 0x1p-126f, -0x1p-126f, 1, -1, 0x1.fffffep127f, -0x1.fffffep127f,
      88.8f, -104, 1e-20f};
  std::vector<PrimFunc> kernels;
  for (const Function& f : kFunctions)
    kernels.push_back(
        elementwise(f.name, {kFloat32}, kFloat32, 16, 16, [&](auto v) { return intrinsic(f.op, {v[0]}); }));
  Library library(kernels);
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Function& f = kFunctions[k];
    Aligned<float> in(16), out(16);
    std::copy(edges.begin(), edges.end(), in.data);
    library.run(k, {in.data, out.data});
    for (size_t i = 0; i < 16; ++i) {
      const double want = f.exact(in[i]);
      if (f.op == Intrinsic::k_exp_nonpositive && in[i] > 0) continue;  // not what it is for
      if (f.op == Intrinsic::k_sigmoid && in[i] < -88) {                // documented: zero instead of subnormal
        EXPECT_LE(out[i], 1e-37f);
        continue;
      }
      EXPECT_LE(ulps(out[i], want), 4) << f.name << "(" << in[i] << ") gave " << out[i] << ", wanted " << want;
      if (want == 0) {
        EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << f.name << "(" << in[i] << ")";
      }
    }
  }
}

// x * sigmoid(x) is x by the sigmoid's divisor: as exact as the sigmoid, and 0 where that is.
TEST(Math, Silu) {
  constexpr int64_t n = 1 << 17;
  const Function f{"silu", Intrinsic::k_sigmoid, [](double x) { return x / (1 + std::exp(-x)); }, -80, 85, 2};
  for (const Target& target : targets()) {
    Library library(
        {elementwise("silu", {kFloat32}, kFloat32, n, target.vector_bits / 32,
                     [](auto v) { return binary(ExprKind::kMul, v[0], intrinsic(Intrinsic::k_sigmoid, {v[0]})); })},
        target);
    Aligned<float> in(n), out(n);
    std::vector<float> x = sweep(f, n);
    std::copy(x.begin(), x.end(), in.data);
    const float edges[] = {0, -0.f, 1e30f, -1e30f, INFINITY, NAN};
    std::copy(std::begin(edges), std::end(edges), in.data);
    library.run(0, {in.data, out.data});
    const float wanted[] = {0, 0, 1e30f, 0, INFINITY};
    for (size_t i = 0; i < std::size(wanted); ++i) EXPECT_EQ(out[i], wanted[i]) << edges[i];
    EXPECT_TRUE(std::isnan(out[5]));
    double worst = 0;
    for (size_t i = std::size(edges); i < in.size; ++i) worst = std::max(worst, ulps(out[i], f.exact(in[i])));
    EXPECT_LE(worst, target.vector_bits < 256 ? 3 : 2) << target.mcpu;
    if (getenv("TW_PRINT_ULPS")) printf("silu %s %.2f ulp\n", target.mcpu.c_str(), worst);
  }
}

TEST(Math, Pow) {
  const float inf = INFINITY, nan = NAN;
  std::vector<float> values{0,    -0.f, 1,    -1,    2,     -2,     0.5f,      -0.5f,      3,  -3,     inf,
                            -inf, nan,  2.5f, -2.5f, 1e30f, 1e-30f, 0x1p-140f, 16777217.f, -7, 0.3333f};
  std::vector<float> x, y;
  for (float a : values)
    for (float b : values) x.push_back(a), y.push_back(b);
  std::mt19937 random(9);
  while (x.size() < (1 << 18)) {
    x.push_back(std::ldexp(1 + random() / 4294967296.f, static_cast<int>(random() % 40) - 20));
    y.push_back((static_cast<float>(random()) / 2147483648.f - 1) * (random() % 3 ? 4 : 40));
  }
  const auto n = static_cast<int64_t>(x.size());
  Aligned<float> a(x.size()), b(x.size()), out(x.size());
  std::copy(x.begin(), x.end(), a.data), std::copy(y.begin(), y.end(), b.data);
  for (const Target& target : targets()) {
    Library library({elementwise("power", {kFloat32, kFloat32}, kFloat32, n, target.vector_bits / 32,
                                 [](auto v) {
                                   return intrinsic(Intrinsic::k_pow, {v[0], v[1]});
                                 })},
                    target);
    library.run(0, {a.data, b.data, out.data});
    double worst = 0;
    for (size_t i = 0; i < out.size; ++i) {
      const double want = std::pow(double(a[i]), double(b[i]));
      const double e = ulps(out[i], want);
      worst = std::max(worst, e);
      ASSERT_LE(e, 1) << "pow(" << a[i] << ", " << b[i] << ") gave " << out[i] << ", wanted " << want << " on "
                      << target.mcpu;
    }
    if (getenv("TW_PRINT_ULPS")) printf("pow %s %.2f ulp\n", target.mcpu.c_str(), worst);
  }
}

template <class T>
void ldexp_matches(DataType dtype) {
  std::vector<T> xs{1,
                    T(-1.5),
                    T(0.1),
                    0,
                    std::numeric_limits<T>::denorm_min(),
                    std::numeric_limits<T>::max(),
                    std::numeric_limits<T>::infinity(),
                    std::numeric_limits<T>::min()};
  std::vector<int> ns{0,    1,   -1,   100,  -100,  126,  127,   128,  -126,  -127,      -149,      200,
                      -200, 277, -277, 1000, -1000, 1074, -1074, 2098, -2098, INT32_MAX, INT32_MIN, 31};
  const auto n = static_cast<int64_t>(xs.size() * ns.size());
  Library library({elementwise("scaled", {dtype, kInt32}, dtype, n, 8, [](auto v) {
    return intrinsic(Intrinsic::k_ldexp_int, {v[0], v[1]});
  })});
  Aligned<T> x(static_cast<size_t>(n)), out(static_cast<size_t>(n));
  Aligned<int32_t> e(static_cast<size_t>(n));
  size_t k = 0;
  for (T a : xs)
    for (int b : ns) x[k] = a, e[k++] = b;
  library.run(0, {x.data, e.data, out.data});
  for (size_t i = 0; i < k; ++i) {
    const T want = std::ldexp(x[i], e[i]);
    // Two roundings at the subnormal edge may differ by one unit.
    if (std::isinf(want)) {
      EXPECT_EQ(out[i], want) << x[i] << " " << e[i];
      continue;
    }
    const bool subnormal = std::fabs(want) < std::numeric_limits<T>::min();
    EXPECT_LE(std::fabs(out[i] - want), subnormal ? std::numeric_limits<T>::denorm_min() : T(0)) << x[i] << " " << e[i];
  }
}
TEST(Math, LdexpFloat) { ldexp_matches<float>(kFloat32); }
TEST(Math, LdexpDouble) { ldexp_matches<double>(kFloat64); }

TEST(Math, DoubleAndSmallFloats) {
  std::vector<PrimFunc> kernels{
      elementwise("exp64", {kFloat64}, kFloat64, 16, 8, [](auto v) { return intrinsic(Intrinsic::k_exp, {v[0]}); }),
      elementwise("sig64", {kFloat64}, kFloat64, 16, 8, [](auto v) { return intrinsic(Intrinsic::k_sigmoid, {v[0]}); }),
      elementwise("tanh16", {kFloat16}, kFloat32, 16, 16,
                  [](auto v) { return cast(kFloat32, intrinsic(Intrinsic::k_tanh, {v[0]})); })};
  Library library(kernels);
  Aligned<double> x(16), y(16);
  for (size_t i = 0; i < 16; ++i) x[i] = static_cast<double>(i) * 1.25 - 9;
  library.run(0, {x.data, y.data});
  for (size_t i = 0; i < 16; ++i) EXPECT_DOUBLE_EQ(y[i], std::exp(x[i]));
  library.run(1, {x.data, y.data});
  for (size_t i = 0; i < 16; ++i) EXPECT_DOUBLE_EQ(y[i], sigmoid(x[i]));
  Aligned<uint16_t> half(16, 0x3800);  // 0.5
  Aligned<float> out(16);
  library.run(2, {half.data, out.data});
  EXPECT_NEAR(out[7], std::tanh(0.5), 3e-4);
}

}  // namespace
}  // namespace tilewright::codegen
