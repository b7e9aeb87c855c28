// SPDX-License-Identifier: Apache-2.0
// Where every tensor of a placed graph lives: windows into storages, and an arena planned by live ranges.
#pragma once
#include <vector>

#include "base/formats/plan.h"
#include "lower/graph.h"
#include "lower/memory_options.h"
#include "lower/place.h"

namespace tilewright::lower {

// A tensor's place: a window into a storage.
struct Placement : Window {
  int storage = -1;
  int64_t storage_offset = 0;  // byte offset of the window (halo included) in the storage
};

struct Storage {
  plan::Space space = plan::Space::kArena;
  uint32_t index = 0;  // index of the input or output
  int64_t bytes = 0;
  int first_use = 0, last_use = 0;  // indices of the first and last group that uses it
  uint32_t device = 0;              // index of the device whose arena holds it
  int64_t offset = 0;               // in the arena (kParam: lowering assigns the offset later)
  int64_t extent = 0;               // bytes in the arena, including what vector loads may read past the end
  std::string name;                 // name of one of its tensors, for messages
};

struct Buffers {
  std::vector<Placement> tensors;  // by tensor id
  std::vector<Storage> storages;
  std::vector<bool> elided;  // by group: needs no kernel, its result is a view
  int64_t arena_bytes = 0;
  std::vector<int64_t> device_arena_bytes;  // of the devices after the first
  std::vector<PlacedPool> pools;            // the first device's pools, consecutive in its arena
  std::vector<int> scratch;                 // by group: the storage of its kernel's scratch, or -1
  std::vector<int64_t> inputs, outputs;     // offsets in the arena, if they lie there
};

// Plans the buffers of a graph that place() and weight repacking have processed. Error: InvalidArgument (memory).
Result<Buffers> plan_buffers(const Graph& graph, const MemoryOptions& memory);

}  // namespace tilewright::lower
