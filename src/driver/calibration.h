// SPDX-License-Identifier: Apache-2.0
// Ranges of values from what they were in some runs.
#pragma once
#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "frontend/onnx/quantizer.h"

namespace tilewright::driver {

enum class CalibrationMethod {
  kMinMax,      // all values that were seen
  kPercentile,  // all but the rarest at each end
  kEntropy,     // the clipping whose 8-bit distribution is closest to the seen one (Kullback-Leibler divergence)
};

// One value's extremes (first round), then its histogram (second round, where the method needs one).
class ValueStatistics {
 public:
  bool see_extremes(const Tensor& values);  // false: something is not finite
  void see_histogram(const Tensor& values);
  // `percentile`: of the values that stay inside at each end, 99.99 say.
  onnx::ValueRange range(CalibrationMethod method, double percentile) const;

 private:
  onnx::ValueRange percentile_range(double percentile) const;
  onnx::ValueRange entropy_range() const;
  size_t bin_of(float value) const;
  double edge(size_t bin) const;

  bool any_ = false;
  float low_ = 0, high_ = 0;
  std::vector<uint64_t> bins_;  // of [-m, m], m the largest magnitude
};

// The means of values along one axis, over all the others and all runs.
class ChannelMeans {
 public:
  void see(const Tensor& values, size_t axis);
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  int64_t count_ = 0;  // of values in each
};

}  // namespace tilewright::driver
