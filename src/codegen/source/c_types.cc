// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_types.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/format.h"
#include "base/small_float.h"

namespace tilewright::codegen {
namespace {

// Reserved names: keywords, and functions that
// generated code or a user's program may call.
constexpr const char* kTakenWords[] = {
    "auto",     "break",  "case",     "char",    "const",  "continue", "default",   "do",        "double",  "else",
    "enum",     "extern", "float",    "for",     "goto",   "if",       "inline",    "int",       "long",    "register",
    "restrict", "return", "short",    "signed",  "sizeof", "static",   "struct",    "switch",    "typedef", "union",
    "unsigned", "void",   "while",    "asm",     "main",   "bool",     "true",      "false",     "class",   "new",
    "delete",   "this",   "operator", "private", "public", "template", "namespace", "exp",       "log",     "sqrt",
    "pow",      "tanh",   "erf",      "floor",   "ceil",   "trunc",    "sin",       "cos",       "tan",     "asin",
    "acos",     "atan",   "sinh",     "cosh",    "asinh",  "acosh",    "atanh",     "exp2",      "log2",    "log10",
    "log1p",    "fmod",   "copysign", "rint",    "ldexp",  "fma",      "memcpy",    "isnan",     "isinf",   "isfinite",
    "signbit",  "abs",    "div",      "index",   "j0",     "j1",       "jn",        "y0",        "y1",      "yn",
    "gamma",    "round",  "INFINITY", "NAN",     "NULL",   "linux",    "unix",      "workspace", "weights"};

}  // namespace

const char* c_type(DataType t) {
  const int bits = t.bits <= 8 ? 8 : t.bits <= 16 ? 16 : t.bits <= 32 ? 32 : 64;
  if (t.is_int()) return bits == 8 ? "int8_t" : bits == 16 ? "int16_t" : bits == 32 ? "int32_t" : "int64_t";
  if (t.is_uint() || (is_bits_float(t) && t.code != TypeCode::kComplex))
    return bits == 8 ? "uint8_t" : bits == 16 ? "uint16_t" : bits == 32 ? "uint32_t" : "uint64_t";
  if (t.is_bool()) return "uint8_t";
  if (t.code == TypeCode::kFloat) return t.bits == 32 ? "float" : t.bits == 64 ? "double" : nullptr;
  return nullptr;
}

std::string c_suffix(DataType t) {
  if (t.is_float()) return t.bits == 64 ? "f64" : "f32";
  if (t.bits < 32) return "i32";
  return format("{}{}", t.is_uint() ? "u" : "i", t.bits);
}

std::string c_integer(int64_t value, DataType t) {
  if (t.is_uint() && t.bits == 64) return format("UINT64_C({})", static_cast<uint64_t>(value));
  if (t.is_uint() && t.bits == 32) return format("{}u", value);
  if (value == INT64_MIN) return "(-INT64_C(9223372036854775807) - 1)";
  if (value == INT32_MIN) return "(-2147483647 - 1)";
  if (value > INT32_MAX || value < INT32_MIN)
    return value < 0 ? format("(-INT64_C({}))", -value) : format("INT64_C({})", value);
  return value < 0 ? format("({})", value) : format("{}", value);
}

std::string c_float(double value, DataType t) {
  if (is_bits_float(t)) {
    const SmallFloatFormat f = t.bits < 16                   ? small_float_format(t.code)
                               : t.code == TypeCode::kBFloat ? kBFloatFormat
                                                             : kHalfFormat;
    return format("{:#x}", small_float_encode(f, value));
  }
  const bool wide = t.bits == 64;
  if (std::isnan(value)) return wide ? "(double)NAN" : "NAN";
  if (std::isinf(value)) return format("({}{}INFINITY)", value < 0 ? "-" : "", wide ? "(double)" : "");
  std::string text = wide ? format("{}", value) : format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!wide) text += "f";
  return std::signbit(value) ? "(" + text + ")" : text;
}

std::string c_identifier(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    if (letter || digit)
      out += c;
    else if (out.empty() || out.back() != '_')
      out += '_';
  }
  if (out.size() > 48) out.resize(48);
  // Leading underscores are reserved.
  while (!out.empty() && out[0] == '_') out.erase(0, 1);
  if (out.empty()) return "v";
  if (out[0] >= '0' && out[0] <= '9') out = "v" + out;
  if (out.rfind("tw_", 0) == 0) out = "v_" + out;
  const bool taken = std::find(std::begin(kTakenWords), std::end(kTakenWords), out) != std::end(kTakenWords);
  return taken ? out + "_" : out;
}

std::string c_comment(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c < ' ' || c > '~' || c == '?') c = '.';  // question marks make trigraphs
    if (c == '\\') c = '|';
    const bool ends = (c == '/' || c == '*') && !out.empty() && (out.back() == '*' || out.back() == '/');
    out += ends ? '_' : c;  // breaks up comment delimiters
  }
  return out;
}

std::string c_string(const std::string& text) {
  static constexpr char kOctal[] = "01234567";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte > 126 || c == '"' || c == '\\' || c == '?')
      out += {'\\', kOctal[byte >> 6], kOctal[byte >> 3 & 7], kOctal[byte & 7]};
    else
      out += c;
  }
  return out + "\"";
}

std::string c_widen_call(DataType from, const std::string& value) {
  if (from.bits == 16) return format("tw_{}_to_f32({})", from.code == TypeCode::kBFloat ? "bf16" : "f16", value);
  const SmallFloatFormat f = small_float_format(from.code);
  if (f.special == SmallFloatFormat::kScaleOnly) return format("tw_f8_scale_to_f32({})", value);
  // Its special codes: only infinities and NaNs from some code on, or none.
  const unsigned top = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  const unsigned nan = f.special == SmallFloatFormat::kFiniteNan ? top : top + 1;
  const unsigned infinity = f.special == SmallFloatFormat::kIeee ? small_float_encode(f, HUGE_VAL) : top + 1;
  const int zero_nan = f.special == SmallFloatFormat::kUnsignedZero;
  return format("tw_f8_to_f32({}, {}, {}, {}, {:#x}, {:#x}, {})", value, f.exponent_bits, f.mantissa_bits, f.bias,
                infinity, nan, zero_nan);
}

std::string c_narrow_call(DataType to, const std::string& value) {
  if (to.bits == 16) return format("tw_f32_to_{}({})", to.code == TypeCode::kBFloat ? "bf16" : "f16", value);
  const SmallFloatFormat f = small_float_format(to.code);
  if (f.special == SmallFloatFormat::kScaleOnly) return format("tw_f32_to_f8_scale({})", value);
  const unsigned infinity = small_float_encode(f, HUGE_VAL);
  const unsigned largest = f.special == SmallFloatFormat::kIeee ? infinity - 1 : infinity;
  return format("tw_f32_to_f8({}, {}, {}, {}, {:#x}, {:#x}, {:#x}, {})", value, f.exponent_bits, f.mantissa_bits,
                f.bias, largest, infinity, small_float_encode(f, NAN),
                f.special == SmallFloatFormat::kUnsignedZero ? 1 : 0);
}

}  // namespace tilewright::codegen
