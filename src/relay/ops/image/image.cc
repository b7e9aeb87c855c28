// SPDX-License-Identifier: Apache-2.0
// Resizing and sampling of images. Formulas: the ONNX specification of Resize and GridSample.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/convolution.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

struct Taps {
  std::vector<int64_t> index;
  std::vector<double> weight;
  bool outside = false;  // tf_crop_and_resize: takes the extrapolation value
};

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

struct AxisResize {
  std::string method, transform, rounding;
  double scale, roi_start, roi_end, cubic_alpha;
  bool exclude, antialias;
  int64_t in, out;

  double coordinate(int64_t i) const {
    const auto x = static_cast<double>(i);
    // The exact output extent may be fractional, as ONNX defines it: scale 0.6 of 4 is 2.4, of which 2 are computed.
    const auto n = static_cast<double>(in), m = scale * n;
    if (transform == "align_corners") return out == 1 ? 0 : x * (n - 1) / (m - 1);
    if (transform == "asymmetric") return x / scale;
    if (transform == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
    if (transform == "pytorch_half_pixel") return out == 1 ? 0 : (x + 0.5) / scale - 0.5;
    if (transform == "half_pixel_symmetric")
      return n / 2 * (1 - static_cast<double>(out) / m) + (x + 0.5) / scale - 0.5;
    if (transform == "tf_crop_and_resize")
      return out > 1 ? roi_start * (n - 1) + x * (roi_end - roi_start) * (n - 1) / (static_cast<double>(out) - 1)
                     : 0.5 * (roi_start + roi_end) * (n - 1);
    return (x + 0.5) / scale - 0.5;
  }

  Taps taps(int64_t i) const {
    Taps t;
    const double x = coordinate(i);
    if (transform == "tf_crop_and_resize") t.outside = x < 0 || x > static_cast<double>(in - 1);
    auto clamp = [&](double v) { return std::clamp<int64_t>(static_cast<int64_t>(v), 0, in - 1); };
    if (method == "nearest_neighbor") {
      // Positions that differ from a whole number only by rounding errors are rounded to it.
      constexpr double kNear = 1e-5;
      const double low = std::floor(x);
      const std::string how = !rounding.empty() ? rounding : transform == "align_corners" ? "round" : "floor";
      double at = std::floor(x + kNear);
      if (how == "ceil")
        at = std::ceil(x - kNear);
      else if (how == "round_prefer_ceil" || how == "round")
        at = x - low >= 0.5 ? low + 1 : low;
      else if (how == "round_prefer_floor")
        at = x - low > 0.5 ? low + 1 : low;
      t.index = {clamp(at)};
      t.weight = {1};
      return t;
    }
    // The left neighbour is preferred: the ratio lies in (0, 1].
    double left = std::floor(x), ratio = x - left;
    if (ratio == 0) {
      left -= 1;
      ratio = 1;
    }
    const bool cubic = method == "cubic";
    const double shrink = antialias ? std::min(scale, 1.0) : 1.0, reach = cubic ? 2 : 1;
    const auto first = static_cast<int64_t>(std::floor(-reach / shrink) + 1), last = static_cast<int64_t>(2 - first);
    double total = 0;
    for (int64_t k = first; k < last; ++k) {
      const double distance = (static_cast<double>(k) - ratio) * shrink;
      double w = cubic ? cubic_weight(distance, cubic_alpha) : std::max(0.0, 1 - std::fabs(distance));
      const double at = left + static_cast<double>(k);
      if (exclude && (at < 0 || at >= static_cast<double>(in))) w = 0;
      t.index.push_back(clamp(at));
      t.weight.push_back(w);
      total += w;
    }
    if (antialias || exclude)
      for (double& w : t.weight) w /= total;
    return t;
  }
};

// Replaces one axis of x (outer, in, inner) by weighted sums along it.
Value resize_axis(const Value& x, size_t axis, const std::vector<Taps>& taps) {
  std::vector<int64_t> shape = x.shape;
  shape[axis] = static_cast<int64_t>(taps.size());
  const int64_t outer = product(x.shape, 0, axis), n = x.shape[axis],
                inner = product(x.shape, axis + 1, x.shape.size());
  Value out = make_value(x.dtype, shape);
  out.bound.resize(out.f.size());
  const double u = 2 * unit_roundoff(x.dtype);
  for (int64_t o = 0; o < outer; ++o)
    for (size_t j = 0; j < taps.size(); ++j)
      for (size_t k = 0; k < taps[j].index.size(); ++k) {
        const double w = taps[j].weight[k];
        if (w == 0 && taps[j].index.size() > 1) continue;
        const int64_t from = (o * n + taps[j].index[k]) * inner,
                      to = (o * shape[axis] + static_cast<int64_t>(j)) * inner;
        const bool exact = taps[j].index.size() == 1;
        for (int64_t i = 0; i < inner; ++i) {
          out.f[to + i] += w * x.f[from + i];
          out.bound[to + i] += std::fabs(w) * (bound_at(x, from + i) + (exact ? 0 : u * std::fabs(x.f[from + i])));
        }
      }
  return out;
}

// The same where every tap is one element: integers keep all their bits.
Value pick_along(const Value& x, size_t axis, const std::vector<Taps>& taps) {
  std::vector<int64_t> shape = x.shape;
  shape[axis] = static_cast<int64_t>(taps.size());
  const int64_t outer = product(x.shape, 0, axis), n = x.shape[axis],
                inner = product(x.shape, axis + 1, x.shape.size());
  Value out = make_value(x.dtype, shape);
  for (int64_t o = 0; o < outer; ++o)
    for (size_t j = 0; j < taps.size(); ++j)
      std::copy_n(x.i.begin() + (o * n + taps[j].index[0]) * inner, inner,
                  out.i.begin() + (o * shape[axis] + static_cast<int64_t>(j)) * inner);
  return out;
}

// Integer images are computed in double and truncated.
Value as_double(const Value& v) {
  if (v.is_float()) return v;
  Value out = make_value(kFloat64, v.shape);
  std::copy(v.i.begin(), v.i.end(), out.f.begin());
  return out;
}

Value resize(const Value& in, size_t spatial, std::vector<AxisResize> axes, double extrapolation, DataType out_dtype) {
  std::vector<std::vector<Taps>> taps(spatial);
  bool crop = false, picks = !in.is_float() && out_dtype == in.dtype;
  for (size_t k = 0; k < spatial; ++k) {
    for (int64_t i = 0; i < axes[k].out; ++i) taps[k].push_back(axes[k].taps(i));
    crop |= axes[k].transform == "tf_crop_and_resize";
    picks = picks && !crop && std::all_of(taps[k].begin(), taps[k].end(), [](const Taps& t) {
              return t.index.size() == 1 && t.weight[0] == 1;
            });
  }
  Value x = picks ? in : as_double(in);
  for (size_t k = 0; k < spatial; ++k) x = picks ? pick_along(x, 2 + k, taps[k]) : resize_axis(x, 2 + k, taps[k]);
  if (picks) return x;
  if (crop) {
    std::vector<int64_t> strides = row_major_strides(x.shape);
    for (int64_t j = 0; j < x.size(); ++j)
      for (size_t k = 0; k < spatial; ++k)
        if (taps[k][static_cast<size_t>(j / strides[2 + k] % x.shape[2 + k])].outside) {
          x.f[j] = extrapolation;
          x.bound[j] = 0;
          break;
        }
  }
  if (out_dtype.is_float()) {
    x.dtype = out_dtype;
    return x;
  }
  Value out = make_value(out_dtype, x.shape);
  // A cubic goes beyond its points; what a narrow dtype does not hold becomes its nearest number.
  const bool bounded = out_dtype.bits <= 16;
  const auto least = static_cast<double>(lowest(out_dtype)), most = static_cast<double>(highest(out_dtype));
  for (size_t j = 0; j < x.f.size(); ++j)
    out.i[j] = float_to_int(out_dtype, bounded ? std::clamp(x.f[j], least, most) : x.f[j]);
  return out;
}

bool one_of(const std::string& s, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return s == n; });
}

Result<Layout> image_layout(const std::string& text, size_t spatial) {
  Layout l = TW_TRY(parse_layout(text));
  for (const char* c = spatial_letters(spatial); *c; ++c)
    if (l.find(*c) < 0 || l.find_block(*c) >= 0)
      return type_error(format("layout \"{}\" lacks a plain axis {}", text, *c));
  if (l.find('N') < 0 || l.find('C') < 0 || l.find_block('N') >= 0)
    return type_error(format("layout \"{}\" lacks N or C", text));
  return l;
}
Result<Layout> plain_layout(size_t spatial) { return parse_layout(std::string("NC") + spatial_letters(spatial)); }

template <class A, size_t kSpatial>
Result<Type> resize_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  const auto& x = args.tensor(0);
  Layout l = TW_TRY(image_layout(a.layout, kSpatial)), plain = TW_TRY(plain_layout(kSpatial));
  Shape s = TW_TRY(relayout_shape(l, plain, x.shape));
  TW_TRY_STATUS(checked_window("size", a.size, kSpatial, 0));
  if (!one_of(a.method, {"nearest_neighbor", "linear", "cubic"}))
    return type_error(format("method is \"{}\", not nearest_neighbor, linear or cubic", a.method));
  if (!one_of(a.coordinate_transformation_mode, {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
                                                 "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}))
    return type_error(format("coordinate_transformation_mode is \"{}\"", a.coordinate_transformation_mode));
  if (!one_of(a.rounding_method, {"", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}))
    return type_error(format("rounding_method is \"{}\"", a.rounding_method));
  if (!a.scales.empty() && a.scales.size() != kSpatial)
    return type_error(format("scales has {} values for {} spatial axes", a.scales.size(), kSpatial));
  if (!a.roi.empty() && a.roi.size() != 2 * kSpatial)
    return type_error(format("roi has {} values for {} spatial axes", a.roi.size(), kSpatial));
  for (double scale : a.scales)
    if (!(scale >= 0x1p-20 && scale <= 0x1p20)) return type_error(format("scale {} is out of range", scale));
  if (!x.dtype.is_float() && !x.dtype.is_integral())
    return type_error(format("it needs numbers, not {}", x.dtype.str()));
  for (size_t k = 0; k < kSpatial; ++k) {
    if (s[2 + k] == Dim(0) && a.size[k] > 0) return type_error(format("an empty axis cannot become {}", a.size[k]));
    s[2 + k] = a.size[k];
  }
  return tensor_type(TW_TRY(relayout_shape(plain, l, s)), TW_TRY(number_dtype_or(a.out_dtype, x.dtype)));
}
template <class A, size_t kSpatial>
Result<std::vector<Value>> eval_resize(const EvalArgs& args) {
  const auto& a = args.as<A>();
  Layout l = TW_TRY(image_layout(a.layout, kSpatial)), plain = TW_TRY(plain_layout(kSpatial));
  Value x = relayout(args.inputs[0], l, plain);
  std::vector<AxisResize> axes;
  for (size_t k = 0; k < kSpatial; ++k) {
    const int64_t in = x.shape[2 + k], out = a.size[k];
    const double scale = a.scales.empty() ? static_cast<double>(out) / static_cast<double>(in) : a.scales[k];
    axes.push_back({a.method, a.coordinate_transformation_mode, a.rounding_method, scale, a.roi.empty() ? 0 : a.roi[k],
                    a.roi.empty() ? 1 : a.roi[k + kSpatial], a.cubic_alpha, a.cubic_exclude != 0,
                    a.antialias && a.method != "nearest_neighbor", in, out});
  }
  return one(relayout(resize(x, kSpatial, axes, a.extrapolation_value, out_tensor(args).dtype), plain, l));
}

Result<Type> upsampling_type(const TypeArgs& args) {
  const auto& a = attrs_of<UpSamplingAttrs>(args);
  const auto& x = args.tensor(0);
  Layout l = TW_TRY(image_layout(a.layout, 2)), plain = TW_TRY(plain_layout(2));
  Shape s = TW_TRY(relayout_shape(l, plain, x.shape));
  TW_TRY_STATUS(number_dtype(x.dtype));
  if (!one_of(a.method, {"nearest_neighbor", "bilinear", "bicubic"}))
    return type_error(format("method is \"{}\", not nearest_neighbor, bilinear or bicubic", a.method));
  for (size_t k = 0; k < 2; ++k) {
    const double scale = k ? a.scale_w : a.scale_h;
    if (!(scale > 0) || scale > 65536) return type_error(format("scale {} is out of range", scale));
    if (scale == std::floor(scale))
      s[2 + k] = s[2 + k] * Dim(static_cast<int64_t>(scale));
    else if (s[2 + k].is_const())
      s[2 + k] = static_cast<int64_t>(std::round(static_cast<double>(s[2 + k].value()) * scale));
    else
      s[2 + k] = Dim::any();
  }
  return tensor_type(TW_TRY(relayout_shape(plain, l, s)), x.dtype);
}
Result<std::vector<Value>> eval_upsampling(const EvalArgs& args) {
  const auto& a = args.as<UpSamplingAttrs>();
  Layout l = TW_TRY(image_layout(a.layout, 2)), plain = TW_TRY(plain_layout(2));
  Value x = relayout(args.inputs[0], l, plain);
  std::vector<int64_t> shape = out_shape(args);
  const bool nearest = a.method == "nearest_neighbor";
  const char* transform = a.align_corners ? "align_corners" : nearest ? "asymmetric" : "half_pixel";
  std::vector<AxisResize> axes;
  for (size_t k = 0; k < 2; ++k)
    axes.push_back({nearest                  ? "nearest_neighbor"
                    : a.method == "bilinear" ? "linear"
                                             : "cubic",
                    transform, "", k ? a.scale_w : a.scale_h, 0, 1, -0.5, false, false, x.shape[2 + k],
                    l.extent(k ? 'W' : 'H', shape)});
  return one(relayout(resize(x, 2, axes, 0, x.dtype), plain, l));
}

Result<Type> grid_sample_type(const TypeArgs& args) {
  const auto& a = attrs_of<GridSampleAttrs>(args);
  const auto &x = args.tensor(0), &g = args.tensor(1);
  const size_t rank = a.layout == "NCHW" ? 4 : a.layout == "NCDHW" ? 5 : 0;
  if (rank == 0 || x.shape.size() != rank || g.shape.size() != rank ||
      dims_differ(g.shape[1], Dim(static_cast<int64_t>(rank) - 2)) || dims_differ(g.shape[0], x.shape[0]))
    return type_error(
        format("data {} and grid {} are not (N, C, H, W) and (N, 2, H', W'), nor (N, C, D, H, W) and (N, "
               "3, D', H', W') with the layout NCDHW",
               shape_str(x.shape), shape_str(g.shape)));
  if (!x.dtype.is_float() || !g.dtype.is_float())
    return type_error(format("data is {} and grid {}, not floats", x.dtype.str(), g.dtype.str()));
  if (!one_of(a.method, {"bilinear", "nearest", "bicubic"}))
    return type_error(format("method is \"{}\", not bilinear, nearest or bicubic", a.method));
  if (rank == 5 && a.method == "bicubic") return type_error("bicubic is for two axes");
  if (!one_of(a.padding_mode, {"zeros", "border", "reflection"}))
    return type_error(format("padding_mode is \"{}\", not zeros, border or reflection", a.padding_mode));
  Shape shape = g.shape;
  shape[1] = x.shape[1];
  return tensor_type(std::move(shape), x.dtype);
}

struct Sampler {
  const GridSampleAttrs& a;
  const Value& x;
  std::vector<int64_t> extents;  // the last one is the extent of x
  // Normalised coordinate to pixels.
  double pixel(double v, int64_t n) const {
    return a.align_corners ? (v + 1) / 2 * static_cast<double>(n - 1) : ((v + 1) * static_cast<double>(n) - 1) / 2;
  }
  double reflect(double p, int64_t n) const {
    const double low = a.align_corners ? 0 : -0.5,
                 high = a.align_corners ? static_cast<double>(n - 1) : static_cast<double>(n) - 0.5, span = high - low;
    if (span <= 0) return 0;
    double d = std::fmod(std::fabs(p - low), 2 * span);
    return low + (d > span ? 2 * span - d : d);
  }
  double coordinate(double v, int64_t n) const {
    double p = pixel(v, n);
    if (a.method == "bicubic") return p;  // its 16 pixels are mapped one by one
    if (a.padding_mode == "border") return std::clamp(p, 0.0, static_cast<double>(n - 1));
    if (a.padding_mode == "reflection") return std::clamp(reflect(p, n), 0.0, static_cast<double>(n - 1));
    return p;
  }
  double at(int64_t place, const std::vector<int64_t>& index) const {
    for (size_t d = 0; d < extents.size(); ++d) {
      const int64_t n = extents[d];
      int64_t i = index[d];
      if (a.padding_mode == "zeros" && (i < 0 || i >= n)) return 0;
      if (a.padding_mode == "reflection") i = std::llround(reflect(static_cast<double>(i), n));
      place = place * n + std::clamp<int64_t>(i, 0, n - 1);
    }
    return x.f[static_cast<size_t>(place)];
  }
};

Result<std::vector<Value>> eval_grid_sample(const EvalArgs& args) {
  const auto& a = args.as<GridSampleAttrs>();
  const Value &x = args.inputs[0], &grid = args.inputs[1];
  Value out = out_value(args);
  out.bound.resize(out.f.size());
  const Sampler s{a, x, {x.shape.begin() + 2, x.shape.end()}};
  const size_t axes = s.extents.size();
  const int64_t n = x.shape[0], c = x.shape[1], area = product(grid.shape, 2, grid.shape.size());
  const double worst = x.bound.empty() ? 0 : *std::max_element(x.bound.begin(), x.bound.end()),
               u = 16 * unit_roundoff(x.dtype);
  constexpr double kFar = 1e9;  // outside any image; also keeps infinities and NaN out of integer conversions
  const int64_t reach = a.method == "bilinear" ? 1 : 2, width = 2 * reach;
  int64_t taps = 1;
  for (size_t d = 0; d < axes; ++d) taps *= width;
  std::vector<double> at(axes);
  std::vector<int64_t> index(axes);
  for (int64_t b = 0; b < n; ++b)
    for (int64_t p = 0; p < area; ++p) {
      double far = 1;
      for (size_t d = 0; d < axes; ++d) {
        // The grid's coordinates begin with x, the data's axes end with it.
        const auto row = static_cast<int64_t>(axes - 1 - d);
        const double v = s.coordinate(grid.f[(b * static_cast<int64_t>(axes) + row) * area + p], s.extents[d]);
        at[d] = std::isnan(v) ? -kFar : std::clamp(v, -kFar, kFar);
        far += std::fabs(at[d]);
      }
      for (int64_t ch = 0; ch < c; ++ch) {
        const int64_t plane = b * c + ch;
        double value = 0, magnitude = 0;
        if (a.method == "nearest") {
          for (size_t d = 0; d < axes; ++d) index[d] = static_cast<int64_t>(std::nearbyint(at[d]));
          value = s.at(plane, index);
        } else {
          for (int64_t tap = 0; tap < taps; ++tap) {
            double weight = 1;
            for (int64_t d = static_cast<int64_t>(axes) - 1, rest = tap; d >= 0; --d, rest /= width) {
              const auto k = static_cast<size_t>(d);
              const double floor = std::floor(at[k]), offset = static_cast<double>(rest % width + 1 - reach);
              const double distance = offset - (at[k] - floor);
              weight *= reach == 1 ? 1 - std::fabs(distance) : cubic_weight(distance, -0.75);
              index[k] = static_cast<int64_t>(floor + offset);
            }
            const double v = weight == 0 ? 0 : weight * s.at(plane, index);
            value += v;
            magnitude += std::fabs(v);
          }
        }
        out.f[plane * area + p] = value;
        out.bound[plane * area + p] = 2 * worst + u * magnitude * far;
      }
    }
  return one(std::move(out));
}

OpDef image_op(const char* name, const char* doc, std::vector<ArgDoc> operands, Result<Type> (*type)(const TypeArgs&),
               Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, std::move(operands), OpPattern::kInjective, type, eval, make);
}

}  // namespace

std::vector<OpDef> image_ops() {
  const std::vector<ArgDoc> data = {{"data", "in `layout`; numbers"}};
  return {
      image_op("image.resize1d", "The last spatial axis resampled to size.", data, resize_type<Resize1DAttrs, 1>,
               eval_resize<Resize1DAttrs, 1>, make_default_attrs<Resize1DAttrs>),
      image_op("image.resize2d", "H and W resampled to size.", data, resize_type<Resize2DAttrs, 2>,
               eval_resize<Resize2DAttrs, 2>, make_default_attrs<Resize2DAttrs>)
          .with({.narrowing = Narrowing::kFollows}),
      image_op("image.resize3d", "D, H and W resampled to size.", data, resize_type<Resize3DAttrs, 3>,
               eval_resize<Resize3DAttrs, 3>, make_default_attrs<Resize3DAttrs>),
      image_op("nn.upsampling", "H and W scaled.", data, upsampling_type, eval_upsampling,
               make_default_attrs<UpSamplingAttrs>)
          .with({.narrowing = Narrowing::kFollows}),
      image_op(
          "image.grid_sample",
          "data sampled at the grid's normalised positions: (N, C, H, W), (N, 2, H', W') -> (N, C, H', W'), or with "
          "depth.",
          {{"data", "(N, C, H, W) or (N, C, D, H, W) floats"},
           {"grid", "(N, 2, H', W') or (N, 3, D', H', W'), x before y before z, -1 and 1 at the edges"}},
          grid_sample_type, eval_grid_sample, make_default_attrs<GridSampleAttrs>),
  };
}

}  // namespace tilewright::relay
