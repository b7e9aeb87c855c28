// SPDX-License-Identifier: Apache-2.0
// Loops as numbers, for models that learn which schedules are fast.
#pragma once
#include <array>
#include <vector>

#include "te/lower.h"

namespace tilewright::te {

// Of one loop: log2 of its iterations, of those around it and of those inside it; how deep it lies; what becomes of it;
// what one iteration of everything inside computes; how far apart neighbouring iterations read and write.
struct LoopFeatures {
  double extent = 0, around = 0, inside = 0, depth = 0;
  double serial = 0, vectorized = 0, unrolled = 0, parallel = 0;
  double sums = 0, products = 0, quotients = 0, loads = 0, stores = 0;
  // Loads and stores whose index stays, moves by one, moves further as the loop goes on; of the rest nobody knows.
  double still = 0, next = 0, far = 0;
  static constexpr size_t kCount = 16;
  std::array<double, kCount> row() const;
};

// All loops of a function's kernels, each before those inside it.
std::vector<LoopFeatures> loop_features(const Lowered& lowered);

}  // namespace tilewright::te
