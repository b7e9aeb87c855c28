// SPDX-License-Identifier: Apache-2.0
#include "base/formats/tensor_record.h"

#include "base/format.h"

namespace tilewright {
namespace {

constexpr uint64_t kMark = 0xDD5E40F096B4A13F;

struct ClassicCode {
  TypeCode code;
  uint8_t classic;
};
constexpr ClassicCode kCodes[] = {
    {TypeCode::kInt, 0}, {TypeCode::kUInt, 1}, {TypeCode::kFloat, 2}, {TypeCode::kBFloat, 4}};

}  // namespace

Result<TensorRecord> read_tensor_record(ByteReader& in, const std::string& name, const std::string& where) {
  auto damaged = [&](std::string what) {
    return Diagnostic(ErrorCode::kBadArtifact, std::move(what), where, "write the parameters again");
  };
  if (in.read<uint64_t>() != kMark) return damaged(format("the record of '{}' lacks its mark", name));
  in.read<uint64_t>();
  auto device = in.read<int32_t>();
  in.read<int32_t>();
  auto rank = in.read<int32_t>();
  auto code = in.read<uint8_t>(), bits = in.read<uint8_t>();
  auto lanes = in.read<uint16_t>();
  if (!in.ok() || device != 1 || rank < 0 || rank > 32) return damaged(format("the record of '{}' is damaged", name));
  TensorRecord t{{TypeCode::kHandle, bits, lanes}, {}, {}};
  for (const auto& c : kCodes)
    if (c.classic == code) t.dtype.code = c.code;
  if (t.dtype == DataType{TypeCode::kUInt, 1, 1})
    t.dtype = kBool;  // the classic stack's bool: one bit, stored in a byte
  auto known = parse_dtype(t.dtype.str());
  if (t.dtype.code == TypeCode::kHandle || lanes != 1 || !known.ok() || !(*known == t.dtype))
    return damaged(format("'{}' has an unknown dtype (code {}, {} bits, {} lanes)", name, code, bits, lanes));
  for (int32_t d = 0; d < rank; ++d) t.shape.push_back(in.read<int64_t>());
  auto count = checked_element_count(t.shape);
  if (!in.ok() || !count.ok()) return damaged(format("'{}' has an impossible shape", name));
  auto bytes = in.read<uint64_t>();
  if (bytes != static_cast<uint64_t>(*count) * t.dtype.bytes())
    return damaged(format("'{}' should have {} bytes, the file says {}", name,
                          static_cast<uint64_t>(*count) * t.dtype.bytes(), bytes));
  t.data = in.take(bytes);
  if (!in.ok()) return damaged(format("the file ends within '{}'", name));
  return t;
}

void write_tensor_record(ByteWriter& out, const TensorRecord& t) {
  out.write<uint64_t>(kMark);
  out.write<uint64_t>(0);
  out.write<int32_t>(1);
  out.write<int32_t>(0);
  out.write<int32_t>(static_cast<int32_t>(t.shape.size()));
  bool is_bool = t.dtype.is_bool();
  uint8_t code = is_bool ? 1 : 3;
  for (const auto& c : kCodes)
    if (c.code == t.dtype.code) code = c.classic;
  out.write<uint8_t>(code);
  out.write<uint8_t>(is_bool ? 1 : t.dtype.bits);
  out.write<uint16_t>(t.dtype.lanes);
  for (int64_t d : t.shape) out.write<int64_t>(d);
  out.write<uint64_t>(t.data.size());
  out.write_bytes(t.data.data(), t.data.size());
}

}  // namespace tilewright
