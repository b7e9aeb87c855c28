// SPDX-License-Identifier: Apache-2.0
#include "tir/operands.h"

#include <algorithm>

#include "base/format.h"
#include "tir/typing.h"

namespace tilewright::tir {
namespace {

Diagnostic mismatch(std::string what, std::string hint) {
  return Diagnostic(ErrorCode::kDtypeMismatch, std::move(what), {}, std::move(hint));
}

bool has_values(DataType t) { return t.is_integral() || t.is_bool() || t.is_float(); }

// Beside integers, a condition is a one-bit integer.
DataType as_integer(DataType t) { return t.is_bool() ? kInt32.with_lanes(t.lanes) : t; }

Result<DataType> common(DataType a, DataType b) {
  if (a == b) return a;
  if (!has_values(a) || !has_values(b)) return mismatch(format("{} and {} have no common dtype", a.str(), b.str()), {});
  if (a.is_float() && b.is_float()) {
    if (a.bits == b.bits)
      return mismatch(format("{} and {} are both floats of their own", a.str(), b.str()),
                      "cast one of them with astype");
    return a.bits > b.bits ? a : b;
  }
  if (a.is_float()) return a;
  if (b.is_float()) return b;
  a = as_integer(a), b = as_integer(b);
  const auto bits = std::max(a.bits, b.bits);
  return DataType{a.is_uint() && b.is_uint() ? TypeCode::kUInt : TypeCode::kInt, bits, a.lanes};
}

// Rejects a constant operand for which the operator is never defined.
Status refuse_constant(ExprKind kind, const PrimExpr& b) {
  const auto number = b->dtype.is_integral() ? as_const_int(b) : std::nullopt;
  if (!number) return Ok{};
  const bool divides =
      kind == ExprKind::kDiv || kind == ExprKind::kMod || kind == ExprKind::kFloorDiv || kind == ExprKind::kFloorMod;
  if (divides && *number == 0)
    return Diagnostic(ErrorCode::kInvalidArgument, "Divide by zero", kind_name(kind), "give a divisor that is not 0");
  const bool shifts = kind == ExprKind::kShiftLeft || kind == ExprKind::kShiftRight;
  if (shifts && (*number < 0 || *number >= b->dtype.bits))
    return Diagnostic(
        ErrorCode::kInvalidArgument,
        format("Shift amount must be non-negative and less than {} for type {}", b->dtype.bits, b->dtype.str()),
        kind_name(kind), "");
  return Ok{};
}

}  // namespace

Status match_operands(PrimExpr* a, PrimExpr* b) {
  const int lanes = std::max((*a)->dtype.lanes, (*b)->dtype.lanes);
  for (PrimExpr* e : {a, b})
    if ((*e)->dtype.lanes != lanes) {
      if ((*e)->dtype.lanes != 1)
        return mismatch(format("{} and {} have other numbers of lanes", (*a)->dtype.str(), (*b)->dtype.str()), {});
      *e = broadcast(*e, lanes);
    }
  const DataType dtype = TW_TRY(common((*a)->dtype, (*b)->dtype));
  *a = cast(dtype, *a), *b = cast(dtype, *b);
  return Ok{};
}

Result<PrimExpr> operate(ExprKind kind, PrimExpr a, PrimExpr b) {
  TW_TRY_STATUS(match_operands(&a, &b));
  TW_TRY_STATUS(refuse_constant(kind, b));
  if (a->dtype.is_bool() && !operator_takes(kind, a->dtype)) {
    const DataType number = as_integer(a->dtype);
    a = cast(number, a), b = cast(number, b);
  }
  if (!operator_takes(kind, a->dtype))
    return mismatch(format("{} is not for {}", kind_name(kind), a->dtype.str()), "cast the operands with astype");
  return binary(kind, std::move(a), std::move(b));
}

Result<PrimExpr> choose(bool lazy, PrimExpr condition, PrimExpr on_true, PrimExpr on_false) {
  if (!condition->dtype.is_bool()) {
    if (!condition->dtype.is_integral())
      return mismatch(format("a condition of {}", condition->dtype.str()), "give a comparison");
    condition = ne(condition, make_int(0, condition->dtype));
  }
  TW_TRY_STATUS(match_operands(&on_true, &on_false));
  if (condition->dtype.lanes != 1 && (lazy || condition->dtype.lanes != on_true->dtype.lanes)) {
    if (on_true->dtype.lanes != 1) return mismatch("the condition has other lanes than the values", {});
    lazy = false;
  }
  if (!lazy) return select(std::move(condition), std::move(on_true), std::move(on_false));
  return intrinsic(Intrinsic::k_if_then_else, {std::move(condition), std::move(on_true), std::move(on_false)});
}

Result<PrimExpr> apply(Intrinsic op, std::vector<PrimExpr> args) {
  if (static_cast<int>(args.size()) != intrinsic_arity(op))
    return mismatch(format("{} takes {} arguments, not {}", intrinsic_name(op), intrinsic_arity(op), args.size()), {});
  const bool for_integers = op == Intrinsic::k_popcount || op == Intrinsic::k_clz;
  if (args.size() == 2 && op != Intrinsic::k_ldexp_int) TW_TRY_STATUS(match_operands(&args[0], &args[1]));
  const DataType dtype = args[0]->dtype;
  if (for_integers ? !dtype.is_integral() : !dtype.is_float())
    return mismatch(format("{} is not for {}", intrinsic_name(op), dtype.str()),
                    for_integers ? "give an integer" : "cast the argument to a float with astype");
  return intrinsic(op, std::move(args));
}

Result<PrimExpr> convert(DataType dtype, PrimExpr value) {
  if (dtype == value->dtype && dtype.code == TypeCode::kHandle) return value;  // an address
  if (!has_values(dtype) || !has_values(value->dtype))
    return mismatch(format("{} cannot be cast to {}", value->dtype.str(), dtype.str()), {});
  if (dtype.lanes != 1 && dtype.lanes != value->dtype.lanes) {
    if (value->dtype.lanes != 1)
      return mismatch(format("{} cannot be cast to {}", value->dtype.str(), dtype.str()), "keep the number of lanes");
    value = broadcast(std::move(value), dtype.lanes);
  }
  return cast(dtype, std::move(value));
}

Result<PrimExpr> negate(const PrimExpr& value) {
  if (!value->dtype.is_bool()) return mismatch(format("Not is not for {}", value->dtype.str()), "give a comparison");
  return logical_not(value);
}

}  // namespace tilewright::tir
