// SPDX-License-Identifier: Apache-2.0
// Selects the rule for each operator; rules for limits, data movement and means.
#include <algorithm>
#include <cmath>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/quantize/fake_quantized_region.h"

namespace tilewright::relay {

Found FakeQuantizedRegion::integers(const Expr& e, bool direct) {
  if (is_call_to(e, "qnn.dequantize")) {
    const auto& x = arg(e, 0);
    auto as = affine_of(arg(e, 1), arg(e, 2), tensor_of(x).dtype, attrs_of<DequantizeAttrs>(e).axis,
                        tensor_of(x).shape.size());
    if (!as) return fail(e);
    any_ = true;
    return Quantized{x, *as};
  }
  auto [it, fresh] = known_.try_emplace({e.get(), direct});
  if (!fresh) return it->second;
  // Exporters do not write deeper chains; the limit protects the stack.
  if (depth_ >= 256) return fail(e);
  ++depth_;
  Found out = rule(e, direct);
  --depth_;
  if (!out) fail(e);
  return known_[{e.get(), direct}] = out;
}

Found FakeQuantizedRegion::fail(const Expr& e) {
  if (!culprit_) culprit_ = e;
  return std::nullopt;
}

Found FakeQuantizedRegion::rule(const Expr& e, bool direct) {
  if (const auto* get = as<TupleGetItemNode>(e)) {
    if (!is_call_to(get->tuple, "split") && !(is_call_to(get->tuple, "topk") && get->index == 0)) return std::nullopt;
    Found x = integers(get->tuple, direct);
    if (!x) return x;
    return Quantized{make_get(x->integers, get->index, e->span), x->as};
  }
  const OpDef* op = called_op(e);
  if (!op) return std::nullopt;
  if (rules_)
    if (Found own = by_script(*op, e)) return own;
  const std::string_view name = op->name;
  if (name == "nn.conv2d") return conv2d(e);
  if (name == "nn.conv2d_transpose") return conv2d_transpose(e);
  if (name == "nn.dense") return dense(e);
  if (name == "nn.matmul") return matmul(e);
  if (name == "nn.batch_matmul") return batch_matmul(e);
  if (name == "multiply" || name == "divide")
    if (Found scaled = scaled_by_constant(e)) return scaled;
  if (name == "nn.bias_add") return sum(e, direct, attrs_of<BiasAddAttrs>(e).axis);
  if (name == "add" || name == "subtract" || name == "multiply") return sum(e, direct, std::nullopt);
  if (name == "maximum" || name == "minimum" || name == "where") return chosen(e, direct);
  if (name == "abs" || name == "negative") return from_zero(e);
  if (name == "nn.relu") return limited(e, direct, 0, INFINITY);
  if (name == "clip") return limited(e, direct, attrs_of<ClipAttrs>(e).a_min, attrs_of<ClipAttrs>(e).a_max);
  if (name == "nn.leaky_relu") return function(e, direct, "qnn.leaky_relu");
  for (const char* f : {"tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log"})
    if (name == f) return function(e, direct, std::string("qnn.") + f);
  if (name == "nn.max_pool2d") return moved(e, direct, attrs_of<MaxPool2DAttrs>(e).layout.find('C'));
  if (name == "nn.global_max_pool2d") return moved(e, direct, attrs_of<GlobalPool2DAttrs>(e).layout.find('C'));
  if (name == "transpose") return turned(e, direct);
  if (of_first_operand(op->facts.elements) || name == "topk" || name == "image.resize2d" ||
      name == "annotation.stop_fusion")
    return moved(e, direct);
  if (name == "nn.pad") return padded(e, direct);
  if (name == "concatenate") return concatenated(e, direct);
  if (name == "nn.avg_pool2d") return average_pool(e);
  if (name == "nn.global_avg_pool2d") return global_average(e);
  if (name == "mean") return mean(e);
  if (name == "nn.adaptive_avg_pool1d") return adaptive_average<AdaptivePool1DAttrs>(e);
  if (name == "nn.adaptive_avg_pool2d") return adaptive_average<AdaptivePool2DAttrs>(e);
  return std::nullopt;
}

Found FakeQuantizedRegion::limited(const Expr& e, bool direct, double low, double high) {
  Found x = integers(arg(e, 0), direct);
  if (!x || !(low <= high)) return std::nullopt;
  const Affine& as = x->as;
  const size_t n = std::max(as.scale.size(), as.zero.size());
  std::vector<int32_t> from, to;
  bool cuts_below = false, cuts_above = false;
  for (size_t i = 0; i < n; ++i) {
    const double scale = as.scale[as.scale.size() == 1 ? 0 : i];
    const int64_t zero = as.zero[as.zero.size() == 1 ? 0 : i];
    auto steps = [&](double real) {
      const double at = std::round(real / scale) + static_cast<double>(zero);
      return static_cast<int32_t>(
          std::clamp(at, static_cast<double>(lowest(as.dtype)), static_cast<double>(highest(as.dtype))));
    };
    from.push_back(steps(low)), to.push_back(steps(high));
    cuts_below |= from.back() > lowest(as.dtype);
    cuts_above |= to.back() < highest(as.dtype);
  }
  Expr out = x->integers;
  auto same = [](const std::vector<int32_t>& v) {
    return std::all_of(v.begin(), v.end(), [&](int32_t k) { return k == v[0]; });
  };
  auto bound = [&](const char* op, const std::vector<int32_t>& v) {
    std::vector<int64_t> shape;
    if (!same(v)) {
      shape.assign(tensor_of(out).shape.size() - static_cast<size_t>(as.axis), 1);
      shape[0] = static_cast<int64_t>(n);
    }
    Tensor t(as.dtype, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, v[static_cast<size_t>(i)]);
    out = call(op, {out, make_constant(std::move(t))}, {}, e->span);
  };
  if (cuts_below) bound("maximum", from);
  if (cuts_above) bound("minimum", to);
  return Quantized{out, as};
}

Found FakeQuantizedRegion::function(const Expr& e, bool direct, const std::string& op) {
  Found x = integers(arg(e, 0), false);
  if (!x || !direct || !x->as.uniform() || !target_.uniform() || x->as.dtype != target_.dtype) return std::nullopt;
  auto made = try_call(op, {x->integers, scale_expr(x->as), zero_expr(x->as), scale_expr(target_), zero_expr(target_)},
                       as<CallNode>(e)->attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, target_};
}

Found FakeQuantizedRegion::moved(const Expr& e, bool direct, std::optional<size_t> kept) {
  Found x = integers(arg(e, 0), direct);
  if (!x || !(x->as.uniform() || (kept && static_cast<int64_t>(*kept) == x->as.axis))) return std::nullopt;
  std::vector<Expr> args = as<CallNode>(e)->args;
  args[0] = x->integers;
  auto made = try_call(called_op(e)->name, std::move(args), as<CallNode>(e)->attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, x->as};
}

Found FakeQuantizedRegion::turned(const Expr& e, bool direct) {
  Found x = integers(arg(e, 0), direct);
  if (!x) return x;
  const size_t rank = tensor_of(e).shape.size();
  if (!x->as.uniform()) {
    const auto& axes = attrs_of<TransposeAttrs>(e).axes;
    int64_t to = static_cast<int64_t>(rank) - 1 - x->as.axis;
    for (size_t i = 0; axes && i < axes->size(); ++i)
      if (positive_axis((*axes)[i], rank) == x->as.axis) to = static_cast<int64_t>(i);
    x->as.axis = to;
  }
  return Quantized{call("transpose", {x->integers}, as<CallNode>(e)->attrs, e->span), x->as};
}

Found FakeQuantizedRegion::padded(const Expr& e, bool direct) {
  Found x = integers(arg(e, 0), direct);
  if (!x || !x->as.uniform()) return std::nullopt;
  const auto value = uniform_value(arg(e, 1));
  if (!value) return std::nullopt;
  const double steps = std::round(*value / x->as.scale[0]) + static_cast<double>(x->as.zero[0]);
  if (!(steps >= static_cast<double>(lowest(x->as.dtype)) && steps <= static_cast<double>(highest(x->as.dtype))))
    return std::nullopt;
  auto made = try_call("nn.pad", {x->integers, full_constant(steps, x->as.dtype)}, as<CallNode>(e)->attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, x->as};
}

Found FakeQuantizedRegion::concatenated(const Expr& e, bool direct) {
  const auto* tuple = as<TupleNode>(arg(e, 0));
  if (!tuple || tuple->fields.empty()) return std::nullopt;
  std::vector<Quantized> parts;
  for (const Expr& field : tuple->fields) {
    Found x = integers(field, direct);
    if (!x || !x->as.uniform()) return std::nullopt;
    parts.push_back(*x);
    if (parts.back().as.dtype != parts.front().as.dtype) return std::nullopt;
  }
  std::vector<Expr> data, scales, zeros;
  bool alike = true;
  for (const Quantized& part : parts) {
    data.push_back(part.integers);
    scales.push_back(scale_expr(part.as));
    zeros.push_back(zero_expr(part.as));
    alike &= same_numbers(part.as, parts.front().as);
  }
  const AttrsRef& attrs = as<CallNode>(e)->attrs;
  if (alike) return Quantized{call("concatenate", {make_tuple(std::move(data))}, attrs, e->span), parts.front().as};
  if (!direct || !target_.uniform() || parts.front().as.dtype != target_.dtype) return std::nullopt;
  auto made = try_call("qnn.concatenate",
                       {make_tuple(std::move(data)), make_tuple(std::move(scales)), make_tuple(std::move(zeros)),
                        scale_expr(target_), zero_expr(target_)},
                       attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, target_};
}

Found FakeQuantizedRegion::average_pool(const Expr& e) {
  const auto& a = attrs_of<AvgPool2DAttrs>(e);
  Found x = integers(arg(e, 0), false);
  const int64_t window = a.pool_size[0] * a.pool_size[1];
  if (!x || !x->as.uniform() || !is_byte(x->as.dtype) || window > 2048) return std::nullopt;
  Expr centred = cast(x->integers, kInt32);
  if (!x->as.centred()) centred = call("subtract", {centred, zero_expr(x->as)}, {}, e->span);
  centred = call("multiply", {centred, full_constant(static_cast<double>(window), kInt32)}, {}, e->span);
  Affine as{{x->as.scale[0] / static_cast<float>(window)}, {0}, kInt32, 0};
  return Quantized{call("nn.avg_pool2d", {centred}, as_attrs(e), e->span), as};
}

Found FakeQuantizedRegion::global_average(const Expr& e) {
  const std::string& layout = attrs_of<GlobalPool2DAttrs>(e).layout;
  const std::string& out = attrs_of<GlobalPool2DAttrs>(e).out_layout;
  if (layout.size() != 4 || !(out.empty() || out == layout)) return std::nullopt;
  return averaged(e, {static_cast<int64_t>(layout.find('H')), static_cast<int64_t>(layout.find('W'))}, true);
}

Found FakeQuantizedRegion::mean(const Expr& e) {
  const auto& a = attrs_of<ReduceAttrs>(e);
  const size_t rank = tensor_of(arg(e, 0)).shape.size();
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) {
    bool named = !a.axis;
    for (int64_t k : a.axis.value_or(std::vector<int64_t>{}))
      named |= positive_axis(k, rank) == static_cast<int64_t>(d);
    if (named != (a.exclude && a.axis.has_value())) axes.push_back(static_cast<int64_t>(d));
  }
  return averaged(e, std::move(axes), a.keepdims);
}

template <class A>
Found FakeQuantizedRegion::adaptive_average(const Expr& e) {
  const A& a = attrs_of<A>(e);
  Found x = integers(arg(e, 0), false);
  const auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  if (!x || !x->as.uniform() || !is_byte(x->as.dtype) || !in || !out || a.layout != A().layout) return std::nullopt;
  int64_t n = 1;
  for (size_t d = 2; d < in->size(); ++d) {
    if ((*out)[d] < 1 || (*in)[d] % (*out)[d] != 0 || (*in)[d] > 1 << 20) return std::nullopt;
    n *= (*in)[d] / (*out)[d];
    if (n > 1 << 11) return std::nullopt;
  }
  Expr steps = cast(x->integers, kInt32);
  if (!x->as.centred()) steps = call("subtract", {steps, zero_expr(x->as)}, {}, e->span);
  steps = call("multiply", {steps, full_constant(static_cast<double>(n), kInt32)}, {}, e->span);
  auto made = try_call(called_op(e)->name, {steps}, as_attrs(e), e->span);
  if (!made.ok()) return std::nullopt;
  return Quantized{*made, {{x->as.scale[0] / static_cast<float>(n)}, {0}, kInt32, 0}};
}

Found FakeQuantizedRegion::averaged(const Expr& e, std::vector<int64_t> axes, bool keepdims) {
  Found x = integers(arg(e, 0), false);
  if (!x || !x->as.uniform() || !is_byte(x->as.dtype)) return std::nullopt;
  int64_t n = 1;
  for (int64_t axis : axes) {
    const Dim& d = tensor_of(x->integers).shape[static_cast<size_t>(axis)];
    if (!d.is_const() || d.value() < 1 || d.value() > 1 << 22) return std::nullopt;
    n *= d.value();
    if (n > 1 << 22) return std::nullopt;
  }
  Expr total = call("sum", {cast(x->integers, kInt32)}, make_attrs<ReduceAttrs>([&](auto& a) {
                      a.axis = std::move(axes);
                      a.keepdims = keepdims;
                    }),
                    e->span);
  return Quantized{total, {{x->as.scale[0] / static_cast<float>(n)}, {x->as.zero[0] * n}, kInt32, 0}};
}

// Applies a script's rule. Operands that are not integers are passed unchanged.
Found FakeQuantizedRegion::by_script(const OpDef& op, const Expr& e) {
  std::vector<AffineValue> operands;
  std::vector<Expr> args;
  for (const Expr& operand : as<CallNode>(e)->args) {
    const Expr culprit = culprit_;
    Found x = as_tensor(operand->type) && !constant_data(operand) ? integers(operand, false) : std::nullopt;
    culprit_ = culprit;
    operands.push_back(x ? AffineValue{x->integers, scale_expr(x->as), zero_expr(x->as), x->as.dtype,
                                       x->as.uniform() ? -1 : x->as.axis}
                         : AffineValue{operand, {}, {}, kFloat32});
    args.push_back(operands.back().integers);
  }
  if (std::none_of(operands.begin(), operands.end(), [](const AffineValue& x) { return x.scale; })) return std::nullopt;
  const auto& call = *as<CallNode>(e);
  auto typed = try_call(op.name, args, call.attrs, call.span);
  const Expr over =
      typed.ok() ? *typed
                 : Expr(make_node<CallNode>(call.callee, std::move(args), call.attrs, incomplete_type(), call.span));
  auto made = rules_(op.name, over, operands, optional_);
  if (!made || !as_tensor(made->integers->type)) return std::nullopt;
  auto as = affine_of(made->scale, made->zero, made->dtype, made->axis, tensor_of(made->integers).shape.size());
  if (!as) return std::nullopt;
  return Quantized{made->integers, *as};
}

}  // namespace tilewright::relay
