// SPDX-License-Identifier: Apache-2.0
// Short forms for the calls that passes write in place of an operator. They take the span of their first operand, or
// the one given.
#pragma once
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

// A cast to `dtype`; x itself where it has that dtype.
inline Expr cast(const Expr& x, DataType dtype) {
  if (tensor_of(x).dtype == dtype) return x;
  return call("cast", {x}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), x->span);
}
// Operators of one or two operands, without attributes.
inline Expr one(const char* op, const Expr& a) { return call(op, {a}, {}, a->span); }
inline Expr both(const char* op, const Expr& a, const Expr& b) { return call(op, {a, b}, {}, a->span); }

// Axis i of the result is axis axes[i] of x.
inline Expr transposed(const Expr& x, std::vector<int64_t> axes, const Span& span = {}) {
  return call("transpose", {x}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }), span);
}
// Elements [begin, end) along one axis.
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
