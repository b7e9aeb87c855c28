// SPDX-License-Identifier: Apache-2.0
// Assigns buffers to memory pools and offsets, so that buffers with overlapping live ranges do not overlap.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::lower {

struct MemoryPool {
  std::string name;
  int64_t limit = -1;  // bytes; negative: unlimited
};

// A buffer of `bytes`, live from the begin of step first_use to the end of step last_use.
struct PooledBuffer {
  std::string name;
  int64_t bytes = 0, alignment = 1;
  int first_use = 0, last_use = 0;
  std::vector<uint32_t> pools;  // admissible pools; the first with room is used
  uint32_t pool = 0;            // result of planning
  int64_t offset = 0;
  // Where a script says them, in place of the steps: the numbers of the buffers that may not overlap with this one.
  uint32_t number = 0;
  std::optional<std::set<uint32_t>> conflicts;

  bool meets(const PooledBuffer& other) const {
    if (conflicts) return conflicts->contains(other.number);
    return first_use <= other.last_use && other.first_use <= last_use;
  }
};

// A user's planner: sets pool and offset of every buffer.
using PoolPlanner = std::function<Status(std::span<PooledBuffer>, std::span<const MemoryPool>)>;

// "greedy_by_size" (first fit, largest first; Pisarchyk and Lee, 2020), "greedy_by_conflicts" (first fit, those with
// most overlaps first), "hill_climb" (the best of many orders, starting from the first).
std::span<const char* const> pool_algorithms();

// Errors: InvalidArgument for an unknown algorithm, and when the pools are too small.
Status plan_pools(std::span<PooledBuffer> buffers, std::span<const MemoryPool> pools, const std::string& algorithm);
// Checks the result of a user's planner. Error: InvalidArgument, saying what is violated.
Status check_pools(std::span<const PooledBuffer> buffers, std::span<const MemoryPool> pools);

// The used size of each pool.
std::vector<int64_t> pool_sizes(std::span<const PooledBuffer> buffers, size_t pools);
// The maximum of simultaneously live bytes, or of two buffers with conflicts: a lower bound for every plan.
int64_t memory_pressure(std::span<const PooledBuffer> buffers);

}  // namespace tilewright::lower
