// SPDX-License-Identifier: Apache-2.0
// Lowers functions over arrays to kernels.
#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "te/kernels.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

// The sizes: parameters first, then free variables of shapes and statements.
std::vector<PrimExpr> sizes_of(const tir::BlockFunction& f) {
  std::vector<PrimExpr> out;
  std::unordered_set<const tir::ExprNode*> seen;
  for (const PrimExpr& v : bound_variables(f.body)) seen.insert(v.get());
  auto visit = [&](const PrimExpr& e) {
    if (e->kind == tir::ExprKind::kVar && seen.insert(e.get()).second) out.push_back(e);
  };
  for (const auto& p : f.params)
    if (p.var) visit(p.var);
  for (const auto& p : f.params)
    if (p.array)
      for (const PrimExpr& d : p.array->shape) tir::for_each_expr(d, visit);
  tir::for_each_stmt(f.body, [&](const tir::Stmt& s) {
    if (const auto* n = tir::as<tir::BlockNode>(s))
      for (const Ref<Node>& m : n->memory)
        for (const PrimExpr& d : static_cast<const tir::ArrayNode&>(*m).shape) tir::for_each_expr(d, visit);
  });
  tir::for_each_expr(f.body, visit);
  return out;
}

// The variables of the memory's extents, which are never negative.
std::unordered_set<const tir::ExprNode*> extents_of(const tir::BlockFunction& f) {
  std::unordered_set<const tir::ExprNode*> out;
  auto visit = [&](const tir::ArrayNode& array) {
    for (const PrimExpr& d : array.shape) tir::for_each_expr(d, [&](const PrimExpr& e) { out.insert(e.get()); });
  };
  for (const auto& p : f.params)
    if (p.array) visit(*p.array);
  tir::for_each_stmt(f.body, [&](const tir::Stmt& s) {
    if (const auto* n = tir::as<tir::BlockNode>(s))
      for (const Ref<Node>& m : n->memory) visit(static_cast<const tir::ArrayNode&>(*m));
  });
  return out;
}

}  // namespace

Result<Lowered> lower(const tir::BlockFunction& function) {
  Lowered out;
  tir::BlockFunction f = TW_TRY(with_result(function, &out.returns));
  f.body = resolve_regions(f.body);
  const auto extents = extents_of(f);
  Scopes scopes;
  std::vector<std::pair<PrimExpr, PrimExpr>> sizes;
  for (const PrimExpr& s : sizes_of(f)) {
    if (auto no_scalar = check_scalar(s)) return (*std::move(no_scalar)).at(format("function {}", f.name));
    out.sizes.push_back(s);
    out.size_values.push_back(scalar_value(s));
    const bool size = extents.contains(s.get()) || static_cast<const tir::VarNode&>(*s).is_size;
    out.numbers.push_back(s->dtype.is_int() && !size);
    if (s->dtype.is_int() && size) scopes.add(out.size_values.back(), {0, plan::kMaxFunctionSize});
    sizes.emplace_back(s, out.size_values.back());
  }
  Flatten flatten(scopes, sizes, format("function {}", f.name), [&](const tir::ArrayNode& a, const PrimExpr& n) {
    const auto known = tir::as_const_int(n);
    tir::Buffer buffer = tir::make_buffer(a.name, a.dtype.element(), known ? *known : tir::kUnknownSize);
    out.workspaces.push_back({buffer, n, true});
    return buffer;
  });
  std::vector<tir::Buffer> arguments;
  for (const auto& p : f.params) {
    if (!p.array) continue;
    Lowered::Argument argument{p.array->name, p.array->dtype, {}};
    for (const PrimExpr& d : p.array->shape) argument.shape.push_back(flatten.index(d));
    PrimExpr elements;
    std::vector<PrimExpr> strides = compact_strides(argument.shape, scopes, &elements);
    if (!p.array->strides.empty())
      return Diagnostic(ErrorCode::kInvalidArgument, format("the buffer '{}' has strides", p.array->name),
                        format("function {}", f.name), "arguments lie one row after another");
    const auto known = tir::as_const_int(elements);
    arguments.push_back(tir::make_buffer(p.array->name, p.array->dtype, known ? *known : tir::kUnknownSize));
    flatten.place(p.array, {arguments.back(), std::move(strides), tir::make_int(0)});
    out.arguments.push_back(std::move(argument));
  }
  tir::for_each_stmt(f.body, [&](const tir::Stmt& s) {
    const auto* loop = tir::as<tir::ForNode>(s);
    if (!loop) return;
    for (const auto& [key, value] : loop->annotations)
      if (key == "thread") out.bound.push_back(value);
  });
  TW_TRY_STATUS(add_statements(f.body, flatten, f.name, arguments, &out));
  finish_parameters(arguments, &out);
  return out;
}

}  // namespace tilewright::te
