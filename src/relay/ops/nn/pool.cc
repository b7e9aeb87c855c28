// SPDX-License-Identifier: Apache-2.0
// Max and average pools: sliding, global and adaptive. Every axis becomes a list of windows, so that one loop serves
// all.
#include <algorithm>
#include <limits>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/convolution.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

struct AxisWindows {
  std::vector<std::vector<int64_t>> taps;  // input indices of each output
  std::vector<int64_t> divisor;            // number of elements that the average divides by along this axis
};

AxisWindows sliding(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                    int64_t after, bool include_pad) {
  AxisWindows w;
  for (int64_t o = 0; o < out; ++o) {
    std::vector<int64_t> taps;
    int64_t padded = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = o * stride - before + k * dilation;
      if (at >= 0 && at < in) taps.push_back(at);
      if (at < in + after) ++padded;
    }
    w.divisor.push_back(include_pad ? padded : static_cast<int64_t>(taps.size()));
    w.taps.push_back(std::move(taps));
  }
  return w;
}

AxisWindows adaptive(int64_t in, int64_t out) {
  AxisWindows w;
  for (int64_t o = 0; o < out; ++o) {
    std::vector<int64_t> taps;
    for (int64_t i = o * in / out; i < ((o + 1) * in + out - 1) / out; ++i) taps.push_back(i);
    w.divisor.push_back(static_cast<int64_t>(taps.size()));
    w.taps.push_back(std::move(taps));
  }
  return w;
}

// x is (N, C, spatial...); windows has three entries, of which leading ones may be trivial.
Value pool(const Value& x, const AxisWindows (&windows)[3], std::vector<int64_t> shape, bool average) {
  Value out = make_value(x.dtype, std::move(shape));
  const size_t rank = x.shape.size();
  const int64_t w = x.shape[rank - 1], h = rank >= 4 ? x.shape[rank - 2] : 1, d = rank >= 5 ? x.shape[rank - 3] : 1;
  const int64_t planes = x.shape[0] * x.shape[1], in_size = d * h * w;
  const bool is_float = x.is_float(), is_uint64 = x.dtype == kUInt64;
  const bool bounds = is_float && (average || !x.bound.empty());
  if (bounds) out.bound.resize(out.f.size());
  const double u = unit_roundoff(x.dtype);
  int64_t o = 0;
  for (int64_t p = 0; p < planes; ++p)
    for (size_t od = 0; od < windows[0].taps.size(); ++od)
      for (size_t oh = 0; oh < windows[1].taps.size(); ++oh)
        for (size_t ow = 0; ow < windows[2].taps.size(); ++ow, ++o) {
          double best = -std::numeric_limits<double>::infinity(), sum = 0, sum_abs = 0, bound_max = 0, bound_sum = 0;
          int64_t best_int = 0, sum_int = 0;
          bool any = false;
          for (int64_t id : windows[0].taps[od])
            for (int64_t ih : windows[1].taps[oh])
              for (int64_t iw : windows[2].taps[ow]) {
                const int64_t i = p * in_size + (id * h + ih) * w + iw;
                if (is_float) {
                  const double v = x.f[i];
                  best = std::isnan(v) || v > best ? v : best;
                  sum += v;
                  sum_abs += std::fabs(v);
                  if (!x.bound.empty()) {
                    bound_max = std::max(bound_max, x.bound[i]);
                    bound_sum += x.bound[i];
                  }
                } else {
                  const int64_t v = x.i[i];
                  bool larger = is_uint64 ? static_cast<uint64_t>(v) > static_cast<uint64_t>(best_int) : v > best_int;
                  if (!any || larger) best_int = v;
                  sum_int = static_cast<int64_t>(static_cast<uint64_t>(sum_int) +
                                                 static_cast<uint64_t>(v));  // wraps, as the kernels do
                }
                any = true;
              }
          const int64_t n = windows[0].divisor[od] * windows[1].divisor[oh] * windows[2].divisor[ow];
          if (is_float) {
            const double count = static_cast<double>(n);
            out.f[o] = average ? (n ? sum / count : 0) : best;
            if (bounds) out.bound[o] = average ? (n ? (bound_sum + 4 * u * sum_abs) / count : 0) : bound_max;
          } else {
            out.i[o] = average ? (n ? sum_int / n : 0) : best_int;
          }
        }
  return out;
}

struct PoolLayouts {
  Layout in, out, plain;
};
Result<PoolLayouts> pool_layouts(const std::string& layout, const std::string& out_layout, size_t spatial) {
  PoolLayouts l;
  l.in = TW_TRY(parse_layout(layout));
  l.out = TW_TRY(parse_layout(out_layout.empty() ? layout : out_layout));
  l.plain = TW_TRY(parse_layout(std::string("NC") + spatial_letters(spatial)));
  for (const auto& axis : l.in.axes)
    if (axis.factor && axis.letter != 'C') return type_error(format("layout \"{}\" blocks a spatial axis", layout));
  return l;
}
// The data's shape as (N, C, spatial...).
Result<Shape> plain_shape(const TypeArgs& args, const PoolLayouts& l) {
  if (!args.tensor(0).dtype.is_float() && !args.tensor(0).dtype.is_integral())
    return type_error(format("it needs numbers, not {}", args.tensor(0).dtype.str()));
  return relayout_shape(l.in, l.plain, args.tensor(0).shape);
}

template <class A, size_t kSpatial>
Result<Type> pool_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  PoolLayouts l = TW_TRY(pool_layouts(a.layout, a.out_layout, kSpatial));
  Shape s = TW_TRY(plain_shape(args, l));
  TW_TRY_STATUS(checked_window("pool_size", a.pool_size, kSpatial));
  TW_TRY_STATUS(checked_window("strides", a.strides, kSpatial));
  TW_TRY_STATUS(checked_window("dilation", a.dilation, kSpatial));
  std::vector<int64_t> pad = TW_TRY(full_padding(a.padding, kSpatial));
  for (size_t k = 0; k < kSpatial; ++k)
    s[2 + k] = TW_TRY(
        window_output(s[2 + k], a.pool_size[k], a.strides[k], a.dilation[k], pad[k], pad[k + kSpatial], a.ceil_mode));
  return tensor_type(TW_TRY(relayout_shape(l.plain, l.out, s)), args.tensor(0).dtype);
}

template <class A>
bool includes_pad(const A& a) {
  if constexpr (requires { a.count_include_pad; })
    return a.count_include_pad;
  else
    return false;
}

AxisWindows single() { return {{{0}}, {1}}; }

template <class A, size_t kSpatial, bool kAverage>
Result<std::vector<Value>> eval_pool(const EvalArgs& args) {
  const auto& a = args.as<A>();
  PoolLayouts l = TW_TRY(pool_layouts(a.layout, a.out_layout, kSpatial));
  std::vector<int64_t> pad = TW_TRY(full_padding(a.padding, kSpatial));
  Value x = relayout(args.inputs[0], l.in, l.plain);
  AxisWindows windows[3] = {single(), single(), single()};
  std::vector<int64_t> shape = x.shape;
  for (size_t k = 0; k < kSpatial; ++k) {
    Dim out = TW_TRY(window_output(x.shape[2 + k], a.pool_size[k], a.strides[k], a.dilation[k], pad[k],
                                   pad[k + kSpatial], a.ceil_mode));
    shape[2 + k] = out.value();
    windows[3 - kSpatial + k] = sliding(x.shape[2 + k], out.value(), a.pool_size[k], a.strides[k], a.dilation[k],
                                        pad[k], pad[k + kSpatial], includes_pad(a));
  }
  return one(relayout(pool(x, windows, shape, kAverage), l.plain, l.out));
}

std::vector<int64_t> output_sizes(const GlobalPool2DAttrs&) { return {1, 1}; }
template <class A>
std::vector<int64_t> output_sizes(const A& a) {
  return a.output_size;
}

template <class A, size_t kSpatial>
Result<Type> adaptive_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  PoolLayouts l = TW_TRY(pool_layouts(a.layout, a.out_layout, kSpatial));
  Shape s = TW_TRY(plain_shape(args, l));
  std::vector<int64_t> sizes = output_sizes(a);
  if (sizes.size() > 1 && sizes.size() != kSpatial)
    return type_error(format("output_size has {} values for {} spatial axes", sizes.size(), kSpatial));
  for (size_t k = 0; k < kSpatial && !sizes.empty(); ++k) {
    int64_t size = sizes[sizes.size() == 1 ? 0 : k];
    if (size < 1 || size > (int64_t{1} << 31)) return type_error(format("output_size {} is out of range", size));
    s[2 + k] = size;
  }
  return tensor_type(TW_TRY(relayout_shape(l.plain, l.out, s)), args.tensor(0).dtype);
}

template <class A, size_t kSpatial, bool kAverage>
Result<std::vector<Value>> eval_adaptive(const EvalArgs& args) {
  const auto& a = args.as<A>();
  PoolLayouts l = TW_TRY(pool_layouts(a.layout, a.out_layout, kSpatial));
  Value x = relayout(args.inputs[0], l.in, l.plain);
  std::vector<int64_t> sizes = output_sizes(a), shape = x.shape;
  AxisWindows windows[3] = {single(), single(), single()};
  for (size_t k = 0; k < kSpatial; ++k) {
    if (!sizes.empty()) shape[2 + k] = sizes[sizes.size() == 1 ? 0 : k];
    windows[3 - kSpatial + k] = adaptive(x.shape[2 + k], shape[2 + k]);
  }
  return one(relayout(pool(x, windows, shape, kAverage), l.plain, l.out));
}

OpDef pool_op(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
              Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, {{"data", "in `layout`; numbers"}}, OpPattern::kOutEWiseFusable, type, eval, make);
}

}  // namespace

std::vector<OpDef> pool_ops() {
  std::vector<OpDef> ops;
#define TW_POOLS(n, axes)                                                                                            \
  ops.push_back(                                                                                                     \
      pool_op("nn.max_pool" #n "d", "The maximum of every window of " axes "; padding never wins.",                  \
              pool_type<MaxPool##n##DAttrs, n>, eval_pool<MaxPool##n##DAttrs, n, false>,                             \
              make_default_attrs<MaxPool##n##DAttrs>)                                                                \
          .with({.elements = Elements::kExtreme, .narrowing = Narrowing::kFollows, .scaling = Scaling::kPositive})); \
  ops.push_back(pool_op("nn.avg_pool" #n "d", "The mean of every window of " axes ".",                               \
                        pool_type<AvgPool##n##DAttrs, n>, eval_pool<AvgPool##n##DAttrs, n, true>,                    \
                        make_default_attrs<AvgPool##n##DAttrs>)                                                      \
                    .with({.narrowing = Narrowing::kFollows, .scaling = Scaling::kLinear}));                         \
  ops.push_back(pool_op("nn.adaptive_max_pool" #n "d", "Maxima of output_size even windows of " axes ".",            \
                        adaptive_type<AdaptivePool##n##DAttrs, n>, eval_adaptive<AdaptivePool##n##DAttrs, n, false>, \
                        make_default_attrs<AdaptivePool##n##DAttrs>)                                                 \
                    .with({.elements = Elements::kExtreme, .scaling = Scaling::kPositive}));                         \
  ops.push_back(pool_op("nn.adaptive_avg_pool" #n "d", "Means of output_size even windows of " axes ".",             \
                        adaptive_type<AdaptivePool##n##DAttrs, n>, eval_adaptive<AdaptivePool##n##DAttrs, n, true>,  \
                        make_default_attrs<AdaptivePool##n##DAttrs>)                                                 \
                    .with({.scaling = Scaling::kLinear}));
  TW_POOLS(1, "W")
  TW_POOLS(2, "H and W")
  TW_POOLS(3, "D, H and W")
#undef TW_POOLS
  ops.push_back(pool_op("nn.global_max_pool2d", "The maximum over H and W: (N, C, H, W) -> (N, C, 1, 1).",
                        adaptive_type<GlobalPool2DAttrs, 2>, eval_adaptive<GlobalPool2DAttrs, 2, false>,
                        make_default_attrs<GlobalPool2DAttrs>)
                    .with({.elements = Elements::kExtreme, .scaling = Scaling::kPositive}));
  ops.push_back(pool_op("nn.global_avg_pool2d", "The mean over H and W: (N, C, H, W) -> (N, C, 1, 1).",
                        adaptive_type<GlobalPool2DAttrs, 2>, eval_adaptive<GlobalPool2DAttrs, 2, true>,
                        make_default_attrs<GlobalPool2DAttrs>)
                    .with({.scaling = Scaling::kLinear}));
  return ops;
}

}  // namespace tilewright::relay
