// SPDX-License-Identifier: Apache-2.0
// Every kind of expression against plain C++, scalar and vector, on the host and on older CPUs' instructions.
#include <cmath>
#include <cstring>
#include <random>

#include "base/small_float.h"
#include "codegen/library.h"

namespace tilewright::codegen {
namespace {

using namespace tir;
using Loads = std::vector<PrimExpr>;

template <class T>
constexpr DataType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return kFloat64;
  else if constexpr (std::is_same_v<T, bool>)
    return kBool;
  else
    return {std::is_signed_v<T> ? TypeCode::kInt : TypeCode::kUInt, sizeof(T) * 8, 1};
}

template <class T>
T wrap(__int128 v) {
  return static_cast<T>(v);
}

// One case: an expression of two operands and what C++ computes.
template <class T, class R>
struct Case {
  std::string name;
  std::function<PrimExpr(Loads)> make;
  std::function<R(T, T)> expected;
};

template <class T, class R>
void check(const std::vector<Case<T, R>>& cases, std::vector<T> a, std::vector<T> b) {
  constexpr size_t kLanes = 16;
  while (a.size() % kLanes) a.push_back(a[0]), b.push_back(b[0]);
  const auto n = static_cast<int64_t>(a.size());
  Aligned<T> in0(a.size()), in1(a.size());
  std::copy(a.begin(), a.end(), in0.data), std::copy(b.begin(), b.end(), in1.data);
  for (const Target& target : targets()) {
    std::vector<PrimFunc> kernels;
    for (int lanes : {1, 5, 16})
      for (const auto& c : cases)
        kernels.push_back(elementwise(c.name + std::to_string(lanes), {dtype_of<T>(), dtype_of<T>()}, dtype_of<R>(),
                                      n / lanes * lanes, lanes, c.make));
    Library library(kernels, target);
    if (testing::Test::HasFatalFailure()) return;
    size_t k = 0;
    for (int lanes : {1, 5, 16})
      for (const auto& c : cases) {
        Aligned<R> out(a.size());
        library.run(k++, {in0.data, in1.data, out.data});
        for (size_t i = 0; i < a.size() / static_cast<size_t>(lanes) * static_cast<size_t>(lanes); ++i) {
          R want = c.expected(a[i], b[i]);
          bool same = std::memcmp(&out[i], &want, sizeof(R)) == 0;
          if constexpr (std::is_floating_point_v<R>) same |= std::isnan(out[i]) && std::isnan(want);
          ASSERT_TRUE(same) << c.name << " x" << lanes << " on " << target.mcpu << ": (" << +a[i] << ", " << +b[i]
                            << ") gave " << +out[i] << ", wanted " << +want;
        }
      }
  }
}

template <class T>
void integers() {
  std::mt19937_64 random(7);
  std::vector<T> a, b;
  using L = std::numeric_limits<T>;
  for (T x : {T(0), T(1), T(-1), T(7), T(-7), L::max(), L::min(), T(3)})
    for (T y : {T(1), T(2), T(-1), T(5), T(-3), L::max(), L::min(), T(4)}) a.push_back(x), b.push_back(y);
  for (int i = 0; i < 200; ++i) {
    a.push_back(static_cast<T>(random() >> (random() % 60)));
    T y = static_cast<T>(random() >> (random() % 60));
    b.push_back(y == 0 ? T(3) : y);
  }
  auto overflow = [](T x, T y) { return std::is_signed_v<T> && y == T(-1) && x == L::min(); };
  auto binary_case = [](const char* name, ExprKind kind, std::function<T(T, T)> f) {
    return Case<T, T>{name, [kind](Loads v) { return binary(kind, v[0], v[1]); }, f};
  };
  // The undefined quotients are taken out of the data.
  for (size_t i = 0; i < a.size(); ++i)
    if (b[i] == 0) b[i] = T(6);
  for (size_t i = 0; i < a.size(); ++i)
    if (overflow(a[i], b[i])) a[i] = T(9);
  using W = __int128;
  auto floor_div = [](T x, T y) {
    W q = W(x) / y;
    return wrap<T>(W(x) % y != 0 && ((x < 0) != (y < 0)) ? q - 1 : q);
  };
  auto floor_mod = [floor_div](T x, T y) { return wrap<T>(W(x) - W(floor_div(x, y)) * y); };
  check<T, T>(
      {binary_case("add", ExprKind::kAdd, [](T x, T y) { return wrap<T>(W(x) + y); }),
       binary_case("sub", ExprKind::kSub, [](T x, T y) { return wrap<T>(W(x) - y); }),
       binary_case("mul", ExprKind::kMul,
                   [](T x, T y) { return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); }),
       binary_case("div", ExprKind::kDiv, [](T x, T y) { return wrap<T>(W(x) / y); }),
       binary_case("mod", ExprKind::kMod, [](T x, T y) { return wrap<T>(W(x) % y); }),
       binary_case("floordiv", ExprKind::kFloorDiv, floor_div),
       binary_case("floormod", ExprKind::kFloorMod, floor_mod),
       binary_case("min", ExprKind::kMin, [](T x, T y) { return std::min(x, y); }),
       binary_case("max", ExprKind::kMax, [](T x, T y) { return std::max(x, y); }),
       binary_case("and", ExprKind::kBitAnd, [](T x, T y) { return T(x & y); }),
       binary_case("or", ExprKind::kBitOr, [](T x, T y) { return T(x | y); }),
       binary_case("xor", ExprKind::kBitXor, [](T x, T y) { return T(x ^ y); }),
       {"shl", [](Loads v) { return binary(ExprKind::kShiftLeft, v[0], make_int(3, v[0]->dtype)); },
        [](T x, T) { return wrap<T>(W(x) << 3); }},
       {"shr", [](Loads v) { return binary(ExprKind::kShiftRight, v[0], make_int(2, v[0]->dtype)); },
        [](T x, T) { return T(x >> 2); }},
       {"div7", [](Loads v) { return floordiv(v[0], 7); }, [floor_div](T x, T) { return floor_div(x, 7); }},
       {"rest8", [](Loads v) { return binary(ExprKind::kMod, v[0], make_int(8, v[0]->dtype)); },
        [](T x, T) { return wrap<T>(W(x) % 8); }},
       {"mod8", [](Loads v) { return floormod(v[0], 8); }, [floor_mod](T x, T) { return floor_mod(x, 8); }},
       {"select", [](Loads v) { return select(lt(v[0], v[1]), v[0] + v[1], v[1]); },
        [](T x, T y) { return x < y ? wrap<T>(W(x) + y) : y; }},
       {"popcount", [](Loads v) { return intrinsic(Intrinsic::k_popcount, {v[0]}); },
        [](T x, T) { return T(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(x))); }},
       {"clz", [](Loads v) { return intrinsic(Intrinsic::k_clz, {v[0]}); },
        [](T x, T) {
          return T(x == 0 ? sizeof(T) * 8
                          : __builtin_clzll(static_cast<std::make_unsigned_t<T>>(x)) - (64 - sizeof(T) * 8));
        }}},
      a, b);
  auto compare_case = [](const char* name, ExprKind kind, std::function<bool(T, T)> f) {
    return Case<T, bool>{name, [kind](Loads v) { return binary(kind, v[0], v[1]); }, f};
  };
  check<T, bool>({compare_case("eq", ExprKind::kEQ, [](T x, T y) { return x == y; }),
                  compare_case("ne", ExprKind::kNE, [](T x, T y) { return x != y; }),
                  compare_case("lt", ExprKind::kLT, [](T x, T y) { return x < y; }),
                  compare_case("le", ExprKind::kLE, [](T x, T y) { return x <= y; }),
                  compare_case("gt", ExprKind::kGT, [](T x, T y) { return x > y; }),
                  compare_case("ge", ExprKind::kGE, [](T x, T y) { return x >= y; }),
                  {"logic",
                   [](Loads v) {
                     return logical_or(logical_and(lt(v[0], v[1]), ne(v[1], make_int(4, v[1]->dtype))),
                                       logical_not(le(v[0], v[1])));
                   },
                   [](T x, T y) { return (x < y && y != 4) || x > y; }}},
                 a, b);
}

TEST(Expr, Int8) { integers<int8_t>(); }
TEST(Expr, UInt8) { integers<uint8_t>(); }
TEST(Expr, Int16) { integers<int16_t>(); }
TEST(Expr, UInt32) { integers<uint32_t>(); }
TEST(Expr, Int32) { integers<int32_t>(); }
TEST(Expr, Int64) { integers<int64_t>(); }
TEST(Expr, UInt64) { integers<uint64_t>(); }

// Words of halves and of bytes: what kernels for a Cortex-M are made of means the same in machine code.
TEST(Expr, WordsOfHalves) {
  std::mt19937 random(9);
  std::vector<int32_t> a(64), b(64);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int32_t>(random()), b[i] = static_cast<int32_t>(random());
  auto half = [](int32_t word, int shift) { return int32_t{static_cast<int16_t>(word >> shift)}; };
  auto joined = [](int32_t low, int32_t high) {
    return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16);
  };
  auto bytes = [=](int32_t x, int32_t y, int shift) {
    auto byte = [&](int at) { return int32_t{static_cast<int8_t>(y >> (at + shift))}; };
    return joined(half(x, 0) + byte(0), half(x, 16) + byte(16));
  };
  auto two = [](const char* name, Intrinsic op, std::function<int32_t(int32_t, int32_t)> f) {
    return Case<int32_t, int32_t>{name, [op](Loads v) { return intrinsic(op, {v[0], v[1]}); }, f};
  };
  check<int32_t, int32_t>(
      {two("even", Intrinsic::k_even_bytes, [=](int32_t x, int32_t y) { return bytes(x, y, 0); }),
       two("odd", Intrinsic::k_odd_bytes, [=](int32_t x, int32_t y) { return bytes(x, y, 8); }),
       two("low", Intrinsic::k_low_halves, [=](int32_t x, int32_t y) { return joined(x, y); }),
       two("high", Intrinsic::k_high_halves, [=](int32_t x, int32_t y) { return joined(half(x, 16), half(y, 16)); }),
       {"dot4",
        [](Loads v) {
          return intrinsic(Intrinsic::k_dot4, {v[0], v[0], v[1]});
        },
        [](int32_t x, int32_t y) {
          auto sum = static_cast<uint32_t>(x);
          for (int at = 0; at < 32; at += 8)
            sum += static_cast<uint32_t>(int32_t{static_cast<uint8_t>(x >> at)} * static_cast<int8_t>(y >> at));
          return static_cast<int32_t>(sum);
        }},
       {"dot2",
        [](Loads v) {
          return intrinsic(Intrinsic::k_dot2, {v[0], v[0], v[1]});
        },
        [=](int32_t x, int32_t y) {
          return wrap<int32_t>(__int128{x} + int64_t{half(x, 0)} * half(y, 0) + int64_t{half(x, 16)} * half(y, 16));
        }}},
      a, b);
}

// Of whole numbers, whose sums no processor rounds.
TEST(Expr, WordsOfBFloat16) {
  std::mt19937 random(10);
  std::vector<int32_t> a(64), b(64);
  auto bits = [](float x) {
    uint32_t out = 0;
    std::memcpy(&out, &x, sizeof out);
    return out;
  };
  auto word = [&] {
    auto half = [&] { return bits(static_cast<float>(static_cast<int>(random() % 256)) - 128) >> 16; };
    const uint32_t low = half();
    return static_cast<int32_t>(low | half() << 16);
  };
  for (size_t i = 0; i < a.size(); ++i) a[i] = word(), b[i] = word();
  auto half = [](int32_t word, bool high) {
    const uint32_t bits = high ? static_cast<uint32_t>(word) & 0xffff0000U : static_cast<uint32_t>(word) << 16;
    float out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  };
  check<int32_t, float>(
      {{"dot2_bfloat16",
        [](Loads v) {
          const PrimExpr sum = make_const(kFloat32.with_lanes(v[0]->dtype.lanes), 0.5);
          return intrinsic(Intrinsic::k_dot2_bfloat16, {sum, v[0], v[1]});
        },
        [=](int32_t x, int32_t y) { return 0.5F + half(x, false) * half(y, false) + half(x, true) * half(y, true); }}},
      a, b);
}

TEST(Expr, DivisionByZeroDoesNotTrap) {
  auto kernel = elementwise("quotients", {kInt32, kInt32}, kInt32, 16, 1, [](Loads v) {
    return floordiv(v[0], v[1]) + floormod(v[0], v[1]) + div(v[0], v[1]) +
           cast(kInt32, floordiv(cast(kUInt32, v[0]), cast(kUInt32, v[1])));
  });
  Library library({kernel});
  Aligned<int32_t> a(16, INT32_MIN), b(16, 0), out(16);
  for (size_t i = 0; i < 8; ++i) b[i] = -1;
  library.run(0, {a.data, b.data, out.data});
}

template <class T>
void floats() {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN(), kInf = std::numeric_limits<T>::infinity();
  std::vector<T> values{0,      -T(0),  1,       -1,      T(0.5),
                        T(1.5), T(2.5), -T(2.5), T(1e30), -T(1e-30),
                        kInf,   -kInf,  kNan,    T(3.25), std::numeric_limits<T>::denorm_min()};
  std::vector<T> a, b;
  for (T x : values)
    for (T y : values) a.push_back(x), b.push_back(y);
  auto c = [](const char* name, ExprKind kind, auto f) {
    return Case<T, T>{name, [kind](Loads v) { return binary(kind, v[0], v[1]); }, f};
  };
  auto u = [](const char* name, Intrinsic op, auto f) {
    return Case<T, T>{name, [op](Loads v) { return intrinsic(op, {v[0]}); }, [f](T x, T) { return f(x); }};
  };
  check<T, T>({c("add", ExprKind::kAdd, [](T x, T y) { return x + y; }),
               c("sub", ExprKind::kSub, [](T x, T y) { return x - y; }),
               c("mul", ExprKind::kMul, [](T x, T y) { return x * y; }),
               c("div", ExprKind::kDiv, [](T x, T y) { return x / y; }),
               c("min", ExprKind::kMin, [](T x, T y) { return x < y ? x : y; }),
               c("max", ExprKind::kMax, [](T x, T y) { return x > y ? x : y; }),
               u("floor", Intrinsic::k_floor, [](T x) { return std::floor(x); }),
               u("ceil", Intrinsic::k_ceil, [](T x) { return std::ceil(x); }),
               u("round", Intrinsic::k_round, [](T x) { return std::nearbyint(x); }),
               u("trunc", Intrinsic::k_trunc, [](T x) { return std::trunc(x); }),
               u("sqrt", Intrinsic::k_sqrt, [](T x) { return std::sqrt(x); }),
               u("rsqrt", Intrinsic::k_rsqrt, [](T x) { return 1 / std::sqrt(x); }),
               u("fabs", Intrinsic::k_fabs, [](T x) { return std::fabs(x); }),
               {"copysign",
                [](Loads v) {
                  return intrinsic(Intrinsic::k_copysign, {v[0], v[1]});
                },
                [](T x, T y) { return std::copysign(x, y); }},
               {"fmod",
                [](Loads v) {
                  return intrinsic(Intrinsic::k_fmod, {v[0], v[1]});
                },
                [](T x, T y) { return std::fmod(x, y); }}},
              a, b);
  auto t = [](const char* name, ExprKind kind, auto f) {
    return Case<T, bool>{name, [kind](Loads v) { return binary(kind, v[0], v[1]); }, f};
  };
  auto p = [](const char* name, Intrinsic op, auto f) {
    return Case<T, bool>{name, [op](Loads v) { return intrinsic(op, {v[0]}); }, [f](T x, T) { return f(x); }};
  };
  check<T, bool>({t("eq", ExprKind::kEQ, [](T x, T y) { return x == y; }),
                  t("ne", ExprKind::kNE, [](T x, T y) { return x != y; }),
                  t("lt", ExprKind::kLT, [](T x, T y) { return x < y; }),
                  t("ge", ExprKind::kGE, [](T x, T y) { return x >= y; }),
                  p("isnan", Intrinsic::k_isnan, [](T x) { return std::isnan(x); }),
                  p("isinf", Intrinsic::k_isinf, [](T x) { return std::isinf(x); }),
                  p("isfinite", Intrinsic::k_isfinite, [](T x) { return std::isfinite(x); }),
                  {"bool", [](Loads v) { return cast(kBool, v[0]); }, [](T x, T) { return x != 0; }}},
                 a, b);
  auto clean = [](T x) { return std::isfinite(x) && std::fabs(x) < 1e9 ? x : T(-77.75); };
  for (T& x : a) x = clean(x);
  check<T, int32_t>({{"int32", [](Loads v) { return cast(kInt32, v[0]); }, [](T x, T) { return int32_t(x); }}}, a, b);
  check<T, int64_t>({{"int64", [](Loads v) { return cast(kInt64, v[0]); }, [](T x, T) { return int64_t(x); }}}, a, b);
  check<T, int8_t>({{"int8", [](Loads v) { return cast(kInt8, v[0]); }, [](T x, T) { return int8_t(int32_t(x)); }}}, a,
                   b);
  check<T, double>({{"double", [](Loads v) { return cast(kFloat64, v[0]); }, [](T x, T) { return double(x); }}}, a, b);
  check<T, float>({{"float", [](Loads v) { return cast(kFloat32, v[0]); }, [](T x, T) { return float(x); }}}, a, b);
}

TEST(Expr, Float32) { floats<float>(); }
TEST(Expr, Float64) { floats<double>(); }

TEST(Expr, Fma) {
  // 1 + eps squared minus 1: only one rounding keeps eps^2.
  if (!runs_here(host_target()) || host_target().vector_bits < 256) GTEST_SKIP() << "no fma instruction here";
  auto kernel = elementwise("fma3", {kFloat32}, kFloat32, 16, 16,
                            [](Loads v) { return fma(v[0], v[0], make_float(-1, v[0]->dtype)); });
  Library library({kernel});
  Aligned<float> a(16, 1 + 0x1p-20f), out(16);
  library.run(0, {a.data, out.data});
  EXPECT_EQ(out[3], std::fma(a[3], a[3], -1.f));
}

// 16-bit floats: conversions both ways over all bit patterns, and arithmetic rounded after each operation.
TEST(Expr, SmallFloats) {
  for (const Target& target : targets())
    for (DataType small : {kFloat16, kBFloat16}) {
      const SmallFloatFormat format = small == kFloat16 ? kHalfFormat : kBFloatFormat;
      constexpr int64_t n = 65536;
      std::vector<PrimFunc> kernels{
          elementwise("widen", {small}, kFloat32, n, 16, [](Loads v) { return cast(kFloat32, v[0]); }),
          elementwise("narrow", {kFloat32}, small, n, 16, [&](Loads v) { return cast(small, v[0]); }),
          elementwise("narrow_double", {kFloat64}, small, n, 8, [&](Loads v) { return cast(small, v[0]); }),
          elementwise("mul", {small, small}, small, n, 16, [](Loads v) { return v[0] * v[1] + v[0]; }),
          elementwise("from_int", {kInt32}, small, n, 1, [&](Loads v) { return cast(small, v[0]); })};
      Library library(kernels, target);
      Aligned<uint16_t> all(n), other(n), narrowed(n);
      Aligned<float> wide(n);
      Aligned<double> doubles(n);
      Aligned<int32_t> ints(n);
      std::mt19937 random(3);
      for (size_t i = 0; i < n; ++i) all[i] = static_cast<uint16_t>(i), other[i] = static_cast<uint16_t>(random());
      auto same = [](uint16_t got, unsigned want, double value) {
        return got == want || (std::isnan(value) && got != 0);
      };
      library.run(0, {all.data, wide.data});
      for (size_t i = 0; i < n; ++i) {
        double want = small_float_decode(format, all[i]);
        ASSERT_TRUE(wide[i] == want || (std::isnan(want) && std::isnan(wide[i])))
            << target.mcpu << " " << small.str() << " bits " << i;
      }
      for (size_t i = 0; i < n; ++i) {
        uint32_t bits = random();
        if (i % 3 == 0) bits = (bits & 0x87ffffff) | 0x30000000;  // many in half's range
        if (i % 5 == 0) bits = (bits & 0xffffe000) | 0x1000;      // ties
        std::memcpy(&wide[i], &bits, 4);
      }
      library.run(1, {wide.data, narrowed.data});
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(same(narrowed[i], small_float_encode(format, wide[i]), wide[i]))
            << target.mcpu << " " << small.str() << " " << wide[i];
      for (size_t i = 0; i < n; ++i) doubles[i] = double(wide[i]) * (1 + 1e-12 * (int(i % 7) - 3));
      library.run(2, {doubles.data, narrowed.data});
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(same(narrowed[i], small_float_encode(format, doubles[i]), doubles[i]))
            << target.mcpu << " " << small.str() << " " << doubles[i];
      library.run(3, {all.data, other.data, narrowed.data});
      for (size_t i = 0; i < n; ++i) {
        double x = small_float_decode(format, all[i]);
        double product =
            small_float_decode(format, small_float_encode(format, x * small_float_decode(format, other[i])));
        ASSERT_TRUE(same(narrowed[i], small_float_encode(format, float(product + x)), product + x))
            << target.mcpu << " " << small.str() << " " << i;
      }
      for (size_t i = 0; i < n; ++i) ints[i] = static_cast<int32_t>(random()) >> (i % 32);
      library.run(4, {ints.data, narrowed.data});
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(narrowed[i], small_float_encode(format, ints[i]))
            << target.mcpu << " " << small.str() << " " << ints[i];
    }
}

// LLVM would compare and choose halves themselves, which is done one by one.
TEST(Expr, HalvesAreComparedInVectors) {
  auto relu = elementwise("relu", {kFloat16}, kFloat16, 64, 16, [](Loads v) {
    PrimExpr x = cast(kFloat32.with_lanes(v[0]->dtype.lanes), v[0]);
    return cast(v[0]->dtype, max(x, make_const(x->dtype, 0)));
  });
  auto text = kernel_text(relu, *parse_target("llvm -mtriple=x86_64-pc-linux-gnu -mcpu=x86-64-v4"), "s");
  ASSERT_TRUE(text.ok());
  size_t conversions = 0;
  for (size_t at = text->find("vcvtph2ps"); at != std::string::npos; at = text->find("vcvtph2ps", at + 1))
    ++conversions;
  EXPECT_LE(conversions, 4u) << *text;
}

TEST(Expr, ShapesOfVectors) {
  // Ramp, broadcast, shuffles, reinterpret, let and reductions in one kernel per result.
  const DataType f16 = kFloat32.with_lanes(16);
  auto kernel = [&](const std::string& name, int64_t out_n, auto make) {
    PrimFunc f;
    f.name = name;
    Buffer in = make_buffer("in", kFloat32, 64, Scope::kGlobal, 64, true),
           out = make_buffer("out", kFloat32, out_n, Scope::kGlobal, 64);
    f.params = {in, out};
    PrimExpr value = make(in);
    f.body = store(out, ramp(make_int(0), 1, value->dtype.lanes), value);
    return f;
  };
  auto at = [](const Buffer& in, int base, int stride, int lanes) {
    return load(in, ramp(make_int(base), stride, lanes));
  };
  std::vector<PrimFunc> kernels{
      kernel("stride2", 16, [&](Buffer in) { return at(in, 3, 2, 16); }),
      kernel("reverse", 16, [&](Buffer in) { return at(in, 40, -1, 16); }),
      kernel("stride3", 16, [&](Buffer in) { return at(in, 1, 3, 16); }),
      kernel("shuffle2", 16,
             [&](Buffer in) {
               std::vector<int> pick;
               for (int i = 0; i < 16; ++i) pick.push_back(i % 2 ? 16 + i / 2 : i / 2);
               return shuffle({at(in, 0, 1, 16), at(in, 16, 1, 16)}, pick);
             }),
      kernel("shuffle_uneven", 8,
             [&](Buffer in) {
               return shuffle({at(in, 0, 1, 4), load(in, make_int(50)), at(in, 20, 1, 8)}, {12, 0, 4, 5, 3, 6, 1, 2});
             }),
      kernel("pack", 4,
             [&](Buffer in) {
               return shuffle(
                   {load(in, make_int(9)), load(in, make_int(4)), load(in, make_int(1)), load(in, make_int(0))},
                   {3, 2, 1, 0});
             }),
      kernel("sum", 1, [&](Buffer in) { return intrinsic(Intrinsic::k_reduce_add, {at(in, 0, 1, 12)}); }),
      kernel("largest", 1, [&](Buffer in) { return intrinsic(Intrinsic::k_reduce_max, {at(in, 0, 1, 16)}); }),
      kernel("smallest", 1, [&](Buffer in) { return intrinsic(Intrinsic::k_reduce_min, {at(in, 5, 1, 7)}); }),
      kernel("let_twice", 16,
             [&](Buffer in) {
               PrimExpr x = make_var("x", f16);
               return let(x, at(in, 8, 1, 16), x * x + x);
             }),
      kernel("sign_bit", 16,
             [&](Buffer in) {
               PrimExpr bits = reinterpret(kInt32, at(in, 0, 1, 16));
               return reinterpret(kFloat32, binary(ExprKind::kBitXor, bits, make_int(INT32_MIN, bits->dtype)));
             }),
      kernel("iota", 16, [&](Buffer in) { return cast(kFloat32, ramp(cast(kInt32, load(in, make_int(2))), 3, 16)); }),
  };
  Library library(kernels);
  Aligned<float> in(64), out(16);
  for (size_t i = 0; i < 64; ++i) in[i] = static_cast<float>(i) + 0.5f;
  auto expect = [&](size_t k, std::vector<float> want) {
    library.run(k, {in.data, out.data});
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(out[i], want[i]) << kernels[k].name << " lane " << i;
  };
  auto lanes = [](int n, auto f) {
    std::vector<float> v;
    for (int i = 0; i < n; ++i) v.push_back(static_cast<float>(f(i)));
    return v;
  };
  expect(0, lanes(16, [](int i) { return 3.5 + 2 * i; }));
  expect(1, lanes(16, [](int i) { return 40.5 - i; }));
  expect(2, lanes(16, [](int i) { return 1.5 + 3 * i; }));
  expect(3, lanes(16, [](int i) { return (i % 2 ? 16 + i / 2 : i / 2) + 0.5; }));
  expect(4, {27.5, 0.5, 50.5, 20.5, 3.5, 21.5, 1.5, 2.5});
  expect(5, {0.5, 1.5, 4.5, 9.5});
  expect(6, {72});
  expect(7, {15.5});
  expect(8, {5.5});
  expect(9, lanes(16, [](int i) { return (8.5 + i) * (9.5 + i); }));
  expect(10, lanes(16, [](int i) { return -(i + 0.5); }));
  expect(11, lanes(16, [](int i) { return 2 + 3 * i; }));
}

}  // namespace
}  // namespace tilewright::codegen
