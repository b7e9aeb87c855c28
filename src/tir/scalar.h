// SPDX-License-Identifier: Apache-2.0
// What each operator of the loop IR computes on one lane. Constant folding and the interpreter share this definition.
//
// An integer lane is an int64_t: sign-extended for int, zero-extended for uint and bool (uint64: its bits). A float
// lane is a double that holds a value of the dtype exactly. Computing + - * / and sqrt in double and rounding once to a
// format of at most 24 significant bits equals one rounding of the exact result.
#pragma once
#include <cstdint>

#include "tir/expr.h"

namespace tilewright::tir {

int64_t wrap_integer(DataType dtype, int64_t value);  // keeps the low bits, then extends
double round_float(DataType dtype, double value);     // rounds to the dtype

// Operators on integers or bools (`dtype` is the operands'). False if the result is undefined: division by zero, the
// smallest integer divided by -1, a shift by a negative count or by the width or more.
bool integer_binary(ExprKind kind, DataType dtype, int64_t a, int64_t b, int64_t* out);
double float_arithmetic(ExprKind kind, DataType dtype, double a, double b);  // Add Sub Mul Div Min Max
bool float_comparison(ExprKind kind, double a, double b);                    // EQ NE LT LE GT GE
double float_fma(DataType dtype, double a, double b, double c);
// A float intrinsic, before its result is rounded to the dtype; unused operands are 0.
double float_call(Intrinsic op, DataType dtype, double x, double y, double z);
// Value conversions. For NaN and out-of-range values: 0 and the nearest representable integer; generated code may
// differ there.
int64_t float_to_integer(DataType to, double value);
double integer_to_float(DataType from, DataType to, int64_t value);

}  // namespace tilewright::tir
