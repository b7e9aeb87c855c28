// SPDX-License-Identifier: Apache-2.0
// Calls that passes write where an operator stood, with the span of what they take.
#pragma once
#include "relay/ops/attrs.h"
#include "relay/passes/rewrite.h"

namespace tilewright::relay {

// As `dtype`; the expression itself where it has that one already.
inline Expr cast(const Expr& x, DataType dtype) {
  if (tensor_of(x).dtype == dtype) return x;
  return call("cast", {x}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), x->span);
}
// Operators of one and of two operands, without attributes.
inline Expr one(const char* op, const Expr& a) { return call(op, {a}, {}, a->span); }
inline Expr both(const char* op, const Expr& a, const Expr& b) { return call(op, {a, b}, {}, a->span); }

}  // namespace tilewright::relay
