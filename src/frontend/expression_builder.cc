// SPDX-License-Identifier: Apache-2.0
#include "frontend/expression_builder.h"

#include <algorithm>

#include "base/checked.h"
#include "base/format.h"
#include "relay/constant_call.h"

namespace tilewright::frontend {
namespace {

// Calls on constants no larger than this are evaluated during the import: shape computations and the parameters of
// operators. Larger ones (weights) are the constant folding pass's business.
constexpr int64_t kMaxFoldedElements = 1 << 16;

}  // namespace

Expr folded_call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs, const relay::Span& span) {
  const relay::OpDef* def = relay::find_op(op);
  if (!def)
    throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, format("the graph operator '{}' is missing", op))};
  auto result = relay::try_call(op, args, attrs, span);
  if (!result) throw ConversionFailure{std::move(result).error()};
  Expr e = std::move(result).value();
  bool static_result = true;
  int64_t elements = 0;
  auto add_type = [&](const Type& t) {
    const auto* tensor = as_tensor(t);
    auto dims = tensor ? static_shape(tensor->shape) : std::nullopt;
    if (!dims) {
      static_result = false;
      return;
    }
    auto count = checked_element_count(*dims);
    if (!count) throw ConversionFailure{std::move(count).error()};
    elements = std::min<int64_t>(elements + *count, int64_t{1} << 50);
  };
  if (const auto* tuple = as_tuple(e->type))
    for (const Type& t : tuple->fields) add_type(t);
  else
    add_type(e->type);
  if (!relay::is_constant_call(e) || (static_result && elements > kMaxFoldedElements)) return e;
  if (op == "qnn.dequantize" && elements > 1) return e;  // passes tell quantised weights by it
  int64_t read = 0;
  auto small = [&](const Expr& arg) {
    const auto* c = relay::as<relay::ConstantNode>(arg);
    return c && (read += c->data.size()) <= kMaxFoldedElements && c->data.dtype().code != TypeCode::kComplex;
  };
  for (const Expr& arg : args) {
    if (const auto* tuple = relay::as<relay::TupleNode>(arg)) {
      for (const Expr& field : tuple->fields)
        if (!small(field)) return e;
    } else if (!small(arg)) {
      return e;
    }
  }
  auto out = relay::evaluate_constant_call(e);
  if (!out) throw ConversionFailure{std::move(out).error()};
  std::vector<Expr> constants;
  for (Tensor& t : *out) constants.push_back(relay::make_constant(std::move(t), span));
  return as_tuple(e->type) ? relay::make_tuple(std::move(constants), span) : constants.at(0);
}

void ExpressionBuilder::fail(std::string message, std::string hint) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kMalformedModel, std::move(message), "", std::move(hint))};
}
void ExpressionBuilder::fail_type(std::string message) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kTypeMismatch, std::move(message))};
}
void ExpressionBuilder::unsupported(std::string what) const {
  throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, std::move(what))};
}

const Tensor* ExpressionBuilder::known(const Expr& e) {
  const auto* c = relay::as<relay::ConstantNode>(e);
  return c ? &c->data : nullptr;
}

Tensor ExpressionBuilder::constant(const Expr& e, const char* what) const {
  if (const Tensor* t = known(e)) return *t;
  std::string names;
  for (const auto& name : inputs_of(e)) names += (names.empty() ? "" : ", ") + name;
  throw ConversionFailure{
      Diagnostic(ErrorCode::kUnsupportedModel,
                 format("its {} is known only at run time (it is computed from the inputs {})", what, names), "",
                 "export the model with it fixed, or bind those inputs to values (the import option `constants`)")};
}

const TensorTypeNode& ExpressionBuilder::type(const Expr& e) const {
  const TensorTypeNode* t = e ? as_tensor(e->type) : nullptr;
  // A deferred node's result, whose type a run finds: what needs it waits likewise.
  if (!t && e && !is_complete(e->type))
    throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension, "the type of an operand is known only at run time")};
  if (!t) fail_type("an operand is not a tensor");
  return *t;
}

std::vector<int64_t> ExpressionBuilder::dims(const Expr& e) const {
  if (auto d = static_shape(shape(e))) return *d;
  inputs_of(e);
  throw ConversionFailure{
      Diagnostic(ErrorCode::kFreeDimension,
                 format("an operand of type {} has dimensions whose sizes must be known here", type_str(e->type)), "",
                 "give the sizes of the inputs: --shape NAME=1x3x224x224")};
}

int64_t ExpressionBuilder::product(const std::vector<int64_t>& sizes, int64_t begin, int64_t end) const {
  int64_t out = 1;
  for (int64_t i = begin; i < std::min<int64_t>(end, static_cast<int64_t>(sizes.size())); ++i)
    if (__builtin_mul_overflow(out, sizes[static_cast<size_t>(i)], &out))
      fail(format("a shape of {} is too large", shape_str(sizes)));
  return out;
}

int64_t ExpressionBuilder::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) fail(format("its axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

Expr ExpressionBuilder::call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs) const {
  return folded_call(op, args, attrs, span_);
}

Expr ExpressionBuilder::get(const Expr& tuple, int64_t index) const {
  if (const auto* t = relay::as<relay::TupleNode>(tuple)) return t->fields.at(static_cast<size_t>(index));
  return relay::make_get(tuple, index, span_);
}

Expr ExpressionBuilder::constant_of(Tensor t) const { return relay::make_constant(std::move(t), span_); }

Expr ExpressionBuilder::scalar(double value, DataType dtype) const {
  if (dtype.is_string()) unsupported("text, which holds no numbers");
  Tensor t = Tensor::zeros(dtype, {});
  t.set_double(0, value);
  return constant_of(t);
}

Expr ExpressionBuilder::zeros(DataType dtype, std::vector<int64_t> shape) const {
  return call("full", {scalar(0, dtype)}, make_attrs<relay::InitOpAttrs>([&](auto& a) {
                a.shape = std::move(shape);
                a.dtype = dtype.str();
              }));
}

Expr ExpressionBuilder::counting(int64_t count, int64_t first) const {
  auto at = [&](int64_t v) { return constant_of(Tensor::scalar<int64_t>(kInt64, v)); };
  return call("arange", {at(first), at(first + count), at(1)},
              make_attrs<relay::ArangeAttrs>([](auto& a) { a.dtype = kInt64; }));
}

Expr ExpressionBuilder::ints_constant(const std::vector<int64_t>& values) const {
  return constant_of(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
}

Expr ExpressionBuilder::reshape(const Expr& e, std::vector<int64_t> newshape) const {
  // Constants keep their bytes, whatever their size.
  if (const Tensor* t = known(e)) {
    bool plain = std::all_of(newshape.begin(), newshape.end(), [](int64_t d) { return d > 0; });
    int64_t count = 1;
    for (int64_t d : newshape) plain = plain && !__builtin_mul_overflow(count, d, &count);
    if (plain && count == t->size()) return constant_of(t->reshaped(newshape));
  }
  return call("reshape", {e}, make_attrs<relay::ReshapeAttrs>([&](auto& a) {
                a.allowzero = std::find(newshape.begin(), newshape.end(), 0) != newshape.end();
                a.newshape = std::move(newshape);
              }));
}

Expr ExpressionBuilder::transpose(const Expr& e, std::vector<int64_t> axes) const {
  bool identity = true;
  for (size_t i = 0; i < axes.size(); ++i) identity &= axes[i] == static_cast<int64_t>(i);
  if (identity) return e;
  return call("transpose", {e}, make_attrs<relay::TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }));
}

Expr ExpressionBuilder::cast(const Expr& e, DataType dtype) const {
  if (this->dtype(e) == dtype) return e;
  return call("cast", {e}, make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = dtype; }));
}

Expr ExpressionBuilder::squeeze(const Expr& e, std::vector<int64_t> axes) const {
  if (axes.empty()) return e;
  return call("squeeze", {e}, make_attrs<relay::SqueezeAttrs>([&](auto& a) { a.axis = std::move(axes); }));
}

Expr ExpressionBuilder::expand(const Expr& e, int64_t axis, int64_t count) const {
  if (count == 0) return e;
  return call("expand_dims", {e}, make_attrs<relay::ExpandDimsAttrs>([&](auto& a) {
                a.axis = axis;
                a.num_newaxis = count;
              }));
}

Expr ExpressionBuilder::concat(std::vector<Expr> parts, int64_t axis) const {
  if (parts.size() == 1) return parts[0];
  return call("concatenate", {relay::make_tuple(std::move(parts), span_)},
              make_attrs<relay::ConcatenateAttrs>([&](auto& a) { a.axis = axis; }));
}

Expr ExpressionBuilder::slice(const Expr& e, int64_t axis, int64_t begin, int64_t end, int64_t step) const {
  return call("strided_slice", {e}, make_attrs<relay::StridedSliceAttrs>([&](auto& a) {
                a.begin = {begin};
                a.end = {end};
                a.strides = {step};
                a.axes = std::vector<int64_t>{axis};
              }));
}

Expr ExpressionBuilder::broadcast_to(const Expr& e, std::vector<int64_t> shape) const {
  auto now = static_shape(this->shape(e));
  if (now && *now == shape) return e;
  return call("broadcast_to", {e}, make_attrs<relay::InitOpAttrs>([&](auto& a) { a.shape = std::move(shape); }));
}

Expr ExpressionBuilder::reduce(std::string_view op, const Expr& e, std::vector<int64_t> axes, bool keepdims) const {
  return call(op, {e}, make_attrs<relay::ReduceAttrs>([&](auto& a) {
                a.axis = std::move(axes);
                a.keepdims = keepdims;
              }));
}

}  // namespace tilewright::frontend
