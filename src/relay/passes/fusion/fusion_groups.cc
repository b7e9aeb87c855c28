// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/fusion_groups.h"

#include <algorithm>
#include <string_view>

#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

OpPattern combine(OpPattern a, OpPattern b) { return std::max(a, b); }

// A constant that lowering emits as an immediate.
bool is_immediate(const ConstantNode& constant) {
  DataType d = constant.data.dtype();
  return constant.data.rank() == 0 && (d == kInt32 || d == kInt64 || d == kFloat32 || d == kFloat64 || d == kBool);
}

// An output dimension that is unknown until the operator has run.
bool has_fresh_dims(const CallNode& call) {
  const auto* out = as_tensor(call.type);
  if (!out) return false;
  for (const Dim& dim : out->shape) {
    if (dim.is_const() || dim.node()->kind != DimKind::kAny) continue;
    bool known = false;
    for (const Expr& arg : call.args)
      if (const auto* t = as_tensor(arg->type))
        known |= std::find(t->shape.begin(), t->shape.end(), dim) != t->shape.end();
    if (!known) return true;
  }
  return false;
}

// Whether lowering does this concatenation without a kernel, by letting operands' kernels write into its result; it is
// then in no group. The dimensions before the axis must be 1, so that each operand's part is contiguous, and operands
// that only alias another tensor, which need a copy, must be the smaller part.
bool is_made_in_place(const CallNode& call) {
  const auto* out = as_tensor(call.type);
  const auto* fields = call.args.size() == 1 ? as<TupleNode>(call.args[0]) : nullptr;
  const auto* attrs = attrs_as<ConcatenateAttrs>(call.attrs);
  if (!attrs || !out || !fields || !static_shape(out->shape)) return false;
  auto axis =
      static_cast<size_t>(attrs->axis < 0 ? attrs->axis + static_cast<int64_t>(out->shape.size()) : attrs->axis);
  for (size_t d = 0; d < axis; ++d)
    if (!(out->shape[d] == Dim(1))) return false;
  int64_t copied = 0, written = 0;
  for (const Expr& field : fields->fields) {
    const auto* get = as<TupleGetItemNode>(field);
    const OpDef* op = called_op(get ? get->tuple : field);
    const auto* type = as_tensor(field->type);
    if (!type) return false;
    const Elements elements = op ? op->facts.elements : Elements::kSame;
    const bool renames =
        elements == Elements::kSame || elements == Elements::kReshaped || elements == Elements::kSelected;
    (renames ? copied : written) += type->shape[axis].value();
  }
  return copied < written;
}

bool is_transpose(const Expr& e) {
  const OpDef* op = called_op(e);
  return op && std::string_view(op->name) == "transpose";
}

// Transforms between plain and blocked channels: a kernel of its own, through registers, which fuses with elementwise
// users only. Not behind a transpose: the two together may keep the last dimension in place.
bool changes_blocks(const CallNode& call) {
  const auto* attrs = attrs_as<LayoutTransformAttrs>(call.attrs);
  if (!attrs || (attrs->src_layout != "NCHW" && attrs->dst_layout != "NCHW")) return false;
  Expr source = call.args[0];
  for (const OpDef* op = called_op(source); op && op->pattern <= OpPattern::kBroadcast;) {
    const auto& args = as<CallNode>(source)->args;
    auto computed = std::find_if(args.begin(), args.end(), [](const Expr& a) { return called_op(a) != nullptr; });
    source = computed == args.end() ? args[0] : *computed;
    op = called_op(source);
  }
  return !is_transpose(source);
}

// Children for the grouping: a primitive function is a leaf, other functions are entered.
std::vector<Expr> graph_children(const Expr& e) {
  if (const auto* function = as<FunctionNode>(e)) {
    if (is_closed_function(e)) return {};
    std::vector<Expr> out = function->params;
    out.push_back(function->body);
    return out;
  }
  return children(e);
}

}  // namespace

FusionGroups::FusionGroups(const Expr& root, const FusionOptions& options) {
  build_graph(root, options.in_place);
  groups_.resize(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    groups_[i].root = i;
    groups_[i].pattern = graph_[i].pattern;
    groups_[i].has_anchor = graph_[i].pattern == OpPattern::kOutEWiseFusable;
  }
  if (!options.fuse) return;
  build_dominators();
  visited_.assign(nodes_.size(), 0);
  for (int phase = 0; phase < 3; ++phase) run_phase(phase, options.max_depth);
}

size_t FusionGroups::group_of(size_t node) const {
  size_t top = node;
  while (groups_[top].parent != kNone) top = groups_[top].parent;
  while (groups_[node].parent != kNone) {
    size_t next = groups_[node].parent;
    groups_[node].parent = top;
    node = next;
  }
  return top;
}

void FusionGroups::build_graph(const Expr& root, bool in_place) {
  struct Frame {
    Expr e;
    std::vector<Expr> kids;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  std::unordered_map<const ExprNode*, bool> seen;
  auto push = [&](const Expr& e) {
    if (seen.emplace(e.get(), true).second) stack.push_back({e, graph_children(e)});
  };
  push(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.kids.size()) {
      Expr kid = top.kids[top.next++];
      push(kid);
      continue;
    }
    index_[top.e.get()] = nodes_.size();
    nodes_.push_back(top.e);
    stack.pop_back();
  }
  graph_.resize(nodes_.size());
  for (const Expr& e : nodes_)
    if (is_transpose(e)) turned_.insert(as<CallNode>(e)->args[0].get());
  for (size_t i = 0; i < nodes_.size(); ++i) link_operands(i, in_place);
  graph_[index_.at(root.get())].external = true;
}

namespace {
bool reads_rows(const OpDef& op) {
  static constexpr std::string_view kNames[] = {"nn.fast_softmax", "nn.layer_norm", "nn.log_softmax", "nn.softmax"};
  return std::find(std::begin(kNames), std::end(kNames), op.name) != std::end(kNames);
}
}  // namespace

void FusionGroups::link_operands(size_t node, bool in_place) {
  const Expr& e = nodes_[node];
  auto link = [&](const Expr& operand, OpPattern pattern) {
    graph_[index_.at(operand.get())].outputs.push_back({node, pattern});
  };
  auto expose = [&](const Expr& operand) { graph_[index_.at(operand.get())].external = true; };
  auto expose_all = [&] {
    for (const Expr& kid : graph_children(e)) expose(kid);
  };
  switch (e->kind) {
    case ExprKind::kConstant:
      graph_[node].pattern = is_immediate(*as<ConstantNode>(e)) ? OpPattern::kElemWise : OpPattern::kOpaque;
      break;
    case ExprKind::kCall: {
      const auto& call = *as<CallNode>(e);
      const OpDef* op = called_op(e);
      if (!op) {
        expose_all();
        break;
      }
      OpPattern pattern =
          has_fresh_dims(call) || (in_place && is_made_in_place(call)) ? OpPattern::kOpaque : op->pattern;
      if (in_place && changes_blocks(call) && !turned_.count(e.get())) pattern = OpPattern::kOutEWiseFusable;
      graph_[node].pattern = pattern;
      const auto* out = as_tensor(call.type);
      for (const Expr& arg : call.args) {
        const auto* in = as_tensor(arg->type);
        bool same = pattern == OpPattern::kBroadcast && in && out && in->shape == out->shape;
        // Kernels over rows read elements once, as they come: wider ones need not be stored first.
        same = same || (&arg == call.args.data() && reads_rows(*op) && is_call_to(arg, "cast"));
        link(arg, same ? OpPattern::kElemWise : pattern);
      }
      break;
    }
    case ExprKind::kTuple:
      graph_[node].pattern = OpPattern::kTuple;
      for (const Expr& field : as<TupleNode>(e)->fields)
        if (as_tensor(field->type))
          link(field, OpPattern::kInjective);
        else
          expose(field);
      break;
    case ExprKind::kTupleGetItem: {
      const Expr& tuple = as<TupleGetItemNode>(e)->tuple;
      const auto* type = as_tuple(tuple->type);
      bool flat = type && std::all_of(type->fields.begin(), type->fields.end(), [](auto& t) { return as_tensor(t); });
      if (flat) {
        graph_[node].pattern = OpPattern::kInjective;
        link(tuple, OpPattern::kInjective);
      } else {
        expose(tuple);
      }
      break;
    }
    case ExprKind::kFunction:
    case ExprKind::kLet:
    case ExprKind::kIf:
    case ExprKind::kMatch:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      expose_all();
      break;
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kOp:
    case ExprKind::kConstructor:
      break;
  }
}

void FusionGroups::build_dominators() {
  dominators_.resize(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Vertex& vertex = graph_[i];
    if (vertex.external || vertex.outputs.empty()) continue;
    OpPattern pattern = OpPattern::kElemWise;
    size_t parent = vertex.outputs[0].to;
    for (const Edge& edge : vertex.outputs) {
      parent = common_ancestor(parent, edge.to, &pattern);
      pattern = combine(pattern, edge.pattern);
    }
    dominators_[i] = {parent, parent == kNone ? 1 : dominators_[parent].depth + 1, pattern};
  }
}

size_t FusionGroups::common_ancestor(size_t a, size_t b, OpPattern* pattern) const {
  auto climb = [&](size_t* v) {
    *pattern = combine(*pattern, dominators_[*v].pattern);
    *v = dominators_[*v].parent;
  };
  while (a != b) {
    if (a == kNone || b == kNone) return kNone;
    size_t depth_a = dominators_[a].depth, depth_b = dominators_[b].depth;
    if (depth_a >= depth_b) climb(&a);
    if (depth_b >= depth_a) climb(&b);
  }
  return a;
}

template <class F>
bool FusionGroups::every_on_paths(size_t source, size_t sink, F&& enter) {
  ++stamp_;
  std::vector<size_t> waiting;
  auto push_outputs = [&](size_t node) {
    for (const Edge& edge : graph_[node].outputs)
      if (visited_[edge.to] != stamp_) {
        visited_[edge.to] = stamp_;
        waiting.push_back(edge.to);
      }
  };
  push_outputs(source);
  while (!waiting.empty()) {
    size_t node = waiting.back();
    waiting.pop_back();
    if (!enter(node, node == sink)) return false;
    if (node != sink) push_outputs(node);
  }
  return true;
}

int64_t FusionGroups::size_if_fused(size_t source, size_t sink) {
  int64_t size = groups_[group_of(sink)].size + groups_[source].size;
  every_on_paths(source, sink, [&](size_t node, bool is_sink) {
    if (!is_sink) size += groups_[node].size;
    return true;
  });
  return size;
}

void FusionGroups::merge_into(size_t source, size_t sink) {
  merge_groups(source, sink);
  every_on_paths(source, sink, [&](size_t node, bool is_sink) {
    if (!is_sink) merge_groups(node, sink);
    return true;
  });
}

void FusionGroups::merge_groups(size_t child, size_t parent) {
  child = group_of(child);
  parent = group_of(parent);
  if (child == parent) return;
  Group &from = groups_[child], &to = groups_[parent];
  to.size += from.size;
  from.parent = parent;
  if (!from.has_anchor) return;
  TW_ICHECK(!to.has_anchor, "two anchors in one fusion group");
  TW_ICHECK(from.pattern <= OpPattern::kBroadcast || to.pattern <= OpPattern::kBroadcast, "two complex groups merged");
  to.has_anchor = true;
  to.pattern = combine(from.pattern, to.pattern);
}

void FusionGroups::run_phase(int phase, int64_t max_depth) {
  using enum OpPattern;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const OpPattern pattern = groups_[node].pattern;
    const size_t parent = dominators_[node].parent;
    if (pattern == kOpaque || parent == kNone) continue;
    if (size_if_fused(node, parent) > max_depth) continue;
    auto kind_of = [&](size_t v) { return groups_[group_of(v)].pattern; };
    auto all_injective = [&](size_t v, bool) { return kind_of(v) <= kInjective; };

    if (phase == 2) {
      // A tuple fused into its user (concatenate) absorbs the injective operators that feed it.
      if (pattern > kInjective) continue;
      OpPattern root = kind_of(parent);
      if (groups_[parent].pattern == kTuple && root <= kInjective && every_on_paths(node, parent, all_injective))
        merge_into(node, parent);
      continue;
    }
    if (group_of(node) == group_of(parent) || groups_[parent].pattern == kTuple) continue;

    const OpPattern relation = dominators_[node].pattern;
    if (pattern == kOutEWiseFusable) {
      auto broadcast = [&](size_t v, bool) { return kind_of(v) <= kBroadcast; };
      if (phase == 0 && relation == kElemWise && every_on_paths(node, parent, broadcast)) merge_into(node, parent);
    } else if (pattern <= kBroadcast) {
      auto allowed = [&](size_t v, bool is_sink) {
        OpPattern kind = kind_of(v);
        return kind <= kInjective || (is_sink && (kind == kCommReduce || kind == kOutEWiseFusable));
      };
      bool related = relation <= kInjective || relation == kCommReduce;
      if (related && every_on_paths(node, parent, allowed)) merge_into(node, parent);
    } else if (pattern == kInjective || pattern == kTuple) {
      // Left to the second phase, so that convolutions absorb their elementwise users first.
      if (phase == 1 && every_on_paths(node, parent, all_injective)) merge_into(node, parent);
    }
  }
}

}  // namespace tilewright::relay
