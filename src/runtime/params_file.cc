// SPDX-License-Identifier: Apache-2.0
#include "runtime/params_file.h"

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kListMagic = 0xF7E58D4F05049CB7, kTensorMagic = 0xDD5E40F096B4A13F;

struct ClassicCode {
  TypeCode code;
  uint8_t classic;
};
constexpr ClassicCode kCodes[] = {
    {TypeCode::kInt, 0}, {TypeCode::kUInt, 1}, {TypeCode::kFloat, 2}, {TypeCode::kBFloat, 4}};

Diagnostic damaged(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "params", "write the parameters again");
}

Result<NamedTensor> read_tensor(ByteReader& in, std::string name) {
  if (in.read<uint64_t>() != kTensorMagic) return damaged(format("the record of '{}' lacks its mark", name));
  in.read<uint64_t>();
  auto device = in.read<int32_t>();
  in.read<int32_t>();
  auto rank = in.read<int32_t>();
  auto code = in.read<uint8_t>(), bits = in.read<uint8_t>();
  auto lanes = in.read<uint16_t>();
  if (!in.ok() || device != 1 || rank < 0 || rank > 32) return damaged(format("the record of '{}' is damaged", name));
  NamedTensor t{std::move(name), {TypeCode::kHandle, bits, lanes}, {}, {}};
  for (const auto& c : kCodes)
    if (c.classic == code) t.dtype.code = c.code;
  if (t.dtype == DataType{TypeCode::kUInt, 1, 1}) t.dtype = kBool;  // the classic stack's bool: one bit, stored in a byte
  auto known = parse_dtype(t.dtype.str());
  if (t.dtype.code == TypeCode::kHandle || lanes != 1 || !known.ok() || !(*known == t.dtype))
    return damaged(format("'{}' has an unknown dtype (code {}, {} bits, {} lanes)", t.name, code, bits, lanes));
  for (int32_t d = 0; d < rank; ++d) t.shape.push_back(in.read<int64_t>());
  auto count = checked_element_count(t.shape);
  if (!in.ok() || !count.ok()) return damaged(format("'{}' has an impossible shape", t.name));
  auto bytes = in.read<uint64_t>();
  if (bytes != static_cast<uint64_t>(*count) * t.dtype.bytes())
    return damaged(format("'{}' should have {} bytes, the file says {}", t.name, static_cast<uint64_t>(*count) * t.dtype.bytes(), bytes));
  t.data = in.take(bytes);
  if (!in.ok()) return damaged(format("the file ends within '{}'", t.name));
  return t;
}

}  // namespace

Result<std::vector<NamedTensor>> read_params_file(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  if (in.read<uint64_t>() != kListMagic) return damaged("this is not a .params file");
  in.read<uint64_t>();
  uint64_t names = in.read_count(8);
  std::vector<std::string> list;
  for (uint64_t i = 0; i < names && in.ok(); ++i) list.push_back(in.read_string());
  if (in.read<uint64_t>() != names || !in.ok()) return damaged("the list of names is damaged");
  std::vector<NamedTensor> tensors;
  for (auto& name : list) tensors.push_back(TW_TRY(read_tensor(in, std::move(name))));
  if (in.remaining() != 0) return damaged(format("{} bytes follow the last tensor", in.remaining()));
  return tensors;
}

std::string write_params_file(std::span<const NamedTensor> tensors) {
  ByteWriter out;
  out.write<uint64_t>(kListMagic);
  out.write<uint64_t>(0);
  out.write<uint64_t>(tensors.size());
  for (const auto& t : tensors) out.write_string(t.name);
  out.write<uint64_t>(tensors.size());
  for (const auto& t : tensors) {
    out.write<uint64_t>(kTensorMagic);
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
  return out.take();
}

}  // namespace tilewright::runtime
