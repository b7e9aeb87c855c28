// SPDX-License-Identifier: Apache-2.0
#include "driver/vm_classify.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "frontend/onnx/graph_order.h"

namespace tilewright::driver {
namespace {

using onnx::Node;

// Loops of a constant number of steps up to this one are unrolled into their region.
constexpr int64_t kMostUnrolled = 16;
// Nodes looked at, those of functions once for each call and each function around it.
constexpr int64_t kMostLookedAt = 4 * onnx::kMaxNodes;

// Operands whose values, not shapes alone, decide what a node compiles to.
struct ValueOperands {
  std::string_view op;
  uint32_t operands;  // a bit for each
  bool host = false;  // the runtime has the operator
};
constexpr uint32_t bits(std::initializer_list<int> list) {
  uint32_t out = 0;
  for (int i : list) out |= 1u << i;
  return out;
}
constexpr ValueOperands kValueOperands[] = {
    {"Reshape", bits({1}), true},
    {"Expand", bits({1}), true},
    {"Tile", bits({1, 2}), true},
    {"ConstantOfShape", bits({0}), true},
    {"Range", bits({0, 1, 2}), true},
    {"Slice", bits({1, 2, 3, 4}), true},
    {"Pad", bits({1, 3}), true},
    {"OneHot", bits({1})},
    {"Resize", bits({1, 2, 3})},
    {"Upsample", bits({1})},
    {"Squeeze", bits({1})},
    {"Unsqueeze", bits({1})},
    {"Split", bits({1})},
    {"CumSum", bits({1})},
    {"CumProd", bits({1})},
    {"Trilu", bits({1})},
    {"DFT", bits({1, 2})},
    {"STFT", bits({1, 3})},
    {"HannWindow", bits({0})},
    {"HammingWindow", bits({0})},
    {"BlackmanWindow", bits({0})},
    {"MelWeightMatrix", bits({0, 1, 2, 3, 4})},
    {"CenterCropPad", bits({1})},
    {"Col2Im", bits({1, 2})},
    {"AffineGrid", bits({1})},
    {"Dropout", bits({1, 2})},
    {"MaxUnpool", bits({2})},
    {"If", bits({0})},
    {"Loop", bits({0, 1})},
    {"ReduceSum", bits({1})},
    {"ReduceMean", bits({1})},
    {"ReduceMax", bits({1})},
    {"ReduceMin", bits({1})},
    {"ReduceProd", bits({1})},
    {"ReduceL1", bits({1})},
    {"ReduceL2", bits({1})},
    {"ReduceLogSum", bits({1})},
    {"ReduceLogSumExp", bits({1})},
    {"ReduceSumSquare", bits({1})},
};
constexpr std::string_view kHostOps[] = {"NonZero",           "Compress",          "Unique",
                                         "NonMaxSuppression", "SequenceAt",        "SequenceInsert",
                                         "SequenceErase",     "SequenceLength",    "ConcatFromSequence",
                                         "SplitToSequence",   "OptionalHasElement"};
constexpr std::string_view kEvaluateOps[] = {"StringConcat",    "StringSplit",  "StringNormalizer", "RegexFullMatch",
                                             "TfIdfVectorizer", "LabelEncoder", "TreeEnsemble"};
constexpr std::string_view kNoText[] = {
    "Equal", "Shape", "Size", "RegexFullMatch", "TfIdfVectorizer", "SequenceLength", "OptionalHasElement"};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}
bool standard(const Node& n) {
  return n.domain.empty() || n.domain == "ai.onnx.ml" || n.domain == "ai.onnx.preview.training";
}

const std::string* operand(const Node& n, size_t i) {
  return i < n.inputs.size() && !n.inputs[i].empty() ? &n.inputs[i] : nullptr;
}

bool makes_text(const Node& n, size_t output, bool of_text) {
  if (n.op_type == "Cast") return int_attribute(n, "to", 0) == 8;
  if (n.op_type == "StringSplit") return output == 0;
  if (n.op_type == "StringConcat" || n.op_type == "StringNormalizer") return true;
  if (n.op_type == "LabelEncoder") {
    const auto* tensor = n.find("values_tensor");
    return n.find("values_strings") || (tensor && !tensor->tensors.empty() && tensor->tensors[0].dtype().is_string());
  }
  return of_text && !contains(kNoText, n.op_type);
}

Sort sort_of_result(const Node& n, const VmScope& scope) {
  const std::string& op = n.op_type;
  if (op == "SequenceConstruct" || op == "SequenceEmpty" || op == "SequenceInsert" || op == "SequenceErase" ||
      op == "SplitToSequence" || op == "SequenceMap")
    return Sort::kSequence;
  if (op == "Optional") return operand(n, 0) ? scope.find(n.inputs[0])->sort : Sort::kOptional;
  if (op == "Identity" && operand(n, 0)) return scope.find(n.inputs[0])->sort;
  if (op == "OptionalGetElement") {
    const Sort sort = operand(n, 0) ? scope.find(n.inputs[0])->sort : Sort::kAny;
    return sort == Sort::kOptional ? Sort::kAny : sort;
  }
  return Sort::kTensor;
}

// Whether every one of the nodes, put into their parent's region, is decided when that is compiled; they are added to
// the scope.
Result<bool> are_settled(const Language& language, const std::vector<Node>& nodes, VmScope& scope) {
  for (size_t i : onnx::execution_order(nodes)) {
    const Node& n = nodes[i];
    const Treatment t = TW_TRY(classify(language, n, scope));
    if (t.kind != Treatment::kRegion && t.kind != Treatment::kConstant) return false;
    for (const auto& name : t.values)
      if (scope.find(name)->known == Known::kNo) return false;
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (!n.outputs[k].empty()) scope.values[n.outputs[k]] = t.outputs[k];
  }
  return true;
}

bool is_plain_tensor(const Slot* s) { return s && s->sort == Sort::kTensor && !s->text; }

Result<bool> is_settled(const Language& language, const onnx::Graph& graph, const VmScope& parent, Known inputs) {
  VmScope scope{&parent, {}, parent.depth};
  for (const auto& t : graph.initializers) {
    Slot s;
    s.known = Known::kConstant;
    s.text = t.data.dtype().is_string();
    s.data = t.data;
    scope.values.emplace(t.name, s);
  }
  for (const auto& i : graph.inputs) {
    Slot s = slot_of(i.type);
    s.known = inputs;
    scope.values.emplace(i.name, s);
  }
  if (!TW_TRY(are_settled(language, graph.nodes, scope))) return false;
  return std::all_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const auto& o) { return is_plain_tensor(scope.find(o.name)); });
}

// What a call that can be put into a region makes; nothing for one that cannot.
Result<std::optional<std::vector<Slot>>> settled_call(const Language& language, const onnx::Function& f, const Node& n,
                                                      const VmScope& scope) {
  std::optional<std::vector<Slot>> out;
  VmScope inner{nullptr, {}, scope.depth + 1};
  if (inner.depth > onnx::kMaxGraphDepth)
    return Diagnostic(ErrorCode::kLimitExceeded, "functions call each other too deeply (or without end)",
                      "node " + n.label());
  for (size_t i = 0; i < f.inputs.size() && i < n.inputs.size(); ++i)
    if (!n.inputs[i].empty()) inner.values[f.inputs[i]] = *scope.find(n.inputs[i]);
  // What is left out of a call is left out inside.
  std::vector<Node> nodes = f.nodes;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    if (i >= n.inputs.size() || n.inputs[i].empty())
      for (Node& node : nodes) std::replace(node.inputs.begin(), node.inputs.end(), f.inputs[i], std::string());
  const Language own{language.functions, f.opsets.empty() ? language.opsets : f.opsets, language.looked_at};
  if (!TW_TRY(are_settled(own, nodes, inner))) return out;
  out.emplace();
  for (const auto& name : f.outputs) {
    const Slot* s = inner.find(name);
    if (!is_plain_tensor(s)) return std::optional<std::vector<Slot>>();
    out->emplace_back();
    out->back().known = s->known;
  }
  return out;
}

Result<bool> control_is_settled(const Language& language, const Node& n, const VmScope& scope) {
  if (n.op_type == "If") {
    if (!operand(n, 0) || scope.find(n.inputs[0])->known == Known::kNo) return false;
    for (const auto& a : n.attributes)
      for (const auto& g : a.graphs)
        if (!TW_TRY(is_settled(language, *g, scope, Known::kNo))) return false;
    return true;
  }
  if (n.op_type != "Loop" || !operand(n, 0)) return false;
  const Slot* steps = scope.find(n.inputs[0]);
  if (steps->known != Known::kConstant || !steps->data.defined() || steps->data.size() != 1 ||
      steps->data.at_int(0) > kMostUnrolled)
    return false;
  if (operand(n, 1) && scope.find(n.inputs[1])->known != Known::kConstant) return false;
  for (const auto& name : n.inputs)
    if (!name.empty() && scope.find(name)->sort != Sort::kTensor) return false;
  const auto* body = n.find("body");
  if (!body || body->graphs.empty()) return false;
  // The condition must not be computed from data.
  const onnx::Graph& g = *body->graphs[0];
  if (g.outputs.empty() || g.inputs.size() < 2) return false;
  bool passed_on = g.outputs[0].name == g.inputs[1].name;
  for (const Node& inner : g.nodes)
    if (!inner.outputs.empty() && inner.outputs[0] == g.outputs[0].name)
      passed_on = inner.op_type == "Constant" ||
                  (inner.op_type == "Identity" && inner.inputs.size() == 1 && inner.inputs[0] == g.inputs[1].name);
  return passed_on ? is_settled(language, g, scope, Known::kNo) : Result<bool>(false);
}

}  // namespace

int64_t int_attribute(const Node& node, std::string_view name, int64_t fallback) {
  const auto* a = node.find(name);
  return a ? a->i : fallback;
}

Slot slot_of(const onnx::ValueType& type) {
  Slot s;
  using T = onnx::ValueType;
  s.sort = type.kind == T::kTensor     ? Sort::kTensor
           : type.kind == T::kSequence ? Sort::kSequence
           : type.kind == T::kOptional ? Sort::kOptional
                                       : Sort::kAny;
  for (const T* t = &type; t; t = t->element.get())
    if (t->elem && t->elem->is_string()) s.text = true;
  return s;
}

std::string host_source(const Node& node) {
  std::string out = node.op_type;
  for (const auto& a : node.attributes)
    if (a.kind == onnx::AttributeKind::kInt) out += format("\n{}={}", a.name, a.i);
  return out;
}

const onnx::Function* Language::find(const Node& node) const {
  auto found = std::find_if(functions.begin(), functions.end(), [&](const auto& f) {
    return f.name == node.op_type && f.domain == node.domain && f.overload == node.overload;
  });
  return found == functions.end() ? nullptr : &*found;
}

int64_t Language::version() const {
  auto found = opsets.find("");
  return found == opsets.end() ? 1 : found->second;
}

Result<Treatment> classify(const Language& language, const Node& n, const VmScope& scope) {
  if (++*language.looked_at > kMostLookedAt)
    return Diagnostic(ErrorCode::kLimitExceeded, "the model's functions make too many nodes", "node " + n.label());
  Treatment t;
  bool of_text = false, all_tensors = true;
  Known known = n.inputs.empty() ? Known::kNo : Known::kConstant;
  for (const auto& name : n.inputs) {
    if (name.empty()) continue;
    const Slot* s = scope.find(name);
    if (!s)
      return Diagnostic(ErrorCode::kMalformedModel, format("the node reads '{}', which nothing makes", name),
                        "node " + n.label());
    of_text |= s->text;
    all_tensors &= s->sort == Sort::kTensor;
    known = std::min(known, s->known);
  }
  const std::string& op = n.op_type;
  auto finish = [&](Treatment::Kind kind) {
    t.kind = kind;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      Slot s;
      s.text = makes_text(n, i, of_text);
      if (kind == Treatment::kRegion)
        s.known = (op == "Shape" || op == "Size") && n.domain.empty() ? Known::kShape : known;
      if (kind == Treatment::kHost || kind == Treatment::kAlias) s.sort = sort_of_result(n, scope);
      t.outputs.push_back(std::move(s));
    }
    return std::move(t);
  };
  if (const onnx::Function* function = language.find(n)) {
    auto settled = TW_TRY(settled_call(language, *function, n, scope));
    if (!settled) return finish(Treatment::kControl);
    t.kind = Treatment::kRegion;
    t.outputs = std::move(*settled);
    t.outputs.resize(n.outputs.size());
    return t;
  }
  if (!standard(n)) return finish(Treatment::kRegion);
  if (op == "Constant") {
    auto made = finish(Treatment::kConstant);
    for (const auto& a : n.attributes) {
      if (made.outputs.empty()) break;
      Slot& s = made.outputs[0];
      s.known = Known::kConstant;
      if (!a.reference.empty()) return made;  // of a function's body: each call has its value
      if (a.kind == onnx::AttributeKind::kTensor || a.kind == onnx::AttributeKind::kSparseTensor)
        s.data = a.tensors.at(0);
      else if (a.kind == onnx::AttributeKind::kInt)
        s.data = Tensor::scalar<int64_t>(kInt64, a.i);
      else if (a.kind == onnx::AttributeKind::kFloat)
        s.data = Tensor::scalar<float>(kFloat32, a.f);
      else if (a.kind == onnx::AttributeKind::kString)
        s.data = Tensor::strings({}, {a.s});
      else if (a.kind == onnx::AttributeKind::kStrings)
        s.data = Tensor::strings({static_cast<int64_t>(a.strings.size())}, a.strings);
      else if (a.kind == onnx::AttributeKind::kInts)
        s.data = Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(a.ints.size())}, a.ints);
      else if (a.kind == onnx::AttributeKind::kFloats)
        s.data = Tensor::from<float>(kFloat32, {static_cast<int64_t>(a.floats.size())}, a.floats);
      s.text = s.data.defined() && s.data.dtype().is_string();
    }
    if (!made.outputs.empty() && !made.outputs[0].data.defined())
      return Diagnostic(ErrorCode::kMalformedModel, "a Constant has no value", "node " + n.label());
    return made;
  }
  if (op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap") {
    if (op == "Scan" && int_attribute(n, "num_scan_inputs", 0) > 0 && !n.inputs.empty() && language.version() < 9)
      return finish(Treatment::kRegion);
    if (!TW_TRY(control_is_settled(language, n, scope))) return finish(Treatment::kControl);
    if (op == "If") t.values = {n.inputs[0]};
    return finish(Treatment::kRegion);
  }
  if (op == "SequenceConstruct" || op == "SequenceEmpty" || op == "Optional") return finish(Treatment::kHost);
  if (op == "OptionalGetElement") return finish(all_tensors && operand(n, 0) ? Treatment::kAlias : Treatment::kHost);
  if (op == "Identity" && (!all_tensors || of_text)) return finish(Treatment::kAlias);
  const int64_t opset = language.version();
  if (contains(kHostOps, op) || (op == "TopK" && opset >= 10)) return finish(Treatment::kHost);
  if (contains(kEvaluateOps, op) || of_text) return finish(Treatment::kEvaluate);
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (makes_text(n, i, of_text)) return finish(Treatment::kEvaluate);
  for (const ValueOperands& v : kValueOperands) {
    if (v.op != op) continue;
    // A function of the runtime where a value is computed, so that nothing is compiled for every new value.
    const auto* mode = n.find("mode");
    const bool host = v.host && !(op == "Reshape" && opset < 5) && !(op == "Slice" && opset < 10) &&
                      !(op == "Tile" && opset < 6) && !(op == "Pad" && (opset < 11 || (mode && mode->s != "constant")));
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!operand(n, i) || !(v.operands >> i & 1)) continue;
      if (host && scope.find(n.inputs[i])->known <= Known::kInput) return finish(Treatment::kHost);
      t.values.push_back(n.inputs[i]);
    }
  }
  return finish(Treatment::kRegion);
}

}  // namespace tilewright::driver
