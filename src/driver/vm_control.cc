// SPDX-License-Identifier: Apache-2.0
// Branches, loops and calls on computed values, as jumps around the code of their graphs.
#include <memory>
#include <utility>

#include "base/format.h"
#include "driver/vm_graph.h"

namespace tilewright::driver {

using onnx::Graph;
using onnx::Node;
using runtime::vm::Opcode;

namespace {

// An empty result's type, for a loop without steps.
std::string stack_source(const onnx::ValueInfo& info) {
  std::string out = "list_stack";
  const auto& t = info.type;
  if (!t.elem || !t.shape || t.elem->is_string()) return out;
  out += format("\ndtype={}\nshape=0", t.elem->str());
  for (const auto& d : *t.shape) out += format("x{}", d.value.value_or(0));
  return out;
}

Result<std::vector<int64_t>> list_of(const Node& n, const char* name, size_t count) {
  const auto* a = n.find(name);
  std::vector<int64_t> out = a ? a->ints : std::vector<int64_t>(count, 0);
  if (out.size() != count)
    return Diagnostic(ErrorCode::kMalformedModel,
                      format("its {} has {} values where {} are needed", name, out.size(), count));
  return out;
}

}  // namespace

Result<GraphCompiler::Body> GraphCompiler::body_of(const Node& n, std::string_view field, const char* name) {
  const auto* a = n.find(name);
  if (!a || a->graphs.size() != 1)
    return Diagnostic(ErrorCode::kMalformedModel, format("its attribute '{}' is missing", name));
  const std::string_view content = TW_TRY(onnx::subgraph_part(field, name));
  return Body{a->graphs[0].get(), content};
}

Result<std::vector<Slot>> GraphCompiler::control(const Node& n, std::string_view field, const VmScope& scope) {
  if (const onnx::Function* function = language().find(n)) return call(*function, n, field, scope);
  if (n.op_type == "If") return branch(n, field, scope);
  if (n.op_type == "Loop") return loop(n, field, scope);
  if (n.op_type == "Scan") return scan(n, field, scope);
  return map(n, field, scope);
}

Result<std::vector<Slot>> GraphCompiler::branch(const Node& n, std::string_view field, const VmScope& scope) {
  if (n.inputs.size() != 1)
    return Diagnostic(ErrorCode::kMalformedModel, format("it has {} inputs, not one condition", n.inputs.size()));
  const int64_t condition = TW_TRY(reg_of(n.inputs[0], scope)), one = code_.integer(1);
  const size_t at = code_.emit(Opcode::kIf, {condition, one, 1, 0});
  std::vector<Slot> out;
  size_t leave = 0;
  for (const char* name : {"then_branch", "else_branch"}) {
    const bool first = name[0] == 't';
    const Body body = TW_TRY(body_of(n, field, name));
    VmScope inner{&scope, {}, scope.depth};
    auto made = TW_TRY(graph(*body.graph, body.content, inner));
    if (made.size() < n.outputs.size())
      return Diagnostic(ErrorCode::kMalformedModel, "its branch has fewer outputs than it");
    for (size_t k = 0; k < made.size(); ++k) {
      if (first)
        out.push_back(held(code_.fresh(), made[k].sort, made[k].text));
      else if (k == out.size())
        break;
      if (out[k].sort != made[k].sort) out[k].sort = Sort::kAny;
      out[k].text |= made[k].text;
      code_.move(made[k].reg, out[k].reg);
    }
    if (first) {
      leave = code_.emit(Opcode::kGoto, {0});
      code_.patch(at, 3);
    }
  }
  code_.patch(leave, 0);
  return out;
}

void GraphCompiler::start(Steps* s, const std::vector<Slot>& initial, size_t lists) {
  for (const Slot& v : initial) {
    s->carried.push_back(held(code_.fresh(), v.sort, v.text));
    code_.move(v.reg, s->carried.back().reg);
  }
  for (size_t i = 0; i < lists; ++i) s->lists.push_back(code_.host("ref_create", {}, 1)[0]);
}

// The values of one step, made from what the registers still hold, before any of them changes.
void GraphCompiler::next(Steps* s, const std::vector<Slot>& made, size_t first) {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < s->carried.size(); ++i) {
    kept.push_back(code_.fresh());
    code_.move(made[first + i].reg, kept.back());
  }
  for (size_t i = 0; i < s->lists.size(); ++i)
    code_.host("list_append", {s->lists[i], made[first + s->carried.size() + i].reg}, 0);
  for (size_t i = 0; i < kept.size(); ++i) {
    code_.move(kept[i], s->carried[i].reg);
    if (s->carried[i].sort != made[first + i].sort) s->carried[i].sort = Sort::kAny;
    s->carried[i].text |= made[first + i].text;
  }
}

// Counts a register on; the code of one step lies between this and next_step().
GraphCompiler::Counter GraphCompiler::count(int64_t limit) {
  Counter c{code_.integer(0), code_.integer(1), 0};
  c.head = code_.function.code.size();
  ++code_.loops;
  if (limit >= 0) {
    c.leave = code_.emit(Opcode::kIf, {code_.host("more_steps", {c.i, limit}, 1)[0], c.one, 1, 0});
    c.bounded = true;
  }
  return c;
}

void GraphCompiler::next_step(const Counter& c) {
  code_.move(code_.host("next_step", {c.i}, 1)[0], c.i);
  code_.jump_back(c.head);
  if (c.bounded) code_.patch(c.leave, 3);
  --code_.loops;
}

// Body: (step, condition, carried...) -> (condition, carried..., scanned...).
Result<std::vector<Slot>> GraphCompiler::loop(const Node& n, std::string_view field, const VmScope& scope) {
  const Body body = TW_TRY(body_of(n, field, "body"));
  const Graph& g = *body.graph;
  const size_t carried = n.inputs.size() > 2 ? n.inputs.size() - 2 : 0;
  if (g.inputs.size() != carried + 2 || g.outputs.size() < carried + 1)
    return Diagnostic(ErrorCode::kMalformedModel, format("its body has {} inputs and {} outputs for {} carried values",
                                                         g.inputs.size(), g.outputs.size(), carried));
  auto given = [&](size_t i) { return i < n.inputs.size() && !n.inputs[i].empty(); };
  const int64_t limit = given(0) ? TW_TRY(reg_of(n.inputs[0], scope)) : -1, condition = code_.fresh();
  code_.move(given(1) ? TW_TRY(reg_of(n.inputs[1], scope)) : code_.constant(Tensor::scalar<uint8_t>(kBool, 1)),
             condition);
  std::vector<Slot> initial;
  for (size_t k = 0; k < carried; ++k) {
    if (!given(k + 2)) return Diagnostic(ErrorCode::kMalformedModel, "a carried value has no beginning");
    initial.push_back(*scope.find(n.inputs[k + 2]));
    initial.back().reg = TW_TRY(reg_of(n.inputs[k + 2], scope));
  }
  Steps s;
  start(&s, initial, g.outputs.size() - 1 - carried);
  const Counter c = count(limit);
  const size_t stop = code_.emit(Opcode::kIf, {condition, c.one, 1, 0});
  VmScope inner{&scope, {}, scope.depth};
  inner.values[g.inputs[0].name] = held(c.i, Sort::kTensor, false);
  inner.values[g.inputs[1].name] = held(condition, Sort::kTensor, false);
  for (size_t k = 0; k < carried; ++k) {
    Slot slot = s.carried[k];
    if (slot.sort == Sort::kAny || slot.sort == Sort::kOptional) slot.sort = slot_of(g.inputs[k + 2].type).sort;
    inner.values[g.inputs[k + 2].name] = slot;
  }
  auto made = TW_TRY(graph(g, body.content, inner));
  const int64_t go = code_.fresh();
  code_.move(made[0].reg, go);
  next(&s, made, 1);
  code_.move(go, condition);
  next_step(c);
  code_.patch(stop, 3);
  std::vector<Slot> out = s.carried;
  for (size_t k = 0; k < s.lists.size(); ++k)
    out.push_back(held(code_.host(stack_source(g.outputs[1 + carried + k]), {s.lists[k]}, 1)[0], Sort::kTensor, false));
  return out;
}

// Body: (state..., slices...) -> (state..., slices...).
Result<std::vector<Slot>> GraphCompiler::scan(const Node& n, std::string_view field, const VmScope& scope) {
  const Body body = TW_TRY(body_of(n, field, "body"));
  const Graph& g = *body.graph;
  const int64_t scans = int_attribute(n, "num_scan_inputs", 0);
  if (scans < 1 || scans > static_cast<int64_t>(n.inputs.size()) || g.inputs.size() != n.inputs.size())
    return Diagnostic(ErrorCode::kMalformedModel, format("it has {} scan inputs of {} inputs", scans, n.inputs.size()));
  const auto slices = static_cast<size_t>(scans), states = n.inputs.size() - slices;
  if (g.outputs.size() < states) return Diagnostic(ErrorCode::kMalformedModel, "its body does not fit its inputs");
  const size_t collected = g.outputs.size() - states;
  const auto in_axes = TW_TRY(list_of(n, "scan_input_axes", slices)),
             in_back = TW_TRY(list_of(n, "scan_input_directions", slices));
  const auto out_axes = TW_TRY(list_of(n, "scan_output_axes", collected)),
             out_back = TW_TRY(list_of(n, "scan_output_directions", collected));
  std::vector<Slot> initial;
  std::vector<int64_t> sources;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    if (n.inputs[k].empty()) return Diagnostic(ErrorCode::kMalformedModel, format("its input {} is missing", k));
    Slot v = *scope.find(n.inputs[k]);
    v.reg = TW_TRY(reg_of(n.inputs[k], scope));
    if (k < states)
      initial.push_back(v);
    else
      sources.push_back(v.reg);
  }
  Steps s;
  start(&s, initial, collected);
  const Counter c = count(code_.host(format("dimension\naxis={}", in_axes[0]), {sources[0]}, 1)[0]);
  VmScope inner{&scope, {}, scope.depth};
  for (size_t k = 0; k < states; ++k) inner.values[g.inputs[k].name] = s.carried[k];
  for (size_t k = 0; k < slices; ++k)
    inner.values[g.inputs[states + k].name] =
        held(code_.host(format("element\naxis={}\nreverse={}", in_axes[k], in_back[k]), {sources[k], c.i}, 1)[0],
             Sort::kTensor, false);
  auto made = TW_TRY(graph(g, body.content, inner));
  next(&s, made, 0);
  next_step(c);
  std::vector<Slot> out = s.carried;
  for (size_t k = 0; k < collected; ++k)
    out.push_back(held(
        code_.host(format("{}\naxis={}\nreverse={}", stack_source(g.outputs[states + k]), out_axes[k], out_back[k]),
                   {s.lists[k]}, 1)[0],
        Sort::kTensor, false));
  return out;
}

Result<std::vector<Slot>> GraphCompiler::map(const Node& n, std::string_view field, const VmScope& scope) {
  const Body body = TW_TRY(body_of(n, field, "body"));
  const Graph& g = *body.graph;
  if (n.inputs.empty() || g.inputs.size() != n.inputs.size() || g.outputs.size() != n.outputs.size())
    return Diagnostic(ErrorCode::kMalformedModel, "its body does not fit it");
  std::vector<int64_t> sources;
  for (const auto& name : n.inputs) sources.push_back(TW_TRY(reg_of(name, scope)));
  Steps s;
  start(&s, {}, g.outputs.size());
  const Counter c = count(code_.host("SequenceLength", {sources[0]}, 1)[0]);
  VmScope inner{&scope, {}, scope.depth};
  for (size_t k = 0; k < sources.size(); ++k) {
    Slot item = slot_of(g.inputs[k].type);
    item.reg = code_.host("sequence_item", {sources[k], c.i}, 1)[0];
    if (item.sort == Sort::kAny) item.sort = Sort::kTensor;
    inner.values[g.inputs[k].name] = item;
  }
  auto made = TW_TRY(graph(g, body.content, inner));
  next(&s, made, 0);
  next_step(c);
  std::vector<Slot> out;
  for (size_t k = 0; k < s.lists.size(); ++k)
    out.push_back(held(code_.host("list_sequence", {s.lists[k]}, 1)[0], Sort::kSequence, made[k].text));
  return out;
}

// The function's body in the place of the call: its names are its own.
Result<std::vector<Slot>> GraphCompiler::call(const onnx::Function& function, const Node& n, std::string_view field,
                                              const VmScope& scope) {
  VmScope inner{nullptr, {}, scope.depth + 1};
  if (inner.depth > onnx::kMaxGraphDepth)
    return Diagnostic(ErrorCode::kLimitExceeded, "functions call each other too deeply (or without end)");
  if (n.inputs.size() > function.inputs.size())
    return Diagnostic(ErrorCode::kMalformedModel, format("the function '{}' takes {} inputs, the node gives {}",
                                                         function.name, function.inputs.size(), n.inputs.size()));
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].empty()) continue;
    Slot s = *scope.find(n.inputs[i]);
    if (s.known != Known::kConstant || s.part.empty()) s.reg = TW_TRY(reg_of(n.inputs[i], scope));
    s.renamed = s.renamed || n.inputs[i] != function.inputs[i];
    s.node = -1;
    inner.values[function.inputs[i]] = std::move(s);
  }
  Called& called = called_.emplace_back();
  const auto which = static_cast<size_t>(&function - model_.functions.data());
  auto bytes =
      std::make_shared<const std::string>(TW_TRY(onnx::called_function(parts_.functions.at(which), field, head_)));
  called.model = TW_TRY(onnx::read_model(
      onnx::SharedBytes{{reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes}, ""));
  const onnx::ModelParts parts = TW_TRY(onnx::model_parts(*bytes));
  called.bytes = bytes;
  const auto head = std::exchange(head_, parts.head);
  const auto* opsets = std::exchange(opsets_, &called.model.opsets);
  auto out = graph(called.model.graph, parts.graph, inner);
  head_ = head;
  opsets_ = opsets;
  return out;
}

}  // namespace tilewright::driver
