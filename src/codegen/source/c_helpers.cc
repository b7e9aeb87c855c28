// SPDX-License-Identifier: Apache-2.0
// Helper functions of generated C. A file contains only those
// it calls, so that compilers do not warn of unused ones.
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/format.h"
#include "codegen/source/c_types.h"
#include "codegen/source/c_vectors.h"

namespace tilewright::codegen {
namespace {

struct CHelper {
  std::string name, text;
};

void add_float_helpers(std::vector<CHelper>* out) {
  for (const auto& [suffix, type, f] : {std::tuple("f32", "float", "f"), std::tuple("f64", "double", "")}) {
    const char* one = std::string(suffix) == "f32" ? "1.0f" : "1.0";
    out->push_back(
        {format("tw_fma_{}", suffix),
         format("/* a * b + c: rounded once where the processor can, and twice where that would be slow. */\n"
                "static inline {1} tw_fma_{0}({1} a, {1} b, {1} c) {{\n"
                "#ifdef FP_FAST_FMA{2}\n"
                "  return fma{3}(a, b, c);\n"
                "#else\n"
                "  return a * b + c;\n"
                "#endif\n"
                "}}\n",
                suffix, type, *f ? "F" : "", f)});
    out->push_back({format("tw_sigmoid_{}", suffix),
                    format("static inline {1} tw_sigmoid_{0}({1} x) {{ return {2} / ({2} + exp{3}(-x)); }}\n", suffix,
                           type, one, f)});
  }
}

// GCC makes vectors of a loop over lanes, but not of the statements that it would otherwise make of it first.
void add_lanes_helper(std::vector<CHelper>* out) {
  out->push_back({"tw_lanes",
                  "/* Before loops over lanes: vectors where there are any, else single statements. */\n"
                  "#if !defined(__GNUC__) || defined(__clang__)\n"
                  "#define tw_lanes\n"
                  "#elif defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__riscv_vector)\n"
                  "#define tw_lanes _Pragma(\"GCC unroll 1\")\n"
                  "#else\n"
                  "#define tw_lanes _Pragma(\"GCC unroll 16\")\n"
                  "#endif\n"});
}

// For kernels with vectors.
void add_order_helper(std::vector<CHelper>* out) {
  out->push_back({"tw_keep_order",
                  "/* Keeps GCC from moving loads across. */\n"
                  "static inline void tw_keep_order(void) {\n"
                  "#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)\n"
                  "  __asm__ volatile(\"\" ::: \"memory\");\n"
                  "#endif\n"
                  "}\n"});
}

// Both return the second operand if either is NaN.
void add_choice_helpers(std::vector<CHelper>* out) {
  for (const auto& [suffix, type] :
       {std::pair("f32", "float"), std::pair("f64", "double"), std::pair("i32", "int32_t"), std::pair("i64", "int64_t"),
        std::pair("u32", "uint32_t"), std::pair("u64", "uint64_t")})
    for (const auto& [name, sign] : {std::pair("min", '<'), std::pair("max", '>')})
      out->push_back({format("tw_{}_{}", name, suffix),
                      format("static inline {2} tw_{0}_{1}({2} a, {2} b) {{ return a {3} b ? a : b; }}\n", name, suffix,
                             type, sign)});
}

// Operations on words of bytes and halfwords: instructions of Cortex-M with the DSP extension, by the intrinsics common
// to C compilers for Arm; elsewhere equivalent C.
void add_word_helpers(std::vector<CHelper>* out) {
  out->push_back({"tw_word_of_2",
                  "static inline uint32_t tw_word_of_2(const void *bytes) {\n"
                  "  const uint8_t *b = (const uint8_t *)bytes;\n"
                  "  return (uint32_t)b[0] | (uint32_t)b[1] << 8;\n}\n"});
  out->push_back({"tw_word_of_4",
                  "/* The lowest byte first; compilers know this as one load. */\n"
                  "static inline uint32_t tw_word_of_4(const void *bytes) {\n"
                  "  const uint8_t *b = (const uint8_t *)bytes;\n"
                  "  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;\n}\n"});
  out->push_back({"tw_dot2",
                  "/* sum and the two products of the signed halves of a and b. */\n"
                  "static inline int32_t tw_dot2(int32_t sum, int32_t a, int32_t b) {\n"
                  "#ifdef __ARM_FEATURE_DSP\n"
                  "  return __smlad(a, b, sum);\n"
                  "#else\n"
                  "  const uint32_t low = (uint32_t)((int32_t)(int16_t)a * (int16_t)b);\n"
                  "  return (int32_t)((uint32_t)sum + low + (uint32_t)((a >> 16) * (b >> 16)));\n"
                  "#endif\n}\n"});
  out->push_back(
      {"tw_dot2_bfloat16",
       "/* sum and the two products of the halves of a and b as bfloat16. */\n"
       "static inline float tw_dot2_bfloat16(float sum, int32_t a, int32_t b) {\n"
       "  const uint32_t words[4] = {(uint32_t)a & 0xffff0000u, (uint32_t)b & 0xffff0000u, (uint32_t)a << 16,\n"
       "                             (uint32_t)b << 16};\n"
       "  float x[4];\n"
       "  memcpy(x, words, sizeof x);\n"
       "  sum += x[0] * x[1];\n"
       "  return sum + x[2] * x[3];\n}\n"});
  for (const auto& [name, instruction, c] :
       {std::tuple("low", "pkhbt %0, %1, %2, lsl #16", "a & 65535) | (uint32_t)b << 16"),
        std::tuple("high", "pkhtb %0, %2, %1, asr #16", "a >> 16) | (uint32_t)b >> 16 << 16")})
    out->push_back(
        {format("tw_{}_halves", name), format("/* The {0} half of a, and above it of b. */\n"
                                              "static inline int32_t tw_{0}_halves(int32_t a, int32_t b) {{\n"
                                              "#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)\n"
                                              "  int32_t out;\n"
                                              "  __asm__(\"{1}\" : \"=r\"(out) : \"r\"(a), \"r\"(b));\n"
                                              "  return out;\n"
                                              "#else\n"
                                              "  return (int32_t)(((uint32_t){2});\n"
                                              "#endif\n}}\n",
                                              name, instruction, c)});
  // Arm's C has no intrinsic for the instruction's rotation.
  for (const auto& [name, which, shift] : {std::tuple("even", "0 and 2", 0), std::tuple("odd", "1 and 3", 8)}) {
    const auto instruction = [&, odd = shift != 0](const char* mnemonic, const char* operands, const char* a) {
      if (!odd) return format("  return __{}({}b);\n", mnemonic, a);
      return format("  int32_t out;\n  __asm__(\"{} %0, {}, ror #8\" : \"=r\"(out) : \"r\"(b){});\n  return out;\n",
                    mnemonic, operands, *a != 0 ? ", \"r\"(a)" : "");
    };
    const char* present =
        shift != 0 ? "#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)\n" : "#ifdef __ARM_FEATURE_DSP\n";
    const std::string in_c = format(
        "  const uint32_t x = (uint32_t)a, y = (uint32_t)b >> {};\n"
        "  const uint32_t low = x + (uint32_t)(int32_t)(int8_t)(y & 255);\n"
        "  const uint32_t high = (x >> 16) + (uint32_t)(int32_t)(int8_t)(y >> 16 & 255);\n"
        "  return (int32_t)((low & 65535) | high << 16);\n",
        shift);
    out->push_back({format("tw_{}_bytes", name),
                    format("/* Halves: those of a, and bytes {} of b with their signs. */\n"
                           "static inline int32_t tw_{}_bytes(int32_t a, int32_t b) {{\n{}{}#else\n{}#endif\n}}\n",
                           which, name, present, instruction("sxtab16", "%2, %1", "a, "), in_c)});
    out->push_back(
        {format("tw_{}_bytes_of", name), format("static inline int32_t tw_{0}_bytes_of(int32_t b) {{\n{1}{2}#else\n"
                                                "  return tw_{0}_bytes(0, b);\n#endif\n}}\n",
                                                name, present, instruction("sxtb16", "%1", ""))});
  }
}

void add_integer_helpers(std::vector<CHelper>* out) {
  for (int bits : {32, 64}) {
    const std::string i = format("int{}_t", bits), u = format("uint{}_t", bits), smallest = format("INT{}_MIN", bits);
    for (const auto& [name, sign] : {std::pair("add", '+'), std::pair("sub", '-'), std::pair("mul", '*')})
      out->push_back({format("tw_{}_i{}", name, bits),
                      format("static inline {2} tw_{0}_i{1}({2} a, {2} b) {{ return ({2})(({3})a {4} ({3})b); }}\n",
                             name, bits, i, u, sign)});
    out->push_back({format("tw_shl_i{}", bits),
                    format("static inline {1} tw_shl_i{0}({1} a, {1} b) {{ return ({1})(({2})a << (b & {3})); }}\n",
                           bits, i, u, bits - 1)});
    out->push_back(
        {format("tw_shr_i{}", bits),
         format("static inline {1} tw_shr_i{0}({1} a, {1} b) {{ return a >> (b & {2}); }}\n", bits, i, bits - 1)});
    out->push_back(
        {format("tw_shl_u{}", bits),
         format("static inline {1} tw_shl_u{0}({1} a, {1} b) {{ return a << (b & {2}); }}\n", bits, u, bits - 1)});
    out->push_back(
        {format("tw_shr_u{}", bits),
         format("static inline {1} tw_shr_u{0}({1} a, {1} b) {{ return a >> (b & {2}); }}\n", bits, u, bits - 1)});
    // Undefined in the model as well; here the result is arbitrary.
    out->push_back({format("tw_div_i{}", bits), format("static inline {1} tw_div_i{0}({1} a, {1} b) {{\n"
                                                       "  return b == 0 || (b == -1 && a == {2}) ? a : a / b;\n}}\n",
                                                       bits, i, smallest)});
    out->push_back(
        {format("tw_floordiv_i{}", bits), format("static inline {1} tw_floordiv_i{0}({1} a, {1} b) {{\n"
                                                 "  if (b == 0 || (b == -1 && a == {2})) return a;\n"
                                                 "  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));\n}}\n",
                                                 bits, i, smallest)});
    out->push_back({format("tw_floormod_i{}", bits),
                    format("static inline {1} tw_floormod_i{0}({1} a, {1} b) {{\n"
                           "  if (b == 0 || b == -1) return 0;\n"
                           "  return a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;\n}}\n",
                           bits, i)});
    out->push_back(
        {format("tw_mod_i{}", bits),
         format("static inline {1} tw_mod_i{0}({1} a, {1} b) {{ return b == 0 || b == -1 ? 0 : a % b; }}\n", bits, i)});
    out->push_back({format("tw_div_u{}", bits),
                    format("static inline {1} tw_div_u{0}({1} a, {1} b) {{ return b == 0 ? a : a / b; }}\n", bits, u)});
    out->push_back({format("tw_mod_u{}", bits),
                    format("static inline {1} tw_mod_u{0}({1} a, {1} b) {{ return b == 0 ? 0 : a % b; }}\n", bits, u)});
  }
  out->push_back({"tw_popcount",
                  "static inline int tw_popcount(uint64_t x) {\n"
                  "  int n = 0;\n"
                  "  for (; x != 0; x &= x - 1) ++n;\n"
                  "  return n;\n}\n"});
  out->push_back({"tw_dot4",
                  "/* sum and the four products of a's unsigned and b's signed bytes. */\n"
                  "static inline int32_t tw_dot4(int32_t sum, int32_t a, int32_t b) {\n"
                  "  const uint32_t x = (uint32_t)a, y = (uint32_t)b;\n"
                  "  uint32_t out = (uint32_t)sum;\n"
                  "  for (int shift = 0; shift < 32; shift += 8)\n"
                  "    out += (uint32_t)((int32_t)(x >> shift & 255) * (int32_t)(int8_t)(y >> shift & 255));\n"
                  "  return (int32_t)out;\n}\n"});
  add_word_helpers(out);
  out->push_back({"tw_clz",
                  "/* Leading zeros of x in `bits` bits. */\n"
                  "static inline int tw_clz(uint64_t x, int bits) {\n"
                  "  for (; x != 0; x >>= 1) --bits;\n"
                  "  return bits;\n}\n"});
}

// Rounds to an integer, ties to even. A Cortex-M has an
// instruction for this, but none for rounding to a float.
void add_rounded_integer_helper(std::vector<CHelper>* out) {
  out->push_back({"tw_round_to_i32",
                  "static inline int32_t tw_round_to_i32(float x) {\n"
                  "#if defined(__ARM_FP) && defined(__GNUC__) && !defined(__aarch64__)\n"
                  "  float bits;\n"
                  "  int32_t out;\n"
                  "  __asm__(\"vcvtr.s32.f32 %0, %1\" : \"=t\"(bits) : \"t\"(x));\n"
                  "  memcpy(&out, &bits, sizeof out);\n"
                  "  return out;\n"
                  "#else\n"
                  "  x = rintf(x);\n"
                  "  if (!(x >= -2147483648.0f)) return INT32_MIN;\n"
                  "  return x < 2147483648.0f ? (int32_t)x : INT32_MAX;\n"
                  "#endif\n}\n"});
}

// Without a rounding instruction: adds and subtracts a number so large that no fraction bits remain.
void add_rounding_helper(std::vector<CHelper>* out) {
  out->push_back({"tw_rint_f32",
                  "static inline float tw_rint_f32(float x) {\n"
                  "#if defined(__ARM_FP) && !defined(__ARM_FEATURE_DIRECTED_ROUNDING)\n"
                  "  const float big = x < 0.0f ? -8388608.0f : 8388608.0f, whole = (x + big) - big;\n"
                  "  if (!(x > -8388608.0f && x < 8388608.0f)) return x;\n"
                  "  return whole == 0.0f ? x * 0.0f : whole;\n"
                  "#else\n"
                  "  return rintf(x);\n"
                  "#endif\n}\n"});
}

// Out-of-range conversions, undefined in C, give arbitrary values; NaN gives the smallest.
void add_conversion_helpers(std::vector<CHelper>* out) {
  for (const auto& [suffix, type, f] : {std::tuple("f32", "float", "f"), std::tuple("f64", "double", "")}) {
    // Uses float constants, so that processors without double arithmetic avoid it; the nearest representable bounds.
    out->push_back(*f ? CHelper{"tw_f32_to_i32",
                                "static inline int32_t tw_f32_to_i32(float x) {\n"
                                "#if defined(__ARM_FP)\n"
                                "  return (int32_t)x; /* the instruction saturates */\n"
                                "#else\n"
                                "  if (!(x >= -2147483648.0f)) return INT32_MIN;\n"
                                "  return x < 2147483648.0f ? (int32_t)x : INT32_MAX;\n"
                                "#endif\n}\n"}
                      : CHelper{"tw_f64_to_i32",
                                "static inline int32_t tw_f64_to_i32(double x) {\n"
                                "  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;\n}\n"});
    out->push_back({format("tw_{}_to_i64", suffix),
                    format("static inline int64_t tw_{0}_to_i64({1} x) {{\n"
                           "  return x >= -9223372036854775808.0{2} && x < 9223372036854775808.0{2} ? (int64_t)x : "
                           "INT64_MIN;\n}}\n",
                           suffix, type, f)});
    out->push_back({format("tw_{}_to_u64", suffix),
                    format("static inline uint64_t tw_{0}_to_u64({1} x) {{\n"
                           "  if (x >= 0.0{2} && x < 18446744073709551616.0{2}) return (uint64_t)x;\n"
                           "  return x < 0.0{2} && x >= -9223372036854775808.0{2} ? (uint64_t)(int64_t)x : "
                           "UINT64_C(1) << 63;\n}}\n",
                           suffix, type, f)});
  }
  for (const auto& [to, to_type, from, from_type] :
       {std::tuple("i32", "int32_t", "f32", "float"), std::tuple("u32", "uint32_t", "f32", "float"),
        std::tuple("f32", "float", "i32", "int32_t"), std::tuple("f32", "float", "u32", "uint32_t"),
        std::tuple("i64", "int64_t", "f64", "double"), std::tuple("u64", "uint64_t", "f64", "double"),
        std::tuple("f64", "double", "i64", "int64_t"), std::tuple("f64", "double", "u64", "uint64_t")})
    out->push_back({format("tw_bits_{}_to_{}", from, to), format("static inline {2} tw_bits_{0}_to_{1}({3} x) {{\n"
                                                                 "  {2} y;\n"
                                                                 "  memcpy(&y, &x, sizeof y);\n"
                                                                 "  return y;\n}}\n",
                                                                 from, to, to_type, from_type)});
}

void add_small_float_helpers(std::vector<CHelper>* out) {
  out->push_back({"tw_f16_to_f32",
                  "/* IEEE 754 binary16, in both directions; to nearest, ties to even. */\n"
                  "static inline float tw_f16_to_f32(uint16_t h) {\n"
                  "  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff;\n"
                  "  if (a < 0x400) {\n"
                  "    const float x = (float)a * 5.9604644775390625e-08f;\n"
                  "    return sign != 0 ? -x : x;\n"
                  "  }\n"
                  "  return tw_bits_u32_to_f32(sign | (a >= 0x7c00 ? a << 13 | 0x7f800000 : (a << 13) + 0x38000000));\n"
                  "}\n"});
  out->push_back({"tw_f32_to_f16",
                  "static inline uint16_t tw_f32_to_f16(float x) {\n"
                  "  const uint32_t bits = tw_bits_f32_to_u32(x), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;\n"
                  "  if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00);\n"
                  "  if (a >= 0x47800000) return (uint16_t)(sign | 0x7c00);\n"
                  "  if (a < 0x38800000) /* adding 0.5 rounds at a subnormal's last bit */\n"
                  "    return (uint16_t)(sign | (tw_bits_f32_to_u32(tw_bits_u32_to_f32(a) + 0.5f) - 0x3f000000));\n"
                  "  return (uint16_t)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);\n"
                  "}\n"});
  out->push_back(
      {"tw_bf16_to_f32",
       "static inline float tw_bf16_to_f32(uint16_t h) { return tw_bits_u32_to_f32((uint32_t)h << 16); }\n"});
  out->push_back({"tw_f32_to_bf16",
                  "static inline uint16_t tw_f32_to_bf16(float x) {\n"
                  "  const uint32_t bits = tw_bits_f32_to_u32(x);\n"
                  "  if (x != x) return (uint16_t)((bits | 0x400000) >> 16);\n"
                  "  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
                  "}\n"});
  out->push_back({"tw_f64_to_f32_odd",
                  "/* Rounded to odd: rounding again to a shorter format then gives the nearest one. */\n"
                  "static inline float tw_f64_to_f32_odd(double x) {\n"
                  "  const float near = (float)x;\n"
                  "  const uint32_t bits = tw_bits_f32_to_u32(near);\n"
                  "  if ((double)near == x || x != x || (bits & 1) != 0) return near;\n"
                  "  return tw_bits_u32_to_f32(fabs((double)near) > fabs(x) ? bits - 1 : bits + 1);\n"
                  "}\n"});
  out->push_back({"tw_f8_to_f32",
                  "/* A sign, e exponent bits, m mantissa bits; codes from infinity or nan on are special. */\n"
                  "static inline float tw_f8_to_f32(unsigned code, int e, int m, int bias, unsigned infinity, unsigned "
                  "nan, int zero_is_nan) {\n"
                  "  const unsigned a = code & ((1u << (e + m)) - 1), sign = code >> (e + m);\n"
                  "  float x;\n"
                  "  if (a >= nan || a > infinity || (zero_is_nan && sign != 0 && a == 0)) return NAN;\n"
                  "  if (a == infinity) return sign != 0 ? -INFINITY : INFINITY;\n"
                  "  if (a >> m == 0)\n"
                  "    x = ldexpf((float)a, 1 - bias - m);\n"
                  "  else\n"
                  "    x = ldexpf((float)((a & ((1u << m) - 1)) | 1u << m), (int)(a >> m) - bias - m);\n"
                  "  return sign != 0 ? -x : x;\n"
                  "}\n"});
  out->push_back({"tw_f32_to_f8",
                  "static inline uint8_t tw_f32_to_f8(float x, int e, int m, int bias, unsigned largest, unsigned "
                  "infinity, unsigned nan, int unsigned_zero) {\n"
                  "  const uint32_t bits = tw_bits_f32_to_u32(x), a = bits & 0x7fffffff;\n"
                  "  const int shift = 23 - m;\n"
                  "  uint32_t code;\n"
                  "  if (a > 0x7f800000) return (uint8_t)nan;\n"
                  "  if (a < (uint32_t)(128 - bias) << 23) { /* subnormal: the addition rounds at the last bit */\n"
                  "    const float magic = ldexpf(1.0f, 24 - bias - m);\n"
                  "    code = tw_bits_f32_to_u32(tw_bits_u32_to_f32(a) + magic) - tw_bits_f32_to_u32(magic);\n"
                  "  } else {\n"
                  "    code = (a + (1u << (shift - 1)) - 1 + (a >> shift & 1) - ((uint32_t)(127 - bias) << 23)) >> "
                  "shift;\n"
                  "  }\n"
                  "  if (code > largest) code = infinity;\n"
                  "  if (unsigned_zero && code == 0) return 0;\n"
                  "  return (uint8_t)(code | bits >> 31 << (e + m));\n"
                  "}\n"});
  out->push_back({"tw_f8_scale_to_f32",
                  "static inline float tw_f8_scale_to_f32(unsigned code) {\n"
                  "  return code == 255 ? NAN : ldexpf(1.0f, (int)code - 127);\n}\n"});
  out->push_back({"tw_f32_to_f8_scale",
                  "static inline uint8_t tw_f32_to_f8_scale(float x) {\n"
                  "  const uint32_t a = tw_bits_f32_to_u32(x) & 0x7fffffff;\n"
                  "  if (a > 0x7f800000) return 255;\n"
                  "  if (a < 0x800000) return a >= 0x600000;\n"
                  "  return (uint8_t)(a >= 0x7f400000 ? 254 : (a + 0x400000) >> 23);\n"
                  "}\n"});
}

const std::vector<CHelper>& c_helper_table() {
  static const std::vector<CHelper> table = [] {
    std::vector<CHelper> out;
    add_float_helpers(&out);
    add_lanes_helper(&out);
    add_order_helper(&out);
    add_choice_helpers(&out);
    add_integer_helpers(&out);
    add_rounding_helper(&out);
    add_rounded_integer_helper(&out);
    add_conversion_helpers(&out);
    add_small_float_helpers(&out);
    return out;
  }();
  return table;
}

}  // namespace

std::string c_helpers(const std::string& code) {
  // Finds the called names by one scan of each text.
  std::set<std::string> called;
  std::map<std::string, std::string> on_vectors;
  auto names_in = [](const std::string& text) {
    std::set<std::string> out;
    for (size_t at = text.find("tw_"); at != std::string::npos; at = text.find("tw_", at + 3)) {
      size_t end = at;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
      out.insert(text.substr(at, end - at));
    }
    return out;
  };
  std::vector<std::string> texts = {code};
  while (!texts.empty()) {
    const std::set<std::string> names = names_in(texts.back());
    texts.pop_back();
    for (const std::string& name : names) {
      if (!called.insert(name).second) continue;
      for (const CHelper& h : c_helper_table())
        if (h.name == name) texts.push_back(h.text);
      if (auto text = c_vector_function(name)) texts.push_back(on_vectors[name] = *text);
    }
  }
  // Helpers are defined after those they call; bit conversions come first, vectors last.
  std::string first, rest, vectors;
  for (const CHelper& h : c_helper_table())
    if (called.count(h.name) != 0) (h.name.rfind("tw_bits_", 0) == 0 ? first : rest) += h.text;
  std::set<std::string> written;
  const std::function<void(const std::string&)> write = [&](const std::string& name) {
    const auto found = on_vectors.find(name);
    if (found == on_vectors.end() || !written.insert(name).second) return;
    for (const std::string& other : names_in(found->second)) write(other);
    vectors += found->second;
  };
  for (const auto& [name, text] : on_vectors) write(name);
  return first + rest + c_vector_definitions(called) + vectors;
}

std::string c_helper_headers(const std::string& helpers) {
  std::string out;
  if (helpers.find("__ARM_FEATURE_DSP") != std::string::npos)
    out += "#ifdef __ARM_FEATURE_DSP\n#include <arm_acle.h>\n#endif\n\n";
  // Without the processor's option vectors are passed as they are on others, which GCC would say for each.
  if (helpers.find("vector_size(") != std::string::npos)
    out +=
        "#if defined(__SSE2__)\n#include <immintrin.h>\n#elif defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n"
        "#pragma GCC diagnostic ignored \"-Wpsabi\"\n\n";
  return out;
}

}  // namespace tilewright::codegen
