// SPDX-License-Identifier: Apache-2.0
// Image operators expressed by others: crops, grids, grey-scale dilation, deformable convolutions.
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "relay/ops/composition.h"
#include "relay/ops/image/attrs_vision.h"
#include "relay/ops/nn/weight_types.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

// Operand i's shape as N, C, H, W, whatever its layout.
Result<Ints> picture_sizes(const TypeArgs& args, size_t i, const std::string& layout) {
  if (layout != "NCHW" && layout != "NHWC") return type_error(format("the layout is \"{}\", not NCHW or NHWC", layout));
  const Ints d = TW_TRY(known_sizes(args, i));
  if (d.size() != 4) return type_error(format("operand {} is {}, which has no four axes", i, shape_str(d)));
  for (int64_t size : d)
    if (size < 1) return type_error(format("operand {} is {}, which has no elements", i, shape_str(d)));
  return layout == "NCHW" ? d : Ints{d[0], d[3], d[1], d[2]};
}
Expr channels_first(Composition* c, const Expr& x, const std::string& layout) {
  return layout == "NCHW" ? x : c->transpose(x, {0, 3, 1, 2});
}
Expr as_layout(Composition* c, const Expr& x, const std::string& layout) {
  return layout == "NCHW" ? x : c->transpose(x, {0, 2, 3, 1});
}
Status numbers(const TypeArgs& args, size_t i) {
  const DataType t = args.tensor(i).dtype;
  if (t.is_float() || t.is_integral()) return Ok{};
  return type_error(format("operand {} is {}, not numbers", i, type_str(args.types[i])));
}

// The target's grid points, in [-1, 1], mapped by each affine matrix.
Result<Expr> expand_affine_grid(const TypeArgs& args) {
  const auto& size = attrs_of<AffineGridAttrs>(args).target_shape;
  const Ints d = TW_TRY(known_sizes(args, 0));
  if (d.size() != 3 || d[1] != 2 || d[2] != 3) return type_error(format("data is {}, not (N, 2, 3)", shape_str(d)));
  TW_TRY_STATUS(checked_window("target_shape", size, 2));
  TW_TRY_STATUS(fits_constant({size[0], size[1], 3}));
  const int64_t height = size[0], width = size[1];
  std::vector<double> points;
  auto at = [](int64_t i, int64_t n) {
    return n > 1 ? 2 * static_cast<double>(i) / static_cast<double>(n - 1) - 1 : -1;
  };
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (double v : {at(x, width), at(y, height), 1.0}) points.push_back(v);
  Composition c(args);
  const Expr maps = c.reshape(c[0], {d[0] * 2, 3});
  const Expr grid = c.call("nn.dense", {maps, c.numbers(points, {height * width, 3}, args.tensor(0).dtype)},
                           make_default_attrs<DenseAttrs>());
  return c.result(c.reshape(grid, {d[0], 2, height, width}));
}

// Boxes (y0, x0, y1, x1) of images, in [0, 1] between the centres of the outermost pixels.
Result<Expr> expand_crop_and_resize(const TypeArgs& args) {
  const auto& a = attrs_of<CropAndResizeAttrs>(args);
  const Ints d = TW_TRY(picture_sizes(args, 0, a.layout)), boxes = TW_TRY(known_sizes(args, 1));
  TW_TRY_STATUS(numbers(args, 0));
  TW_TRY_STATUS(checked_window("crop_size", a.crop_size, 2));
  if (boxes.size() != 2 || boxes[1] != 4 || !args.tensor(1).dtype.is_float())
    return type_error(format("boxes are {}, not (boxes, 4) floats", type_str(args.types[1])));
  const int64_t count = boxes[0], height = a.crop_size[0], width = a.crop_size[1];
  if (args.tensor(2).shape != to_shape({count}) || !args.tensor(2).dtype.is_integral())
    return type_error(format("box_indices are {}, not {} integers", type_str(args.types[2]), count));
  const bool nearest = a.method == "nearest_neighbor" || a.method == "nearest";
  if (!nearest && a.method != "bilinear")
    return type_error(format("method is \"{}\", not bilinear or nearest_neighbor", a.method));
  TW_TRY_STATUS(fits_constant({height, width}));
  if (TW_TRY(checked_element_count(d)) > std::numeric_limits<int32_t>::max())
    return type_error(format("data of {} is too large", shape_str(d)));
  const DataType out_dtype = TW_TRY(number_dtype_or(a.out_dtype, args.tensor(0).dtype));
  const DataType t = args.tensor(0).dtype == kFloat64 ? kFloat64 : kFloat32;
  Composition c(args);
  const Expr corners = c.cast(c[1], t),
             rows = c.reshape(as_layout(&c, c.cast(c[0], t), a.layout == "NCHW" ? "NHWC" : "NCHW"),
                              {d[0] * d[2] * d[3], d[1]});
  struct Axis {
    Expr inside, before, after, part;  // each (boxes, height, 1) or (boxes, 1, width); indices are int32
  };
  auto axis = [&](int64_t which, int64_t n, int64_t extent) {
    const Expr low = c.slice(corners, 1, which, which + 1), high = c.slice(corners, 1, which + 2, which + 3);
    const double last = static_cast<double>(extent - 1);
    Expr at;
    if (n == 1) {
      at = c.times(c.plus(low, high), 0.5 * last);
    } else {
      std::vector<double> steps;
      for (int64_t i = 0; i < n; ++i) steps.push_back(static_cast<double>(i) * last / static_cast<double>(n - 1));
      at = c.plus(c.times(low, last), c.times(c.minus(high, low), c.numbers(steps, {1, n}, t)));
    }
    at = c.reshape(at, which == 0 ? Ints{count, n, 1} : Ints{count, 1, n});
    Axis out;
    out.inside = c.call("logical_and", {c.compare("greater_equal", at, 0), c.compare("less_equal", at, last)});
    const Expr held = c.clip(at, 0, last);
    const Expr whole = c.call("floor", {nearest ? c.plus(held, 0.5) : held});
    out.before = c.cast(whole, kInt32);
    out.after = c.call("minimum", {c.plus(out.before, 1), c.number(last, kInt32)});
    out.part = c.expand_dims(c.minus(held, whole), 3);
    return out;
  };
  const Axis y = axis(0, height, d[2]), x = axis(1, width, d[3]);
  Expr picture = c.clip(c.cast(c[2], kInt32), 0, static_cast<double>(d[0] - 1));
  picture = c.times(c.reshape(picture, {count, 1, 1}), static_cast<double>(d[2]));
  auto pixels = [&](const Expr& row, const Expr& column) {
    return c.take(rows, c.plus(c.times(c.plus(picture, row), static_cast<double>(d[3])), column), 0);
  };
  Expr out;
  if (nearest) {
    out = pixels(y.before, x.before);
  } else {
    auto between = [&](const Expr& from, const Expr& to, const Expr& part) {
      return c.plus(c.times(c.minus(to, from), part), from);
    };
    out = between(between(pixels(y.before, x.before), pixels(y.before, x.after), x.part),
                  between(pixels(y.after, x.before), pixels(y.after, x.after), x.part), y.part);
  }
  const Expr inside = c.expand_dims(c.call("logical_and", {y.inside, x.inside}), 3);
  out = c.cast(c.where(inside, out, c.number(a.extrapolation_value, t)), out_dtype);
  return c.result(channels_first(&c, out, a.layout == "NCHW" ? "NHWC" : "NCHW"));
}

// The maximum of data + weight in each window.
Result<Expr> expand_dilation2d(const TypeArgs& args) {
  const auto& a = attrs_of<Dilation2DAttrs>(args);
  if (a.kernel_layout != "IHW" && a.kernel_layout != "HWI")
    return type_error(format("kernel_layout is \"{}\", not IHW or HWI", a.kernel_layout));
  Ints d = TW_TRY(picture_sizes(args, 0, a.data_layout)), k = TW_TRY(known_sizes(args, 1));
  TW_TRY_STATUS(numbers(args, 0));
  if (k.size() == 3 && a.kernel_layout == "HWI") k = {k[2], k[0], k[1]};
  if (k.size() != 3 || k[0] != d[1] || k[1] < 1 || k[2] < 1 || args.tensor(1).dtype != args.tensor(0).dtype)
    return type_error(
        format("a weight of {} does not fit data of {}", type_str(args.types[1]), type_str(args.types[0])));
  if (k[1] * k[2] > 1024) return type_error(format("a window of {} x {} is out of range", k[1], k[2]));
  TW_TRY_STATUS(checked_window("strides", a.strides, 2));
  TW_TRY_STATUS(checked_window("dilations", a.dilations, 2));
  const Ints pads = TW_TRY(full_padding(a.padding, 2));
  const DataType dtype = args.tensor(0).dtype;
  for (int64_t v : {pads[0], pads[1], pads[2], pads[3], a.strides[0], a.strides[1], a.dilations[0], a.dilations[1]})
    if (v < 0 || v > (1 << 20)) return type_error(format("a padding, stride or dilation of {} is out of range", v));
  int64_t out[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = d[i + 2] + pads[i] + pads[i + 2] - (k[i + 1] - 1) * a.dilations[i] - 1;
    if (room < 0) return type_error(format("a window of {} does not fit data of {}", shape_str(k), shape_str(d)));
    out[i] = room / a.strides[i] + 1;
  }
  Composition c(args);
  const double lowest = dtype.is_float() ? -std::numeric_limits<float>::max()
                        : dtype.is_int() ? -std::ldexp(1, dtype.bits - 1)
                                         : 0;
  const Expr x = c.pad(channels_first(&c, c[0], a.data_layout),
                       {{0, 0}, {0, 0}, {pads[0], pads[2]}, {pads[1], pads[3]}}, c.number(lowest, dtype));
  const Expr weight = a.kernel_layout == "IHW" ? c[1] : c.transpose(c[1], {2, 0, 1});
  Expr best;
  for (int64_t i = 0; i < k[1]; ++i)
    for (int64_t j = 0; j < k[2]; ++j) {
      auto window = [&](const Expr& e, int64_t axis, int64_t from, int64_t places, int64_t stride) {
        return c.slice(e, axis, from, from + (places - 1) * stride + 1, stride);
      };
      const Expr part =
          window(window(x, 2, i * a.dilations[0], out[0], a.strides[0]), 3, j * a.dilations[1], out[1], a.strides[1]);
      const Expr tap = c.reshape(c.slice(c.slice(weight, 1, i, i + 1), 2, j, j + 1), {d[1], 1, 1});
      const Expr term = c.plus(part, tap);
      best = best ? c.call("maximum", {best, term}) : term;
      if (!best) return c.result(best);
    }
  return c.result(as_layout(&c, c.cast(best, TW_TRY(number_dtype_or(a.out_dtype, dtype))), a.data_layout));
}

// Each tap of the window samples, bilinearly and with zeros outside, where its offset points; a product with the weight
// sums the taps.
Result<Expr> expand_deformable_conv2d(const TypeArgs& args) {
  const auto& a = attrs_of<DeformableConv2DAttrs>(args);
  const bool first = a.data_layout == "NCHW";
  if (a.kernel_layout != "OIHW" && a.kernel_layout != "HWIO")
    return type_error(format("kernel_layout is \"{}\", not OIHW or HWIO", a.kernel_layout));
  if (!a.out_layout.empty() && a.out_layout != a.data_layout)
    return type_error(format("out_layout is \"{}\", not that of the data", a.out_layout));
  const Ints d = TW_TRY(picture_sizes(args, 0, a.data_layout)), o = TW_TRY(picture_sizes(args, 1, a.data_layout));
  Ints k = TW_TRY(known_sizes(args, 2));
  if (k.size() == 4 && a.kernel_layout == "HWIO") k = {k[3], k[2], k[0], k[1]};
  const DataType dtype = args.tensor(0).dtype;
  if (!dtype.is_float() || args.tensor(1).dtype != dtype || args.tensor(2).dtype != dtype)
    return type_error("data, offset and weight are not of one floating dtype");
  TW_TRY_STATUS(checked_window("strides", a.strides, 2));
  TW_TRY_STATUS(checked_window("dilation", a.dilation, 2));
  const Ints pads = TW_TRY(full_padding(a.padding, 2));
  for (int64_t v : {pads[0], pads[1], pads[2], pads[3], a.strides[0], a.strides[1], a.dilation[0], a.dilation[1]})
    if (v < 0 || v > (1 << 20)) return type_error(format("a padding, stride or dilation of {} is out of range", v));
  const int64_t sets = a.deformable_groups, groups = a.groups;
  if (k.size() != 4 || k[0] < 1 || k[2] < 1 || k[3] < 1 || k[2] > 4096 || k[3] > 4096 || groups < 1 || sets < 1 ||
      d[1] % sets || d[1] % groups || k[0] % groups || k[1] != d[1] / groups)
    return type_error(format("a weight of {} does not fit data of {} with {} groups and {} deformable_groups",
                             type_str(args.types[2]), type_str(args.types[0]), groups, sets));
  const int64_t taps = k[2] * k[3], places = o[2] * o[3];
  if (o[0] != d[0] || o[1] != 2 * sets * taps) return type_error(format("offset is {}", type_str(args.types[1])));
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = d[i + 2] + pads[i] + pads[i + 2] - (k[i + 2] - 1) * a.dilation[i] - 1;
    if (room < 0 || o[i + 2] != room / a.strides[i] + 1)
      return type_error(format("offset {} does not fit the result of the window", type_str(args.types[1])));
  }
  TW_TRY_STATUS(fits_constant({taps, places}));
  Composition c(args);
  const Expr x = channels_first(&c, c[0], a.data_layout);
  const Expr moves = c.reshape(channels_first(&c, c[1], a.data_layout), {d[0], sets * taps, 2, places});
  // Sampling positions of the taps before offsets, along one axis, in pixels.
  auto pixels = [&](size_t axis) {
    std::vector<double> values;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t place = 0; place < places; ++place) {
        const int64_t at = axis == 0 ? place / o[3] : place % o[3], step = axis == 0 ? tap / k[3] : tap % k[3];
        values.push_back(static_cast<double>(at * a.strides[axis] - pads[axis] + step * a.dilation[axis]));
      }
    return c.numbers(values, {1, taps, 1, places}, dtype);
  };
  const Expr still[] = {pixels(0), pixels(1)};
  std::vector<Expr> read;
  for (int64_t set = 0; set < sets; ++set) {
    const Expr own = c.slice(moves, 1, set * taps, (set + 1) * taps);
    Expr grid[2], inside;
    for (int64_t axis = 0; axis < 2; ++axis) {
      const double last = static_cast<double>(d[static_cast<size_t>(axis) + 2] - 1);
      const Expr at = c.plus(still[axis], c.slice(own, 2, axis, axis + 1));
      Expr in = c.call("logical_and", {c.compare("greater_equal", at, 0), c.compare("less", at, last + 1)});
      inside = inside ? c.call("logical_and", {inside, in}) : in;
      grid[axis] = last > 0 ? c.minus(c.times(at, 2 / last), 1) : at;
    }
    const int64_t channels = d[1] / sets;
    const Expr points = c.transpose(c.concatenate({grid[1], grid[0]}, 2), {0, 2, 1, 3});
    const Expr values =
        c.call<GridSampleAttrs>("image.grid_sample", {c.slice(x, 1, set * channels, (set + 1) * channels), points},
                                [](auto& g) { g.padding_mode = "border"; });
    read.push_back(c.where(c.transpose(inside, {0, 2, 1, 3}), values, c.number(0, dtype)));
  }
  const Expr all = c.reshape(c.concatenate(std::move(read), 1), {d[0], d[1] * taps, o[2], o[3]});
  const Expr weight = a.kernel_layout == "OIHW" ? c[2] : c.transpose(c[2], {3, 2, 0, 1});
  const Expr out = c.call<Conv2DAttrs>("nn.conv2d", {all, c.reshape(weight, {k[0], k[1] * taps, 1, 1})}, [&](auto& v) {
    v.groups = groups;
    v.channels = k[0];
    v.kernel_size = Ints{1, 1};
    v.out_dtype = a.out_dtype;
  });
  return c.result(first ? out : as_layout(&c, out, a.data_layout));
}

// The type of the offsets: two numbers for each tap and output position.
Type deformable_offset(const DeformableConv2DAttrs& a, const TensorTypeNode& data) {
  const std::string& layout = a.data_layout;
  if (layout.size() != 4 || data.shape.size() != 4 || !a.kernel_size || a.kernel_size->size() != 2) return {};
  std::vector<int64_t> pads = a.padding;
  if (pads.size() == 1) pads.assign(4, pads[0]);
  if (pads.size() == 2) pads = {pads[0], pads[1], pads[0], pads[1]};
  if (pads.size() != 4 || a.strides.size() != 2 || a.dilation.size() != 2) return {};
  Shape shape(4);
  for (size_t i = 0; i < 4; ++i) {
    const size_t spatial = layout[i] == 'H' ? 0 : 1;
    if (layout[i] == 'C') {
      shape[i] = 2 * (*a.kernel_size)[0] * (*a.kernel_size)[1] * a.deformable_groups;
    } else if (layout[i] == 'N') {
      shape[i] = data.shape[i];
    } else {
      if (a.strides[spatial] < 1) return {};
      const int64_t reach = a.dilation[spatial] * ((*a.kernel_size)[spatial] - 1) + 1;
      shape[i] =
          floordiv(data.shape[i] + Dim(pads[spatial] + pads[spatial + 2] - reach), Dim(a.strides[spatial])) + Dim(1);
    }
  }
  return tensor_type(std::move(shape), data.dtype);
}
Type deformable_operand(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) {
  if (index == 1) return deformable_offset(*attrs_as<DeformableConv2DAttrs>(attrs), data);
  return convolution_weight<DeformableConv2DAttrs, false, 2>(attrs, index, data);
}

}  // namespace

std::vector<OpDef> composed_image_ops() {
  return {
      define_composed("image.affine_grid", "Sampling grids (N, 2, H, W) of affine maps.",
                      {{"data", "(N, 2, 3) floats"}}, OpPattern::kInjective, expand_affine_grid,
                      make_default_attrs<AffineGridAttrs>),
      define_composed("image.crop_and_resize", "Boxes of pictures, each at crop_size.",
                      {{"data", "numbers, in `layout`"},
                       {"boxes", "(boxes, 4) floats: y0, x0, y1, x1, from 0 to 1"},
                       {"box_indices", "(boxes) integers: the picture of each"}},
                      OpPattern::kInjective, expand_crop_and_resize, make_default_attrs<CropAndResizeAttrs>),
      define_composed("image.dilation2d", "Grey-scale dilation: the largest of data + weight in each window.",
                      {{"data", "numbers, in `data_layout`"}, {"weight", "in `kernel_layout`"}},
                      OpPattern::kOutEWiseFusable, expand_dilation2d, make_default_attrs<Dilation2DAttrs>),
      define_composed("nn.deformable_conv2d", "A convolution whose taps are moved by offsets, between pixels.",
                      {{"data", "floats, in `data_layout`"},
                       {"offset", "2 * deformable_groups * taps channels: y, x of each tap"},
                       {"weight", "in `kernel_layout`"}},
                      OpPattern::kOutEWiseFusable, expand_deformable_conv2d, make_default_attrs<DeformableConv2DAttrs>)
          .with({.operand_type = deformable_operand}),
  };
}

}  // namespace tilewright::relay
