// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/convert.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/format.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {

namespace {
std::string span_text(const Scope& scope, const Node& node) {
  return scope.prefix + (!node.name.empty() ? node.name : !node.outputs.empty() ? node.outputs[0] : node.op_type);
}
}  // namespace

NodeContext::NodeContext(Importer& importer, Scope& scope, const Node& node, int64_t opset, std::vector<Value> inputs)
    : ExpressionBuilder(relay::make_span(span_text(scope, node))),
      importer_(importer),
      scope_(scope),
      node_(node),
      opset_(opset),
      inputs_(std::move(inputs)) {}

std::vector<std::string> NodeContext::inputs_of(const Expr& e) const { return importer_.inputs_of(e); }

const Value& NodeContext::value(size_t i) const {
  if (!has(i)) fail(format("its input {} is missing", i));
  return inputs_[i];
}

Expr NodeContext::input(size_t i) const {
  const Value& v = value(i);
  if (!v.expr) fail_type(format("its input {} is a sequence where a tensor is needed", i));
  return v.expr;
}

std::vector<Expr> NodeContext::all_inputs() const {
  std::vector<Expr> out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(input(i));
  return out;
}

void NodeContext::release_pages(const Tensor& weight) { importer_.release_pages(weight); }

std::vector<int64_t> NodeContext::ints(size_t i, const char* what) const {
  Tensor t = constant(i, what);
  if (!t.dtype().is_integral() || t.rank() > 1)
    fail_type(format("its {} must be a vector of integers, not {} of rank {}", what, t.dtype().str(), t.rank()));
  std::vector<int64_t> out;
  for (int64_t k = 0; k < t.size(); ++k) out.push_back(t.at_int(k));
  return out;
}

int64_t NodeContext::int_scalar(size_t i, const char* what) const {
  Tensor t = constant(i, what);
  if (!t.dtype().is_integral() || t.size() != 1) fail_type(format("its {} must be one integer", what));
  return t.at_int(0);
}

const Attribute* NodeContext::attr(std::string_view name, AttributeKind kind) const {
  const Attribute* a = node_.find(name);
  if (a && !a->reference.empty()) {
    auto it = scope_.function_attributes.find(a->reference);
    a = it == scope_.function_attributes.end() ? nullptr : it->second;
  }
  if (!a || kind == AttributeKind::kUndefined || a->kind == kind) return a;
  // In a file without attribute types, an empty list gives no hint of its kind.
  if (a->kind == AttributeKind::kUndefined) return a;
  fail(format("its attribute '{}' is of kind {}, not {}", name, attribute_kind_name(a->kind),
              attribute_kind_name(kind)));
}

int64_t NodeContext::int_attr(std::string_view name) const {
  const Attribute* a = attr(name, AttributeKind::kInt);
  if (!a) fail(format("its attribute '{}' is missing", name));
  return a->i;
}
int64_t NodeContext::int_attr(std::string_view name, int64_t fallback) const {
  const Attribute* a = attr(name, AttributeKind::kInt);
  return a ? a->i : fallback;
}
double NodeContext::float_attr(std::string_view name, double fallback) const {
  const Attribute* a = attr(name, AttributeKind::kFloat);
  return a ? static_cast<double>(a->f) : fallback;
}
std::string NodeContext::string_attr(std::string_view name, const std::string& fallback) const {
  const Attribute* a = attr(name, AttributeKind::kString);
  return a ? a->s : fallback;
}
std::vector<int64_t> NodeContext::ints_attr(std::string_view name, const std::vector<int64_t>& fallback) const {
  const Attribute* a = attr(name, AttributeKind::kInts);
  return a ? a->ints : fallback;
}
std::vector<double> NodeContext::floats_attr(std::string_view name, const std::vector<double>& fallback) const {
  const Attribute* a = attr(name, AttributeKind::kFloats);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : fallback;
}
std::vector<std::string> NodeContext::strings_attr(std::string_view name) const {
  const Attribute* a = attr(name, AttributeKind::kStrings);
  return a ? a->strings : std::vector<std::string>();
}
DataType NodeContext::dtype_attr(std::string_view name, DataType fallback) const {
  const Attribute* a = attr(name, AttributeKind::kUndefined);
  if (!a) return fallback;
  // Before opset 6 the type is named by a string.
  if (a->kind == AttributeKind::kString) {
    static const std::map<std::string, DataType> kNames = {
        {"FLOAT", kFloat32}, {"DOUBLE", kFloat64}, {"FLOAT16", kFloat16}, {"BOOL", kBool},
        {"INT8", kInt8},     {"INT16", kInt16},    {"INT32", kInt32},     {"INT64", kInt64},
        {"UINT8", kUInt8},   {"UINT16", kUInt16},  {"UINT32", kUInt32},   {"UINT64", kUInt64}};
    auto it = kNames.find(a->s);
    if (it != kNames.end()) return it->second;
    fail(format("'{}' is not an element type", a->s));
  }
  auto type = element_type(int_attr(name));
  if (!type) fail(format("its attribute '{}' is {}, which is not an element type", name, a->i));
  return *type;
}

const Value* NodeContext::outer(const std::string& name) const { return scope_.find(name); }

Values NodeContext::inline_graph(const Graph& graph, std::vector<Value> arguments,
                                 const std::map<std::string, Value>& outside) const {
  Scope inner;
  inner.parent = &scope_;
  inner.opsets = scope_.opsets;
  inner.function_attributes = scope_.function_attributes;
  inner.prefix = *span() + "/";
  inner.depth = scope_.depth + 1;
  if (arguments.size() > graph.inputs.size())
    fail(format("its subgraph takes {} inputs, {} are given", graph.inputs.size(), arguments.size()));
  inner.values.insert(outside.begin(), outside.end());
  for (size_t i = 0; i < arguments.size(); ++i) inner.values[graph.inputs[i].name] = arguments[i];
  return importer_.import_graph(graph, inner);
}

namespace {

std::string table_key(std::string_view domain, std::string_view op) { return format("{}\n{}", domain, op); }

const std::multimap<std::string, const ConverterEntry*>& converter_table() {
  static const auto* table = [] {
    auto* t = new std::multimap<std::string, const ConverterEntry*>();
#define TW_FAMILY(name) \
  for (const auto& e : name##_converters()) t->emplace(table_key(e.domain, e.op), &e);
    TW_CONVERTER_FAMILIES(TW_FAMILY)
#undef TW_FAMILY
    return t;
  }();
  return *table;
}

}  // namespace

const ConverterEntry* find_converter(const std::string& domain, const std::string& op, int64_t version) {
  auto [begin, end] = converter_table().equal_range(table_key(domain, op));
  const ConverterEntry* best = nullptr;
  for (auto it = begin; it != end; ++it)
    if (it->second->since <= version && (!best || it->second->since > best->since)) best = it->second;
  return best;
}

std::vector<SupportedOp> supported_ops() {
  std::vector<SupportedOp> out;
  for (const auto& [key, e] : converter_table()) out.push_back({e->domain, e->op, e->since});
  out.push_back({"", kOnlyAtRunTime, 10});
  std::sort(out.begin(), out.end(), [](const SupportedOp& a, const SupportedOp& b) {
    return std::tie(a.domain, a.op, a.since) < std::tie(b.domain, b.op, b.since);
  });
  return out;
}

}  // namespace tilewright::onnx
