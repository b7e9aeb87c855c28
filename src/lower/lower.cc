// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/format.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "tir/passes/lower_kernel.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// A tensor's bytes as text: numbers would lose bits (integers above 2^53 as doubles, the payloads of NaN).
std::string hex_bytes(const Tensor& t) {
  std::string out;
  for (uint64_t i = 0; i < t.bytes(); ++i) out += format("{:02x}", static_cast<unsigned>(t.raw()[i]));
  return out;
}

// Everything a kernel's code depends on, as text: operators, attributes, types, wiring and where its operands lie.
std::string kernel_key(const Graph& graph, const Group& group, const Buffers& buffers) {
  std::string key;
  std::unordered_map<const ExprNode*, size_t> number;
  for (const Expr& e : post_order(group.function->body)) {
    size_t n = number.size();
    number[e.get()] = n;
    key += format("{}:{}", n, static_cast<int>(e->kind));
    if (const OpDef* op = called_op(e)) key += format(" {}[{}]", op->name, attrs_str(as<CallNode>(e)->attrs));
    if (const auto* constant = as<ConstantNode>(e); constant && constant->data.size() == 1)
      key += " =" + hex_bytes(constant->data);
    if (const auto* get = as<TupleGetItemNode>(e)) key += format(" .{}", get->index);
    for (const Expr& kid : children(e))
      if (auto it = number.find(kid.get()); it != number.end()) key += format(" %{}", it->second);
    key += " " + type_str(e->type) + "\n";
  }
  for (const Expr& p : group.function->params) {
    auto it = number.find(p.get());
    key += it == number.end() ? " -" : format(" p%{}", it->second);
  }
  auto place = [&](int id) {
    const auto& t = graph.tensors[id];
    const Placement& p = buffers.tensors[id];
    key += format("|{} {} {} {} {} {}", t.dtype.str(), tilewright::shape_str(t.shape), tilewright::shape_str(p.strides),
                  p.offset, tilewright::shape_str(p.halo_before), tilewright::shape_str(p.halo_after));
    key += format(" {} {}", static_cast<int>(buffers.storages[p.storage].space), p.storage_offset % 64);
  };
  for (int id : group.inputs) place(id);
  for (int id : group.outputs) place(id);
  // The same tensor as two operands makes one buffer, so aliasing is part of the key.
  for (size_t i = 0; i < group.inputs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (group.inputs[i] == group.inputs[j]) key += format("={}~{}", i, j);
  const Choice& choice = *group.choice;
  return key + format("{} {} {} {} {}", choice.implementation, choice.configuration, choice.parallel,
                      choice.scratch_bytes, choice.scratch_dtype.str());
}

// A symbol name out of a group's operators: "nn.conv2d+add+nn.relu" -> "conv2d_add_relu".
std::string symbol_of(const std::string& group) {
  std::string out;
  size_t at = 0;
  while (at < group.size() && out.size() < 60) {
    size_t end = std::min(group.find('+', at), group.size());
    std::string part = group.substr(at, end - at);
    if (auto dot = part.rfind('.'); dot != std::string::npos) part = part.substr(dot + 1);
    if (part.rfind("contrib_", 0) == 0) part = part.substr(8);
    for (char& c : part)
      if (!isalnum(static_cast<unsigned char>(c))) c = '_';
    out += (out.empty() ? "" : "_") + part;
    at = end + 1;
  }
  return "tw_" + out;
}

topi::View view_of(const tir::Buffer& buffer, const GraphTensor& t, const Placement& p) {
  topi::View v;
  v.buffer = buffer;
  v.shape = t.shape;
  v.strides = p.strides;
  v.offset = p.offset;
  bool halo = std::any_of(p.halo_before.begin(), p.halo_before.end(), [](int64_t h) { return h != 0; }) ||
              std::any_of(p.halo_after.begin(), p.halo_after.end(), [](int64_t h) { return h != 0; });
  if (halo) {
    v.halo_before = p.halo_before;
    v.halo_after = p.halo_after;
  }
  return v;
}

// Zeros around a result: for each dimension with a halo, the slab before and after it, over the interior of the
// dimensions before it and the whole (halo included) of those behind. Planes (the two outer dimensions, which have no
// halo) are split over threads; the interior's writer never touches a slab, so both run side by side within the step.
tir::Stmt clear_halo(const topi::View& out, const topi::KernelContext& context) {
  using namespace tir;
  size_t rank = out.shape.size();
  bool vector = out.halo_before[rank - 1] == 0 && out.halo_after[rank - 1] == 0 && out.strides[rank - 1] == 1 &&
                out.shape[rank - 1] <= 64;
  size_t inner = vector ? rank - 1 : rank;  // dimensions that loops cover
  int lanes = vector ? static_cast<int>(out.shape[rank - 1]) : 1;
  return topi::parallel_for(context, "plane", out.shape[0] * out.shape[1], [&](const PrimExpr& plane) {
    std::vector<Stmt> slabs;
    for (size_t d = 2; d < inner; ++d)
      for (const auto& range :
           {std::pair{-out.halo_before[d], int64_t{0}}, std::pair{out.shape[d], out.shape[d] + out.halo_after[d]}}) {
        const int64_t from = range.first, to = range.second;
        if (from == to) continue;
        topi::Index index{floordiv(plane, out.shape[1]), floormod(plane, out.shape[1])};
        std::function<Stmt(size_t)> nest = [&](size_t at) -> Stmt {
          if (at == inner) {
            topi::Index full = index;
            if (vector) full.push_back(make_int(0));
            return out.store(full, make_const(out.dtype().with_lanes(lanes), 0));
          }
          int64_t begin = at < d ? 0 : at == d ? from : -out.halo_before[at];
          int64_t end = at < d ? out.shape[at] : at == d ? to : out.shape[at] + out.halo_after[at];
          return topi::loop("i", make_int(begin), make_int(end), [&](const PrimExpr& i) {
            index.push_back(i);
            Stmt body = nest(at + 1);
            index.pop_back();
            return body;
          });
        };
        slabs.push_back(nest(2));
      }
    return seq(std::move(slabs));
  });
}

class Lowering {
 public:
  Lowering(const Target& target, const KernelChooser& chooser, const DeviceTargets& device_targets,
           const PanelWidths* panels)
      : target_(target), chooser_(chooser), device_targets_(device_targets), panels_(panels) {}

  Result<Lowered> run(const Module& module) {
    graph_ = TW_TRY(extract_graph(module));
    graph_.panels = panels_;
    TW_TRY_STATUS(choose_all());
    repack();
    HaloNeeds needs;
    for (const Group& group : graph_.groups) needs.push_back(group.choice->halos);
    buffers_ = TW_TRY(plan_buffers(&graph_, std::move(needs)));
    TW_TRY_STATUS(choose_all());  // copying groups the planner added
    describe();
    reserve_scratch();
    for (size_t i = 0; i < graph_.groups.size(); ++i)
      if (!buffers_.elided[i])
        TW_TRY_STATUS(watched(graph_.groups[i], [&]() -> Status { return emit(graph_.groups[i]); }));
    out_.plan.metadata = module.metadata;
    return std::move(out_);
  }

  // The function of the module whose group no kernel could be made of, when its operators may have kernels; else null.
  const FunctionNode* culprit() const { return culprit_; }

 private:
  // A failed check within the work on a group of several operators is an error that names the group.
  template <class F>
  auto watched(const Group& group, F&& work) -> decltype(work()) {
    const bool several = std::count(group.name.begin(), group.name.end(), '+') > 0 && !group.plain();
    if (!several) return work();
    std::string why;
    try {
      auto out = work();
      if (out.ok() || out.error().code != ErrorCode::kInternal) return out;
      why = out.error().message;
    } catch (const InternalError& e) {
      why = e.what();
    }
    culprit_ = group.function;
    return Diagnostic(ErrorCode::kInternal,
                      format("{}{}: {}", group.name, group.source.empty() ? "" : format(" of {}", group.source), why));
  }

  Status choose_all() {
    std::vector<std::string> missing;
    for (Group& group : graph_.groups) {
      if (group.choice) continue;
      if (group.plain()) {
        auto plain = std::make_shared<Choice>();
        plain->implementation = group.kind == plan::StepKind::kExternal ? "external." + group.compiler : "device_copy";
        for (const auto* list : {&group.inputs, &group.outputs})
          for (int id : *list) plain->cost.bytes += static_cast<double>(bytes_of(graph_.tensors[id]));
        plain->parallel = false;
        group.choice = std::move(plain);
        continue;
      }
      auto choice = watched(group, [&] { return choose_implementation(graph_, group, target_of(group), chooser_); });
      if (culprit_) return std::move(choice).error();
      if (choice.ok()) {
        group.choice = *choice;
        continue;
      }
      if (choice.error().code == ErrorCode::kFreeDimension) return choice.error();
      std::string line = (choice.error().where.empty() ? "" : choice.error().where + ": ") + choice.error().message;
      if (std::find(missing.begin(), missing.end(), line) == missing.end()) missing.push_back(line);
    }
    if (missing.empty()) return Ok{};
    std::string all = missing[0];
    for (size_t i = 1; i < missing.size() && i < 20; ++i) all += "\n  " + missing[i];
    if (missing.size() > 20) all += format("\n  and {} more", missing.size() - 20);
    return Diagnostic(ErrorCode::kUnsupportedOp, all, {}, "`tilewright ops` lists the operators that compile");
  }

  const Target& target_of(const Group& group) const {
    auto found = device_targets_.find(graph_.devices[graph_.tensors[group.outputs[0]].device]);
    return found == device_targets_.end() ? target_ : found->second;
  }
  static uint64_t bytes_of(const GraphTensor& t) {
    uint64_t n = 1;
    for (int64_t d : t.shape) n *= static_cast<uint64_t>(d);
    return t.dtype.bytes_for(n);
  }

  void repack() {
    std::map<std::tuple<int, std::string, std::vector<int64_t>>, int> done;
    for (Group& group : graph_.groups) {
      for (const Tensor& table : group.choice->tables) {
        GraphTensor t;
        t.name = "table";
        t.dtype = table.dtype();
        t.shape = table.shape();
        t.kind = GraphTensor::Kind::kParam;
        t.data = table;
        t.weight = Weight(table);
        group.inputs.push_back(static_cast<int>(graph_.tensors.size()));
        graph_.tensors.push_back(std::move(t));
      }
      for (const auto& [input, pack] : group.choice->repacks) {
        int id = group.inputs[static_cast<size_t>(input)];
        Tensor packed = pack(graph_.tensors[id].data);
        auto [it, fresh] =
            done.try_emplace({id, group.choice->implementation + " " + group.choice->configuration, packed.shape()},
                             static_cast<int>(graph_.tensors.size()));
        if (fresh) {
          GraphTensor t = graph_.tensors[id];
          t.consumers.clear();
          t.shape = packed.shape();
          t.dtype = packed.dtype();
          t.weight = Weight(t.data, pack, packed);
          graph_.tensors.push_back(std::move(t));
        }
        group.inputs[static_cast<size_t>(input)] = it->second;
        graph_.tensors[it->second].consumers.push_back(static_cast<int>(&group - graph_.groups.data()));
        auto& users = graph_.tensors[id].consumers;
        users.erase(std::remove(users.begin(), users.end(), static_cast<int>(&group - graph_.groups.data())),
                    users.end());
      }
    }
  }

  // Inputs, outputs and parameters of the plan.
  void describe() {
    plan::Plan& p = out_.plan;
    p.target = target_.str();
    p.cpu_features = target_.cpu_features;
    p.devices = graph_.devices;
    for (int32_t device : p.devices)
      if (auto other = device_targets_.find(device); other != device_targets_.end())
        for (const std::string& feature : other->second.cpu_features)
          if (std::find(p.cpu_features.begin(), p.cpu_features.end(), feature) == p.cpu_features.end())
            p.cpu_features.push_back(feature);
    p.arena_bytes = static_cast<uint64_t>(buffers_.arena_bytes);
    p.device_arena_bytes.assign(buffers_.device_arena_bytes.begin(), buffers_.device_arena_bytes.end());
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto& t = graph_.tensors[graph_.inputs[i]];
      p.inputs.push_back({t.name, t.dtype, t.shape});
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const auto& t = graph_.tensors[graph_.outputs[i]];
      p.outputs.push_back({graph_.output_names[i], t.dtype, t.shape});
    }
    // Parameters that a kernel still reads, in the order of their first use.
    std::vector<bool> used(buffers_.storages.size(), false);
    std::vector<int64_t> offsets(buffers_.storages.size(), 0);
    uint64_t at = 0;
    for (size_t g = 0; g < graph_.groups.size(); ++g) {
      if (buffers_.elided[g]) continue;
      for (int id : graph_.groups[g].inputs) {
        const auto& place = buffers_.tensors[id];
        Storage& s = buffers_.storages[place.storage];
        if (s.space != plan::Space::kParams || used[place.storage]) continue;
        used[place.storage] = true;
        s.offset = static_cast<int64_t>(at);
        const GraphTensor& root = param_root(place.storage);
        p.params.push_back({root.name, root.dtype, root.shape, "", at, static_cast<uint64_t>(s.bytes)});
        out_.params.push_back(root.weight);
        at = (at + static_cast<uint64_t>(s.bytes) + 63) / 64 * 64;
      }
    }
    // Kernels may read a full vector at the last element.
    p.params_bytes = at == 0 ? 0 : at + 64;
  }

  // Every thread's scratch is as large as the neediest kernel's, whole pages so that threads do not share lines.
  void reserve_scratch() {
    uint64_t most = 0;
    for (const Group& group : graph_.groups) most = std::max(most, static_cast<uint64_t>(group.choice->scratch_bytes));
    if (most == 0) return;
    out_.plan.scratch_bytes = (most + 4095) / 4096 * 4096;
    out_.plan.arena_bytes = (out_.plan.arena_bytes + 4095) / 4096 * 4096 + out_.plan.scratch_bytes;
  }

  uint32_t scratch_buffer(int64_t bytes) {
    auto [it, fresh] = scratch_buffer_of_.try_emplace(bytes, static_cast<uint32_t>(out_.plan.buffers.size()));
    if (fresh) {
      plan::Buffer b;
      b.space = plan::Space::kScratch;
      b.bytes = static_cast<uint64_t>(bytes);
      b.dtype = kFloat32;
      b.shape = {bytes / 4};
      b.name = "scratch";
      out_.plan.buffers.push_back(std::move(b));
    }
    return it->second;
  }

  const GraphTensor& param_root(int storage) const {
    for (size_t id = 0; id < graph_.tensors.size(); ++id)
      if (buffers_.tensors[id].storage == storage && graph_.tensors[id].kind == GraphTensor::Kind::kParam)
        return graph_.tensors[id];
    internal_error(__FILE__, __LINE__, "a parameter storage without its tensor");
  }

  uint32_t plan_buffer(int id) {
    const Placement& p = buffers_.tensors[id];
    const Storage& s = buffers_.storages[p.storage];
    const GraphTensor& t = graph_.tensors[id];
    plan::Buffer b;
    b.space = s.space;
    b.index = s.index;
    b.offset = static_cast<uint64_t>(
        p.storage_offset + (s.space == plan::Space::kArena || s.space == plan::Space::kParams ? s.offset : 0));
    b.bytes = static_cast<uint64_t>(p.bytes);
    b.dtype = t.dtype;
    b.shape = t.shape;
    b.layout = t.layout;
    b.name = t.name;
    b.device = t.device;
    auto [it, fresh] = plan_buffer_of_.try_emplace(id, static_cast<uint32_t>(out_.plan.buffers.size()));
    if (fresh) out_.plan.buffers.push_back(std::move(b));
    return it->second;
  }

  // Which kernel, compiled when it is new.
  Result<uint32_t> kernel_of(const Group& group) {
    const uint32_t device = graph_.tensors[group.outputs[0]].device;
    auto [slot, fresh] = kernels_.try_emplace(format("{} ", device) + kernel_key(graph_, group, buffers_),
                                              static_cast<uint32_t>(out_.kernels.size()));
    if (fresh) {
      std::string base = symbol_of(group.name);
      int& copies = names_[base];
      auto kernel = build(group, copies++ == 0 ? base : format("{}_{}", base, copies - 1));
      if (!kernel.ok()) return std::move(kernel).error().at(group.source);
      out_.plan.kernels.push_back(kernel->name);
      out_.kernels.push_back(std::move(*kernel));
      out_.kernel_devices.push_back(device);
    }
    return slot->second;
  }

  // Two calls of one function of the module call one function of the code generator's.
  uint32_t external_of(const Group& group) {
    for (uint32_t i = 0; i < out_.externals.size(); ++i)
      if (out_.externals[i].symbol == group.external) return i;
    out_.externals.push_back({group.external, group.compiler, relay::Expr(group.function)});
    out_.plan.externals.push_back(group.external);
    return static_cast<uint32_t>(out_.externals.size()) - 1;
  }

  Status emit(const Group& group) {
    plan::Step step;
    step.kind = group.kind;
    if (group.kind == plan::StepKind::kKernel) step.kernel = TW_TRY(kernel_of(group));
    if (group.kind == plan::StepKind::kExternal) step.kernel = external_of(group);
    for (int id : group.plain() ? group.inputs : distinct_inputs(group)) step.buffers.push_back(plan_buffer(id));
    for (int id : group.outputs) step.buffers.push_back(plan_buffer(id));
    step.outputs = static_cast<uint32_t>(group.outputs.size());
    if (group.choice->scratch_bytes > 0) step.buffers.push_back(scratch_buffer(group.choice->scratch_bytes));
    step.parallel = parallel(group);
    step.name = group.name;
    step.source = group.source;
    step.flops = group.choice->cost.flops;
    step.bytes = group.choice->cost.bytes;
    step.predicted_us = group.choice->cost.microseconds;
    step.implementation = group.choice->implementation;
    out_.plan.steps.push_back(std::move(step));
    StepTrace trace;
    trace.function = relay::Expr(group.function);
    for (int id : group.inputs) trace.inputs.push_back(operand_trace(id));
    for (int id : group.outputs) trace.outputs.push_back(operand_trace(id));
    trace.choice = group.choice;
    out_.traces.push_back(std::move(trace));
    return Ok{};
  }

  OperandTrace operand_trace(int id) {
    const GraphTensor& t = graph_.tensors[id];
    const Placement& p = buffers_.tensors[id];
    OperandTrace o{plan_buffer(id), t.dtype, t.shape, p.strides, p.offset, {}};
    if (t.kind == GraphTensor::Kind::kParam) o.constant = t.data;
    return o;
  }

  // Elements that share a byte cannot be written by two threads.
  bool parallel(const Group& group) const {
    return group.choice->parallel && std::none_of(group.outputs.begin(), group.outputs.end(),
                                                  [&](int id) { return graph_.tensors[id].dtype.bits < 8; });
  }

  static std::vector<int> distinct_inputs(const Group& group) {
    std::vector<int> out;
    for (int id : group.inputs)
      if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
    return out;
  }

  Result<tir::PrimFunc> build(const Group& group, std::string name) {
    tir::PrimFunc f;
    f.name = std::move(name);
    std::map<int, tir::Buffer> buffer_of;
    auto make = [&](int id, bool read_only, size_t number) {
      const GraphTensor& t = graph_.tensors[id];
      const Placement& p = buffers_.tensors[id];
      const Storage& s = buffers_.storages[p.storage];
      bool ours = s.space == plan::Space::kArena || s.space == plan::Space::kParams;
      int alignment = static_cast<int>(t.dtype.bytes());
      if (ours) {
        alignment = 64;
        while (p.storage_offset % alignment != 0) alignment /= 2;
      }
      int64_t elements = p.bytes * 8 / std::max<int64_t>(1, t.dtype.bits);
      tir::Buffer b = tir::make_buffer(format("{}{}", read_only ? "in" : "out", number), t.dtype, elements,
                                       tir::Scope::kGlobal, alignment, read_only);
      buffer_of[id] = b;
      f.params.push_back(b);
    };
    size_t number = 0;
    for (int id : distinct_inputs(group)) make(id, true, number++);
    number = 0;
    for (int id : group.outputs) make(id, false, number++);
    std::vector<topi::View> inputs, outputs;
    for (int id : group.inputs) inputs.push_back(view_of(buffer_of[id], graph_.tensors[id], buffers_.tensors[id]));
    for (int id : group.outputs) outputs.push_back(view_of(buffer_of[id], graph_.tensors[id], buffers_.tensors[id]));
    topi::KernelContext context{&target_of(group), {}, {}};
    if (parallel(group)) {
      context.tid = f.tid = tir::make_var("tid");
      context.nthreads = f.nthreads = tir::make_var("nthreads");
    }
    if (group.choice->scratch_bytes > 0) {
      const DataType dtype = group.choice->scratch_dtype;
      context.scratch =
          tir::make_buffer("scratch", dtype, group.choice->scratch_bytes * 8 / dtype.bits, tir::Scope::kGlobal, 64);
      f.params.push_back(context.scratch);
    }
    GroupScope scope(group, inputs, outputs);
    std::vector<tir::Stmt> body;
    for (const auto& out : outputs)
      if (!out.halo_before.empty()) body.push_back(clear_halo(out, context));
    // A kernel whose results have no element does nothing, and its templates need not know.
    auto has_elements = [&](int id) { return topi::product(graph_.tensors[id].shape) != 0; };
    if (std::any_of(group.outputs.begin(), group.outputs.end(), has_elements))
      body.push_back(group.choice->emit(scope, context));
    f.body = tir::seq(std::move(body));
    return tir::lower_kernel(f);
  }

  const Target& target_;
  const KernelChooser& chooser_;
  const DeviceTargets& device_targets_;
  const PanelWidths* panels_;
  const FunctionNode* culprit_ = nullptr;
  Graph graph_;
  Buffers buffers_;
  Lowered out_;
  std::map<std::string, uint32_t> kernels_;
  std::map<std::string, int> names_;
  std::map<int, uint32_t> plan_buffer_of_;
  std::map<int64_t, uint32_t> scratch_buffer_of_;  // by bytes
};

}  // namespace

Result<Lowered> lower_module(const Module& fused, const Target& target, const KernelChooser& chooser,
                             const DeviceTargets& device_targets, const PanelWidths* panels) {
  Module module = split_groups(fused);
  std::vector<std::string> taken_apart;
  for (;;) {
    Lowering lowering(target, chooser, device_targets, panels);
    auto lowered = lowering.run(module);
    if (!lowering.culprit()) {
      if (lowered.ok()) lowered->taken_apart = std::move(taken_apart);
      return lowered;
    }
    taken_apart.push_back(lowered.error().message);
    module = split_groups(module, lowering.culprit());
  }
}

}  // namespace tilewright::lower
