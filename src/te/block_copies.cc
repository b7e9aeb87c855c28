// SPDX-License-Identifier: Apache-2.0
// Schedule steps that add blocks: caches of what a block reads or writes, decomposed reductions, rfactor.
#include <algorithm>
#include <map>
#include <optional>

#include "base/format.h"
#include "te/block_parts.h"
#include "te/block_schedule.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::BlockNode;
using tir::ForNode;
using tir::Stmt;

namespace {

bool uses_any_of(const PrimExpr& e, const std::vector<const ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const ForNode* l) { return tir::uses(e, l->var.get()); });
}

// The other operand of a combination (sum, product, minimum, maximum) with the element.
struct Combination {
  PrimExpr with;
  Reduction kind;
};
std::optional<Combination> combination_of(const PrimExpr& value, const Node* array) {
  static const std::map<tir::ExprKind, Reduction> kKinds = {{tir::ExprKind::kAdd, Reduction::kSum},
                                                            {tir::ExprKind::kMul, Reduction::kProd},
                                                            {tir::ExprKind::kMin, Reduction::kMin},
                                                            {tir::ExprKind::kMax, Reduction::kMax}};
  const auto found = kKinds.find(value->kind);
  if (found == kKinds.end()) return std::nullopt;
  const auto& n = static_cast<const tir::BinaryNode&>(*value);
  auto own = [&](const PrimExpr& e) {
    const auto* read = tir::as<tir::ReadNode>(e);
    return read && read->source.get() == array;
  };
  auto inside = [&](const PrimExpr& e) {
    bool any = false;
    tir::for_each_expr(e, [&](const PrimExpr& part) { any = any || own(part); });
    return any;
  };
  if (own(n.a) && !inside(n.b)) return Combination{n.b, found->second};
  if (own(n.b) && !inside(n.a)) return Combination{n.a, found->second};
  return std::nullopt;
}

}  // namespace

Status BlockSchedule::whole_array(const Plain& p) const {
  const Scopes scopes;
  for (size_t d = 0; d < p.index.size(); ++d) {
    PrimExpr extent = tir::make_int(1), min = tir::make_int(0);
    for (const tir::BlockAxis& a : p.block->axes)
      if (a.var == p.index[d]) extent = a.extent, min = a.min;
    const DataType t = p.array->shape[d]->dtype;
    if (tir::as_const_int(min) != 0 || !scopes.proves(tir::eq(tir::cast(t, extent), p.array->shape[d])))
      return refused(format("block {}", p.block->name), format("it writes a part of '{}' only", p.array->name));
  }
  return Ok{};
}

Result<std::vector<std::string>> BlockSchedule::producers(const std::string& block) const {
  const Site site = TW_TRY(site_of(block));
  std::vector<std::string> out;
  const std::vector<Ref<Node>> in = inputs_of(site.stmt());
  for (const PlacedBlock& b : blocks_in(function_.body))
    if (b.block != site.stmt().get() && std::any_of(in.begin(), in.end(), [&](const Ref<Node>& array) {
          return writes_array(Stmt(b.block), array.get());
        }))
      out.push_back(b.block->name);
  return out;
}

Result<std::vector<std::string>> BlockSchedule::consumers(const std::string& block) const {
  const Site site = TW_TRY(site_of(block));
  std::vector<std::string> out;
  for (const PlacedBlock& b : blocks_in(function_.body)) {
    if (b.block == site.stmt().get()) continue;
    const std::vector<Ref<Node>> in = inputs_of(Stmt(b.block));
    if (std::any_of(in.begin(), in.end(),
                    [&](const Ref<Node>& array) { return writes_array(site.stmt(), array.get()); }))
      out.push_back(b.block->name);
  }
  return out;
}

Status BlockSchedule::set_scope(const std::string& block, size_t index, const std::string& scope) {
  const Plain p = TW_TRY(plain(block));
  const std::string where = format("block {}", block);
  if (index > 0) return refused(where, format("it writes 1 array, and there is no number {}", index));
  if (is_argument(p.array.get())) return refused(where, format("'{}' is an argument", p.array->name));
  const tir::Array to = tir::make_array(p.array->name, p.array->dtype, p.array->shape, scope, p.array->strides);
  function_.body = tir::mutate(
      function_.body,
      [&](const PrimExpr& e) -> PrimExpr {
        const auto* n = tir::as<tir::ReadNode>(e);
        return n && n->source == Ref<Node>(p.array) ? tir::read(n->dtype, to, to->name, n->indices) : e;
      },
      [&](const Stmt& s) -> Stmt {
        const auto* n = tir::as<tir::WriteNode>(s);
        return n && n->target == Ref<Node>(p.array) ? tir::write(Ref<Node>(to), to->name, n->indices, n->value) : s;
      });
  add_array(to);
  tidy();
  return Ok{};
}

Result<std::string> BlockSchedule::cache_read(const std::string& block, size_t index, const std::string& scope) {
  const Site site = TW_TRY(site_of(block));
  const std::vector<Ref<Node>> in = inputs_of(site.stmt());
  if (index >= in.size())
    return refused(format("block {}", block),
                   format("it reads {} arrays, and there is no number {}", in.size(), index));
  if (writes_array(top_level(site), in[index].get()))
    return refused(format("block {}", block), "what it reads is computed in the same nest",
                   "call cache_read before blocks are moved into one nest");
  return cached(block, tir::Array(tir::array_of(in[index])), scope, true);
}

Result<std::string> BlockSchedule::cache_write(const std::string& block, size_t index, const std::string& scope) {
  const Plain p = TW_TRY(plain(block));
  const Site site = TW_TRY(site_of(block));
  if (index > 0)
    return refused(format("block {}", block), format("it writes 1 array, and there is no number {}", index));
  if (p.accumulates) return refused(format("block {}", block), "it adds to what was there before");
  TW_TRY_STATUS(alone(site, block, "cache_write"));
  TW_TRY_STATUS(only_writer(p));
  TW_TRY_STATUS(whole_array(p));
  return cached(block, p.array, scope, false);
}

Result<std::string> BlockSchedule::cached(const std::string& block, const tir::Array& array, const std::string& scope,
                                          bool is_read) {
  const Site site = TW_TRY(site_of(block));
  const std::string name = fresh_name(format("{}_{}", array->name, scope));
  const tir::Array copy = tir::make_array(name, array->dtype, array->shape, scope);
  std::vector<PrimExpr> loops, index;
  std::vector<tir::BlockAxis> axes;
  for (size_t d = 0; d < array->shape.size(); ++d) {
    const DataType t = array->shape[d]->dtype;
    loops.push_back(tir::make_var(format("ax{}", d), t));
    index.push_back(tir::make_var(format("v{}", d), t));
    axes.push_back({index.back(), tir::make_int(0, t), array->shape[d], false, loops.back()});
  }
  const tir::Array &to = is_read ? copy : array, &from = is_read ? array : copy;
  Stmt nest = make_node<BlockNode>(name, axes, PrimExpr(), Stmt(), tir::write(to, index, tir::read(from, index)),
                                   std::vector<Ref<Node>>());
  for (size_t d = loops.size(); d-- > 0;)
    nest = tir::make_for(loops[d], tir::make_int(0, loops[d]->dtype), axes[d].extent, nest);
  const auto& b = static_cast<const BlockNode&>(*site.stmt());
  auto on_expr = [&](const PrimExpr& e) -> PrimExpr {
    const auto* n = tir::as<tir::ReadNode>(e);
    return n && n->source == Ref<Node>(array) ? tir::read(n->dtype, copy, copy->name, n->indices) : e;
  };
  auto on_stmt = [&](const Stmt& s) -> Stmt {
    const auto* n = tir::as<tir::WriteNode>(s);
    return n && n->target == Ref<Node>(array) ? tir::write(copy, n->indices, n->value) : s;
  };
  const Stmt body = tir::mutate(b.body, on_expr, on_stmt),
             init = b.init ? tir::mutate(b.init, on_expr, on_stmt) : Stmt();
  const Stmt changed = make_node<BlockNode>(b.name, b.axes, b.predicate, init, body, b.memory, b.annotations);
  const Stmt home = top_level(site), whole = replaced(home, site.stmt(), changed);
  replace(home, is_read ? tir::seq({nest, whole}) : tir::seq({whole, nest}));
  add_array(copy);
  trusted_.insert(name);
  return name;
}

Result<BlockSchedule::Parts> BlockSchedule::decompose_reduction(const std::string& block, const PrimExpr& loop) {
  const Plain p = TW_TRY(plain(block));
  const Site site = TW_TRY(site_of(block)), at = TW_TRY(site_of(loop));
  const std::string where = format("block {}", block);
  if (!p.block->init) return refused(where, "it is no reduction, or is decomposed already");
  std::vector<const ForNode*> above, within;
  bool inside = false;
  for (const Stmt& s : site.path) {
    const auto* n = tir::as<ForNode>(s);
    inside = inside || (n && n->var == loop);
    if (n) (inside ? within : above).push_back(n);
    if (inside && !n && s != site.stmt())
      return refused(where, "between the loop and the block stand several statements",
                     "take a loop of the block's own");
  }
  if (!inside) return refused(where, format("'{}' is none of its loops", variable_name(loop)), "give one of get_loops");
  for (const tir::BlockAxis& a : p.block->axes)
    if (a.reduces && uses_any_of(a.value, above))
      return refused(where, "a loop around the given one runs over its reduction",
                     "give the outermost of those loops, or one around");
  std::vector<const ForNode*> kept, dropped;
  for (const ForNode* l : within) {
    bool data = false;
    for (const tir::BlockAxis& a : p.block->axes) data = data || (!a.reduces && uses_any_of(a.value, {l}));
    (data ? kept : dropped).push_back(l);
  }
  if (p.block->predicate && uses_any_of(p.block->predicate, dropped))
    return refused(where, "its reduction's loops have a rest", "split the reduction by a number that divides it");
  tir::Substitution fresh;
  std::vector<PrimExpr> loops;
  for (const ForNode* l : kept) {
    loops.push_back(tir::make_var(variable_name(l->var) + "_init", l->var->dtype));
    fresh[l->var.get()] = loops.back();
  }
  std::vector<tir::BlockAxis> axes;
  tir::Substitution vars;
  for (const tir::BlockAxis& a : p.block->axes) {
    if (a.reduces) continue;
    const PrimExpr var = tir::make_var(variable_name(a.var) + "_init", a.var->dtype);
    vars[a.var.get()] = var;
    axes.push_back({var, a.min, a.extent, false, tir::substitute(a.value, fresh)});
  }
  for (const ForNode* l : within)
    if (l->for_kind == tir::ForKind::kVectorized && l != within.back())
      return refused(where, "a vectorized loop holds other loops", "vectorize after decompose_reduction");
  const std::string start = fresh_name(block + "_init"), update = fresh_name(block + "_update");
  Stmt init =
      make_node<BlockNode>(start, axes, p.block->predicate ? tir::substitute(p.block->predicate, fresh) : PrimExpr(),
                           Stmt(), tir::substitute(p.block->init, vars), std::vector<Ref<Node>>());
  for (size_t i = kept.size(); i-- > 0;)
    init = tir::make_for(loops[i], kept[i]->min, kept[i]->extent, init,
                         kept[i]->for_kind == tir::ForKind::kVectorized ? kept[i]->for_kind : tir::ForKind::kSerial);
  const BlockNode& b = *p.block;
  const Stmt rest = make_node<BlockNode>(update, b.axes, b.predicate, Stmt(), b.body, b.memory, b.annotations);
  const Stmt whole = replaced(at.stmt(), site.stmt(), rest);
  replace(at.stmt(), tir::seq({init, whole}));
  trusted_.insert(start), trusted_.insert(update);
  return Parts{start, update};
}

Result<std::string> BlockSchedule::rfactor(const std::string& block, const PrimExpr& loop, int64_t factor_axis) {
  const Plain p = TW_TRY(plain(block));
  const Site site = TW_TRY(site_of(block)), at = TW_TRY(site_of(loop));
  const std::string where = format("block {}", block);
  const BlockNode& b = *p.block;
  if (!b.init) return refused(where, "it is no reduction, or is decomposed already");
  TW_TRY_STATUS(alone(site, block, "rfactor"));
  TW_TRY_STATUS(only_writer(p));
  const auto combination = combination_of(p.value, p.array.get());
  if (!combination) return refused(where, "it combines by no sum, product, minimum or maximum");
  const auto rank = static_cast<int64_t>(p.index.size());
  const int64_t dimension = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  if (dimension < 0 || dimension > rank)
    return refused(where, format("its partial results have {} dimensions, and no number {}", rank + 1, factor_axis));
  std::vector<const ForNode*> data, reduced;
  for (const Stmt& s : site.path) {
    const auto* l = tir::as<ForNode>(s);
    if (!l) continue;
    bool of_data = false, of_sum = false;
    for (const tir::BlockAxis& a : b.axes)
      if (tir::uses(a.value, l->var.get())) (a.reduces ? of_sum : of_data) = true;
    if (of_data && of_sum)
      return refused(where, format("'{}' is of the data and the reduction", variable_name(l->var)));
    if (of_sum && tir::as_const_int(l->min) != 0) return refused(where, "a loop of its reduction starts at no zero");
    (of_sum ? reduced : data).push_back(l);
  }
  const auto* own = tir::as<ForNode>(at.stmt());
  if (std::find(reduced.begin(), reduced.end(), own) == reduced.end())
    return refused(where, format("'{}' is no loop of its reduction", variable_name(loop)), "give one of those");
  if (b.predicate && uses_any_of(b.predicate, reduced))
    return refused(where, "its reduction's loops have a rest", "split the reduction by a number that divides it");

  // Partial results: the factored loop becomes a data axis, the other reduction loops remain reduction axes.
  std::vector<PrimExpr> shape = p.array->shape, index = p.index;
  const DataType t = loop->dtype;
  const PrimExpr part = tir::make_var("v" + variable_name(loop), t);
  shape.insert(shape.begin() + dimension, tir::cast(shape.empty() ? t : shape[0]->dtype, own->extent));
  index.insert(index.begin() + dimension, part);
  const std::string name = fresh_name(block + "_rf");
  const tir::Array partial = tir::make_array(p.array->name + "_rf", p.array->dtype, shape);
  std::vector<tir::BlockAxis> axes;
  tir::Substitution inner;
  for (const tir::BlockAxis& a : b.axes)
    if (!a.reduces) axes.push_back(a);
  for (const ForNode* l : reduced) {
    const PrimExpr var = l == own ? part : tir::make_var("v" + variable_name(l->var), l->var->dtype);
    inner[l->var.get()] = var;
    axes.push_back({var, tir::make_int(0, l->var->dtype), l->extent, l != own, l->var});
  }
  tir::Substitution values;
  for (const tir::BlockAxis& a : b.axes)
    if (a.reduces) values[a.var.get()] = tir::substitute(a.value, inner);
  const Combiner combiner = TW_TRY(make_combiner(combination->kind, p.array->dtype));
  auto combined = [&](const PrimExpr& old, const PrimExpr& next) {
    return tir::substitute(combiner.result[0], {{combiner.lhs[0].get(), old}, {combiner.rhs[0].get(), next}});
  };
  const Stmt piece = make_node<BlockNode>(
      name, axes, b.predicate, tir::write(partial, index, combiner.identity[0]),
      tir::write(partial, index, combined(tir::read(partial, index), tir::substitute(combination->with, values))),
      b.memory, b.annotations);
  const Stmt first = replaced(top_level(site), site.stmt(), piece);

  // The block itself: over data axes and partial results.
  std::vector<const ForNode*> loops = data;
  loops.push_back(own);
  tir::Substitution fresh, vars;
  std::vector<PrimExpr> made;
  for (const ForNode* l : loops) {
    made.push_back(tir::make_var(variable_name(l->var) + "_c", l->var->dtype));
    fresh[l->var.get()] = made.back();
  }
  axes.clear();
  for (const tir::BlockAxis& a : b.axes) {
    if (a.reduces) continue;
    vars[a.var.get()] = tir::make_var(variable_name(a.var), a.var->dtype);
    axes.push_back({vars[a.var.get()], a.min, a.extent, false, tir::substitute(a.value, fresh)});
  }
  vars[part.get()] = tir::make_var(variable_name(part), t);
  axes.push_back({vars[part.get()], tir::make_int(0, t), own->extent, true, made.back()});
  std::vector<PrimExpr> to, of;
  for (const PrimExpr& i : p.index) to.push_back(tir::substitute(i, vars));
  for (const PrimExpr& i : index) of.push_back(tir::substitute(i, vars));
  Stmt last = make_node<BlockNode>(
      block, axes, b.predicate ? tir::substitute(b.predicate, fresh) : PrimExpr(), tir::substitute(b.init, vars),
      tir::write(p.array, to, combined(tir::read(p.array, to), tir::read(partial, of))), std::vector<Ref<Node>>());
  for (size_t i = loops.size(); i-- > 0;) last = tir::make_for(made[i], loops[i]->min, loops[i]->extent, last);
  replace(top_level(site), tir::seq({first, last}));
  add_array(partial);
  trusted_.insert(name);
  return name;
}

}  // namespace tilewright::te
