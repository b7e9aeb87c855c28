// SPDX-License-Identifier: Apache-2.0
// Comparison, logic, choice between tensors, clamping and casts.
#include <limits>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace comparison {
namespace {

// A Python number that the tensor's type cannot hold is compared in a wider type: promotion covers other categories,
// and the rest is compared in 64 bits, as PyTorch does.
template <const char* kOp>
Values compare(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  DataType dtype = c.promoted({&a, &b});
  if (dtype.is_bool()) dtype = kUInt8;
  return {c.call(kOp, {c.as_tensor(a, dtype), c.as_tensor(b, dtype)})};
}
constexpr char kEqual[] = "equal", kNotEqual[] = "not_equal", kLess[] = "less", kLessEqual[] = "less_equal",
               kGreater[] = "greater", kGreaterEqual[] = "greater_equal", kAnd[] = "logical_and", kOr[] = "logical_or",
               kXor[] = "logical_xor";

template <const char* kOp>
Values logical(NodeContext& c) {
  return {c.call(kOp, {c.cast(c.tensor("self"), kBool), c.cast(c.tensor("other"), kBool)})};
}
Values logical_not(NodeContext& c) { return {c.call("logical_not", {c.cast(c.tensor("self"), kBool)})}; }

template <bool kOfWhole>
Expr everywhere(NodeContext& c, const Expr& x) {
  Expr same = c.call("equal", {x, x});
  return kOfWhole ? c.call("logical_or", {same, c.scalar(1, kBool)})
                  : c.call("logical_and", {same, c.scalar(0, kBool)});
}
Values is_nan(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_float() ? c.call("isnan", {x}) : everywhere<false>(c, x)};
}
Values is_inf(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_float() ? c.call("isinf", {x}) : everywhere<false>(c, x)};
}
Values is_finite(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_float() ? c.call("isfinite", {x}) : everywhere<true>(c, x)};
}
template <bool kPositive>
Values is_signed_inf(NodeContext& c) {
  Expr x = c.tensor("self");
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (!c.dtype(x).is_float()) return {everywhere<false>(c, x)};
  return {c.call("equal", {x, c.scalar_like(kPositive ? inf : -inf, x)})};
}
Values nan_to_num(NodeContext& c) {
  Expr x = c.tensor("self");
  if (!c.dtype(x).is_float()) return {x};
  constexpr double inf = std::numeric_limits<double>::infinity();
  const DataType dtype = c.dtype(x);
  const double largest = dtype == kFloat16    ? 65504
                         : dtype == kBFloat16 ? 0x1.fep127
                         : dtype == kFloat64  ? std::numeric_limits<double>::max()
                                              : std::numeric_limits<float>::max();
  Expr y = c.where(c.call("isnan", {x}), c.scalar(c.number("nan", 0), dtype), x);
  y = c.where(c.call("equal", {x, c.scalar(inf, dtype)}), c.scalar(c.number("posinf", largest), dtype), y);
  return {c.where(c.call("equal", {x, c.scalar(-inf, dtype)}), c.scalar(c.number("neginf", -largest), dtype), y)};
}

Values where(NodeContext& c) {
  if (!c.has("self")) {
    // where(condition) is nonzero(as_tuple=True).
    c.unsupported("the places where a condition holds");
  }
  const Value &a = c.value("self"), &b = c.value("other");
  const DataType dtype = c.promoted({&a, &b});
  return {c.where(c.cast(c.tensor("condition"), kBool), c.as_tensor(a, dtype), c.as_tensor(b, dtype))};
}
Values masked_fill(NodeContext& c) {
  Expr x = c.tensor("self");
  Expr value = c.as_tensor(c.value("value"), c.dtype(x));
  if (c.rank(value) > 0) value = c.reshape(value, {});
  return {c.where(c.cast(c.tensor("mask"), kBool), value, x)};
}

// NaN stays NaN. The result has the promoted type of the operands.
Expr clamped(NodeContext& c, const Value* low, const Value* high) {
  const Value& self = c.value("self");
  if (!low && !high) c.fail("it has no bound");
  DataType dtype = c.promoted({&self, low, high});
  Expr x = c.as_tensor(self, dtype);
  const bool simple = dtype.is_float() && (!low || (low->kind == Value::kNumber && c.known(low->expr))) &&
                      (!high || (high->kind == Value::kNumber && c.known(high->expr)));
  if (simple)
    return c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                    if (low) a.a_min = c.known(low->expr)->at_double(0);
                    if (high) a.a_max = c.known(high->expr)->at_double(0);
                    if (low && high) a.a_min = std::min(a.a_min, a.a_max);  // the upper bound wins
                  }));
  if (low) x = c.call("maximum", {x, c.as_tensor(*low, dtype)});
  if (high) x = c.call("minimum", {x, c.as_tensor(*high, dtype)});
  return x;
}
Values clamp(NodeContext& c) { return {clamped(c, c.find("min"), c.find("max"))}; }
Values clamp_min(NodeContext& c) { return {clamped(c, c.find("min"), nullptr)}; }
Values clamp_max(NodeContext& c) { return {clamped(c, nullptr, c.find("max"))}; }

Expr cast_to(NodeContext& c, const Expr& x, DataType to) {
  if (c.dtype(x) == to) return x;
  if (to.is_bool()) return c.call("not_equal", {x, c.zero_like(x)});
  return c.cast(x, to);
}
// The dtype is an argument, that of another tensor, or unchanged.
Values to(NodeContext& c) {
  Expr x = c.tensor("self");
  if (c.has("dtype")) return {cast_to(c, x, c.dtype_arg("dtype", kFloat32))};
  const Value* other = c.find("other");
  return {other && other->kind == Value::kTensor ? cast_to(c, x, c.dtype(other->expr)) : x};
}
Values type_as(NodeContext& c) { return {cast_to(c, c.tensor("self"), c.dtype(c.tensor("other")))}; }
template <TypeCode kCode, int kBits>
Values to_type(NodeContext& c) {
  return {cast_to(c, c.tensor("self"), DataType{kCode, kBits, 1})};
}

Values same(NodeContext& c) { return {c.tensor("self")}; }
Values same_input(NodeContext& c) { return {c.tensor("input")}; }
// src, cast and broadcast to self.
Values copy(NodeContext& c) {
  Expr self = c.tensor("self"), source = cast_to(c, c.tensor("src"), c.dtype(c.tensor("self")));
  return {c.broadcast_to(source, c.dims(self))};
}
Values fill(NodeContext& c) {
  Expr self = c.tensor("self"), value = c.as_tensor(c.value("value"), c.dtype(c.tensor("self")));
  return {c.broadcast_to(value, c.dims(self))};
}
Values zero(NodeContext& c) {
  Expr self = c.tensor("self");
  return {c.zeros(c.dtype(self), c.dims(self))};
}

// The in-place form names its argument differently.
Values dropout(NodeContext& c) {
  if (c.flag("train", false) && c.number("p", 0.5) > 0) c.unsupported("in training mode; call model.eval() before");
  return {c.positional(0).expr};
}
Values native_dropout(NodeContext& c) {
  if (c.flag("train", false)) c.unsupported("in training mode; call model.eval() before");
  Expr x = c.tensor("input");
  return {x, everywhere<true>(c, x)};
}
Values allclose_places(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const DataType dtype = c.promoted_real({&a, &b});
  Expr x = c.as_tensor(a, dtype), y = c.as_tensor(b, dtype);
  Expr bound = c.add(c.scalar(c.number("atol", 1e-8), dtype),
                     c.mul(c.scalar(c.number("rtol", 1e-5), dtype), c.call("abs", {y})));
  Expr near = c.call("less_equal", {c.call("abs", {c.sub(x, y)}), bound});
  return {c.call("logical_or", {c.call("equal", {x, y}), c.call("logical_and", {near, c.call("isfinite", {y})})})};
}

constexpr ConverterEntry kTable[] = {
    {"aten.eq", compare<kEqual>},
    {"aten.ne", compare<kNotEqual>},
    {"aten.not_equal", compare<kNotEqual>},
    {"aten.lt", compare<kLess>},
    {"aten.less", compare<kLess>},
    {"aten.le", compare<kLessEqual>},
    {"aten.less_equal", compare<kLessEqual>},
    {"aten.greater_equal", compare<kGreaterEqual>},
    {"aten.gt", compare<kGreater>},
    {"aten.greater", compare<kGreater>},
    {"aten.ge", compare<kGreaterEqual>},
    {"aten.isclose", allclose_places},
    {"aten.logical_and", logical<kAnd>},
    {"aten.logical_or", logical<kOr>},
    {"aten.logical_xor", logical<kXor>},
    {"aten.logical_not", logical_not},
    {"aten.isnan", is_nan},
    {"aten.isinf", is_inf},
    {"aten.isposinf", is_signed_inf<true>},
    {"aten.isneginf", is_signed_inf<false>},
    {"aten.isfinite", is_finite},
    {"aten.nan_to_num", nan_to_num},
    {"aten.where", where},
    {"aten.masked_fill", masked_fill},
    {"aten.clamp", clamp},
    {"aten.clip", clamp},
    {"aten.clamp_min", clamp_min},
    {"aten.clamp_max", clamp_max},
    {"aten.to", to},
    {"aten._to_copy", to},
    {"aten.type_as", type_as},
    {"prims.convert_element_type",
     [](NodeContext& c) -> Values { return {cast_to(c, c.tensor("a"), c.dtype_arg("dtype", kFloat32))}; }},
    {"aten.float", to_type<TypeCode::kFloat, 32>},
    {"aten.double", to_type<TypeCode::kFloat, 64>},
    {"aten.half", to_type<TypeCode::kFloat, 16>},
    {"aten.long", to_type<TypeCode::kInt, 64>},
    {"aten.int", to_type<TypeCode::kInt, 32>},
    {"aten.bool", to_type<TypeCode::kBool, 8>},
    {"aten.alias", same},
    {"aten.clone", same},
    {"aten.detach", same},
    {"aten.contiguous", same},
    {"aten.lift_fresh", same},
    {"aten.lift_fresh_copy", same},
    {"aten.alias_copy", same},
    {"aten.detach_copy", same},
    {"aten.positive", same},
    {"aten.cpu", same},
    {"aten.resolve_conj", same},
    {"aten.resolve_neg", same},
    {"aten.copy", copy},
    {"aten.fill", fill},
    {"aten.zero", zero},
    {"aten.dropout", dropout},
    {"aten.feature_dropout", dropout},
    {"aten.alpha_dropout", dropout},
    {"aten.native_dropout", native_dropout},
    {"aten.identity", same_input},
};

}  // namespace
}  // namespace comparison

std::span<const ConverterEntry> comparison_converters() { return comparison::kTable; }

}  // namespace tilewright::torch
