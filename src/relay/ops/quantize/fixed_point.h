// SPDX-License-Identifier: Apache-2.0
// The multiplier of a requantisation: the ratio of two scales as 31 bits and a shift, as the classic stack stores it.
// Ratios such as 0.3 / 0.6 become exact, so that ties round as ties.
#pragma once
#include <cmath>

namespace tilewright::relay {

inline double fixed_point(double ratio) {
  if (ratio == 0 || !std::isfinite(ratio)) return ratio;
  int exponent = 0;
  const double significand = std::frexp(ratio, &exponent);
  return std::ldexp(std::round(std::ldexp(significand, 31)), exponent - 31);
}

}  // namespace tilewright::relay
