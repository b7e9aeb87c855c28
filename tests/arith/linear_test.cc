// SPDX-License-Identifier: Apache-2.0
// Every rule about linear forms against evaluation: random forms over small ranges, all assignments of their
// symbols.
#include "arith/linear.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tilewright::arith {
namespace {

int64_t evaluate(const LinearForm& f, const std::vector<int64_t>& values) {
  int64_t sum = f.constant();
  for (const Term& t : f.terms()) sum += t.coefficient * values[t.symbol];
  return sum;
}

// Calls f with every assignment of values in the symbols' ranges.
void for_each_assignment(const Ranges& ranges, size_t symbols,
                         const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> values;
  for (size_t s = 0; s < symbols; ++s) values.push_back(ranges.of(static_cast<Symbol>(s)).lo);
  for (;;) {
    f(values);
    size_t s = 0;
    while (s < symbols && ++values[s] > ranges.of(static_cast<Symbol>(s)).hi) {
      values[s] = ranges.of(static_cast<Symbol>(s)).lo;
      ++s;
    }
    if (s == symbols) return;
  }
}

class RandomForms {
 public:
  explicit RandomForms(unsigned seed) : random_(seed) {}
  int64_t number(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }
  Ranges ranges(size_t symbols) {
    Ranges r;
    for (size_t s = 0; s < symbols; ++s) {
      int64_t lo = number(-5, 3);
      r.add({lo, lo + number(0, 7)});
    }
    return r;
  }
  LinearForm form(size_t symbols, int64_t reach) {
    LinearForm f = LinearForm::of_constant(number(-2 * reach, 2 * reach));
    for (size_t s = 0; s < symbols; ++s)
      if (number(0, 3) != 0) f = f.plus(LinearForm::of_symbol(static_cast<Symbol>(s)).times(coefficient(reach)));
    return f;
  }

 private:
  int64_t coefficient(int64_t reach) { return number(0, 1) ? number(-reach, reach) : number(-3, 3) * number(1, 8); }
  std::mt19937 random_;
};

constexpr size_t kSymbols = 3;
constexpr int kRounds = 3000;

TEST(LinearForm, ArithmeticAgreesWithEvaluation) {
  RandomForms random(1);
  for (int round = 0; round < kRounds; ++round) {
    Ranges ranges = random.ranges(kSymbols);
    LinearForm a = random.form(kSymbols, 20), b = random.form(kSymbols, 20);
    int64_t k = random.number(-9, 9);
    LinearForm sum = a.plus(b), difference = a.minus(b), multiple = a.times(k), shifted = a.plus(k);
    Interval range = ranges.of(a), seen{kPositiveInfinity, kNegativeInfinity};
    for_each_assignment(ranges, kSymbols, [&](const std::vector<int64_t>& v) {
      int64_t x = evaluate(a, v), y = evaluate(b, v);
      ASSERT_EQ(evaluate(sum, v), x + y);
      ASSERT_EQ(evaluate(difference, v), x - y);
      ASSERT_EQ(evaluate(multiple, v), x * k);
      ASSERT_EQ(evaluate(shifted, v), x + k);
      seen = {std::min(seen.lo, x), std::max(seen.hi, x)};
    });
    ASSERT_EQ(range, seen) << "the range of a sum of independent terms is exact";
    ASSERT_EQ(a.minus(a), LinearForm());
    for (const Term& t : sum.terms()) ASSERT_NE(t.coefficient, 0);
  }
}

TEST(LinearForm, DivisionAgreesWithFloorDivision) {
  RandomForms random(2);
  int complete = 0, reduced = 0;
  for (int round = 0; round < 4 * kRounds; ++round) {
    Ranges ranges = random.ranges(kSymbols);
    LinearForm f = random.form(kSymbols, 24);
    int64_t d = random.number(1, 24);
    Division out = divide(f, d, ranges);
    ASSERT_GT(out.rest_divisor, 0);
    complete += out.rest.is_constant();
    reduced += !out.rest.is_constant() && out.rest_divisor < d;
    for_each_assignment(ranges, kSymbols, [&](const std::vector<int64_t>& v) {
      int64_t x = evaluate(f, v), r = evaluate(out.rest, v);
      ASSERT_EQ(floor_div(x, d), evaluate(out.quotient, v) + floor_div(r, out.rest_divisor));
      ASSERT_EQ(floor_mod(x, d), floor_mod(r, out.rest_divisor) * out.factor + evaluate(out.offset, v));
    });
  }
  EXPECT_GT(complete, 300) << "forms with nothing left to divide";
  EXPECT_GT(reduced, 300) << "forms with a smaller divisor left";
}

TEST(LinearForm, DivisionOfTypicalIndices) {
  Ranges ranges;
  Symbol block = ranges.add({0, 7}), lane = ranges.add({0, 15}), any = ranges.add({0, 1000});
  LinearForm i = LinearForm::of_symbol(block).times(16).plus(LinearForm::of_symbol(lane));
  Division out = divide(i, 16, ranges);
  EXPECT_EQ(out.quotient, LinearForm::of_symbol(block));
  EXPECT_EQ(out.offset, LinearForm::of_symbol(lane));
  EXPECT_TRUE(out.rest.is_constant());
  out = divide(LinearForm::of_symbol(any).times(4).plus(3), 16, ranges);
  EXPECT_EQ(out.rest, LinearForm::of_symbol(any));
  EXPECT_EQ(out.rest_divisor, 4);
  EXPECT_EQ(out.factor, 4);
  EXPECT_EQ(out.offset, LinearForm::of_constant(3));
  out = divide(LinearForm::of_symbol(lane).plus(LinearForm::of_symbol(any).times(17)), 16, ranges);
  EXPECT_FALSE(out.rest.is_constant()) << "lane + any crosses multiples of 16";
}

TEST(LinearForm, DecidedComparisonsHold) {
  RandomForms random(3);
  int decided = 0, decided_equal = 0;
  for (int round = 0; round < kRounds; ++round) {
    Ranges ranges = random.ranges(kSymbols);
    LinearForm f = random.form(kSymbols, 12);
    auto less = less_than_zero(f, ranges), equal = equal_to_zero(f, ranges);
    decided += less.has_value();
    decided_equal += equal.has_value();
    for_each_assignment(ranges, kSymbols, [&](const std::vector<int64_t>& v) {
      int64_t x = evaluate(f, v);
      if (less) {
        ASSERT_EQ(x < 0, *less);
      }
      if (equal) {
        ASSERT_EQ(x == 0, *equal);
      }
    });
  }
  EXPECT_GT(decided, 100);
  EXPECT_GT(decided_equal, 100);
}

TEST(LinearForm, NarrowingKeepsEveryValueThatSatisfiesTheCondition) {
  RandomForms random(4);
  int narrowed = 0;
  for (int round = 0; round < kRounds; ++round) {
    Ranges ranges = random.ranges(kSymbols);
    LinearForm f = random.form(kSymbols, 12);
    for (Symbol s = 0; s < kSymbols; ++s) {
      Interval kept = narrowed_by(f, s, ranges);
      ASSERT_TRUE(kept.inside(ranges.of(s)));
      narrowed += kept != ranges.of(s);
      for_each_assignment(ranges, kSymbols, [&](const std::vector<int64_t>& v) {
        if (evaluate(f, v) <= 0) {
          ASSERT_TRUE(kept.contains(v[s]));
        }
      });
    }
  }
  EXPECT_GT(narrowed, 100);
}

TEST(LinearForm, UnboundedSymbolsDecideNothing) {
  Ranges ranges;
  Symbol x = ranges.add(Interval::everything()), y = ranges.add({0, 3});
  LinearForm f = LinearForm::of_symbol(x).plus(LinearForm::of_symbol(y));
  EXPECT_FALSE(less_than_zero(f, ranges));
  EXPECT_FALSE(equal_to_zero(f, ranges));
  EXPECT_FALSE(ranges.of(f).bounded());
  EXPECT_EQ(ranges.of(f.minus(LinearForm::of_symbol(x))), (Interval{0, 3})) << "what cancels does not count";
}

}  // namespace
}  // namespace tilewright::arith
