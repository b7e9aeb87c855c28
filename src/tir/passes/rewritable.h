// SPDX-License-Identifier: Apache-2.0
// What rewrites of loops ask of expressions and statements.
#pragma once
#include <algorithm>

#include "tir/walk.h"

namespace tilewright::tir {

inline bool is_empty(const Stmt& s) {
  return s->kind == StmtKind::kSeq && static_cast<const SeqNode&>(*s).stmts.empty();
}

// Whether only arithmetic without quotients on variables and constants: it may be computed anywhere its variables have
// the same values.
inline bool is_arithmetic(const PrimExpr& e) {
  static constexpr ExprKind kOther[] = {ExprKind::kDiv,  ExprKind::kMod,    ExprKind::kFloorDiv,  ExprKind::kFloorMod,
                                        ExprKind::kLoad, ExprKind::kRead,   ExprKind::kShiftLeft, ExprKind::kShiftRight,
                                        ExprKind::kCall, ExprKind::kExtern, ExprKind::kLet};
  bool plain = true;
  for_each_expr(e, [&](const PrimExpr& x) {
    plain &= std::find(std::begin(kOther), std::end(kOther), x->kind) == std::end(kOther);
  });
  return plain;
}

}  // namespace tilewright::tir
