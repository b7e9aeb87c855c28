// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// fuzz-seeds: tests/data/torch
// Reading and importing a .pt2 archive gives a module or a diagnostic, whatever the bytes are; never an internal error.
#include <cstring>
#include <memory>
#include <vector>

#include "frontend/torch/archive.h"
#include "frontend/torch/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(copy->data(), data, size);
  const torch::SharedBytes bytes{std::span<const std::byte>(copy->data(), copy->size()), copy};
  auto program = torch::read_archive(bytes);
  if (!program.ok()) {
    if (program.error().str().empty() || program.error().code == ErrorCode::kInternal) __builtin_trap();
    return 0;
  }
  auto module = torch::import_torch(*program);
  if (!module.ok() && (module.error().str().empty() || module.error().code == ErrorCode::kInternal)) __builtin_trap();
  return 0;
}
