// SPDX-License-Identifier: Apache-2.0
// Activations. Most are composed of elementwise graph operators, which fuse into the operator that produces their
// input.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/converters/activation.h"

namespace tilewright::onnx {

Expr softplus_of(NodeContext& c, const Expr& x) {
  Expr tail = c.call("exp", {c.call("negative", {c.call("abs", {x})})});
  return c.add(c.call("nn.relu", {x}), c.call("log1p", {tail}));
}

namespace {

Values softplus(NodeContext& c) { return {softplus_of(c, c.input(0))}; }
// alpha * log(1 + exp(beta * x)); onnxruntime's, of ONNX's first sets.
Values parametric_softplus(NodeContext& c) {
  const Expr x = c.input(0);
  const Expr curve = softplus_of(c, c.mul(x, c.scalar_like(c.float_attr("beta", 1), x)));
  return {c.mul(curve, c.scalar_like(c.float_attr("alpha", 1), x))};
}

Values softsign(NodeContext& c) {
  Expr x = c.input(0);
  return {c.div(x, c.add(c.call("abs", {x}), c.scalar_like(1, x)))};
}

// relu(x) + alpha * (exp(min(x, 0) / beta) - 1)
Expr exponential_unit(NodeContext& c, const Expr& x, double alpha, double beta) {
  Expr below = c.call("minimum", {x, c.scalar_like(0, x)});
  if (beta != 1) below = c.div(below, c.scalar_like(beta, x));
  Expr curve = c.sub(c.call("exp", {below}), c.scalar_like(1, x));
  return c.add(c.call("nn.relu", {x}), alpha == 1 ? curve : c.mul(curve, c.scalar_like(alpha, x)));
}
Values elu(NodeContext& c) { return {exponential_unit(c, c.input(0), c.float_attr("alpha", 1), 1)}; }
Values celu(NodeContext& c) {
  double alpha = c.float_attr("alpha", 1);
  return {exponential_unit(c, c.input(0), alpha, alpha)};
}
Values selu(NodeContext& c) {
  bool old = c.opset() < 6;
  double alpha = c.float_attr("alpha", old ? 1.6732 : 1.67326319217681884765625);
  double gamma = c.float_attr("gamma", old ? 1.0507 : 1.05070102214813232421875);
  Expr x = c.input(0);
  return {c.mul(exponential_unit(c, x, alpha, 1), c.scalar_like(gamma, x))};
}

Expr clip01(NodeContext& c, const Expr& x) {
  return c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                  a.a_min = 0;
                  a.a_max = 1;
                }));
}
Values hard_sigmoid(NodeContext& c) {
  Expr x = c.input(0);
  Expr line =
      c.add(c.mul(x, c.scalar_like(c.float_attr("alpha", 0.2f), x)), c.scalar_like(c.float_attr("beta", 0.5), x));
  return {clip01(c, line)};
}
Values hard_swish(NodeContext& c) {
  Expr x = c.input(0);
  Expr line = c.add(c.mul(x, c.scalar_like(1.0 / 6, x)), c.scalar_like(0.5, x));
  return {c.mul(x, clip01(c, line))};
}
Values mish(NodeContext& c) {
  Expr x = c.input(0);
  return {c.mul(x, c.call("tanh", {softplus_of(c, x)}))};
}
Values swish(NodeContext& c) {
  Expr x = c.input(0);
  double alpha = c.float_attr("alpha", 1);
  return {c.mul(x, c.call("sigmoid", {alpha == 1 ? x : c.mul(x, c.scalar_like(alpha, x))}))};
}
Values quick_gelu(NodeContext& c) {
  Expr x = c.input(0);
  return {c.mul(x, c.call("sigmoid", {c.mul(x, c.scalar_like(c.float_attr("alpha", 1.702f), x))}))};
}

}  // namespace

Expr gelu_of(NodeContext& c, const Expr& x, bool tanh) {
  Expr half = c.mul(x, c.scalar_like(0.5, x)), one = c.scalar_like(1, x);
  if (!tanh) return c.mul(half, c.add(c.call("erf", {c.mul(x, c.scalar_like(std::sqrt(0.5), x))}), one));
  Expr cubic = c.mul(c.mul(c.mul(x, x), x), c.scalar_like(0.044715, x));
  Expr inner = c.mul(c.add(x, cubic), c.scalar_like(std::sqrt(2 / M_PI), x));
  return c.mul(half, c.add(c.call("tanh", {inner}), one));
}
namespace {

Values gelu(NodeContext& c) {
  std::string approximate = c.string_attr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    c.fail(format("its approximation '{}' is neither none nor tanh", approximate));
  return {gelu_of(c, c.input(0), approximate == "tanh")};
}
Values bias_gelu(NodeContext& c) { return {gelu_of(c, c.add(c.input(0), c.input(1)), false)}; }
Values fast_gelu(NodeContext& c) { return {gelu_of(c, c.has(1) ? c.add(c.input(0), c.input(1)) : c.input(0), true)}; }

Values leaky_relu(NodeContext& c) {
  double alpha = c.float_attr("alpha", 0.01f);
  return {c.call("nn.leaky_relu", {c.input(0)}, make_attrs<relay::LeakyReluAttrs>([&](auto& a) { a.alpha = alpha; }))};
}

Values prelu(NodeContext& c) {
  Expr x = c.input(0), slope = c.input(1);
  // Before opset 7 a vector of slopes runs along the channel axis.
  if (c.opset() < 7 && c.rank(slope) == 1 && c.rank(x) > 2) slope = c.expand(slope, 1, c.rank(x) - 2);
  // A slope of shape (C, 1, 1) for data of shape (N, C, H, W): one slope per channel.
  auto s = static_shape(c.shape(slope));
  if (s && c.rank(x) >= 2 && c.rank(slope) == c.rank(x) - 1 && c.shape(x)[1] == c.shape(slope)[0]) {
    bool vector = true;
    for (size_t i = 1; i < s->size(); ++i) vector &= (*s)[i] == 1;
    if (vector && c.dtype(x).is_float())
      return {c.call("nn.prelu", {x, c.reshape(slope, {(*s)[0]})},
                     make_attrs<relay::PReluAttrs>([](auto& a) { a.axis = 1; }))};
  }
  return {c.where(c.call("less", {x, c.scalar_like(0, x)}), c.mul(slope, x), x)};
}

Values thresholded_relu(NodeContext& c) {
  Expr x = c.input(0);
  return {c.where(c.call("greater", {x, c.scalar_like(c.float_attr("alpha", 1), x)}), x, c.scalar_like(0, x))};
}

Values shrink(NodeContext& c) {
  // The bounds and the bias are computed in floating point, also where the data are integers.
  const DataType dtype = c.dtype(c.input(0));
  Expr x = dtype.is_float() ? c.input(0) : c.cast(c.input(0), kFloat64);
  double lambda = c.float_attr("lambd", 0.5), bias = c.float_attr("bias", 0);
  Expr middle =
      c.where(c.call("greater", {x, c.scalar_like(lambda, x)}), c.sub(x, c.scalar_like(bias, x)), c.scalar_like(0, x));
  Expr y = c.where(c.call("less", {x, c.scalar_like(-lambda, x)}), c.add(x, c.scalar_like(bias, x)), middle);
  return {dtype.is_float() ? y : c.cast(y, dtype)};
}

// Before opset 13 the tensor is flattened to a matrix: axes before `axis` are rows, `axis` and those behind it columns.
Values softmax_like(NodeContext& c, const char* op) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  int64_t axis = c.axis(c.int_attr("axis", c.opset() < 13 ? 1 : -1), std::max<int64_t>(rank, 1));
  auto along = [&](const Expr& e, int64_t a) {
    return c.call(op, {e}, make_attrs<relay::SoftmaxAttrs>([&](auto& attrs) { attrs.axis = a; }));
  };
  if (c.opset() >= 13 || axis == rank - 1) return {along(x, axis)};
  std::vector<int64_t> dims = c.dims(x);
  int64_t rows = c.product(dims, 0, axis), columns = c.product(dims, axis);
  return {c.reshape(along(c.reshape(x, {rows, columns}), 1), dims)};
}
Values softmax(NodeContext& c) { return softmax_like(c, "nn.softmax"); }
Values log_softmax(NodeContext& c) { return softmax_like(c, "nn.log_softmax"); }

// One at the first largest element along the axis, zero elsewhere.
Values hardmax(NodeContext& c) {
  Expr x = c.input(0);
  std::vector<int64_t> dims = c.dims(x);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return {x};
  int64_t rank = c.rank(x), axis = c.axis(c.int_attr("axis", c.opset() < 13 ? 1 : -1), rank);
  Expr matrix = x;
  std::vector<int64_t> shape = dims;
  if (c.opset() < 13) {
    int64_t rows = c.product(dims, 0, axis), columns = c.product(dims, axis);
    shape = {rows, columns};
    matrix = c.reshape(x, shape);
    axis = 1;
  }
  Expr best = c.call("argmax", {matrix}, make_attrs<relay::ArgReduceAttrs>([&](auto& a) {
                       a.axis = std::vector<int64_t>{axis};
                       a.dtype = kInt64;
                     }));
  DataType dtype = c.dtype(x);
  Expr places =
      c.expand(c.counting(shape[static_cast<size_t>(axis)]), 1, static_cast<int64_t>(shape.size()) - axis - 1);
  Expr hot = c.where(c.call("equal", {c.expand(best, axis), places}), c.scalar(1, dtype), c.scalar(0, dtype));
  return {c.opset() < 13 ? c.reshape(hot, dims) : hot};
}

}  // namespace

Expr activated(NodeContext& c, const Expr& x, const FusedActivation& activation) {
  const std::string& name = activation.name;
  const auto alpha = [&](double otherwise) { return activation.alpha.value_or(otherwise); };
  const auto beta = [&](double otherwise) { return activation.beta.value_or(otherwise); };
  auto clipped = [&](const Expr& e, double low, double high) {
    return c.call("clip", {e}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                    a.a_min = low;
                    a.a_max = high;
                  }));
  };
  auto line = [&](double slope, double shift) {
    return clipped(c.add(c.mul(x, c.scalar_like(slope, x)), c.scalar_like(shift, x)), 0, 1);
  };
  if (name.empty()) return x;
  if (name == "Relu") return c.call("nn.relu", {x});
  if (name == "Tanh") return c.call("tanh", {x});
  if (name == "Sigmoid") return c.call("sigmoid", {x});
  if (name == "LeakyRelu")
    return c.call("nn.leaky_relu", {x}, make_attrs<relay::LeakyReluAttrs>([&](auto& a) { a.alpha = alpha(0.01f); }));
  if (name == "Clip") {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return clipped(x, alpha(-kLargest), beta(kLargest));
  }
  if (name == "HardSigmoid") return line(alpha(0.2f), beta(0.5));
  if (name == "HardSwish") return c.mul(x, line(1.0 / 6, 0.5));
  if (name == "Elu") return exponential_unit(c, x, alpha(1), 1);
  if (name == "Softplus") return softplus_of(c, x);
  c.unsupported(format("the activation '{}' inside it", name));
}

namespace {

constexpr ConverterEntry kActivationConverters[] = {
    {"ParametricSoftplus", 1, parametric_softplus},
    {"Softplus", 1, softplus},
    {"Softsign", 1, softsign},
    {"Elu", 1, elu},
    {"Celu", 12, celu},
    {"Selu", 1, selu},
    {"HardSigmoid", 1, hard_sigmoid},
    {"HardSwish", 14, hard_swish},
    {"Mish", 18, mish},
    {"Swish", 24, swish},
    {"Gelu", 20, gelu},
    {"LeakyRelu", 1, leaky_relu},
    {"PRelu", 1, prelu},
    {"ThresholdedRelu", 1, thresholded_relu},
    {"Shrink", 9, shrink},
    {"Softmax", 1, softmax},
    {"LogSoftmax", 1, log_softmax},
    {"Hardmax", 1, hardmax},
    {"Gelu", 1, gelu, "com.microsoft"},
    {"BiasGelu", 1, bias_gelu, "com.microsoft"},
    {"FastGelu", 1, fast_gelu, "com.microsoft"},
    {"QuickGelu", 1, quick_gelu, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> activation_converters() { return kActivationConverters; }

}  // namespace tilewright::onnx
