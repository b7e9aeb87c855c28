// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// Reading the tensors of the backend tests (TensorProto, and sequences of them) from any bytes.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"

// dims 2,3; float; raw_data of 24 bytes; name "x". Then the same with packed float_data, and as a sequence of
// one.
extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  const std::string head("\x08\x02\x08\x03\x10\x01\x42\x01x", 9);
  const std::string raw = head + std::string("\x4a\x18", 2) + std::string(24, '\1');
  seeds->push_back(raw);
  seeds->push_back(head + std::string("\x22\x18", 2) + std::string(24, '\2'));
  seeds->push_back(std::string("\x0a\x01s\x10\x01\x1a", 6) + char(raw.size()) + raw);
  seeds->push_back(
      std::string("\x08\x02\x10\x08\x32\x01"
                  "a\x32\x02"
                  "bc",
                  11));  // two strings
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  auto copy = std::make_shared<std::vector<std::byte>>(size);
  if (size != 0) std::memcpy(copy->data(), data, size);
  const onnx::SharedBytes bytes{std::span<const std::byte>(copy->data(), copy->size()), copy};
  (void)onnx::read_tensor(bytes).ok();
  (void)onnx::read_sequence(bytes).ok();
  return 0;
}
