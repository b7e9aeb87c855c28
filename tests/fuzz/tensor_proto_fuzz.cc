// SPDX-License-Identifier: Apache-2.0
// fuzz-room: inputs
// TensorProto files of `run --input @x.pb`: what is read is written to bytes that read alike.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "inputs/tensor_proto.h"

using namespace tilewright;
using namespace tilewright::inputs;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (DataType dtype : {kFloat32, kFloat64, kFloat16, kInt32, kInt64, kUInt8, kBool})
    seeds->push_back(*write_tensor_proto("x", Tensor::zeros(dtype, {2, 3})));
  seeds->push_back(*write_tensor_proto("", Tensor::zeros({TypeCode::kInt, 4, 1}, {3})));
  seeds->push_back(*write_tensor_proto("words", Tensor::strings({2}, {"a", "bc"})));
  // dims 2,3; float; packed float_data of 24 bytes.
  seeds->push_back(std::string("\x08\x02\x08\x03\x10\x01\x22\x18", 8) + std::string(24, '\2'));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto read = read_tensor_proto(std::as_bytes(std::span(data, size)));
  if (!read.ok()) return 0;
  auto written = write_tensor_proto(read->name, read->tensor);
  if (!written.ok()) return 0;
  auto again = read_tensor_proto(std::as_bytes(std::span(*written)));
  if (!again.ok() || again->tensor.shape() != read->tensor.shape() || again->tensor.dtype() != read->tensor.dtype())
    __builtin_trap();
  if (!read->tensor.dtype().is_string() && read->tensor.bytes() != 0 &&
      std::memcmp(again->tensor.raw(), read->tensor.raw(), read->tensor.bytes()) != 0)
    __builtin_trap();
  return 0;
}
