// SPDX-License-Identifier: Apache-2.0
// Rules of SimplifyExpr about arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>

#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/passes/pipeline/simplify_expr.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The value that all elements of a constant or filled tensor share.
std::optional<double> one_number(const Expr& e) {
  if (is_call_to(e, "zeros") || is_call_to(e, "zeros_like")) return 0;
  if (is_call_to(e, "ones") || is_call_to(e, "ones_like")) return 1;
  if (is_call_to(e, "full")) return uniform_value(arg(e, 0));
  if (is_call_to(e, "full_like")) return uniform_value(arg(e, 1));
  return uniform_value(e);
}
// An operand filled with one value becomes a scalar, if the other operand has the result's type.
Expr with_scalar(const Expr& e) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Expr &filled = arg(e, i), &other = arg(e, 1 - i);
    const auto number = one_number(filled);
    if (!number || tensor_of(filled).shape.empty() || !same_tensor_type(filled, e) || !same_tensor_type(other, e) ||
        one_number(other))
      continue;
    std::vector<Expr> args = as<CallNode>(e)->args;
    args[i] = full_constant(*number, tensor_of(filled).dtype);
    return call(called_op(e)->name, std::move(args), as<CallNode>(e)->attrs, e->span);
  }
  return {};
}

// x op neutral -> x, with the constant on either side, if the type is unchanged.
Expr drop_neutral(const Expr& e, double neutral, bool right_only = false) {
  if (one_number(arg(e, 1)) == neutral && same_tensor_type(arg(e, 0), e)) return arg(e, 0);
  if (!right_only && one_number(arg(e, 0)) == neutral && same_tensor_type(arg(e, 1), e)) return arg(e, 1);
  return {};
}

// (x op c1) op c2 -> x op (c1 op c2) for associative and commutative operators; only if the merged constant is not
// larger than both.
Expr merge_constants(const Expr& e, const char* op) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Expr &outer = arg(e, i), &inner = arg(e, 1 - i);
    if (!constant_data(outer) || !is_call_to(inner, op)) continue;
    for (size_t j : {size_t{0}, size_t{1}}) {
      const Expr &c = arg(inner, j), &x = arg(inner, 1 - j);
      if (!constant_data(c) || constant_data(x)) continue;
      auto merged = try_call(op, {c, outer}, {}, outer->span);
      if (!merged.ok()) continue;
      Expr folded = fold_expr(*merged, kFoldBytes);
      const Tensor* data = constant_data(folded);
      if (!data || data->size() > std::max(constant_data(c)->size(), constant_data(outer)->size())) continue;
      auto out = try_call(op, {x, folded}, {}, join_spans(inner->span, e->span));
      if (out.ok() && type_equal((*out)->type, e->type)) return *out;
    }
  }
  return {};
}

Expr simplify_add(const Expr& e) {
  if (Expr out = drop_neutral(e, 0)) return out;
  return merge_constants(e, "add");
}

Expr simplify_multiply(const Expr& e) {
  if (Expr out = drop_neutral(e, 1)) return out;
  return merge_constants(e, "multiply");
}

Expr simplify_subtract(const Expr& e) {
  if (Expr out = drop_neutral(e, 0, true)) return out;
  // x - c -> x + (-c), so that chains of constants can be merged; not for unsigned integers.
  const Expr& c = arg(e, 1);
  if (!constant_data(c) || !(is_float_tensor(c) || tensor_of(c).dtype.is_int())) return {};
  return call("add", {arg(e, 0), fold_expr(call("negative", {c}, {}, c->span), kFoldBytes)}, {}, e->span);
}

Expr simplify_divide(const Expr& e) {
  if (Expr out = drop_neutral(e, 1, true)) return out;
  if (!is_float_tensor(e)) return {};
  const Expr &x = arg(e, 0), &y = arg(e, 1);
  if (is_call_to(y, "sqrt")) {
    Expr inverse = call("rsqrt", {arg(y, 0)}, {}, y->span);
    if (is_uniform(x, 1) && same_tensor_type(inverse, e)) return inverse;
    // Pays off when the root has fewer elements than the dividend: a normalisation's deviation. A constant dividend is
    // multiplied, as in the classic pass.
    if (!same_tensor_type(y, e) || constant_data(x)) return call("multiply", {x, inverse}, {}, e->span);
  }
  // 1 / (1 + exp(-z))
  if (is_uniform(x, 1) && is_call_to(y, "add")) {
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr& power = arg(y, 1 - i);
      if (!is_uniform(arg(y, i), 1) || !is_call_to(power, "exp") || !is_call_to(arg(power, 0), "negative")) continue;
      Expr out = call("sigmoid", {arg(arg(power, 0), 0)}, {}, e->span);
      if (same_tensor_type(out, e)) return out;
    }
  }
  const Tensor* c = constant_data(y);
  if (!c || constant_data(x)) return {};
  for (int64_t i = 0; i < c->size(); ++i) {
    double inverse = 1 / c->at_double(i);
    // Not when the inverse is subnormal or overflows: that would lose more than a rounding error.
    if (!std::isfinite(inverse) || std::fabs(inverse) < std::numeric_limits<float>::min() ||
        std::fabs(inverse) > std::numeric_limits<float>::max())
      return {};
  }
  Expr inverse = fold_expr(call("divide", {make_scalar(1, c->dtype()), y}, {}, y->span), kFoldBytes);
  return call("multiply", {x, inverse}, {}, e->span);
}

Expr simplify_power(const Expr& e) {
  auto exponent = uniform_value(arg(e, 1));
  const Expr& x = arg(e, 0);
  if (!exponent || !same_tensor_type(x, e)) return {};
  if (*exponent == 1) return x;
  Expr square = *exponent == 2 || *exponent == 3 ? call("multiply", {x, x}, {}, e->span) : Expr();
  if (*exponent == 2) return square;
  if (*exponent == 3) return call("multiply", {square, x}, {}, e->span);
  if (!is_float_tensor(x)) return {};
  if (*exponent == 0.5) return call("sqrt", {x}, {}, e->span);
  if (*exponent == -0.5) return call("rsqrt", {x}, {}, e->span);
  return {};
}

// The bounds of clip-like operators with scalar limits.
struct Bounds {
  Expr source;
  double low = -kInfinity, high = kInfinity;
};
std::optional<Bounds> bounds_of(const Expr& e) {
  if (is_call_to(e, "nn.relu")) return Bounds{arg(e, 0), 0, kInfinity};
  if (is_call_to(e, "clip")) return Bounds{arg(e, 0), attrs_of<ClipAttrs>(e).a_min, attrs_of<ClipAttrs>(e).a_max};
  bool low = is_call_to(e, "maximum");
  if (!low && !is_call_to(e, "minimum")) return std::nullopt;
  for (size_t i : {size_t{0}, size_t{1}}) {
    auto limit = uniform_value(arg(e, i));
    if (!limit || !same_tensor_type(arg(e, 1 - i), e)) continue;
    return low ? Bounds{arg(e, 1 - i), *limit, kInfinity} : Bounds{arg(e, 1 - i), -kInfinity, *limit};
  }
  return std::nullopt;
}

Expr clipped(const Expr& x, double low, double high, const Span& span) {
  if (low == 0 && high == kInfinity) return call("nn.relu", {x}, {}, span);
  return call("clip", {x}, make_attrs<ClipAttrs>([&](auto& a) {
                a.a_min = low;
                a.a_max = high;
              }),
              span);
}

// Floats only: infinite bounds have no integer equivalent. Not when the merged range is empty or a single value.
Expr merge_clips(const Expr& e) {
  if (!is_float_tensor(e)) return {};
  auto outer = bounds_of(e);
  if (!outer || constant_data(outer->source)) return {};
  if (outer->low == -kInfinity && outer->high == kInfinity) return outer->source;
  auto inner = bounds_of(outer->source);
  if (inner && std::max(inner->low, outer->low) <= std::min(inner->high, outer->high))
    return clipped(inner->source, std::max(inner->low, outer->low), std::min(inner->high, outer->high), e->span);
  bool is_relu = outer->low == 0 && outer->high == kInfinity;
  if (is_call_to(e, "nn.relu") || (is_call_to(e, "clip") && !is_relu)) return {};
  return clipped(outer->source, outer->low, outer->high, e->span);
}

// Removes bounds that the dtype's integers cannot exceed.
Expr drop_idle_clip(const Expr& e) {
  const DataType dtype = tensor_of(e).dtype;
  if (!dtype.is_integral() || dtype.bits > 32) return {};
  const auto& a = attrs_of<ClipAttrs>(e);
  const bool idle = a.a_min <= static_cast<double>(lowest(dtype)) && a.a_max >= static_cast<double>(highest(dtype));
  return idle ? arg(e, 0) : Expr();
}

// Comparison of dequantized values as comparison of integers: equal for a positive scale that keeps neighbouring
// integers distinct in float32.
Expr order_of_integers(const Expr& e) {
  const Expr& real = arg(e, 0);
  if (!is_call_to(real, "qnn.dequantize")) return {};
  const auto scale = uniform_value(arg(real, 1)), zero = uniform_value(arg(real, 2));
  const bool apart = scale && zero && *scale > 1e-30 && *scale < 1e30 && tensor_of(arg(real, 0)).dtype.bits <= 16 &&
                     tensor_of(real).dtype == kFloat32;
  return apart ? with_children(e, {arg(real, 0)}) : Expr();
}

Expr double_negation(const Expr& e) { return called_op(e) == called_op(arg(e, 0)) ? arg(arg(e, 0), 0) : Expr(); }

constexpr SimplifyRule kArithmeticRules[] = {
    {"add", simplify_add},
    {"add", with_scalar},
    {"multiply", simplify_multiply},
    {"multiply", with_scalar},
    {"subtract", simplify_subtract},
    {"subtract", with_scalar},
    {"divide", simplify_divide},
    {"divide", with_scalar},
    {"power", simplify_power},
    {"nn.relu", merge_clips},
    {"clip", merge_clips},
    {"clip", drop_idle_clip},
    {"argmax", order_of_integers},
    {"argmin", order_of_integers},
    {"argsort", order_of_integers},
    {"maximum", merge_clips},
    {"minimum", merge_clips},
    {"negative", double_negation},
    {"logical_not", double_negation},
};

}  // namespace

std::span<const SimplifyRule> arithmetic_rules() { return kArithmeticRules; }

}  // namespace tilewright::relay
