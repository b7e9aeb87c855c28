// SPDX-License-Identifier: Apache-2.0
// Grid sampling, torchvision's region operators (without non-maximum suppression), searches in sorted rows, spectra.
#include "base/format.h"
#include "frontend/torch/convert.h"
#include "relay/ops/image/attrs_image.h"
#include "relay/ops/image/attrs_vision.h"
#include "relay/ops/tensor/attrs_indexing.h"
#include "relay/ops/training/attrs_training.h"

namespace tilewright::torch {
namespace sampling {
namespace {

using Ints = std::vector<int64_t>;

// ---- grids

Values grid_sampler(NodeContext& c) {
  static const char* const kModes[] = {"linear", "nearest", "cubic"};
  static const char* const kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    c.fail(format("its interpolation_mode {} or padding_mode {} is unknown", mode, padding));
  return {c.onnx("GridSample", 20, {c.tensor("input"), c.tensor("grid")},
                 {{"mode", std::string(kModes[mode])},
                  {"padding_mode", std::string(kPaddings[padding])},
                  {"align_corners", int64_t{c.flag("align_corners", false)}}})[0]};
}
Values affine_grid(NodeContext& c) {
  return {c.onnx("AffineGrid", 20, {c.tensor("theta"), c.ints_constant(c.ints("size"))},
                 {{"align_corners", int64_t{c.flag("align_corners", false)}}})[0]};
}

// ---- torchvision

struct Window {
  Ints strides, pads, dilations, kernel;
  int64_t groups = 1, sets = 1;  // channel groups of the product; groups of channels that share offsets
};

// Sampling positions of the taps before offsets, along one axis, in pixels: (1, taps, 1, places).
Expr still_pixels(NodeContext& c, const Window& w, const Ints& out, size_t axis, DataType dtype) {
  const int64_t taps = w.kernel[0] * w.kernel[1], places = out[0] * out[1];
  Tensor t = Tensor::zeros(dtype, {1, taps, 1, places});
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t place = 0; place < places; ++place) {
      const int64_t at = axis == 0 ? place / out[1] : place % out[1],
                    step = axis == 0 ? tap / w.kernel[1] : tap % w.kernel[1];
      t.set_double(tap * places + place,
                   static_cast<double>(at * w.strides[axis] - w.pads[axis] + step * w.dilations[axis]));
    }
  return c.constant_of(std::move(t));
}

// The values that the taps sample, bilinearly and with zeros outside: (n, channels * taps, rows, columns).
Expr read_taps(NodeContext& c, const Expr& x, const Expr& offset, const Expr& mask, const Window& w) {
  const Ints d = c.dims(x), o = c.dims(offset);
  const Ints out = {o[2], o[3]};
  const int64_t taps = w.kernel[0] * w.kernel[1], places = o[2] * o[3], channels = d[1] / w.sets;
  if (taps * places > (1 << 24)) c.unsupported(format("{} places of {} taps", places, taps));
  const DataType dtype = c.dtype(x);
  Expr moves = c.reshape(offset, {d[0], w.sets * taps, 2, places});
  const Expr still[] = {still_pixels(c, w, out, 0, dtype), still_pixels(c, w, out, 1, dtype)};
  std::vector<Expr> read;
  for (int64_t set = 0; set < w.sets; ++set) {
    Expr own = c.slice(moves, 1, set * taps, (set + 1) * taps), grid[2];
    for (size_t axis = 0; axis < 2; ++axis) {
      // Normalised coordinates: -1 and 1 are the centres of the first and last pixel. An image one pixel wide counts as
      // two, the second being padding.
      const double last = std::max(1.0, static_cast<double>(d[axis + 2] - 1));
      const auto at_axis = static_cast<int64_t>(axis);
      Expr at = c.add(still[axis], c.slice(own, 2, at_axis, at_axis + 1));
      grid[axis] = c.sub(c.mul(at, c.scalar(2 / last, dtype)), c.scalar(1, dtype));
    }
    Expr points = c.transpose(c.concat({grid[1], grid[0]}, 2), {0, 2, 1, 3});
    Expr part = w.sets == 1 ? x : c.slice(x, 1, set * channels, (set + 1) * channels);
    Ints widths = {0, 0, d[2] == 1, d[3] == 1};
    if (widths[2] || widths[3])
      part = c.call("nn.pad", {part, c.scalar(0, dtype)}, make_attrs<relay::PadAttrs>([&](auto& a) {
                      a.pad_width = {{0, 0}, {0, 0}, {0, widths[2]}, {0, widths[3]}};
                    }));
    Expr values = c.call("image.grid_sample", {part, points}, make_attrs<relay::GridSampleAttrs>([](auto& a) {
                           a.padding_mode = "zeros";
                           a.align_corners = true;
                         }));
    if (mask) {
      Expr factors = c.slice(c.reshape(mask, {d[0], w.sets * taps, places}), 1, set * taps, (set + 1) * taps);
      values = c.mul(values, c.expand(factors, 1));
    }
    read.push_back(values);
  }
  return c.reshape(c.concat(std::move(read), 1), {d[0], d[1] * taps, o[2], o[3]});
}

Values deform_conv2d(NodeContext& c) {
  Expr x = c.tensor("input"), weight = c.tensor("weight"), offset = c.tensor("offset");
  const Ints d = c.dims(x), k = c.dims(weight), o = c.dims(offset);
  if (d.size() != 4 || k.size() != 4 || o.size() != 4) c.fail_type("its input, weight and offset must have rank 4");
  Window w;
  w.strides = {c.integer("stride_h"), c.integer("stride_w")};
  w.pads = {c.integer("pad_h"), c.integer("pad_w")};
  w.dilations = {c.integer("dilation_h"), c.integer("dilation_w")};
  w.kernel = {k[2], k[3]};
  w.groups = c.integer("groups");
  w.sets = c.integer("offset_groups");
  const int64_t taps = k[2] * k[3];
  if (w.sets < 1 || w.groups < 1 || d[1] % w.sets != 0 || d[1] % w.groups != 0 || k[1] != d[1] / w.groups ||
      o[0] != d[0] || o[1] != 2 * w.sets * taps)
    c.fail_type(
        format("a weight of {} and offsets of {} do not fit an input of {}", shape_str(k), shape_str(o), shape_str(d)));
  Expr mask = c.flag("use_mask", false) ? c.tensor("mask") : Expr();
  Expr all = read_taps(c, x, offset, mask, w);
  Expr y = c.call("nn.conv2d", {all, c.reshape(weight, {k[0], k[1] * taps, 1, 1})},
                  make_attrs<relay::Conv2DAttrs>([&](auto& a) {
                    a.groups = w.groups;
                    a.channels = k[0];
                    a.kernel_size = Ints{1, 1};
                  }));
  return {c.add(y, c.reshape(c.tensor("bias"), {1, k[0], 1, 1}))};
}

Values roi_pool(NodeContext& c) {
  return {
      c.call("vision.roi_pool", {c.tensor("input"), c.tensor("rois")}, make_attrs<relay::ROIPoolAttrs>([&](auto& a) {
               a.pooled_size = {c.integer("pooled_height"), c.integer("pooled_width")};
               a.spatial_scale = c.number("spatial_scale");
             }))};
}

// Channels in groups, one for each of the result's positions: of all channels at all positions (count, channels, rows,
// columns), each position takes its own.
Expr own_channels(NodeContext& c, const Expr& all) {
  const Ints d = c.dims(all);
  const int64_t places = d[2] * d[3];
  if (places < 1 || d[1] % places != 0) c.fail_type(format("{} positions do not divide {} channels", places, d[1]));
  const int64_t groups = d[1] / places;
  Ints own;
  for (int64_t i = 0; i < places; ++i) own.push_back(i * places + i);
  Expr picked = c.call("take", {c.reshape(all, {d[0], groups, places * places}), c.ints_constant(own)},
                       make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 2; }));
  return c.reshape(picked, {d[0], groups, d[2], d[3]});
}
Values ps_roi_align(NodeContext& c) {
  NamedValues arguments = c.arguments();
  arguments.emplace_back("aligned", Value::number(c.scalar(1, kBool)));
  return {own_channels(c, c.one_of("torchvision.roi_align.default", arguments))};
}

// Which rows (or columns) of the image each of `count` bins of a region averages: (regions, count, size) of 0 and 1.
// A region's bounds are whole pixels, and its last pixel's row is never read, as torchvision has it.
Expr bins(NodeContext& c, const Expr& first, const Expr& last, int64_t count, int64_t size, double scale) {
  const DataType dtype = c.dtype(first);
  auto number = [&](double v) { return c.scalar(v, dtype); };
  auto pixel = [&](const Expr& e) {  // halves are rounded away from zero
    const Expr at = c.mul(e, number(scale));
    return c.where(c.call("less", {at, number(0)}), c.call("ceil", {c.sub(at, number(0.5))}),
                   c.call("floor", {c.add(at, number(0.5))}));
  };
  const Expr start = pixel(first);  // (regions, 1)
  const Expr bin = c.div(c.call("maximum", {c.sub(pixel(last), start), number(1)}), number(static_cast<double>(count)));
  const Expr i = c.cast(c.reshape(c.counting(count), {1, count}), dtype);
  auto within = [&](const Expr& e) {
    return c.call("minimum", {c.call("maximum", {c.add(e, start), number(0)}), number(static_cast<double>(size - 1))});
  };
  const Expr begin = within(c.call("floor", {c.mul(i, bin)}));
  const Expr end = within(c.call("ceil", {c.mul(c.add(i, number(1)), bin)}));
  const Expr at = c.cast(c.reshape(c.counting(size), {1, 1, size}), dtype);
  return c.cast(c.call("logical_and",
                       {c.call("greater_equal", {at, c.expand(begin, 2)}), c.call("less", {at, c.expand(end, 2)})}),
                dtype);
}
Values ps_roi_pool(NodeContext& c) {
  const Expr x = c.tensor("input"), rois = c.tensor("rois");
  const Ints d = c.dims(x);
  const int64_t rows = c.integer("pooled_height"), columns = c.integer("pooled_width"), regions = c.dims(rois).at(0);
  const double scale = c.number("spatial_scale");
  if (d.size() != 4 || rows < 1 || columns < 1 || d[1] % (rows * columns) != 0)
    c.fail_type(format("{} x {} positions do not divide the channels of {}", rows, columns, shape_str(d)));
  auto column = [&](int64_t i) { return c.slice(rois, 1, i, i + 1); };
  const Expr vertical = bins(c, column(2), column(4), rows, d[2], scale);
  const Expr horizontal = bins(c, column(1), column(3), columns, d[3], scale);
  const Expr pictures = c.call("take", {x, c.cast(c.squeeze(column(0), {1}), kInt64)},
                               make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
  const Expr masks = c.mul(c.reshape(vertical, {regions, 1, rows, 1, d[2], 1}),
                           c.reshape(horizontal, {regions, 1, 1, columns, 1, d[3]}));
  const Expr sum =
      c.reduce("sum", c.mul(c.reshape(pictures, {regions, d[1] / (rows * columns), rows, columns, d[2], d[3]}), masks),
               {4, 5}, false);
  const Expr area = c.call("maximum", {c.reduce("sum", masks, {4, 5}, false), c.scalar_like(1, x)});
  return {c.div(sum, area)};
}

// ---- sorted rows

Expr searched(NodeContext& c, const Expr& row, const Expr& values) {
  const bool right = c.flag("right", false) || c.text("side", "left") == "right";
  const DataType dtype = c.dtype(row).is_float() || c.dtype(values).is_float() ? kFloat32 : kInt64;
  Expr flat = c.rank(values) == 0 ? c.reshape(values, {1}) : values;
  Expr out = c.call("searchsorted", {c.cast(row, dtype), c.cast(flat, dtype)},
                    make_attrs<relay::SearchSortedAttrs>([&](auto& a) {
                      a.right = right;
                      a.dtype = c.flag("out_int32", false) ? kInt32 : kInt64;
                    }));
  return c.rank(values) == 0 ? c.reshape(out, {}) : out;
}
Values searchsorted(NodeContext& c) {
  if (c.has("sorter")) c.unsupported("a sorter");
  return {searched(c, c.tensor("sorted_sequence"), c.tensor("self"))};
}
Values bucketize(NodeContext& c) { return {searched(c, c.tensor("boundaries"), c.tensor("self"))}; }

// ---- spectra

// Complex results have a last axis of real and imaginary parts: (..., frequencies, frames, 2).
Values stft(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t n = c.integer("n_fft"), length = c.integer("win_length", n), rank = c.rank(x);
  const DataType dtype = c.dtype(x);
  Expr window = c.has("window") ? c.tensor("window")
                                : c.call("full", {c.scalar(1, dtype)}, make_attrs<relay::InitOpAttrs>([&](auto& a) {
                                           a.shape = Ints{length};
                                           a.dtype = dtype.str();
                                         }));
  Expr y = c.call("stft", {rank == 1 ? c.expand(x, 0) : x, window}, make_attrs<relay::StftAttrs>([&](auto& a) {
                    a.n_fft = n;
                    a.hop_length = c.integer("hop_length", n / 4);
                    a.win_length = length;
                    a.normalized = c.flag("normalized", false);
                    a.onesided = c.flag("onesided", true);
                  }));
  Value out(rank == 1 ? c.squeeze(y, {0}) : y);
  out.complex = c.flag("return_complex", false);
  return {out};
}

constexpr ConverterEntry kSamplingConverters[] = {
    {"aten.grid_sampler", grid_sampler},
    {"aten.grid_sampler_2d", grid_sampler},
    {"aten.grid_sampler_3d", grid_sampler},
    {"aten.affine_grid_generator", affine_grid},
    {"torchvision.deform_conv2d", deform_conv2d},
    {"torchvision.roi_pool", roi_pool},
    {"torchvision.ps_roi_align", ps_roi_align},
    {"torchvision.ps_roi_pool", ps_roi_pool},
    {"aten.searchsorted", searchsorted},
    {"aten.bucketize", bucketize},
    {"aten.stft", stft},
};

}  // namespace
}  // namespace sampling

std::span<const ConverterEntry> vision_converters() { return sampling::kSamplingConverters; }

}  // namespace tilewright::torch
