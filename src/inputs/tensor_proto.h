// SPDX-License-Identifier: Apache-2.0
// ONNX TensorProto files (.pb), as used by the ONNX backend tests. Wire format: protobuf encoding; fields: onnx.proto,
// message TensorProto.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::inputs {

struct NamedTensorProto {
  std::string name;
  Tensor tensor;
};

// Errors: MalformedModel, UnsupportedModel (external data, unknown element types).
Result<NamedTensorProto> read_tensor_proto(std::span<const std::byte> bytes);
Result<std::string> write_tensor_proto(const std::string& name, const Tensor& tensor);

}  // namespace tilewright::inputs
