// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "base/format.h"
#include "runtime/thread_team.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tilewright::runtime {
namespace {

// Larger arenas are faulted in before the first run rather than at allocation: not every executor runs.
constexpr uint64_t kPrefault = uint64_t{64} << 20;

struct Mapping {
  void* start = nullptr;
  uint64_t bytes = 0;
};

// The last large mapping that was freed, kept for the next arena of this process: faulting in new memory costs more
// than the run that uses it. The system may reclaim its pages at any time (MADV_FREE).
constinit std::mutex kept_mutex;
constinit Mapping kept;

Mapping exchange_kept(Mapping next) {
  std::lock_guard lock(kept_mutex);
  return std::exchange(kept, next);
}

void unmap(Mapping m) {
  if (m.start) munmap(m.start, m.bytes);
}

void give_back(Mapping m) {
  if (m.bytes >= kPrefault) {
    madvise(m.start, m.bytes, MADV_FREE);
    m = exchange_kept(m);
  }
  unmap(m);
}

// At least `bytes`; null if the system refuses.
Mapping map(uint64_t bytes) {
  if (bytes >= kPrefault) {
    const Mapping old = exchange_kept({});
    if (old.bytes >= bytes && old.bytes / 2 <= bytes) return old;
    unmap(old);
  }
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {  // the kept mapping counts against the process's limit
    unmap(exchange_kept({}));
    p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  return p == MAP_FAILED ? Mapping() : Mapping{p, bytes};
}

}  // namespace

Result<Arena> Arena::allocate(uint64_t bytes) {
  Arena arena;
  bool large = bytes >= kHugePage;
  uint64_t size = (bytes + 64 + 4095) / 4096 * 4096;  // kernels may load a vector past the last element
  // A remainder above half a huge page is rounded up to one: hundreds of small pages take a millisecond to fault in.
  if (const uint64_t tail = size % kHugePage; large && tail > kHugePage / 2) size += kHugePage - tail;
  const Mapping mapping = map(size + (large ? kHugePage : 0));
  if (!mapping.start)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("the model needs {} MiB of working memory, which the system refuses", bytes >> 20), {},
                      "free memory or raise the limit (ulimit -v, container)");
  arena.mapping_ = mapping.start;
  arena.mapped_ = mapping.bytes;
  arena.bytes_ = bytes;
  arena.data_ = static_cast<std::byte*>(mapping.start);
  if (large) {
    uint64_t address = reinterpret_cast<uintptr_t>(mapping.start);
    arena.data_ += (kHugePage - address % kHugePage) % kHugePage;
    madvise(arena.data_, size, MADV_HUGEPAGE);
  }
  // Takes page faults now instead of in the first run; on systems without MADV_POPULATE_WRITE they happen later.
  arena.touched_ = size <= kPrefault;
  if (arena.touched_) madvise(arena.data_, size, MADV_POPULATE_WRITE);
  return arena;
}

void Arena::touch(ThreadTeam& team) {
  if (std::exchange(touched_, true) || team.size() == 1) return;  // a single thread faults them in while it runs
  team.run(
      [](void* context, int tid, int threads) {
        const Arena& arena = *static_cast<const Arena*>(context);
        const uint64_t pages = (arena.bytes_ + kHugePage - 1) / kHugePage;
        const auto boundary = [&](int i) {
          return std::min(arena.bytes_, pages * static_cast<uint64_t>(i) / static_cast<uint64_t>(threads) * kHugePage);
        };
        madvise(arena.data_ + boundary(tid), boundary(tid + 1) - boundary(tid), MADV_POPULATE_WRITE);
      },
      this);
}

Status Arena::grow(uint64_t bytes) {
  if (data_ && bytes <= bytes_) return Ok{};
  *this = TW_TRY(allocate(bytes));  // on failure the old one stays, since others use it
  return Ok{};
}

Arena::~Arena() {
  if (mapping_) give_back({mapping_, mapped_});
}

}  // namespace tilewright::runtime
