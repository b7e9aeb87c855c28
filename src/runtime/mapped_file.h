// SPDX-License-Identifier: Apache-2.0
// A file mapped for reading.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace tilewright::runtime {

class MappedFile {
 public:
  // `what` names the expected kind of file in messages ("a compiled model"). Errors: FileNotFound, BadArtifact (a
  // folder, a device, an empty file).
  static Result<MappedFile> open(const std::string& path, const char* what);
  MappedFile(MappedFile&& other) noexcept {
    std::swap(fd_, other.fd_), std::swap(data_, other.data_), std::swap(size_, other.size_);
  }
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  int release_descriptor() { return std::exchange(fd_, -1); }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  MappedFile() = default;
  int fd_ = -1;
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
};

}  // namespace tilewright::runtime
