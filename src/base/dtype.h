// SPDX-License-Identifier: Apache-2.0
// Element types. Bit layout and codes follow DLPack; names follow numpy and ONNX.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tilewright {

enum class TypeCode : uint8_t {
  kInt,
  kUInt,
  kFloat,   // IEEE binary16/32/64
  kBFloat,  // bfloat16
  kBool,    // one byte, 0 or 1
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
  kComplex,  // two floats; bits is their sum
  kString,   // host only, outside DLPack
  kHandle,   // an opaque pointer, in tir only
};

struct DataType {
  TypeCode code = TypeCode::kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  bool operator==(const DataType&) const = default;
  bool is_float() const;  // every floating format, bfloat16 and float8 included
  bool is_int() const { return code == TypeCode::kInt; }
  bool is_uint() const { return code == TypeCode::kUInt; }
  bool is_integral() const { return is_int() || is_uint(); }
  bool is_bool() const { return code == TypeCode::kBool; }
  bool is_string() const { return code == TypeCode::kString; }
  DataType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  DataType element() const { return with_lanes(1); }
  // Bytes of n packed elements; int4, uint4 and float4 pack two in a byte (first element in the low half).
  uint64_t bytes_for(uint64_t n) const;
  // Bytes of one element (all lanes), rounded up to whole bytes.
  uint64_t bytes() const { return bytes_for(lanes); }
  // "float32", "int4", "bool", "bfloat16", "float8_e4m3fn", "string", "float32x16"
  std::string str() const;
};

Result<DataType> parse_dtype(std::string_view text);

inline constexpr DataType kFloat32{TypeCode::kFloat, 32, 1};
inline constexpr DataType kFloat64{TypeCode::kFloat, 64, 1};
inline constexpr DataType kFloat16{TypeCode::kFloat, 16, 1};
inline constexpr DataType kBFloat16{TypeCode::kBFloat, 16, 1};
inline constexpr DataType kInt8{TypeCode::kInt, 8, 1};
inline constexpr DataType kInt16{TypeCode::kInt, 16, 1};
inline constexpr DataType kInt32{TypeCode::kInt, 32, 1};
inline constexpr DataType kInt64{TypeCode::kInt, 64, 1};
inline constexpr DataType kUInt8{TypeCode::kUInt, 8, 1};
inline constexpr DataType kUInt16{TypeCode::kUInt, 16, 1};
inline constexpr DataType kUInt32{TypeCode::kUInt, 32, 1};
inline constexpr DataType kUInt64{TypeCode::kUInt, 64, 1};
inline constexpr DataType kBool{TypeCode::kBool, 8, 1};
inline constexpr DataType kString{TypeCode::kString, 0, 1};

}  // namespace tilewright
