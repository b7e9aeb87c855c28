// SPDX-License-Identifier: Apache-2.0
// Integer expressions of the loop IR as linear forms over variables and irreducible parts, and back. The lane
// number of a vector is a symbol too, so that base + stride * lane is a form like any other.
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
  static arith::Interval dtype_range(DataType t);  // of its values; everything for those of 64 bits

  // From now on sums and products are taken to stay in their dtypes, as those of indices do.
  void assume_no_overflow() { no_overflow_ = true; }

  // A variable bound here: one that lies in a range, or that stands for a form.
  void bind(const PrimExpr& var, arith::Interval range);
  void bind(const PrimExpr& var, Form value);
  const Form* variable(const ExprNode* var) const;

  Form lane(int lanes);  // 0, 1, ... lanes - 1
  // A scalar expression as one symbol, known to lie in a range.
  Form opaque(const PrimExpr& e, arith::Interval range, bool pure);
  // `a kind b` for Add, Sub, Mul, FloorDiv, FloorMod, Min, Max; nothing for lanes that have no form.
  std::optional<Form> binary(ExprKind kind, DataType dtype, const Form& a, const Form& b);
  // What a comparison gives in every lane, when ranges decide it.
  std::optional<bool> compare(ExprKind kind, DataType dtype, const Form& a, const Form& b) const;
  PrimExpr expr(const Form& form, DataType dtype);

  // Where the machine's value lies; the dtype's range where the form may leave it.
  arith::Interval range(const Form& form, DataType dtype) const;
  bool is_pure(const Form& form) const;   // no loads: the same value until a variable changes
  bool is_short(const Form& form) const;  // a sum of at most three variables' multiples and a constant

  // Between mark and release, conditions may be assumed; what was learnt and derived from it is forgotten at
  // release.
  struct Mark {
    size_t narrowed, composites, opaques;
  };
  Mark mark() const { return {narrowed_.size(), composite_order_.size(), opaque_order_.size()}; }
  void assume(ExprKind comparison, DataType dtype, const Form& a, const Form& b, bool truth);
  void release(const Mark& mark);
  void forget_opaque();  // after a variable was bound anew: ranges of expressions over it are not those of before

 private:
  struct Atom {
    PrimExpr expr;  // null for a lane number
    bool pure = true;
    ExprKind kind = ExprKind::kVar;  // FloorDiv and FloorMod by a constant keep what is divided
    Form operand;
    int64_t divisor = 0;
  };
  using Key = std::tuple<ExprKind, int, Form, Form>;

  arith::Symbol add_atom(Atom atom, arith::Interval range);
  bool exact(const Form& form, DataType dtype) const;  // the machine's value is the mathematical one
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
