// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/quantize/integer_products.h"

#include <algorithm>
#include <cmath>

#include "relay/calls.h"
#include "relay/constant_call.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/passes/quantize/byte_products.h"

namespace tilewright::relay {
namespace {

// Integers below this bound are exact in float32, as are partial sums below it.
constexpr double kExact = 1 << 24;
constexpr int64_t kMostParts = 32;

struct ValueRange {
  double low, high;
  double size() const { return std::max(std::fabs(low), std::fabs(high)); }
};

// Folds a constant expression; nothing if an operand is not constant.
std::optional<Expr> folded_integers(const Expr& e, int depth = 0) {
  if (as<ConstantNode>(e)) return e;
  const auto* call = as<CallNode>(e);
  if (!call || !called_op(e) || depth > 8 || !as_tensor(e->type)) return std::nullopt;
  std::vector<Expr> args;
  for (const Expr& a : call->args) {
    auto constant = folded_integers(a, depth + 1);
    if (!constant) return std::nullopt;
    args.push_back(*constant);
  }
  Expr over_constants = relay::call(called_op(e)->name, args, call->attrs, e->span);
  if (!is_constant_call(over_constants)) return std::nullopt;
  auto values = evaluate_constant_call(over_constants);
  if (!values.ok() || values->size() != 1) return std::nullopt;
  return make_constant((*values)[0], e->span);
}

std::optional<ValueRange> range_of(const Expr& e, int depth = 0);

// Interval arithmetic for an operator; nothing for operators that are not listed.
std::optional<ValueRange> range_of_call(const Expr& e, int depth) {
  const std::string_view name = called_op(e)->name;
  auto operand = [&](size_t i) { return range_of(arg(e, i), depth + 1); };
  if (of_first_operand(called_op(e)->facts.elements) || name == "cast" || name == "layout_transform") return operand(0);
  if (name == "nn.relu") {
    auto x = operand(0);
    return x ? std::optional<ValueRange>({0, std::max(0.0, x->high)}) : x;
  }
  if (name == "clip") {
    const auto& a = attrs_of<ClipAttrs>(e);
    return ValueRange{a.a_min, a.a_max};
  }
  if (name != "add" && name != "subtract") return std::nullopt;
  auto x = operand(0), y = operand(1);
  if (!x || !y) return std::nullopt;
  if (name == "add") return ValueRange{x->low + y->low, x->high + y->high};
  return ValueRange{x->low - y->high, x->high - y->low};
}

// Bounds on the elements of an integer tensor.
std::optional<ValueRange> range_of(const Expr& e, int depth) {
  const auto* type = as_tensor(e->type);
  if (!type || !type->dtype.is_integral() || depth > 16) return std::nullopt;
  const DataType t = type->dtype;
  std::optional<ValueRange> own, found;
  if (t.bits <= 16)
    own = t.is_int() ? ValueRange{-std::ldexp(1, t.bits - 1), std::ldexp(1, t.bits - 1) - 1}
                     : ValueRange{0, std::ldexp(1, t.bits) - 1};
  if (const Tensor* data = constant_data(e)) {
    ValueRange r{0, 0};
    for (int64_t i = 0; i < data->size(); ++i) {
      const auto v = static_cast<double>(data->at_int(i));
      r = {std::min(r.low, v), std::max(r.high, v)};
    }
    return r;
  }
  if (called_op(e)) found = range_of_call(e, depth);
  // Overflow wraps around: the range is then the whole dtype.
  const double half = std::ldexp(1, t.bits - 1);
  const ValueRange holds = t.is_int() ? ValueRange{-half, half - 1} : ValueRange{0, 2 * half - 1};
  if (found && (found->low < holds.low || found->high > holds.high)) found.reset();
  return found ? found : own;
}

// The same integers as float32: widening casts are dropped, sums and differences of small numbers are computed in
// floats.
Expr as_float(const Expr& e) {
  if (const Tensor* data = constant_data(e)) {
    Tensor out(kFloat32, data->shape());
    auto values = out.as_mutable<float>();
    for (int64_t i = 0; i < data->size(); ++i) values[static_cast<size_t>(i)] = static_cast<float>(data->at_int(i));
    return make_constant(out, e->span);
  }
  if (is_call_to(e, "cast") && range_of(arg(e, 0))) return as_float(arg(e, 0));
  for (const char* op : {"add", "subtract"})
    if (is_call_to(e, op) && range_of(arg(e, 0)) && range_of(arg(e, 1)))
      return call(op, {as_float(arg(e, 0)), as_float(arg(e, 1))}, {}, e->span);
  return cast(e, kFloat32);
}

// A product: the reduction axes of its operands (channels, if there are taps as well), and the second operand's output
// axis, -1 if it is not needed.
struct Product {
  size_t data_axis = 0, weight_axis = 0;
  int64_t output_axis = -1;
  bool divisible = true;    // can be split along those axes
  AttrsRef attrs;           // with the operands' dtype as result dtype
  double terms_beside = 1;  // terms per output for each index of the reduction axis
};

template <class A>
AttrsRef in_floats(const Expr& e) {
  AttrsRef copy(attrs_of<A>(e).clone());
  const_cast<A*>(attrs_as<A>(copy))->out_dtype.clear();
  return copy;
}

template <class A>
std::optional<Product> conv_product(const Expr& e, const std::string& kernel_layout) {
  const auto& a = attrs_of<A>(e);
  auto shape = static_shape(tensor_of(arg(e, 1)).shape);
  if (!shape || a.data_layout.find_first_of("0123456789") != std::string::npos) return std::nullopt;
  Product out;
  out.data_axis = a.data_layout.find('C');
  out.weight_axis = kernel_layout.find('I');
  out.output_axis = static_cast<int64_t>(kernel_layout.find('O'));
  if (out.data_axis >= a.data_layout.size() || kernel_layout.size() != shape->size()) return std::nullopt;
  out.divisible = a.groups == 1;
  for (size_t i = 0; i < shape->size(); ++i)
    if (i != out.weight_axis && static_cast<int64_t>(i) != out.output_axis)
      out.terms_beside *= static_cast<double>((*shape)[i]);
  out.attrs = in_floats<A>(e);
  return out;
}

std::optional<Product> product_of(const Expr& e) {
  const OpDef* op = called_op(e);
  const std::string_view name = op ? op->name : "";
  if (name == "nn.conv1d") return conv_product<Conv1DAttrs>(e, attrs_of<Conv1DAttrs>(e).kernel_layout);
  if (name == "nn.conv2d") return conv_product<Conv2DAttrs>(e, attrs_of<Conv2DAttrs>(e).kernel_layout);
  if (name == "nn.conv3d") return conv_product<Conv3DAttrs>(e, attrs_of<Conv3DAttrs>(e).kernel_layout);
  if (name == "nn.conv2d_transpose")
    return conv_product<Conv2DTransposeAttrs>(
        e, transposed_kernel_layout(attrs_of<Conv2DTransposeAttrs>(e).kernel_layout));
  if (name != "nn.dense" && name != "nn.matmul" && name != "nn.batch_matmul") return std::nullopt;
  const size_t a_rank = tensor_of(arg(e, 0)).shape.size(), b_rank = tensor_of(arg(e, 1)).shape.size();
  Product out;
  if (name == "nn.dense") {
    out.attrs = in_floats<DenseAttrs>(e);
    out.data_axis = a_rank - 1;
    out.weight_axis = 1;
    out.output_axis = 0;
    return out;
  }
  const bool batched = name == "nn.batch_matmul";
  const bool ta = batched ? attrs_of<BatchMatmulAttrs>(e).transpose_a : attrs_of<MatmulAttrs>(e).transpose_a;
  const bool tb = batched ? attrs_of<BatchMatmulAttrs>(e).transpose_b : attrs_of<MatmulAttrs>(e).transpose_b;
  out.attrs = batched ? in_floats<BatchMatmulAttrs>(e) : in_floats<MatmulAttrs>(e);
  out.data_axis = ta ? a_rank - 2 : a_rank - 1;
  out.weight_axis = tb ? b_rank - 1 : b_rank - 2;
  if (!batched) out.output_axis = tb ? 0 : 1;
  return out;
}

// The largest sum of absolute weights over outputs, for indices [begin, end) of the reduction axis.
double largest_sum(const Tensor& weights, const Product& p, int64_t begin, int64_t end) {
  const auto& shape = weights.shape();
  auto stride = [&](size_t axis) {
    int64_t out = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) out *= shape[i];
    return out;
  };
  const int64_t in_stride = stride(p.weight_axis), in_size = shape[p.weight_axis];
  const auto output = static_cast<size_t>(p.output_axis);
  const int64_t out_stride = stride(output), out_size = shape[output];
  std::vector<double> sums(static_cast<size_t>(out_size));
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t channel = i / in_stride % in_size;
    if (channel >= begin && channel < end)
      sums[static_cast<size_t>(i / out_stride % out_size)] += std::fabs(static_cast<double>(weights.at_int(i)));
  }
  return sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
}

// Max pools of small integers, which have channel-blocked float kernels.
Expr pooled_in_floats(const Expr& e) {
  if (!range_of(arg(e, 0))) return e;
  return cast(call(called_op(e)->name, {as_float(arg(e, 0))}, as<CallNode>(e)->attrs, e->span), tensor_of(e).dtype);
}

Expr in_bytes_or_floats(const Expr& e, const Target* target) {
  const auto* type = as_tensor(e->type);
  if (!type || !type->dtype.is_integral() || !called_op(e)) return e;
  const bool blocks = target && target->vector_bits >= 128;
  if (is_call_to(e, "nn.max_pool2d") || is_call_to(e, "nn.global_max_pool2d"))
    return blocks && type->dtype.bits == 8 && is_call_to(e, "nn.max_pool2d") ? e : pooled_in_floats(e);
  auto product = product_of(e);
  if (!product || !as_tensor(arg(e, 0)->type) || !as_tensor(arg(e, 0)->type)->dtype.is_integral()) return e;
  const Expr data = folded_integers(arg(e, 0)).value_or(arg(e, 0)),
             weight = folded_integers(arg(e, 1)).value_or(arg(e, 1));
  if (target) {
    if (auto bytes = as_byte_product(e, weight, *target)) return *bytes;
    if (const Tensor* w = constant_data(weight); w && is_half_product(e, *w, *target)) return e;
  }
  auto data_range = range_of(data), weight_range = range_of(weight);
  const Dim& summed = tensor_of(weight).shape[product->weight_axis];
  if (!data_range || !weight_range || !summed.is_const()) return e;
  const int64_t n = summed.value();
  const Tensor* weights = product->output_axis >= 0 ? constant_data(weight) : nullptr;
  auto bound = [&](int64_t begin, int64_t end) {
    if (weights) return data_range->size() * largest_sum(*weights, *product, begin, end);
    return data_range->size() * weight_range->size() * product->terms_beside * static_cast<double>(end - begin);
  };
  auto fits = [&](int64_t parts) {
    for (int64_t i = 0; i < parts; ++i)
      if (bound(i * n / parts, (i + 1) * n / parts) >= kExact) return false;
    return true;
  };
  int64_t parts = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(bound(0, n) / kExact)));
  while (parts <= std::min(n, kMostParts) && !fits(parts)) ++parts;
  if (n == 0 || parts > std::min(n, kMostParts) || (parts > 1 && !product->divisible)) return e;
  const Expr x = as_float(data), w = as_float(weight);
  Expr sum;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = i * n / parts, end = (i + 1) * n / parts;
    auto part = [&](const Expr& of, size_t axis) {
      return parts == 1 ? of : sliced(of, static_cast<int64_t>(axis), begin, end, e->span);
    };
    Expr term = cast(
        call(called_op(e)->name, {part(x, product->data_axis), part(w, product->weight_axis)}, product->attrs, e->span),
        kInt32);
    sum = sum ? both("add", sum, term) : term;
  }
  return cast(sum, type->dtype);
}

}  // namespace

Result<Module> integer_products(const Module& module, PassContext& context) {
  const Target* target = context.target ? &*context.target : nullptr;
  return rewrite_module(module, [&](const Expr&, const Expr& e) { return in_bytes_or_floats(e, target); });
}

}  // namespace tilewright::relay
