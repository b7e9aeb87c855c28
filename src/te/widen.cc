// SPDX-License-Identifier: Apache-2.0
#include "te/widen.h"

#include "tir/walk.h"

namespace tilewright::te {

using tir::ExprKind;

namespace {
bool is_index(DataType t) { return t.is_int() && t.lanes == 1 && t.bits >= 32; }

bool is_index_arithmetic(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kDiv:
    case ExprKind::kMod:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod:
    case ExprKind::kMin:
    case ExprKind::kMax:
      return true;
    default:
      return false;
  }
}
}  // namespace

tir::PrimExpr Widening::index(const PrimExpr& e) {
  if (!is_index(e->dtype)) return tir::cast(kInt64, value(e));
  if (auto constant = tir::as_const_int(e)) return tir::make_int(*constant);
  if (auto found = values_.find(e.get()); found != values_.end()) return found->second;
  if (is_index_arithmetic(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    return tir::binary(e->kind, index(n.a), index(n.b));
  }
  if (e->kind == ExprKind::kCast) {
    const auto& n = static_cast<const tir::CastNode&>(*e);
    if (is_index(n.value->dtype) && n.value->dtype.bits <= e->dtype.bits) return index(n.value);
  }
  if (e->kind == ExprKind::kSelect) {
    const auto& n = static_cast<const tir::SelectNode&>(*e);
    return tir::select(value(n.condition), index(n.on_true), index(n.on_false));
  }
  if (const auto* call = tir::as<tir::CallNode>(e); call && call->op == tir::Intrinsic::k_if_then_else)
    return tir::intrinsic(call->op, {value(call->args[0]), index(call->args[1]), index(call->args[2])});
  return tir::cast(kInt64, value(e));
}

tir::PrimExpr Widening::value(const PrimExpr& e) {
  if (auto found = values_.find(e.get()); found != values_.end()) return tir::cast(e->dtype, found->second);
  if (e->kind == ExprKind::kRead) {
    const auto& n = static_cast<const tir::ReadNode&>(*e);
    std::vector<PrimExpr> indices;
    for (const PrimExpr& i : n.indices) indices.push_back(index(i));
    return on_read_(n, std::move(indices));
  }
  if (tir::is_comparison(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    if (is_index(n.a->dtype)) return tir::binary(e->kind, index(n.a), index(n.b));
  }
  return tir::map_children(e, [this](const PrimExpr& child) { return value(child); });
}

}  // namespace tilewright::te
