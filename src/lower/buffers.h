// SPDX-License-Identifier: Apache-2.0
// Where every tensor of a graph lives: views instead of copies (reshape, concat, split), zero halos around tensors that
// padded convolutions read, and one arena planned by lifetimes.
#pragma once
#include <vector>

#include "base/formats/plan.h"
#include "lower/graph.h"
#include "topi/view.h"

namespace tilewright::lower {

// A tensor's place: a window of a storage. Offsets and strides in elements of the tensor's dtype.
struct Placement {
  int storage = -1;
  int64_t storage_offset = 0;  // bytes into the storage where this tensor's window (halo included) starts
  int64_t bytes = 0;           // of the window, halo included
  int64_t offset = 0;          // element (0,...,0) from the window's start: what the halo in front takes
  std::vector<int64_t> strides, halo_before, halo_after;
};

struct Storage {
  plan::Space space = plan::Space::kArena;
  uint32_t index = 0;  // which input or output
  int64_t bytes = 0;
  int first_use = 0, last_use = 0;  // groups
  uint32_t device = 0;              // whose arena
  int64_t offset = 0;               // in the arena; lowering lays out the params it still needs
};

struct Halo {
  std::vector<int64_t> before, after;  // per dimension; empty: none
  bool empty() const;
  void merge(const Halo& other);  // the larger of both in each direction
};

// The zeros a group's kernel reads around its inputs: one Halo per group input (empty where none).
using HaloNeeds = std::vector<std::vector<Halo>>;

struct Buffers {
  std::vector<Placement> tensors;  // by tensor id
  std::vector<Storage> storages;
  std::vector<bool> elided;  // by group: needs no kernel, its result is a view
  int64_t arena_bytes = 0;
  std::vector<int64_t> device_arena_bytes;  // of the devices after the first
};

// Plans buffers. May append copying groups to `graph` (a concat operand that cannot be written in place, an input that
// needs a halo) and rewires their consumers; `needs` is per group as the graph stands on entry.
Result<Buffers> plan_buffers(Graph* graph, HaloNeeds needs);

}  // namespace tilewright::lower
