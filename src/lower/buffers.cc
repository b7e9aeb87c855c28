// SPDX-License-Identifier: Apache-2.0
#include "lower/buffers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/format.h"
#include "base/hash.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::lower {

bool Halo::empty() const {
  auto zero = [](int64_t v) { return v == 0; };
  return std::all_of(before.begin(), before.end(), zero) && std::all_of(after.begin(), after.end(), zero);
}

void Halo::merge(const Halo& other) {
  if (other.before.empty()) return;
  before.resize(other.before.size());
  after.resize(other.after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    before[i] = std::max(before[i], other.before[i]);
    after[i] = std::max(after[i], other.after[i]);
  }
}

namespace {
using namespace relay;

// How a group that only renames memory relates its tensors.
struct Renaming {
  enum class Kind { kNone, kReshape, kConcat, kSlice, kWithin } kind = Kind::kNone;
  size_t axis = 0;              // concat, slice
  std::vector<int64_t> starts;  // concat: each input's start along axis; slice: each output's
  int host = -1;                // kWithin, a concat that is a run of another one's operands: the tensor that holds it
  int64_t host_start = 0;       // and where along axis
};

bool same_halo(const Halo& a, const Halo& b) {
  Halo x = a, y = b;
  x.merge(b);
  y.merge(a);
  auto eq = [](const Halo& p, const Halo& q) {
    return (p.empty() && q.empty()) || (p.before == q.before && p.after == q.after);
  };
  return eq(x, a) && eq(y, b);
}

// Every op on the way from the single input to the result keeps row-major order.
bool keeps_order(std::string_view name) {
  return name == "reshape" || name == "expand_dims" || name == "squeeze" || name == "nn.batch_flatten" ||
         name == "copy" || name == "nn.dropout";
}

Renaming classify(const Graph& graph, const Group& group) {
  Renaming none;
  if (group.plain()) return none;
  const Expr& body = group.function->body;
  if (!group.lifted.empty()) return none;
  const CallNode* call = as<CallNode>(body);
  if (!call) return none;
  const OpDef* op = called_op(body);
  if (!op) return none;
  std::string_view name = op->name;
  // A window that starts inside a byte has no address.
  for (int id : group.inputs)
    if (graph.tensors[id].dtype.bits < 8 && name != "reshape") return none;
  // What an external function or a copy touches is no window of something that could have a halo.
  auto touched = [&](int id) {
    const GraphTensor& t = graph.tensors[id];
    return (t.producer >= 0 && graph.groups[t.producer].plain()) ||
           std::any_of(t.consumers.begin(), t.consumers.end(), [&](int user) { return graph.groups[user].plain(); });
  };
  const bool windows = std::none_of(group.inputs.begin(), group.inputs.end(), touched) &&
                       std::none_of(group.outputs.begin(), group.outputs.end(), touched);
  auto leading_ones = [](const std::vector<int64_t>& shape, size_t axis) {
    return std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis),
                       [](int64_t d) { return d == 1; });
  };
  if (group.inputs.size() == 1 && group.outputs.size() == 1) {
    bool only_order = true;
    for (const Expr& e : post_order(body)) {
      const OpDef* def = called_op(e);
      if (e->kind == ExprKind::kCall && !(def && keeps_order(def->name))) only_order = false;
      if (e->kind != ExprKind::kCall && e->kind != ExprKind::kVar && e->kind != ExprKind::kOp) only_order = false;
    }
    if (only_order) return {Renaming::Kind::kReshape, 0, {}, -1, 0};
  }
  if (!windows) return none;
  if (name == "concatenate") {
    Expr arg = call->args.size() == 1 ? call->args[0] : nullptr;
    std::vector<Expr> parts = call->args;
    if (const auto* tuple = as<TupleNode>(arg)) parts = tuple->fields;
    bool tuple_param = as<VarNode>(arg) && as_tuple(arg->type);
    if (!tuple_param) {
      if (parts.size() != group.inputs.size()) return none;
      for (size_t i = 0; i < parts.size(); ++i)
        if (parts[i].get() != group.function->params[i].get()) return none;
    }
    const auto& out = graph.tensors[group.outputs[0]];
    int64_t axis = attrs_as<ConcatenateAttrs>(call->attrs)->axis;
    Renaming r{Renaming::Kind::kConcat,
               static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(out.shape.size()) : axis),
               {},
               -1,
               0};
    if (!leading_ones(out.shape, r.axis)) return none;
    int64_t start = 0;
    for (int id : group.inputs) {
      r.starts.push_back(start);
      start += graph.tensors[id].shape[r.axis];
    }
    return r;
  }
  if ((name == "split" || name == "strided_slice") && group.inputs.size() == 1 && as<VarNode>(call->args[0])) {
    const auto& in = graph.tensors[group.inputs[0]];
    Renaming r{Renaming::Kind::kSlice, 0, {}, -1, 0};
    if (name == "split") {
      int64_t axis = attrs_as<SplitAttrs>(call->attrs)->axis;
      r.axis = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.shape.size()) : axis);
      int64_t start = 0;
      for (int id : group.outputs) {
        r.starts.push_back(start);
        start += graph.tensors[id].shape[r.axis];
      }
    } else {
      const auto* attrs = attrs_as<StridedSliceAttrs>(call->attrs);
      const auto& out = graph.tensors[group.outputs[0]];
      int sliced = 0;
      int64_t begin = 0;
      for (size_t i = 0; i < attrs->begin.size(); ++i) {
        int64_t d = attrs->axes && !attrs->axes->empty() ? (*attrs->axes)[i] : static_cast<int64_t>(i);
        size_t at = static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(in.shape.size()) : d);
        if (in.shape[at] == out.shape[at]) continue;
        if (!attrs->strides.empty() && attrs->strides[std::min(i, attrs->strides.size() - 1)] != 1) return none;
        ++sliced;
        r.axis = at;
        begin = attrs->begin[i] < 0 ? attrs->begin[i] + in.shape[at] : attrs->begin[i];
      }
      if (sliced != 1) return none;
      r.starts = {std::min(begin, in.shape[r.axis])};
    }
    return leading_ones(in.shape, r.axis) ? r : none;
  }
  return none;
}

class Planner {
 public:
  Planner(Graph* graph, HaloNeeds needs) : g_(*graph), needs_(std::move(needs)) {}

  Result<Buffers> run() {
    for (const Group& group : g_.groups) renamings_.push_back(classify(g_, group));
    insert_copies();
    spread_halos();
    choose_parents();
    assign();
    plan_arena();
    return std::move(out_);
  }

 private:
  // A copying group of tensor `id` placed right before group `before`; returns the copy.
  int copy_before(int id, int before) {
    Type type = tensor_type(to_shape(g_.tensors[id].shape), g_.tensors[id].dtype);
    Expr x = make_var("x", type);
    Expr function = make_function({x}, call("copy", {x}), {{"Primitive", int64_t{1}}});
    g_.keep.push_back(function);
    Group group;
    group.function = as<FunctionNode>(function);
    group.name = "copy";
    group.inputs = {id};
    GraphTensor copy;
    copy.name = g_.tensors[id].name + ".copy";
    copy.dtype = g_.tensors[id].dtype;
    copy.shape = g_.tensors[id].shape;
    copy.device = g_.tensors[id].device;
    copy.layout = g_.tensors[id].layout;
    g_.tensors.push_back(copy);
    int made = static_cast<int>(g_.tensors.size()) - 1;
    group.outputs = {made};
    pending_.push_back({before, std::move(group)});
    return made;
  }

  // Splices the pending copies in and recomputes producers and consumers.
  void splice() {
    if (pending_.empty()) return;
    std::vector<Group> groups;
    std::vector<Renaming> renamings;
    HaloNeeds needs;
    std::stable_sort(pending_.begin(), pending_.end(),
                     [](const auto& a, const auto& b) { return a.before < b.before; });
    size_t next = 0;
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      for (; next < pending_.size() && pending_[next].before == static_cast<int>(i); ++next) {
        groups.push_back(std::move(pending_[next].group));
        renamings.push_back({});
        needs.push_back({Halo{}});
      }
      groups.push_back(std::move(g_.groups[i]));
      renamings.push_back(renamings_[i]);
      needs.push_back(needs_[i]);
    }
    g_.groups = std::move(groups);
    renamings_ = std::move(renamings);
    needs_ = std::move(needs);
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

  bool renamed(int tensor) const {
    int p = g_.tensors[tensor].producer;
    return p >= 0 && renamings_[p].kind != Renaming::Kind::kNone;
  }

  // Where `part` stands in `whole` as a run; -1: nowhere.
  static std::ptrdiff_t run_at(const std::vector<int>& part, const std::vector<int>& whole) {
    auto at = std::search(whole.begin(), whole.end(), part.begin(), part.end());
    return at == whole.end() ? -1 : at - whole.begin();
  }

  // Concats whose operands are a run of a longer concat's (dense blocks: each layer reads all results so far) are
  // windows of that one. Runs twice: to find them, and, with `settled`, to check them once it is known what had to be
  // copied.
  void find_windows(bool settled) {
    std::vector<int> concats;
    for (size_t i = 0; i < g_.groups.size(); ++i)
      if (renamings_[i].kind == Renaming::Kind::kConcat) concats.push_back(static_cast<int>(i));
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      Renaming& r = renamings_[i];
      const Group& group = g_.groups[i];
      if (settled ? r.kind != Renaming::Kind::kWithin : r.kind != Renaming::Kind::kConcat) continue;
      if (g_.tensors[group.outputs[0]].is_output) continue;
      int host = -1;
      for (int other : concats) {
        const Group& longer = g_.groups[other];
        if (longer.inputs.size() > group.inputs.size() && renamings_[other].axis == r.axis &&
            run_at(group.inputs, longer.inputs) >= 0 &&
            (host < 0 || longer.inputs.size() > g_.groups[host].inputs.size()))
          host = other;
      }
      r.kind = host < 0 ? Renaming::Kind::kConcat : Renaming::Kind::kWithin;
      if (host < 0) continue;
      r.host = g_.groups[host].outputs[0];
      r.host_start = renamings_[host].starts[static_cast<size_t>(run_at(group.inputs, g_.groups[host].inputs))];
    }
  }

  void insert_copies() {
    find_windows(false);
    place_operands();
    // A window whose operands had to be copied into its host is a concat of its own after all.
    find_windows(true);
    place_operands();
    splice();
    // What a padded reader needs around a tensor that cannot have it: a model's input, output or constant.
    for (size_t i = 0; i < g_.groups.size(); ++i)
      for (size_t k = 0; k < g_.groups[i].inputs.size(); ++k) {
        int id = g_.groups[i].inputs[k];
        if (k >= needs_[i].size() || needs_[i][k].empty() || can_have_halo(id)) continue;
        int copy = copy_before(id, static_cast<int>(i));
        for (size_t m = k; m < g_.groups[i].inputs.size(); ++m)
          if (g_.groups[i].inputs[m] == id && m < needs_[i].size() && !needs_[i][m].empty())
            g_.groups[i].inputs[m] = copy;
      }
    splice();
  }

  // Operands of a concat are written into its slots by their producers; one that has no kernel of its own, is a model
  // output, or already sits in another concat is copied in.
  void place_operands() {
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      if (renamings_[i].kind != Renaming::Kind::kConcat || !placed_.insert(static_cast<int>(i)).second) continue;
      bool parent_output = g_.tensors[g_.groups[i].outputs[0]].is_output;
      for (int& id : g_.groups[i].inputs) {
        const auto& t = g_.tensors[id];
        bool nested_concat = t.producer >= 0 && renamings_[t.producer].kind == Renaming::Kind::kConcat;
        bool direct = t.kind == GraphTensor::Kind::kComputed && !t.is_output && (!renamed(id) || nested_concat) &&
                      !slotted_.count(id) && !(parent_output && t.consumers.size() > 1);
        if (!direct) id = copy_before(id, static_cast<int>(i));
        slotted_.insert(id);
      }
    }
  }

  // Follows slices up: a slice has a halo only as part of what it is cut from.
  bool can_have_halo(int id) const {
    const auto& t = g_.tensors[id];
    if (t.kind != GraphTensor::Kind::kComputed || t.is_output) return false;
    if (g_.groups[t.producer].plain()) return false;
    for (int user : t.consumers)
      if (g_.groups[user].plain()) return false;
    const Renaming& r = renamings_[t.producer];
    if (r.kind == Renaming::Kind::kSlice) return r.axis < 2 && can_have_halo(g_.groups[t.producer].inputs[0]);
    if (r.kind == Renaming::Kind::kWithin) return r.axis < 2 && can_have_halo(r.host);
    for (int user : t.consumers)
      if (renamings_[user].kind == Renaming::Kind::kConcat &&
          (g_.tensors[g_.groups[user].outputs[0]].is_output || renamings_[user].axis >= 2))
        return false;
    return true;
  }

  // Tensors that share memory share their halo: the union over everything joined by concat and slice.
  void spread_halos() {
    halos_.assign(g_.tensors.size(), {});
    for (size_t i = 0; i < g_.groups.size(); ++i)
      for (size_t k = 0; k < g_.groups[i].inputs.size() && k < needs_[i].size(); ++k)
        halos_[g_.groups[i].inputs[k]].merge(needs_[i][k]);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < g_.groups.size(); ++i) {
        auto kind = renamings_[i].kind;
        if (kind != Renaming::Kind::kConcat && kind != Renaming::Kind::kSlice && kind != Renaming::Kind::kWithin)
          continue;
        Halo all;
        for (int id : g_.groups[i].inputs) all.merge(halos_[id]);
        for (int id : g_.groups[i].outputs) all.merge(halos_[id]);
        auto update = [&](int id) {
          if (!same_halo(halos_[id], all)) {
            halos_[id] = all;
            changed = true;
          }
        };
        for (int id : g_.groups[i].inputs) update(id);
        for (int id : g_.groups[i].outputs) update(id);
      }
    }
  }

  void set_parent(int child, int parent, size_t axis, int64_t start) { parents_[child] = {parent, axis, start}; }
  int root_of(int id) const {
    while (parents_[id].tensor >= 0) id = parents_[id].tensor;
    return id;
  }

  void choose_parents() {
    parents_.assign(g_.tensors.size(), {});
    out_.elided.assign(g_.groups.size(), false);
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      const Group& group = g_.groups[i];
      const Renaming& r = renamings_[i];
      switch (r.kind) {
        case Renaming::Kind::kNone:
          break;
        case Renaming::Kind::kReshape: {
          int in = group.inputs[0], out = group.outputs[0];
          if (!halos_[in].empty() || !halos_[out].empty()) break;
          if (g_.tensors[in].dtype != g_.tensors[out].dtype) break;
          if (!g_.tensors[out].is_output) {
            set_parent(out, in, 0, 0);
            out_.elided[i] = true;
          } else {
            // The producer writes straight into the user's memory, if the tensor is its own to place: it lies in no
            // other one, and no concat that comes later has a slot for it.
            int root = root_of(in);
            bool free = g_.tensors[root].kind == GraphTensor::Kind::kComputed && !g_.tensors[root].is_output &&
                        root == in && !slotted_.count(in);
            if (free) {
              set_parent(in, out, 0, 0);
              out_.elided[i] = true;
            }
          }
          break;
        }
        case Renaming::Kind::kConcat: {
          for (size_t k = 0; k < group.inputs.size(); ++k)
            set_parent(group.inputs[k], group.outputs[0], r.axis, r.starts[k]);
          out_.elided[i] = true;
          break;
        }
        case Renaming::Kind::kWithin:
          set_parent(group.outputs[0], r.host, r.axis, r.host_start);
          out_.elided[i] = true;
          break;
        case Renaming::Kind::kSlice: {
          bool any_output =
              std::any_of(group.outputs.begin(), group.outputs.end(), [&](int id) { return g_.tensors[id].is_output; });
          bool spatial_halo = !halos_[group.inputs[0]].empty() && r.axis >= 2;
          if (any_output || spatial_halo) break;
          for (size_t k = 0; k < group.outputs.size(); ++k)
            set_parent(group.outputs[k], group.inputs[0], r.axis, r.starts[k]);
          out_.elided[i] = true;
          break;
        }
      }
    }
  }

  // Compact row-major strides over the padded extents.
  Placement padded(int id) const {
    const auto& t = g_.tensors[id];
    const Halo& h = halos_[id];
    Placement p;
    size_t rank = t.shape.size();
    p.strides.assign(rank, 1);
    p.halo_before = h.empty() ? std::vector<int64_t>(rank, 0) : h.before;
    p.halo_after = h.empty() ? std::vector<int64_t>(rank, 0) : h.after;
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
      p.strides[d] = stride;
      p.offset += p.halo_before[d] * stride;
      stride *= t.shape[d] + p.halo_before[d] + p.halo_after[d];
    }
    p.bytes = static_cast<int64_t>(t.dtype.bytes_for(static_cast<uint64_t>(stride)));
    return p;
  }

  void assign() {
    size_t n = g_.tensors.size();
    out_.tensors.resize(n);
    std::vector<int> storage_of_root(n, -1);
    Params params;
    for (size_t id = 0; id < n; ++id) {
      int root = root_of(static_cast<int>(id));
      if (storage_of_root[root] < 0) storage_of_root[root] = new_storage(root, &params);
      // Offsets add up along the chain of parents.
      Placement p = padded(static_cast<int>(id));
      p.storage = storage_of_root[root];
      for (int at = static_cast<int>(id); parents_[at].tensor >= 0; at = parents_[at].tensor) {
        const Parent& parent = parents_[at];
        Placement outer = padded(parent.tensor);
        int64_t step = outer.strides.empty() ? 0 : outer.strides[parent.axis];
        p.storage_offset +=
            static_cast<int64_t>(g_.tensors[at].dtype.bytes_for(static_cast<uint64_t>(parent.start * step)));
      }
      out_.tensors[id] = std::move(p);
    }
    // Lifetimes: from the first group that writes a storage to the last that touches it.
    for (size_t i = 0; i < g_.groups.size(); ++i) {
      auto touch = [&](int id) {
        Storage& s = out_.storages[out_.tensors[id].storage];
        s.first_use = std::min(s.first_use, static_cast<int>(i));
        s.last_use = std::max(s.last_use, static_cast<int>(i));
      };
      for (int id : g_.groups[i].inputs) touch(id);
      for (int id : g_.groups[i].outputs) touch(id);
    }
  }

  // Constants that have a storage, by the hash of their bytes and how many there are.
  struct Stored {
    int tensor, storage;
  };
  using Params = std::multimap<std::pair<uint64_t, int64_t>, Stored>;

  int new_storage(int root, Params* params) {
    const auto& t = g_.tensors[root];
    Storage s;
    s.bytes = padded(root).bytes;
    s.device = t.device;
    s.first_use = static_cast<int>(g_.groups.size());
    s.last_use = -1;
    if (t.kind == GraphTensor::Kind::kInput) {
      s.space = plan::Space::kInput;
      s.index = static_cast<uint32_t>(std::find(g_.inputs.begin(), g_.inputs.end(), root) - g_.inputs.begin());
    } else if (t.is_output) {
      s.space = plan::Space::kOutput;
      s.index = static_cast<uint32_t>(std::find(g_.outputs.begin(), g_.outputs.end(), root) - g_.outputs.begin());
    } else if (t.kind == GraphTensor::Kind::kParam) {
      s.space = plan::Space::kParams;
      // Equal constants share their bytes.
      const std::pair<uint64_t, int64_t> key{t.weight.content_hash(), s.bytes};
      for (auto [it, end] = params->equal_range(key); it != end; ++it)
        if (g_.tensors[it->second.tensor].weight == t.weight) return it->second.storage;
      params->emplace(key, Stored{root, static_cast<int>(out_.storages.size())});
    }
    out_.storages.push_back(s);
    return static_cast<int>(out_.storages.size()) - 1;
  }

  // First fit by decreasing size over lifetimes (an interval-graph heuristic; Pisarchyk and Lee, 2020).
  void plan_arena() {
    out_.device_arena_bytes.assign(g_.devices.size() - 1, 0);
    std::vector<int> order;
    for (size_t i = 0; i < out_.storages.size(); ++i) {
      Storage& s = out_.storages[i];
      if (s.space == plan::Space::kArena && s.last_use >= 0) order.push_back(static_cast<int>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return out_.storages[a].bytes > out_.storages[b].bytes; });
    std::vector<int> placed;
    for (int i : order) {
      Storage& s = out_.storages[i];
      std::vector<std::pair<int64_t, int64_t>> busy;
      for (int j : placed) {
        const Storage& o = out_.storages[j];
        if (o.device == s.device && o.first_use <= s.last_use && s.first_use <= o.last_use)
          busy.emplace_back(o.offset, o.offset + extent(o));
      }
      std::sort(busy.begin(), busy.end());
      int64_t at = 0;
      for (auto [b, e] : busy) {
        if (at + extent(s) <= b) break;
        at = std::max(at, e);
      }
      s.offset = at;
      int64_t& bytes = s.device == 0 ? out_.arena_bytes : out_.device_arena_bytes[s.device - 1];
      bytes = std::max(bytes, at + extent(s));
      placed.push_back(i);
    }
  }
  // Whole cache lines plus one, so that a full-vector read past the last element stays inside the arena.
  static int64_t extent(const Storage& s) { return (s.bytes + 63) / 64 * 64 + 64; }

  struct Pending {
    int before;
    Group group;
  };
  struct Parent {
    int tensor = -1;
    size_t axis = 0;
    int64_t start = 0;
  };
  Graph& g_;
  HaloNeeds needs_;
  std::vector<Renaming> renamings_;
  std::vector<Pending> pending_;
  std::set<int> placed_, slotted_;  // concats whose operands have their places; tensors that have a slot
  std::vector<Halo> halos_;
  std::vector<Parent> parents_;
  Buffers out_;
};

}  // namespace

Result<Buffers> plan_buffers(Graph* graph, HaloNeeds needs) { return Planner(graph, std::move(needs)).run(); }

}  // namespace tilewright::lower
