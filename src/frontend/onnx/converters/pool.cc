// SPDX-License-Identifier: Apache-2.0
// Pools of one to three spatial axes.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/converters/conv.h"
#include "frontend/onnx/converters/window.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

double product(const Ints& values) {
  double out = 1;
  for (int64_t v : values) out *= static_cast<double>(v);
  return out;
}

template <class A>
AttrsRef pool_attrs(const Window& w, bool ceil_mode, bool include_pad) {
  return make_attrs<A>([&](auto& a) {
    a.pool_size = w.kernel;
    a.strides = w.strides;
    a.dilation = w.dilations;
    a.padding = w.pads;
    a.ceil_mode = ceil_mode;
    a.count_include_pad = include_pad;
  });
}
// The window of two of the axes; one may be absent (-1), which then has extent 1.
Window two_axes(const Window& w, int first, int second) {
  auto pick = [&](const Ints& v, int64_t otherwise) {
    auto at = [&](int axis) { return axis >= 0 ? v[static_cast<size_t>(axis)] : otherwise; };
    return Ints{at(first), at(second)};
  };
  Window out;
  out.n = 2;
  out.kernel = pick(w.kernel, 1), out.strides = pick(w.strides, 1), out.dilations = pick(w.dilations, 1);
  Ints begins(w.pads.begin(), w.pads.begin() + w.n), ends(w.pads.begin() + w.n, w.pads.end());
  out.pads = pick(begins, 0);
  for (int64_t v : pick(ends, 0)) out.pads.push_back(v);
  return out;
}

// Max pooling of one axis (an image of height 1), or of three: 2-D pooling of the last two axes, then of the first.
// Exact, since a window's maximum and element count separate by axes.
template <class Pool>
Expr in_two_axes(NodeContext& c, const Expr& x, const Window& w, Pool&& pool) {
  if (w.n == 2) return pool(x, w);
  if (w.n == 1) return c.squeeze(pool(c.expand(x, 2), two_axes(w, -1, 0)), {2});
  Ints d = c.dims(x);
  Expr pictures = pool(c.reshape(x, {d[0], c.product(d, 1, 3), d[3], d[4]}), two_axes(w, 1, 2));
  Ints p = c.dims(pictures);
  Expr columns = pool(c.reshape(pictures, {d[0], d[1], d[2], c.product(p, 2)}), two_axes(w, 0, -1));
  return c.reshape(columns, {d[0], d[1], c.dims(columns)[2], p[2], p[3]});
}
// Whether the 3-D pooling kernel applies; ceil_mode and other element types are pooled axis by axis.
bool pools_volumes(NodeContext& c, const Expr& x, const Window& w, bool ceil_mode) {
  return w.n == 3 && !ceil_mode && c.dtype(x) == kFloat32;
}

// The number of windows along an axis with ceil_mode. ONNX drops a window that begins in the end padding; `all`
// receives the count of the operator's own formula, which keeps it.
int64_t windows_up(const Window& w, size_t i, int64_t size, int64_t* all) {
  const int64_t before = w.pads[i], after = w.pads[i + static_cast<size_t>(w.n)];
  const int64_t room = size + before + after - (w.kernel[i] - 1) * w.dilations[i] - 1;
  *all = (room > 0 ? (room + w.strides[i] - 1) / w.strides[i] : 0) + 1;
  return *all - ((*all - 1) * w.strides[i] >= size + before ? 1 : 0);
}

// A 2-D pool, cropped to the windows that ONNX keeps.
template <class A>
Expr pool_picture(NodeContext& c, const char* op, const Expr& x, const Window& w, bool ceil_mode, bool include_pad) {
  const Shape& shape = as_tensor(x->type)->shape;
  Ints d(4);
  bool known = true, may_cut = false;
  for (size_t i = 0; i < 2; ++i) {
    const auto size = shape.at(i + 2).constant();
    known = known && size.has_value();
    d[i + 2] = size.value_or(0);
    may_cut = may_cut || w.pads[i + 2] + w.strides[i] > (w.kernel[i] - 1) * w.dilations[i] + 1;
  }
  if (!ceil_mode || (!known && !may_cut)) return c.call(op, {x}, pool_attrs<A>(w, ceil_mode, include_pad));
  if (!known) d = c.dims(x);  // fails: the node waits for the sizes of a run
  Ints kept(2), up(2);
  bool rounds = false, cuts = false;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = d[i + 2] + w.pads[i] + w.pads[i + 2] - (w.kernel[i] - 1) * w.dilations[i] - 1;
    kept[i] = windows_up(w, i, d[i + 2], &up[i]);
    rounds = rounds || room < 0 || kept[i] != room / w.strides[i] + 1;
    cuts = cuts || kept[i] != up[i];
  }
  Expr y = c.call(op, {x}, pool_attrs<A>(w, rounds, include_pad));
  if (rounds && cuts)
    for (size_t i = 0; i < 2; ++i)
      if (kept[i] != up[i]) y = c.slice(y, static_cast<int64_t>(i) + 2, 0, kept[i]);
  return y;
}
Expr max_pool_of(NodeContext& c, const Expr& x, const Window& w, bool ceil_mode) {
  if (pools_volumes(c, x, w, ceil_mode))
    return c.call("nn.max_pool3d", {x}, pool_attrs<relay::MaxPool3DAttrs>(w, ceil_mode, false));
  return in_two_axes(c, x, w, [&](const Expr& e, const Window& two) {
    return pool_picture<relay::MaxPool2DAttrs>(c, "nn.max_pool2d", e, two, ceil_mode, false);
  });
}
Expr avg_pool_of(NodeContext& c, const Expr& x, const Window& w, bool ceil_mode, bool include_pad) {
  if (pools_volumes(c, x, w, ceil_mode))
    return c.call("nn.avg_pool3d", {x}, pool_attrs<relay::AvgPool3DAttrs>(w, ceil_mode, include_pad));
  return in_two_axes(c, x, w, [&](const Expr& e, const Window& two) {
    return pool_picture<relay::AvgPool2DAttrs>(c, "nn.avg_pool2d", e, two, ceil_mode, include_pad);
  });
}

// The argmax of each window as an index into the flattened operand (the first on ties): the window's taps are compared
// in turn.
Expr places_of_largest(NodeContext& c, const Expr& x, const Window& w, const Ints& out) {
  const Ints dims = c.dims(x);
  const auto n = static_cast<size_t>(w.n);
  if (c.product(w.kernel) > 1024) c.unsupported("the indices of the largest elements of windows of more than 1024");
  std::vector<Ints> widths(dims.size(), Ints{0, 0});
  Ints padded(dims.begin() + 2, dims.end()), weight(n, 1);
  const bool columns = c.int_attr("storage_order", 0) != 0;
  for (size_t k = 1; k < n; ++k) {
    const size_t i = columns ? k : n - 1 - k, from = columns ? k - 1 : n - k;
    weight[i] = weight[from] * dims[from + 2];
  }
  for (size_t i = 0; i < n; ++i) {
    const int64_t needed = (out[i + 2] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
    widths[i + 2] = {w.pads[i], std::max<int64_t>(0, needed - dims[i + 2] - w.pads[i])};
    padded[i] += widths[i + 2][0] + widths[i + 2][1];
  }
  const bool padded_windows = !std::equal(padded.begin(), padded.end(), dims.begin() + 2);
  Tensor places(kInt64, padded);
  Ints at(n, 0);
  for (int64_t e = 0; e < places.size(); ++e) {
    int64_t place = 0;
    bool inside = true;
    for (size_t i = 0; i < n; ++i) {
      const int64_t from = at[i] - widths[i + 2][0];
      inside = inside && from >= 0 && from < dims[i + 2];
      place += from * weight[i];
    }
    places.set_int(e, inside ? place : -1);
    for (size_t i = n; i-- > 0 && ++at[i] == padded[i];) at[i] = 0;
  }
  const DataType dtype = c.dtype(x);
  const double lowest = dtype.is_float() ? -HUGE_VAL : dtype.is_uint() ? 0 : -std::ldexp(1.0, dtype.bits - 1);
  Expr data = c.call("nn.pad", {x, c.scalar_like(lowest, x)},
                     make_attrs<relay::PadAttrs>([&](auto& a) { a.pad_width = widths; }));
  Expr index = c.expand(c.constant_of(places), 0, 2), best, place;
  Ints tap(n, 0);
  for (int64_t t = 0; t < c.product(w.kernel); ++t) {
    auto part = [&](const Expr& e) {
      return c.call("strided_slice", {e}, make_attrs<relay::StridedSliceAttrs>([&](auto& a) {
                      for (size_t i = 0; i < n; ++i) {
                        const int64_t begin = tap[i] * w.dilations[i];
                        a.begin.push_back(begin);
                        a.end.push_back(begin + (out[i + 2] - 1) * w.strides[i] + 1);
                        a.strides.push_back(w.strides[i]);
                      }
                      a.axes = Ints();
                      for (size_t i = 0; i < n; ++i) a.axes->push_back(static_cast<int64_t>(i) + 2);
                    }));
    };
    Expr value = part(data), here = part(index);
    if (best) {
      // NaN beats every number, and any element beats padding.
      Expr more = dtype.is_float()
                      ? c.call("logical_and", {c.call("logical_not", {c.call("less_equal", {value, best})}),
                                               c.call("equal", {best, best})})
                      : c.call("greater", {value, best});
      if (padded_windows) more = c.call("logical_or", {more, c.call("less", {place, c.scalar(0, kInt64)})});
      place = c.where(more, here, place);
      best = c.where(more, value, best);
    } else {
      place = c.broadcast_to(here, out);
      best = value;
    }
    for (size_t i = n; i-- > 0 && ++tap[i] == w.kernel[i];) tap[i] = 0;
  }
  Ints maps(dims.size(), 1);
  maps[0] = dims[0], maps[1] = dims[1];
  const auto size = static_cast<double>(c.product(dims, 2));
  return c.add(place, c.reshape(c.mul(c.counting(dims[0] * dims[1]), c.scalar(size, kInt64)), maps));
}

}  // namespace

Expr largest_of_windows(NodeContext& c, const Expr& x) {
  return max_pool_of(c, x, read_window(c, x, c.ints_attr("kernel_shape")), c.int_attr("ceil_mode", 0) != 0);
}
Expr average_of_windows(NodeContext& c, const Expr& x) {
  const Window w = read_window(c, x, c.ints_attr("kernel_shape"));
  return avg_pool_of(c, x, w, c.int_attr("ceil_mode", 0) != 0, c.int_attr("count_include_pad", 0) != 0);
}

namespace {

Values max_pool(NodeContext& c) {
  Expr x = c.input(0), y = largest_of_windows(c, x);
  if (!c.wants(1)) return {y};
  return {y, places_of_largest(c, x, read_window(c, x, c.ints_attr("kernel_shape")), c.dims(y))};
}
Values average_pool(NodeContext& c) { return {average_of_windows(c, c.input(0))}; }

// The p-norm of each window: (k * average(|x|^p))^(1/p), padding counted as zeros.
Values lp_pool(NodeContext& c) {
  Expr x = c.input(0);
  Window w = read_window(c, x, c.ints_attr("kernel_shape"));
  // In opset 1, p is a float.
  double p = c.opset() < 2 ? c.float_attr("p", 2) : static_cast<double>(c.int_attr("p", 2));
  if (!(p >= 1)) c.fail(format("its p is {}", p));
  Expr powers = c.call("power", {c.call("abs", {x}), c.scalar_like(p, x)});
  // Every window counts as full, also one that extends past the end: the padding is enlarged to what the last one
  // needs.
  if (c.int_attr("ceil_mode", 0) != 0) {
    const Ints d = c.dims(x);
    for (size_t i = 0; i < static_cast<size_t>(w.n); ++i) {
      int64_t all = 0;
      const int64_t reach =
          (windows_up(w, i, d[i + 2], &all) - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
      w.pads[i + static_cast<size_t>(w.n)] = std::max<int64_t>(0, reach - d[i + 2] - w.pads[i]);
    }
  }
  Expr average = avg_pool_of(c, powers, w, false, true);
  Expr sum = c.mul(average, c.scalar_like(product(w.kernel), x));
  return {c.call("power", {sum, c.scalar_like(1 / p, x)})};
}

Ints spatial_axes(NodeContext& c, const Expr& x) {
  if (c.rank(x) < 3) c.fail_type(format("its input of rank {} has no spatial axis", c.rank(x)));
  Ints axes;
  for (int64_t i = 2; i < c.rank(x); ++i) axes.push_back(i);
  return axes;
}
Values global_average_pool(NodeContext& c) {
  Expr x = c.input(0);
  if (c.rank(x) == 4) return {c.call("nn.global_avg_pool2d", {x}, make_attrs<relay::GlobalPool2DAttrs>([](auto&) {}))};
  return {c.reduce("mean", x, spatial_axes(c, x), true)};
}
Values global_max_pool(NodeContext& c) {
  Expr x = c.input(0);
  if (c.rank(x) == 4) return {c.call("nn.global_max_pool2d", {x}, make_attrs<relay::GlobalPool2DAttrs>([](auto&) {}))};
  return {c.reduce("max", x, spatial_axes(c, x), true)};
}
Values global_lp_pool(NodeContext& c) {
  Expr x = c.input(0);
  double p = c.opset() < 2 ? c.float_attr("p", 2) : static_cast<double>(c.int_attr("p", 2));
  if (!(p >= 1)) c.fail(format("its p is {}", p));
  Expr sum = c.reduce("sum", c.call("power", {c.call("abs", {x}), c.scalar_like(p, x)}), spatial_axes(c, x), true);
  return {c.call("power", {sum, c.scalar_like(1 / p, x)})};
}

constexpr ConverterEntry kPools[] = {
    {"MaxPool", 1, max_pool},
    {"AveragePool", 1, average_pool},
    {"LpPool", 1, lp_pool},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"GlobalLpPool", 1, global_lp_pool},
};

}  // namespace

std::span<const ConverterEntry> pool_converters() { return kPools; }

}  // namespace tilewright::onnx
