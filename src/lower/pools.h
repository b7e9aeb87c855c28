// SPDX-License-Identifier: Apache-2.0
// Which pool of memory a buffer lies in, and where: buffers that are alive at the same time are apart.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::lower {

struct MemoryPool {
  std::string name;
  int64_t limit = -1;  // bytes; negative: as many as it takes
};

// What needs `bytes` from the beginning of step first_use to the end of step last_use.
struct PooledBuffer {
  std::string name;
  int64_t bytes = 0, alignment = 1;
  int first_use = 0, last_use = 0;
  std::vector<uint32_t> pools;  // where it may lie; the first that has room is taken
  uint32_t pool = 0;            // what planning gives it
  int64_t offset = 0;

  bool meets(const PooledBuffer& other) const { return first_use <= other.last_use && other.first_use <= last_use; }
};

// A planner of the user's: fills in pool and offset of every buffer.
using PoolPlanner = std::function<Status(std::span<PooledBuffer>, std::span<const MemoryPool>)>;

// "greedy_by_size" (first fit, the largest first; Pisarchyk and Lee, 2020), "greedy_by_conflicts" (first fit, those
// that meet most others first), "hill_climb" (the best of many orders that grow out of the first).
std::span<const char* const> pool_algorithms();

// Errors: InvalidArgument for an unknown algorithm, and when the pools are too small.
Status plan_pools(std::span<PooledBuffer> buffers, std::span<const MemoryPool> pools, const std::string& algorithm);
// Of what a planner of the user's made. Error: InvalidArgument with what does not hold.
Status check_pools(std::span<const PooledBuffer> buffers, std::span<const MemoryPool> pools);

// What of each pool is in use.
std::vector<int64_t> pool_sizes(std::span<const PooledBuffer> buffers, size_t pools);
// Bytes that are alive at once, at most: no plan takes less.
int64_t memory_pressure(std::span<const PooledBuffer> buffers);

}  // namespace tilewright::lower
