// SPDX-License-Identifier: Apache-2.0
#include "topi/select_order.h"

#include <limits>

namespace tilewright::topi {

using namespace tir;

namespace {

PrimExpr narrow_key(const PrimExpr& x, DataType element, bool ascending) {
  const int lanes = x->dtype.lanes;
  auto constant = [&](int64_t v) { return broadcast(make_int(v, kInt32), lanes); };
  const PrimExpr lowest = constant(std::numeric_limits<int32_t>::min());
  PrimExpr order;
  if (element.is_float()) {
    const bool half = element == kFloat16 || element == kBFloat16;
    const PrimExpr wide = half || element == kFloat32 ? x : cast(kFloat32.with_lanes(lanes), x);
    // Halves need only the upper digits.
    PrimExpr bits = half
                        ? binary(ExprKind::kShiftLeft,
                                 cast(kInt32.with_lanes(lanes), reinterpret(kInt16.with_lanes(lanes), x)), constant(16))
                        : reinterpret(kInt32.with_lanes(lanes), wide);
    bits = select(eq(bits, lowest), constant(0), bits);  // -0 and +0 are equal
    // Negative floats compare in reverse as integers: flip their lower bits.
    order = binary(ExprKind::kBitXor, bits,
                   binary(ExprKind::kBitAnd, binary(ExprKind::kShiftRight, bits, constant(31)), constant(0x7fffffff)));
    order = select(intrinsic(Intrinsic::k_isnan, {wide}), constant(0x7fffffff), order);
  } else {
    order = element == kInt32 ? x : cast(kInt32.with_lanes(lanes), x);
    if (!element.is_int() && element.bits == 32) order = binary(ExprKind::kBitXor, order, lowest);
    if (!element.is_int() && element.bits < 32) order = order - constant(int64_t{1} << (element.bits - 1));
    // Narrow elements are shifted up, so that the upper digits are used.
    if (element.bits < 32) order = binary(ExprKind::kShiftLeft, order, constant(32 - element.bits));
  }
  return ascending ? order : binary(ExprKind::kBitXor, order, constant(-1));
}

PrimExpr wide_key(const PrimExpr& x, DataType element, bool ascending) {
  const int lanes = x->dtype.lanes;
  auto constant = [&](int64_t v) { return broadcast(make_int(v), lanes); };
  const PrimExpr lowest = constant(std::numeric_limits<int64_t>::min());
  const PrimExpr most = constant(std::numeric_limits<int64_t>::max());
  PrimExpr order = x;
  if (element.is_float()) {
    PrimExpr bits = reinterpret(kInt64.with_lanes(lanes), x);
    bits = select(eq(bits, lowest), constant(0), bits);  // -0 and +0 are equal
    // Negative floats compare in reverse as integers: flip their lower bits.
    PrimExpr sign = binary(ExprKind::kShiftRight, bits, constant(63));
    order = binary(ExprKind::kBitXor, bits, binary(ExprKind::kBitAnd, sign, most));
    order = select(intrinsic(Intrinsic::k_isnan, {x}), most, order);
  } else if (!element.is_int()) {
    order = binary(ExprKind::kBitXor, cast(kInt64, x), lowest);
  }
  return ascending ? order : binary(ExprKind::kBitXor, order, constant(-1));
}

}  // namespace

PrimExpr order_key(const PrimExpr& x, DataType element, bool ascending) {
  return element.bits == 64 ? wide_key(x, element, ascending) : narrow_key(x, element, ascending);
}

}  // namespace tilewright::topi
