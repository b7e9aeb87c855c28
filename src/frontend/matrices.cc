// SPDX-License-Identifier: Apache-2.0
#include "frontend/matrices.h"

namespace tilewright::frontend {

LuFactors lu_factors(const ExpressionBuilder& c, const Expr& a) {
  LuFactors out;
  const Expr made = c.call("linalg.lu", {a});
  out.factors = c.get(made, 0);
  out.pivots = c.get(made, 1);
  const int64_t n = c.dims(a).back(), last = c.rank(a) - 1;
  const Expr count = c.counting(n);
  const Expr on = c.call("equal", {c.expand(count, 1), count});
  out.diagonal = c.reduce("sum", c.where(on, out.factors, c.scalar_like(0, a)), {last}, false);
  const Expr stays = c.call("equal", {out.pivots, count});
  out.sign = c.reduce("prod", c.where(stays, c.scalar_like(1, a), c.scalar_like(-1, a)), {last - 1}, false);
  return out;
}
Expr determinant(const ExpressionBuilder& c, const Expr& a) {
  const LuFactors f = lu_factors(c, a);
  return c.mul(f.sign, c.reduce("prod", f.diagonal, {c.rank(a) - 2}, false));
}
Expr row_order(const ExpressionBuilder& c, const Expr& pivots, int64_t rows) {
  return c.call("linalg.row_order", {pivots}, make_attrs<relay::RowOrderAttrs>([&](auto& a) { a.rows = rows; }));
}
Expr identity_rows(const ExpressionBuilder& c, const Expr& order) {
  const int64_t n = c.dims(order).back();
  return c.cast(c.call("equal", {c.expand(order, c.rank(order)), c.counting(n)}), kFloat64);
}
Expr inverse(const ExpressionBuilder& c, const Expr& a) {
  const LuFactors f = lu_factors(c, a);
  auto substituted = [&](const Expr& b, bool upper) {
    return c.call("linalg.solve_triangular", {f.factors, b}, make_attrs<relay::SolveTriangularAttrs>([&](auto& attrs) {
                    attrs.upper = upper;
                    attrs.unit = !upper;
                  }));
  };
  return substituted(substituted(identity_rows(c, row_order(c, f.pivots, c.dims(a).back())), false), true);
}

}  // namespace tilewright::frontend
