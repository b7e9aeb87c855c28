// SPDX-License-Identifier: Apache-2.0
// What converters of several formats build from factors of matrices (linalg.lu).
#pragma once
#include "frontend/expression_builder.h"

namespace tilewright::frontend {

struct LuFactors {
  Expr factors, pivots;
  Expr diagonal;  // (..., n): of the upper factor
  Expr sign;      // (...): 1 or -1, by the number of rows that were exchanged
};
// Of square matrices, float32 or float64.
LuFactors lu_factors(const ExpressionBuilder& c, const Expr& a);
Expr determinant(const ExpressionBuilder& c, const Expr& a);
// The order of the rows behind the exchanges of `pivots`.
Expr row_order(const ExpressionBuilder& c, const Expr& pivots, int64_t rows);
// Rows of the identity in an order (..., n); float64.
Expr identity_rows(const ExpressionBuilder& c, const Expr& order);
// Of square matrices in float64.
Expr inverse(const ExpressionBuilder& c, const Expr& a);

}  // namespace tilewright::frontend
