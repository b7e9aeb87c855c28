// SPDX-License-Identifier: Apache-2.0
// Rules for products and for binary operators.
#include <algorithm>
#include <cmath>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/quantize/fake_quantized_region.h"

namespace tilewright::relay {

std::optional<FakeQuantizedRegion::Operands> FakeQuantizedRegion::product(const Expr& e, int64_t weight_axis,
                                                                          int64_t result_axis) {
  Found x = integers(arg(e, 0), false), w = integers(arg(e, 1), false);
  if (!x || !w || !x->as.uniform() || !is_byte(x->as.dtype) || !is_byte(w->as.dtype)) return std::nullopt;
  if (!w->as.uniform() && w->as.axis != weight_axis) return std::nullopt;
  Affine as{w->as.scale, {0}, kInt32, result_axis};
  for (float& s : as.scale) s *= x->as.scale[0];
  Operands out{*x, *w, {}, as};
  out.args = {x->integers, w->integers, zero_expr(x->as), zero_expr(w->as), scale_expr(x->as), scale_expr(w->as)};
  return out;
}

template <class A>
Found FakeQuantizedRegion::product_call(const Expr& e, const char* op, const std::optional<Operands>& o) {
  if (!o) return std::nullopt;
  AttrsRef attrs(attrs_of<A>(e).clone());
  const_cast<A*>(attrs_as<A>(attrs))->out_dtype = "int32";
  auto made = try_call(op, o->args, attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, o->as};
}

Found FakeQuantizedRegion::conv2d(const Expr& e) {
  const auto& a = attrs_of<Conv2DAttrs>(e);
  if (a.data_layout.size() != 4 || a.kernel_layout.size() != 4 ||
      !(a.out_layout.empty() || a.out_layout == a.data_layout))
    return std::nullopt;
  return product_call<Conv2DAttrs>(
      e, "qnn.conv2d",
      product(e, static_cast<int64_t>(a.kernel_layout.find('O')), static_cast<int64_t>(a.data_layout.find('C'))));
}

Found FakeQuantizedRegion::conv2d_transpose(const Expr& e) {
  const auto& a = attrs_of<Conv2DTransposeAttrs>(e);
  if (a.data_layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == a.data_layout)) return std::nullopt;
  auto o = product(e, 1, 1);
  if (o && a.groups != 1 && !o->w.as.uniform()) return std::nullopt;
  return product_call<Conv2DTransposeAttrs>(e, "qnn.conv2d_transpose", o);
}

Found FakeQuantizedRegion::dense(const Expr& e) {
  return product_call<DenseAttrs>(e, "qnn.dense", product(e, 0, static_cast<int64_t>(tensor_of(e).shape.size()) - 1));
}

Found FakeQuantizedRegion::matmul(const Expr& e) {
  const auto& a = attrs_of<MatmulAttrs>(e);
  if (a.transpose_a || tensor_of(arg(e, 1)).shape.size() != 2) return std::nullopt;
  auto o = product(e, a.transpose_b ? 0 : 1, static_cast<int64_t>(tensor_of(e).shape.size()) - 1);
  if (!o) return std::nullopt;
  if (!a.transpose_b) o->args[1] = transposed(o->args[1], {1, 0}, arg(e, 1)->span);
  auto made = try_call("qnn.dense", o->args, make_attrs<DenseAttrs>([&](auto& d) {
                         d.units = a.units;
                         d.out_dtype = "int32";
                       }),
                       e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, o->as};
}

Found FakeQuantizedRegion::batch_matmul(const Expr& e) {
  auto o = product(e, -1, 0);
  if (o && !o->w.as.uniform()) return std::nullopt;
  return product_call<BatchMatmulAttrs>(e, "qnn.batch_matmul", o);
}

Found FakeQuantizedRegion::bias_constant(const Expr& e, const Affine& like, size_t rank,
                                         const std::optional<int64_t>& axis) {
  const Tensor* t = constant_data(e);
  if (!t || !t->dtype().is_float()) return std::nullopt;
  const auto own = static_cast<size_t>(t->rank());
  Tensor out(kInt32, t->shape());
  // The constant's axis along which the scale varies; -1: none.
  int64_t along = -1;
  if (!like.uniform()) {
    along = axis ? 0 : like.axis - static_cast<int64_t>(rank - own);
    if (axis && positive_axis(*axis, rank) != like.axis) return std::nullopt;
    const int64_t n = static_cast<int64_t>(like.scale.size());
    // A single value would be a different number of steps in each channel.
    if (along < 0 || t->shape()[static_cast<size_t>(along)] != n) return std::nullopt;
  }
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(along + 1); along >= 0 && d < own; ++d) inner *= t->shape()[d];
  for (int64_t i = 0; i < t->size(); ++i) {
    const auto channel =
        along < 0 ? size_t{0} : static_cast<size_t>(i / inner % static_cast<int64_t>(like.scale.size()));
    const double steps = std::round(t->at_double(i) / like.scale[channel]);
    if (!(std::fabs(steps) <= 1 << 30)) return std::nullopt;
    out.set_int(i, static_cast<int64_t>(steps));
  }
  return Quantized{make_constant(std::move(out), e->span), like};
}

Found FakeQuantizedRegion::scaled_by_constant(const Expr& e) {
  const bool left = called_op(e)->name == std::string_view("multiply") && constant_data(arg(e, 0));
  const Expr &x = arg(e, left ? 1 : 0), &by = arg(e, left ? 0 : 1);
  const auto factor = uniform_value(by);
  if (!factor || !(*factor > 0) || !std::isfinite(*factor) || !same_tensor_type(x, e)) return std::nullopt;
  Found out = integers(x, false);
  if (!out) return out;
  for (float& s : out->as.scale) {
    s = static_cast<float>(called_op(e)->name == std::string_view("divide") ? s / *factor : s * *factor);
    if (!(s > 0) || !std::isfinite(s)) return std::nullopt;
  }
  return out;
}

Found FakeQuantizedRegion::byte_constant(const Expr& e, DataType dtype) {
  const Tensor* t = constant_data(e);
  if (!t || !t->dtype().is_float() || t->size() == 0 || !is_byte(dtype)) return std::nullopt;
  double most = 0, least = 0;
  for (int64_t i = 0; i < t->size(); ++i) {
    const double v = t->at_double(i);
    if (!std::isfinite(v)) return std::nullopt;
    most = std::max(most, v), least = std::min(least, v);
  }
  const bool one = uniform_value(e).has_value();
  const double steps = one ? 1 : 127;
  const auto scale = static_cast<float>(std::max(most, -least) / steps);
  Affine as{{scale > 0 ? scale : 1}, {dtype == kUInt8 && least < 0 ? 128 : 0}, dtype, 0};
  Tensor out(dtype, t->shape());
  for (int64_t i = 0; i < t->size(); ++i)
    out.set_int(i, std::clamp(std::llround(t->at_double(i) / as.scale[0]) + as.zero[0],
                              static_cast<long long>(lowest(dtype)), static_cast<long long>(highest(dtype))));
  return Quantized{make_constant(std::move(out), e->span), as};
}

Found FakeQuantizedRegion::side(const Expr& e, bool direct) {
  return constant_data(e) ? byte_constant(e, target_.dtype) : integers(e, direct);
}

Found FakeQuantizedRegion::chosen(const Expr& e, bool direct) {
  const size_t first = is_call_to(e, "where") ? 1 : 0;  // after the condition
  Found a = side(arg(e, first), false), b = side(arg(e, first + 1), false);
  if (!a || !b || !a->as.uniform() || !b->as.uniform()) return std::nullopt;
  Affine as = a->as;
  if (!same_numbers(a->as, b->as)) {
    if (!direct || !target_.uniform()) return std::nullopt;
    as = target_;
    for (Found* x : {&a, &b}) {
      auto made = requantize((*x)->integers, (*x)->as, as, e->span);
      if (!made.ok()) return std::nullopt;
      (*x)->integers = *made;
    }
  }
  std::vector<Expr> args{a->integers, b->integers};
  if (first) args.insert(args.begin(), arg(e, 0));
  auto made = try_call(called_op(e)->name, std::move(args), {}, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, as};
}

Found FakeQuantizedRegion::from_zero(const Expr& e) {
  Found x = integers(arg(e, 0), false);
  if (!x || !x->as.uniform() || x->as.dtype.bits > 16) return std::nullopt;
  Expr steps = cast(x->integers, kInt32);
  if (!x->as.centred()) steps = call("subtract", {steps, zero_expr(x->as)}, {}, e->span);
  return Quantized{call(called_op(e)->name, {steps}, {}, e->span), {x->as.scale, {0}, kInt32, 0}};
}

Found FakeQuantizedRegion::sum(const Expr& e, bool direct, const std::optional<int64_t>& bias_axis) {
  const std::string name = called_op(e)->name;
  const size_t rank = tensor_of(e).shape.size();
  Expr first = arg(e, 0), second = arg(e, 1);
  // A sum with the constant on the left is treated as one on the right.
  const bool swapped = name == "add" && constant_data(first);
  if (swapped) std::swap(first, second);
  if (name != "multiply") {
    const bool literal = constant_data(second) != nullptr;
    // An addend of a sum of products takes the sum's scale; otherwise operands take the quantize's.
    Found x = integers(first, direct && !literal);
    if (!x) return x;
    if (x->as.wide() && tensor_of(first).shape.size() == rank) {
      Found bias = literal ? bias_constant(second, x->as, rank, bias_axis) : integers(second, false);
      if (bias && bias->as.wide()) {
        if (!literal && !bias_axis && !x->as.uniform())
          bias->as.axis += static_cast<int64_t>(rank - tensor_of(second).shape.size());
        if (!literal && bias_axis && !bias->as.uniform()) bias->as.axis = positive_axis(*bias_axis, rank);
        if (same_numbers(bias->as, x->as)) {
          std::vector<Expr> args{x->integers, bias->integers};
          if (swapped) std::swap(args[0], args[1]);
          return Quantized{call(name, std::move(args), as<CallNode>(e)->attrs, e->span), x->as};
        }
      }
    }
  }
  if (!direct || bias_axis || !target_.uniform()) return std::nullopt;
  Found a = side(arg(e, 0), false), b = side(arg(e, 1), false);
  if (!a || !b || a->as.dtype != target_.dtype || b->as.dtype != target_.dtype || !is_byte(target_.dtype))
    return std::nullopt;
  const char* op = name == "add" ? "qnn.add" : name == "subtract" ? "qnn.subtract" : "qnn.mul";
  auto made = try_call(op,
                       {a->integers, b->integers, scale_expr(a->as), zero_expr(a->as), scale_expr(b->as),
                        zero_expr(b->as), scale_expr(target_), zero_expr(target_)},
                       make_attrs<BroadcastAttrs>([&](auto& attrs) {
                         attrs.lhs_axis = a->as.uniform() ? -1 : a->as.axis;
                         attrs.rhs_axis = b->as.uniform() ? -1 : b->as.axis;
                       }),
                       e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, target_};
}

}  // namespace tilewright::relay
