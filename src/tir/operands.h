// SPDX-License-Identifier: Apache-2.0
// Operators with mixed dtypes, as scripts write them: of an integer and a float, the integer is converted; of two
// integers, the narrower (signed if either is); a scalar is broadcast to a vector. The builders of expr.h require equal
// dtypes and treat a mismatch as an internal error; here it is the user's.
#pragma once
#include "base/result.h"
#include "tir/expr.h"

namespace tilewright::tir {

// Errors of all functions: DtypeMismatch (no common dtype, or an operator that the dtype does not support).
Status match_operands(PrimExpr* a, PrimExpr* b);
Result<PrimExpr> operate(ExprKind kind, PrimExpr a, PrimExpr b);
// The intrinsic if_then_else (`lazy`: evaluates only the selected side), or a select.
Result<PrimExpr> choose(bool lazy, PrimExpr condition, PrimExpr on_true, PrimExpr on_false);
Result<PrimExpr> apply(Intrinsic op, std::vector<PrimExpr> args);
Result<PrimExpr> convert(DataType dtype, PrimExpr value);
Result<PrimExpr> negate(const PrimExpr& value);  // logical not

}  // namespace tilewright::tir
