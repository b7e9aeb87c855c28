// SPDX-License-Identifier: Apache-2.0
// Determines value ranges from observed runs.
#pragma once
#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "frontend/onnx/quantizer.h"

namespace tilewright::driver {

enum class CalibrationMethod {
  kMinMax,      // all observed values
  kPercentile,  // all but the most extreme ones at each end
  kEntropy,     // the clipping that minimises the Kullback-Leibler divergence of the 8-bit distribution
};

// Statistics of one value: extremes (first round), then a histogram (second round, if the method needs it).
class ValueStatistics {
 public:
  bool see_extremes(const Tensor& values);  // false: something is not finite
  void see_histogram(const Tensor& values);
  // `percentile`: the percentage of values to keep inside at each end, such as 99.99.
  onnx::ValueRange range(CalibrationMethod method, double percentile) const;

 private:
  onnx::ValueRange percentile_range(double percentile) const;
  onnx::ValueRange entropy_range() const;
  size_t bin_of(float value) const;
  double edge(size_t bin) const;

  bool any_ = false;
  float low_ = 0, high_ = 0;
  std::vector<uint64_t> bins_;  // of [-m, m], with m the largest magnitude
};

// Means per channel, over all other axes and all runs.
class ChannelMeans {
 public:
  void see(const Tensor& values, size_t axis);
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  int64_t count_ = 0;  // values per channel
};

}  // namespace tilewright::driver
