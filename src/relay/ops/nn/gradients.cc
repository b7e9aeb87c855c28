// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions, matrix products, pools and the operators between them.
#include <algorithm>

#include "relay/ops/gradient.h"

namespace tilewright::relay {
namespace gradients {
namespace {

// Merges all leading axes.
Expr as_matrix(const Expr& x) {
  std::vector<int64_t> shape = dims(x);
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return reshape_to(x, {rows, shape.back()});
}

Expr dense(const Expr& x, const Expr& w) { return call("nn.dense", {x, w}); }
// x (..., K) x w (N, K)
Gradients of_dense(const Expr& e, const Expr& g) {
  Expr rows = as_matrix(g), w = y_of(e);
  return {reshape_to(dense(rows, transposed(w, {1, 0})), dims(x_of(e))),
          dense(transposed(rows, {1, 0}), transposed(as_matrix(x_of(e)), {1, 0}))};
}

// nn.matmul and nn.batch_matmul, whose leading axes broadcast.
template <class A>
Gradients of_product(const Expr& e, const Expr& g) {
  auto product = [&](const Expr& a, bool transpose_a, const Expr& b, bool transpose_b) {
    auto set = [&](auto& out) { out.transpose_a = transpose_a, out.transpose_b = transpose_b; };
    // nn.matmul's second operand is one matrix.
    if (std::is_same_v<A, MatmulAttrs> && dims(a).size() == 2 && dims(b).size() == 2)
      return call("nn.matmul", {a, b}, make_attrs<MatmulAttrs>(set));
    return call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>(set));
  };
  const auto& a = attrs_of<A>(e);
  const Expr &x = x_of(e), &y = y_of(e);
  Expr dx = a.transpose_a ? product(y, a.transpose_b, g, true) : product(g, false, y, !a.transpose_b);
  Expr dy = a.transpose_b ? product(g, true, x, a.transpose_a) : product(x, !a.transpose_a, g, false);
  return {collapsed(dx, x), collapsed(dy, y)};
}

Gradients of_softmax(const Expr& e, const Expr& g) {
  Expr sum = summed(multiply(g, e), {attrs_of<SoftmaxAttrs>(e).axis}, true);
  return {multiply(e, subtract(g, sum))};
}

Gradients of_log_softmax(const Expr& e, const Expr& g) {
  return {subtract(g, multiply(call("exp", {e}), summed(g, {attrs_of<SoftmaxAttrs>(e).axis}, true)))};
}

Gradients of_bias_add(const Expr& e, const Expr& g) {
  const size_t rank = dims(e).size();
  const int64_t axis = positive_axis(attrs_of<BiasAddAttrs>(e).axis, rank);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
    if (i != axis) others.push_back(i);
  return {g, summed(g, others, false)};
}

// Both gradients are convolutions.
Gradients of_conv2d(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<Conv2DAttrs>(e);
  const Expr &x = x_of(e), &w = y_of(e);
  if (a.data_layout != "NCHW" || a.kernel_layout != "OIHW" || a.padding.size() != 4) return {};
  std::vector<int64_t> in = dims(x), kernel = dims(w), out = dims(e);
  // Input rows and columns that no strided window reaches have gradient zero, but must be present.
  std::vector<int64_t> missing(2);
  for (size_t i = 0; i < 2; ++i) {
    int64_t reached = (out[i + 2] - 1) * a.strides[i] + (kernel[i + 2] - 1) * a.dilation[i] + 1;
    missing[i] = in[i + 2] + a.padding[i] + a.padding[i + 2] - reached;
  }
  Expr dx = call("nn.conv2d_transpose", {g, w}, make_attrs<Conv2DTransposeAttrs>([&](auto& t) {
                   t.strides = a.strides;
                   t.padding = a.padding;
                   t.dilation = a.dilation;
                   t.output_padding = missing;
                   t.kernel_layout = "IOHW";
                   t.groups = a.groups;
                   t.channels = in[1];
                   t.kernel_size = std::vector<int64_t>{kernel[2], kernel[3]};
                 }));
  // (C, N, H, W) convolved with (O, N, OH, OW), with the stride as dilation and the groups concatenated.
  const int64_t groups = a.groups;
  auto batch_inside = [&](const Expr& t, const std::vector<int64_t>& axes) {
    const std::vector<int64_t> d = dims(t);
    return transposed(reshape_to(t, {d[0], groups, d[1] / groups, d[2], d[3]}), axes);
  };
  Expr data = groups == 1
                  ? transposed(x, {1, 0, 2, 3})
                  : reshape_to(batch_inside(x, {2, 1, 0, 3, 4}), {in[1] / groups, groups * in[0], in[2], in[3]});
  Expr filter = groups == 1 ? transposed(g, {1, 0, 2, 3})
                            : reshape_to(batch_inside(g, {1, 2, 0, 3, 4}), {out[1], out[0], out[2], out[3]});
  Expr dw = call("nn.conv2d", {data, filter}, make_attrs<Conv2DAttrs>([&](auto& c) {
                   c.groups = groups;
                   c.padding = a.padding;
                   c.strides = a.dilation;
                   c.dilation = a.strides;
                 }));
  for (size_t axis = 2; axis < 4; ++axis)
    if (dims(dw)[axis] != kernel[axis]) dw = sliced(dw, static_cast<int64_t>(axis), 0, kernel[axis]);
  return {dx, transposed(dw, {1, 0, 2, 3})};
}

Gradients of_global_avg_pool(const Expr& e, const Expr& g) {
  const std::string& layout = attrs_of<GlobalPool2DAttrs>(e).layout;
  if (layout != "NCHW" && layout != "NHWC") return {};
  std::vector<int64_t> shape = dims(x_of(e));
  const size_t h = layout.find('H');
  return {broadcast(divide(g, scalar(static_cast<double>(shape[h] * shape[h + 1]), g)), shape)};
}

// Each window distributes its gradient to its elements.
template <class A>
Gradients of_pool(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<A>(e);
  if (a.layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == "NCHW")) return {};
  auto made = try_call(std::is_same_v<A, MaxPool2DAttrs> ? "nn.max_pool2d_grad" : "nn.avg_pool2d_grad", {g, x_of(e)},
                       as<CallNode>(e)->attrs, e->span);
  return made.ok() ? Gradients{*made} : Gradients{};
}

Gradients of_pad(const Expr& e, const Expr& g) {
  const auto& a = attrs_of<PadAttrs>(e);
  if (a.pad_mode != "constant") return {};
  std::vector<int64_t> shape = dims(x_of(e));
  Expr inner = g;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (a.pad_width[i][0] < 0 || a.pad_width[i][1] < 0) return {};
    if (a.pad_width[i][0] || a.pad_width[i][1])
      inner = sliced(inner, static_cast<int64_t>(i), a.pad_width[i][0], a.pad_width[i][0] + shape[i]);
  }
  if (as<ConstantNode>(y_of(e))) return {inner, Expr()};
  auto total = [](const Expr& x) { return call("sum", {x}, make_attrs<ReduceAttrs>([](auto&) {})); };
  return {inner, subtract(total(g), total(inner))};
}

constexpr Entry kNnRules[] = {
    {"nn.avg_pool2d", of_pool<AvgPool2DAttrs>},
    {"nn.batch_flatten", of_reshape, true},
    {"nn.batch_matmul", of_product<BatchMatmulAttrs>},
    {"nn.bias_add", of_bias_add},
    {"nn.conv2d", of_conv2d},
    {"nn.dense", of_dense},
    {"nn.global_avg_pool2d", of_global_avg_pool},
    {"nn.leaky_relu",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {
           where(call("less", {x_of(e), scalar(0, g)}), multiply(g, scalar(attrs_of<LeakyReluAttrs>(e).alpha, g)), g)};
     },
     true},
    {"nn.log_softmax", of_log_softmax},
    {"nn.matmul", of_product<MatmulAttrs>},
    {"nn.max_pool2d", of_pool<MaxPool2DAttrs>},
    {"nn.pad", of_pad},
    {"nn.relu",
     [](const Expr& e, const Expr& g) -> Gradients {
       return {where(call("greater", {x_of(e), scalar(0, g)}), g, zeros_like(g))};
     },
     true},
    {"nn.softmax", of_softmax},
};

}  // namespace
}  // namespace gradients

void nn_gradients(const FactsOf& facts) { gradients::add(facts, gradients::kNnRules); }

}  // namespace tilewright::relay
