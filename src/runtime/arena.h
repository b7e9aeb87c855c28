// SPDX-License-Identifier: Apache-2.0
// Working memory from the operating system, 64-byte aligned (large ones: 2 MiB aligned, in huge pages). A large arena
// that is freed is kept for the next one of the process; its content is unspecified.
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
  // Errors: LimitExceeded (not enough memory).
  static Result<Arena> allocate(uint64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept { swap(other); }
  Arena& operator=(Arena&& other) noexcept {
    swap(other);
    return *this;
  }
  // Grows to at least `bytes`; the content is lost if it moves. Errors: those of allocate.
  Status grow(uint64_t bytes);
  // Faults in the pages of a large arena before the first run, each thread a part of them.
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
  uint64_t bytes_ = 0;  // requested size
  bool touched_ = true;
};

}  // namespace tilewright::runtime
