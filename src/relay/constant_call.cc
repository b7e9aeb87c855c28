// SPDX-License-Identifier: Apache-2.0
#include "relay/constant_call.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/format.h"
#include "relay/interpreter.h"
#include "relay/ops/attrs.h"
#include "relay/ops/tensor/layout.h"

namespace tilewright::relay {
namespace {

using Tensors = std::vector<Tensor>;

// A result of up to kAlwaysFolded bytes is folded, beyond that only up to 16 times the operands: a model of a few bytes
// must not be able to ask for gigabytes.
constexpr int64_t kAlwaysFolded = int64_t{1} << 20;

std::optional<std::vector<int64_t>> result_shape(const Expr& e) {
  const auto* t = as_tensor(e->type);
  return t ? static_shape(t->shape) : std::nullopt;
}

// Calls fn with a null pointer of an integer type as wide as the dtype's elements; false for widths that have none.
template <class F>
bool with_element(DataType t, F&& fn) {
  if (t.is_string() || t.lanes != 1) return false;
  switch (t.bits) {
    case 8:
      fn(static_cast<uint8_t*>(nullptr));
      return true;
    case 16:
      fn(static_cast<uint16_t*>(nullptr));
      return true;
    case 32:
      fn(static_cast<uint32_t*>(nullptr));
      return true;
    case 64:
      fn(static_cast<uint64_t*>(nullptr));
      return true;
    default:
      return false;
  }
}

std::optional<Tensor> transpose(const CallNode& call, const Tensor& in, const std::vector<int64_t>& shape) {
  const auto& axes = attrs_as<TransposeAttrs>(call.attrs)->axes;
  std::vector<int64_t> own = row_major_strides(in.shape()), strides;
  const auto rank = static_cast<int64_t>(own.size());
  for (int64_t i = 0; i < rank; ++i) {
    int64_t a = axes ? (*axes)[static_cast<size_t>(i)] : rank - 1 - i;
    strides.push_back(own[static_cast<size_t>(a < 0 ? a + rank : a)]);
  }
  Tensor out(in.dtype(), shape);
  bool ok = with_element(in.dtype(), [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    auto to = out.as_mutable<T>();
    auto from = in.as<T>();
    walk<1>(shape, {strides}, [&](int64_t o, const int64_t* at) { to[o] = from[at[0]]; });
  });
  return ok ? std::optional(out) : std::nullopt;
}

std::optional<Tensor> relayout_native(const CallNode& call, const Tensor& in, const std::vector<int64_t>& shape) {
  const auto& a = *attrs_as<LayoutTransformAttrs>(call.attrs);
  Result<Layout> from = parse_layout(a.src_layout), to = parse_layout(a.dst_layout);
  if (!from.ok() || !to.ok()) return std::nullopt;
  LayoutMap map(*from, *to, in.shape(), logical_sizes(*from, a.channels, a.in_channels));
  Tensor out(in.dtype(), shape);
  bool ok = with_element(in.dtype(), [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    auto dst = out.as_mutable<T>();
    auto src = in.as<T>();
    map.each([&](int64_t o, int64_t at) { dst[o] = at < 0 ? T{0} : src[at]; });
  });
  return ok ? std::optional(out) : std::nullopt;
}

std::optional<Tensor> concatenate(const CallNode& call, const Tensors& in, const std::vector<int64_t>& shape) {
  if (in[0].dtype().is_string() || in[0].dtype().bits % 8) return std::nullopt;
  int64_t axis = attrs_as<ConcatenateAttrs>(call.attrs)->axis;
  const auto k = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  Tensor out(in[0].dtype(), shape);
  const int64_t outer = product(shape, 0, k);
  if (outer == 0) return out;
  const uint64_t row = out.bytes() / static_cast<uint64_t>(outer);
  uint64_t at = 0;
  for (const Tensor& t : in) {
    const uint64_t part = t.bytes() / static_cast<uint64_t>(outer);
    for (int64_t o = 0; o < outer && part; ++o)
      std::memcpy(out.mutable_raw() + static_cast<uint64_t>(o) * row + at, t.raw() + static_cast<uint64_t>(o) * part,
                  part);
    at += part;
  }
  return out;
}

// For + - * / the float32 result equals the double result rounded to float32.
std::optional<Tensor> arithmetic(std::string_view op, const Tensor& a, const Tensor& b,
                                 const std::vector<int64_t>& shape) {
  if (a.dtype() != kFloat32 || b.dtype() != kFloat32) return std::nullopt;
  Tensor out(kFloat32, shape);
  auto to = out.as_mutable<float>();
  auto x = a.as<float>(), y = b.as<float>();
  auto run = [&](auto f) {
    walk<2>(shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)},
            [&](int64_t o, const int64_t* at) { to[o] = f(x[at[0]], y[at[1]]); });
    return std::optional(out);
  };
  if (op == "add") return run([](float p, float q) { return p + q; });
  if (op == "subtract") return run([](float p, float q) { return p - q; });
  if (op == "multiply") return run([](float p, float q) { return p * q; });
  if (op == "divide") return run([](float p, float q) { return p / q; });
  return std::nullopt;
}

std::optional<Tensor> native(const Expr& e, const Tensors& in) {
  const auto& call = *as<CallNode>(e);
  const std::string_view name = called_op(e)->name;
  auto shape = result_shape(e);
  if (!shape || in.empty()) return std::nullopt;
  const Elements elements = called_op(e)->facts.elements;
  if (elements == Elements::kReshaped) return in[0].reshaped(*shape);
  if (elements == Elements::kSame) return in[0];
  if (name == "transpose") return transpose(call, in[0], *shape);
  if (name == "layout_transform") return relayout_native(call, in[0], *shape);
  if (name == "concatenate") return concatenate(call, in, *shape);
  if (in.size() == 2) return arithmetic(name, in[0], in[1], *shape);
  return std::nullopt;
}

bool constant_operand(const Expr& e) {
  if (e->kind == ExprKind::kConstant) return true;
  const auto* tuple = as<TupleNode>(e);
  return tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(),
                              [](const Expr& f) { return f->kind == ExprKind::kConstant; });
}

}  // namespace

bool is_constant_call(const Expr& expr) {
  const OpDef* def = called_op(expr);
  const auto* call = as<CallNode>(expr);
  return def && !def->stateful && std::all_of(call->args.begin(), call->args.end(), constant_operand);
}

Result<std::vector<Tensor>> evaluate_constant_call(const Expr& expr) {
  TW_ICHECK(is_constant_call(expr), "constant call");
  const auto& call = *as<CallNode>(expr);
  Tensors in;
  std::vector<size_t> fields;
  for (const Expr& a : call.args) {
    if (const auto* c = as<ConstantNode>(a)) {
      fields.push_back(0);
      in.push_back(c->data);
      continue;
    }
    fields.push_back(as<TupleNode>(a)->fields.size());
    for (const Expr& f : as<TupleNode>(a)->fields) in.push_back(as<ConstantNode>(f)->data);
  }
  if (auto shape = result_shape(expr)) {
    int64_t given = kAlwaysFolded;
    for (const Tensor& t : in) given = std::max(given, t.size());
    int64_t n = TW_TRY(checked_element_count(*shape));
    if (n / 16 > given)
      return Diagnostic(ErrorCode::kLimitExceeded, format("folding would make {} elements out of at most {}", n, given),
                        called_op(expr)->name);
  }
  if (auto out = native(expr, in)) return Tensors{*out};
  std::vector<Value> values;
  for (const Tensor& t : in) values.push_back(value_from(t));
  Tensors out;
  Result<std::vector<Value>> results = evaluate_op(*called_op(expr), values, fields, call.attrs, expr->type);
  if (!results.ok()) return std::move(results).error().at(called_op(expr)->name);
  for (const Value& v : *results) out.push_back(to_tensor(v));
  return out;
}

}  // namespace tilewright::relay
