// SPDX-License-Identifier: Apache-2.0
// Integer expressions of the loop IR as linear forms over variables and opaque subexpressions, and back. A vector's
// lane number is a symbol too, so that base + stride * lane is an ordinary form.
#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "arith/linear.h"
#include "tir/expr.h"

namespace tilewright::tir {

class IndexAlgebra {
 public:
  using Form = arith::LinearForm;

  static bool handles(DataType t) { return t.is_int() && t.bits >= 32; }
  static arith::Interval dtype_range(DataType t);  // everything for 64-bit dtypes

  // From now on, sums and products are assumed not to overflow, as in index computations.
  void assume_no_overflow() { no_overflow_ = true; }
  bool assumes_no_overflow() const { return no_overflow_; }

  // Binds a variable to a range, or to a form that replaces it.
  void bind(const PrimExpr& var, arith::Interval range);
  void bind(const PrimExpr& var, Form value);
  const Form* variable(const ExprNode* var) const;

  Form lane(int lanes);  // 0, 1, ... lanes - 1
  // A scalar expression as one symbol with a known range.
  Form opaque(const PrimExpr& e, arith::Interval range, bool pure);
  // `a kind b` for Add, Sub, Mul, FloorDiv, FloorMod, Min, Max; nothing if the lanes have no form.
  std::optional<Form> binary(ExprKind kind, DataType dtype, const Form& a, const Form& b);
  // The result of a comparison in all lanes, if ranges decide it.
  std::optional<bool> compare(ExprKind kind, DataType dtype, const Form& a, const Form& b) const;
  PrimExpr expr(const Form& form, DataType dtype);

  // The range of the machine's value; that of the dtype if the form may overflow.
  arith::Interval range(const Form& form, DataType dtype) const;
  bool is_pure(const Form& form) const;   // no loads: constant until a variable changes
  bool is_short(const Form& form) const;  // a constant plus multiples of at most three variables

  // Conditions may be assumed between mark and release,
  // which discards everything derived from them.
  struct Mark {
    size_t narrowed, composites, opaques;
  };
  Mark mark() const { return {narrowed_.size(), composite_order_.size(), opaque_order_.size()}; }
  void assume(ExprKind comparison, DataType dtype, const Form& a, const Form& b, bool truth);
  void release(const Mark& mark);
  void forget_opaque();  // after rebinding a variable, whose earlier ranges no longer hold

 private:
  struct Atom {
    PrimExpr expr;  // null for a lane number
    bool pure = true;
    ExprKind kind = ExprKind::kVar;  // FloorDiv and FloorMod by a constant keep their dividend
    Form operand;
    int64_t divisor = 0;
  };
  using Key = std::tuple<ExprKind, int, Form, Form>;

  arith::Symbol add_atom(Atom atom, arith::Interval range);
  bool exact(const Form& form, DataType dtype) const;  // no overflow: the machine's value is the mathematical one
  bool has_lanes(const Form& form) const;
  std::optional<arith::Symbol> composite(ExprKind kind, DataType dtype, const Form& a, const Form& b);
  std::optional<Form> divided(ExprKind kind, DataType dtype, const Form& a, int64_t divisor);
  Form recombined(Form form) const;
  PrimExpr scalar(const Form& form, DataType dtype);
  void assume_not_positive(const Form& form);

  bool no_overflow_ = false;
  arith::Ranges ranges_;
  std::vector<Atom> atoms_;  // by symbol
  std::unordered_map<const ExprNode*, Form> variables_;
  std::unordered_map<const ExprNode*, arith::Symbol> opaques_;
  std::vector<const ExprNode*> opaque_order_;
  std::map<Key, arith::Symbol> composites_;
  std::vector<Key> composite_order_;
  std::map<int, arith::Symbol> lanes_;
  std::map<std::pair<int, std::vector<arith::Term>>, PrimExpr> sums_;
  std::vector<std::pair<arith::Symbol, arith::Interval>> narrowed_;
};

}  // namespace tilewright::tir
