// SPDX-License-Identifier: Apache-2.0
// Where every tensor of a placed graph lives: windows of storages, and one arena planned by lifetimes.
#pragma once
#include <vector>

#include "base/formats/plan.h"
#include "lower/graph.h"
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
};

struct Buffers {
  std::vector<Placement> tensors;  // by tensor id
  std::vector<Storage> storages;
  std::vector<bool> elided;  // by group: needs no kernel, its result is a view
  int64_t arena_bytes = 0;
  std::vector<int64_t> device_arena_bytes;  // of the devices after the first
};

// For a graph after place_tensors and repack_weights.
Buffers plan_buffers(const Graph& graph);

// Bytes of the arena that a storage takes: whole cache lines plus one, so that a full-vector read past the last element
// stays inside.
int64_t arena_extent(const Storage& storage);

}  // namespace tilewright::lower
