// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic checked against enumeration of every member of small intervals.
#include "arith/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tilewright::arith {
namespace {

std::vector<Interval> small_intervals(int64_t reach) {
  std::vector<Interval> all;
  for (int64_t lo = -reach; lo <= reach; ++lo)
    for (int64_t hi = lo; hi <= reach; ++hi) all.push_back({lo, hi});
  return all;
}

struct Operation {
  const char* name;
  Interval (*on_intervals)(Interval, Interval);
  int64_t (*on_numbers)(int64_t, int64_t);
  bool exact;  // the result is the smallest interval, not only a safe one
};
const Operation kOperations[] = {
    {"add", add, [](int64_t a, int64_t b) { return a + b; }, true},
    {"sub", sub, [](int64_t a, int64_t b) { return a - b; }, true},
    {"mul", mul, [](int64_t a, int64_t b) { return a * b; }, true},
    {"min", min, [](int64_t a, int64_t b) { return std::min(a, b); }, true},
    {"max", max, [](int64_t a, int64_t b) { return std::max(a, b); }, true},
    {"floor_div", floor_div, [](int64_t a, int64_t b) { return floor_div(a, b); }, true},
    {"floor_mod", floor_mod, [](int64_t a, int64_t b) { return floor_mod(a, b); }, false},
};

TEST(Interval, OperationsHoldEveryResult) {
  auto intervals = small_intervals(6);
  for (const auto& op : kOperations) {
    const bool divides = op.on_intervals == static_cast<Interval (*)(Interval, Interval)>(floor_div) ||
                         op.on_intervals == static_cast<Interval (*)(Interval, Interval)>(floor_mod);
    for (auto a : intervals)
      for (auto b : intervals) {
        if (divides && b.contains(0)) {
          EXPECT_EQ(op.on_intervals(a, b), Interval::everything());
          continue;
        }
        Interval got = op.on_intervals(a, b), want{kPositiveInfinity, kNegativeInfinity};
        for (int64_t x = a.lo; x <= a.hi; ++x)
          for (int64_t y = b.lo; y <= b.hi; ++y) {
            int64_t v = op.on_numbers(x, y);
            want = {std::min(want.lo, v), std::max(want.hi, v)};
          }
        ASSERT_TRUE(want.inside(got)) << op.name << " of " << a.lo << ".." << a.hi << " and " << b.lo << ".." << b.hi
                                      << " gives " << got.lo << ".." << got.hi;
        if (op.exact) {
          ASSERT_EQ(want, got) << op.name << " of " << a.lo << ".." << a.hi << " and " << b.lo << ".." << b.hi;
        }
      }
  }
}

TEST(Interval, FloorDivisionFollowsItsDefinition) {
  for (int64_t a = -50; a <= 50; ++a)
    for (int64_t b = -9; b <= 9; ++b) {
      if (b == 0) continue;
      ASSERT_EQ(a, b * floor_div(a, b) + floor_mod(a, b));
      ASSERT_TRUE(b > 0 ? floor_mod(a, b) >= 0 && floor_mod(a, b) < b : floor_mod(a, b) <= 0 && floor_mod(a, b) > b);
    }
}

TEST(Interval, UnboundedEndsStayUnbounded) {
  Interval any = Interval::everything(), natural{0, kPositiveInfinity}, small{2, 5};
  EXPECT_EQ(add(natural, small), (Interval{2, kPositiveInfinity}));
  EXPECT_EQ(sub(small, natural), (Interval{kNegativeInfinity, 5}));
  EXPECT_EQ(mul(natural, small), natural);
  EXPECT_EQ(mul(any, Interval::point(0)), Interval::point(0));
  EXPECT_EQ(floor_div(natural, small), natural);
  EXPECT_EQ(floor_div(any, small), any);
  EXPECT_EQ(floor_mod(any, small), (Interval{0, 4}));
  EXPECT_EQ(min(any, small), (Interval{kNegativeInfinity, 5}));
}

TEST(Interval, LargeFiniteEndsSaturateInsteadOfWrapping) {
  Interval large{INT64_MAX - 10, INT64_MAX - 5};
  EXPECT_EQ(add(large, large).hi, kPositiveInfinity);
  EXPECT_FALSE(add(large, large).bounded());
  EXPECT_EQ(mul(large, Interval{-3, -2}).lo, kNegativeInfinity);
}

}  // namespace
}  // namespace tilewright::arith
