// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three spatial axes.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/converters/conv.h"

#include "frontend/onnx/converters/window.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Negative padding becomes a crop in front of the operator, and is removed from the window.
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

Expr with_bias(NodeContext& c, const Expr& y, const Expr& bias) {
  if (!bias) return y;
  return c.call("nn.bias_add", {y, bias}, make_attrs<relay::BiasAddAttrs>([](auto& a) { a.axis = 1; }));
}
Expr add_bias(NodeContext& c, const Expr& y, size_t input) {
  return with_bias(c, y, c.has(input) ? c.input(input) : Expr());
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

}  // namespace

Expr channels_first(NodeContext& c, const Expr& x) {
  const int64_t rank = c.rank(x);
  if (rank < 3) c.fail_type(format("its input of rank {} has no spatial axis", rank));
  Ints axes = {0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  return c.transpose(x, axes);
}
Expr channels_last(NodeContext& c, const Expr& x) {
  Ints axes = {0};
  for (int64_t i = 2; i < c.rank(x); ++i) axes.push_back(i);
  axes.push_back(1);
  return c.transpose(x, axes);
}

Expr convolution_of(NodeContext& c, Expr x, const Expr& weight, const Expr& bias) {
  Window w = read_window(c, x, kernel_of(c, weight));
  int64_t groups = c.int_attr("group", 1);
  if (groups < 1) c.fail(format("its group is {}", groups));
  x = crop_negative_pads(c, x, &w);
  int64_t channels = c.dims(weight)[0];
  Expr y;
  if (w.n == 1) y = c.call("nn.conv1d", {x, weight}, conv_attrs<relay::Conv1DAttrs>(c, w, groups, channels));
  if (w.n == 2) y = c.call("nn.conv2d", {x, weight}, conv_attrs<relay::Conv2DAttrs>(c, w, groups, channels));
  if (w.n == 3) y = c.call("nn.conv3d", {x, weight}, conv_attrs<relay::Conv3DAttrs>(c, w, groups, channels));
  return with_bias(c, y, bias);
}

namespace {

Values conv(NodeContext& c) { return {convolution_of(c, c.input(0), c.input(1), c.has(2) ? c.input(2) : Expr())}; }

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
  // For transposed convolutions auto_pad has another meaning: the window is read without it.
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
  check_window(c, w.kernel, n, "kernel_shape", 1);
  check_window(c, w.strides, n, "strides", 1);
  check_window(c, w.dilations, n, "dilations", 1);
  check_window(c, w.pads, 2 * n, "pads", 0);
  check_window(c, extra, n, "output_padding", 0);
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (mode == "VALID") w.pads.assign(2 * n, 0);
  if (same || !wanted.empty()) {
    Ints sizes = c.dims(x);
    if (wanted.empty())
      for (size_t i = 0; i < n; ++i) wanted.push_back(sizes[i + 2] * w.strides[i]);
    // Old files list all axes, batch and channels included.
    if (wanted.size() == n + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
    check_window(c, wanted, n, "output_shape", 1);
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

// Deformable convolution: each tap of the window samples, bilinearly, where its offset points; a product with the
// weight sums the taps.
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
  // The taps' positions before offsets are added, along one axis, in [-1, 1] between the outer edges of the elements.
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
};

}  // namespace

std::span<const ConverterEntry> conv_converters() { return kConvConverters; }

}  // namespace tilewright::onnx
