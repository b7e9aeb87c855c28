// SPDX-License-Identifier: Apache-2.0
// Winograd weight transforms, and the estimate of rounding errors.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <type_traits>

#include "base/hash.h"
#include "topi/winograd_loops.h"

namespace tilewright::topi {

std::vector<int64_t> winograd_weight_shape(const Conv2dProblem& p, const WinogradConfig& c) {
  const WinogradLoops l = winograd_loops(p, c);
  // Tiles of output channels are consecutive; the last is narrower, so a single dimension is exact.
  return {l.oc_blocks * l.slices * l.panel};
}

namespace {
// `f(lanes)` with the lanes as a constant, where they are a usual number: loops over them become vectors.
template <class F>
auto with_lanes(int64_t lanes, const F& f) {
  switch (lanes) {
    case 4:
      return f(std::integral_constant<int64_t, 4>());
    case 8:
      return f(std::integral_constant<int64_t, 8>());
    case 16:
      return f(std::integral_constant<int64_t, 16>());
    default:
      return f(lanes);
  }
}

template <class T, class Lanes>
Tensor transformed_weights(const Tensor& packed, const Conv2dProblem& p, const WinogradConfig& c, Lanes v) {
  const WinogradLoops l = winograd_loops(p, c);
  const int64_t kd = p.kernel_depth, kh = p.kernel_height, kw = p.kernel_width, taps = kh * kw;
  TW_ICHECK(packed.shape() == packed_weight_shape(p), "winograd_weights: packed weights of the problem");
  const WinogradTransform &down = *l.down.transform, &across = *l.across.transform;
  const int64_t high = down.products(), wide = across.products(), stride_h = p.stride_height, stride_w = p.stride_width;
  Tensor out(packed.dtype(), winograd_weight_shape(p, c));
  const T* from = packed.as<T>().data();
  T* to = out.as_mutable<T>().data();
  std::vector<double> middle(static_cast<size_t>(high * kw * v));  // points x columns of taps
  for (int64_t ob = 0; ob < l.oc_blocks; ++ob) {
    const int64_t tile = ob / c.oc_blocks, col = ob % c.oc_blocks,
                  cols = tile == l.oc_tiles - 1 ? l.last_cols : c.oc_blocks;
    T* tile_at = to + tile * c.oc_blocks * l.slices * l.panel;
    for (int64_t deep_ic = 0; deep_ic < kd * l.ic_padded; ++deep_ic) {
      const int64_t deep = deep_ic / l.ic_padded, ic = deep_ic % l.ic_padded;
      // Taps are v * v elements apart.
      const T* g = from + ((ob * l.ic_blocks + ic / v) * kd + deep) * taps * v * v + ic % v * v;
      for (int64_t y = 0; y < stride_h; ++y) {
        std::fill(middle.begin(), middle.end(), 0.0);
        for (int64_t i = 0; i < high; ++i)
          for (int64_t k = 0; y + k * stride_h < kh; ++k)
            for (int64_t x = 0; x < kw; ++x) {
              const double factor = down.kernel[static_cast<size_t>(i * down.taps + k)];
              double* sum = &middle[static_cast<size_t>((i * kw + x) * v)];
              const T* tap = g + ((y + k * stride_h) * kw + x) * v * v;
              for (int64_t o = 0; o < v; ++o) sum[o] += factor * double{tap[o]};
            }
        for (int64_t i = 0; i < high; ++i)
          for (int64_t j = 0; j < wide; ++j)
            for (int64_t x = 0; x < stride_w; ++x) {
              const int64_t down_phases = l.down.phases(static_cast<int>(i)),
                            across_phases = l.across.phases(static_cast<int>(j));
              if (y >= down_phases || x >= across_phases) continue;
              const int64_t before = i * stride_h * l.across.slices() + down_phases * j * stride_w,
                            slice = before * kd + deep * down_phases * across_phases + y * across_phases + x;
              T* row = tile_at + (slice * l.ic_padded + ic) * cols * v + col * v;
              double sum[16] = {};
              for (int64_t k = 0; x + k * stride_w < kw; ++k) {
                const double factor = across.kernel[static_cast<size_t>(j * across.taps + k)];
                const double* term = &middle[static_cast<size_t>((i * kw + x + k * stride_w) * v)];
                for (int64_t o = 0; o < v; ++o) sum[o] += factor * term[o];
              }
              for (int64_t o = 0; o < v; ++o) row[o] = static_cast<T>(sum[o]);
            }
      }
    }
  }
  return out;
}
}  // namespace

namespace {
// Bytes' weights as words of two input channels, in whole numbers.
Tensor words_of_weights(const Tensor& packed, const Conv2dProblem& p, const WinogradConfig& c) {
  const WinogradLoops l = winograd_loops(p, c);
  const int64_t v = p.lanes, kh = p.kernel_height, kw = p.kernel_width;
  const WinogradTransform &down = *l.down.transform, &across = *l.across.transform;
  const int64_t high = down.products(), wide = across.products();
  auto factor = [](const WinogradTransform& axis, int64_t point, int64_t tap) {
    return static_cast<int>(kWinogradWordScale * axis.kernel[static_cast<size_t>(point * axis.taps + tap)]);
  };
  Tensor out = Tensor::zeros(kInt32, winograd_weight_shape(p, c));
  auto* to = reinterpret_cast<uint32_t*>(out.mutable_raw());
  const auto* from = reinterpret_cast<const int8_t*>(packed.raw());
  for (int64_t oc = 0; oc < p.out_channels; ++oc) {
    const int64_t ob = oc / v, tile = ob / c.oc_blocks, cols = tile == l.oc_tiles - 1 ? l.last_cols : c.oc_blocks,
                  column = ob % c.oc_blocks * v + oc % v;
    uint32_t* of_tile = to + tile * c.oc_blocks * l.slices * l.panel;
    for (int64_t ic = 0; ic < p.in_channels; ++ic) {
      const int8_t* taps = from + ((ob * l.ic_blocks + ic / v) * kh * kw * v + ic % v) * v + oc % v;
      for (int64_t i = 0; i < high; ++i)
        for (int64_t j = 0; j < wide; ++j) {
          int sum = 0;
          for (int64_t y = 0; y < kh; ++y)
            for (int64_t x = 0; x < kw; ++x)
              sum += factor(down, i, y) * factor(across, j, x) * taps[(y * kw + x) * v * v];
          uint32_t& word = of_tile[((i * wide + j) * l.ic_padded + ic / 2) * cols * v + column];
          word |= uint32_t{static_cast<uint16_t>(sum)} << (16 * (ic % 2));
        }
    }
  }
  return out;
}
}  // namespace

Tensor winograd_weights(const Tensor& packed, const Conv2dProblem& p, const WinogradConfig& c) {
  if (p.words()) return words_of_weights(packed, p, c);
  return with_lanes(p.lanes, [&](auto lanes) {
    return packed.dtype() == kFloat64 ? transformed_weights<double>(packed, p, c, lanes)
                                      : transformed_weights<float>(packed, p, c, lanes);
  });
}

namespace {

// The matrix P with g^T P g = sum over products of |A column|^2 |G g|^2 |B row|^2, averaged over outputs: how much
// relative errors of a product's operands and sum add to the outputs' squared error.
std::vector<double> error_form(const WinogradTransform& w) {
  const int t = w.products(), r = w.taps;
  std::vector<double> data(static_cast<size_t>(t), 0), result(static_cast<size_t>(t), 0),
      form(static_cast<size_t>(r * r), 0);
  for (int x = 0; x < t; ++x) {
    std::vector<double> unit(static_cast<size_t>(t), 0);
    unit[static_cast<size_t>(x)] = 1;
    const std::vector<double> column = w.data.apply(unit), outputs = w.result.apply(unit);
    for (int j = 0; j < t; ++j)
      data[static_cast<size_t>(j)] += column[static_cast<size_t>(j)] * column[static_cast<size_t>(j)];
    for (double a : outputs) result[static_cast<size_t>(x)] += a * a / w.outputs;
  }
  for (int j = 0; j < t; ++j)
    for (int k = 0; k < r; ++k)
      for (int l = 0; l < r; ++l)
        form[static_cast<size_t>(k * r + l)] += data[static_cast<size_t>(j)] * result[static_cast<size_t>(j)] *
                                                w.kernel[static_cast<size_t>(j * r + k)] *
                                                w.kernel[static_cast<size_t>(j * r + l)];
  return form;
}

template <class T, class Lanes>
double error_of(const Tensor& packed, const Conv2dProblem& p, int tile_height, int tile_width, Lanes v) {
  const int64_t kd = p.kernel_depth, kh = p.kernel_height, kw = p.kernel_width, taps = kh * kw;
  const WinogradAxis down_axis = winograd_axis(tile_height, static_cast<int>(kh), static_cast<int>(p.stride_height));
  const WinogradAxis across_axis = winograd_axis(tile_width, static_cast<int>(kw), static_cast<int>(p.stride_width));
  const std::vector<double> down = error_form(*down_axis.transform), across = error_form(*across_axis.transform);
  const int64_t high = down_axis.transform->taps, wide = across_axis.transform->taps, step_h = p.stride_height,
                step_w = p.stride_width;
  const int64_t oc_blocks = ceil_div(p.out_channels, v), ic_blocks = ceil_div(p.in_channels, v);
  const T* from = packed.as<T>().data();
  double worst = 0, signal = 0;
  std::vector<double> row(static_cast<size_t>(wide * v));
  for (int64_t ob = 0; ob < oc_blocks; ++ob) {
    double error[16] = {}, square[16] = {};
    // The taps of one phase of one input channel: trace(W^T P W Q), first along rows by P, then along columns by Q
    // against W.
    auto add_phase = [&](const T* g, int64_t rows, int64_t columns) {
      auto at = [&](int64_t k, int64_t x) { return g + (k * step_h * kw + x * step_w) * v * v; };
      for (int64_t k = 0; k < rows; ++k) {
        std::fill(row.begin(), row.end(), 0.0);
        for (int64_t l = 0; l < rows; ++l)
          for (int64_t x = 0; x < columns; ++x)
            for (int64_t o = 0; o < v; ++o)
              row[static_cast<size_t>(x * v + o)] += down[static_cast<size_t>(k * high + l)] * double{at(l, x)[o]};
        for (int64_t x = 0; x < columns; ++x)
          for (int64_t y = 0; y < columns; ++y)
            for (int64_t o = 0; o < v; ++o) {
              const double w = at(k, x)[o];
              error[o] += w * across[static_cast<size_t>(x * wide + y)] * row[static_cast<size_t>(y * v + o)];
              if (x == y) square[o] += w * w;
            }
      }
    };
    for (int64_t ic = 0; ic < ic_blocks * v; ++ic)
      for (int64_t deep = 0; deep < kd; ++deep)
        for (int64_t y = 0; y < step_h; ++y)
          for (int64_t x = 0; x < step_w; ++x)
            add_phase(from + ((ob * ic_blocks + ic / v) * kd + deep) * taps * v * v + ic % v * v + (y * kw + x) * v * v,
                      ceil_div(kh - y, step_h), ceil_div(kw - x, step_w));
    for (int64_t o = 0; o < v; ++o) {
      if (!std::isfinite(error[o])) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, error[o]);
      signal += square[o] / static_cast<double>(p.out_channels);
    }
  }
  const double unit = std::numeric_limits<T>::epsilon() / 2;
  // Operands of a product are rounded once or twice; the error of its sum grows with the input channels.
  const double growth = 1 + static_cast<double>(p.in_channels * kd * step_h * step_w) / 16;
  return signal > 0 ? unit * std::sqrt(growth * worst / signal) : 0;
}

}  // namespace

// The same weights are asked about by each candidate, in each of its questions, and by each build of a tuner: their
// hash takes a hundredth of the answer's time. Weights that shared one (2^-64) would share an estimate, which chooses a
// kernel and computes nothing.
double winograd_error(const Tensor& packed, const Conv2dProblem& p, int tile_height, int tile_width) {
  static std::mutex mutex;
  static std::map<std::array<int64_t, 13>, double> known;
  constexpr size_t kMost = 4096;
  const std::array<int64_t, 13> key = {static_cast<int64_t>(hash_bytes(packed.raw(), packed.bytes())),
                                       packed.dtype() == kFloat64,
                                       p.lanes,
                                       p.in_channels,
                                       p.out_channels,
                                       p.kernel_depth,
                                       p.kernel_height,
                                       p.kernel_width,
                                       p.stride_height,
                                       p.stride_width,
                                       tile_height,
                                       tile_width,
                                       packed.size()};
  {
    std::lock_guard lock(mutex);
    if (const auto found = known.find(key); found != known.end()) return found->second;
  }
  const double error = with_lanes(p.lanes, [&](auto lanes) {
    return packed.dtype() == kFloat64 ? error_of<double>(packed, p, tile_height, tile_width, lanes)
                                      : error_of<float>(packed, p, tile_height, tile_width, lanes);
  });
  std::lock_guard lock(mutex);
  if (known.size() >= kMost) known.clear();
  known.emplace(key, error);
  return error;
}

}  // namespace tilewright::topi
