// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// fuzz-seeds: tests/data/onnx
// Reading an ONNX file gives a model or a diagnostic, whatever the bytes are.
#include <cstring>
#include <memory>
#include <vector>

#include "frontend/onnx/proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(copy->data(), data, size);
  const onnx::SharedBytes bytes{std::span<const std::byte>(copy->data(), copy->size()), copy};
  // No folder: external data is refused, so that no input makes the reader open files.
  Result<onnx::Model> model = onnx::read_model(bytes, "");
  if (!model.ok() && model.error().str().empty()) __builtin_trap();
  return 0;
}
