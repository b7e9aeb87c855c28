// SPDX-License-Identifier: Apache-2.0
// Integer expressions as sums: coefficient * symbol + ... + constant. Symbols stand for whatever the user of
// this header numbers with them (loop variables, sub-expressions); Ranges knows where each lies.
//
// Two kinds of statement live here. Sums, differences and multiples are exact in wrapping 64-bit arithmetic.
// What is said through Ranges (the range of a form, quotients, signs) holds for the mathematical integers, so
// it may be used only where the form's range is bounded and inside the machine type: then the wrapped and the
// mathematical value agree.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "arith/interval.h"

namespace tilewright::arith {

using Symbol = uint32_t;

struct Term {
  Symbol symbol;
  int64_t coefficient;  // never 0
  auto operator<=>(const Term&) const = default;
};

class LinearForm {
 public:
  LinearForm() = default;
  static LinearForm of_constant(int64_t value);
  static LinearForm of_symbol(Symbol symbol);

  const std::vector<Term>& terms() const { return terms_; }  // by ascending symbol
  int64_t constant() const { return constant_; }
  bool is_constant() const { return terms_.empty(); }
  bool is_symbol(Symbol* symbol) const;  // exactly one symbol, times 1, plus 0
  int64_t coefficient(Symbol symbol) const;
  auto operator<=>(const LinearForm&) const = default;

  LinearForm plus(const LinearForm& other) const;
  LinearForm minus(const LinearForm& other) const;
  LinearForm times(int64_t factor) const;
  LinearForm plus(int64_t value) const;

 private:
  friend LinearForm combine(const LinearForm&, const LinearForm&, int64_t);
  friend struct Split;
  std::vector<Term> terms_;
  int64_t constant_ = 0;
};

class Ranges {
 public:
  Symbol add(Interval range);
  Interval of(Symbol symbol) const { return ranges_[symbol]; }
  void set(Symbol symbol, Interval range) { ranges_[symbol] = range; }
  Interval of(const LinearForm& form) const;

 private:
  std::vector<Interval> ranges_;
};

// floor_div(form, divisor) == quotient + floor_div(rest, rest_divisor) and
// floor_mod(form, divisor) == floor_mod(rest, rest_divisor) * factor + offset, for divisor > 0.
// `rest` is 0 with rest_divisor 1 when nothing is left to divide. Holds for the mathematical integers.
struct Division {
  LinearForm quotient;
  LinearForm rest;
  int64_t rest_divisor = 1;
  int64_t factor = 1;
  LinearForm offset;
};
Division divide(const LinearForm& form, int64_t divisor, const Ranges& ranges);

// The result of comparing the form with zero, if its range decides.
std::optional<bool> less_than_zero(const LinearForm& form, const Ranges& ranges);
std::optional<bool> equal_to_zero(const LinearForm& form, const Ranges& ranges);

// The range of `symbol` narrowed by the condition form <= 0.
Interval narrowed_by(const LinearForm& form, Symbol symbol, const Ranges& ranges);

}  // namespace tilewright::arith
