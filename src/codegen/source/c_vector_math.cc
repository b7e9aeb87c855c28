// SPDX-License-Identifier: Apache-2.0
// Elementary functions of float lanes as C: the reductions and polynomials of codegen/llvm/math.cc.
#include <span>

#include "base/format.h"
#include "codegen/math_coefficients.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_vectors.h"

namespace tilewright::codegen {
namespace {

constexpr double kLogOf2 = 0.69314718055994530942, kLog2OfE = 1.4426950408889634074;
constexpr double kLogOf2High = 0x1.62ep-1, kLogOf2Low = kLogOf2 - kLogOf2High;
// Added to a float, it leaves the nearest whole number and the bias of exponents in the low bits.
constexpr double kShifted = 0x1.8p23 + 127;

std::string float_text(double value) { return c_float(value, kFloat32); }

// Replaces $T, $I, $U by the types of floats, integers and unsigned ones, and $t by their functions' ending.
std::string typed_text(std::string text, const CVector& t) {
  for (const auto& [mark, word] : {std::pair<const char*, std::string>{"$T", t.name()},
                                   {"$I", t.mask().name()},
                                   {"$U", t.with('u').name()},
                                   {"$t", t.name().substr(3)},
                                   {"$i", t.mask().name().substr(3)}})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += word.size()) text.replace(at, 2, word);
  return text;
}

// Statements that leave the polynomial of `x` in a new variable.
std::string polynomial_text(const char* variable, const char* x, std::span<const float> coefficients) {
  std::string out = format("  $T {} = tw_all_$t({});\n", variable, float_text(coefficients.back()));
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    out += format("  {0} = tw_fma_$t({0}, {1}, tw_all_$t({2}));\n", variable, x, float_text(coefficients[i]));
  return out;
}

// With x reduced to r = x - n ln 2: p = exp(r).
std::string exp_core(const char* x) {
  return format(
             "  const $T n = tw_round_$t({0} * {1});\n"
             "  const $T r = tw_fma_$t(n, tw_all_$t({2}), tw_fma_$t(n, tw_all_$t({3}), {0}));\n",
             x, float_text(kLog2OfE), float_text(-kLogOf2Low), float_text(-kLogOf2High)) +
         polynomial_text("tail", "r", kExpm1Tail) + "  const $T p = tw_fma_$t(r * r, tail, r) + 1.0f;\n";
}

// p * 2^n by two factors, each a normal number.
constexpr const char* kScaled =
    "  const $I k = __builtin_convertvector(n, $I), half = k >> 1;\n"
    "  return p * ($T)(($U)(half + 127) << 23) * ($T)(($U)(k - half + 127) << 23);\n";

// n and power = 2^n, the nearest to x * scale.
std::string nearest_power_text(const char* x, double scale) {
  return format(
      "  const $I whole = tw_max_$i(tw_all_$i({}), tw_min_$i(tw_all_$i({}),\n"
      "      ($I)tw_fma_$t({}, tw_all_$t({}), tw_all_$t({}))));\n"
      "  const $T n = ($T)whole - {}, power = ($T)(($U)whole << 23);\n",
      0x4b40007f - 126, 0x4b40007f + 127, x, float_text(scale), float_text(kShifted), float_text(kShifted));
}

// n and power = 2^n of the number `whole`, which has n + 127 in its low bits.
std::string power_of_whole() {
  return format("  const $T n = whole - {}, power = ($T)(($U)whole << 23);\n", float_text(kShifted));
}

std::string tanh_text() {
  return format(
             "  const $T a = ($T)(($I)x & INT32_MAX), twice = tw_min_$t(tw_all_$t(19.0f), a + a);\n"
             "  const $T whole = tw_fma_$t(twice, tw_all_$t({}), tw_all_$t({}));\n",
             float_text(kLog2OfE), float_text(kShifted)) +
         power_of_whole() + format("  const $T r = tw_fma_$t(n, tw_all_$t({}), twice);\n", float_text(-kLogOf2)) +
         polynomial_text("tail", "r", kExpm1Tail) +
         "  const $T above = tw_fma_$t(tw_fma_$t(r * r, tail, r), power, power - 1.0f);\n"
         "  return ($T)((($I)(above / (above + 2.0f)) & INT32_MAX) | (($I)x & INT32_MIN));\n";
}

std::string sigmoid_text() {
  const double high = -static_cast<double>(static_cast<float>(kLog2OfE)), low = -kLog2OfE - high;
  return "#if defined(__FMA__) || defined(__aarch64__)\n" + nearest_power_text("x", -kLog2OfE) +
         format(
             "  const $T r = tw_max_$t(tw_all_$t(-1.0f), tw_fma_$t(x, tw_all_$t({}),\n"
             "      tw_fma_$t(x, tw_all_$t({}), -n)));\n",
             float_text(low), float_text(high)) +
         polynomial_text("tail", "r", kExp2Tail) +
         format("  const $T part = ($T)tw_min_$i(($I)power, ($I)tw_all_$t({}));\n", float_text(0x1p22)) +
         "  return 1.0f / (tw_fma_$t(r * tail, power, part + 1.0f) + (power - part));\n"
         "#else\n  return 1.0f / (1.0f + tw_exp_$t(-x));\n#endif\n";
}

std::string erf_text() {
  return "  const $T a = ($T)(($I)x & INT32_MAX), t = tw_min_$t(tw_all_$t(1.0f), x * x);\n" +
         polynomial_text("inner", "t", kErfSmall) +
         "  const $T small = tw_fma_$t(x, inner, x), c = tw_min_$t(tw_all_$t(3.95f), a);\n" +
         polynomial_text("l", "c", kErfcLog2) + format("  const $T whole = l + {};\n", float_text(kShifted)) +
         power_of_whole() + "  const $T r = l - n;\n" + polynomial_text("tail", "r", kExp2Short) +
         "  const $T large = tw_fma_$t(-tw_fma_$t(r, tail, tw_all_$t(1.0f)), power, tw_all_$t(1.0f));\n"
         "  const $T turned = ($T)((($I)large & INT32_MAX) | (($I)x & INT32_MIN));\n"
         "  return tw_choose_$t(($I)(a < 0.925f), small, turned);\n";
}

// e ln 2 + log(1 + f), 1 + f between the square roots of 1/2 and 2.
std::string log_text() {
  return "  const $I tiny = ($I)(x < 1.17549435e-38f);\n"
         "  const $I i = ($I)(($U)tw_choose_$t(tiny, x * 16777216.0f, x) - 0x3f3504f3u);\n"
         "  const $T e = __builtin_convertvector(i >> 23, $T) - tw_choose_$t(tiny, tw_all_$t(24.0f), "
         "tw_all_$t(0.0f));\n"
         "  const $T f = ($T)((i & 0x7fffff) + 0x3f3504f3) - 1.0f, f2 = f * f;\n" +
         polynomial_text("inner", "f", kLogTail) +
         format(
             "  $T tail = tw_fma_$t(e, tw_all_$t({}), f2 * f * inner);\n"
             "  tail = tw_fma_$t(f2, tw_all_$t(-0.5f), tail);\n"
             "  $T y = tw_fma_$t(e, tw_all_$t({}), f + tail);\n",
             float_text(kLogOf2Low), float_text(kLogOf2High)) +
         "  y = tw_choose_$t(($I)(x == INFINITY), x, y);\n"
         "  y = tw_choose_$t(($I)(x == 0.0f), tw_all_$t(-INFINITY), y);\n"
         "  return tw_choose_$t(($I)(x >= 0.0f), y, tw_all_$t(NAN));\n";
}

}  // namespace

std::optional<std::string> c_vector_math(const std::string& op, const CVector& t) {
  if (t.kind != 'f' || t.bits != 32) return std::nullopt;
  std::string body;
  if (op == "exp")
    body = "  x = tw_max_$t(tw_all_$t(-104.5f), tw_min_$t(tw_all_$t(89.0f), x));\n" + exp_core("x") + kScaled;
  else if (op == "exp_nonpositive")  // one factor, zero for n = -127
    body = "  x = tw_max_$t(tw_all_$t(-88.0f), x);\n" + exp_core("x") +
           "  return p * ($T)(($U)(__builtin_convertvector(n, $I) + 127) << 23);\n";
  else if (op == "tanh")
    body = tanh_text();
  else if (op == "sigmoid")
    body = sigmoid_text();
  else if (op == "erf")
    body = erf_text();
  else if (op == "log")
    body = log_text();
  else
    return std::nullopt;
  return typed_text(c_vector_head("$T", op + "_$t", "$T x") + body + "}\n", t);
}

}  // namespace tilewright::codegen
