// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample, over the axes after batch and channels.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

struct Plan {
  Ints sizes;      // of all axes
  Doubles scales;  // of all axes
  Doubles roi;     // starts of all axes, then ends; empty when there is none
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

Doubles doubles(NodeContext& c, size_t input, const char* what) {
  Tensor t = c.constant(c.input(input), what);
  if (!t.dtype().is_float() || t.rank() != 1) c.fail_type(format("its {} must be a vector of floats", what));
  Doubles out;
  for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at_double(i));
  return out;
}

void check_scales(NodeContext& c, const Doubles& scales, size_t want) {
  if (scales.size() != want) c.fail(format("it has {} scales for {} axes", scales.size(), want));
  for (double s : scales)
    if (!(s > 0) || s > 1e6) c.fail(format("a scale is {}", s));
}

template <class A>
AttrsRef resize_attrs(const Plan& p, size_t first) {
  return make_attrs<A>([&](auto& a) {
    a.size.assign(p.sizes.begin() + static_cast<int64_t>(first), p.sizes.end());
    a.scales.assign(p.scales.begin() + static_cast<int64_t>(first), p.scales.end());
    if (!p.roi.empty()) {
      size_t rank = p.sizes.size();
      for (size_t half = 0; half < 2; ++half)
        for (size_t i = first; i < rank; ++i) a.roi.push_back(p.roi[half * rank + i]);
    }
    a.method = p.mode == "nearest" ? "nearest_neighbor" : p.mode;
    a.coordinate_transformation_mode = p.coordinates;
    a.rounding_method = p.nearest;
    a.cubic_alpha = p.cubic;
    a.cubic_exclude = p.exclude_outside;
    a.extrapolation_value = p.extrapolation;
    a.antialias = p.antialias;
  });
}

// The graph operators resize the axes behind the first two: others are transposed there, or merged away when not
// resized.
Expr apply(NodeContext& c, Expr x, Plan p) {
  if (c.dtype(x).is_bool()) return c.cast(apply(c, c.cast(x, kUInt8), std::move(p)), kBool);
  Ints dims = c.dims(x);
  size_t rank = dims.size();
  auto touched = [&](size_t i) {
    return p.sizes[i] != dims[i] || p.scales[i] != 1 ||
           (!p.roi.empty() && p.coordinates == "tf_crop_and_resize" && (p.roi[i] != 0 || p.roi[rank + i] != 1));
  };
  Ints moved, kept;
  for (size_t i = 0; i < rank; ++i) (touched(i) ? moved : kept).push_back(static_cast<int64_t>(i));
  if (moved.empty()) return x;
  bool plain = rank >= 3 && rank <= 5 && !touched(0) && !touched(1);
  if (!plain) {
    if (moved.size() > 3) c.unsupported("more than three resized axes");
    // To (1, product of the others, resized axes...), and back.
    Ints order = kept;
    order.insert(order.end(), moved.begin(), moved.end());
    Plan q = p;
    q.sizes = {1, 1};
    q.scales = {1, 1};
    q.roi.clear();
    Ints flat = {1, 1}, result;
    Ints others;
    for (int64_t i : kept) others.push_back(dims[static_cast<size_t>(i)]);
    flat[1] = c.product(others);
    q.sizes[1] = flat[1];
    for (int64_t i : moved) {
      flat.push_back(dims[static_cast<size_t>(i)]);
      q.sizes.push_back(p.sizes[static_cast<size_t>(i)]);
      q.scales.push_back(p.scales[static_cast<size_t>(i)]);
    }
    if (!p.roi.empty())
      for (size_t half = 0; half < 2; ++half) {
        q.roi.push_back(half ? 1 : 0), q.roi.push_back(half ? 1 : 0);
        for (int64_t i : moved) q.roi.push_back(p.roi[half * rank + static_cast<size_t>(i)]);
      }
    for (int64_t i : order) result.push_back(p.sizes[static_cast<size_t>(i)]);
    Expr y = apply(c, c.reshape(c.transpose(x, order), flat), q);
    Ints back(rank);
    for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return c.transpose(c.reshape(y, result), back);
  }
  if (rank == 3) return c.call("image.resize1d", {x}, resize_attrs<relay::Resize1DAttrs>(p, 2));
  if (rank == 4) return c.call("image.resize2d", {x}, resize_attrs<relay::Resize2DAttrs>(p, 2));
  return c.call("image.resize3d", {x}, resize_attrs<relay::Resize3DAttrs>(p, 2));
}

// The input coordinate of output element i.
double place_of(const Plan& p, size_t axis, int64_t from, int64_t i) {
  const double scale = p.scales[axis], width = scale * static_cast<double>(from), x = static_cast<double>(i),
               last = static_cast<double>(from - 1);
  if (p.coordinates == "align_corners") return width == 1 ? 0 : x * last / (width - 1);
  if (p.coordinates == "asymmetric") return x / scale;
  if (p.coordinates == "tf_crop_and_resize") {
    const double begin = p.roi[axis], end = p.roi[p.sizes.size() + axis];
    return begin * last + (width == 1 ? (end - begin) * last / 2 : x * (end - begin) * last / (width - 1));
  }
  if (p.coordinates == "pytorch_half_pixel" && width == 1) return -0.5;
  const double shift = p.coordinates == "half_pixel_symmetric"
                           ? static_cast<double>(from) / 2 * (1 - static_cast<double>(p.sizes[axis]) / width)
                           : 0;
  return shift + (x + 0.5) / scale - 0.5;
}

// The filter weights of the input elements near a coordinate; the first is at floor(coordinate) + `offset`. `ratio`, in
// (0, 1], is the fractional part.
Doubles weights_at(const Plan& p, double ratio, double scale, int64_t* offset) {
  Doubles out;
  if (p.mode == "nearest") {
    const bool right = ratio == 1 || p.nearest == "ceil" || (p.nearest == "round_prefer_floor" && ratio > 0.5) ||
                       (p.nearest == "round_prefer_ceil" && ratio >= 0.5);
    *offset = 0;
    return right ? Doubles{0, 1} : Doubles{1, 0};
  }
  // With antialiasing the filter widens to the extent of an output element.
  const double narrow = p.antialias ? std::min(scale, 1.0) : 1, reach = p.mode == "linear" ? 1 : 2;
  const auto start = static_cast<int64_t>(std::floor(-reach / narrow)) + 1;
  *offset = start;
  double sum = 0;
  for (int64_t k = start; k < 2 - start; ++k) {
    const double x = std::fabs((static_cast<double>(k) - ratio) * narrow), a = p.cubic;
    out.push_back(reach == 1 ? std::max(0.0, 1 - x)
                  : x <= 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
                  : x < 2    ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                             : 0);
    sum += out.back();
  }
  for (double& w : out) w /= sum;
  return out;
}

// The general way, for every coordinate rule and filter: one product with an interpolation matrix per resized axis.
Expr by_matrices(NodeContext& c, Expr x, const Plan& p) {
  const Ints dims = c.dims(x);
  const auto rank = static_cast<int64_t>(dims.size());
  const DataType dtype = c.dtype(x);
  if (!dtype.is_float()) x = c.cast(x, kFloat32);
  Expr inside;  // whether coordinates lie inside the crop; null where all do
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto k = static_cast<size_t>(axis);
    const int64_t from = dims[k], to = p.sizes[k];
    const bool cropped = p.coordinates == "tf_crop_and_resize" && (p.roi[k] != 0 || p.roi[dims.size() + k] != 1);
    if (from == to && p.scales[k] == 1 && !cropped) continue;
    if (from < 1 || c.product({from, to}) > (int64_t{1} << 26))
      c.unsupported(format("an axis of {} resized to {}", from, to));
    Tensor matrix = Tensor::zeros(c.dtype(x), {to, from}), kept = Tensor::zeros(kBool, {to});
    bool outside = false;
    for (int64_t i = 0; i < to; ++i) {
      const double place = place_of(p, k, from, i);
      kept.set_int(i, !(cropped && (place < 0 || place > static_cast<double>(from - 1))));
      outside |= kept.at_int(i) == 0;
      // For a coordinate that is integral the left neighbour is one further left, at ratio 1.
      const double left = std::ceil(place) - 1;
      int64_t offset = 0;
      Doubles w = weights_at(p, place - left, p.scales[k], &offset);
      double sum = 0;
      for (size_t n = 0; n < w.size(); ++n) {
        const int64_t at = static_cast<int64_t>(left) + offset + static_cast<int64_t>(n);
        if (p.exclude_outside && (at < 0 || at >= from)) w[n] = 0;
        sum += w[n];
      }
      for (size_t n = 0; n < w.size(); ++n) {
        const int64_t at =
            std::clamp<int64_t>(static_cast<int64_t>(left) + offset + static_cast<int64_t>(n), 0, from - 1);
        matrix.set_double(i * from + at, matrix.at_double(i * from + at) + (p.exclude_outside ? w[n] / sum : w[n]));
      }
    }
    Ints order, back(dims.size());
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis) order.push_back(d);
    order.push_back(axis);
    for (size_t d = 0; d < order.size(); ++d) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    Ints shape = c.dims(x), moved;
    for (int64_t d : order) moved.push_back(shape[static_cast<size_t>(d)]);
    moved.back() = to;
    Expr rows = c.reshape(c.transpose(x, order), {c.product(shape) / from, from});
    rows = c.call("nn.dense", {rows, c.constant_of(matrix)},
                  make_attrs<relay::DenseAttrs>([&](auto& a) { a.units = to; }));
    x = c.transpose(c.reshape(rows, moved), back);
    if (!outside) continue;
    Ints broadcast(dims.size(), 1);
    broadcast[k] = to;
    Expr mask = c.constant_of(kept.reshaped(broadcast));
    inside = inside ? c.call("logical_and", {inside, mask}) : mask;
  }
  if (inside) x = c.where(inside, x, c.scalar_like(p.extrapolation, x));
  return c.cast(x, dtype);
}

// floor(size * scale) with the product rounded to float first, as the reference implementations do.
int64_t scaled(int64_t size, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(static_cast<double>(size) * scale)));
}

Plan plan_from_scales(NodeContext& c, const Ints& dims, const Doubles& scales) {
  check_scales(c, scales, dims.size());
  Plan p;
  p.scales = scales;
  for (size_t i = 0; i < dims.size(); ++i) p.sizes.push_back(scaled(dims[i], scales[i]));
  return p;
}

std::string checked_mode(NodeContext& c) {
  std::string mode = c.string_attr("mode", "nearest");
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") c.fail(format("its mode '{}' is unknown", mode));
  return mode;
}

// Below opset 11: asymmetric coordinates, and nearest rounds down.
Values upsample(NodeContext& c) {
  Expr x = c.input(0);
  Ints dims = c.dims(x);
  Doubles scales;
  if (c.opset() < 7) {
    scales.assign(dims.size(), 1);
    if (dims.size() != 4) c.fail_type("its input has another rank than 4");
    scales[2] = c.float_attr("height_scale", 1);
    scales[3] = c.float_attr("width_scale", 1);
  } else if (c.opset() < 9) {
    scales = c.floats_attr("scales");
  } else {
    scales = doubles(c, 1, "scales");
  }
  Plan p = plan_from_scales(c, dims, scales);
  p.mode = checked_mode(c);
  p.coordinates = "asymmetric";
  p.nearest = "floor";
  return {apply(c, x, p)};
}

Values resize(NodeContext& c) {
  Expr x = c.input(0);
  Ints dims = c.dims(x);
  auto rank = static_cast<int64_t>(dims.size());
  Ints axes = c.ints_attr("axes");
  for (int64_t& a : axes) a = c.axis(a, rank);
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  // Expands values for the listed axes to all axes.
  auto spread = [&](auto values, auto fallback) {
    std::vector<decltype(fallback)> out(dims.size(), fallback);
    for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(axes[i])] = values[i];
    return out;
  };
  std::string coordinates = c.string_attr("coordinate_transformation_mode", "half_pixel");
  Plan p;
  bool by_scales = c.has(2) && !(c.known(c.input(2)) && c.known(c.input(2))->size() == 0);
  if (by_scales) {
    Doubles scales = doubles(c, 2, "scales");
    check_scales(c, scales, axes.size());
    p = plan_from_scales(c, dims, spread(scales, 1.0));
  } else {
    if (!c.has(3)) c.fail("it has neither scales nor sizes");
    Ints sizes = c.ints(3, "sizes");
    if (sizes.size() != axes.size()) c.fail(format("it has {} sizes for {} axes", sizes.size(), axes.size()));
    Doubles scales;
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t from = dims[static_cast<size_t>(axes[i])];
      if (sizes[i] < 1 || from < 1) c.fail(format("it makes {} elements of {}", sizes[i], from));
      scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(from));
    }
    std::string policy = c.string_attr("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
      c.fail(format("its keep_aspect_ratio_policy '{}' is unknown", policy));
    if (policy != "stretch" && !scales.empty()) {
      double scale = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                            : *std::max_element(scales.begin(), scales.end());
      for (size_t i = 0; i < sizes.size(); ++i) {
        scales[i] = scale;
        sizes[i] =
            static_cast<int64_t>(std::floor(scale * static_cast<double>(dims[static_cast<size_t>(axes[i])]) + 0.5));
      }
    }
    p.scales = spread(scales, 1.0);
    p.sizes = dims;
    for (size_t i = 0; i < axes.size(); ++i) p.sizes[static_cast<size_t>(axes[i])] = sizes[i];
  }
  p.mode = checked_mode(c);
  p.coordinates = coordinates;
  p.nearest = c.string_attr("nearest_mode", "round_prefer_floor");
  if (coordinates == "tf_half_pixel_for_nn") {
    // The coordinates are half an element off half_pixel's, so that rounding down here is rounding to nearest there,
    // etc.
    if (p.mode != "nearest" || (p.nearest != "floor" && p.nearest != "round_prefer_floor"))
      c.unsupported("tf_half_pixel_for_nn with this rounding");
    p.nearest = p.nearest == "floor" ? "round_prefer_ceil" : "ceil";
    p.coordinates = "half_pixel";
  }
  p.cubic = c.float_attr("cubic_coeff_a", -0.75);
  p.exclude_outside = c.int_attr("exclude_outside", 0) != 0;
  p.extrapolation = c.float_attr("extrapolation_value", 0);
  p.antialias = c.int_attr("antialias", 0) != 0;
  if (coordinates == "tf_crop_and_resize") {
    Doubles roi = doubles(c, 1, "roi");
    if (roi.size() != 2 * axes.size()) c.fail(format("it has {} roi values for {} axes", roi.size(), axes.size()));
    Doubles starts = spread(Doubles(roi.begin(), roi.begin() + static_cast<int64_t>(axes.size())), 0.0);
    Doubles ends = spread(Doubles(roi.begin() + static_cast<int64_t>(axes.size()), roi.end()), 1.0);
    p.roi = starts;
    p.roi.insert(p.roi.end(), ends.begin(), ends.end());
  }
  // Where a scale does not give an integral size, scales and sizes disagree about the coordinates of the corners.
  bool uneven = false;
  for (size_t i = 0; i < dims.size(); ++i)
    uneven |= p.scales[i] * static_cast<double>(dims[i]) != static_cast<double>(p.sizes[i]);
  const bool matrices = (p.antialias && p.mode != "nearest") || coordinates == "tf_crop_and_resize" ||
                        (coordinates == "align_corners" && uneven && by_scales);
  return {matrices ? by_matrices(c, x, p) : apply(c, x, p)};
}

constexpr ConverterEntry kResizeConverters[] = {
    {"Upsample", 1, upsample},
    {"Resize", 10, upsample},
    {"Resize", 11, resize},
};

}  // namespace

std::span<const ConverterEntry> resize_converters() { return kResizeConverters; }

}  // namespace tilewright::onnx
