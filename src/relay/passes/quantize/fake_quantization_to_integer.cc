// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/quantize/fake_quantization_to_integer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/quantize/affine.h"

namespace tilewright::relay {
namespace {

// One region: from a quantize up to the dequantizes.
class Region {
 public:
  explicit Region(Affine target) : target_(std::move(target)) {}

  // `direct`: nothing but moves and monotone functions lie between here and the quantize, so that its scale suits.
  Found integers(const Expr& e, bool direct) {
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
    // Deep chains are no regions that exporters write; the limit keeps the stack.
    if (depth_ >= 256) return fail(e);
    ++depth_;
    Found out = rule(e, direct);
    --depth_;
    if (!out) fail(e);
    return known_[{e.get(), direct}] = out;
  }

  bool any() const { return any_; }
  const Expr& culprit() const { return culprit_; }

 private:
  Found fail(const Expr& e) {
    if (!culprit_) culprit_ = e;
    return std::nullopt;
  }

  Found rule(const Expr& e, bool direct) {
    if (const auto* get = as<TupleGetItemNode>(e)) {
      if (!is_call_to(get->tuple, "split") && !(is_call_to(get->tuple, "topk") && get->index == 0)) return std::nullopt;
      Found x = integers(get->tuple, direct);
      if (!x) return x;
      return Quantized{make_get(x->integers, get->index, e->span), x->as};
    }
    const OpDef* op = called_op(e);
    if (!op) return std::nullopt;
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
    if (name == "maximum" || name == "minimum") return extreme(e, direct);
    if (name == "abs") return magnitude(e);
    if (name == "nn.relu") return limited(e, direct, 0, INFINITY);
    if (name == "clip") return limited(e, direct, attrs_of<ClipAttrs>(e).a_min, attrs_of<ClipAttrs>(e).a_max);
    if (name == "nn.leaky_relu") return function(e, direct, "qnn.leaky_relu");
    for (const char* f : {"tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log"})
      if (name == f) return function(e, direct, std::string("qnn.") + f);
    if (name == "nn.max_pool2d") return moved(e, direct, attrs_of<MaxPool2DAttrs>(e).layout.find('C'));
    if (name == "nn.global_max_pool2d") return moved(e, direct, attrs_of<GlobalPool2DAttrs>(e).layout.find('C'));
    for (const char* f : {"copy",
                          "reshape",
                          "squeeze",
                          "expand_dims",
                          "strided_slice",
                          "nn.batch_flatten",
                          "split",
                          "topk",
                          "take",
                          "nn.depth_to_space",
                          "nn.space_to_depth",
                          "repeat",
                          "tile",
                          "reverse",
                          "broadcast_to",
                          "max",
                          "min",
                          "image.resize2d",
                          "nn.mirror_pad",
                          "nn.max_pool1d",
                          "nn.max_pool3d",
                          "nn.adaptive_max_pool2d"})
      if (name == f) return moved(e, direct);
    if (name == "transpose") return turned(e, direct);
    if (name == "nn.pad") return padded(e, direct);
    if (name == "concatenate") return concatenated(e, direct);
    if (name == "nn.avg_pool2d") return average_pool(e);
    if (name == "nn.global_avg_pool2d") return global_average(e);
    if (name == "mean") return mean(e);
    if (name == "nn.adaptive_avg_pool1d") return adaptive_average<AdaptivePool1DAttrs>(e);
    if (name == "nn.adaptive_avg_pool2d") return adaptive_average<AdaptivePool2DAttrs>(e);
    return std::nullopt;
  }

  // Both operands of a product of bytes; the weight has its own scale for each place along `axis`, at most.
  struct Operands {
    Quantized x, w;
    std::vector<Expr> args;
    Affine as;
  };
  std::optional<Operands> product(const Expr& e, int64_t weight_axis, int64_t result_axis) {
    Found x = integers(arg(e, 0), false), w = integers(arg(e, 1), false);
    if (!x || !w || !x->as.uniform() || !is_byte(x->as.dtype) || !is_byte(w->as.dtype)) return std::nullopt;
    if (!w->as.uniform() && w->as.axis != weight_axis) return std::nullopt;
    Affine as{w->as.scale, {0}, kInt32, result_axis};
    for (float& s : as.scale) s *= x->as.scale[0];
    Operands out{*x, *w, {}, as};
    out.args = {x->integers, w->integers, zero_expr(x->as), zero_expr(w->as), scale_expr(x->as), scale_expr(w->as)};
    return out;
  }
  // The qnn operator over the same attributes, summed in int32.
  template <class A>
  Found product_call(const Expr& e, const char* op, const std::optional<Operands>& o) {
    if (!o) return std::nullopt;
    AttrsRef attrs(attrs_of<A>(e).clone());
    const_cast<A*>(attrs_as<A>(attrs))->out_dtype = "int32";
    auto made = try_call(op, o->args, attrs, e->span);
    if (!made.ok()) return std::nullopt;
    return Quantized{*made, o->as};
  }
  Found conv2d(const Expr& e) {
    const auto& a = attrs_of<Conv2DAttrs>(e);
    if (a.data_layout.size() != 4 || a.kernel_layout.size() != 4 ||
        !(a.out_layout.empty() || a.out_layout == a.data_layout))
      return std::nullopt;
    return product_call<Conv2DAttrs>(
        e, "qnn.conv2d",
        product(e, static_cast<int64_t>(a.kernel_layout.find('O')), static_cast<int64_t>(a.data_layout.find('C'))));
  }
  Found conv2d_transpose(const Expr& e) {
    const auto& a = attrs_of<Conv2DTransposeAttrs>(e);
    if (a.data_layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == a.data_layout)) return std::nullopt;
    auto o = product(e, 1, 1);
    if (o && a.groups != 1 && !o->w.as.uniform()) return std::nullopt;
    return product_call<Conv2DTransposeAttrs>(e, "qnn.conv2d_transpose", o);
  }
  Found dense(const Expr& e) {
    return product_call<DenseAttrs>(e, "qnn.dense", product(e, 0, static_cast<int64_t>(tensor_of(e).shape.size()) - 1));
  }
  // As a dense layer of the weight turned.
  Found matmul(const Expr& e) {
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
  Found batch_matmul(const Expr& e) {
    auto o = product(e, -1, 0);
    if (o && !o->w.as.uniform()) return std::nullopt;
    return product_call<BatchMatmulAttrs>(e, "qnn.batch_matmul", o);
  }

  // A real constant in the steps of `like`, as int32; it broadcasts to a result of rank `rank`.
  Found bias_constant(const Expr& e, const Affine& like, size_t rank, const std::optional<int64_t>& axis) {
    const Tensor* t = constant_data(e);
    if (!t || !t->dtype().is_float()) return std::nullopt;
    const auto own = static_cast<size_t>(t->rank());
    Tensor out(kInt32, t->shape());
    // The constant's axis along which the scale changes; -1: it has none there.
    int64_t along = -1;
    if (!like.uniform()) {
      along = axis ? 0 : like.axis - static_cast<int64_t>(rank - own);
      if (axis && positive_axis(*axis, rank) != like.axis) return std::nullopt;
      const int64_t n = static_cast<int64_t>(like.scale.size());
      // One value for all channels is another number of steps in each.
      if (along < 0 || t->shape()[static_cast<size_t>(along)] != n) return std::nullopt;
    }
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(along + 1); along >= 0 && d < own; ++d) inner *= t->shape()[d];
    for (int64_t i = 0; i < t->size(); ++i) {
      const auto channel =
          along < 0 ? size_t{0} : static_cast<size_t>(i / inner % static_cast<int64_t>(like.scale.size()));
      const double steps = std::nearbyint(t->at_double(i) / like.scale[channel]);
      if (!(std::fabs(steps) <= 1 << 30)) return std::nullopt;
      out.set_int(i, static_cast<int64_t>(steps));
    }
    return Quantized{make_constant(std::move(out), e->span), like};
  }

  // A product with one positive number is another scale.
  Found scaled_by_constant(const Expr& e) {
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

  // A real constant in bytes of its own: exactly where it is one number, else as near as 127 steps come.
  Found byte_constant(const Expr& e, DataType dtype) {
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
  // An operand of an operator between two values: integers, or a constant in the bytes of the target.
  Found side(const Expr& e, bool direct) {
    return constant_data(e) ? byte_constant(e, target_.dtype) : integers(e, direct);
  }

  // At one scale: the operands' own where they share it, else the quantize's.
  Found extreme(const Expr& e, bool direct) {
    Found a = side(arg(e, 0), false), b = side(arg(e, 1), false);
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
    auto made = try_call(called_op(e)->name, {a->integers, b->integers}, {}, e->span);
    if (!made.ok()) return std::nullopt;
    return Quantized{*made, as};
  }
  // |x| is so many steps from the zero point, which int32 holds.
  Found magnitude(const Expr& e) {
    Found x = integers(arg(e, 0), false);
    if (!x || !x->as.uniform() || x->as.dtype.bits > 16) return std::nullopt;
    Expr steps = cast(x->integers, kInt32);
    if (!x->as.centred()) steps = call("subtract", {steps, zero_expr(x->as)}, {}, e->span);
    return Quantized{call("abs", {steps}, {}, e->span), {x->as.scale, {0}, kInt32, 0}};
  }

  Found sum(const Expr& e, bool direct, const std::optional<int64_t>& bias_axis) {
    const std::string name = called_op(e)->name;
    const size_t rank = tensor_of(e).shape.size();
    Expr first = arg(e, 0), second = arg(e, 1);
    // A constant on the left of a sum is one on the right.
    const bool swapped = name == "add" && constant_data(first);
    if (swapped) std::swap(first, second);
    if (name != "multiply") {
      const bool literal = constant_data(second) != nullptr;
      // What is added to a sum of products has its steps; everything else has the quantize's.
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

  // Values within [low, high], which are real numbers.
  Found limited(const Expr& e, bool direct, double low, double high) {
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
        const double at = std::nearbyint(real / scale) + static_cast<double>(zero);
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

  // A function of each element, in the quantize's steps.
  Found function(const Expr& e, bool direct, const std::string& op) {
    Found x = integers(arg(e, 0), false);
    if (!x || !direct || !x->as.uniform() || !target_.uniform() || x->as.dtype != target_.dtype) return std::nullopt;
    auto made =
        try_call(op, {x->integers, scale_expr(x->as), zero_expr(x->as), scale_expr(target_), zero_expr(target_)},
                 as<CallNode>(e)->attrs, e->span);
    if (!made.ok()) return std::nullopt;
    return Quantized{*made, target_};
  }

  // The operator itself on integers; places along the axis `kept` stay where they are.
  Found moved(const Expr& e, bool direct, std::optional<size_t> kept = {}) {
    Found x = integers(arg(e, 0), direct);
    if (!x || !(x->as.uniform() || (kept && static_cast<int64_t>(*kept) == x->as.axis))) return std::nullopt;
    std::vector<Expr> args = as<CallNode>(e)->args;
    args[0] = x->integers;
    auto made = try_call(called_op(e)->name, std::move(args), as<CallNode>(e)->attrs, e->span);
    if (!made.ok()) return std::nullopt;
    return Quantized{*made, x->as};
  }

  Found turned(const Expr& e, bool direct) {
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

  Found padded(const Expr& e, bool direct) {
    Found x = integers(arg(e, 0), direct);
    if (!x || !x->as.uniform()) return std::nullopt;
    const auto value = uniform_value(arg(e, 1));
    if (!value) return std::nullopt;
    const double steps = std::nearbyint(*value / x->as.scale[0]) + static_cast<double>(x->as.zero[0]);
    if (!(steps >= static_cast<double>(lowest(x->as.dtype)) && steps <= static_cast<double>(highest(x->as.dtype))))
      return std::nullopt;
    auto made = try_call("nn.pad", {x->integers, full_constant(steps, x->as.dtype)}, as<CallNode>(e)->attrs, e->span);
    if (!made.ok()) return std::nullopt;
    return Quantized{*made, x->as};
  }

  Found concatenated(const Expr& e, bool direct) {
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

  // n * mean of the integers without their zero point; the steps become n times as small, so no division rounds.
  Found average_pool(const Expr& e) {
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
  Found global_average(const Expr& e) {
    const std::string& layout = attrs_of<GlobalPool2DAttrs>(e).layout;
    const std::string& out = attrs_of<GlobalPool2DAttrs>(e).out_layout;
    if (layout.size() != 4 || !(out.empty() || out == layout)) return std::nullopt;
    return averaged(e, {static_cast<int64_t>(layout.find('H')), static_cast<int64_t>(layout.find('W'))}, true);
  }
  Found mean(const Expr& e) {
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
  // Windows of equal sizes: n times their mean is their sum.
  template <class A>
  Found adaptive_average(const Expr& e) {
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
  Found averaged(const Expr& e, std::vector<int64_t> axes, bool keepdims) {
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
  static const AttrsRef& as_attrs(const Expr& e) { return as<CallNode>(e)->attrs; }

  struct KeyHash {
    size_t operator()(const std::pair<const ExprNode*, bool>& key) const {
      return std::hash<const void*>()(key.first) * 2 + key.second;
    }
  };
  const Affine target_;
  std::unordered_map<std::pair<const ExprNode*, bool>, Found, KeyHash> known_;
  bool any_ = false;
  int depth_ = 0;
  Expr culprit_;
};

// Whether nothing but dequantizes and constants feeds it through operators.
bool fake_quantized(const Expr& root) {
  std::vector<Expr> waiting{root};
  std::unordered_set<const ExprNode*> seen;
  bool any = false;
  while (!waiting.empty()) {
    const Expr e = waiting.back();
    waiting.pop_back();
    if (!seen.insert(e.get()).second || as<ConstantNode>(e)) continue;
    if (is_call_to(e, "qnn.dequantize")) {
      any = true;
      continue;
    }
    if (!called_op(e) && !as<TupleNode>(e) && !as<TupleGetItemNode>(e)) return false;
    for (const Expr& child : children(e)) waiting.push_back(child);
  }
  return any;
}

// The quantize as integer arithmetic, or itself; `culprit` is what has no rule.
Expr realized(const Expr& e, Expr* culprit) {
  const auto& a = attrs_of<QuantizeAttrs>(e);
  auto target = affine_of(arg(e, 1), arg(e, 2), tensor_of(e).dtype, a.axis, tensor_of(e).shape.size());
  if (!target) return e;
  Region region(*target);
  Found out = region.integers(arg(e, 0), true);
  if (!out) {
    if (!*culprit && fake_quantized(arg(e, 0))) *culprit = region.culprit();
    return e;
  }
  if (!region.any()) return e;
  if (same_numbers(out->as, *target)) return out->integers;
  if (!target->uniform()) return e;
  auto made = requantize(out->integers, out->as, *target, e->span);
  return made.ok() ? *made : e;
}

// After training that knew of the quantisation, integers may go on where no quantize follows: an operator of
// dequantized operands becomes the dequantized result of its integer form.
Expr with_integers(const Expr& e) {
  const OpDef* op = called_op(e);
  const auto* call = as<CallNode>(e);
  if (!op || !as_tensor(e->type) || std::string_view(op->name).starts_with("qnn.")) return e;
  const bool any =
      std::any_of(call->args.begin(), call->args.end(), [](const Expr& a) { return is_call_to(a, "qnn.dequantize"); });
  if (!any || !is_float_tensor(e)) return e;
  Region region(Affine{{}, {}, kInt32, 0});  // no target: nothing is rounded to one
  Found out = region.integers(e, false);
  if (!out || !region.any()) return e;
  auto made = try_call("qnn.dequantize", {out->integers, scale_expr(out->as), zero_expr(out->as)},
                       make_attrs<DequantizeAttrs>([&](auto& attrs) {
                         attrs.axis = out->as.uniform() ? -1 : out->as.axis;
                         attrs.out_dtype = tensor_of(e).dtype.str();
                       }),
                       e->span);
  return made.ok() && same_tensor_type(*made, e) ? *made : e;
}

}  // namespace

Result<Module> fake_quantization_to_integer(const Module& module, bool hard_fail, bool use_qat) {
  Expr culprit;
  Module out = rewrite_module(
      module, [&](const Expr&, const Expr& e) { return is_call_to(e, "qnn.quantize") ? realized(e, &culprit) : e; });
  if (hard_fail && culprit) {
    const OpDef* op = called_op(culprit);
    return Diagnostic(ErrorCode::kUnsupportedOp,
                      format("{} between a dequantize and a quantize has no integer form here",
                             op ? op->name : "what is no operator"),
                      culprit->span ? *culprit->span : "", "without hard_fail the region stays real");
  }
  if (use_qat) return rewrite_module(out, [](const Expr&, const Expr& e) { return with_integers(e); });
  return out;
}

Result<Module> fake_quantization_to_integer(const Module& module, PassContext&) {
  return fake_quantization_to_integer(module, false);
}

}  // namespace tilewright::relay
