// SPDX-License-Identifier: Apache-2.0
#include "lower/renaming.h"

#include <algorithm>

#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// Whether the group only keeps the elements in order.
// Tensors of another device are always separate.
bool only_keeps_order(const Expr& body) {
  for (const Expr& e : post_order(body)) {
    const OpDef* def = called_op(e);
    if (e->kind == ExprKind::kCall &&
        !(def && keeps_order(def->facts.elements) && std::string_view(def->name) != "device_copy"))
      return false;
    if (e->kind != ExprKind::kCall && e->kind != ExprKind::kVar && e->kind != ExprKind::kOp) return false;
  }
  return true;
}

// A tensor used by an external function or a copy must not be a window of one that could have a halo.
bool may_be_window(const Graph& graph, int id) {
  const GraphTensor& t = graph.tensors[id];
  return (t.producer < 0 || !graph.groups[t.producer].plain()) &&
         std::none_of(t.consumers.begin(), t.consumers.end(), [&](int user) { return graph.groups[user].plain(); });
}

bool leading_ones(const std::vector<int64_t>& shape, size_t axis) {
  return std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis),
                     [](int64_t d) { return d == 1; });
}

size_t counted_from_front(int64_t axis, const std::vector<int64_t>& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}

// The start of each tensor when they are consecutive along the axis.
std::vector<int64_t> starts_along(const Graph& graph, const std::vector<int>& tensors, size_t axis) {
  std::vector<int64_t> starts;
  int64_t start = 0;
  for (int id : tensors) {
    starts.push_back(start);
    start += graph.tensors[id].shape[axis];
  }
  return starts;
}

// A concatenation of unmodified group inputs.
Renaming concat_renaming(const Graph& graph, const Group& group, const CallNode& call) {
  Expr arg = call.args.size() == 1 ? call.args[0] : nullptr;
  std::vector<Expr> parts = call.args;
  if (const auto* tuple = as<TupleNode>(arg)) parts = tuple->fields;
  if (const bool tuple_param = as<VarNode>(arg) && as_tuple(arg->type); !tuple_param) {
    if (parts.size() != group.inputs.size()) return {};
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].get() != group.function->params[i].get()) return {};
  }
  const auto& shape = graph.tensors[group.outputs[0]].shape;
  Renaming r;
  r.kind = Renaming::Kind::kConcat;
  r.axis = counted_from_front(attrs_as<ConcatenateAttrs>(call.attrs)->axis, shape);
  if (!leading_ones(shape, r.axis)) return {};
  r.starts = starts_along(graph, group.inputs, r.axis);
  return r;
}

// A slice along one dimension with stride one.
Renaming slice_renaming(const Graph& graph, const Group& group, const CallNode& call) {
  const auto& shape = graph.tensors[group.inputs[0]].shape;
  const auto& attrs = *attrs_as<StridedSliceAttrs>(call.attrs);
  const auto& out = graph.tensors[group.outputs[0]].shape;
  Renaming r;
  r.kind = Renaming::Kind::kSlice;
  int sliced = 0;
  int64_t begin = 0;
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const int64_t d = attrs.axes && !attrs.axes->empty() ? (*attrs.axes)[i] : static_cast<int64_t>(i);
    const size_t at = counted_from_front(d, shape);
    if (shape[at] == out[at]) continue;
    if (!attrs.strides.empty() && attrs.strides[std::min(i, attrs.strides.size() - 1)] != 1) return {};
    ++sliced;
    r.axis = at;
    begin = attrs.begin[i] < 0 ? attrs.begin[i] + shape[at] : attrs.begin[i];
  }
  if (sliced != 1) return {};
  r.starts = {std::clamp<int64_t>(begin, 0, shape[r.axis])};  // classic slices may begin before the first
  return r;
}

Renaming split_renaming(const Graph& graph, const Group& group, const CallNode& call) {
  Renaming r;
  r.kind = Renaming::Kind::kSlice;
  r.axis = counted_from_front(attrs_as<SplitAttrs>(call.attrs)->axis, graph.tensors[group.inputs[0]].shape);
  r.starts = starts_along(graph, group.outputs, r.axis);
  return r;
}

}  // namespace

Renaming renaming_of(const Graph& graph, const Group& group) {
  if (group.plain() || !group.lifted.empty()) return {};
  const Expr& body = group.function->body;
  const CallNode* call = as<CallNode>(body);
  const OpDef* op = call ? called_op(body) : nullptr;
  if (!op) return {};
  const std::string_view name = op->name;
  // A window that starts within a byte is not addressable.
  for (int id : group.inputs)
    if (graph.tensors[id].dtype.bits < 8 && name != "reshape") return {};
  if (group.inputs.size() == 1 && group.outputs.size() == 1 && only_keeps_order(body)) {
    Renaming reshape;
    reshape.kind = Renaming::Kind::kReshape;
    return reshape;
  }
  if (graph.apart) return {};
  for (const auto* tensors : {&group.inputs, &group.outputs})
    for (int id : *tensors)
      if (!may_be_window(graph, id)) return {};
  if (name == "concatenate") return concat_renaming(graph, group, *call);
  if ((name != "split" && name != "strided_slice") || group.inputs.size() != 1 || !as<VarNode>(call->args[0]))
    return {};
  Renaming r = name == "split" ? split_renaming(graph, group, *call) : slice_renaming(graph, group, *call);
  return leading_ones(graph.tensors[group.inputs[0]].shape, r.axis) ? r : Renaming();
}

}  // namespace tilewright::lower
