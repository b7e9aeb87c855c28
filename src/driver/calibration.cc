// SPDX-License-Identifier: Apache-2.0
#include "driver/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::driver {
namespace {

constexpr size_t kBins = 8192;      // even: zero is a bin boundary
constexpr size_t kLevels = 256;     // of 8 bits
constexpr size_t kCandidates = 96;  // clippings to try

// The divergence between the histogram and 8-bit levels over bins [first, last), with outliers counted at its ends.
double divergence(const std::vector<uint64_t>& bins, size_t first, size_t last) {
  const size_t n = last - first;
  std::vector<double> p(n), q(n, 0);
  double total = 0, below = 0, above = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    const auto count = static_cast<double>(bins[i]);
    total += count;
    if (i < first)
      below += count;
    else if (i >= last)
      above += count;
    else
      p[i - first] = count;
  }
  // Spreads a level's mass over its non-empty bins.
  for (size_t level = 0; level < kLevels; ++level) {
    const size_t from = level * n / kLevels, to = (level + 1) * n / kLevels;
    double sum = 0, filled = 0;
    for (size_t i = from; i < to; ++i) sum += p[i], filled += p[i] > 0;
    for (size_t i = from; i < to && filled > 0; ++i)
      if (p[i] > 0) q[i] = sum / filled;
  }
  p.front() += below, p.back() += above;
  double inside = 0, sum = 0;
  for (double v : q) inside += v;
  if (inside == 0) return std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < n; ++i)
    if (p[i] > 0) sum += p[i] / total * std::log(p[i] / total / std::max(q[i] / inside, 1e-12));
  return sum;
}

}  // namespace

bool ValueStatistics::see_extremes(const Tensor& values) {
  const auto v = values.as<float>();
  if (v.empty()) return true;
  if (!any_) low_ = high_ = v[0], any_ = true;
  float low = low_, high = high_;
  bool finite = true;
  for (float x : v) {
    low = std::min(low, x), high = std::max(high, x);
    finite &= std::isfinite(x);
  }
  low_ = low, high_ = high;
  return finite;
}

size_t ValueStatistics::bin_of(float value) const {
  const double most = std::max(std::fabs(low_), std::fabs(high_));
  const double at = (static_cast<double>(value) / most + 1) / 2 * kBins;
  return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(kBins - 1)));
}

double ValueStatistics::edge(size_t bin) const {
  const double most = std::max(std::fabs(low_), std::fabs(high_));
  return (static_cast<double>(bin) / kBins * 2 - 1) * most;
}

void ValueStatistics::see_histogram(const Tensor& values) {
  if (low_ == 0 && high_ == 0) return;
  bins_.resize(kBins);
  // Zeros are not counted: they are exact in every range and often so many that they would dominate.
  for (float x : values.as<float>())
    if (x != 0) ++bins_[bin_of(x)];
}

onnx::ValueRange ValueStatistics::percentile_range(double percentile) const {
  uint64_t total = 0;
  for (uint64_t n : bins_) total += n;
  const double outside = static_cast<double>(total) * (1 - percentile / 100);
  size_t first = 0, last = kBins;
  for (double seen = 0; first + 1 < last && (seen += static_cast<double>(bins_[first])) <= outside;) ++first;
  for (double seen = 0; last > first + 1 && (seen += static_cast<double>(bins_[last - 1])) <= outside;) --last;
  return {std::max(low_, static_cast<float>(edge(first))), std::min(high_, static_cast<float>(edge(last)))};
}

onnx::ValueRange ValueStatistics::entropy_range() const {
  size_t first = 0, last = kBins;  // of observed values
  while (first < last && bins_[first] == 0) ++first;
  while (last > first && bins_[last - 1] == 0) --last;
  const size_t middle = kBins / 2;
  first = std::min(first, middle), last = std::max(last, middle);
  double best = std::numeric_limits<double>::infinity();
  size_t best_half = middle;
  for (size_t k = 0; k < kCandidates; ++k) {
    const size_t half = middle - k * (middle - kLevels) / kCandidates;
    const size_t from = std::max(first, middle - half), to = std::min(last, middle + half);
    if (to - from < kLevels) continue;
    const double now = divergence(bins_, from, to);
    if (now < best) best = now, best_half = half;
  }
  return {std::max(low_, static_cast<float>(edge(middle - best_half))),
          std::min(high_, static_cast<float>(edge(middle + best_half)))};
}

void ChannelMeans::see(const Tensor& values, size_t axis) {
  const auto v = values.as<float>();
  const auto channels = static_cast<size_t>(values.shape().at(axis));
  if (v.empty()) return;
  size_t inner = 1;
  for (size_t d = axis + 1; d < values.shape().size(); ++d) inner *= static_cast<size_t>(values.shape()[d]);
  sums_.resize(channels);
  for (size_t from = 0; from < v.size(); from += inner) {
    double sum = 0;
    for (size_t i = from; i < from + inner; ++i) sum += v[i];
    sums_[from / inner % channels] += sum;
  }
  count_ += values.size() / static_cast<int64_t>(channels);
}

std::vector<double> ChannelMeans::means() const {
  std::vector<double> out = sums_;
  for (double& m : out) m /= static_cast<double>(std::max<int64_t>(count_, 1));
  return out;
}

onnx::ValueRange ValueStatistics::range(CalibrationMethod method, double percentile) const {
  if (method == CalibrationMethod::kMinMax || bins_.empty()) return {low_, high_};
  return method == CalibrationMethod::kPercentile ? percentile_range(percentile) : entropy_range();
}

}  // namespace tilewright::driver
