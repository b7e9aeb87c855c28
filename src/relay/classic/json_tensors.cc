// SPDX-License-Identifier: Apache-2.0
#include "relay/classic/json_tensors.h"

#include <cstring>

#include "base/base64.h"
#include "base/formats/tensor_record.h"

namespace tilewright::relay {
std::string encode_tensor(const Tensor& tensor) {
  ByteWriter out;
  write_tensor_record(out, {tensor.dtype(), tensor.shape(), {tensor.raw(), tensor.bytes()}});
  return base64_encode(out.str());
}

Result<Tensor> decode_tensor(const std::string& text) {
  auto bytes = base64_decode(text);
  if (!bytes) return Diagnostic(ErrorCode::kBadArtifact, "a tensor is not base64");
  ByteReader in(std::as_bytes(std::span(*bytes)));
  TensorRecord record = TW_TRY(read_tensor_record(in, "a constant", "JSON"));
  if (in.remaining() != 0) return Diagnostic(ErrorCode::kBadArtifact, "bytes follow a tensor's record");
  Tensor out(record.dtype, record.shape);
  if (!record.data.empty()) std::memcpy(out.mutable_raw(), record.data.data(), record.data.size());
  return out;
}

}  // namespace tilewright::relay
