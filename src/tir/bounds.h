// SPDX-License-Identifier: Apache-2.0
// Bounds of integer expressions by interval arithmetic.
#pragma once
#include <span>

#include "tir/passes/simplify.h"

namespace tilewright::tir {
// Bounds given ranges of variables (other variables: the range of their dtype).
arith::Interval bounds_of(const PrimExpr& e, std::span<const VariableRange> ranges);
}  // namespace tilewright::tir
