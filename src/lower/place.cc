// SPDX-License-Identifier: Apache-2.0
#include "lower/place.h"

#include <algorithm>
#include <set>

#include "lower/renaming.h"
#include "lower/strategy.h"
#include "relay/op.h"

namespace tilewright::lower {
namespace {
using namespace relay;
using Kind = Renaming::Kind;

bool same_halo(const Halo& a, const Halo& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  return a.before == b.before && a.after == b.after;
}

// Collects copying groups and splices them into the execution order.
class Copies {
 public:
  explicit Copies(Graph* graph) : g_(*graph) {}

  // Adds a copy of tensor `id` in front of group `before`; returns the copy.
  int before(int id, int before) {
    Group group = copy_group(&g_, id);
    GraphTensor copy;
    copy.name = g_.tensors[id].name + ".copy";
    copy.dtype = g_.tensors[id].dtype;
    copy.shape = g_.tensors[id].shape;
    copy.device = g_.tensors[id].device;
    copy.layout = g_.tensors[id].layout;
    g_.tensors.push_back(copy);
    const int made = static_cast<int>(g_.tensors.size()) - 1;
    group.outputs = {made};
    pending_.push_back({before, std::move(group)});
    return made;
  }

  // Inserts them into the graph and recomputes producers and consumers.
  void splice() {
    if (pending_.empty()) return;
    std::stable_sort(pending_.begin(), pending_.end(),
                     [](const auto& a, const auto& b) { return a.before < b.before; });
    std::vector<Group> groups;
    size_t next = 0;
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      for (; next < pending_.size() && pending_[next].before == static_cast<int>(i); ++next)
        groups.push_back(std::move(pending_[next].group));
      groups.push_back(std::move(g_.groups[i]));
    }
    g_.groups = std::move(groups);
    pending_.clear();
    for (auto& t : g_.tensors) t.consumers.clear(), t.producer = -1;
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      for (int id : g_.groups[i].inputs)
        if (auto& users = g_.tensors[id].consumers; users.empty() || users.back() != static_cast<int>(i))
          users.push_back(static_cast<int>(i));
      for (size_t k = 0; k < g_.groups[i].outputs.size(); ++k) {
        g_.tensors[g_.groups[i].outputs[k]].producer = static_cast<int>(i);
        g_.tensors[g_.groups[i].outputs[k]].producer_output = static_cast<int>(k);
      }
    }
  }

 private:
  struct Pending {
    int before;
    Group group;
  };
  Graph& g_;
  std::vector<Pending> pending_;
};

// The position of `part` as a contiguous run in `whole`, or -1.
std::ptrdiff_t run_at(const std::vector<int>& part, const std::vector<int>& whole) {
  auto at = std::search(whole.begin(), whole.end(), part.begin(), part.end());
  return at == whole.end() ? -1 : at - whole.begin();
}

// Concats whose operands are a run of a longer concat's (dense blocks, where
// each layer reads all earlier results) become windows of that one. Runs twice:
// to find them and, with `settled`, to check them once copies are known.
void find_windows(Graph* g, bool settled) {
  std::vector<int> concats;
  for (size_t i = 0; i < g->groups.size(); ++i)
    if (g->groups[i].renaming.kind == Kind::kConcat) concats.push_back(static_cast<int>(i));
  for (Group& group : g->groups) {
    Renaming& r = group.renaming;
    if (settled ? r.kind != Kind::kWithin : r.kind != Kind::kConcat) continue;
    if (g->tensors[group.outputs[0]].is_output) continue;
    int host = -1;
    for (int other : concats) {
      const Group& longer = g->groups[other];
      if (longer.inputs.size() > group.inputs.size() && longer.renaming.axis == r.axis &&
          run_at(group.inputs, longer.inputs) >= 0 &&
          (host < 0 || longer.inputs.size() > g->groups[host].inputs.size()))
        host = other;
    }
    r.kind = host < 0 ? Kind::kConcat : Kind::kWithin;
    if (host < 0) continue;
    const Group& holder = g->groups[host];
    r.host = holder.outputs[0];
    r.host_start = holder.renaming.starts[static_cast<size_t>(run_at(group.inputs, holder.inputs))];
  }
}

// Lets producers write operands into their slots of a concat. An operand without a kernel of its own, a model output,
// or one that already lies in another concat is copied. `done`: concats already processed.
void place_operands(Graph* g, Copies* copies, std::set<int>* done) {
  auto renaming = [&](const GraphTensor& t) {
    return t.producer < 0 ? Kind::kNone : g->groups[t.producer].renaming.kind;
  };
  for (size_t i = 0; i < g->groups.size(); ++i) {
    if (g->groups[i].renaming.kind != Kind::kConcat || !done->insert(static_cast<int>(i)).second) continue;
    const bool parent_output = g->tensors[g->groups[i].outputs[0]].is_output;
    for (int& id : g->groups[i].inputs) {
      const auto& t = g->tensors[id];
      const Kind kind = renaming(t);
      const bool direct = t.kind == GraphTensor::Kind::kComputed && !t.is_output &&
                          (kind == Kind::kNone || kind == Kind::kConcat) && !t.slotted &&
                          !(parent_output && t.consumers.size() > 1);
      if (!direct) id = copies->before(id, static_cast<int>(i));
      g->tensors[id].slotted = true;
    }
  }
}

// Follows slices to their source: a slice has no halo of its own, only as part of its source.
bool can_have_halo(const Graph& g, int id) {
  const auto& t = g.tensors[id];
  if (t.kind != GraphTensor::Kind::kComputed || t.is_output) return false;
  if (g.groups[t.producer].plain()) return false;
  for (int user : t.consumers)
    if (g.groups[user].plain()) return false;
  const Renaming& r = g.groups[t.producer].renaming;
  if (r.kind == Kind::kSlice) return r.axis < 2 && can_have_halo(g, g.groups[t.producer].inputs[0]);
  if (r.kind == Kind::kWithin) return r.axis < 2 && can_have_halo(g, r.host);
  for (int user : t.consumers) {
    const Group& reader = g.groups[user];
    if (reader.renaming.kind == Kind::kConcat && (g.tensors[reader.outputs[0]].is_output || reader.renaming.axis >= 2))
      return false;
  }
  return true;
}

// The halo that a group's kernel reads around its k-th input; empty without a kernel.
const Halo& halo_read(const Group& group, size_t k) {
  static const Halo kNone;
  return group.choice && k < group.choice->halos.size() ? group.choice->halos[k] : kNone;
}

// Copies tensors that cannot have a halo themselves, model inputs, outputs and constants, for readers that need one.
void copy_for_halos(Graph* g, Copies* copies) {
  for (size_t i = 0; i < g->groups.size(); ++i)
    for (size_t k = 0; k < g->groups[i].inputs.size(); ++k) {
      Group& group = g->groups[i];
      const int id = group.inputs[k];
      if (halo_read(group, k).empty() || can_have_halo(*g, id)) continue;
      const int copy = copies->before(id, static_cast<int>(i));
      for (size_t m = k; m < group.inputs.size(); ++m)
        if (group.inputs[m] == id && !halo_read(group, m).empty()) group.inputs[m] = copy;
    }
}

// Tensors that share memory share a halo: the union over all that concats and slices connect.
void spread_halos(Graph* g) {
  for (const Group& group : g->groups)
    for (size_t k = 0; k < group.inputs.size(); ++k) g->tensors[group.inputs[k]].halo.merge(halo_read(group, k));
  for (bool changed = true; changed;) {
    changed = false;
    for (const Group& group : g->groups) {
      const Kind kind = group.renaming.kind;
      if (kind != Kind::kConcat && kind != Kind::kSlice && kind != Kind::kWithin) continue;
      Halo all;
      for (const auto* tensors : {&group.inputs, &group.outputs})
        for (int id : *tensors) all.merge(g->tensors[id].halo);
      for (const auto* tensors : {&group.inputs, &group.outputs})
        for (int id : *tensors) {
          if (same_halo(g->tensors[id].halo, all)) continue;
          g->tensors[id].halo = all;
          changed = true;
        }
    }
  }
}

}  // namespace

void place(Graph* graph) {
  for (Group& group : graph->groups) group.renaming = renaming_of(*graph, group);
  Copies copies(graph);
  std::set<int> done;
  find_windows(graph, false);
  place_operands(graph, &copies, &done);
  // A window whose operands had to be copied into its host becomes an ordinary concat again.
  find_windows(graph, true);
  place_operands(graph, &copies, &done);
  copies.splice();
  copy_for_halos(graph, &copies);
  copies.splice();
  spread_halos(graph);
  graph->placed = true;
}

Window window_of(const GraphTensor& t) {
  const size_t rank = t.shape.size();
  Window w;
  w.strides.assign(rank, 1);
  w.halo_before = t.halo.empty() ? std::vector<int64_t>(rank, 0) : t.halo.before;
  w.halo_after = t.halo.empty() ? std::vector<int64_t>(rank, 0) : t.halo.after;
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0;) {
    w.strides[d] = stride;
    w.offset += w.halo_before[d] * stride;
    stride *= t.shape[d] + w.halo_before[d] + w.halo_after[d];
  }
  w.bytes = static_cast<int64_t>(t.dtype.bytes_for(static_cast<uint64_t>(stride)));
  return w;
}

topi::View view_of(const GraphTensor& t, const tir::Buffer& buffer) {
  Window w = window_of(t);
  topi::View v{buffer, t.shape, std::move(w.strides), w.offset, {}, {}};
  if (!t.halo.empty()) v.halo_before = std::move(w.halo_before), v.halo_after = std::move(w.halo_after);
  return v;
}

topi::View view_of(const GraphTensor& t) {
  const int64_t elements = window_of(t).bytes * 8 / std::max<int64_t>(1, t.dtype.bits);
  return view_of(t, tir::make_buffer("", t.dtype, elements));
}

}  // namespace tilewright::lower
