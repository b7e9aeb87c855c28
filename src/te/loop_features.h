// SPDX-License-Identifier: Apache-2.0
// Numerical features of loops, for learned cost models of schedules.
#pragma once
#include <array>
#include <vector>

#include "te/lower.h"

namespace tilewright::te {

// Of one loop: log2 of its iterations, of those around and inside it; its depth; its kind; the work of one iteration of
// its body; the strides of accesses between iterations.
struct LoopFeatures {
  double extent = 0, around = 0, inside = 0, depth = 0;
  double serial = 0, vectorized = 0, unrolled = 0, parallel = 0;
  double sums = 0, products = 0, quotients = 0, loads = 0, stores = 0;
  // Memory accesses whose index is constant, has stride one, or a larger stride in the loop; others are not counted.
  double still = 0, next = 0, far = 0;
  static constexpr size_t kCount = 16;
  std::array<double, kCount> row() const;
};

// All loops of a function's kernels, outer loops first.
std::vector<LoopFeatures> loop_features(const Lowered& lowered);

}  // namespace tilewright::te
