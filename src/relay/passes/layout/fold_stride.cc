// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/layout/fold_stride.h"

#include "relay/calls.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One axis of the stride-1 convolution: kernel element k becomes tap (k + shift) / stride of phase (k + shift) %
// stride.
struct Axis {
  int64_t stride, shift, taps, before, after;
  // Winograd products for an output and an input channel, with tiles of 4.
  double products() const { return taps == 1 ? 1 : static_cast<double>(taps + 3) / 4 * static_cast<double>(stride); }
};
std::optional<Axis> axis_of(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  if (stride < 1 || in % stride != 0) return std::nullopt;
  Axis a{};
  a.stride = stride;
  a.shift = (stride - pad % stride) % stride;
  a.taps = ceil_div(kernel + a.shift, stride);
  a.before = (pad + a.shift) / stride;
  a.after = out - in / stride - a.before + a.taps - 1;
  const bool split = stride > 1 && stride <= 4 && a.taps >= 2 && a.taps <= 4;
  if (!(split || (kernel == 1 && stride == 1)) || a.after < 0) return std::nullopt;
  return a;
}

// (O, I, kh, kw) -> (O, I*sh*sw, taps, taps): input channel, row and column of the phase.
Tensor phase_weights(const Tensor& w, const Axis& h, const Axis& x) {
  const int64_t out = w.shape()[0], in = w.shape()[1], kh = w.shape()[2], kw = w.shape()[3];
  Tensor result = Tensor::zeros(kFloat32, {out, in * h.stride * x.stride, h.taps, x.taps});
  const float* from = w.as<float>().data();
  float* to = result.as_mutable<float>().data();
  for (int64_t filter = 0; filter < out * in; ++filter)
    for (int64_t i = 0; i < kh; ++i)
      for (int64_t j = 0; j < kw; ++j) {
        const int64_t row = i + h.shift, column = j + x.shift;
        const int64_t channel = (filter * h.stride + row % h.stride) * x.stride + column % x.stride;
        to[(channel * h.taps + row / h.stride) * x.taps + column / x.stride] = from[(filter * kh + i) * kw + j];
      }
  return result;
}

Expr fold(const Expr& e) {
  if (!is_call_to(e, "nn.conv2d")) return e;
  const auto& attrs = attrs_of<Conv2DAttrs>(e);
  const Tensor* weights = constant_data(arg(e, 1));
  if (!weights || weights->dtype() != kFloat32 || attrs.groups != 1 || attrs.data_layout != "NCHW" ||
      attrs.kernel_layout != "OIHW" || !(attrs.out_layout.empty() || attrs.out_layout == "NCHW") ||
      attrs.dilation != std::vector<int64_t>{1, 1} || tensor_of(e).dtype != kFloat32)
    return e;
  const auto data = static_shape(tensor_of(arg(e, 0)).shape), result = static_shape(tensor_of(e).shape);
  if (!data || !result || data->size() != 4 || (*data)[1] > 4 || (*data)[1] < 1) return e;
  const auto& kernel = weights->shape();
  const auto& padding = attrs.padding;
  const int64_t top = padding[0], left = padding.size() == 1 ? padding[0] : padding[1];
  const auto h = axis_of((*data)[2], (*result)[2], kernel[2], attrs.strides[0], top);
  const auto w = axis_of((*data)[3], (*result)[3], kernel[3], attrs.strides[1], left);
  if (!h || !w || 2 * h->products() * w->products() > static_cast<double>(kernel[2] * kernel[3])) return e;
  // With fewer outputs or pixels the Winograd transforms cost more than they save.
  if (kernel[0] < 16 || (*result)[2] * (*result)[3] < 784) return e;
  const int64_t n = (*data)[0], c = (*data)[1], rows = (*data)[2] / h->stride, columns = (*data)[3] / w->stride;
  Expr phases =
      transposed(reshape_to(arg(e, 0), {n, c, rows, h->stride, columns, w->stride}), {0, 1, 3, 5, 2, 4}, e->span);
  return call("nn.conv2d",
              {reshape_to(phases, {n, c * h->stride * w->stride, rows, columns}),
               make_constant(phase_weights(*weights, *h, *w), arg(e, 1)->span)},
              make_attrs<Conv2DAttrs>([&](auto& a) {
                a = attrs;
                a.strides = {1, 1};
                a.padding = {h->before, w->before, h->after, w->after};
                a.kernel_size = std::vector<int64_t>{h->taps, w->taps};
              }),
              e->span);
}

}  // namespace

Result<Module> fold_stride(const Module& module, PassContext& context) {
  if (!context.target || context.target->strict_math || context.target->vector_bits < 256) return module;
  return rewrite_module(module, [](const Expr&, const Expr& e) { return fold(e); });
}

}  // namespace tilewright::relay
