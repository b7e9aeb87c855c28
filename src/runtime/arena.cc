// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <sys/mman.h>

#include "base/format.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tilewright::runtime {
namespace {
constexpr uint64_t kPrefault = uint64_t{64}
                               << 20;  // larger arenas are touched by the first run only where it needs them
}  // namespace

Result<Arena> Arena::allocate(uint64_t bytes) {
  Arena arena;
  bool large = bytes >= kHugePage;
  uint64_t size = (bytes + 64 + 4095) / 4096 * 4096;  // kernels may read a vector past the last element
  // A tail of more than half a huge page is one: hundreds of small pages cost a millisecond.
  if (const uint64_t tail = size % kHugePage; large && tail > kHugePage / 2) size += kHugePage - tail;
  uint64_t mapped = size + (large ? kHugePage : 0);
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("the model needs {} MiB of working memory, which the system refuses", bytes >> 20), {},
                      "free memory or raise the limit (ulimit -v, container)");
  arena.mapping_ = p;
  arena.mapped_ = mapped;
  arena.bytes_ = bytes;
  arena.data_ = static_cast<std::byte*>(p);
  if (large) {
    auto address = reinterpret_cast<uint64_t>(p);
    arena.data_ += (kHugePage - address % kHugePage) % kHugePage;
    madvise(arena.data_, size, MADV_HUGEPAGE);
  }
  // Page faults now rather than inside the first run; systems that cannot do this fault later.
  if (size <= kPrefault) madvise(arena.data_, size, MADV_POPULATE_WRITE);
  return arena;
}

Status Arena::grow(uint64_t bytes) {
  if (data_ && bytes <= bytes_) return Ok{};
  *this = TW_TRY(allocate(bytes));  // where that fails the old one stays: others use it
  return Ok{};
}

Arena::~Arena() {
  if (mapping_) munmap(mapping_, mapped_);
}

}  // namespace tilewright::runtime
