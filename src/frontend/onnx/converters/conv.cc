// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools of one to three spatial axes.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

struct Window {
  int64_t n = 0;  // spatial axes
  Ints kernel, strides, dilations, pads;
};

void check_size(NodeContext& c, const Ints& values, size_t want, const char* what, int64_t least) {
  if (values.size() != want) c.fail(format("its {} has {} values where {} are needed", what, values.size(), want));
  for (int64_t v : values)
    if (v < least || v > (int64_t{1} << 31)) c.fail(format("its {} holds {}, which is out of range", what, v));
}

double product(const Ints& values) {
  double out = 1;
  for (int64_t v : values) out *= static_cast<double>(v);
  return out;
}

// The padding that makes ceil(size / stride) outputs; the odd one goes to the end (SAME_UPPER) or to the begin.
void auto_pads(NodeContext& c, const Expr& x, const std::string& mode, Window* w) {
  Ints sizes = c.dims(x);
  size_t n = static_cast<size_t>(w->n);
  w->pads.assign(2 * n, 0);
  if (mode == "VALID") return;
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") c.fail(format("its auto_pad '{}' is unknown", mode));
  for (size_t i = 0; i < n; ++i) {
    int64_t size = sizes[i + 2], out = (size + w->strides[i] - 1) / w->strides[i];
    int64_t extent = (w->kernel[i] - 1) * w->dilations[i] + 1;
    int64_t total = std::max<int64_t>(0, (out - 1) * w->strides[i] + extent - size);
    int64_t small = total / 2, large = total - small;
    w->pads[i] = mode == "SAME_UPPER" ? small : large;
    w->pads[i + n] = mode == "SAME_UPPER" ? large : small;
  }
}

Window read_window(NodeContext& c, const Expr& x, Ints kernel) {
  Window w;
  w.n = c.rank(x) - 2;
  if (w.n < 1) c.fail_type(format("its input of rank {} has no spatial axis", c.rank(x)));
  if (w.n > 3) c.unsupported("more than three spatial axes");
  auto n = static_cast<size_t>(w.n);
  w.kernel = std::move(kernel);
  check_size(c, w.kernel, n, "kernel_shape", 1);
  w.strides = c.ints_attr("strides", Ints(n, 1));
  check_size(c, w.strides, n, "strides", 1);
  w.dilations = c.ints_attr("dilations", Ints(n, 1));
  check_size(c, w.dilations, n, "dilations", 1);
  w.pads = c.ints_attr("pads", Ints(2 * n, 0));
  if (w.pads.empty()) w.pads.assign(2 * n, 0);
  check_size(c, w.pads, 2 * n, "pads", -(int64_t{1} << 31));
  std::string mode = c.string_attr("auto_pad", "NOTSET");
  if (mode != "NOTSET" && !mode.empty()) auto_pads(c, x, mode, &w);
  return w;
}

// Negative padding crops, before the operator.
Expr crop_negative_pads(NodeContext& c, Expr x, Window* w) {
  auto n = static_cast<size_t>(w->n);
  for (size_t i = 0; i < n; ++i) {
    int64_t &begin = w->pads[i], &end = w->pads[i + n];
    if (begin >= 0 && end >= 0) continue;
    x = c.slice(x, static_cast<int64_t>(i) + 2, std::max<int64_t>(0, -begin), end < 0 ? end : INT64_MAX);
    begin = std::max<int64_t>(begin, 0);
    end = std::max<int64_t>(end, 0);
  }
  return x;
}

Ints kernel_of(NodeContext& c, const Expr& weight) {
  Ints dims = c.dims(weight);
  if (dims.size() < 3) c.fail_type(format("its weight has rank {}, at least 3 is needed", dims.size()));
  Ints kernel(dims.begin() + 2, dims.end());
  Ints declared = c.ints_attr("kernel_shape");
  if (!declared.empty() && declared != kernel)
    c.fail(format("its kernel_shape {} is not its weight's {}", shape_str(declared), shape_str(kernel)));
  return kernel;
}

Expr add_bias(NodeContext& c, const Expr& y, size_t input) {
  if (!c.has(input)) return y;
  return c.call("nn.bias_add", {y, c.input(input)}, make_attrs<relay::BiasAddAttrs>([](auto& a) { a.axis = 1; }));
}

template <class A>
AttrsRef conv_attrs(NodeContext& c, const Window& w, int64_t groups, int64_t channels) {
  return make_attrs<A>([&](auto& a) {
    a.strides = w.strides;
    a.padding = w.pads;
    a.dilation = w.dilations;
    a.groups = groups;
    a.channels = channels;
    a.kernel_size = w.kernel;
  });
}

Values conv(NodeContext& c) {
  Expr x = c.input(0), weight = c.input(1);
  Window w = read_window(c, x, kernel_of(c, weight));
  int64_t groups = c.int_attr("group", 1);
  if (groups < 1) c.fail(format("its group is {}", groups));
  x = crop_negative_pads(c, x, &w);
  int64_t channels = c.dims(weight)[0];
  Expr y;
  if (w.n == 1) y = c.call("nn.conv1d", {x, weight}, conv_attrs<relay::Conv1DAttrs>(c, w, groups, channels));
  if (w.n == 2) y = c.call("nn.conv2d", {x, weight}, conv_attrs<relay::Conv2DAttrs>(c, w, groups, channels));
  if (w.n == 3) y = c.call("nn.conv3d", {x, weight}, conv_attrs<relay::Conv3DAttrs>(c, w, groups, channels));
  return {add_bias(c, y, 2)};
}

template <class A>
AttrsRef transposed_attrs(const Window& w, int64_t groups, int64_t channels, const Ints& output_padding,
                          const char* kernel_layout) {
  return make_attrs<A>([&](auto& a) {
    a.strides = w.strides;
    a.padding = w.pads;
    a.output_padding = output_padding;
    a.dilation = w.dilations;
    a.groups = groups;
    a.channels = channels;
    a.kernel_size = w.kernel;
    a.kernel_layout = kernel_layout;
  });
}

Values conv_transpose(NodeContext& c) {
  Expr x = c.input(0), weight = c.input(1);
  // auto_pad means something else here: read the window without it.
  std::string mode = c.string_attr("auto_pad", "NOTSET");
  Window w;
  w.n = c.rank(x) - 2;
  if (w.n < 1) c.fail_type("its input has no spatial axis");
  if (w.n > 3) c.unsupported("more than three spatial axes");
  auto n = static_cast<size_t>(w.n);
  w.kernel = kernel_of(c, weight);
  w.strides = c.ints_attr("strides", Ints(n, 1));
  w.dilations = c.ints_attr("dilations", Ints(n, 1));
  w.pads = c.ints_attr("pads", Ints(2 * n, 0));
  Ints extra = c.ints_attr("output_padding", Ints(n, 0)), wanted = c.ints_attr("output_shape");
  check_size(c, w.kernel, n, "kernel_shape", 1);
  check_size(c, w.strides, n, "strides", 1);
  check_size(c, w.dilations, n, "dilations", 1);
  check_size(c, w.pads, 2 * n, "pads", 0);
  check_size(c, extra, n, "output_padding", 0);
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (mode == "VALID") w.pads.assign(2 * n, 0);
  if (same || !wanted.empty()) {
    Ints sizes = c.dims(x);
    if (wanted.empty())
      for (size_t i = 0; i < n; ++i) wanted.push_back(sizes[i + 2] * w.strides[i]);
    // Old files give the batch and channels as well.
    if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    check_size(c, wanted, n, "output_shape", 1);
    for (size_t i = 0; i < n; ++i) {
      int64_t total = w.strides[i] * (sizes[i + 2] - 1) + extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - wanted[i];
      if (total < 0) {
        extra[i] -= total;
        total = 0;
      }
      int64_t small = total / 2, large = total - small;
      w.pads[i] = mode == "SAME_UPPER" ? small : large;
      w.pads[i + n] = mode == "SAME_UPPER" ? large : small;
    }
  }
  int64_t groups = c.int_attr("group", 1);
  if (groups < 1) c.fail(format("its group is {}", groups));
  int64_t channels = c.dims(weight)[1] * groups;
  Expr y;
  if (w.n == 1)
    y = c.call("nn.conv1d_transpose", {x, weight},
               transposed_attrs<relay::Conv1DTransposeAttrs>(w, groups, channels, extra, "IOW"));
  if (w.n == 2)
    y = c.call("nn.conv2d_transpose", {x, weight},
               transposed_attrs<relay::Conv2DTransposeAttrs>(w, groups, channels, extra, "IOHW"));
  if (w.n == 3)
    y = c.call("nn.conv3d_transpose", {x, weight},
               transposed_attrs<relay::Conv3DTransposeAttrs>(w, groups, channels, extra, "IODHW"));
  return {add_bias(c, y, 2)};
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
// The window of two of its axes; one may be absent (-1).
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

// One spatial axis: a picture of height 1. Three: pictures of the last two axes, then columns of the first. That is
// exact, since the largest value and the number of values of a window are those of its axes in turn.
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
// Volumes that have a kernel of their own; what rounds up and other types go by axes.
bool pools_volumes(NodeContext& c, const Expr& x, const Window& w, bool ceil_mode) {
  return w.n == 3 && !ceil_mode && c.dtype(x) == kFloat32;
}

// How many windows an axis has, rounding up: this format leaves out one that begins behind the data and the padding
// before it. `all` receives how many the operator's own formula, which keeps that, has.
int64_t windows_up(const Window& w, size_t i, int64_t size, int64_t* all) {
  const int64_t before = w.pads[i], after = w.pads[i + static_cast<size_t>(w.n)];
  const int64_t room = size + before + after - (w.kernel[i] - 1) * w.dilations[i] - 1;
  *all = (room > 0 ? (room + w.strides[i] - 1) / w.strides[i] : 0) + 1;
  return *all - ((*all - 1) * w.strides[i] >= size + before ? 1 : 0);
}

// A picture's pool; only what ONNX keeps of it.
template <class A>
Expr pool_picture(NodeContext& c, const char* op, const Expr& x, const Window& w, bool ceil_mode, bool include_pad) {
  const auto sizes = static_shape(as_tensor(x->type)->shape);
  if (!ceil_mode || !sizes) return c.call(op, {x}, pool_attrs<A>(w, ceil_mode, include_pad));
  const Ints& d = *sizes;
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

// Where each window's first largest element lies in the flattened operand: the taps of the window compared in turn.
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
  Tensor places(kInt64, padded);
  Ints at(n, 0);
  for (int64_t e = 0; e < places.size(); ++e) {
    int64_t place = 0;
    for (size_t i = 0; i < n; ++i) place += (at[i] - widths[i + 2][0]) * weight[i];
    places.set_int(e, place);
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
      Expr more = c.call("greater", {value, best});
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

Values max_pool(NodeContext& c) {
  Expr x = c.input(0);
  Window w = read_window(c, x, c.ints_attr("kernel_shape"));
  Expr y = max_pool_of(c, x, w, c.int_attr("ceil_mode", 0) != 0);
  if (!c.wants(1)) return {y};
  return {y, places_of_largest(c, x, w, c.dims(y))};
}

Values average_pool(NodeContext& c) {
  Expr x = c.input(0);
  Window w = read_window(c, x, c.ints_attr("kernel_shape"));
  return {avg_pool_of(c, x, w, c.int_attr("ceil_mode", 0) != 0, c.int_attr("count_include_pad", 0) != 0)};
}

// The p-norm of each window: (k * average(|x|^p))^(1/p), padding counted as zeros.
Values lp_pool(NodeContext& c) {
  Expr x = c.input(0);
  Window w = read_window(c, x, c.ints_attr("kernel_shape"));
  // Opset 1 holds p as a float.
  double p = c.opset() < 2 ? c.float_attr("p", 2) : static_cast<double>(c.int_attr("p", 2));
  if (!(p >= 1)) c.fail(format("its p is {}", p));
  Expr powers = c.call("power", {c.call("abs", {x}), c.scalar_like(p, x)});
  // Every window counts as whole, also one that hangs over the end: the padding reaches as far as the last one does.
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

// Every tap of the window reads where its offset points, between elements; a product with the weight sums the taps.
Values deform_conv(NodeContext& c) {
  Expr x = c.input(0), weight = c.input(1), offset = c.input(2);
  if (c.rank(x) != 4 || c.rank(weight) != 4 || c.rank(offset) != 4)
    c.unsupported("another number of spatial axes than two");
  const Ints d = c.dims(x), k = c.dims(weight), o = c.dims(offset);
  const Window w = read_window(c, x, c.ints_attr("kernel_shape", {k[2], k[3]}));
  const int64_t groups = c.int_attr("group", 1), sets = c.int_attr("offset_group", 1);
  for (int64_t size : {d[0], d[1], d[2], d[3], k[0], w.kernel[0] * w.kernel[1]})
    if (size < 1 || size > (1 << 24)) c.unsupported(format("an axis or a window of {}", size));
  if (groups < 1 || sets < 1 || d[1] % sets != 0 || d[1] % groups != 0 || d[1] / groups != k[1] || k[0] % groups != 0)
    c.fail_type(format("{} channels do not divide into {} groups and {} sets of offsets", d[1], groups, sets));
  const int64_t taps = w.kernel[0] * w.kernel[1], places = c.product(o, 2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = d[i + 2] + w.pads[i] + w.pads[i + 2] - (w.kernel[i] - 1) * w.dilations[i] - 1;
    if (w.kernel[i] != k[i + 2] || d[i + 2] < 1 || room < 0 || o[i + 2] != room / w.strides[i] + 1)
      c.fail_type("its offsets, window and weight do not fit its input");
  }
  if (o[0] != d[0] || o[1] != sets * taps * 2) c.fail_type(format("its offsets have {} channels", o[1]));
  if (places > (1 << 24) / taps) c.unsupported(format("{} places of {} taps", places, taps));
  // Where taps read without offsets, along one axis from -1 to 1 between the outer edges of the elements.
  auto positions = [&](size_t axis) {
    Tensor t(c.dtype(x), {1, taps, 1, places});
    const auto size = static_cast<double>(d[axis + 2]);
    for (int64_t i = 0; i < t.size(); ++i) {
      const int64_t tap = i / places, place = i % places;
      const int64_t at = axis == 0 ? place / o[3] : place % o[3], step = axis == 0 ? tap / k[3] : tap % k[3];
      const int64_t pixel = at * w.strides[axis] - w.pads[axis] + step * w.dilations[axis];
      t.set_double(i, (2 * static_cast<double>(pixel) + 1) / size - 1);
    }
    return c.constant_of(t);
  };
  const Expr rows = positions(0), columns = positions(1);
  const Expr moves = c.reshape(offset, {d[0], sets * taps, 2, places});
  const Expr masks = c.has(4) ? c.reshape(c.input(4), {d[0], sets, taps, places}) : Expr();
  std::vector<Expr> read;
  for (int64_t set = 0; set < sets; ++set) {
    const Expr own = c.slice(moves, 1, set * taps, (set + 1) * taps);
    auto moved = [&](int64_t axis, const Expr& from) {
      const double scale = 2 / static_cast<double>(d[static_cast<size_t>(axis) + 2]);
      return c.add(c.mul(c.slice(own, 2, axis, axis + 1), c.scalar_like(scale, x)), from);
    };
    const Expr grid = c.transpose(c.concat({moved(1, columns), moved(0, rows)}, 2), {0, 2, 1, 3});
    const int64_t channels = d[1] / sets;
    Expr values = c.call("image.grid_sample", {c.slice(x, 1, set * channels, (set + 1) * channels), grid},
                         make_attrs<relay::GridSampleAttrs>([](auto& a) {
                           a.method = "bilinear";
                           a.padding_mode = "zeros";
                           a.align_corners = false;
                         }));
    if (masks) values = c.mul(values, c.slice(masks, 1, set, set + 1));
    read.push_back(values);
  }
  Expr all = c.reshape(c.concat(std::move(read), 1), {d[0], d[1] * taps, o[2], o[3]});
  Expr y = c.call("nn.conv2d", {all, c.reshape(weight, {k[0], k[1] * taps, 1, 1})},
                  make_attrs<relay::Conv2DAttrs>([&](auto& a) {
                    a.groups = groups;
                    a.channels = k[0];
                    a.kernel_size = Ints{1, 1};
                  }));
  return {add_bias(c, y, 3)};
}

constexpr ConverterEntry kConvConverters[] = {
    {"Conv", 1, conv},
    {"DeformConv", 19, deform_conv},
    {"ConvTranspose", 1, conv_transpose},
    {"MaxPool", 1, max_pool},
    {"AveragePool", 1, average_pool},
    {"LpPool", 1, lp_pool},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"GlobalLpPool", 1, global_lp_pool},
};

}  // namespace

std::span<const ConverterEntry> conv_converters() { return kConvConverters; }

}  // namespace tilewright::onnx
