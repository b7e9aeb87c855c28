// SPDX-License-Identifier: Apache-2.0
// Shared by the frontend's tests: reading the committed models.
#pragma once
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "frontend/onnx/proto.h"
#include "test_folders.h"

namespace tilewright::onnx {

inline std::string model_path(const std::string& name) { return std::string(TW_TEST_DATA) + "/onnx/" + name; }

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Bytes in a buffer of their exact size, so that sanitizers see reads past the end.
inline SharedBytes shared_bytes(const std::string& text) {
  auto copy = std::make_shared<std::vector<std::byte>>(reinterpret_cast<const std::byte*>(text.data()),
                                                       reinterpret_cast<const std::byte*>(text.data()) + text.size());
  return {std::span<const std::byte>(copy->data(), copy->size()), copy};
}

}  // namespace tilewright::onnx
