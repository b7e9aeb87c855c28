// SPDX-License-Identifier: Apache-2.0
// Options for the memory of a run.
#pragma once
#include <string>
#include <vector>

#include "lower/pools.h"

namespace tilewright::lower {

struct MemoryOptions {
  std::vector<MemoryPool> pools;  // of the first device; empty: one of unlimited size
  int64_t alignment = 64;         // of every buffer, a power of two
  // Buffers have exactly their size. Otherwise they are padded to whole cache lines plus one, so that a full vector
  // load at the last element stays inside.
  bool exact = false;
  bool one_thread = false;          // plans kernels' scratch with the buffers
  bool inputs_and_outputs = false;  // places them in the pools, too
  // Each tensor has its own memory as a whole: concatenations and slices are copies, not views. Reshapes stay views.
  bool apart = false;
  std::string algorithm = "greedy_by_size";
  PoolPlanner planner;  // replaces the algorithm
};

// A pool's range within the arena.
struct PlacedPool {
  std::string name;
  int64_t begin = 0, bytes = 0;
};

}  // namespace tilewright::lower
