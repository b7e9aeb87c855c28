// SPDX-License-Identifier: Apache-2.0
// Where every tensor of a placed graph lives: windows of storages, and an arena planned by lifetimes.
#pragma once
#include <vector>

#include "base/formats/plan.h"
#include "lower/graph.h"
#include "lower/memory_options.h"
#include "lower/place.h"

namespace tilewright::lower {

// A tensor's place: a window of a storage.
struct Placement : Window {
  int storage = -1;
  int64_t storage_offset = 0;  // bytes into the storage where the window (halo included) starts
};

struct Storage {
  plan::Space space = plan::Space::kArena;
  uint32_t index = 0;  // which input or output
  int64_t bytes = 0;
  int first_use = 0, last_use = 0;  // groups
  uint32_t device = 0;              // whose arena
  int64_t offset = 0;               // in the arena; lowering lays out the params it still needs
  int64_t extent = 0;               // bytes of the arena, what a kernel may read behind it included
  std::string name;                 // a tensor's of it, for messages
};

struct Buffers {
  std::vector<Placement> tensors;  // by tensor id
  std::vector<Storage> storages;
  std::vector<bool> elided;  // by group: needs no kernel, its result is a view
  int64_t arena_bytes = 0;
  std::vector<int64_t> device_arena_bytes;  // of the devices after the first
  std::vector<PlacedPool> pools;            // of the first device, one after another in its arena
  std::vector<int> scratch;                 // by group: the storage of its kernel's scratch, or -1
  std::vector<int64_t> inputs, outputs;     // where they lie in the arena, if they do
};

// Of a graph that place() has seen and whose weights are as kernels read them. Error: InvalidArgument (memory).
Result<Buffers> plan_buffers(const Graph& graph, const MemoryOptions& memory);

}  // namespace tilewright::lower
