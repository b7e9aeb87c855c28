// SPDX-License-Identifier: Apache-2.0
// Resizes and pools without a kernel of their own.
#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/legalize/legalize_rules.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

std::optional<Ints> known_shape(const Expr& e) {
  const auto* type = as_tensor(e->type);
  return type ? static_shape(type->shape) : std::nullopt;
}

// Separable: axis by axis, each output from its own slice.
template <class A>
Expr adaptive(const Expr& e) {
  const auto& a = attrs_of<A>(e);
  auto in = known_shape(arg(e, 0)), out = known_shape(e);
  if (!in || !out) return e;
  if (*in == *out) return arg(e, 0);
  // In a blocked layout the block of channels comes last.
  const size_t end = A().layout.size();
  const bool blocked = out->size() == end + 1 && a.layout.starts_with(A().layout);
  if (a.layout != A().layout && !blocked) return e;
  bool global = true;
  Ints all;
  for (size_t k = 2; k < end; ++k) {
    global &= (*out)[k] == 1;
    all.push_back(static_cast<int64_t>(k));
  }
  const bool mean = called_op(e)->facts.elements != Elements::kExtreme;
  if (global && out->size() == 4 && tensor_of(e).dtype == kFloat32)
    return call(mean ? "nn.global_avg_pool2d" : "nn.global_max_pool2d", {arg(e, 0)},
                make_attrs<GlobalPool2DAttrs>([](auto&) {}), e->span);
  if (global)
    return call(mean ? "mean" : "max", {arg(e, 0)}, make_attrs<ReduceAttrs>([&](auto& r) {
                  r.axis = all;
                  r.keepdims = true;
                }),
                e->span);
  Expr x = arg(e, 0);
  for (size_t k = 2; k < end; ++k) {
    const int64_t from = (*in)[k], to = (*out)[k];
    if (from == to || to == 0 || to > 256) continue;
    std::vector<Expr> parts;
    for (int64_t i = 0; i < to; ++i) {
      Expr part = sliced(x, static_cast<int64_t>(k), i * from / to, ((i + 1) * from + to - 1) / to, x->span);
      parts.push_back(call(mean ? "mean" : "max", {part}, make_attrs<ReduceAttrs>([&](auto& r) {
                             r.axis = Ints{static_cast<int64_t>(k)};
                             r.keepdims = true;
                           }),
                           e->span));
    }
    x = parts.size() == 1
            ? parts[0]
            : call("concatenate", {make_tuple(std::move(parts))},
                   make_attrs<ConcatenateAttrs>([&](auto& j) { j.axis = static_cast<int64_t>(k); }), e->span);
  }
  return known_shape(x) == out ? x : e;
}

}  // namespace

Expr legal_upsampling(const Expr& e) {
  const auto& a = attrs_of<UpSamplingAttrs>(e);
  auto out = known_shape(e);
  if (!out || !a.layout.starts_with("NCHW")) return e;
  const bool nearest = a.method == "nearest_neighbor";
  return call(
      "image.resize2d", {arg(e, 0)}, make_attrs<Resize2DAttrs>([&](auto& r) {
        r.layout = a.layout;
        r.size = {(*out)[2], (*out)[3]};
        r.scales = {a.scale_h, a.scale_w};
        r.method = nearest ? a.method : a.method == "bilinear" ? "linear" : "cubic";
        r.coordinate_transformation_mode = a.align_corners ? "align_corners" : nearest ? "asymmetric" : "half_pixel";
      }),
      e->span);
}

// Other dtypes than the kernel's are computed in float32; integers are bounded and truncated afterwards.
Expr legal_resize2d(const Expr& e) {
  const auto& a = attrs_of<Resize2DAttrs>(e);
  const DataType in = tensor_of(arg(e, 0)).dtype, out = tensor_of(e).dtype;
  const bool copies = a.method == "nearest_neighbor";
  if (copies ? in == out : in == out && (in == kFloat32 || in == kFloat64)) return e;
  const DataType work = copies ? in : kFloat32;
  Expr made = call("image.resize2d", {cast(arg(e, 0), work)}, make_attrs<Resize2DAttrs>([&](auto& r) {
                     r = a;
                     r.out_dtype.clear();
                   }),
                   e->span);
  // A cubic goes beyond its points; what the dtype does not hold becomes its nearest number.
  if (a.method == "cubic" && out.is_integral() && out.bits <= 16)
    made = call("clip", {made}, make_attrs<ClipAttrs>([&](auto& c) {
                  c.a_min = static_cast<double>(lowest(out));
                  c.a_max = static_cast<double>(highest(out));
                }),
                e->span);
  return cast(made, out);
}

// Resizes H and W, then D: all methods are separable.
Expr legal_resize3d(const Expr& e) {
  const auto& a = attrs_of<Resize3DAttrs>(e);
  auto in = known_shape(arg(e, 0)), out = known_shape(e);
  if (!in || !out || a.layout != "NCDHW" || as<CallNode>(e)->args.size() != 1 ||
      a.coordinate_transformation_mode == "tf_crop_and_resize" || tensor_of(e).dtype != tensor_of(arg(e, 0)).dtype)
    return e;
  auto resized = [&](const Expr& x, Ints size, std::vector<double> scales) {
    return call("image.resize2d", {x}, make_attrs<Resize2DAttrs>([&](auto& r) {
                  r.size = std::move(size);
                  r.scales = std::move(scales);
                  r.sample_as(a);
                }),
                e->span);
  };
  const auto& s = a.scales;
  const int64_t n = (*in)[0], c = (*in)[1], d = (*in)[2], area = (*out)[3] * (*out)[4];
  Expr x = resized(reshape_to(arg(e, 0), {n, c * d, (*in)[3], (*in)[4]}), {(*out)[3], (*out)[4]},
                   s.size() == 3 ? std::vector<double>{s[1], s[2]} : std::vector<double>{});
  x = resized(reshape_to(x, {n, c, d, area}), {(*out)[2], area},
              s.size() == 3 ? std::vector<double>{s[0], 1} : std::vector<double>{});
  return reshape_to(x, *out);
}

// Separable: the mean of a window is the mean of its means per axis, with padding counted or not. float32 has a kernel
// of its own.
Expr legal_avg_pool3d(const Expr& e) {
  const auto& a = attrs_of<AvgPool3DAttrs>(e);
  auto in = known_shape(arg(e, 0)), out = known_shape(e);
  if (!in || !out || a.layout != "NCDHW" || !is_float_tensor(e) || tensor_of(e).dtype == kFloat32) return e;
  Ints pad = a.padding;
  if (pad.size() == 1) pad.assign(6, pad[0]);
  if (pad.size() == 3) pad.insert(pad.end(), a.padding.begin(), a.padding.end());
  auto pooled = [&](const Expr& x, size_t h, size_t w) {  // spatial axes by number; 3: none
    auto of = [&](const Ints& v, size_t axis, int64_t none) { return axis < 3 ? v[axis] : none; };
    return call("nn.avg_pool2d", {x}, make_attrs<AvgPool2DAttrs>([&](auto& p) {
                  p.pool_size = {of(a.pool_size, h, 1), of(a.pool_size, w, 1)};
                  p.strides = {of(a.strides, h, 1), of(a.strides, w, 1)};
                  p.dilation = {of(a.dilation, h, 1), of(a.dilation, w, 1)};
                  p.padding = {pad[h], w < 3 ? pad[w] : 0, pad[h + 3], w < 3 ? pad[w + 3] : 0};
                  p.ceil_mode = a.ceil_mode;
                  p.count_include_pad = a.count_include_pad;
                }),
                e->span);
  };
  const int64_t n = (*in)[0], c = (*in)[1], d = (*in)[2];
  Expr x = pooled(reshape_to(arg(e, 0), {n, c * d, (*in)[3], (*in)[4]}), 1, 2);
  x = pooled(reshape_to(x, {n, c, d, (*out)[3] * (*out)[4]}), 0, 3);
  return reshape_to(x, *out);
}

// Global pools of dtypes without a kernel, as reductions.
Expr legal_global_pool(const Expr& e) {
  const auto& a = attrs_of<GlobalPool2DAttrs>(e);
  if (tensor_of(e).dtype == kFloat32 || a.layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == a.layout))
    return e;
  return call(is_call_to(e, "nn.global_avg_pool2d") ? "mean" : "max", {arg(e, 0)},
              make_attrs<ReduceAttrs>([&](auto& r) {
                r.axis = Ints{2, 3};
                r.keepdims = true;
              }),
              e->span);
}

Expr legal_adaptive_pool1d(const Expr& e) { return adaptive<AdaptivePool1DAttrs>(e); }
Expr legal_adaptive_pool2d(const Expr& e) { return adaptive<AdaptivePool2DAttrs>(e); }
Expr legal_adaptive_pool3d(const Expr& e) { return adaptive<AdaptivePool3DAttrs>(e); }

}  // namespace tilewright::relay
