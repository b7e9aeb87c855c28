// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/divide_parallel.h"

#include "tir/walk.h"

namespace tilewright::tir {
namespace {

Stmt without_parallel(const Stmt& s) {
  Stmt inner = map_children(
      s, [](const PrimExpr& e) { return e; }, without_parallel);
  auto* loop = as<ForNode>(inner);
  if (!loop || loop->for_kind != ForKind::kParallel) return inner;
  return make_for(loop->var, loop->min, loop->extent, loop->body);
}

// Finds the loop to divide: reached from the body without passing another loop or a sequence.
bool begins_parallel(const Stmt& s) {
  if (auto* loop = as<ForNode>(s)) return loop->for_kind == ForKind::kParallel;
  if (auto* let = as<LetStmtNode>(s)) return begins_parallel(let->body);
  if (auto* branch = as<IfNode>(s)) return !branch->else_case && begins_parallel(branch->then_case);
  return false;
}

Stmt divided(const Stmt& s, const PrimExpr& tid, const PrimExpr& nthreads) {
  if (auto* let = as<LetStmtNode>(s)) return let_stmt(let->var, let->value, divided(let->body, tid, nthreads));
  if (auto* branch = as<IfNode>(s)) return make_if(branch->condition, divided(branch->then_case, tid, nthreads));
  const auto& loop = *as<ForNode>(s);
  auto typed = [&](const PrimExpr& e) { return cast(loop.var->dtype, e); };
  const PrimExpr first = floordiv(typed(tid) * loop.extent, typed(nthreads));
  const PrimExpr last = floordiv(typed(tid + 1) * loop.extent, typed(nthreads));
  return make_for(loop.var, loop.min + first, last - first, without_parallel(loop.body));
}

}  // namespace

PrimFunc divide_parallel(PrimFunc function) {
  if (function.tid || !begins_parallel(function.body)) {
    function.body = without_parallel(function.body);
    return function;
  }
  function.tid = make_var("tid");
  function.nthreads = make_var("nthreads");
  function.body = divided(function.body, function.tid, function.nthreads);
  return function;
}

}  // namespace tilewright::tir
