// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel_function.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "relay/op.h"
#include "tir/passes/lower_kernel.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// A tensor's bytes as hexadecimal text: decimal numbers would lose bits (integers above 2^53, NaN payloads).
std::string hex_bytes(const Tensor& t) {
  std::string out;
  for (uint64_t i = 0; i < t.bytes(); ++i) out += format("{:02x}", static_cast<unsigned>(t.raw()[i]));
  return out;
}

std::string operators_key(const Group& group) {
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
  return key;
}

// Zeroes the halo of a result: per dimension with a halo, the slabs before and after it, over the interior of outer and
// the full extent (halo included) of inner dimensions. The two outer dimensions have no halo and are split over
// threads. The kernel itself never writes to the slabs, so both run in one step.
tir::Stmt clear_halo(const topi::View& out, const topi::KernelContext& context) {
  using namespace tir;
  size_t rank = out.shape.size();
  bool vector = out.halo_before[rank - 1] == 0 && out.halo_after[rank - 1] == 0 && out.strides[rank - 1] == 1 &&
                out.shape[rank - 1] <= 64;
  size_t inner = vector ? rank - 1 : rank;  // dimensions covered by loops
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

// Whether the kernel's results and what it reads are more than caches hold until the results are read. Where a result
// takes the place of an operand its lines are in the caches already.
bool streams(const LoweringState& state, const Group& group, const MachineModel& machine) {
  if (!group.choice->streams) return false;
  std::set<std::pair<size_t, int64_t>> places;
  int64_t bytes = 0, results = 0;
  for (const auto* ids : {&group.inputs, &group.outputs})
    for (int id : *ids) {
      const Placement& p = state.buffers.tensors[id];
      const bool fresh = places.insert({static_cast<size_t>(p.storage), static_cast<int64_t>(p.storage_offset)}).second;
      if (fresh) bytes += static_cast<int64_t>(p.bytes);
      if (ids == &group.outputs) results += static_cast<int64_t>(p.bytes);
      if (!fresh && ids == &group.outputs) return false;
    }
  return bytes > machine.most_cached(2 * results > bytes);
}

// The parameter by which the kernel accesses a tensor.
tir::Buffer parameter(const LoweringState& state, int id, bool read_only, size_t number, bool streamed) {
  const GraphTensor& t = state.graph.tensors[id];
  const Placement& p = state.buffers.tensors[id];
  const Storage& s = state.buffers.storages[p.storage];
  int alignment = static_cast<int>(t.dtype.bytes());
  if (s.space == plan::Space::kArena || s.space == plan::Space::kParams) {
    alignment = 64;
    while (p.storage_offset % alignment != 0) alignment /= 2;
  }
  const int64_t elements = p.bytes * 8 / std::max<int64_t>(1, t.dtype.bits);
  return tir::make_buffer(format("{}{}", read_only ? "in" : "out", number), t.dtype, elements, tir::Scope::kGlobal,
                          alignment, read_only, streamed);
}

}  // namespace

std::string kernel_key(const Graph& graph, const Group& group, const Buffers& buffers) {
  std::string key = operators_key(group);
  auto place = [&](int id) {
    const GraphTensor& t = graph.tensors[id];
    const Placement& p = buffers.tensors[id];
    key += format("|{} {} {} {} {} {}", t.dtype.str(), tilewright::shape_str(t.shape), tilewright::shape_str(p.strides),
                  p.offset, tilewright::shape_str(p.halo_before), tilewright::shape_str(p.halo_after));
    key += format(" {} {}", static_cast<int>(buffers.storages[p.storage].space), p.storage_offset % 64);
  };
  for (int id : group.inputs) place(id);
  for (int id : group.outputs) place(id);
  // A tensor used as two operands is one buffer, so aliasing is part of the key.
  for (size_t i = 0; i < group.inputs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (group.inputs[i] == group.inputs[j]) key += format("={}~{}", i, j);
  const Choice& choice = *group.choice;
  return key + format("{} {} {} {} {}", choice.implementation, choice.configuration, choice.parallel,
                      choice.scratch_bytes, choice.scratch_dtype.str());
}

// A symbol name from a group's operators: "nn.conv2d+add+nn.relu" -> "tw_conv2d_add_relu".
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

std::vector<int> distinct_inputs(const Group& group) {
  std::vector<int> out;
  for (int id : group.inputs)
    if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
  return out;
}

bool is_parallel(const Graph& graph, const Group& group) {
  return group.choice->parallel && std::none_of(group.outputs.begin(), group.outputs.end(),
                                                [&](int id) { return graph.tensors[id].dtype.bits < 8; });
}

Result<tir::PrimFunc> kernel_function(const LoweringState& state, const Group& group, const Target& target,
                                      std::string name) {
  const Graph& graph = state.graph;
  const Choice& choice = *group.choice;
  tir::PrimFunc f;
  f.name = std::move(name);
  std::map<int, tir::Buffer> buffer_of;
  const bool streamed = streams(state, group, target.machine);
  auto add = [&](const std::vector<int>& tensors, bool read_only) {
    for (size_t i = 0; i < tensors.size(); ++i)
      f.params.push_back(buffer_of[tensors[i]] = parameter(state, tensors[i], read_only, i, streamed && !read_only));
  };
  add(distinct_inputs(group), true);
  add(group.outputs, false);
  std::vector<topi::View> inputs, outputs;
  for (int id : group.inputs) inputs.push_back(view_of(graph.tensors[id], buffer_of[id]));
  for (int id : group.outputs) outputs.push_back(view_of(graph.tensors[id], buffer_of[id]));
  topi::KernelContext context{&target, {}, {}};
  if (is_parallel(graph, group)) {
    context.tid = f.tid = tir::make_var("tid");
    context.nthreads = f.nthreads = tir::make_var("nthreads");
  }
  if (choice.scratch_bytes > 0) {
    context.scratch = tir::make_buffer("scratch", choice.scratch_dtype,
                                       choice.scratch_bytes * 8 / choice.scratch_dtype.bits, tir::Scope::kGlobal, 64);
    f.params.push_back(context.scratch);
  }
  const GroupScope scope(group, inputs, outputs);
  std::vector<tir::Stmt> body;
  for (const auto& out : outputs)
    if (!out.halo_before.empty()) body.push_back(clear_halo(out, context));
  // A kernel without result elements does nothing, so templates need not handle empty tensors.
  auto has_elements = [&](int id) { return topi::product(graph.tensors[id].shape) != 0; };
  if (std::any_of(group.outputs.begin(), group.outputs.end(), has_elements))
    body.push_back(choice.emit(scope, context));
  f.body = tir::seq(std::move(body));
  return tir::lower_kernel(f);
}

}  // namespace tilewright::lower
