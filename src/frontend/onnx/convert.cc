// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/convert.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {

namespace {
std::string span_text(const Scope& scope, const Node& node) {
  return scope.prefix + (!node.name.empty() ? node.name : !node.outputs.empty() ? node.outputs[0] : node.op_type);
}
}  // namespace

NodeContext::NodeContext(Importer& importer, Scope& scope, const Node& node, int64_t opset, std::vector<Value> inputs)
    : importer_(importer),
      scope_(scope),
      node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      span_(relay::make_span(span_text(scope, node))) {}

void NodeContext::fail(std::string message, std::string hint) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kMalformedModel, std::move(message), "", std::move(hint))};
}
void NodeContext::fail_type(std::string message) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kTypeMismatch, std::move(message))};
}
void NodeContext::unsupported(std::string what) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, std::move(what))};
}

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

const Tensor* NodeContext::known(const Expr& e) {
  const auto* c = relay::as<relay::ConstantNode>(e);
  return c ? &c->data : nullptr;
}

void NodeContext::release_pages(const Tensor& weight) { importer_.release_pages(weight); }

Tensor NodeContext::constant(const Expr& e, const char* what) const {
  if (const Tensor* t = known(e)) return *t;
  std::string names;
  for (const auto& name : importer_.inputs_of(e)) names += (names.empty() ? "" : ", ") + name;
  throw ConversionFailure{
      Diagnostic(ErrorCode::kUnsupportedModel,
                 format("its {} is known only at run time (it is computed from the inputs {})", what, names), "",
                 "export the model with it fixed, or bind those inputs to values (the import option `constants`)")};
}

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
  // An empty list has no visible type in files without declared types.
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
  // Opsets before 6 name the type in a string.
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

const TensorTypeNode& NodeContext::type(const Expr& e) const {
  const TensorTypeNode* t = e ? as_tensor(e->type) : nullptr;
  if (!t) fail_type("an operand is not a tensor");
  return *t;
}

std::vector<int64_t> NodeContext::dims(const Expr& e) const {
  if (auto d = static_shape(shape(e))) return *d;
  importer_.inputs_of(e);
  throw ConversionFailure{
      Diagnostic(ErrorCode::kFreeDimension,
                 format("an operand of type {} has dimensions whose sizes must be known here", type_str(e->type)), "",
                 "give the sizes of the inputs: --shape NAME=1x3x224x224")};
}

int64_t NodeContext::product(const std::vector<int64_t>& sizes, int64_t begin, int64_t end) const {
  int64_t out = 1;
  for (int64_t i = begin; i < std::min<int64_t>(end, static_cast<int64_t>(sizes.size())); ++i)
    if (__builtin_mul_overflow(out, sizes[static_cast<size_t>(i)], &out))
      fail(format("a shape of {} is too large", shape_str(sizes)));
  return out;
}

int64_t NodeContext::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) fail(format("its axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Expr NodeContext::call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs) const {
  return importer_.call(op, args, attrs, span_);
}

Expr NodeContext::get(const Expr& tuple, int64_t index) const {
  if (const auto* t = relay::as<relay::TupleNode>(tuple)) return t->fields.at(static_cast<size_t>(index));
  return relay::make_get(tuple, index, span_);
}

Expr NodeContext::constant_of(Tensor t) const { return relay::make_constant(std::move(t), span_); }

Expr NodeContext::scalar(double value, DataType dtype) const {
  Tensor t = Tensor::zeros(dtype, {});
  t.set_double(0, value);
  return constant_of(t);
}

Expr NodeContext::zeros(DataType dtype, std::vector<int64_t> shape) const {
  return call("full", {scalar(0, dtype)}, make_attrs<relay::InitOpAttrs>([&](auto& a) {
                a.shape = std::move(shape);
                a.dtype = dtype.str();
              }));
}

Expr NodeContext::counting(int64_t count, int64_t first) const {
  auto at = [&](int64_t v) { return constant_of(Tensor::scalar<int64_t>(kInt64, v)); };
  return call("arange", {at(first), at(first + count), at(1)},
              make_attrs<relay::ArangeAttrs>([](auto& a) { a.dtype = kInt64; }));
}

Expr NodeContext::ints_constant(const std::vector<int64_t>& values) const {
  return constant_of(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
}

Expr NodeContext::reshape(const Expr& e, std::vector<int64_t> newshape) const {
  // Constants keep their bytes, whatever their size.
  if (const Tensor* t = known(e)) {
    bool plain = std::all_of(newshape.begin(), newshape.end(), [](int64_t d) { return d > 0; });
    int64_t count = 1;
    for (int64_t d : newshape) plain = plain && !__builtin_mul_overflow(count, d, &count);
    if (plain && count == t->size()) return constant_of(t->reshaped(newshape));
  }
  return call("reshape", {e}, make_attrs<relay::ReshapeAttrs>([&](auto& a) { a.newshape = std::move(newshape); }));
}

Expr NodeContext::transpose(const Expr& e, std::vector<int64_t> axes) const {
  bool identity = true;
  for (size_t i = 0; i < axes.size(); ++i) identity &= axes[i] == static_cast<int64_t>(i);
  if (identity) return e;
  return call("transpose", {e}, make_attrs<relay::TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }));
}

Expr NodeContext::cast(const Expr& e, DataType dtype) const {
  if (this->dtype(e) == dtype) return e;
  return call("cast", {e}, make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = dtype; }));
}

Expr NodeContext::squeeze(const Expr& e, std::vector<int64_t> axes) const {
  if (axes.empty()) return e;
  return call("squeeze", {e}, make_attrs<relay::SqueezeAttrs>([&](auto& a) { a.axis = std::move(axes); }));
}

Expr NodeContext::expand(const Expr& e, int64_t axis, int64_t count) const {
  if (count == 0) return e;
  return call("expand_dims", {e}, make_attrs<relay::ExpandDimsAttrs>([&](auto& a) {
                a.axis = axis;
                a.num_newaxis = count;
              }));
}

Expr NodeContext::concat(std::vector<Expr> parts, int64_t axis) const {
  if (parts.size() == 1) return parts[0];
  return call("concatenate", {relay::make_tuple(std::move(parts), span_)},
              make_attrs<relay::ConcatenateAttrs>([&](auto& a) { a.axis = axis; }));
}

Expr NodeContext::slice(const Expr& e, int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  return call("strided_slice", {e}, make_attrs<relay::StridedSliceAttrs>([&](auto& a) {
                a.begin = {begin};
                a.end = {end};
                a.strides = {step};
                a.axes = std::vector<int64_t>{axis};
              }));
}

Expr NodeContext::broadcast_to(const Expr& e, std::vector<int64_t> shape) const {
  auto now = static_shape(this->shape(e));
  if (now && *now == shape) return e;
  return call("broadcast_to", {e}, make_attrs<relay::InitOpAttrs>([&](auto& a) { a.shape = std::move(shape); }));
}

Expr NodeContext::reduce(std::string_view op, const Expr& e, std::vector<int64_t> axes, bool keepdims) const {
  return call(op, {e}, make_attrs<relay::ReduceAttrs>([&](auto& a) {
                a.axis = std::move(axes);
                a.keepdims = keepdims;
              }));
}

const Value* NodeContext::outer(const std::string& name) const { return scope_.find(name); }

Values NodeContext::inline_graph(const Graph& graph, std::vector<Value> arguments,
                                 const std::map<std::string, Value>& outside) const {
  Scope inner;
  inner.parent = &scope_;
  inner.opsets = scope_.opsets;
  inner.function_attributes = scope_.function_attributes;
  inner.prefix = *span_ + "/";
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
  return out;
}

}  // namespace tilewright::onnx
