// SPDX-License-Identifier: Apache-2.0
// Schedule steps that move blocks, or inline them into others.
#include <algorithm>
#include <functional>
#include <map>

#include "base/format.h"
#include "te/block_parts.h"
#include "te/block_schedule.h"
#include "te/widen.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::BlockNode;
using tir::ForNode;
using tir::Stmt;

// Converts index arithmetic to int64 for region analysis, and back.
class BlockIndices {
 public:
  void add(const ForNode& loop) {
    const PrimExpr var = tir::make_var(variable_name(loop.var));
    const auto n = tir::as_const_int(loop.extent), first = tir::as_const_int(loop.min);
    const bool known = n && first;
    scopes.add(var, {known ? *first : -(int64_t{1} << 40), known ? *first + *n - 1 : int64_t{1} << 40});
    wide_.bind(loop.var, var);
    narrow_[var.get()] = loop.var;
    of_[loop.var.get()] = var;
  }
  void bind(const PrimExpr& var, PrimExpr value) { wide_.bind(var, std::move(value)); }
  PrimExpr wide(const PrimExpr& e) { return scopes.simplify(wide_.index(e)); }
  const PrimExpr& var_of(const ForNode& loop) const { return of_.at(loop.var.get()); }
  PrimExpr narrow(const PrimExpr& e, DataType t) const {
    if (auto c = tir::as_const_int(e)) return tir::make_int(*c, t);
    if (auto found = narrow_.find(e.get()); found != narrow_.end()) return tir::cast(t, found->second);
    if (const auto* n = tir::as<tir::CastNode>(e); n && n->value->dtype == t) return n->value;
    if (tir::is_binary(e->kind) && e->dtype == kInt64) {
      const auto& n = static_cast<const tir::BinaryNode&>(*e);
      return tir::binary(e->kind, narrow(n.a, t), narrow(n.b, t));
    }
    return tir::cast(t, tir::map_children(e, [&](const PrimExpr& child) {
                       return child->dtype == kInt64 ? tir::cast(kInt64, narrow(child, t)) : child;
                     }));
  }
  Scopes scopes;

 private:
  Widening wide_{[](const tir::ReadNode& r, std::vector<PrimExpr> i) {
    return tir::read(r.dtype, r.source, r.name, std::move(i));
  }};
  std::map<const tir::ExprNode*, PrimExpr> narrow_, of_;
};

namespace {

std::optional<int64_t> length_of(const Region& r, const BlockIndices& indices) {
  return tir::as_const_int(indices.scopes.simplify(r.hi - r.lo + 1));
}

// Creates loops over these pieces of the block's axes, and over all of the other axes. Where a piece may exceed an
// axis, a predicate guards it.
Stmt nest_over(const BlockNode& b, BlockIndices& indices, const BlockPieces& pieces) {
  std::vector<tir::BlockAxis> axes = b.axes;
  std::vector<PrimExpr> loops, extents;
  PrimExpr predicate;
  for (size_t i = 0; i < axes.size(); ++i) {
    tir::BlockAxis& a = axes[i];
    const DataType t = a.var->dtype;
    loops.push_back(tir::make_var(format("ax{}", i), t));
    const auto found = pieces.find(a.var.get());
    extents.push_back(found == pieces.end() ? a.extent : tir::make_int(found->second.length, t));
    a.value = (found == pieces.end() ? a.min : indices.narrow(found->second.lo, t)) + loops.back();
    if (found == pieces.end()) continue;
    const bool above = indices.scopes.proves(tir::ge(found->second.lo, indices.wide(a.min)));
    const bool below =
        indices.scopes.proves(tir::le(found->second.lo + found->second.length, indices.wide(a.min + a.extent)));
    for (const PrimExpr& c :
         {above ? PrimExpr() : tir::ge(a.value, a.min), below ? PrimExpr() : tir::lt(a.value, a.min + a.extent)})
      if (c) predicate = predicate ? tir::logical_and(predicate, c) : c;
  }
  Stmt out = make_node<BlockNode>(b.name, std::move(axes), predicate, b.init, b.body, b.memory, b.annotations);
  for (size_t i = loops.size(); i-- > 0;)
    out = tir::make_for(loops[i], tir::make_int(0, loops[i]->dtype), extents[i], out);
  return out;
}

// The statements outside of computing blocks.
Stmt without_blocks(const Stmt& s) {
  if (const auto* b = tir::as<BlockNode>(s); b && !b->axes.empty()) return tir::seq({});
  return tir::map_children(
      s, [](const PrimExpr& e) { return e; }, without_blocks);
}

// Whether the block's indices only use variables bound by its axes and the loops around it.
bool bound_only(const BlockNode& b) {
  bool plain = true;
  tir::for_each_stmt(b.body, [&](const Stmt& s) {
    plain = plain && s->kind != tir::StmtKind::kFor && s->kind != tir::StmtKind::kWhile &&
            s->kind != tir::StmtKind::kLetStmt && s->kind != tir::StmtKind::kBlock &&
            s->kind != tir::StmtKind::kCallExtern;
  });
  tir::for_each_expr(b.body, [&](const PrimExpr& e) { plain = plain && e->kind != tir::ExprKind::kLet; });
  return plain;
}

}  // namespace

// Checks that the block's loops contain only the block.
Status BlockSchedule::alone(const Site& site, const std::string& block, const char* step) const {
  const Stmt top = top_level(site);
  bool below = false, single = true;
  for (const Stmt& s : site.path) {
    below = below || s == top;
    single = single && (!below || s == site.stmt() || s->kind == tir::StmtKind::kFor);
  }
  if (single) return Ok{};
  return refused(format("block {}", block), "other blocks are computed in its loops",
                 format("call {} before blocks are moved into one nest", step));
}

// Checks that no other block writes the same array: the init of a decomposed reduction, or a called function.
Status BlockSchedule::only_writer(const Plain& p) const {
  if (!writes_array(replaced(function_.body, Stmt(p.block), tir::seq({})), p.array.get())) return Ok{};
  return refused(format("block {}", p.block->name), format("'{}' is written elsewhere, too", p.array->name),
                 "do this before decompose_reduction");
}

// Blocks inside a vectorised loop would not be executed one after another.
Status BlockSchedule::no_vectors(const Site& to, const std::string& block) const {
  for (const Stmt& s : to.path)
    if (const auto* n = tir::as<ForNode>(s); n && n->for_kind == tir::ForKind::kVectorized)
      return refused(format("block {}", block), format("the loop '{}' is vectorized", variable_name(n->var)),
                     "vectorize after blocks are moved");
  return Ok{};
}

// Checks that moving across the statements in between is valid: neither affects the other. `up`: the block moves to the
// first of them.
Status BlockSchedule::nothing_between(const Stmt& first, const Stmt& second, const Plain& p, bool up) const {
  const Stmt moved(p.block);
  const std::string where = format("block {}", p.block->name);
  bool between = false, ordered = false;
  for (const Stmt& s : statements()) {
    if (s == second) {
      ordered = between;
      between = false;
    }
    if (between || (up && s == first) || (!up && s == second && ordered)) {
      bool changed = false;
      for (const Ref<Node>& in : inputs_of(moved)) changed = changed || (writes_array(s, in.get()) && (between || !up));
      if (changed) return refused(where, "what it reads is written between it and the loop");
      if (up && (reads_array(s, p.array.get()) || writes_array(s, p.array.get())))
        return refused(where, format("'{}' is used before", p.array->name));
    }
    if (s == first) between = true;
  }
  if (!ordered) return refused(where, up ? "it comes before the loop" : "it comes after the loop");
  return Ok{};
}

Status BlockSchedule::compute_inline(const std::string& block) {
  const Plain p = TW_TRY(plain(block));
  const Site site = TW_TRY(site_of(block));
  const std::string where = format("block {}", block);
  if (p.block->init || p.accumulates)
    return refused(where, "a reduction cannot be written into another expression", "use compute_at");
  if (is_argument(p.array.get())) return refused(where, "it computes an argument", "inline what others read");
  TW_TRY_STATUS(only_writer(p));
  bool scalar = true, later = false, found = false;
  auto look = [&](const PrimExpr& e) {
    const auto* n = tir::as<tir::ReadNode>(e);
    if (!n || n->source.get() != p.array.get()) return;
    found = true;
    scalar = scalar && n->dtype.lanes == 1 && n->indices.size() == p.index.size();
    for (const PrimExpr& i : n->indices) scalar = scalar && i->dtype.lanes == 1;
  };
  tir::for_each_expr(function_.body, look);
  if (!found) return refused(where, "nothing reads it");
  if (!scalar)
    return refused(where, format("several elements of '{}' are read at once, or by a flat index", p.array->name));
  bool after = false;
  for (const Stmt& s : statements()) {
    if (after)
      for (const Ref<Node>& in : inputs_of(Stmt(p.block))) later = later || writes_array(s, in.get());
    after = after || s == top_level(site);
  }
  if (later) return refused(where, "what it reads is written again after it");
  replace(site.stmt(), tir::seq({}));
  function_.body = tir::mutate(function_.body, [&](const PrimExpr& e) -> PrimExpr {
    const auto* n = tir::as<tir::ReadNode>(e);
    if (!n || n->source.get() != p.array.get()) return e;
    tir::Substitution at;
    for (size_t d = 0; d < p.index.size(); ++d)
      if (p.index[d]->kind == tir::ExprKind::kVar) at[p.index[d].get()] = tir::cast(p.index[d]->dtype, n->indices[d]);
    for (const tir::BlockAxis& a : p.block->axes)
      if (!at.count(a.var.get())) at[a.var.get()] = a.min;
    return tir::substitute(p.value, at);
  });
  tidy();
  return Ok{};
}

Status BlockSchedule::reverse_compute_inline(const std::string& block) {
  const Plain p = TW_TRY(plain(block));
  const Site site = TW_TRY(site_of(block));
  const std::string where = format("block {}", block);
  if (p.block->init || p.accumulates) return refused(where, "it is a reduction, or adds to what was there");
  TW_TRY_STATUS(alone(site, block, "reverse_compute_inline"));
  TW_TRY_STATUS(only_writer(p));
  const tir::ReadNode* found = nullptr;
  std::string producer;
  for (const PlacedBlock& b : blocks_in(function_.body)) {
    if (b.block == p.block) continue;
    const Stmt s(b.block);
    for (const Ref<Node>& in : inputs_of(site.stmt()))
      if (writes_array(s, in.get()) && !is_argument(tir::array_of(in))) {
        if (!producer.empty()) return refused(where, "it reads what several blocks compute", "compute_at them");
        producer = b.block->name;
      }
  }
  if (producer.empty()) return refused(where, "no block computes what it reads");
  const Plain from = TW_TRY(plain(producer));
  if (from.block->init || from.accumulates)
    return refused(where, format("'{}' is a reduction", producer), "use reverse_compute_at");
  TW_TRY_STATUS(only_writer(from));
  if (from.block->predicate) return refused(where, format("the loops of '{}' have a rest", producer));
  bool same = true, many = false;
  tir::for_each_expr(p.value, [&](const PrimExpr& e) {
    const auto* n = tir::as<tir::ReadNode>(e);
    if (!n || n->source.get() != from.array.get()) return;
    many = many || (found && found->indices != n->indices);
    found = n;
    same = same && n->indices.size() == p.index.size() && n->indices.size() == from.index.size();
  });
  many = many || reads_array(replaced(function_.body, site.stmt(), tir::seq({})), from.array.get());
  if (!found || many || !same) return refused(where, format("'{}' is not only read by it, once", from.array->name));
  tir::Substitution at;  // this block's axes in terms of the producer's
  for (size_t d = 0; d < found->indices.size(); ++d) {
    if (found->indices[d]->kind != tir::ExprKind::kVar || !(found->indices[d] == p.index[d]))
      return refused(where, format("it reads '{}' at other indices than it writes", from.array->name));
    at[p.index[d].get()] = tir::cast(p.index[d]->dtype, from.index[d]);
  }
  for (size_t d = 0; d < p.index.size(); ++d)
    if (tir::as_const_int(p.array->shape[d]) != tir::as_const_int(from.array->shape[d]) ||
        (!tir::as_const_int(p.array->shape[d]) && !(p.array->shape[d] == from.array->shape[d])))
      return refused(where, "what it writes has another shape than what it reads");
  const PrimExpr value = tir::mutate(tir::substitute(p.value, at), [&](const PrimExpr& e) -> PrimExpr {
    const auto* n = tir::as<tir::ReadNode>(e);
    return n && n->source.get() == from.array.get() ? from.value : e;
  });
  for (const PrimExpr& i : from.index)
    if (i->kind != tir::ExprKind::kVar) return refused(where, format("'{}' writes at a fixed index", producer));
  TW_TRY_STATUS(whole_array(p));
  const Site target = TW_TRY(site_of(producer));
  TW_TRY_STATUS(alone(target, producer, "reverse_compute_inline"));
  TW_TRY_STATUS(nothing_between(top_level(target), top_level(site), p, true));
  const BlockNode& b = *from.block;
  const Stmt body = tir::write(p.array, from.index, value);
  const Stmt made = make_node<BlockNode>(b.name, b.axes, b.predicate, b.init, body, b.memory, b.annotations);
  replace(site.stmt(), tir::seq({}));
  replace(target.stmt(), made);
  tidy();
  return Ok{};
}

Status BlockSchedule::compute_at(const std::string& block, const PrimExpr& loop) {
  const Plain p = TW_TRY(plain(block));
  const Site from = TW_TRY(site_of(block)), to = TW_TRY(site_of(loop));
  const std::string where = format("block {}", block);
  if (is_argument(p.array.get())) return refused(where, "it computes an argument", "move what others read");
  if (p.accumulates) return refused(where, "it adds to what was there before");
  TW_TRY_STATUS(alone(from, block, "compute_at"));
  TW_TRY_STATUS(only_writer(p));
  TW_TRY_STATUS(no_vectors(to, block));
  const Stmt home = top_level(to), own = top_level(from);
  if (home == own) return refused(where, "the loop is its own");
  const auto& target = static_cast<const ForNode&>(*to.stmt());
  if (!reads_array(target.body, p.array.get())) return refused(where, "nothing in the loop reads it");
  const Stmt outside = replaced(replaced(function_.body, to.stmt(), tir::seq({})), own, tir::seq({}));
  if (reads_array(outside, p.array.get()))
    return refused(where, format("'{}' is read outside of the loop, too", p.array->name),
                   "take a loop around all that reads it");
  TW_TRY_STATUS(nothing_between(own, home, p, false));

  std::vector<std::optional<Region>> region(p.index.size());
  // Accesses outside of blocks, or in a block's inner loops, may be anywhere.
  std::vector<bool> anywhere(p.index.size(), reads_array(without_blocks(target.body), p.array.get()));
  BlockIndices indices;
  for (const Stmt& s : to.path)
    if (const auto* n = tir::as<ForNode>(s)) indices.add(*n);
  for (const PlacedBlock& reader : blocks_in(target.body)) {
    Running running;
    bool known = true;
    for (const ForNode* l : reader.loops) {
      indices.add(*l);
      const auto last = region_of(indices.wide(l->min + l->extent - 1), running, indices.scopes);
      const auto first = region_of(indices.wide(l->min), running, indices.scopes);
      known = known && first && last;
      if (known) running[indices.var_of(*l).get()] = {first->lo, last->hi};
    }
    for (const tir::BlockAxis& a : reader.block->axes) indices.bind(a.var, indices.wide(a.value));
    known = known && bound_only(*reader.block);
    tir::for_each_expr(Stmt(reader.block), [&](const PrimExpr& e) {
      const auto* n = tir::as<tir::ReadNode>(e);
      if (!n || n->source.get() != p.array.get()) return;
      for (size_t d = 0; d < region.size(); ++d) {
        const bool one = known && n->indices.size() == region.size() && n->dtype.lanes == 1;
        auto r = one ? region_of(indices.wide(n->indices[d]), running, indices.scopes) : std::nullopt;
        if (!r)
          anywhere[d] = true;
        else
          region[d] = region[d] ? hull(*region[d], *r, indices.scopes) : *r;
      }
    });
  }
  BlockPieces pieces;
  for (size_t d = 0; d < region.size(); ++d)
    if (region[d] && !anywhere[d] && length_of(*region[d], indices))
      pieces[p.index[d].get()] = {region[d]->lo, *length_of(*region[d], indices)};
  const Stmt nest = nest_over(*p.block, indices, pieces);
  replace(to.stmt(), with_loop_body(target, tir::seq({nest, target.body})));
  replace(own, tir::seq({}));
  tidy();
  return Ok{};
}

Status BlockSchedule::finished_piece(const Plain& p, const Plain& q, const std::vector<const ForNode*>& within,
                                     BlockIndices* indices, BlockPieces* pieces) const {
  const std::string where = format("block {}", p.block->name);
  Running running;
  for (const ForNode* l : within) {
    indices->add(*l);
    const auto n = tir::as_const_int(l->extent);
    if (!n || tir::as_const_int(l->min) != 0)
      return refused(where, format("the loop '{}' has no constant number of iterations", variable_name(l->var)));
    running[indices->var_of(*l).get()] = {tir::make_int(0), tir::make_int(*n - 1)};
  }
  const tir::ReadNode* read = nullptr;
  bool one = true;
  tir::for_each_expr(p.value, [&](const PrimExpr& e) {
    const auto* n = tir::as<tir::ReadNode>(e);
    if (!n || n->source.get() != q.array.get()) return;
    one = one && (!read || read->indices == n->indices) && n->indices.size() == q.index.size();
    read = n;
  });
  if (!read || !one) return refused(where, format("it reads '{}' at several places", q.array->name));
  for (size_t d = 0; d < q.index.size(); ++d) {
    if (q.index[d]->kind != tir::ExprKind::kVar) continue;
    const auto axis = std::find_if(q.block->axes.begin(), q.block->axes.end(),
                                   [&](const tir::BlockAxis& a) { return a.var == q.index[d]; });
    const PrimExpr value = indices->wide(axis->value);
    const auto r = region_of(value, running, indices->scopes);
    const int64_t count = r ? length_of(*r, *indices).value_or(-1) : -1;
    int64_t covered = 1;
    for (const ForNode* l : within) {
      if (tir::uses(value, indices->var_of(*l).get())) covered *= *tir::as_const_int(l->extent);
    }
    if (count != covered)
      return refused(where, format("one iteration of the loop computes no contiguous piece of '{}'", q.array->name));
    if (read->indices[d]->kind != tir::ExprKind::kVar)
      return refused(where, format("it reads '{}' at computed indices", q.array->name),
                     "use compute_at for what it reads");
    auto [it, fresh] = pieces->try_emplace(read->indices[d].get(), BlockPiece{r->lo, count});
    if (!fresh && !(indices->scopes.proves(tir::eq(it->second.lo, r->lo)) && it->second.length == count))
      return refused(where, "it reads different pieces of what the loop computes");
  }
  return Ok{};
}

Status BlockSchedule::reverse_compute_at(const std::string& block, const PrimExpr& loop) {
  const Plain p = TW_TRY(plain(block));
  const Site from = TW_TRY(site_of(block)), to = TW_TRY(site_of(loop));
  const std::string where = format("block {}", block);
  if (p.block->init || p.accumulates)
    return refused(where, "it is a reduction, or adds to what was there", "move what it reads with compute_at");
  TW_TRY_STATUS(alone(from, block, "reverse_compute_at"));
  TW_TRY_STATUS(only_writer(p));
  TW_TRY_STATUS(no_vectors(to, block));
  const Stmt home = top_level(to), own = top_level(from);
  if (home == own) return refused(where, "the loop is its own");
  const auto& target = static_cast<const ForNode&>(*to.stmt());
  BlockIndices indices;
  for (const Stmt& s : to.path)
    if (const auto* n = tir::as<ForNode>(s)) indices.add(*n);
  BlockPieces pieces;
  bool any = false;
  for (const Ref<Node>& in : inputs_of(from.stmt()))
    if (writes_array(without_blocks(home), in.get()))
      return refused(where, "what it reads is computed outside of blocks", "put each computation into a T.block");
  for (const PlacedBlock& b : blocks_in(home)) {
    const Plain q = TW_TRY(plain(b.block->name));
    if (!reads_array(from.stmt(), q.array.get())) continue;
    any = true;
    bool inside = false;
    std::vector<const ForNode*> around, within;
    for (const ForNode* l : b.loops) {
      (inside ? within : around).push_back(l);
      inside = inside || l->var == loop;
    }
    if (!inside) return refused(where, format("'{}', which it reads, is not computed in the loop", q.array->name));
    for (const tir::BlockAxis& a : b.block->axes)
      for (const ForNode* l : around)
        if (a.reduces && tir::uses(a.value, l->var.get()))
          return refused(where,
                         format("the reduction of '{}' is not finished in one iteration of the loop", b.block->name),
                         "take a loop outside of the reduction's");
    TW_TRY_STATUS(finished_piece(p, q, within, &indices, &pieces));
  }
  if (!any) return refused(where, "the loop computes nothing that it reads");
  TW_TRY_STATUS(nothing_between(home, own, p, true));
  const Stmt nest = nest_over(*p.block, indices, pieces);
  replace(to.stmt(), with_loop_body(target, tir::seq({target.body, nest})));
  replace(own, tir::seq({}));
  tidy();
  return Ok{};
}

}  // namespace tilewright::te
