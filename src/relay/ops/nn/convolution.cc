// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/nn/convolution.h"

#include <algorithm>

#include "relay/ops/nn/gemm.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {

const char* spatial_letters(size_t spatial) { return spatial == 1 ? "W" : spatial == 2 ? "HW" : "DHW"; }

Result<Dim> window_output(const Dim& in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before,
                          int64_t after, bool ceil_mode) {
  const int64_t reach = (kernel - 1) * dilation + 1;
  Dim room = in + Dim(before + after - reach);
  // With ceil_mode, one window may extend past the end of an axis that is shorter than it.
  const bool hangs = ceil_mode && room.is_const() && room.value() > -stride && in.value() + before > 0;
  if (room.is_const() && room.value() < 0 && !hangs)
    return type_error(
        format("a window of {} does not fit an axis of {} with padding {} and {}", reach, in.str(), before, after));
  if (!ceil_mode) return floordiv(room, Dim(stride)) + Dim(1);
  // The classic formula: a window may begin in the end padding.
  return ceildiv(room, stride) + Dim(1);
}

namespace {

struct Box {
  int64_t d, h, w;
  int64_t size() const { return d * h * w; }
};
struct Geometry {
  Box in, kernel, out;
  int64_t stride[3], dilation[3], before[3];
};

std::vector<double> doubles(const Value& v) {
  if (v.is_float()) return v.f;
  return {v.i.begin(), v.i.end()};
}

// For one tap, fn(output offset, input offset, run length): the rows whose input is inside, with step stride[2] in the
// input.
template <class F>
void each_row(const Geometry& g, int64_t kd, int64_t kh, int64_t kw, F&& fn) {
  for (int64_t od = 0; od < g.out.d; ++od) {
    const int64_t id = od * g.stride[0] + kd * g.dilation[0] - g.before[0];
    if (id < 0 || id >= g.in.d) continue;
    for (int64_t oh = 0; oh < g.out.h; ++oh) {
      const int64_t ih = oh * g.stride[1] + kh * g.dilation[1] - g.before[1];
      if (ih < 0 || ih >= g.in.h) continue;
      const int64_t shift = kw * g.dilation[2] - g.before[2];  // iw = ow * stride + shift
      int64_t first = shift >= 0 ? 0 : (-shift + g.stride[2] - 1) / g.stride[2];
      int64_t last = g.in.w - 1 - shift < 0 ? -1 : std::min(g.out.w - 1, (g.in.w - 1 - shift) / g.stride[2]);
      if (first <= last)
        fn((od * g.out.h + oh) * g.out.w + first, (id * g.in.h + ih) * g.in.w + first * g.stride[2] + shift,
           last - first + 1);
    }
  }
}

// Sums a single-channel map over every window: out[p] = sum over taps of map[in(p, tap)].
std::vector<double> window_sums(const Geometry& g, const std::vector<double>& map) {
  std::vector<double> out(static_cast<size_t>(g.out.size()), 0.0);
  for (int64_t kd = 0; kd < g.kernel.d; ++kd)
    for (int64_t kh = 0; kh < g.kernel.h; ++kh)
      for (int64_t kw = 0; kw < g.kernel.w; ++kw)
        each_row(g, kd, kh, kw, [&](int64_t o, int64_t i, int64_t n) {
          for (int64_t j = 0; j < n; ++j) out[o + j] += map[i + j * g.stride[2]];
        });
  return out;
}
// The transposed counterpart, where `out` is the larger side.
std::vector<double> scatter_sums(const Geometry& g, const std::vector<double>& map) {
  std::vector<double> out(static_cast<size_t>(g.in.size()), 0.0);
  for (int64_t kd = 0; kd < g.kernel.d; ++kd)
    for (int64_t kh = 0; kh < g.kernel.h; ++kh)
      for (int64_t kw = 0; kw < g.kernel.w; ++kw)
        each_row(g, kd, kh, kw, [&](int64_t o, int64_t i, int64_t n) {
          for (int64_t j = 0; j < n; ++j) out[i + j * g.stride[2]] += map[o + j];
        });
  return out;
}

// y (o x out) += w (o x c*taps) * im2col(x) (c x in), for a block of output rows at a time.
void forward_group(const Geometry& g, int64_t c, int64_t o, const double* x, const double* w, double* y) {
  const int64_t taps = g.kernel.size(), depth = c * taps;
  if (taps == 1 && g.in.size() == g.out.size() && !g.before[0] && !g.before[1] && !g.before[2])
    return gemm_double(o, g.out.size(), depth, w, depth, x, g.in.size(), y, g.out.size());
  if (c == 1 && o == 1) {  // depthwise
    for (int64_t kd = 0, t = 0; kd < g.kernel.d; ++kd)
      for (int64_t kh = 0; kh < g.kernel.h; ++kh)
        for (int64_t kw = 0; kw < g.kernel.w; ++kw, ++t)
          each_row(g, kd, kh, kw, [&](int64_t at, int64_t i, int64_t n) {
            for (int64_t j = 0; j < n; ++j) y[at + j] += w[t] * x[i + j * g.stride[2]];
          });
    return;
  }
  // Blocks of whole output rows (one depth, a range of heights) keep the columns in cache.
  const int64_t rows_per_block = std::max<int64_t>(1, 1024 / std::max<int64_t>(1, g.out.w));
  std::vector<double> columns;
  for (int64_t od = 0; od < g.out.d; ++od)
    for (int64_t oh0 = 0; oh0 < g.out.h; oh0 += rows_per_block) {
      const int64_t rows = std::min(rows_per_block, g.out.h - oh0), n = rows * g.out.w;
      Geometry part = g;  // this block as a convolution of its own
      part.out = {1, rows, g.out.w};
      part.before[0] = g.before[0] - od * g.stride[0];
      part.before[1] = g.before[1] - oh0 * g.stride[1];
      columns.assign(static_cast<size_t>(depth * n), 0.0);
      for (int64_t ci = 0, row = 0; ci < c; ++ci)
        for (int64_t kd = 0; kd < g.kernel.d; ++kd)
          for (int64_t kh = 0; kh < g.kernel.h; ++kh)
            for (int64_t kw = 0; kw < g.kernel.w; ++kw, ++row)
              each_row(part, kd, kh, kw, [&](int64_t at, int64_t i, int64_t count) {
                const double* from = x + ci * g.in.size() + i;
                double* to = columns.data() + row * n + at;
                for (int64_t j = 0; j < count; ++j) to[j] = from[j * g.stride[2]];
              });
      gemm_double(o, n, depth, w, depth, columns.data(), n, y + (od * g.out.h + oh0) * g.out.w, g.out.size());
    }
}

// The transposed convolution: scatters x (c x out side) into y (o x in side); w is (c, o, taps).
void transposed_group(const Geometry& g, int64_t c, int64_t o, const double* x, const double* w, double* y) {
  const int64_t taps = g.kernel.size(), n = g.out.size();
  std::vector<double> wt(static_cast<size_t>(c * o * taps)), columns(static_cast<size_t>(o * taps * n), 0.0);
  for (int64_t i = 0; i < c; ++i)
    for (int64_t j = 0; j < o * taps; ++j) wt[static_cast<size_t>(j * c + i)] = w[i * o * taps + j];
  gemm_double(o * taps, n, c, wt.data(), c, x, n, columns.data(), n);
  for (int64_t oi = 0, row = 0; oi < o; ++oi)
    for (int64_t kd = 0; kd < g.kernel.d; ++kd)
      for (int64_t kh = 0; kh < g.kernel.h; ++kh)
        for (int64_t kw = 0; kw < g.kernel.w; ++kw, ++row)
          each_row(g, kd, kh, kw, [&](int64_t at, int64_t i, int64_t count) {
            double* to = y + oi * g.in.size() + i;
            const double* from = columns.data() + row * n + at;
            for (int64_t j = 0; j < count; ++j) to[j * g.stride[2]] += from[j];
          });
}

Box box_of(const std::vector<int64_t>& shape) {
  Box b{1, 1, 1};
  const size_t n = shape.size();
  b.w = shape[n - 1];
  if (n >= 4) b.h = shape[n - 2];
  if (n >= 5) b.d = shape[n - 3];
  return b;
}

Layout canonical(const char* head, size_t spatial) {
  return parse_layout(std::string(head) + spatial_letters(spatial)).value();
}

}  // namespace

Value convolve(const ConvSpec& spec, const Value& data, const Value& kernel, DataType out_dtype) {
  const Layout nc = canonical("NC", spec.spatial);
  // Transposed kernels are (I, O/groups, ...), the others (O, I/groups, ...).
  const Layout kl = canonical(spec.transposed ? "IO" : "OI", spec.spatial);
  const int64_t groups = spec.groups, c_in = spec.in_channels, c_out = spec.channels;
  Value x = relayout(data, spec.data, nc, {{{'C', c_in}}});
  Value w = spec.transposed ? relayout(kernel, spec.kernel, kl)
            : spec.filters  ? relayout(kernel, spec.kernel, kl, {{{'O', groups}, {'I', spec.filters}}})
                            : relayout(kernel, spec.kernel, kl, {{{'O', c_out}, {'I', c_in / groups}}});
  Geometry g{};
  Box small_side = box_of(x.shape);
  g.kernel = box_of(w.shape);
  for (size_t i = 0; i < 3; ++i) {
    bool present = i + spec.spatial >= 3;
    size_t k = present ? i + spec.spatial - 3 : 0;
    g.stride[i] = present ? spec.strides[k] : 1;
    g.dilation[i] = present ? spec.dilation[k] : 1;
    g.before[i] = present ? spec.padding[k] : 0;
  }
  auto sides = [&](int i, int64_t in, int64_t k) {
    size_t at = static_cast<size_t>(i) + spec.spatial - 3;
    if (static_cast<size_t>(i) + spec.spatial < 3) return in;
    int64_t before = spec.padding[at], after = spec.padding[at + spec.spatial];
    if (spec.transposed)
      return (in - 1) * spec.strides[at] + (k - 1) * spec.dilation[at] + 1 - before - after + spec.output_padding[at];
    return (in + before + after - ((k - 1) * spec.dilation[at] + 1)) / spec.strides[at] + 1;
  };
  Box result{sides(0, small_side.d, g.kernel.d), sides(1, small_side.h, g.kernel.h),
             sides(2, small_side.w, g.kernel.w)};
  g.in = spec.transposed ? result : small_side;
  g.out = spec.transposed ? small_side : result;

  std::vector<int64_t> shape{x.shape[0], c_out};
  if (spec.spatial == 3) shape.push_back(result.d);
  if (spec.spatial >= 2) shape.push_back(result.h);
  shape.push_back(result.w);
  const int64_t batch = x.shape[0], in_size = small_side.size(), out_size = result.size(), taps = g.kernel.size();
  const int64_t cg = c_in / groups, og = c_out / groups;
  const std::vector<double> xd = doubles(x), wd = doubles(w);
  std::vector<double> y(static_cast<size_t>(batch * c_out * out_size), 0.0);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t gi = 0; gi < groups; ++gi) {
      const double* xs = xd.data() + (n * c_in + gi * cg) * in_size;
      const double* ws = wd.data() + gi * og * cg * taps;
      double* ys = y.data() + (n * c_out + gi * og) * out_size;
      if (spec.transposed)
        transposed_group(g, cg, og, xs, ws, ys);
      else
        forward_group(g, cg, og, xs, ws, ys);
    }

  Value out = make_value(out_dtype, shape);
  if (!out.is_float()) {
    for (size_t i = 0; i < y.size(); ++i) out.i[i] = float_to_int(out_dtype, y[i]);
    return relayout(out, nc, spec.out);
  }
  out.f = std::move(y);
  // The bound: root sums of squares of the input (and of its bounds) in each window, times the norm of the output
  // channel's weights; reference.h explains why this and not the worst case.
  out.bound.resize(out.f.size());
  std::vector<double> norm(static_cast<size_t>(c_out), 0.0);
  for (int64_t gi = 0; gi < groups; ++gi)
    for (int64_t i = 0; i < og * cg * taps; ++i) {
      int64_t o = gi * og + (spec.transposed ? i / taps % og : i / (cg * taps));
      double v = wd[static_cast<size_t>(gi * og * cg * taps + i)];
      norm[static_cast<size_t>(o)] += v * v;
    }
  const double u = unit_roundoff(out_dtype) * kSumSlack, terms = static_cast<double>(cg * taps);
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t gi = 0; gi < groups; ++gi) {
      std::vector<double> energy(static_cast<size_t>(in_size), 0.0), spread(static_cast<size_t>(in_size), 0.0);
      for (int64_t ci = 0; ci < cg; ++ci) {
        const int64_t base = (n * c_in + gi * cg + ci) * in_size;
        for (int64_t i = 0; i < in_size; ++i) energy[i] += xd[base + i] * xd[base + i];
        if (!x.bound.empty())
          for (int64_t i = 0; i < in_size; ++i) spread[i] += x.bound[base + i] * x.bound[base + i];
      }
      energy = spec.transposed ? scatter_sums(g, energy) : window_sums(g, energy);
      if (!x.bound.empty()) spread = spec.transposed ? scatter_sums(g, spread) : window_sums(g, spread);
      for (int64_t i = 0; i < out_size; ++i) {
        const double per_unit = u * std::sqrt(energy[i]) + (x.bound.empty() ? 0 : std::sqrt(spread[i] / terms));
        for (int64_t o = gi * og; o < (gi + 1) * og; ++o)
          out.bound[(n * c_out + o) * out_size + i] = per_unit * std::sqrt(norm[static_cast<size_t>(o)]);
      }
    }
  return relayout(out, nc, spec.out);
}

}  // namespace tilewright::relay
