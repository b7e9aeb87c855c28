// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <charconv>

#include "base/format.h"

namespace tilewright {
namespace {
struct SmallFloat {
  TypeCode code;
  uint8_t bits;
  const char* name;
};
constexpr SmallFloat kNamed[] = {
    {TypeCode::kBFloat, 16, "bfloat16"},
    {TypeCode::kBool, 8, "bool"},
    {TypeCode::kFloat8E4M3FN, 8, "float8_e4m3fn"},
    {TypeCode::kFloat8E4M3FNUZ, 8, "float8_e4m3fnuz"},
    {TypeCode::kFloat8E5M2, 8, "float8_e5m2"},
    {TypeCode::kFloat8E5M2FNUZ, 8, "float8_e5m2fnuz"},
    {TypeCode::kFloat8E8M0, 8, "float8_e8m0fnu"},
    {TypeCode::kFloat4E2M1, 4, "float4_e2m1"},
    {TypeCode::kString, 0, "string"},
    {TypeCode::kHandle, 64, "handle"},
};
// Alternative names in classic texts.
constexpr std::pair<std::string_view, DataType> kAliases[] = {
    {"int", kInt32}, {"uint", kUInt32}, {"float", kFloat32}, {"uint1", kBool}};
struct Family {
  TypeCode code;
  const char* prefix;
  const char* widths;  // accepted bit widths
};
constexpr Family kFamilies[] = {
    {TypeCode::kUInt, "uint", " 1 2 4 8 16 32 64 "},
    {TypeCode::kInt, "int", " 2 4 8 16 32 64 "},
    {TypeCode::kFloat, "float", " 16 32 64 "},
    {TypeCode::kComplex, "complex", " 64 128 "},
};
}  // namespace

bool DataType::is_float() const {
  switch (code) {
    case TypeCode::kFloat:
    case TypeCode::kBFloat:
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0:
    case TypeCode::kFloat4E2M1:
      return true;
    case TypeCode::kInt:
    case TypeCode::kUInt:
    case TypeCode::kBool:
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      return false;
  }
  return false;
}

uint64_t DataType::bytes_for(uint64_t n) const { return (n * bits + 7) / 8; }

std::string DataType::str() const {
  std::string out;
  for (const auto& named : kNamed)
    if (named.code == code) out = named.name;
  for (const auto& family : kFamilies)
    if (family.code == code) out = format("{}{}", family.prefix, bits);
  if (lanes != 1) out += format("x{}", lanes);
  return out;
}

Result<DataType> parse_dtype(std::string_view text) {
  std::string_view body = text;
  DataType type;
  auto bad = [&] {
    return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is not a dtype", text), {},
                      "use a name such as float32, int64, uint8, bool or bfloat16");
  };
  if (auto x = body.rfind('x'); x != std::string_view::npos && x + 1 < body.size() && body != "complex") {
    auto digits = body.substr(x + 1);
    auto [end, err] = std::from_chars(digits.data(), digits.data() + digits.size(), type.lanes);
    if (err == std::errc() && end == digits.data() + digits.size() && type.lanes > 0)
      body = body.substr(0, x);
    else
      type.lanes = 1;
  }
  for (const auto& [alias, meant] : kAliases)
    if (body == alias) return DataType{meant.code, meant.bits, type.lanes};
  for (const auto& named : kNamed)
    if (body == named.name) return DataType{named.code, named.bits, type.lanes};
  for (const auto& family : kFamilies) {
    std::string_view prefix = family.prefix;
    if (body.substr(0, prefix.size()) != prefix) continue;
    auto width = body.substr(prefix.size());
    if (width.empty() || std::string_view(family.widths).find(format(" {} ", width)) == std::string_view::npos)
      return bad();
    int bits = 0;
    std::from_chars(width.data(), width.data() + width.size(), bits);
    return DataType{family.code, static_cast<uint8_t>(bits), type.lanes};
  }
  return bad();
}

}  // namespace tilewright
