// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/convert.h"

#include <algorithm>
#include <unordered_map>

#include "base/format.h"
#include "frontend/onnx/importer.h"
#include "frontend/torch/import.h"

namespace tilewright::torch {

Value Value::number(Expr e) {
  Value v(std::move(e));
  v.kind = kNumber;
  return v;
}
Value Value::of_list(std::vector<Value> items) {
  Value v;
  v.kind = kList;
  v.list = std::make_shared<std::vector<Value>>(std::move(items));
  return v;
}
Value Value::of_text(std::string text) {
  Value v;
  v.kind = kText;
  v.text = std::move(text);
  return v;
}
Value Value::of_dtype(DataType dtype) {
  Value v;
  v.kind = kDtype;
  v.dtype = dtype;
  return v;
}

Value literal_value(const Argument& a) {
  Value v;
  switch (a.kind) {
    case Argument::kBool: {
      Tensor t = Tensor::zeros(kBool, {});
      t.set_int(0, a.integer);
      return Value::number(relay::make_constant(std::move(t)));
    }
    case Argument::kInt:
      return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, a.integer)));
    case Argument::kFloat:
      return Value::number(relay::make_constant(Tensor::scalar<double>(kFloat64, a.number)));
    case Argument::kText:
      return Value::of_text(a.text);
    case Argument::kDtype:
      v = Value::of_dtype(a.dtype);
      v.complex = a.complex;
      return v;
    case Argument::kLayout:
    case Argument::kMemoryFormat:
    case Argument::kDevice:
      v.kind = Value::kOption;
      v.text = a.text;
      v.option = a.integer;
      return v;
    case Argument::kGraph:
      v.kind = Value::kGraph;
      v.graph = a.graph;
      return v;
    case Argument::kList: {
      std::vector<Value> items;
      for (const Argument& item : a.items) items.push_back(literal_value(item));
      return Value::of_list(std::move(items));
    }
    case Argument::kComplex:
      v = Value::number(
          relay::make_constant(Tensor::from<double>(kFloat64, {2}, std::vector<double>{a.number, a.imaginary})));
      v.complex = true;
      return v;
    case Argument::kOther:
      throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, format("an argument of the kind {}", a.text))};
    case Argument::kNone:
    case Argument::kValue:
      break;
  }
  return v;
}

NodeContext::NodeContext(const Place& place, const Node& node, NamedValues arguments)
    : ExpressionBuilder(relay::make_span(node.name)), place_(place), node_(node), arguments_(std::move(arguments)) {}

std::vector<std::string> NodeContext::inputs_of(const Expr& e) const { return place_.onnx.inputs_of(e); }

std::string_view NodeContext::overload() const {
  return std::string_view(node_.target)
      .substr(std::min(without_overload(node_.target).size() + 1, node_.target.size()));
}

size_t NodeContext::output_count() const {
  return node_.outputs.size() == 1 && node_.outputs[0].kind == Argument::kList ? node_.outputs[0].items.size()
                                                                               : node_.outputs.size();
}

const Value* NodeContext::find(std::string_view name) const {
  for (const auto& [given, value] : arguments_)
    if (given == name) return value.kind == Value::kNothing ? nullptr : &value;
  return nullptr;
}
bool NodeContext::has(std::string_view name) const { return find(name) != nullptr; }
const Value& NodeContext::value(std::string_view name) const {
  const Value* v = find(name);
  if (!v) fail(format("its argument '{}' is missing", name));
  return *v;
}
const Value& NodeContext::positional(size_t i) const {
  if (i >= arguments_.size()) fail(format("it has {} arguments, and number {} is needed", arguments_.size(), i));
  return arguments_[i].second;
}

Expr NodeContext::tensor(std::string_view name) const {
  const Value& v = value(name);
  if (!v.expr) fail_type(format("its argument '{}' is not a tensor", name));
  return v.expr;
}
std::vector<Expr> NodeContext::tensors(std::string_view name) const {
  const Value& v = value(name);
  if (!v.list) fail_type(format("its argument '{}' is not a list", name));
  std::vector<Expr> out;
  for (const Value& item : *v.list) {
    if (!item.expr) fail_type(format("its argument '{}' holds something that is not a tensor", name));
    out.push_back(item.expr);
  }
  return out;
}

namespace {

[[noreturn]] void wants_a_value(std::string_view what) {
  throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension,
                                     format("its argument '{}' is known only at run time", what), "",
                                     "give the sizes of the inputs: --shape NAME=1x3x224x224")};
}

}  // namespace

int64_t NodeContext::integer_of(const Value& v, std::string_view what) const {
  if (!v.expr) fail_type(format("its argument '{}' is not an integer", what));
  const Tensor* t = known(v.expr);
  if (!t) {
    inputs_of(v.expr);
    wants_a_value(what);
  }
  if (t->size() != 1 || t->dtype().is_float() || t->dtype().is_string())
    fail_type(format("its argument '{}' is not an integer", what));
  return t->at_int(0);
}
double NodeContext::number_of(const Value& v, std::string_view what) const {
  if (!v.expr) fail_type(format("its argument '{}' is not a number", what));
  const Tensor* t = known(v.expr);
  if (!t) {
    inputs_of(v.expr);
    wants_a_value(what);
  }
  if (t->size() != 1 || t->dtype().is_string()) fail_type(format("its argument '{}' is not a number", what));
  return t->at_double(0);
}
int64_t NodeContext::integer(std::string_view name) const { return integer_of(value(name), name); }
int64_t NodeContext::integer(std::string_view name, int64_t fallback) const {
  const Value* v = find(name);
  return v ? integer_of(*v, name) : fallback;
}
std::optional<int64_t> NodeContext::maybe_integer(std::string_view name) const {
  const Value* v = find(name);
  return v ? std::optional<int64_t>(integer_of(*v, name)) : std::nullopt;
}
double NodeContext::number(std::string_view name) const { return number_of(value(name), name); }
double NodeContext::number(std::string_view name, double fallback) const {
  const Value* v = find(name);
  return v ? number_of(*v, name) : fallback;
}
std::optional<double> NodeContext::maybe_number(std::string_view name) const {
  const Value* v = find(name);
  return v ? std::optional<double>(number_of(*v, name)) : std::nullopt;
}
bool NodeContext::flag(std::string_view name, bool fallback) const { return integer(name, fallback ? 1 : 0) != 0; }
std::string NodeContext::text(std::string_view name, const std::string& fallback) const {
  const Value* v = find(name);
  if (v && v->kind != Value::kText) fail_type(format("its argument '{}' is not a text", name));
  return v ? v->text : fallback;
}
DataType NodeContext::dtype_arg(std::string_view name, DataType fallback) const {
  const Value* v = find(name);
  if (!v) return fallback;
  if (const auto type = element_type(*v)) return *type;
  if (v->kind != Value::kNumber) fail_type(format("its argument '{}' is not an element type", name));
  fail(format("its '{}' is the element type {}, which is unknown", name, integer_of(*v, name)));
}
std::optional<DataType> NodeContext::element_type(const Value& v) {
  static constexpr DataType kCodes[] = {kUInt8,   kInt8,    kInt16,   kInt32,   kInt64,   kFloat16,
                                        kFloat32, kFloat64, kFloat16, kFloat32, kFloat64, kBool};
  if (v.kind == Value::kDtype) return v.complex ? std::nullopt : std::optional<DataType>(v.dtype);
  const Tensor* code = v.kind == Value::kNumber ? known(v.expr) : nullptr;
  if (!code || code->size() != 1 || !code->dtype().is_int()) return std::nullopt;
  const int64_t at = code->at_int(0);
  if (at == 15) return kBFloat16;
  if (at < 0 || (at > 7 && at != 11)) return std::nullopt;
  return kCodes[at];
}

std::vector<int64_t> NodeContext::ints(std::string_view name) const {
  const Value& v = value(name);
  std::vector<int64_t> out;
  // All sizes of a tensor whose rank only a run has are one tensor.
  if (const Tensor* t = v.expr ? known(v.expr) : nullptr; t && t->rank() == 1 && t->dtype().is_int()) {
    for (int64_t i = 0; i < t->size(); ++i) out.push_back(t->at_int(i));
    return out;
  }
  if (!v.list) return {integer_of(v, name)};
  for (const Value& item : *v.list) out.push_back(integer_of(item, name));
  return out;
}
std::vector<int64_t> NodeContext::ints(std::string_view name, const std::vector<int64_t>& fallback) const {
  return has(name) ? ints(name) : fallback;
}
std::vector<int64_t> NodeContext::ints(std::string_view name, size_t count, int64_t fallback) const {
  std::vector<int64_t> out = ints(name, std::vector<int64_t>(count, fallback));
  if (out.size() == 1) out.assign(count, out[0]);
  if (out.empty()) out.assign(count, fallback);
  if (out.size() != count) fail(format("its '{}' has {} values where {} are needed", name, out.size(), count));
  return out;
}
std::vector<double> NodeContext::numbers(std::string_view name) const {
  const Value& v = value(name);
  if (!v.list) return {number_of(v, name)};
  std::vector<double> out;
  for (const Value& item : *v.list) out.push_back(number_of(item, name));
  return out;
}
std::vector<int64_t> NodeContext::axes(std::string_view name, int64_t rank) const {
  std::vector<int64_t> out;
  if (has(name))
    for (int64_t axis : ints(name)) out.push_back(dim(axis, rank));
  std::vector<int64_t> sorted = out;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    fail(format("its '{}' names an axis twice", name));
  return out;
}

namespace {

// The smallest dtype that holds the values of both, by PyTorch's promotion table.
DataType common_dtype(DataType a, DataType b) {
  if (a == b) return a;
  if (a.is_bool()) return b;
  if (b.is_bool()) return a;
  if (a.is_float() != b.is_float()) return a.is_float() ? a : b;
  if (a.is_float()) {
    if (a.bits == b.bits) return kFloat32;  // float16 and bfloat16
    return a.bits > b.bits ? a : b;
  }
  const DataType small = a.bits < b.bits ? a : b, large = a.bits < b.bits ? b : a;
  if (a.is_uint() == b.is_uint()) return large;
  if (large.is_int() && small.bits < large.bits) return large;
  // An unsigned type at least as wide: the next wider signed type.
  return large.bits < 16 ? kInt16 : large.bits < 32 ? kInt32 : kInt64;
}

int category(DataType t) { return t.is_float() ? 2 : t.is_bool() ? 0 : 1; }

// Promotion between ranks: the lower-ranked operand counts only where its category (bool, integer, float) is higher.
std::optional<DataType> combined(std::optional<DataType> higher, std::optional<DataType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (category(*lower) > category(*higher)) return category(*higher) == 0 ? lower : common_dtype(*higher, *lower);
  return higher;
}

}  // namespace

DataType NodeContext::promoted(const std::vector<const Value*>& operands) const {
  std::optional<DataType> axes, scalars, numbers;
  for (const Value* v : operands) {
    if (!v || !v->expr) continue;
    DataType dtype = this->dtype(v->expr);
    auto& of_kind = v->kind == Value::kNumber ? numbers : rank(v->expr) > 0 ? axes : scalars;
    if (v->kind == Value::kNumber && dtype.is_float()) dtype = kFloat32;
    of_kind = of_kind ? common_dtype(*of_kind, dtype) : dtype;
  }
  auto out = combined(axes, combined(scalars, numbers));
  if (!out) fail_type("it has no operand");
  return *out;
}
DataType NodeContext::promoted_real(const std::vector<const Value*>& operands) const {
  DataType t = promoted(operands);
  return t.is_float() ? t : kFloat32;
}
Expr NodeContext::as_tensor(const Value& v, DataType dtype) const {
  if (!v.expr) fail_type("an operand is not a tensor");
  return cast(v.expr, dtype);
}
Expr NodeContext::real(const Expr& e) const { return dtype(e).is_float() ? e : cast(e, kFloat32); }
Expr NodeContext::tensor_or(std::string_view name, double fallback, DataType dtype) const {
  return has(name) ? as_tensor(value(name), dtype) : scalar(fallback, dtype);
}

int64_t NodeContext::dim(int64_t axis, int64_t rank) const { return this->axis(axis, std::max<int64_t>(rank, 1)); }

Value whole(int64_t i) { return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, i))); }

Values NodeContext::aten(const std::string& target, NamedValues arguments) const {
  Node node;
  node.target = target;
  node.name = node_.name;
  node.outputs.resize(1);
  return convert_resolved(place_, node, std::move(arguments));
}

Expr NodeContext::one_of(const std::string& target, NamedValues arguments) const {
  return aten(target, std::move(arguments)).at(0).expr;
}

Expr NodeContext::reshaped(const Expr& e, std::vector<int64_t> sizes) const {
  const auto now = static_shape(shape(e));
  auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end() && std::find(open + 1, sizes.end(), -1) != sizes.end())
    fail("its shape leaves more than one size open");
  for (int64_t s : sizes)
    if (s < -1) fail(format("its shape {} is impossible", shape_str(sizes)));
  if (!now) {
    for (int64_t s : sizes)
      if (s == 0) wants_a_value("size");  // Reshape reads size 0 as a copy of the operand's
    return reshape(e, std::move(sizes));
  }
  const int64_t count = product(*now);
  if (open != sizes.end()) {
    *open = 1;
    const int64_t others = product(sizes);
    if (others == 0 || count % others != 0)
      fail_type(format("{} elements do not make the shape {}", count, shape_str(sizes)));
    *open = count / others;
  }
  if (product(sizes) != count)
    fail_type(format("a tensor of {} elements cannot have the shape {}", count, shape_str(sizes)));
  if (*now == sizes) return e;
  // In a tensor without elements, 0 is a size and not Reshape's copy.
  if (count == 0) return zeros(dtype(e), std::move(sizes));
  return reshape(e, std::move(sizes));
}

std::vector<Expr> NodeContext::onnx(const std::string& op, int64_t version, const std::vector<Expr>& inputs,
                                    const std::vector<OnnxAttribute>& attributes, size_t outputs,
                                    const std::string& domain) const {
  onnx::Node node;
  node.name = node_.name;
  node.op_type = op;
  node.domain = domain;
  onnx::Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(inputs[i] ? format("input{}", i) : "");
    values.push_back(inputs[i] ? onnx::Value(inputs[i]) : onnx::Value());
  }
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(format("output{}", i));
  for (const OnnxAttribute& given : attributes) {
    onnx::Attribute a;
    a.name = given.name;
    if (const auto* i = std::get_if<int64_t>(&given.value)) a.kind = onnx::AttributeKind::kInt, a.i = *i;
    if (const auto* f = std::get_if<double>(&given.value))
      a.kind = onnx::AttributeKind::kFloat, a.f = static_cast<float>(*f);
    if (const auto* s = std::get_if<std::string>(&given.value)) a.kind = onnx::AttributeKind::kString, a.s = *s;
    if (const auto* l = std::get_if<std::vector<int64_t>>(&given.value))
      a.kind = onnx::AttributeKind::kInts, a.ints = *l;
    if (const auto* l = std::get_if<std::vector<double>>(&given.value)) {
      a.kind = onnx::AttributeKind::kFloats;
      a.floats.assign(l->begin(), l->end());
    }
    if (const auto* l = std::get_if<std::vector<std::string>>(&given.value))
      a.kind = onnx::AttributeKind::kStrings, a.strings = *l;
    node.attributes.push_back(std::move(a));
  }
  const onnx::Values made = place_.onnx.converted(node, {{domain, version}}, std::move(values));
  std::vector<Expr> out;
  for (size_t i = 0; i < outputs; ++i) {
    if (i >= made.size() || !made[i].expr) unsupported(format("output {} of {}", i, op));
    out.push_back(made[i].expr);
  }
  return out;
}

std::string_view without_overload(std::string_view target) {
  const size_t space = target.find('.');
  const size_t end = space == std::string_view::npos ? space : target.find('.', space + 1);
  return target.substr(0, end);
}

namespace {

const std::unordered_map<std::string_view, const ConverterEntry*>& torch_converter_table() {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, const ConverterEntry*>();
#define TW_TORCH_FAMILY(name) \
  for (const auto& e : name##_converters()) t->emplace(e.target, &e);
    TW_TORCH_FAMILIES(TW_TORCH_FAMILY)
#undef TW_TORCH_FAMILY
    return t;
  }();
  return *table;
}

}  // namespace

const ConverterEntry* find_converter(std::string_view target) {
  const auto& table = torch_converter_table();
  auto it = table.find(target);
  if (it == table.end()) it = table.find(without_overload(target));
  return it == table.end() ? nullptr : it->second;
}

std::string functional_name(std::string_view target) {
  const std::string_view base = without_overload(target);
  if (!base.ends_with('_') || base.ends_with("__") || find_converter(target)) return {};
  return std::string(base.substr(0, base.size() - 1)) + std::string(target.substr(base.size()));
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> out;
  for (const auto& [target, entry] : torch_converter_table()) out.emplace_back(target);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tilewright::torch
