// SPDX-License-Identifier: Apache-2.0
#include "driver/vm_onnx.h"

#include <algorithm>
#include <list>
#include <set>

#include "base/format.h"
#include "driver/vm_graph.h"
#include "frontend/onnx/convert.h"
#include "frontend/onnx/graph_order.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::driver {

using namespace runtime::vm;
using onnx::Graph;
using onnx::GraphParts;
using onnx::Node;

namespace {

Diagnostic unsupported(const Node& n, std::string what) {
  return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), "node " + n.label());
}

}  // namespace

Status GraphCompiler::run() {
  parts_ = TW_TRY(onnx::model_parts(bytes_));
  head_ = parts_.head;
  program_.shared = std::string(bytes_);
  code_.function.name = "main";
  VmScope scope;
  for (const TensorSpec& t : program_.inputs) {
    code_.function.params.push_back(t.name);
    code_.function.param_devices.push_back(0);
    const auto info = std::find_if(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                                   [&](const auto& i) { return i.name == t.name; });
    Slot s = slot_of(info->type);
    s.reg = code_.fresh();
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
    result = code_.adt(0, registers);
  }
  code_.emit(Opcode::kRet, {result});
  program_.executable.functions = {std::move(code_.function)};
  return verify_executable(program_.executable);
}

// Nodes of a graph as a model of their own: its arguments are what they read and nobody among them makes.
Result<std::vector<int64_t>> GraphCompiler::region(const char* kind, const std::vector<Node>& nodes,
                                                   const GraphParts& parts, const std::vector<size_t>& which,
                                                   const VmScope& scope, const std::vector<std::string>& outputs) {
  std::set<std::string> made, seen;
  std::vector<std::string> inputs;
  std::vector<int64_t> arguments;
  std::vector<std::string_view> fields;
  std::list<std::string> texts;
  for (size_t i : which)
    for (const auto& name : nodes[i].outputs) made.insert(name);
  auto need = [&](const std::string& name, const Node& reader) -> Status {
    if (made.count(name) || !seen.insert(name).second) return Ok{};
    const Slot* s = scope.find(name);
    if (!s) return Ok{};  // a subgraph's own
    if (s->known == Known::kConstant && !s->part.empty() && TW_TRY(add_constant(name, *s, &fields, &texts)))
      return Ok{};
    if (s->sort == Sort::kSequence || s->sort == Sort::kOptional)
      return unsupported(reader, format("'{}' is not a tensor here", name));
    inputs.push_back(name);
    arguments.push_back(TW_TRY(reg_of(name, scope)));
    return Ok{};
  };
  for (size_t i : which) {
    std::vector<std::string> reads;
    onnx::collect_reads(nodes[i], &reads);
    for (const auto& name : reads) TW_TRY_STATUS(need(name, nodes[i]));
  }
  for (size_t i : which) fields.push_back(parts.nodes[i]);
  return code_.region(kind, inputs, arguments, with_head(inputs, outputs, fields, &texts), outputs.size());
}

// The fields of a constant under the name that it has in the scope; false where it has to be an argument.
Result<bool> GraphCompiler::add_constant(const std::string& name, const Slot& slot,
                                         std::vector<std::string_view>* fields, std::list<std::string>* texts) {
  if (!slot.renamed) {
    fields->push_back(slot.part);
    return true;
  }
  const auto renamed = TW_TRY(onnx::renamed_constant(slot.part, name, &texts->emplace_back()));
  fields->insert(fields->end(), renamed.begin(), renamed.end());
  return !renamed.empty();
}

// A model's fields: those of a graph after its beginning.
std::vector<std::string_view> GraphCompiler::with_head(const std::vector<std::string>& inputs,
                                                       const std::vector<std::string>& outputs,
                                                       const std::vector<std::string_view>& fields,
                                                       std::list<std::string>* texts) const {
  uint64_t rest = 0;
  for (auto f : fields) rest += f.size();
  std::vector<std::string_view> out = head_;
  out.insert(out.end(), parts_.functions.begin(), parts_.functions.end());
  out.push_back(texts->emplace_back(onnx::graph_head(inputs, outputs, rest)));
  out.insert(out.end(), fields.begin(), fields.end());
  return out;
}

Result<int64_t> GraphCompiler::reg_of(const std::string& name, const VmScope& scope) {
  const Slot* s = scope.find(name);
  if (!s) return Diagnostic(ErrorCode::kMalformedModel, format("nothing makes '{}'", name));
  if (s->reg >= 0) return s->reg;
  if (s->known == Known::kConstant && s->data.defined()) {
    if (!s->text) return code_.constant(s->data);
    std::vector<std::string_view> fields;
    std::list<std::string> texts;
    if (TW_TRY(add_constant(name, *s, &fields, &texts)))
      return code_.region("evaluate", {}, {}, with_head({}, {name}, fields, &texts), 1)[0];
  }
  return Diagnostic(ErrorCode::kInternal, format("'{}' has no register", name));
}

void GraphCompiler::check_supported(const Node& n) {
  const Language language = this->language();
  if (language.find(n)) return;
  auto it = language.opsets.find(n.domain);
  if (!onnx::find_converter(n.domain, n.op_type, it != language.opsets.end() ? it->second : 1))
    missing_[(n.domain.empty() ? "" : n.domain + ".") + n.op_type].push_back(n.label());
}

Diagnostic GraphCompiler::missing_report() const {
  size_t count = 0;
  std::string text;
  for (const auto& [op, places] : missing_) {
    count += places.size();
    text += format("\n  {} x{}: {}{}", op, places.size(), places[0], places.size() > 1 ? ", ..." : "");
  }
  return Diagnostic(ErrorCode::kUnsupportedOp, format("{} of the model's nodes cannot be compiled yet{}", count, text),
                    "",
                    "export the model with these operators decomposed, or take them out; `tilewright ops --onnx` "
                    "lists what is supported");
}

// Code for a graph whose inputs are in the scope; returns its outputs, all in registers.
Result<std::vector<Slot>> GraphCompiler::graph(const Graph& g, std::string_view content, VmScope& scope) {
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
    p.treatment = TW_TRY(classify(language(), n, scope));
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
    if (!found) return Diagnostic(ErrorCode::kMalformedModel, format("nothing makes the graph's output '{}'", o.name));
    out.push_back(held(TW_TRY(reg_of(o.name, scope)), found->sort, found->text));
  }
  return out;
}

void GraphCompiler::mark_live(const Graph& g, const std::vector<size_t>& order, std::vector<Plan>* plans) {
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

Status GraphCompiler::region_of_level(const Graph& g, const GraphParts& parts, const std::vector<size_t>& order,
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
Status GraphCompiler::single(const Graph& g, const GraphParts& parts, size_t i, const Treatment& t, VmScope& scope) {
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

Result<std::vector<Slot>> GraphCompiler::host_node(const Node& n, const Treatment& t, const VmScope& scope) {
  std::vector<int64_t> inputs;
  for (const auto& name : n.inputs) inputs.push_back(name.empty() ? code_.fresh() : TW_TRY(reg_of(name, scope)));
  std::vector<Slot> out = t.outputs;
  if (n.op_type == "SequenceConstruct" || n.op_type == "SequenceEmpty") {
    if (!out.empty()) out[0].reg = code_.adt(0, inputs);
    return out;
  }
  if (n.op_type == "Optional") {
    if (!out.empty()) out[0].reg = inputs.empty() ? code_.adt(kNoneTag, {}) : inputs[0];
    return out;
  }
  if (n.op_type == "ConstantOfShape") {
    const auto* value = n.find("value");
    inputs.push_back(
        code_.constant(value && !value->tensors.empty() ? value->tensors[0] : Tensor::scalar<float>(kFloat32, 0)));
  }
  const auto registers = code_.host(host_source(n), inputs, n.outputs.size());
  for (size_t k = 0; k < out.size(); ++k) out[k].reg = registers[k];
  return out;
}

Status compile_graph_to_vm(const onnx::Model& model, std::string_view bytes, Program* program) try {
  return GraphCompiler(model, bytes, program).run();
} catch (onnx::ConversionFailure& failure) {
  return std::move(failure.diagnostic);
}

}  // namespace tilewright::driver
