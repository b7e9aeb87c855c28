// SPDX-License-Identifier: Apache-2.0
// Where the values of an integer expression lie.
#pragma once
#include <span>

#include "tir/passes/simplify.h"

namespace tilewright::tir {
// Of an expression whose variables lie in these ranges (others anywhere in their dtypes).
arith::Interval bounds_of(const PrimExpr& e, std::span<const VariableRange> ranges);
}  // namespace tilewright::tir
