// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/quantize/canonicalize_qnn.h"

#include <algorithm>
#include <vector>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/ops/quantize/fixed_point.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/passes/quantize/byte_products.h"

namespace tilewright::relay {
namespace {

// A scale or zero point as `dtype`, broadcastable to data of `rank` axes: a scalar, or a vector along `axis`.
Expr beside(const Expr& v, size_t rank, int64_t axis, DataType dtype) {
  const auto& shape = tensor_of(v).shape;
  if (shape.empty()) return cast(v, dtype);
  std::vector<int64_t> wide;
  if (shape[0] != Dim(1)) {
    wide.assign(static_cast<size_t>(static_cast<int64_t>(rank) - positive_axis(axis, rank)), 1);
    wide[0] = -1;
    if (shape[0].is_const()) wide[0] = shape[0].value();
  }
  return cast(reshape_to(v, wide), dtype);
}

// saturate(x + zero point) as integers; x holds whole numbers in floating point.
Expr saturated(const Expr& x, const Expr& zero, DataType to) {
  Expr bounded = call("clip", {both("add", x, zero)}, make_attrs<ClipAttrs>([&](auto& a) {
                        a.a_min = static_cast<double>(lowest(to));
                        a.a_max = static_cast<double>(highest(to));
                      }),
                      x->span);
  return cast(bounded, to);
}

// Rounds ties towards plus infinity, as the classic requantisation does.
Expr rounded_upward(const Expr& x) { return one("floor", both("add", x, full_constant(0.5, tensor_of(x).dtype))); }
Expr rounded_away(const Expr& x) {
  Expr size = rounded_upward(one("abs", x));
  return both("multiply", one("sign", x), size);
}

// Dequantises to dtype `work`.
Expr real(const Expr& x, const Expr& scale, const Expr& zero, int64_t axis, DataType work) {
  const size_t rank = tensor_of(x).shape.size();
  const bool narrow = tensor_of(x).dtype.bits <= 16 || work == kFloat64;
  // Differences of 32-bit integers must be taken in int32, unless sums of products are known to be small.
  const DataType first = narrow ? work : kInt32;
  Expr difference = both("subtract", cast(x, first), beside(zero, rank, axis, first));
  return both("multiply", cast(difference, work), beside(scale, rank, axis, work));
}

Expr folded(const Expr& e) { return fold_expr(e, int64_t{1} << 24); }

// fixed_point(scale / out_scale), both float64. If known only at run time, the ratio is rounded to 31 bits by
// Veltkamp's splitting.
Expr multiplier(const Expr& scale, const Expr& out_scale) {
  Expr ratio = folded(both("divide", folded(scale), folded(out_scale)));
  if (const Tensor* known = constant_data(ratio)) {
    Tensor exact(kFloat64, known->shape());
    for (int64_t i = 0; i < known->size(); ++i) exact.set_double(i, fixed_point(known->at_double(i)));
    return make_constant(std::move(exact));
  }
  Expr wide = both("multiply", ratio, full_constant(0x1p22 + 1, kFloat64));
  return both("subtract", wide, both("subtract", wide, ratio));
}

// x in whole steps of the output's scale, in float64, where all such products are exact.
Expr in_output_steps(const Expr& x, const Expr& scale, const Expr& zero, int64_t axis, const Expr& out_scale,
                     bool away) {
  const size_t rank = tensor_of(x).shape.size();
  Expr difference = both("subtract", cast(x, kFloat64), beside(zero, rank, axis, kFloat64));
  Expr y = both("multiply", difference,
                multiplier(beside(scale, rank, axis, kFloat64), beside(out_scale, rank, 0, kFloat64)));
  return away ? rounded_away(y) : rounded_upward(y);
}

Expr requantized(const Expr& x, const Expr& scale, const Expr& zero, int64_t axis, const Expr& out_scale,
                 const Expr& out_zero, DataType to, bool away) {
  return saturated(in_output_steps(x, scale, zero, axis, out_scale, away),
                   beside(out_zero, tensor_of(x).shape.size(), 0, kFloat64), to);
}

Expr quantized(const Expr& x, const Expr& scale, const Expr& zero, int64_t axis, DataType to, bool even = false) {
  const size_t rank = tensor_of(x).shape.size();
  const DataType work = tensor_of(x).dtype.bits >= 32 ? tensor_of(x).dtype : kFloat32;
  Expr ratio = both("divide", cast(x, work), beside(scale, rank, axis, work));
  return saturated(one(even ? "nearbyint" : "round", ratio), beside(zero, rank, axis, work), to);
}

// The same with integer arithmetic after the rounding, cheaper where no vector unit compares these floats.
Expr quantized_by_integers(const Expr& x, const Expr& scale, const Expr& zero, int64_t axis, DataType to) {
  const size_t rank = tensor_of(x).shape.size();
  const Expr ratio = both("divide", cast(x, kFloat32), beside(scale, rank, axis, kFloat32));
  return saturated(cast(one("nearbyint", ratio), kInt32), beside(zero, rank, axis, kInt32), to);
}

// Requantises each operand to the result's scale, then adds.
Expr sum(const Expr& e, const char* op) {
  const auto& a = attrs_of<BroadcastAttrs>(e);
  Expr both_sides = both(op, in_output_steps(arg(e, 0), arg(e, 2), arg(e, 3), a.lhs_axis, arg(e, 6), false),
                         in_output_steps(arg(e, 1), arg(e, 4), arg(e, 5), a.rhs_axis, arg(e, 6), false));
  return saturated(both_sides, beside(arg(e, 7), tensor_of(e).shape.size(), 0, kFloat64), tensor_of(e).dtype);
}

// The integer product, requantised from the product of the scales.
Expr product(const Expr& e) {
  const auto& a = attrs_of<BroadcastAttrs>(e);
  const size_t rank = tensor_of(e).shape.size();
  auto side = [&](size_t x, size_t scale, int64_t axis) {
    const size_t own = tensor_of(arg(e, x)).shape.size();
    Expr integers = both("subtract", cast(arg(e, x), kFloat64), beside(arg(e, scale + 1), own, axis, kFloat64));
    return std::pair(integers, beside(arg(e, scale), own, axis, kFloat32));
  };
  auto [left, left_scale] = side(0, 2, a.lhs_axis);
  auto [right, right_scale] = side(1, 4, a.rhs_axis);
  Expr scale = cast(folded(both("multiply", folded(left_scale), folded(right_scale))), kFloat64);
  Expr steps = rounded_upward(
      both("multiply", both("multiply", left, right), multiplier(scale, beside(arg(e, 6), rank, 0, kFloat64))));
  return saturated(steps, beside(arg(e, 7), rank, 0, kFloat64), tensor_of(e).dtype);
}

// The integer operator on operands minus their zero points.
Expr contraction(const Expr& e, const char* op, const AttrsRef& attrs, int64_t output_axis) {
  auto centered = [&](const Expr& x, const Expr& zero, int64_t axis) {
    if (is_uniform(zero, 0)) return cast(x, kInt32);
    return both("subtract", cast(x, kInt32), beside(zero, tensor_of(x).shape.size(), axis, kInt32));
  };
  Expr sum = call(op, {centered(arg(e, 0), arg(e, 2), 0), centered(arg(e, 1), arg(e, 3), output_axis)}, attrs, e->span);
  return cast(with_one_filter_a_row(sum), tensor_of(e).dtype);
}
// Copies the attributes, with the operands' dtype as the result's.
template <class A>
AttrsRef in_operand_dtype(const Expr& e) {
  AttrsRef copy(attrs_of<A>(e).clone());
  const_cast<A*>(attrs_as<A>(copy))->out_dtype.clear();
  return copy;
}

Expr unary(const Expr& e) {
  const std::string name = called_op(e)->name;
  Expr x = real(arg(e, 0), arg(e, 1), arg(e, 2), -1, kFloat32);
  Expr y;
  if (name == "qnn.hardswish") {
    Expr gate = call("clip", {both("add", x, full_constant(3, kFloat32))}, make_attrs<ClipAttrs>([](auto& a) {
                       a.a_min = 0;
                       a.a_max = 6;
                     }),
                     e->span);
    y = both("divide", both("multiply", x, gate), full_constant(6, kFloat32));
  } else if (name == "qnn.leaky_relu") {
    y = call("nn.leaky_relu", {x}, as<CallNode>(e)->attrs, e->span);
  } else {
    y = call(name.substr(4), {x}, {}, e->span);
  }
  return quantized(y, arg(e, 3), arg(e, 4), -1, tensor_of(e).dtype);
}

Expr concatenated(const Expr& e) {
  const auto& types = as_tuple(arg(e, 0)->type)->fields;
  auto field = [&](size_t operand, size_t i) {
    const auto* tuple = as<TupleNode>(arg(e, operand));
    return tuple ? tuple->fields[i] : make_get(arg(e, operand), static_cast<int64_t>(i));
  };
  std::vector<Expr> fields;
  for (size_t i = 0; i < types.size(); ++i)
    fields.push_back(
        requantized(field(0, i), field(1, i), field(2, i), -1, arg(e, 3), arg(e, 4), tensor_of(e).dtype, false));
  return call("concatenate", {make_tuple(std::move(fields))}, as<CallNode>(e)->attrs, e->span);
}

// Whether all sums of a product of bytes by constant bytes are exact in float32 (below 2^24).
bool sums_fit_float32(const Expr& product) {
  const bool is_conv = is_call_to(product, "qnn.conv2d");
  if (!is_conv && !is_call_to(product, "qnn.dense")) return false;
  const DataType x = tensor_of(arg(product, 0)).dtype;
  const Expr weight = fold_expr(arg(product, 1), int64_t{1} << 28), x_zero = folded(arg(product, 2)),
             w_zero = folded(arg(product, 3));
  const Tensor *w = constant_data(weight), *zx = constant_data(x_zero), *zw = constant_data(w_zero);
  if (!w || !zx || !zw || zx->size() != 1 || w->size() == 0 || x.bits != 8) return false;
  const size_t axis = is_conv ? attrs_of<Conv2DAttrs>(product).kernel_layout.find('O') : 0;
  const int64_t outputs = w->shape().at(axis), low = lowest(x) - zx->at_int(0), high = highest(x) - zx->at_int(0);
  if (zw->size() != 1 && zw->size() != outputs) return false;
  int64_t inner = 1;
  for (size_t d = axis + 1; d < w->shape().size(); ++d) inner *= w->shape()[d];
  std::vector<int64_t> most(static_cast<size_t>(outputs), 0), least = most;
  for (int64_t i = 0; i < w->size(); ++i) {
    const auto o = static_cast<size_t>(i / inner % outputs);
    const int64_t v = w->at_int(i) - zw->at_int(zw->size() == 1 ? 0 : static_cast<int64_t>(o));
    most[o] += std::max(v * low, v * high), least[o] += std::min(v * low, v * high);
  }
  constexpr int64_t kWhole = int64_t{1} << 24;
  return *std::max_element(most.begin(), most.end()) <= kWhole &&
         *std::min_element(least.begin(), least.end()) >= -kWhole;
}

// A product with a native kernel: its sums do not depend on scales. Without padding, the zero point contributes a
// constant per output.
Expr with_plain_scales(const Expr& e) {
  const bool is_conv = is_call_to(e, "qnn.conv2d");
  const Expr weight = folded(arg(e, 1)), zero = folded(arg(e, 2)), one_scale = full_constant(1, kFloat32, {});
  const Tensor& w = *constant_data(weight);
  const int64_t z = constant_data(zero)->at_int(0), outputs = w.shape()[0];
  bool shared = z != 0 && w.size() > 0;
  if (is_conv) {
    const auto& padding = attrs_of<Conv2DAttrs>(e).padding;
    shared &= std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; });
  }
  const Expr zero_left = full_constant(shared ? 0 : static_cast<double>(z), kInt32, {});
  Expr sum =
      call(called_op(e)->name, {arg(e, 0), weight, zero_left, full_constant(0, kInt32, {}), one_scale, one_scale},
           as<CallNode>(e)->attrs, e->span);
  if (!shared) return sum;
  Tensor share(kInt32, is_conv ? std::vector<int64_t>{outputs, 1, 1} : std::vector<int64_t>{outputs});
  const int64_t inner = w.size() / outputs;
  for (int64_t o = 0; o < outputs; ++o) {
    int64_t total = 0;
    for (int64_t i = 0; i < inner; ++i) total += w.at_int(o * inner + i);
    share.set_int(o, -z * total);
  }
  return both("add", sum, make_constant(std::move(share)));
}

// `original`: before its operands were rewritten.
Expr canonicalize_call(const Expr& original, const Expr& e, const Target* target) {
  const OpDef* op = called_op(e);
  const std::string_view name = op ? op->name : "";
  if (name.substr(0, 4) != "qnn.") return e;
  if (target != nullptr && keeps_bytes(e, *target)) return with_plain_scales(e);
  if (name == "qnn.quantize" && target != nullptr && keeps_bytes(*target) && tensor_of(arg(e, 0)).dtype == kFloat32 &&
      tensor_of(e).dtype.bits == 8 && attrs_of<QuantizeAttrs>(e).rounding == "TONEVEN")
    return quantized_by_integers(arg(e, 0), arg(e, 1), arg(e, 2), attrs_of<QuantizeAttrs>(e).axis, tensor_of(e).dtype);
  if (name == "qnn.quantize")
    return quantized(arg(e, 0), arg(e, 1), arg(e, 2), attrs_of<QuantizeAttrs>(e).axis, tensor_of(e).dtype,
                     attrs_of<QuantizeAttrs>(e).rounding == "TONEVEN");
  if (name == "qnn.dequantize") {
    // Differences of integers above 16 bits exceed float32, unless known to be small; then both ways give the scaled
    // product, rounded once.
    const bool wide =
        tensor_of(arg(e, 0)).dtype.bits > 16 && !(is_uniform(arg(e, 2), 0) && sums_fit_float32(arg(original, 0)));
    const DataType to = tensor_of(e).dtype, work = wide ? kFloat64 : to.bits >= 32 ? to : kFloat32;
    return cast(real(arg(e, 0), arg(e, 1), arg(e, 2), attrs_of<DequantizeAttrs>(e).axis, work), to);
  }
  if (name == "qnn.requantize") {
    const auto& a = attrs_of<RequantizeAttrs>(e);
    return requantized(arg(e, 0), arg(e, 1), arg(e, 2), a.axis, arg(e, 3), arg(e, 4), tensor_of(e).dtype,
                       a.rounding == "TONEAREST");
  }
  if (name == "qnn.add") return sum(e, "add");
  if (name == "qnn.subtract") return sum(e, "subtract");
  if (name == "qnn.mul") return product(e);
  if (name == "qnn.concatenate") return concatenated(e);
  if (name == "qnn.conv2d") {
    const auto o = static_cast<int64_t>(attrs_of<Conv2DAttrs>(e).kernel_layout.find('O'));
    return contraction(e, "nn.conv2d", in_operand_dtype<Conv2DAttrs>(e), o);
  }
  if (name == "qnn.conv2d_transpose")
    return contraction(e, "nn.conv2d_transpose", in_operand_dtype<Conv2DTransposeAttrs>(e), 1);
  if (name == "qnn.dense") return contraction(e, "nn.dense", in_operand_dtype<DenseAttrs>(e), 0);
  if (name == "qnn.batch_matmul") return contraction(e, "nn.batch_matmul", in_operand_dtype<BatchMatmulAttrs>(e), 0);
  return unary(e);
}

}  // namespace

Result<Module> canonicalize_qnn(const Module& module, PassContext& context) {
  const Target* target = context.target ? &*context.target : nullptr;
  return rewrite_module(module,
                        [&](const Expr& original, const Expr& e) { return canonicalize_call(original, e, target); });
}

}  // namespace tilewright::relay
