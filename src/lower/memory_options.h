// SPDX-License-Identifier: Apache-2.0
// What the memory of a run is to be like.
#pragma once
#include <string>
#include <vector>

#include "lower/pools.h"

namespace tilewright::lower {

struct MemoryOptions {
  std::vector<MemoryPool> pools;  // of the first device; empty: one, as large as it gets
  int64_t alignment = 64;         // of every buffer in its pool: a power of two
  // Not a byte more than a buffer holds. Else whole cache lines plus one, so that a full-vector read past the last
  // element stays inside.
  bool exact = false;
  bool one_thread = false;          // a kernel's scratch is planned with the buffers
  bool inputs_and_outputs = false;  // lie in the pools, too
  std::string algorithm = "greedy_by_size";
  PoolPlanner planner;  // takes the algorithm's place
};

// A pool as a part of the arena.
struct PlacedPool {
  std::string name;
  int64_t begin = 0, bytes = 0;
};

}  // namespace tilewright::lower
