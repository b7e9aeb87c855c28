// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/unroll.h"

#include "tir/walk.h"

namespace tilewright::tir {
namespace {
Stmt unrolled(const Stmt& s) {
  Stmt inner = map_children(
      s, [](const PrimExpr& e) { return e; }, unrolled);
  auto* loop = as<ForNode>(inner);
  if (!loop || loop->for_kind != ForKind::kUnrolled) return inner;
  auto extent = as_const_int(loop->extent);
  if (!extent || *extent > kMaxUnroll) return make_for(loop->var, loop->min, loop->extent, loop->body);
  std::vector<Stmt> iterations;
  for (int64_t i = 0; i < *extent; ++i)
    iterations.push_back(substitute(loop->body, {{loop->var.get(), loop->min + i}}));
  return seq(std::move(iterations));
}
}  // namespace

PrimFunc unroll(PrimFunc function) {
  function.body = unrolled(function.body);
  return function;
}
}  // namespace tilewright::tir
