// SPDX-License-Identifier: Apache-2.0
#include "arith/linear.h"

#include <algorithm>
#include <numeric>

namespace tilewright::arith {
namespace {
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
}  // namespace

LinearForm LinearForm::of_constant(int64_t value) {
  LinearForm f;
  f.constant_ = value;
  return f;
}

LinearForm LinearForm::of_symbol(Symbol symbol) {
  LinearForm f;
  f.terms_.push_back({symbol, 1});
  return f;
}

bool LinearForm::is_symbol(Symbol* symbol) const {
  if (terms_.size() != 1 || terms_[0].coefficient != 1 || constant_ != 0) return false;
  *symbol = terms_[0].symbol;
  return true;
}

int64_t LinearForm::coefficient(Symbol symbol) const {
  auto it =
      std::lower_bound(terms_.begin(), terms_.end(), symbol, [](const Term& t, Symbol s) { return t.symbol < s; });
  return it != terms_.end() && it->symbol == symbol ? it->coefficient : 0;
}

// a + b * factor
LinearForm combine(const LinearForm& a, const LinearForm& b, int64_t factor) {
  LinearForm out;
  out.terms_.reserve(a.terms_.size() + b.terms_.size());
  auto i = a.terms_.begin(), j = b.terms_.begin();
  auto push = [&](Symbol s, int64_t c) {
    if (c != 0) out.terms_.push_back({s, c});
  };
  while (i != a.terms_.end() || j != b.terms_.end()) {
    if (j == b.terms_.end() || (i != a.terms_.end() && i->symbol < j->symbol)) {
      out.terms_.push_back(*i++);
    } else if (i == a.terms_.end() || j->symbol < i->symbol) {
      push(j->symbol, wrapping_mul(j->coefficient, factor));
      ++j;
    } else {
      push(i->symbol, wrapping_add(i->coefficient, wrapping_mul(j->coefficient, factor)));
      ++i, ++j;
    }
  }
  out.constant_ = wrapping_add(a.constant_, wrapping_mul(b.constant_, factor));
  return out;
}

LinearForm LinearForm::plus(const LinearForm& other) const { return combine(*this, other, 1); }
LinearForm LinearForm::minus(const LinearForm& other) const { return combine(*this, other, -1); }
LinearForm LinearForm::times(int64_t factor) const { return combine(LinearForm(), *this, factor); }
LinearForm LinearForm::plus(int64_t value) const {
  LinearForm out = *this;
  out.constant_ = wrapping_add(out.constant_, value);
  return out;
}

Symbol Ranges::add(Interval range) {
  ranges_.push_back(range);
  return static_cast<Symbol>(ranges_.size() - 1);
}

Interval Ranges::of(const LinearForm& form) const {
  Interval sum = Interval::point(form.constant());
  for (const Term& t : form.terms()) sum = arith::add(sum, scale(ranges_[t.symbol], t.coefficient));
  return sum;
}

// Splits a form into multiples of d and a rest.
struct Split {
  LinearForm multiples;  // divided by d
  LinearForm rest;
  Split(const LinearForm& form, int64_t d) {
    for (const Term& t : form.terms()) {
      if (t.coefficient % d == 0)
        multiples.terms_.push_back({t.symbol, t.coefficient / d});
      else
        rest.terms_.push_back(t);
    }
    multiples.constant_ = floor_div(form.constant(), d);
    rest.constant_ = floor_mod(form.constant(), d);
  }
  // Reduces the rest's coefficients to 0 .. d-1, moving the multiples out.
  void reduce_rest(int64_t d) {
    LinearForm whole;
    for (Term& t : rest.terms_) {
      whole.terms_.push_back({t.symbol, floor_div(t.coefficient, d)});
      t.coefficient = floor_mod(t.coefficient, d);
    }
    std::erase_if(whole.terms_, [](const Term& t) { return t.coefficient == 0; });
    multiples = multiples.plus(whole);
  }
  // Divides the rest by a common factor g of its coefficients.
  void divide_rest(int64_t g) {
    for (Term& t : rest.terms_) t.coefficient /= g;
    rest.constant_ = floor_div(rest.constant_, g);
  }
};

namespace {
// Whether the rest stays between two multiples of d; it is then d * *level + (something in 0 .. d-1).
bool stays_within_one(const LinearForm& rest, int64_t d, const Ranges& ranges, int64_t* level) {
  Interval range = ranges.of(rest);
  if (!range.bounded() || range.empty()) return false;
  *level = floor_div(range.lo, d);
  return floor_div(range.hi, d) == *level;
}
}  // namespace

Division divide(const LinearForm& form, int64_t divisor, const Ranges& ranges) {
  Split split(form, divisor);
  int64_t level = 0;
  bool whole = stays_within_one(split.rest, divisor, ranges, &level);
  if (!whole) {
    Split reduced = split;
    reduced.reduce_rest(divisor);
    if (stays_within_one(reduced.rest, divisor, ranges, &level)) {
      split = reduced;
      whole = true;
    }
  }
  Division out;
  if (whole) {
    out.quotient = split.multiples.plus(level);
    out.offset = split.rest.plus(-level * divisor);
    return out;
  }
  // floor((g*r + c) / (g*d)) == floor((r + floor(c/g)) / d) for
  // integer r; the remainder additionally contains c mod g.
  int64_t g = divisor;
  for (const Term& t : split.rest.terms()) g = std::gcd(g, t.coefficient);
  out.quotient = split.multiples;
  out.offset = LinearForm::of_constant(floor_mod(split.rest.constant(), g));
  split.divide_rest(g);
  out.rest = split.rest;
  out.rest_divisor = divisor / g;
  out.factor = g;
  return out;
}

std::optional<bool> less_than_zero(const LinearForm& form, const Ranges& ranges) {
  Interval range = ranges.of(form);
  if (range.hi < 0) return true;
  if (range.lo >= 0) return false;
  return std::nullopt;
}

std::optional<bool> equal_to_zero(const LinearForm& form, const Ranges& ranges) {
  Interval range = ranges.of(form);
  if (range.is_point()) return range.lo == 0;
  if (!range.contains(0)) return false;
  int64_t g = 0;  // multiples of g plus a constant that is not
  for (const Term& t : form.terms()) g = std::gcd(g, t.coefficient);
  if (g != 0 && form.constant() % g != 0) return false;
  return std::nullopt;
}

Interval narrowed_by(const LinearForm& form, Symbol symbol, const Ranges& ranges) {
  const int64_t c = form.coefficient(symbol);
  Interval range = ranges.of(symbol);
  if (c == 0 || c == INT64_MIN) return range;
  // c * symbol <= -others, and others is at least others.lo
  Interval others = ranges.of(form.minus(LinearForm::of_symbol(symbol).times(c)));
  if (others.lo == kNegativeInfinity || others.lo == kPositiveInfinity) return range;
  const int64_t limit = -others.lo;
  if (c > 0)
    range.hi = std::min(range.hi, floor_div(limit, c));
  else
    range.lo = std::max(range.lo, -floor_div(limit, -c));
  return range;
}

}  // namespace tilewright::arith
