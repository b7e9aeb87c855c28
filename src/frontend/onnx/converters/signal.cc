// SPDX-License-Identifier: Apache-2.0
// Fourier transforms as products with constant matrices of cosines and sines, window functions, and sampling grids.
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMaxTransform = 4096;  // length; the matrices have its square

Expr values_constant(NodeContext& c, const std::vector<double>& values, Ints shape, DataType dtype) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) t.set_double(static_cast<int64_t>(i), values[i]);
  return c.constant_of(t);
}

// DFT along the last axis of the real and imaginary parts (the latter may be null) to `outputs` frequencies: (...,
// outputs, 2), or `outputs` real samples when `real_result`.
Expr transform(NodeContext& c, const Expr& real, const Expr& imaginary, int64_t n, int64_t outputs, bool inverse) {
  if (n > kMaxTransform || outputs > kMaxTransform) c.unsupported(format("a transform of {} elements", n));
  DataType dtype = c.dtype(real);
  int64_t inputs = c.dims(real).back();
  std::vector<double> cosines, sines;
  double sign = inverse ? 1 : -1, factor = inverse ? 1.0 / static_cast<double>(n) : 1;
  for (int64_t k = 0; k < outputs; ++k)
    for (int64_t i = 0; i < inputs; ++i) {
      // i * k is taken modulo n, the period of the angle, which keeps the angle exact.
      double angle = 2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
      cosines.push_back(factor * std::cos(angle));
      sines.push_back(factor * sign * std::sin(angle));
    }
  Expr cosine = values_constant(c, cosines, {outputs, inputs}, dtype),
       sine = values_constant(c, sines, {outputs, inputs}, dtype);
  auto times = [&](const Expr& x, const Expr& w) {
    return c.call("nn.dense", {x, w}, make_attrs<relay::DenseAttrs>([&](auto& a) { a.units = outputs; }));
  };
  Expr re = times(real, cosine), im = times(real, sine);
  if (imaginary) {
    re = c.sub(re, times(imaginary, sine));
    im = c.add(im, times(imaginary, cosine));
  }
  int64_t rank = c.rank(re);
  return c.concat({c.expand(re, rank), c.expand(im, rank)}, rank);
}

// Cuts the last axis, or pads it with zeros, to n elements.
Expr fit(NodeContext& c, const Expr& x, int64_t n) {
  int64_t size = c.dims(x).back(), last = c.rank(x) - 1;
  if (size >= n) return size == n ? x : c.slice(x, last, 0, n);
  std::vector<Ints> widths(static_cast<size_t>(last + 1), Ints{0, 0});
  widths.back()[1] = n - size;
  return c.call("nn.pad", {x, c.scalar_like(0, x)},
                make_attrs<relay::PadAttrs>([&](auto& a) { a.pad_width = widths; }));
}

Values dft(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  if (rank < 2) c.fail_type("its input has no axis of complex parts");
  int64_t parts = c.dims(x).back();
  if (parts != 1 && parts != 2) c.fail_type(format("its last axis has {} parts, not 1 or 2", parts));
  int64_t axis = c.opset() >= 20 ? (c.has(2) ? c.int_scalar(2, "axis") : -2) : c.int_attr("axis", 1);
  axis = c.axis(axis, rank);
  if (axis == rank - 1) c.fail("its axis is the one of complex parts");
  bool inverse = c.int_attr("inverse", 0) != 0, onesided = c.int_attr("onesided", 0) != 0;
  // The transformed axis is moved last.
  Ints order;
  for (int64_t i = 0; i + 1 < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  auto part = [&](int64_t p) {
    Expr plane = c.squeeze(parts == 1 ? x : c.slice(x, rank - 1, p, p + 1), {rank - 1});
    return c.transpose(plane, order);
  };
  Expr real = part(0), imaginary = parts == 2 ? part(1) : Expr();
  int64_t size = c.dims(real).back();
  bool half_in = inverse && onesided;  // input: half a spectrum; result: real samples
  int64_t n = c.has(1) ? c.int_scalar(1, "dft_length") : half_in ? 2 * (size - 1) : size;
  if (n < 1) c.fail(format("its length is {}", n));
  Expr y;
  if (half_in) {
    // Real samples from a one-sided spectrum: all frequencies but the first (and, for even n, the last) count twice.
    int64_t half = n / 2 + 1;
    real = fit(c, real, half);
    imaginary = imaginary ? fit(c, imaginary, half) : imaginary;
    if (n > kMaxTransform) c.unsupported(format("a transform of {} elements", n));
    std::vector<double> cosines, sines;
    for (int64_t t = 0; t < n; ++t)
      for (int64_t k = 0; k < half; ++k) {
        double angle = 2 * M_PI * static_cast<double>(t * k % n) / static_cast<double>(n);
        double weight = (k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n);
        cosines.push_back(weight * std::cos(angle));
        sines.push_back(-weight * std::sin(angle));
      }
    auto times = [&](const Expr& e, const std::vector<double>& m) {
      return c.call("nn.dense", {e, values_constant(c, m, {n, half}, c.dtype(e))},
                    make_attrs<relay::DenseAttrs>([&](auto& a) { a.units = n; }));
    };
    y = times(real, cosines);
    if (imaginary) y = c.add(y, times(imaginary, sines));
    y = c.expand(y, rank - 1);
  } else {
    real = fit(c, real, n);
    if (imaginary) imaginary = fit(c, imaginary, n);
    y = transform(c, real, imaginary, n, onesided ? n / 2 + 1 : n, inverse);
  }
  Ints back(static_cast<size_t>(rank));
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  back.back() = rank - 1;
  return {c.transpose(y, back)};
}

// STFT of a signal (batch, samples, parts): overlapping windowed frames, each transformed: (batch, frames, bins, 2).
Values stft(NodeContext& c) {
  Expr x = c.input(0);
  int64_t step = c.int_scalar(1, "frame_step");
  Expr window = c.has(2) ? c.input(2) : Expr();
  Ints d = c.dims(x);
  if (d.size() == 2) x = c.expand(x, 2), d.push_back(1);
  if (d.size() != 3 || (d[2] != 1 && d[2] != 2)) c.fail_type("its signal must have shape (batch, samples, 1 or 2)");
  int64_t length = c.has(3) ? c.int_scalar(3, "frame_length") : window ? c.dims(window)[0] : 0;
  if (step < 1 || length < 1 || length > d[1])
    c.fail(format("frames of {} samples every {} do not fit {}", length, step, d[1]));
  int64_t frames = (d[1] - length) / step + 1;
  if (frames * length > (1 << 26)) c.unsupported(format("{} frames of {} samples", frames, length));
  Ints places;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i) places.push_back(f * step + i);
  Expr index = c.reshape(c.ints_constant(places), {frames, length});
  auto part = [&](int64_t p) {
    Expr plane = c.squeeze(c.slice(x, 2, p, p + 1), {2});
    Expr framed = c.call("take", {plane, index}, make_attrs<relay::TakeAttrs>([](auto& a) {
                           a.axis = 1;
                           a.mode = "fast";
                         }));
    return window ? c.mul(framed, window) : framed;
  };
  bool onesided = c.int_attr("onesided", 1) != 0;
  return {transform(c, part(0), d[2] == 2 ? part(1) : Expr(), length, onesided ? length / 2 + 1 : length, false)};
}

Values window(NodeContext& c, double a0, double a1, double a2) {
  int64_t size = c.int_scalar(0, "size");
  if (size < 0 || size > (1 << 24)) c.fail(format("its size is {}", size));
  DataType dtype = c.dtype_attr("output_datatype", kFloat32);
  double period = static_cast<double>(c.int_attr("periodic", 1) != 0 ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    double angle = size == 1 ? 0 : 2 * M_PI * static_cast<double>(i) / period;
    const double value = a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
    // Cut to whole numbers the middle would be 0 by a rounding.
    values.push_back(dtype.is_float() ? value : static_cast<double>(static_cast<float>(value)));
  }
  return {values_constant(c, values, {size}, dtype)};
}
Values hann(NodeContext& c) { return window(c, 0.5, 0.5, 0); }
Values hamming(NodeContext& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Values blackman(NodeContext& c) { return window(c, 0.42, 0.5, 0.08); }

// Triangular filters over the bins of a spectrum, evenly spaced on the mel scale.
Values mel_weights(NodeContext& c) {
  int64_t bins = c.int_scalar(0, "number of mel bins"), length = c.int_scalar(1, "dft_length"),
          rate = c.int_scalar(2, "sample rate");
  double low = c.constant(c.input(3), "lower edge").at_double(0),
         high = c.constant(c.input(4), "upper edge").at_double(0);
  if (bins < 1 || length < 1 || rate < 1 || bins > 100'000 || length > (1 << 20) || bins * (length / 2 + 1) > (1 << 26))
    c.fail("its sizes are out of range");
  int64_t spectrum = length / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> edges;
  double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * (std::pow(10, (mel(low) + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  std::vector<double> weights(static_cast<size_t>(spectrum * bins), 0);
  auto set = [&](int64_t row, int64_t column, double value) {
    if (row >= 0 && row < spectrum) weights[static_cast<size_t>(row * bins + column)] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    int64_t a = edges[static_cast<size_t>(i)], b = edges[static_cast<size_t>(i + 1)],
            e = edges[static_cast<size_t>(i + 2)];
    if (a == b)
      set(b, i, 1);
    else
      for (int64_t j = a; j <= b; ++j) set(j, i, static_cast<double>(j - a) / static_cast<double>(b - a));
    for (int64_t j = b; e > b && j < e; ++j) set(j, i, static_cast<double>(e - j) / static_cast<double>(e - b));
  }
  return {values_constant(c, weights, {spectrum, bins}, c.dtype_attr("output_datatype", kFloat32))};
}

// Applies an affine matrix per batch to a normalised grid: theta (N, 2, 3) or (N, 3, 4).
Values affine_grid(NodeContext& c) {
  Expr theta = c.input(0);
  Ints size = c.ints(1, "size");
  auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3) c.fail_type(format("its size has {} values", size.size()));
  bool corners = c.int_attr("align_corners", 0) != 0;
  int64_t points = 1;
  for (int64_t i = 0; i < axes; ++i) {
    if (int64_t n = size[static_cast<size_t>(i + 2)]; n < 1 || n > (1 << 24) || points > (1 << 24))
      c.fail("its size is out of range");
    points *= size[static_cast<size_t>(i + 2)];
  }
  std::vector<double> grid;  // (points, axes + 1), homogeneous: x first, the constant 1 last
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t i = axes - 1; i >= 0; --i) {
      int64_t n = size[static_cast<size_t>(i + 2)], at = rest % n;
      rest /= n;
      auto count = static_cast<double>(n), where = static_cast<double>(at);
      grid.push_back(corners ? (n == 1 ? -1 : 2 * where / (count - 1) - 1) : (2 * where + 1) / count - 1);
    }
    grid.push_back(1);
  }
  Expr homogeneous = c.expand(values_constant(c, grid, {points, axes + 1}, c.dtype(theta)), 0);
  // The grid (1, points, axes + 1) times the transposed matrices (N, axes, axes + 1).
  Expr moved = c.call("nn.batch_matmul", {homogeneous, theta},
                      make_attrs<relay::BatchMatmulAttrs>([](auto& a) { a.transpose_b = true; }));
  Ints shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  return {c.reshape(moved, shape)};
}

constexpr ConverterEntry kSignalConverters[] = {
    {"DFT", 17, dft},
    {"STFT", 17, stft},
    {"HannWindow", 17, hann},
    {"HammingWindow", 17, hamming},
    {"BlackmanWindow", 17, blackman},
    {"MelWeightMatrix", 17, mel_weights},
    {"AffineGrid", 20, affine_grid},
};

}  // namespace

std::span<const ConverterEntry> signal_converters() { return kSignalConverters; }

}  // namespace tilewright::onnx
