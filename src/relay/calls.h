// SPDX-License-Identifier: Apache-2.0
// Calls that passes write where an operator stood: with the span of what they take, or where there is a parameter for
// it, with that.
#pragma once
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

// As `dtype`; the expression itself where it has that one already.
inline Expr cast(const Expr& x, DataType dtype) {
  if (tensor_of(x).dtype == dtype) return x;
  return call("cast", {x}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), x->span);
}
// Operators of one and of two operands, without attributes.
inline Expr one(const char* op, const Expr& a) { return call(op, {a}, {}, a->span); }
inline Expr both(const char* op, const Expr& a, const Expr& b) { return call(op, {a, b}, {}, a->span); }

// Axis i of the result is axis axes[i] of x.
inline Expr transposed(const Expr& x, std::vector<int64_t> axes, const Span& span = {}) {
  return call("transpose", {x}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }), span);
}
// What lies from `begin` up to `end` along one axis.
inline Expr sliced(const Expr& x, int64_t axis, int64_t begin, int64_t end, const Span& span = {}) {
  return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                a.begin = {begin};
                a.end = {end};
                a.strides = {1};
                a.axes = std::vector<int64_t>{axis};
              }),
              span);
}

}  // namespace tilewright::relay
