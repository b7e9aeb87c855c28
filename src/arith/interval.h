// SPDX-License-Identifier: Apache-2.0
// Integer intervals. A bound of kNegativeInfinity or kPositiveInfinity means unbounded; arithmetic saturates to it, so
// that a bounded result is always exact: no operand values can leave it.
#pragma once
#include <cstdint>

namespace tilewright::arith {

inline constexpr int64_t kNegativeInfinity = INT64_MIN;
inline constexpr int64_t kPositiveInfinity = INT64_MAX;

struct Interval {
  int64_t lo = kNegativeInfinity;  // both bounds are inclusive; lo > hi is the empty interval
  int64_t hi = kPositiveInfinity;

  static Interval point(int64_t value) { return {value, value}; }
  static Interval everything() { return {}; }
  bool operator==(const Interval&) const = default;
  bool bounded() const { return lo != kNegativeInfinity && hi != kPositiveInfinity; }
  bool empty() const { return lo > hi; }
  bool is_point() const { return lo == hi && bounded(); }
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
  bool inside(const Interval& other) const { return other.lo <= lo && hi <= other.hi; }
};

// Floor division and its remainder: a == b * floor_div(a, b) + floor_mod(a, b), the remainder has b's sign. b != 0,
// and not (INT64_MIN, -1).
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

// Each returns an interval that contains all results for members of the operands.
Interval add(Interval a, Interval b);
Interval sub(Interval a, Interval b);
Interval mul(Interval a, Interval b);
Interval scale(Interval a, int64_t factor);
Interval min(Interval a, Interval b);
Interval max(Interval a, Interval b);
Interval floor_div(Interval a, Interval b);  // everything if b may be 0
Interval floor_mod(Interval a, Interval b);
Interval join(Interval a, Interval b);  // the smallest interval that contains both
Interval intersect(Interval a, Interval b);

}  // namespace tilewright::arith
