// SPDX-License-Identifier: Apache-2.0
#include "tir/schedule.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "tir/dependence.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

Diagnostic refused(std::string what, std::string hint = {}) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), "schedule", std::move(hint));
}

const std::string& name_of(const PrimExpr& var) { return as<VarNode>(var)->name; }

bool same(const PrimExpr& a, const PrimExpr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->dtype != b->dtype || a->kind == ExprKind::kVar || a->kind == ExprKind::kLoad)
    return false;
  if (a->kind == ExprKind::kIntImm) return as_const_int(a) == as_const_int(b);
  std::vector<PrimExpr> parts[2];
  for_each_child(a, [&](const PrimExpr& e) { parts[0].push_back(e); });
  for_each_child(b, [&](const PrimExpr& e) { parts[1].push_back(e); });
  if (parts[0].empty()) return false;
  return std::equal(parts[0].begin(), parts[0].end(), parts[1].begin(), parts[1].end(), same);
}

// Puts the condition around the innermost statement of the perfect nest in `body`.
Stmt guarded(const PrimExpr& condition, const Stmt& body) {
  const auto* loop = as<ForNode>(body);
  if (!loop) return make_if(condition, body);
  return make_for(loop->var, loop->min, loop->extent, guarded(condition, loop->body), loop->for_kind);
}

const ForNode* only_loop_in(const Stmt& body) { return as<ForNode>(body); }

Result<int64_t> constant_extent(const ForNode* loop, const char* what) {
  if (const auto n = as_const_int(loop->extent)) return *n;
  return refused(format("loop '{}' cannot be {}: its extent is not a constant", name_of(loop->var), what));
}

}  // namespace

Share thread_share(const PrimExpr& tid, const PrimExpr& nthreads, int64_t extent, int64_t granule) {
  const int64_t units = (extent + granule - 1) / granule;
  auto cut = [&](const PrimExpr& thread) {
    PrimExpr at = floordiv(thread * units, nthreads) * granule;
    return extent % granule == 0 ? at : min(at, make_int(extent));
  };
  return {cut(tid), cut(tid + 1)};
}

Result<PrimExpr> Schedule::loop(std::string_view name) const {
  PrimExpr found;
  int count = 0;
  std::string names;
  for_each_stmt(stmt_, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    if (!loop) return;
    names += (names.empty() ? "" : ", ") + name_of(loop->var);
    if (name_of(loop->var) != name) return;
    found = loop->var;
    ++count;
  });
  if (count == 1) return found;
  return refused(count == 0 ? format("there is no loop '{}'", name) : format("there are {} loops '{}'", count, name),
                 names.empty() ? "there are no loops" : "the loops are " + names);
}

Result<const ForNode*> Schedule::find(const PrimExpr& var) const {
  const ForNode* found = nullptr;
  int count = 0;
  for_each_stmt(stmt_, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    if (loop && loop->var == var) found = loop, ++count;
  });
  if (count == 1) return found;
  return refused(
      count == 0 ? "this is no loop of the nest" : format("loop '{}' stands {} times in the nest", name_of(var), count),
      "split and fuse give new variables");
}

void Schedule::replace(const ForNode* loop, const Stmt& with) {
  std::function<Stmt(const Stmt&)> visit = [&](const Stmt& s) -> Stmt {
    if (s.get() == loop) return with;
    return map_children(
        s, [](const PrimExpr& e) { return e; }, visit);
  };
  stmt_ = visit(stmt_);
}

Status Schedule::independent(const PrimExpr& var) const {
  const ForNode* loop = TW_TRY(find(var));
  if (const BufferNode* buffer = Dependence(stmt_).carried_by(loop))
    return refused(format("two iterations of loop '{}' may use the same element of '{}'", name_of(var), buffer->name));
  return Ok{};
}

Result<Schedule::Split> Schedule::split(const PrimExpr& var, int64_t factor) {
  const ForNode* loop = TW_TRY(find(var));
  const int64_t extent = TW_TRY(constant_extent(loop, "split"));
  if (factor < 1) return refused(format("loop '{}' cannot be split by {}", name_of(var), factor));
  Split made{make_var(name_of(var) + "_outer"), make_var(name_of(var) + "_inner")};
  const PrimExpr at = made.outer * factor + made.inner;
  Stmt body = substitute(loop->body, {{var.get(), loop->min + at}});
  if (extent % factor != 0) body = guarded(lt(at, make_int(extent)), body);
  const int64_t count = extent / factor + (extent % factor != 0 ? 1 : 0);
  replace(loop, make_for(made.outer, make_int(0), make_int(count),
                         make_for(made.inner, make_int(0), make_int(factor), body), loop->for_kind));
  return made;
}

Result<PrimExpr> Schedule::fuse(const PrimExpr& outer, const PrimExpr& inner) {
  const ForNode* first = TW_TRY(find(outer));
  const ForNode* second = TW_TRY(find(inner));
  if (only_loop_in(first->body) != second)
    return refused(format("loop '{}' is not directly in loop '{}'", name_of(inner), name_of(outer)));
  const int64_t m = TW_TRY(constant_extent(first, "fused")), n = TW_TRY(constant_extent(second, "fused"));
  if (uses(second->min, outer.get()))
    return refused(format("loop '{}' begins where loop '{}' says", name_of(inner), name_of(outer)));
  PrimExpr fused = make_var(name_of(outer) + "_" + name_of(inner));
  const int64_t width = std::max<int64_t>(n, 1);
  // Bound by let rather than substituted, since indices use them many times.
  Stmt body = let_stmt(outer, first->min + floordiv(fused, width),
                       let_stmt(inner, second->min + floormod(fused, width), second->body));
  replace(first, make_for(fused, make_int(0), make_int(m * n), body, first->for_kind));
  return fused;
}

Status Schedule::reorder(const std::vector<PrimExpr>& loops) {
  if (loops.empty()) return Ok{};
  // The perfect nest between the outermost and innermost of them.
  std::vector<const ForNode*> chain;
  size_t left = loops.size();
  auto listed = [&](const ForNode* loop) { return std::count(loops.begin(), loops.end(), loop->var) > 0; };
  for (const PrimExpr& var : loops) {
    TW_TRY(find(var));
    if (std::count(loops.begin(), loops.end(), var) > 1)
      return refused(format("loop '{}' is listed twice", name_of(var)));
  }
  for_each_stmt(stmt_, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    if (!loop || left == 0 || (chain.empty() ? !listed(loop) : only_loop_in(chain.back()->body) != loop)) return;
    chain.push_back(loop);
    if (listed(loop)) --left;
  });
  if (left > 0) return refused(format("loop '{}' and the others are no perfect nest", name_of(loops.front())));
  std::vector<const ForNode*> order;
  size_t next = 0;
  for (const ForNode* loop : chain) {
    if (!listed(loop)) {
      order.push_back(loop);
      continue;
    }
    const PrimExpr& var = loops[next++];
    order.push_back(*std::find_if(chain.begin(), chain.end(), [&](const ForNode* l) { return l->var == var; }));
  }
  // Two loops may be exchanged if the outer one carries no dependence, or no dependence has a component along the inner
  // one, in any iteration of the enclosing loops.
  Dependence dependence(stmt_);
  auto along = [&](const ForNode* loop) {
    std::unordered_set<const ExprNode*> around;
    for (const ForNode* other : chain) {
      if (other == loop) break;
      around.insert(other->var.get());
    }
    return dependence.carried_by(loop, around);
  };
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (uses(order[i]->min, order[j]->var.get()) || uses(order[i]->extent, order[j]->var.get()))
        return refused(
            format("the bounds of loop '{}' need loop '{}' around it", name_of(order[i]->var), name_of(order[j]->var)));
      const bool swapped =
          std::find(chain.begin(), chain.end(), order[i]) > std::find(chain.begin(), chain.end(), order[j]);
      if (!swapped || !dependence.carried_by(order[j])) continue;
      if (const BufferNode* buffer = along(order[i]))
        return refused(
            format("loops '{}' and '{}' cannot change places: iterations of both may use the same element of '{}'",
                   name_of(order[j]->var), name_of(order[i]->var), buffer->name));
    }
  Stmt body = chain.back()->body;
  for (size_t i = order.size(); i-- > 0;)
    body = make_for(order[i]->var, order[i]->min, order[i]->extent, body, order[i]->for_kind);
  replace(chain.front(), body);
  return Ok{};
}

Status Schedule::unroll(const PrimExpr& var) {
  const ForNode* loop = TW_TRY(find(var));
  TW_TRY(constant_extent(loop, "unrolled"));
  replace(loop, make_for(loop->var, loop->min, loop->extent, loop->body, ForKind::kUnrolled));
  return Ok{};
}

Status Schedule::vectorize(const PrimExpr& var) {
  const ForNode* loop = TW_TRY(find(var));
  TW_TRY(constant_extent(loop, "vectorized"));
  TW_TRY_STATUS(independent(var));
  replace(loop, make_for(loop->var, loop->min, loop->extent, loop->body, ForKind::kVectorized));
  return Ok{};
}

Result<PrimExpr> Schedule::parallelize(const std::vector<PrimExpr>& loops, const PrimExpr& tid,
                                       const PrimExpr& nthreads) {
  if (loops.empty()) return refused("no loop is given to divide among threads");
  const ForNode* first = TW_TRY(find(loops.front()));
  if (as<ForNode>(stmt_) != first)
    return refused(
        format("loop '{}' is not the outermost statement: each thread would do the others", name_of(loops.front())));
  for (const PrimExpr& var : loops) TW_TRY_STATUS(independent(var));
  PrimExpr fused = loops.back();
  for (size_t i = loops.size() - 1; i-- > 0;) fused = TW_TRY(fuse(loops[i], fused));
  const ForNode* loop = TW_TRY(find(fused));
  const int64_t extent = TW_TRY(constant_extent(loop, "divided"));
  const Share share = thread_share(tid, nthreads, extent);
  PrimExpr begin = make_var(name_of(fused) + "_begin"), end = make_var(name_of(fused) + "_end");
  Stmt part = make_for(loop->var, loop->min + begin, end - begin, loop->body, loop->for_kind);
  replace(loop, let_stmt(begin, share.begin, let_stmt(end, share.end, part)));
  return fused;
}

Status Schedule::cache_write(const Buffer& buffer, const PrimExpr& var) {
  const ForNode* loop = TW_TRY(find(var));
  // All accesses must have the same index, which the loop does not change.
  PrimExpr index;
  bool one = true, written = false;
  auto use = [&](const PrimExpr& at, const PrimExpr& mask) {
    one = one && !mask && (!index || same(at, index));
    if (!index) index = at;
  };
  std::vector<PrimExpr> bound{loop->var};
  for_each_stmt(loop->body, [&](const Stmt& s) {
    if (const auto* store = as<StoreNode>(s); store && store->buffer == buffer)
      use(store->index, store->mask), written = true;
    if (const auto* inner = as<ForNode>(s)) bound.push_back(inner->var);
    if (const auto* let = as<LetStmtNode>(s)) bound.push_back(let->var);
  });
  for_each_expr(loop->body, [&](const PrimExpr& e) {
    if (const auto* load = as<LoadNode>(e); load && load->buffer == buffer) use(load->index, load->mask);
  });
  if (!written) return refused(format("loop '{}' does not write to '{}'", name_of(var), buffer->name));
  bool invariant = one && index->dtype.lanes == 1;
  for (const PrimExpr& v : bound) invariant = invariant && !uses(index, v.get());
  for_each_expr(index, [&](const PrimExpr& e) { invariant = invariant && e->kind != ExprKind::kLoad; });
  if (!invariant) return refused(format("loop '{}' uses more than one element of '{}'", name_of(var), buffer->name));
  Buffer cache = make_buffer(buffer->name + "_cache", buffer->dtype, 1, Scope::kRegister);
  std::function<Stmt(const Stmt&)> on_stmt;
  auto on_expr = [&](const PrimExpr& e) {
    return mutate(e, [&](const PrimExpr& part) {
      const auto* load = as<LoadNode>(part);
      return load && load->buffer == buffer ? tir::load(cache, make_int(0)) : part;
    });
  };
  on_stmt = [&](const Stmt& s) -> Stmt {
    if (const auto* store = as<StoreNode>(s); store && store->buffer == buffer)
      return tir::store(cache, make_int(0), on_expr(store->value));
    return map_children(s, on_expr, on_stmt);
  };
  Stmt body = make_for(loop->var, loop->min, loop->extent, on_stmt(loop->body), loop->for_kind);
  replace(loop, allocate(cache, seq({tir::store(cache, make_int(0), load(buffer, index)), body,
                                     tir::store(buffer, index, load(cache, make_int(0)))})));
  return Ok{};
}

}  // namespace tilewright::tir
