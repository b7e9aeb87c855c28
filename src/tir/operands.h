// SPDX-License-Identifier: Apache-2.0
// Operators on operands of different dtypes, as scripts write them: an integer beside a float becomes that float, of
// two integers the narrower one becomes the other's width (signed where one is), a scalar beside a vector is broadcast.
// The builders of expr.h want equal dtypes and take a mismatch for a bug; here it is the user's.
#pragma once
#include "base/result.h"
#include "tir/expr.h"

namespace tilewright::tir {

// Errors of all: DtypeMismatch (no common dtype, an operator that the dtype has not).
Status match_operands(PrimExpr* a, PrimExpr* b);
Result<PrimExpr> operate(ExprKind kind, PrimExpr a, PrimExpr b);
// The intrinsic if_then_else (`lazy`: only the chosen side is evaluated), or a select.
Result<PrimExpr> choose(bool lazy, PrimExpr condition, PrimExpr on_true, PrimExpr on_false);
Result<PrimExpr> apply(Intrinsic op, std::vector<PrimExpr> args);
Result<PrimExpr> convert(DataType dtype, PrimExpr value);
Result<PrimExpr> negate(const PrimExpr& value);  // not, of a condition

}  // namespace tilewright::tir
