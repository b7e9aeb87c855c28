// SPDX-License-Identifier: Apache-2.0
#include "arith/interval.h"

#include <algorithm>

namespace tilewright::arith {
namespace {
bool infinite(int64_t v) { return v == kNegativeInfinity || v == kPositiveInfinity; }

// Sum of two lower ends (or two upper ends): infinity absorbs.
int64_t add_end(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (a > 0 ? kPositiveInfinity : kNegativeInfinity) : sum;
}

int64_t negate_end(int64_t v) {
  if (v == kNegativeInfinity) return kPositiveInfinity;
  return v == kPositiveInfinity ? kNegativeInfinity : -v;
}

// 0 * infinity is 0: an infinite end stands for "some large finite number".
int64_t mul_end(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t product = 0;
  if (infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &product))
    return (a > 0) == (b > 0) ? kPositiveInfinity : kNegativeInfinity;
  return product;
}

int64_t div_end(int64_t a, int64_t b) {  // b != 0
  if (infinite(b)) {
    if (infinite(a)) return (a > 0) == (b > 0) ? kPositiveInfinity : kNegativeInfinity;
    return a != 0 && (a > 0) != (b > 0) ? -1 : 0;
  }
  if (infinite(a)) return (a > 0) == (b > 0) ? kPositiveInfinity : kNegativeInfinity;
  return floor_div(a, b);
}
}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}

int64_t floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

Interval add(Interval a, Interval b) { return {add_end(a.lo, b.lo), add_end(a.hi, b.hi)}; }

Interval sub(Interval a, Interval b) { return {add_end(a.lo, negate_end(b.hi)), add_end(a.hi, negate_end(b.lo))}; }

Interval mul(Interval a, Interval b) {
  int64_t ends[] = {mul_end(a.lo, b.lo), mul_end(a.lo, b.hi), mul_end(a.hi, b.lo), mul_end(a.hi, b.hi)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

Interval scale(Interval a, int64_t factor) { return mul(a, Interval::point(factor)); }
Interval min(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval max(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval floor_div(Interval a, Interval b) {
  if (b.contains(0)) return Interval::everything();
  int64_t ends[] = {div_end(a.lo, b.lo), div_end(a.lo, b.hi), div_end(a.hi, b.lo), div_end(a.hi, b.hi)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

Interval floor_mod(Interval a, Interval b) {
  if (b.contains(0)) return Interval::everything();
  Interval range = b.lo > 0 ? Interval{0, b.hi == kPositiveInfinity ? b.hi : b.hi - 1}
                            : Interval{b.lo == kNegativeInfinity ? b.lo : b.lo + 1, 0};
  // A dividend between 0 and every divisor is its own remainder.
  if (b.lo > 0 && a.lo >= 0 && a.hi < b.lo) return a;
  if (b.lo > 0 && a.lo >= 0) range.hi = std::min(range.hi, a.hi);
  if (b.is_point() && a.bounded() && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo))
    return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  return range;
}

Interval join(Interval a, Interval b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

}  // namespace tilewright::arith
