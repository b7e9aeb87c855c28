// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// fuzz-seeds: tests/data/onnx
// Importing an ONNX model gives a module or a diagnostic, whatever the bytes are; never an internal error.
#include <cstring>
#include <memory>
#include <vector>

#include "frontend/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(copy->data(), data, size);
  const onnx::SharedBytes bytes{std::span<const std::byte>(copy->data(), copy->size()), copy};
  auto module = onnx::import_onnx(bytes);
  if (!module.ok() && (module.error().str().empty() || module.error().code == ErrorCode::kInternal)) __builtin_trap();
  return 0;
}
