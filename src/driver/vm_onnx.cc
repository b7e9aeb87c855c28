// SPDX-License-Identifier: Apache-2.0
#include "driver/vm_onnx.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "driver/vm_classify.h"
#include "frontend/onnx/convert.h"
#include "frontend/onnx/graph_order.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::driver {
namespace {

using namespace runtime::vm;
using onnx::Graph;
using onnx::GraphParts;
using onnx::Node;

Diagnostic unsupported(const Node& n, std::string what) {
  return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), "node " + n.label());
}

class GraphCompiler {
 public:
  GraphCompiler(const onnx::Model& model, std::string_view bytes, Program* program)
      : model_(model), bytes_(bytes), program_(*program) {}

  Status run() {
    parts_ = TW_TRY(onnx::model_parts(bytes_));
    program_.shared = std::string(bytes_);
    f_.name = "main";
    VmScope scope;
    for (const TensorSpec& t : program_.inputs) {
      f_.params.push_back(t.name);
      f_.param_devices.push_back(0);
      const auto info = std::find_if(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                                     [&](const auto& i) { return i.name == t.name; });
      Slot s = slot_of(info->type);
      s.reg = fresh();
      // A small integer input is a setting of the model as far as control flow and shapes depend on it.
      if (t.kind == TensorSpec::Kind::kTensor && t.shape.size() <= 1 && (t.dtype.is_integral() || t.dtype.is_bool()))
        s.known = Known::kInput;
      scope.values.emplace(t.name, std::move(s));
    }
    auto outputs = TW_TRY(graph(model_.graph, parts_.graph, scope));
    if (!missing_.empty()) return missing_report();
    if (outputs.empty()) return Diagnostic(ErrorCode::kMalformedModel, "the model has no output");
    for (const auto& o : model_.graph.outputs) program_.outputs.push_back(o.name);
    int64_t result = outputs[0].reg;
    if (outputs.size() > 1) {
      std::vector<int64_t> registers;
      for (const Slot& s : outputs) registers.push_back(s.reg);
      result = adt(0, registers);
    }
    emit(Opcode::kRet, {result});
    program_.executable.functions = {std::move(f_)};
    return verify_executable(program_.executable);
  }

 private:
  // Code.
  int64_t fresh() { return f_.registers++; }
  size_t emit(Opcode op, std::vector<int64_t> fields) {
    f_.code.push_back({op, std::move(fields)});
    return f_.code.size() - 1;
  }
  void patch(size_t at, size_t field) { f_.code[at].fields[field] = static_cast<int64_t>(f_.code.size() - at); }
  int64_t adt(int64_t tag, const std::vector<int64_t>& fields) {
    std::vector<int64_t> all{tag, static_cast<int64_t>(fields.size()), fresh()};
    const int64_t out = all[2];
    all.insert(all.end(), fields.begin(), fields.end());
    emit(Opcode::kAllocADT, std::move(all));
    return out;
  }
  int64_t constant(const Tensor& t) {
    const int64_t out = fresh();
    program_.executable.constants.push_back({t, "", 0});
    emit(Opcode::kLoadConst, {static_cast<int64_t>(program_.executable.constants.size()) - 1, out});
    return out;
  }
  int64_t integer(int64_t v) {
    const int64_t out = fresh();
    emit(Opcode::kLoadConsti, {v, out});
    return out;
  }
  void move(int64_t from, int64_t to) { emit(Opcode::kMove, {from, to}); }
  void jump_back(size_t to) { emit(Opcode::kGoto, {static_cast<int64_t>(to) - static_cast<int64_t>(f_.code.size())}); }
  int64_t add_region(Region region) {
    program_.executable.primitives.push_back(region.format == "host"
                                                 ? "host_" + region.source.substr(0, region.source.find('\n'))
                                                 : format("region_{}", program_.regions.size()));
    program_.regions.push_back(std::move(region));
    return static_cast<int64_t>(program_.regions.size()) - 1;
  }
  std::vector<int64_t> invoke(int64_t region, const std::vector<int64_t>& inputs, size_t outputs, bool refill) {
    std::vector<int64_t> fields{region, static_cast<int64_t>(inputs.size() + outputs), static_cast<int64_t>(outputs)},
        made;
    fields.insert(fields.end(), inputs.begin(), inputs.end());
    for (size_t i = 0; i < outputs; ++i) {
      made.push_back(fresh());
      fields.push_back(made.back());
      // A register that still holds the last step's tensor would have it overwritten.
      if (refill && loops_ > 0) emit(Opcode::kKillRegister, {made.back()});
    }
    emit(Opcode::kInvokePacked, std::move(fields));
    return made;
  }
  // Operands that are left out are registers that were never written.
  std::vector<int64_t> host(std::string source, const std::vector<int64_t>& inputs, size_t outputs) {
    Region region{"host", {}, std::move(source), {}};
    for (size_t i = 0; i < inputs.size(); ++i) region.inputs.push_back(format("a{}", i));
    return invoke(add_region(std::move(region)), inputs, outputs, false);
  }

  std::pair<uint64_t, uint64_t> piece(std::string_view part) const {
    return {static_cast<uint64_t>(part.data() - bytes_.data()), part.size()};
  }
  std::pair<uint64_t, uint64_t> literal(const std::string& text) {
    program_.shared += text;
    return {program_.shared.size() - text.size(), text.size()};
  }

  // Nodes of a graph as a model of their own: its arguments are what they read and nobody among them makes.
  Result<std::vector<int64_t>> region(const char* kind, const std::vector<Node>& nodes, const GraphParts& parts,
                                      const std::vector<size_t>& which, const VmScope& scope,
                                      const std::vector<std::string>& outputs) {
    Region region{kind, {}, "", {}};
    std::set<std::string> made, seen;
    std::vector<int64_t> arguments;
    std::vector<std::string_view> fields;
    for (size_t i : which)
      for (const auto& name : nodes[i].outputs) made.insert(name);
    auto need = [&](const std::string& name, const Node* reader) -> Status {
      if (made.count(name) || !seen.insert(name).second) return Ok{};
      const Slot* s = scope.find(name);
      if (!s) return Ok{};  // a subgraph's own
      if (s->known == Known::kConstant && !s->part.empty()) {
        fields.push_back(s->part);
        return Ok{};
      }
      if (s->sort == Sort::kSequence || s->sort == Sort::kOptional)
        return unsupported(*reader, format("'{}' is not a tensor here", name));
      region.inputs.push_back(name);
      arguments.push_back(TW_TRY(reg_of(name, scope)));
      return Ok{};
    };
    for (size_t i : which) {
      std::vector<std::string> reads;
      onnx::collect_reads(nodes[i], &reads);
      for (const auto& name : reads) TW_TRY_STATUS(need(name, &nodes[i]));
    }
    if (which.empty())
      for (const auto& name : outputs) TW_TRY_STATUS(need(name, nullptr));
    for (size_t i : which) fields.push_back(parts.nodes[i]);
    uint64_t rest = 0;
    for (auto f : fields) rest += f.size();
    for (auto f : parts_.head) region.pieces.push_back(piece(f));
    region.pieces.push_back(literal(onnx::graph_head(region.inputs, outputs, rest)));
    for (auto f : fields) {
      auto p = piece(f);
      // Neighbours in the file are one piece.
      if (auto& last = region.pieces.back(); last.first + last.second == p.first && last.first < bytes_.size())
        last.second += p.second;
      else
        region.pieces.push_back(p);
    }
    return invoke(add_region(std::move(region)), arguments, outputs.size(), true);
  }

  Result<int64_t> reg_of(const std::string& name, const VmScope& scope) {
    const Slot* s = scope.find(name);
    if (!s) return Diagnostic(ErrorCode::kMalformedModel, format("nothing makes '{}'", name));
    if (s->reg >= 0) return s->reg;
    if (s->known == Known::kConstant && s->data.defined()) {
      if (!s->text) return constant(s->data);
      Region text{"evaluate", {}, "", {}};
      for (auto f : parts_.head) text.pieces.push_back(piece(f));
      text.pieces.push_back(literal(onnx::graph_head({}, {name}, s->part.size())));
      text.pieces.push_back(piece(s->part));
      return invoke(add_region(std::move(text)), {}, 1, true)[0];
    }
    return Diagnostic(ErrorCode::kInternal, format("'{}' has no register", name));
  }

  void check_supported(const Node& n) {
    if (std::any_of(model_.functions.begin(), model_.functions.end(),
                    [&](const auto& f) { return f.name == n.op_type && f.domain == n.domain; }))
      return;
    auto it = model_.opsets.find(n.domain);
    if (!onnx::find_converter(n.domain, n.op_type, it != model_.opsets.end() ? it->second : 1))
      missing_[(n.domain.empty() ? "" : n.domain + ".") + n.op_type].push_back(n.label());
  }
  Diagnostic missing_report() const {
    size_t count = 0;
    std::string text;
    for (const auto& [op, places] : missing_) {
      count += places.size();
      text += format("\n  {} x{}: {}{}", op, places.size(), places[0], places.size() > 1 ? ", ..." : "");
    }
    return Diagnostic(ErrorCode::kUnsupportedOp,
                      format("{} of the model's nodes cannot be compiled yet{}", count, text), "",
                      "export the model with these operators decomposed, or take them out; `tilewright ops --onnx` "
                      "lists what is supported");
  }

  struct Plan {
    Treatment treatment;
    int level = 0;
    bool live = false;
  };

  // Code for a graph whose inputs are in the scope; returns its outputs, all in registers.
  Result<std::vector<Slot>> graph(const Graph& g, std::string_view content, VmScope& scope) {
    const GraphParts parts = TW_TRY(onnx::graph_parts(content));
    if (parts.nodes.size() != g.nodes.size() || parts.initializers.size() != g.initializers.size())
      return Diagnostic(ErrorCode::kInternal, "a graph's pieces are not its nodes");
    for (size_t i = 0; i < g.initializers.size(); ++i) {
      Slot s;
      s.known = Known::kConstant;
      s.data = g.initializers[i].data;
      s.text = s.data.dtype().is_string();
      s.part = parts.initializers[i];
      scope.values.insert_or_assign(g.initializers[i].name, std::move(s));
    }
    const std::vector<size_t> order = onnx::execution_order(g.nodes);
    std::vector<Plan> plans(g.nodes.size());
    mark_live(g, order, &plans);
    int deepest = 0;
    for (size_t i : order) {
      if (!plans[i].live) continue;
      const Node& n = g.nodes[i];
      Plan& p = plans[i];
      p.treatment = TW_TRY(classify(model_, n, scope));
      const auto kind = p.treatment.kind;
      if (kind == Treatment::kRegion || kind == Treatment::kEvaluate) check_supported(n);
      std::vector<std::string> reads;
      onnx::collect_reads(n, &reads);
      for (const auto& name : reads) {
        auto it = scope.values.find(name);
        if (it == scope.values.end() || it->second.node < 0) continue;
        const Plan& maker = plans[static_cast<size_t>(it->second.node)];
        int level = maker.level;
        if (kind == Treatment::kRegion && maker.treatment.kind != Treatment::kRegion)
          ++level;
        else if (kind == Treatment::kRegion && it->second.known == Known::kNo &&
                 std::find(p.treatment.values.begin(), p.treatment.values.end(), name) != p.treatment.values.end())
          ++level;
        p.level = std::max(p.level, level);
      }
      deepest = std::max(deepest, p.level);
      for (size_t k = 0; k < n.outputs.size(); ++k) {
        if (n.outputs[k].empty()) continue;
        Slot s = p.treatment.outputs[k];
        if (kind == Treatment::kConstant) {
          s.part = parts.nodes[i];
        } else {
          s.node = static_cast<std::ptrdiff_t>(i);
        }
        scope.values.insert_or_assign(n.outputs[k], std::move(s));
      }
    }
    for (int level = 0; level <= deepest; ++level) {
      TW_TRY_STATUS(region_of_level(g, parts, order, plans, level, scope));
      for (size_t i : order)
        if (plans[i].live && plans[i].level == level && plans[i].treatment.kind != Treatment::kRegion &&
            plans[i].treatment.kind != Treatment::kConstant)
          if (auto status = single(g, parts, i, plans[i].treatment, scope); !status.ok()) {
            Diagnostic d = std::move(status).error();
            if (d.where.empty()) d.where = "node " + g.nodes[i].label();
            return d;
          }
    }
    std::vector<Slot> out;
    for (const auto& o : g.outputs) {
      const Slot* found = scope.find(o.name);
      if (!found)
        return Diagnostic(ErrorCode::kMalformedModel, format("nothing makes the graph's output '{}'", o.name));
      out.push_back(held(TW_TRY(reg_of(o.name, scope)), found->sort, found->text));
    }
    return out;
  }

  static void mark_live(const Graph& g, const std::vector<size_t>& order, std::vector<Plan>* plans) {
    std::set<std::string> wanted;
    for (const auto& o : g.outputs) wanted.insert(o.name);
    for (size_t k = order.size(); k-- > 0;) {
      const Node& n = g.nodes[order[k]];
      if (std::none_of(n.outputs.begin(), n.outputs.end(), [&](const auto& name) { return wanted.count(name) != 0; }))
        continue;
      (*plans)[order[k]].live = true;
      std::vector<std::string> reads;
      onnx::collect_reads(n, &reads);
      wanted.insert(reads.begin(), reads.end());
    }
  }

  Status region_of_level(const Graph& g, const GraphParts& parts, const std::vector<size_t>& order,
                         const std::vector<Plan>& plans, int level, VmScope& scope) {
    auto inside = [&](size_t i) {
      return plans[i].live && plans[i].treatment.kind == Treatment::kRegion && plans[i].level == level;
    };
    std::vector<size_t> which;
    std::set<std::string> made, kept;
    for (size_t i : order)
      if (inside(i)) {
        which.push_back(i);
        for (const auto& name : g.nodes[i].outputs)
          if (!name.empty()) made.insert(name);
      }
    if (which.empty()) return Ok{};
    for (size_t i : order) {
      if (!plans[i].live || inside(i)) continue;
      std::vector<std::string> reads;
      onnx::collect_reads(g.nodes[i], &reads);
      for (const auto& name : reads)
        if (made.count(name)) kept.insert(name);
    }
    for (const auto& o : g.outputs)
      if (made.count(o.name)) kept.insert(o.name);
    std::vector<std::string> outputs;  // in the order they are made
    for (size_t i : which)
      for (const auto& name : g.nodes[i].outputs)
        if (kept.count(name)) outputs.push_back(name);
    if (outputs.empty()) return Ok{};
    const auto registers = TW_TRY(region("onnx", g.nodes, parts, which, scope, outputs));
    for (size_t k = 0; k < outputs.size(); ++k) scope.values[outputs[k]].reg = registers[k];
    return Ok{};
  }

  // A node that is no part of a region.
  Status single(const Graph& g, const GraphParts& parts, size_t i, const Treatment& t, VmScope& scope) {
    const Node& n = g.nodes[i];
    std::vector<Slot> made;
    switch (t.kind) {
      case Treatment::kAlias: {
        if (n.inputs.empty() || n.inputs[0].empty())
          return Diagnostic(ErrorCode::kMalformedModel, "its input is missing");
        Slot s = *scope.find(n.inputs[0]);
        s.reg = TW_TRY(reg_of(n.inputs[0], scope));
        made = {s};
        break;
      }
      case Treatment::kEvaluate: {
        std::vector<std::string> outputs;
        for (const auto& name : n.outputs)
          if (!name.empty()) outputs.push_back(name);
        const auto registers = TW_TRY(region("evaluate", g.nodes, parts, {i}, scope, outputs));
        for (size_t k = 0; k < outputs.size(); ++k) scope.values[outputs[k]].reg = registers[k];
        return Ok{};
      }
      case Treatment::kHost:
        made = TW_TRY(host_node(n, t, scope));
        break;
      case Treatment::kControl:
        made = TW_TRY(control(n, parts.nodes[i], scope));
        break;
      case Treatment::kRegion:
      case Treatment::kConstant:
        return Ok{};
    }
    if (made.size() < n.outputs.size())
      return Diagnostic(ErrorCode::kMalformedModel,
                        format("it has {} outputs, its operator makes {}", n.outputs.size(), made.size()));
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      Slot& s = scope.values[n.outputs[k]];
      s.reg = made[k].reg;
      s.sort = made[k].sort;
      s.text = made[k].text;
    }
    return Ok{};
  }

  Result<std::vector<Slot>> host_node(const Node& n, const Treatment& t, const VmScope& scope) {
    std::vector<int64_t> inputs;
    for (const auto& name : n.inputs) inputs.push_back(name.empty() ? fresh() : TW_TRY(reg_of(name, scope)));
    std::vector<Slot> out = t.outputs;
    if (n.op_type == "SequenceConstruct" || n.op_type == "SequenceEmpty") {
      if (!out.empty()) out[0].reg = adt(0, inputs);
      return out;
    }
    if (n.op_type == "Optional") {
      if (!out.empty()) out[0].reg = inputs.empty() ? adt(kNoneTag, {}) : inputs[0];
      return out;
    }
    if (n.op_type == "ConstantOfShape") {
      const auto* value = n.find("value");
      inputs.push_back(
          constant(value && !value->tensors.empty() ? value->tensors[0] : Tensor::scalar<float>(kFloat32, 0)));
    }
    const auto registers = host(host_source(n), inputs, n.outputs.size());
    for (size_t k = 0; k < out.size(); ++k) out[k].reg = registers[k];
    return out;
  }

  struct Body {
    const Graph* graph = nullptr;
    std::string_view content;
  };
  Result<Body> body_of(const Node& n, std::string_view field, const char* name) {
    const auto* a = n.find(name);
    if (!a || a->graphs.size() != 1)
      return Diagnostic(ErrorCode::kMalformedModel, format("its attribute '{}' is missing", name));
    const std::string_view content = TW_TRY(onnx::subgraph_part(field, name));
    return Body{a->graphs[0].get(), content};
  }
  static Slot held(int64_t reg, Sort sort, bool text) { return {Known::kNo, sort, text, reg, -1, {}, {}}; }

  Result<std::vector<Slot>> control(const Node& n, std::string_view field, const VmScope& scope) {
    if (n.op_type == "If") return branch(n, field, scope);
    if (n.op_type == "Loop") return loop(n, field, scope);
    if (n.op_type == "Scan") return scan(n, field, scope);
    return map(n, field, scope);
  }

  Result<std::vector<Slot>> branch(const Node& n, std::string_view field, const VmScope& scope) {
    if (n.inputs.size() != 1)
      return Diagnostic(ErrorCode::kMalformedModel, format("it has {} inputs, not one condition", n.inputs.size()));
    const int64_t condition = TW_TRY(reg_of(n.inputs[0], scope)), one = integer(1);
    const size_t at = emit(Opcode::kIf, {condition, one, 1, 0});
    std::vector<Slot> out;
    size_t leave = 0;
    for (const char* name : {"then_branch", "else_branch"}) {
      const bool first = name[0] == 't';
      const Body body = TW_TRY(body_of(n, field, name));
      VmScope inner{&scope, {}};
      auto made = TW_TRY(graph(*body.graph, body.content, inner));
      if (made.size() < n.outputs.size())
        return Diagnostic(ErrorCode::kMalformedModel, "its branch has fewer outputs than it");
      for (size_t k = 0; k < made.size(); ++k) {
        if (first)
          out.push_back(held(fresh(), made[k].sort, made[k].text));
        else if (k == out.size())
          break;
        if (out[k].sort != made[k].sort) out[k].sort = Sort::kAny;
        out[k].text |= made[k].text;
        move(made[k].reg, out[k].reg);
      }
      if (first) {
        leave = emit(Opcode::kGoto, {0});
        patch(at, 3);
      }
    }
    patch(leave, 0);
    return out;
  }

  // Registers that carry values from step to step, and the lists that collect.
  struct Steps {
    std::vector<Slot> carried;
    std::vector<int64_t> lists;
  };
  void start(Steps* s, const std::vector<Slot>& initial, size_t lists) {
    for (const Slot& v : initial) {
      s->carried.push_back(held(fresh(), v.sort, v.text));
      move(v.reg, s->carried.back().reg);
    }
    for (size_t i = 0; i < lists; ++i) s->lists.push_back(host("ref_create", {}, 1)[0]);
  }
  // The values of one step, made from what the registers still hold, before any of them changes.
  Status next(Steps* s, const std::vector<Slot>& made, size_t first) {
    std::vector<int64_t> kept;
    for (size_t i = 0; i < s->carried.size(); ++i) {
      kept.push_back(fresh());
      move(made[first + i].reg, kept.back());
    }
    for (size_t i = 0; i < s->lists.size(); ++i)
      host("list_append", {s->lists[i], made[first + s->carried.size() + i].reg}, 0);
    for (size_t i = 0; i < kept.size(); ++i) {
      move(kept[i], s->carried[i].reg);
      if (s->carried[i].sort != made[first + i].sort) s->carried[i].sort = Sort::kAny;
      s->carried[i].text |= made[first + i].text;
    }
    return Ok{};
  }
  // Counts a register on; the code of one step lies between this and next_step().
  struct Counter {
    int64_t i, one;
    size_t head, leave = 0;
    bool bounded = false;
  };
  Counter count(int64_t limit) {
    Counter c{integer(0), integer(1), 0};
    c.head = f_.code.size();
    ++loops_;
    if (limit >= 0) {
      c.leave = emit(Opcode::kIf, {host("more_steps", {c.i, limit}, 1)[0], c.one, 1, 0});
      c.bounded = true;
    }
    return c;
  }
  void next_step(const Counter& c) {
    move(host("next_step", {c.i}, 1)[0], c.i);
    jump_back(c.head);
    if (c.bounded) patch(c.leave, 3);
    --loops_;
  }
  // An empty result's type, for a loop without steps.
  static std::string stack_source(const onnx::ValueInfo& info) {
    std::string out = "list_stack";
    const auto& t = info.type;
    if (!t.elem || !t.shape || t.elem->is_string()) return out;
    out += format("\ndtype={}\nshape=0", t.elem->str());
    for (const auto& d : *t.shape) out += format("x{}", d.value.value_or(0));
    return out;
  }

  // Body: (step, condition, carried...) -> (condition, carried..., scanned...).
  Result<std::vector<Slot>> loop(const Node& n, std::string_view field, const VmScope& scope) {
    const Body body = TW_TRY(body_of(n, field, "body"));
    const Graph& g = *body.graph;
    const size_t carried = n.inputs.size() > 2 ? n.inputs.size() - 2 : 0;
    if (g.inputs.size() != carried + 2 || g.outputs.size() < carried + 1)
      return Diagnostic(ErrorCode::kMalformedModel,
                        format("its body has {} inputs and {} outputs for {} carried values", g.inputs.size(),
                               g.outputs.size(), carried));
    auto given = [&](size_t i) { return i < n.inputs.size() && !n.inputs[i].empty(); };
    const int64_t limit = given(0) ? TW_TRY(reg_of(n.inputs[0], scope)) : -1, condition = fresh();
    move(given(1) ? TW_TRY(reg_of(n.inputs[1], scope)) : constant(Tensor::scalar<uint8_t>(kBool, 1)), condition);
    std::vector<Slot> initial;
    for (size_t k = 0; k < carried; ++k) {
      if (!given(k + 2)) return Diagnostic(ErrorCode::kMalformedModel, "a carried value has no beginning");
      initial.push_back(*scope.find(n.inputs[k + 2]));
      initial.back().reg = TW_TRY(reg_of(n.inputs[k + 2], scope));
    }
    Steps s;
    start(&s, initial, g.outputs.size() - 1 - carried);
    const Counter c = count(limit);
    const size_t stop = emit(Opcode::kIf, {condition, c.one, 1, 0});
    VmScope inner{&scope, {}};
    inner.values[g.inputs[0].name] = held(c.i, Sort::kTensor, false);
    inner.values[g.inputs[1].name] = held(condition, Sort::kTensor, false);
    for (size_t k = 0; k < carried; ++k) {
      Slot slot = s.carried[k];
      if (slot.sort == Sort::kAny || slot.sort == Sort::kOptional) slot.sort = slot_of(g.inputs[k + 2].type).sort;
      inner.values[g.inputs[k + 2].name] = slot;
    }
    auto made = TW_TRY(graph(g, body.content, inner));
    const int64_t go = fresh();
    move(made[0].reg, go);
    TW_TRY_STATUS(next(&s, made, 1));
    move(go, condition);
    next_step(c);
    patch(stop, 3);
    std::vector<Slot> out = s.carried;
    for (size_t k = 0; k < s.lists.size(); ++k)
      out.push_back(held(host(stack_source(g.outputs[1 + carried + k]), {s.lists[k]}, 1)[0], Sort::kTensor, false));
    return out;
  }

  static Result<std::vector<int64_t>> list_of(const Node& n, const char* name, size_t count) {
    const auto* a = n.find(name);
    std::vector<int64_t> out = a ? a->ints : std::vector<int64_t>(count, 0);
    if (out.size() != count)
      return Diagnostic(ErrorCode::kMalformedModel,
                        format("its {} has {} values where {} are needed", name, out.size(), count));
    return out;
  }

  // Body: (state..., slices...) -> (state..., slices...).
  Result<std::vector<Slot>> scan(const Node& n, std::string_view field, const VmScope& scope) {
    const Body body = TW_TRY(body_of(n, field, "body"));
    const Graph& g = *body.graph;
    const int64_t scans = int_attribute(n, "num_scan_inputs", 0);
    if (scans < 1 || scans > static_cast<int64_t>(n.inputs.size()) || g.inputs.size() != n.inputs.size())
      return Diagnostic(ErrorCode::kMalformedModel,
                        format("it has {} scan inputs of {} inputs", scans, n.inputs.size()));
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
    const Counter c = count(host(format("dimension\naxis={}", in_axes[0]), {sources[0]}, 1)[0]);
    VmScope inner{&scope, {}};
    for (size_t k = 0; k < states; ++k) inner.values[g.inputs[k].name] = s.carried[k];
    for (size_t k = 0; k < slices; ++k)
      inner.values[g.inputs[states + k].name] =
          held(host(format("element\naxis={}\nreverse={}", in_axes[k], in_back[k]), {sources[k], c.i}, 1)[0],
               Sort::kTensor, false);
    auto made = TW_TRY(graph(g, body.content, inner));
    TW_TRY_STATUS(next(&s, made, 0));
    next_step(c);
    std::vector<Slot> out = s.carried;
    for (size_t k = 0; k < collected; ++k)
      out.push_back(
          held(host(format("{}\naxis={}\nreverse={}", stack_source(g.outputs[states + k]), out_axes[k], out_back[k]),
                    {s.lists[k]}, 1)[0],
               Sort::kTensor, false));
    return out;
  }

  Result<std::vector<Slot>> map(const Node& n, std::string_view field, const VmScope& scope) {
    const Body body = TW_TRY(body_of(n, field, "body"));
    const Graph& g = *body.graph;
    if (n.inputs.empty() || g.inputs.size() != n.inputs.size() || g.outputs.size() != n.outputs.size())
      return Diagnostic(ErrorCode::kMalformedModel, "its body does not fit it");
    std::vector<int64_t> sources;
    for (const auto& name : n.inputs) sources.push_back(TW_TRY(reg_of(name, scope)));
    Steps s;
    start(&s, {}, g.outputs.size());
    const Counter c = count(host("SequenceLength", {sources[0]}, 1)[0]);
    VmScope inner{&scope, {}};
    for (size_t k = 0; k < sources.size(); ++k) {
      Slot item = slot_of(g.inputs[k].type);
      item.reg = host("sequence_item", {sources[k], c.i}, 1)[0];
      if (item.sort == Sort::kAny) item.sort = Sort::kTensor;
      inner.values[g.inputs[k].name] = item;
    }
    auto made = TW_TRY(graph(g, body.content, inner));
    TW_TRY_STATUS(next(&s, made, 0));
    next_step(c);
    std::vector<Slot> out;
    for (size_t k = 0; k < s.lists.size(); ++k)
      out.push_back(held(host("list_sequence", {s.lists[k]}, 1)[0], Sort::kSequence, made[k].text));
    return out;
  }

  const onnx::Model& model_;
  std::string_view bytes_;
  Program& program_;
  onnx::ModelParts parts_;
  Function f_;
  std::map<std::string, std::vector<std::string>> missing_;
  int loops_ = 0;
};

}  // namespace

Status compile_graph_to_vm(const onnx::Model& model, std::string_view bytes, Program* program) try {
  return GraphCompiler(model, bytes, program).run();
} catch (onnx::ConversionFailure& failure) {
  return std::move(failure.diagnostic);
}

}  // namespace tilewright::driver
