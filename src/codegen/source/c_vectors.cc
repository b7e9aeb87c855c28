// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_vectors.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <tuple>

#include "base/format.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {
namespace {

std::string lane_list(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += format("{}{}", i == 0 ? "" : ", ", first + i);
  return out;
}

// An instruction behind a function: its condition for the preprocessor and its call.
struct CInstruction {
  std::string condition, call;
};

// By the width of a vector's registers on x86: "_mm256_sqrt_ps(x)" for "sqrt", "x".
std::optional<CInstruction> x86_instruction(const CVector& t, const char* name, const std::string& arguments,
                                            const char* narrow, const char* middle, const char* wide) {
  const int width = t.width();
  if (t.kind != 'f' || (width != 128 && width != 256 && width != 512)) return std::nullopt;
  return CInstruction{
      width == 128   ? narrow
      : width == 256 ? middle
                     : wide,
      format("_mm{}_{}_p{}({})", width == 128 ? "" : format("{}", width), name, t.bits == 32 ? "s" : "d", arguments)};
}

std::string intel_type(const CVector& t) {
  return format("(__m{}{})", t.width(), t.kind == 'i' || t.kind == 'u' ? "i" : t.bits == 64 ? "d" : "");
}

// y[i] = f(x[i]) for the names of arguments.
std::string each_lane(const CVector& result, const std::string& value) {
  return format("  {0} y = {{0}};\n  for (int i = 0; i < {1}; ++i) y[i] = {2};\n  return y;\n", result.name(),
                result.lanes, value);
}

// The two halves by the function for them; `arguments` are vectors of the same number of lanes.
std::string by_halves(const std::string& function, int lanes, const std::vector<std::string>& arguments) {
  auto half = [&](int first) {
    std::string out = function + "(";
    for (size_t i = 0; i < arguments.size(); ++i)
      out += format("{0}__builtin_shufflevector({1}, {1}, {2})", i == 0 ? "" : ",\n          ", arguments[i],
                    lane_list(first, lanes / 2));
    return out + ")";
  };
  return format("  return __builtin_shufflevector(\n      {},\n      {}, {});\n", half(0), half(lanes / 2),
                lane_list(0, lanes));
}

std::string with_instructions(const std::vector<CInstruction>& known, const std::string& otherwise) {
  std::string out;
  for (const CInstruction& i : known)
    out += format("{} {}\n  return {};\n", out.empty() ? "#if" : "#elif", i.condition, i.call);
  return out.empty() ? otherwise : out + "#else\n" + otherwise + "#endif\n";
}

std::string select_text(const CVector& t, const std::string& mask, const std::string& yes, const std::string& no) {
  const std::string m = t.mask().name();
  if (t.kind == 'i') return format("({1} & {0}) | ({2} & ~{0})", mask, yes, no);
  return format("({3})((({4}){1} & {0}) | (({4}){2} & ~{0}))", mask, yes, no, t.name(), m);
}

// Minimum and maximum as the loop IR has them, which are x86's: the second operand where either is NaN.
std::string extremum(const std::string& op, const CVector& t) {
  const char sign = op == "min" ? '<' : '>';
  std::vector<CInstruction> known;
  if (auto x = x86_instruction(t, op.c_str(), format("{0}a, {0}b", intel_type(t)), "defined(__SSE2__)",
                               "defined(__AVX__)", "defined(__AVX512F__)"))
    known.push_back({x->condition, format("({}){}", t.name(), x->call)});
  const std::string m = t.mask().name();
  return c_vector_head(t.name(), op + "_" + t.name().substr(3), format("{0} a, {0} b", t.name())) +
         with_instructions(known, format("  const {0} m = ({0})(a {1} b);\n  return {2};\n", m, sign,
                                         select_text(t, "m", "a", "b"))) +
         "}\n";
}

// Functions of one argument that processors have.
std::optional<std::string> rounding_text(const std::string& op, const CVector& t) {
  struct Row {
    const char *op, *libm, *neon;
    int mode;
  };
  constexpr Row kRows[] = {{"sqrt", "sqrt", "vsqrtq", -1},
                           {"round", "rint", "vrndnq", 8},
                           {"floor", "floor", "vrndmq", 9},
                           {"ceil", "ceil", "vrndpq", 10},
                           {"trunc", "trunc", "vrndq", 11}};
  for (const Row& row : kRows) {
    if (op != row.op) continue;
    std::vector<CInstruction> known;
    const bool root = row.mode < 0;
    const std::string x = intel_type(t) + "x", rounding = root ? x : format("{}, {}", x, row.mode);
    const char* name = root ? "sqrt" : t.width() == 512 ? "roundscale" : "round";
    if (auto i = x86_instruction(t, name, rounding, root ? "defined(__SSE2__)" : "defined(__SSE4_1__)",
                                 "defined(__AVX__)", "defined(__AVX512F__)"))
      known.push_back({i->condition, format("({}){}", t.name(), i->call)});
    if (t.width() == 128)
      known.push_back(
          {"defined(__aarch64__)", format("({}){}_f{}((float{}x{}_t)x)", t.name(), row.neon, t.bits, t.bits, t.lanes)});
    const std::string own = "tw_" + op + "_" + t.half().name().substr(3);
    return c_vector_head(t.name(), op + "_" + t.name().substr(3), t.name() + " x") +
           with_instructions(known, t.width() > 128
                                        ? by_halves(own, t.lanes, {"x"})
                                        : each_lane(t, format("{}{}(x[i])", row.libm, t.bits == 32 ? "f" : ""))) +
           "}\n";
  }
  return std::nullopt;
}

std::string fma_text(const CVector& t) {
  std::vector<CInstruction> known;
  const std::string to = intel_type(t);
  if (auto x = x86_instruction(t, "fmadd", format("{0}a, {0}b, {0}c", to), "defined(__FMA__)", "defined(__FMA__)",
                               "defined(__AVX512F__)"))
    known.push_back({x->condition, format("({}){}", t.name(), x->call)});
  if (t.width() == 128) {
    const std::string neon = format("(float{}x{}_t)", t.bits, t.lanes);
    known.push_back(
        {"defined(__aarch64__)", format("({}){}_f{}({}c, {}a, {}b)", t.name(), "vfmaq", t.bits, neon, neon, neon)});
  }
  return c_vector_head(t.name(), "fma_" + t.name().substr(3), format("{0} a, {0} b, {0} c", t.name())) +
         with_instructions(known, "  return a * b + c;\n") + "}\n";
}

// sum + the four products of each lane's unsigned bytes of a and signed ones of b, by products of halves of words.
std::string dot4_text(const CVector& t) {
  std::vector<CInstruction> known;
  for (const auto& [width, condition, p] :
       {std::tuple(128, "defined(__SSE2__)", "_mm"), std::tuple(256, "defined(__AVX2__)", "_mm256")})
    if (t.width() == width)
      known.push_back(
          {condition,
           format("sum + ({0}){1}_madd_epi16(({2})(a & 0xff00ff), {1}_srai_epi16({1}_slli_epi16(({2})b, 8), 8)) +\n"
                  "         ({0}){1}_madd_epi16({1}_srli_epi16(({2})a, 8), {1}_srai_epi16(({2})b, 8))",
                  t.name(), p, format("__m{}i", width))});
  const std::string u = t.with('u').name();
  std::string plain = format("  {0} out = ({0})sum;\n", u);
  for (int shift = 0; shift < 32; shift += 8)
    plain +=
        format("  out += (({0})a >> {1} & 255) * ({0})(({2})(({0})b << {3}) >> 24);\n", u, shift, t.name(), 24 - shift);
  return c_vector_head(t.name(), "dot4_" + t.name().substr(3), format("{0} sum, {0} a, {0} b", t.name())) +
         with_instructions(known, plain + format("  return ({})out;\n", t.name())) + "}\n";
}

// Converts lanes: of bytes and halves to words as instructions do that GCC finds for no cast.
std::string convert_text(const CVector& to, const CVector& from) {
  std::vector<CInstruction> known;
  const std::string word = format("ep{}{}", from.kind, from.bits), suffix = to.name().substr(3);
  const bool widens = from.kind != 'f' && to.kind != 'f' && from.bits < 32 && to.bits == 32;
  if (widens && to.lanes == 8) {
    const std::string bytes = from.bits == 8 ? "_mm_cvtsi64_si128((int64_t)x)" : "(__m128i)x";
    known.push_back({"defined(__AVX2__)", format("({})_mm256_cvt{}_epi32({})", to.name(), word, bytes)});
  }
  if (widens && to.lanes == 16)
    known.push_back({"defined(__AVX512F__)",
                     format("({})_mm512_cvt{}_epi32(({})x)", to.name(), word, from.bits == 8 ? "__m128i" : "__m256i")});
  const std::string head =
      c_vector_head(to.name(), format("{}_of_{}", suffix, from.name().substr(3)), from.name() + " x");
  const std::string own = format("tw_{}_of_{}", to.half().name().substr(3), from.half().name().substr(3));
  return head +
         with_instructions(known, widens && to.lanes >= 16
                                      ? by_halves(own, to.lanes, {"x"})
                                      : format("  return __builtin_convertvector(x, {});\n", to.name())) +
         "}\n";
}

// Between float and the bits of 16-bit floats.
std::string halves_text(const std::string& op, const CVector& t) {
  const CVector bits{'u', 16, t.lanes}, words = t.with('u');
  const bool brain = op[0] == 'b', widens = op.ends_with("to");
  const std::string& from = widens ? bits.name() : t.name();
  const CVector& result = widens ? bits : t;
  const CVector& out = widens ? t : bits;
  const std::string head = c_vector_head(out.name(), op + "_" + t.name().substr(3), from + " x");
  if (brain && widens)
    return head + format("  return ({})(__builtin_convertvector(x, {}) << 16);\n}}\n", t.name(), words.name());
  std::vector<CInstruction> known;
  const std::string call = brain    ? (widens ? "tw_bf16_to_f32" : "tw_f32_to_bf16")
                           : widens ? "tw_f16_to_f32"
                                    : "tw_f32_to_f16";
  if (!brain && t.lanes == 8)
    known.push_back({"defined(__F16C__)", widens ? format("({})_mm256_cvtph_ps((__m128i)x)", t.name())
                                                 : format("({})_mm256_cvtps_ph((__m256)x, 0)", bits.name())});
  if (!brain && t.lanes == 16)
    known.push_back({"defined(__AVX512F__)", widens ? format("({})_mm512_cvtph_ps((__m256i)x)", t.name())
                                                    : format("({})_mm512_cvtps_ph((__m512)x, 0)", bits.name())});
  (void)result;
  const std::string own = "tw_" + op + "_" + t.half().name().substr(3);
  return head +
         with_instructions(known,
                           !brain && t.lanes > 8 ? by_halves(own, t.lanes, {"x"}) : each_lane(out, call + "(x[i])")) +
         "}\n";
}

// Loads and stores of the first lanes, or of those that a mask has.
std::optional<std::string> memory_text(const std::string& op, const CVector& t) {
  const std::string suffix = t.name().substr(3), e = t.element();
  const bool four = t.kind == 'f' && t.bits == 32;
  if (op == "masked_load") {
    std::vector<CInstruction> known;
    if (four && t.width() == 256)
      known.push_back({"defined(__AVX__)", format("({})_mm256_maskload_ps(p, (__m256i)m)", t.name())});
    return c_vector_head(t.name(), op + "_" + suffix, format("const {} *p, {} m", e, t.mask().name())) +
           with_instructions(known, format("  {} y = {{0}};\n  for (int i = 0; i < {}; ++i)\n    if (m[i] != 0) y[i] = "
                                           "p[i];\n  return y;\n",
                                           t.name(), t.lanes)) +
           "}\n";
  }
  if (op == "masked_store")
    return c_vector_head("void", op + "_" + suffix, format("{} *p, {} m, {} x", e, t.mask().name(), t.name())) +
           format("  for (int i = 0; i < {}; ++i)\n    if (m[i] != 0) p[i] = x[i];\n}}\n", t.lanes);
  const bool load = op.starts_with("load"), store = op.starts_with("store");
  if (!load && !store) return std::nullopt;
  const std::string count = op.substr(load ? 4 : 5);
  if (load)
    return c_vector_head(t.name(), op + "_" + suffix, format("const {} *p", e)) +
           format("  {} y = {{0}};\n  memcpy(&y, p, {} * sizeof *p);\n  return y;\n}}\n", t.name(), count);
  return c_vector_head("void", op + "_" + suffix, format("{} *p, {} x", e, t.name())) +
         format("  memcpy(p, &x, {} * sizeof *p);\n}}\n", count);
}

}  // namespace

std::string CVector::name() const { return format("tw_{}{}x{}", kind, bits, lanes); }

std::string CVector::element() const {
  if (kind == 'f') return bits == 32 ? "float" : "double";
  return format("{}int{}_t", kind == 'u' ? "u" : "", bits);
}

CVector c_vector(DataType t) {
  const bool bits = t.is_bool() || t.is_uint() || is_bits_float(t);
  const int size = t.bits <= 8 ? 8 : t.bits <= 16 ? 16 : t.bits <= 32 ? 32 : 64;
  return {bits ? 'u' : t.is_float() ? 'f' : 'i', size, static_cast<int>(std::bit_ceil(static_cast<unsigned>(t.lanes)))};
}

bool is_plain_vector(DataType t) {
  return !t.is_bool() && !is_bits_float(t) && (t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64);
}

std::optional<CVector> parse_c_vector(const std::string& given) {
  const std::string text = given.ends_with("_at") ? given.substr(0, given.size() - 3) : given;
  if (text.size() < 4 || (text[0] != 'f' && text[0] != 'i' && text[0] != 'u')) return std::nullopt;
  CVector out{text[0], 0, 0};
  const char* end = text.data() + text.size();
  const auto bits = std::from_chars(text.data() + 1, end, out.bits);
  if (bits.ec != std::errc() || bits.ptr == end || *bits.ptr != 'x') return std::nullopt;
  const auto lanes = std::from_chars(bits.ptr + 1, end, out.lanes);
  if (lanes.ec != std::errc() || lanes.ptr != end) return std::nullopt;
  return out;
}

std::string c_vector_head(const std::string& result, const std::string& name, const std::string& params) {
  return format("static inline __attribute__((always_inline)) {} tw_{}({}) {{\n", result, name, params);
}

std::optional<std::string> c_vector_function(const std::string& name) {
  const size_t last = name.rfind('_');
  if (name.rfind("tw_", 0) != 0 || last == std::string::npos || last < 3) return std::nullopt;
  const auto type = parse_c_vector(name.substr(last + 1));
  if (!type) return std::nullopt;
  const CVector& t = *type;
  const std::string op = name.substr(3, last - 3), suffix = t.name().substr(3);
  if (op == "fma") return fma_text(t);
  if (op == "min" || op == "max") return extremum(op, t);
  if (op == "dot4") return dot4_text(t);
  if (op == "f16_to" || op == "f16_of" || op == "bf16_to" || op == "bf16_of") return halves_text(op, t);
  if (op.ends_with("_of"))
    if (const auto to = parse_c_vector(op.substr(0, op.size() - 3))) return convert_text(*to, t);
  if (op == "all") {
    std::string lanes;
    for (int i = 0; i < t.lanes; ++i) lanes += i == 0 ? "x" : ", x";
    return c_vector_head(t.name(), "all_" + suffix, t.element() + " x") +
           format("  return ({}){{{}}};\n}}\n", t.name(), lanes);
  }
  if (op == "choose")
    return c_vector_head(t.name(), "choose_" + suffix, format("{1} m, {0} a, {0} b", t.name(), t.mask().name())) +
           format("  return {};\n}}\n", select_text(t, "m", "a", "b"));
  if (auto out = rounding_text(op, t)) return out;
  if (auto out = memory_text(op, t)) return out;
  return c_vector_math(op, t);
}

std::string c_vector_definitions(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    const auto t = name.rfind("tw_", 0) == 0 ? parse_c_vector(name.substr(3)) : std::nullopt;
    if (!t) continue;
    const bool memory = name.ends_with("_at");
    out += format("typedef {} {} __attribute__((vector_size({}){}));\n", t->element(), name, t->width() / 8,
                  memory ? format(", aligned({}), may_alias", t->bits / 8) : "");
  }
  return out;
}

}  // namespace tilewright::codegen
