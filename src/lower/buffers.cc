// SPDX-License-Identifier: Apache-2.0
#include "lower/buffers.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "lower/strategy.h"

namespace tilewright::lower {
namespace {

// The tensor in whose window another tensor lies, from `start` on along an axis.
struct Parent {
  int tensor = -1;
  size_t axis = 0;
  int64_t start = 0;
};
using Parents = std::vector<Parent>;  // by tensor

int root_of(const Parents& parents, int id) {
  while (parents[id].tensor >= 0) id = parents[id].tensor;
  return id;
}

// Makes both sides of a reshape one tensor; false where they must stay separate.
bool join_reshape(const Graph& g, int in, int out, Parents* parents) {
  const GraphTensor &from = g.tensors[in], &to = g.tensors[out];
  if (!from.halo.empty() || !to.halo.empty() || from.dtype != to.dtype) return false;
  if (!to.is_output) {
    (*parents)[out] = {in, 0, 0};
    return true;
  }
  // The producer can write directly into the user's memory if the tensor's place is still free: it lies in no other
  // tensor, and no later concatenation has a slot for it.
  if (from.kind != GraphTensor::Kind::kComputed || from.is_output || (*parents)[in].tensor >= 0 || from.slotted)
    return false;
  (*parents)[in] = {out, 0, 0};
  return true;
}

// Decides which groups need no kernel, and which windows their tensors are.
Parents choose_parents(const Graph& g, std::vector<bool>* elided) {
  Parents parents(g.tensors.size());
  elided->assign(g.groups.size(), false);
  for (size_t i = 0; i < g.groups.size(); ++i) {
    const Group& group = g.groups[i];
    const Renaming& r = group.renaming;
    switch (r.kind) {
      case Renaming::Kind::kNone:
        break;
      case Renaming::Kind::kReshape:
        (*elided)[i] = join_reshape(g, group.inputs[0], group.outputs[0], &parents);
        break;
      case Renaming::Kind::kConcat:
        for (size_t k = 0; k < group.inputs.size(); ++k)
          parents[group.inputs[k]] = {group.outputs[0], r.axis, r.starts[k]};
        (*elided)[i] = true;
        break;
      case Renaming::Kind::kWithin:
        parents[group.outputs[0]] = {r.host, r.axis, r.host_start};
        (*elided)[i] = true;
        break;
      case Renaming::Kind::kSlice: {
        const bool any_output =
            std::any_of(group.outputs.begin(), group.outputs.end(), [&](int id) { return g.tensors[id].is_output; });
        const bool spatial_halo = !g.tensors[group.inputs[0]].halo.empty() && r.axis >= 2;
        if (any_output || spatial_halo) break;
        for (size_t k = 0; k < group.outputs.size(); ++k)
          parents[group.outputs[k]] = {group.inputs[0], r.axis, r.starts[k]};
        (*elided)[i] = true;
        break;
      }
    }
  }
  return parents;
}

// Constants that have a storage, by content hash and size.
struct ConstantStorage {
  int tensor, storage;
};
using ConstantStorages = std::multimap<std::pair<uint64_t, int64_t>, ConstantStorage>;

int new_storage(const Graph& g, int root, std::vector<Storage>* storages, ConstantStorages* params) {
  const GraphTensor& t = g.tensors[root];
  Storage s;
  s.bytes = window_of(t).bytes;
  s.device = t.device;
  s.name = t.name;
  s.first_use = static_cast<int>(g.groups.size());
  s.last_use = -1;
  auto place_in = [root](const std::vector<int>& list) {
    return static_cast<uint32_t>(std::find(list.begin(), list.end(), root) - list.begin());
  };
  if (t.kind == GraphTensor::Kind::kInput) {
    s.space = plan::Space::kInput;
    s.index = place_in(g.inputs);
  } else if (t.is_output) {
    s.space = plan::Space::kOutput;
    s.index = place_in(g.outputs);
  } else if (t.kind == GraphTensor::Kind::kParam) {
    s.space = plan::Space::kParams;
    // Equal constants share their bytes.
    const std::pair<uint64_t, int64_t> key{t.weight.content_hash(), s.bytes};
    for (auto [it, end] = params->equal_range(key); it != end; ++it)
      if (g.tensors[it->second.tensor].weight == t.weight) return it->second.storage;
    params->emplace(key, ConstantStorage{root, static_cast<int>(storages->size())});
  }
  storages->push_back(s);
  return static_cast<int>(storages->size()) - 1;
}

void assign_windows(const Graph& g, const Parents& parents, Buffers* out) {
  const size_t n = g.tensors.size();
  out->tensors.resize(n);
  std::vector<int> storage_of_root(n, -1);
  ConstantStorages params;
  for (size_t id = 0; id < n; ++id) {
    const int root = root_of(parents, static_cast<int>(id));
    if (storage_of_root[root] < 0) storage_of_root[root] = new_storage(g, root, &out->storages, &params);
    // Offsets accumulate along the chain of parents.
    Placement p{window_of(g.tensors[id]), storage_of_root[root], 0};
    for (int at = static_cast<int>(id); parents[at].tensor >= 0; at = parents[at].tensor) {
      const Parent& parent = parents[at];
      const Window outer = window_of(g.tensors[parent.tensor]);
      const int64_t step = outer.strides.empty() ? 0 : outer.strides[parent.axis];
      p.storage_offset +=
          static_cast<int64_t>(g.tensors[at].dtype.bytes_for(static_cast<uint64_t>(parent.start * step)));
    }
    out->tensors[id] = std::move(p);
  }
}

// The live range of a storage: from the first group that writes it to the last that accesses it.
void find_lifetimes(const Graph& g, Buffers* out) {
  for (size_t i = 0; i < g.groups.size(); ++i)
    for (const auto* tensors : {&g.groups[i].inputs, &g.groups[i].outputs})
      for (int id : *tensors) {
        Storage& s = out->storages[out->tensors[id].storage];
        s.first_use = std::min(s.first_use, static_cast<int>(i));
        s.last_use = std::max(s.last_use, static_cast<int>(i));
      }
}

// Kernels' scratch as storages that live for one step.
void add_scratch(const Graph& g, Buffers* out) {
  out->scratch.assign(g.groups.size(), -1);
  for (size_t i = 0; i < g.groups.size(); ++i) {
    if (out->elided[i] || g.groups[i].choice->scratch_bytes == 0) continue;
    Storage s;
    s.bytes = g.groups[i].choice->scratch_bytes;
    s.first_use = s.last_use = static_cast<int>(i);
    s.device = g.tensors[g.groups[i].outputs[0]].device;
    s.name = "scratch of " + g.groups[i].name;
    out->scratch[i] = static_cast<int>(out->storages.size());
    out->storages.push_back(std::move(s));
  }
}

// The storages to plan: those in use in the arena and, with `inputs_and_outputs`, the user's, which are live before the
// first step and after the last.
std::vector<int> planned_storages(const Graph& g, const MemoryOptions& memory, Buffers* out) {
  std::vector<int> order;
  for (size_t i = 0; i < out->storages.size(); ++i) {
    Storage& s = out->storages[i];
    const bool input = s.space == plan::Space::kInput, output = s.space == plan::Space::kOutput;
    if (memory.inputs_and_outputs && input) s.first_use = -1, s.last_use = std::max(s.last_use, -1);
    if (memory.inputs_and_outputs && output) {
      s.last_use = static_cast<int>(g.groups.size());
      s.first_use = std::min(s.first_use, s.last_use);
    }
    if ((s.space == plan::Space::kArena && s.last_use >= 0) || (memory.inputs_and_outputs && (input || output)))
      order.push_back(static_cast<int>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return out->storages[a].bytes > out->storages[b].bytes; });
  return order;
}

// The first device's pools are consecutive in its arena; every other device has one arena.
Status plan_arena(const Graph& g, const MemoryOptions& memory, Buffers* out) {
  const int64_t alignment = memory.alignment;
  auto aligned = [alignment](int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  std::vector<MemoryPool> pools = memory.pools;
  if (pools.empty()) pools.push_back({"workspace"});
  const auto own = static_cast<uint32_t>(pools.size());
  for (size_t d = 1; d < g.devices.size(); ++d) pools.push_back({format("device {}", d)});
  const std::vector<int> order = planned_storages(g, memory, out);
  std::vector<PooledBuffer> buffers;
  for (int i : order) {
    Storage& s = out->storages[i];
    s.extent = memory.exact ? s.bytes : aligned(s.bytes) + alignment;
    PooledBuffer b{s.name, s.extent, alignment, s.first_use, s.last_use, {}};
    for (uint32_t p = 0; p < own && s.device == 0; ++p) b.pools.push_back(p);
    if (s.device != 0) b.pools.push_back(own + s.device - 1);
    buffers.push_back(std::move(b));
  }
  if (memory.planner) {
    TW_TRY_STATUS(memory.planner(buffers, pools));
    TW_TRY_STATUS(check_pools(buffers, pools));
  } else {
    TW_TRY_STATUS(plan_pools(buffers, pools, memory.algorithm));
  }
  const std::vector<int64_t> sizes = pool_sizes(buffers, pools.size());
  for (uint32_t p = 0; p < own; ++p) {
    const int64_t begin = aligned(out->arena_bytes);
    out->pools.push_back({pools[p].name, begin, sizes[p]});
    out->arena_bytes = begin + sizes[p];
  }
  out->device_arena_bytes.assign(sizes.begin() + own, sizes.end());
  for (size_t k = 0; k < order.size(); ++k)
    out->storages[order[k]].offset =
        buffers[k].offset + (buffers[k].pool < own ? out->pools[buffers[k].pool].begin : 0);
  return Ok{};
}

// Records the arena offsets of inputs and outputs.
void note_inputs_and_outputs(const Graph& g, Buffers* out) {
  out->inputs.assign(g.inputs.size(), 0), out->outputs.assign(g.outputs.size(), 0);
  for (const Storage& s : out->storages) {
    if (s.space == plan::Space::kInput) out->inputs[s.index] = s.offset;
    if (s.space == plan::Space::kOutput) out->outputs[s.index] = s.offset;
  }
}

}  // namespace

Result<Buffers> plan_buffers(const Graph& graph, const MemoryOptions& memory) {
  Buffers out;
  const Parents parents = choose_parents(graph, &out.elided);
  assign_windows(graph, parents, &out);
  find_lifetimes(graph, &out);
  if (memory.one_thread) add_scratch(graph, &out);
  TW_TRY_STATUS(plan_arena(graph, memory, &out));
  if (memory.inputs_and_outputs) note_inputs_and_outputs(graph, &out);
  return out;
}

}  // namespace tilewright::lower
