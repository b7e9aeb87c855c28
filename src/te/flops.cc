// SPDX-License-Identifier: Apache-2.0
#include "te/flops.h"

#include "base/format.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

double flops_of(const PrimExpr& e) {
  double own = tir::is_binary(e->kind) || e->kind == tir::ExprKind::kNot ? 1 : 0;
  if (e->kind == tir::ExprKind::kRead) return 0;  // index expressions do not count
  if (const auto* call = tir::as<tir::CallNode>(e)) own = call->op == tir::Intrinsic::k_if_then_else ? 0 : 1;
  tir::for_each_child(e, [&](const PrimExpr& child) { own += flops_of(child); });
  return own;
}

Result<double> product(double so_far, const PrimExpr& extent, const OperationNode& op) {
  const auto value = tir::as_const_int(extent);
  if (!value)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the operations of '{}' cannot be counted: a call decides its sizes", op.name), {},
                      "say how many there are with cfg.add_flop");
  return so_far * static_cast<double>(*value);
}

}  // namespace

Result<double> count_flops(const Schedule& schedule) {
  double all = 0;
  for (const auto& stage : schedule.stages()) {
    const OperationNode& op = *stage->op();
    double elements = 1, each = 0;
    if (op.is_placeholder()) continue;
    for (const IterVar& axis : op.axis) elements = TW_TRY(product(elements, axis->extent, op));
    for (const PrimExpr& value : op.values) each += flops_of(value);
    if (op.combiner) {
      for (const PrimExpr& value : op.combiner->result) each += flops_of(value);
      for (const IterVar& axis : op.reduce_axis) elements = TW_TRY(product(elements, axis->extent, op));
    }
    all += elements * each;
  }
  return all;
}

}  // namespace tilewright::te
