// SPDX-License-Identifier: Apache-2.0
// Keys by which elements are sorted: the smaller, the earlier an element comes; NaN is the largest element.
#pragma once
#include "tir/expr.h"

namespace tilewright::topi {

// int32 for elements of up to 32 bits, else int64.
inline DataType order_dtype(DataType element) { return element.bits == 64 ? kInt64 : kInt32; }
tir::PrimExpr order_key(const tir::PrimExpr& x, DataType element, bool ascending);

}  // namespace tilewright::topi
