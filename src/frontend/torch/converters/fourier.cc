// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, whole or as run_decompositions() leaves them, and the signals of spectra by frames.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/converters/complex.h"

namespace tilewright::torch {
namespace complex {
namespace {

using Ints = std::vector<int64_t>;

enum class Kind { kComplex, kInverse, kReal, kInverseReal };

struct Transform {
  NodeContext& c;
  std::string norm;

  Expr scaled(const Expr& e, int64_t length, bool inverse) const {
    const auto n = static_cast<double>(length);
    double factor = 1;  // beyond the inverse's division by the length
    if (norm == "ortho") factor = inverse ? std::sqrt(n) : 1 / std::sqrt(n);
    if (norm == "forward") factor = inverse ? n : 1 / n;
    return factor == 1 ? e : c.mul(e, c.scalar_like(factor, e));
  }
  // z has both parts. A length of -1 keeps the axis as it is.
  Expr along(Expr z, int64_t axis, int64_t length, bool inverse) const {
    z = fitted(std::move(z), axis, length);
    const int64_t n = c.dims(z).at(static_cast<size_t>(axis));
    Expr y = c.onnx("DFT", 20, {z, Expr(), c.constant_of(Tensor::scalar<int64_t>(kInt64, axis))},
                    {{"inverse", int64_t{inverse}}})[0];
    return scaled(y, n, inverse);
  }
  // Cuts the axis, or pads it with zeros.
  Expr fitted(Expr z, int64_t axis, int64_t length) const {
    Ints d = c.dims(z);
    const int64_t n = d.at(static_cast<size_t>(axis));
    if (length < 0 || length == n) return z;
    if (length == 0) c.fail("its length is 0");
    if (length < n) return c.slice(z, axis, 0, length);
    d[static_cast<size_t>(axis)] = length - n;
    return c.concat({z, c.zeros(c.dtype(z), d)}, axis);
  }
  // The full spectrum of a real signal of `length` from its one-sided half.
  Expr mirrored(Expr z, int64_t axis, int64_t length) const {
    const int64_t half = length / 2 + 1, last = c.rank(z) - 1;
    z = fitted(std::move(z), axis, half);
    const int64_t more = length - half;
    if (more <= 0) return z;
    Expr back = c.slice(z, axis, 1, 1 + more);
    back = c.call("reverse", {back}, make_attrs<relay::ReverseAttrs>([&](auto& a) { a.axis = axis; }));
    back = c.concat({c.slice(back, last, 0, 1), c.call("negative", {c.slice(back, last, 1, 2)})}, last);
    return c.concat({z, back}, axis);
  }
};

template <Kind kKind>
Values transform(NodeContext& c) {
  const Value& self = c.value("self");
  const int64_t rank = axes_of(c, self);
  Transform t{c, c.text("norm", "backward")};
  const bool one = without_overload(c.node().target).ends_with("fft");
  Ints axes, lengths;
  if (one) {
    axes = {c.dim(c.integer("dim", -1), rank)};
    lengths = {c.integer("n", -1)};
  } else {
    if (c.has("s")) lengths = c.ints("s");
    if (c.has("dim"))
      for (int64_t a : c.ints("dim")) axes.push_back(c.dim(a, rank));
    const bool two = c.node().target.find("fft2") != std::string::npos;
    if (axes.empty()) {
      const int64_t count = two ? 2 : lengths.empty() ? rank : static_cast<int64_t>(lengths.size());
      for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
    }
    if (lengths.empty()) lengths.assign(axes.size(), -1);
    if (lengths.size() != axes.size() || axes.front() < 0) c.fail("it has other lengths than axes");
  }
  constexpr bool kInverse = kKind == Kind::kInverse || kKind == Kind::kInverseReal;
  Expr z = self.complex ? self.expr : joined(c, c.real(self.expr), {}).expr;
  const int64_t last = axes.back();
  if (kKind == Kind::kInverseReal) {
    for (size_t i = 0; i + 1 < axes.size(); ++i) z = t.along(z, axes[i], lengths[i], true);
    const int64_t now = c.dims(z).at(static_cast<size_t>(last));
    const int64_t length = lengths.back() < 0 ? 2 * (now - 1) : lengths.back();
    if (length < 1) c.fail("its length is 0");
    z = t.along(t.mirrored(z, last, length), last, -1, true);
    return {Value(parts_of(c, as_complex(z)).real)};
  }
  for (size_t i = axes.size(); i-- > 0;) {
    z = t.along(z, axes[i], lengths[i], kInverse);
    if (kKind == Kind::kReal && i + 1 == axes.size())
      z = c.slice(z, last, 0, c.dims(z).at(static_cast<size_t>(last)) / 2 + 1);
  }
  return {as_complex(z)};
}

// The zero frequency in the middle, and back.
template <bool kBack>
Values shifted(NodeContext& c) {
  Value self = c.value("self");
  const int64_t rank = axes_of(c, self);
  Values shifts, axes;
  Ints of = c.has("dim") ? c.ints("dim") : Ints();
  if (!c.has("dim"))
    for (int64_t i = 0; i < rank; ++i) of.push_back(i);
  for (int64_t i : of) {
    const int64_t axis = c.dim(i, rank), size = c.dims(self.expr).at(static_cast<size_t>(axis));
    axes.push_back(whole(axis));
    shifts.push_back(whole(kBack ? (size + 1) / 2 : size / 2));
  }
  const bool complex = self.complex;
  self.complex = false;
  Value out =
      c.aten("aten.roll.default", {{"self", self}, {"shifts", Value::of_list(shifts)}, {"dims", Value::of_list(axes)}})
          .at(0);
  out.complex = complex;
  return {out};
}

// The signal of a spectrum by frames: windowed frames are added where they overlap and divided by the windows there.
Values istft(NodeContext& c) {
  const Value& self = c.value("self");
  if (!self.complex) c.fail_type("its operand is not complex");
  const int64_t n = c.integer("n_fft"), hop = c.integer("hop_length", n / 4), width = c.integer("win_length", n);
  if (c.flag("return_complex", false) || !c.flag("onesided", true)) c.unsupported("a complex signal");
  if (n < 1 || hop < 1 || width < 1 || width > n) c.fail("its frames are impossible");
  const bool alone = axes_of(c, self) == 2;
  const Value spectrum = as_complex(alone ? c.expand(self.expr, 0) : self.expr);
  Expr frames = c.aten("aten.fft_irfft.default", {{"self", spectrum}, {"n", whole(n)}, {"dim", whole(1)}}).at(0).expr;
  frames = c.transpose(frames, {0, 2, 1});
  const DataType dtype = c.dtype(frames);
  if (c.flag("normalized", false)) frames = c.mul(frames, c.scalar(std::sqrt(static_cast<double>(n)), dtype));
  Expr window = c.has("window") ? c.tensor("window") : c.add(c.zeros(dtype, {width}), c.scalar(1, dtype));
  const int64_t before = (n - width) / 2;
  window = c.concat({c.zeros(dtype, {before}), window, c.zeros(dtype, {n - width - before})}, 0);
  const Ints d = c.dims(frames);
  const int64_t count = d[1], total = n + hop * (count - 1);
  Ints places;
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < n; ++i) places.push_back(t * hop + i);
  auto overlapped = [&](const Expr& e, int64_t rows) {
    const Expr at = c.broadcast_to(c.expand(c.ints_constant(places), 0), {rows, count * n});
    return c.call("scatter_elements", {c.zeros(dtype, {rows, total}), at, c.reshape(e, {rows, count * n})},
                  make_attrs<relay::ScatterElementsAttrs>([](auto& a) {
                    a.axis = 1;
                    a.reduction = "add";
                  }));
  };
  const Expr sums = overlapped(c.mul(frames, window), d[0]);
  const Expr weights = overlapped(c.broadcast_to(c.mul(window, window), {1, count, n}), 1);
  const int64_t start = c.flag("center", true) ? n / 2 : 0;
  const int64_t length = c.integer("length", total - start - (c.flag("center", true) ? n / 2 : 0));
  const int64_t end = std::min(total, start + length);
  if (length < 0 || end <= start) c.fail(format("its length {} is impossible", length));
  Expr y = c.div(c.slice(sums, 1, start, end), c.slice(weights, 1, start, end));
  if (end - start < length) y = c.concat({y, c.zeros(dtype, {d[0], length - (end - start)})}, 1);
  return {alone ? c.squeeze(y, {0}) : y};
}
// ---- as decompositions leave them

enum class Scaling : int64_t { kNone, kByRoot, kByLength };

// The transform along axes, without any scaling but what PyTorch's number of it says.
Expr plain_transform(NodeContext& c, Expr z, const Ints& axes, bool inverse, const Transform& t) {
  double lengths = 1;
  for (int64_t axis : axes) {
    lengths *= static_cast<double>(c.dims(z).at(static_cast<size_t>(axis)));
    z = t.along(std::move(z), axis, -1, inverse);
  }
  return inverse ? c.mul(z, c.scalar_like(lengths, z)) : z;
}
Expr scaled_by(NodeContext& c, const Expr& e, double lengths) {
  const auto how = static_cast<Scaling>(c.integer("normalization"));
  if (how == Scaling::kNone) return e;
  return c.mul(e, c.scalar_like(how == Scaling::kByRoot ? 1 / std::sqrt(lengths) : 1 / lengths, e));
}
struct PlainAxes {
  Ints axes;
  double lengths = 1;
};
PlainAxes plain_axes(NodeContext& c, int64_t rank, const Expr& like) {
  PlainAxes out;
  for (int64_t a : c.ints("dim")) {
    out.axes.push_back(c.dim(a, rank));
    out.lengths *= static_cast<double>(c.dims(like).at(static_cast<size_t>(out.axes.back())));
  }
  if (out.axes.empty()) c.fail("it has no axes");
  return out;
}
Values plain_complex(NodeContext& c) {
  const Value& self = c.value("self");
  const Transform t{c, "backward"};
  const PlainAxes a = plain_axes(c, axes_of(c, self), self.expr);
  const Expr z = plain_transform(c, self.expr, a.axes, !c.flag("forward", true), t);
  return {as_complex(scaled_by(c, z, a.lengths))};
}
// One half of the last named axis, if so asked.
Values plain_real(NodeContext& c) {
  const Expr x = c.tensor("self");
  const Transform t{c, "backward"};
  const PlainAxes a = plain_axes(c, c.rank(x), x);
  const int64_t last = a.axes.back();
  Expr z = plain_transform(c, joined(c, c.real(x), {}).expr, a.axes, false, t);
  if (c.flag("onesided", true)) z = c.slice(z, last, 0, c.dims(z).at(static_cast<size_t>(last)) / 2 + 1);
  return {as_complex(scaled_by(c, z, a.lengths))};
}
Values plain_inverse_real(NodeContext& c) {
  const Value& self = c.value("self");
  const Transform t{c, "backward"};
  PlainAxes a = plain_axes(c, axes_of(c, self), self.expr);
  const int64_t last = a.axes.back(), length = c.integer("last_dim_size");
  if (length < 1) c.fail("its length is 0");
  a.lengths *= static_cast<double>(length) / static_cast<double>(c.dims(self.expr).at(static_cast<size_t>(last)));
  a.axes.pop_back();
  Expr z = plain_transform(c, self.expr, a.axes, true, t);
  z = plain_transform(c, t.mirrored(z, last, length), {last}, true, t);
  return {scaled_by(c, parts_of(c, as_complex(z)).real, a.lengths)};
}

constexpr ConverterEntry kFourier[] = {
    {"aten._fft_c2c", plain_complex},
    {"aten._fft_r2c", plain_real},
    {"aten._fft_c2r", plain_inverse_real},
    {"aten.istft", istft},
    {"aten.fft_fftshift", shifted<false>},
    {"aten.fft_ifftshift", shifted<true>},
    {"aten.fft_fft", transform<Kind::kComplex>},
    {"aten.fft_fft2", transform<Kind::kComplex>},
    {"aten.fft_fftn", transform<Kind::kComplex>},
    {"aten.fft_ifft", transform<Kind::kInverse>},
    {"aten.fft_ifft2", transform<Kind::kInverse>},
    {"aten.fft_ifftn", transform<Kind::kInverse>},
    {"aten.fft_rfft", transform<Kind::kReal>},
    {"aten.fft_rfft2", transform<Kind::kReal>},
    {"aten.fft_rfftn", transform<Kind::kReal>},
    {"aten.fft_irfft", transform<Kind::kInverseReal>},
    {"aten.fft_irfft2", transform<Kind::kInverseReal>},
    {"aten.fft_irfftn", transform<Kind::kInverseReal>},
};

}  // namespace
}  // namespace complex

std::span<const ConverterEntry> fourier_converters() { return complex::kFourier; }

}  // namespace tilewright::torch
