// SPDX-License-Identifier: Apache-2.0
// Working memory straight from the system, 64-byte aligned (2 MiB aligned and in huge pages when large). A large one
// that is given back is kept for the next arena of the process; what it holds then is anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace tilewright::runtime {

inline constexpr uint64_t kHugePage = uint64_t{2} << 20;  // bytes

class ThreadTeam;

class Arena {
 public:
  Arena() = default;
  // Errors: LimitExceeded (the system has not that much).
  static Result<Arena> allocate(uint64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  // At least so many bytes; what it held is lost when it moves. Errors: those of allocate.
  Status grow(uint64_t bytes);
  // Before the first run: all threads take a large arena's pages from the system, each a part of it.
  void touch(ThreadTeam& team);
  std::byte* data() const { return data_; }

 private:
  void swap(Arena& other) {
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(touched_, other.touched_);
  }
  void* mapping_ = nullptr;
  uint64_t mapped_ = 0;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;  // that were asked for
  bool touched_ = true;
};

}  // namespace tilewright::runtime
