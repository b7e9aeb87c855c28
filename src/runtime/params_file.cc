// SPDX-License-Identifier: Apache-2.0
#include "runtime/params_file.h"

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/format.h"
#include "base/formats/tensor_record.h"

namespace tilewright::runtime {
namespace {

Diagnostic damaged_params(std::string what) {
  return Diagnostic(ErrorCode::kBadArtifact, std::move(what), "params", "write the parameters again");
}

}  // namespace

Result<std::vector<NamedTensor>> read_params_file(std::span<const std::byte> bytes) {
  TW_TRY_STATUS(check_byte_order("a .params file"));
  ByteReader in(bytes);
  if (in.read<uint64_t>() != kParamsMark) return damaged_params("this is not a .params file");
  in.read<uint64_t>();
  uint64_t names = in.read_count(8);
  std::vector<std::string> list;
  for (uint64_t i = 0; i < names && in.ok(); ++i) list.push_back(in.read_string());
  if (in.read<uint64_t>() != names || !in.ok()) return damaged_params("the list of names is damaged");
  std::vector<NamedTensor> tensors;
  for (auto& name : list) {
    TensorRecord record = TW_TRY(read_tensor_record(in, name, "params"));
    tensors.push_back({std::move(name), record.dtype, std::move(record.shape), record.data});
  }
  if (in.remaining() != 0) return damaged_params(format("{} bytes follow the last tensor", in.remaining()));
  return tensors;
}

std::string write_params_file(std::span<const NamedTensor> tensors) {
  ByteWriter out;
  out.write<uint64_t>(kParamsMark);
  out.write<uint64_t>(0);
  out.write<uint64_t>(tensors.size());
  for (const auto& t : tensors) out.write_string(t.name);
  out.write<uint64_t>(tensors.size());
  for (const auto& t : tensors) write_tensor_record(out, {t.dtype, t.shape, t.data});
  return out.take();
}

}  // namespace tilewright::runtime
