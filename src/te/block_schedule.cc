// SPDX-License-Identifier: Apache-2.0
// Common parts of block schedule steps, and steps on loops; block_moves.cc has those that move blocks.
#include "te/block_schedule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/format.h"
#include "te/block_parts.h"
#include "te/views.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::BlockNode;
using tir::ForNode;
using tir::Stmt;

namespace {

constexpr int64_t kMaxLanes = 1024;              // of a vectorised loop
constexpr int64_t kMaxIterations = 0x7fff'ffff;  // indices have 32 bits

bool find_path(const Stmt& s, const std::function<bool(const Stmt&)>& wanted, std::vector<Stmt>* path) {
  path->push_back(s);
  if (wanted(s)) return true;
  bool found = false;
  tir::for_each_child(s, [&](const Stmt& child) { found = found || find_path(child, wanted, path); });
  if (!found) path->pop_back();
  return found;
}

// Whether an axis takes each of its values exactly once: it is a loop, or a sum of loops whose scales are the products
// of the inner extents. `rest`: it may exceed the end, guarded by the predicate.
bool runs_once(const tir::BlockAxis& a, const std::vector<const ForNode*>& loops, std::set<const tir::ExprNode*>* used,
               bool rest) {
  const Scopes scopes;
  std::vector<std::pair<int64_t, int64_t>> digits;
  tir::Substitution zero;
  for (const ForNode* l : loops) zero[l->var.get()] = l->min;
  const PrimExpr start = tir::substitute(a.value, zero);
  if (!scopes.proves(tir::eq(start, a.min))) return false;
  PrimExpr sum = start;
  for (const ForNode* l : loops) {
    if (!tir::uses(a.value, l->var.get())) continue;
    if (!used->insert(l->var.get()).second) return false;
    if (a.value == l->var) return scopes.proves(tir::eq(l->extent, a.extent));
    tir::Substitution one = zero;
    one[l->var.get()] = l->min + 1;
    const auto scale = tir::as_const_int(scopes.simplify(tir::substitute(a.value, one) - start));
    const auto n = tir::as_const_int(l->extent);
    if (!scale || !n || a.value->dtype != l->var->dtype) return false;
    digits.emplace_back(*scale, *n);
    sum = sum + (l->var - l->min) * *scale;
  }
  if (!scopes.proves(tir::eq(sum, a.value))) return false;
  std::sort(digits.begin(), digits.end());
  int64_t next = 1;
  for (const auto& [scale, n] : digits) {
    if (scale != next && n != 1) return false;
    next *= n;
  }
  const auto extent = tir::as_const_int(a.extent);
  return extent && (rest ? next >= *extent : next == *extent);
}

// The terms of a conjunction.
void terms_of(const PrimExpr& e, std::vector<PrimExpr>* out) {
  if (e->kind == tir::ExprKind::kAnd) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    terms_of(n.a, out);
    return terms_of(n.b, out);
  }
  out->push_back(e);
}

// Whether the loops take every combination of axis values exactly once.
bool takes_each_once(const BlockNode& b, const std::vector<const ForNode*>& loops) {
  const Scopes scopes;
  std::set<const Node*> limited;
  std::vector<PrimExpr> terms;
  if (b.predicate) terms_of(b.predicate, &terms);
  for (const PrimExpr& t : terms) {
    if (t->kind != tir::ExprKind::kLT) return false;
    const auto& n = static_cast<const tir::BinaryNode&>(*t);
    bool found = false;
    for (const tir::BlockAxis& a : b.axes) {
      if (a.value->dtype != n.a->dtype || a.extent->dtype != n.b->dtype) continue;
      if (!scopes.proves(tir::eq(a.value, n.a)) || !scopes.proves(tir::eq(a.min + a.extent, n.b))) continue;
      found = true;
      limited.insert(a.var.get());
    }
    if (!found) return false;
  }
  std::set<const tir::ExprNode*> used;
  for (const tir::BlockAxis& a : b.axes) {
    if (a.value->kind == tir::ExprKind::kIntImm) {
      if (tir::as_const_int(a.extent) != 1) return false;
      continue;
    }
    if (!runs_once(a, loops, &used, limited.count(a.var.get()) > 0)) return false;
  }
  return std::all_of(loops.begin(), loops.end(),
                     [&](const ForNode* l) { return used.count(l->var.get()) || tir::as_const_int(l->extent) == 1; });
}

// Guards a statement by a condition, which for blocks becomes part of the predicate.
Stmt guarded(const Stmt& s, const PrimExpr& condition) {
  if (const auto* b = tir::as<BlockNode>(s))
    return make_node<BlockNode>(b->name, b->axes, b->predicate ? tir::logical_and(b->predicate, condition) : condition,
                                b->init, b->body, b->memory, b->annotations);
  if (s->kind == tir::StmtKind::kFor || s->kind == tir::StmtKind::kSeq)
    return tir::map_children(
        s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return guarded(child, condition); });
  return tir::make_if(condition, s);
}

}  // namespace

BlockSchedule::BlockSchedule(tir::BlockFunction function) : function_(std::move(function)) {
  function_.body = resolve_regions(function_.body);
  const auto* root = tir::as<BlockNode>(function_.body);
  if (!root || !root->axes.empty() || root->predicate)
    function_.body = make_node<BlockNode>("root", std::vector<tir::BlockAxis>(), PrimExpr(), Stmt(), function_.body,
                                          std::vector<Ref<Node>>());
  std::vector<const ForNode*> loops;
  // The function's statements must be loop nests around one block; otherwise data flow between them is unknown.
  std::function<void(const Stmt&)> visit = [&](const Stmt& s) {
    if (const auto* block = tir::as<BlockNode>(s)) {
      if (!block->axes.empty() && takes_each_once(*block, loops)) trusted_.insert(block->name);
    } else if (const auto* loop = tir::as<ForNode>(s)) {
      loops.push_back(loop);
      visit(loop->body);
      loops.pop_back();
    }
  };
  for (const Stmt& s : statements()) visit(s);
}

std::vector<Stmt> BlockSchedule::statements() const {
  const Stmt& body = static_cast<const BlockNode&>(*function_.body).body;
  const auto* seq = tir::as<tir::SeqNode>(body);
  return seq ? seq->stmts : std::vector<Stmt>{body};
}

Diagnostic BlockSchedule::refused(const std::string& where, std::string what, std::string hint) const {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
}

Result<BlockSchedule::Site> BlockSchedule::site_of(const std::string& block) const {
  Site site;
  auto is = [&](const Stmt& s) {
    const auto* n = tir::as<BlockNode>(s);
    return n && n->name == block;
  };
  size_t count = 0;
  tir::for_each_stmt(function_.body, [&](const Stmt& s) { count += is(s); });
  if (count > 1)
    return refused(format("function {}", function_.name), format("{} blocks are called '{}'", count, block),
                   "give each block a name of its own");
  if (find_path(function_.body, is, &site.path)) return site;
  return refused(format("function {}", function_.name), format("there is no block '{}'", block),
                 "the function's script shows its blocks");
}

Result<BlockSchedule::Site> BlockSchedule::site_of(const PrimExpr& loop) const {
  Site site;
  auto is = [&](const Stmt& s) {
    const auto* n = tir::as<ForNode>(s);
    return n && n->var == loop;
  };
  if (find_path(function_.body, is, &site.path)) return site;
  return refused(
      format("function {}", function_.name),
      format("the loop '{}' is not there any more", loop->kind == tir::ExprKind::kVar ? variable_name(loop) : "?"),
      "a loop that was split, fused or moved is gone: use what the step returned, or get_loops");
}

Status BlockSchedule::find_block(const std::string& name) const {
  TW_TRY(site_of(name));
  return Ok{};
}

Result<std::vector<PrimExpr>> BlockSchedule::loops(const std::string& block) const {
  std::vector<PrimExpr> out;
  const Site site = TW_TRY(site_of(block));
  for (const Stmt& s : site.path)
    if (const auto* n = tir::as<ForNode>(s)) out.push_back(n->var);
  return out;
}

bool BlockSchedule::is_argument(const tir::ArrayNode* array) const {
  return std::any_of(function_.params.begin(), function_.params.end(),
                     [&](const auto& p) { return p.array.get() == array; });
}

Result<BlockSchedule::Plain> BlockSchedule::plain(const std::string& name) const {
  const Site site = TW_TRY(site_of(name));
  const auto* block = tir::as<BlockNode>(site.stmt());
  const std::string where = format("block {}", name);
  const auto* write = tir::as<tir::WriteNode>(block->body);
  if (!write) return refused(where, "its body is no single assignment", "steps are for blocks of one");
  const auto* array = tir::array_of(write->target);
  if (write->indices.size() != array->shape.size() || write->value->dtype.lanes != 1)
    return refused(where, "it writes several elements at once", "steps are for blocks of one element");
  Plain out{block, tir::Array(array), write->indices, write->value};
  std::set<const tir::ExprNode*> named;
  for (const PrimExpr& i : write->indices) {
    if (i->kind != tir::ExprKind::kVar && i->kind != tir::ExprKind::kIntImm)
      return refused(where, "it writes at a computed index", "write the element that the data axes name");
    if (i->kind == tir::ExprKind::kVar && !named.insert(i.get()).second)
      return refused(where, "it writes a diagonal", "write the element that the data axes name");
  }
  for (const tir::BlockAxis& a : block->axes) {
    const bool indexed = named.erase(a.var.get()) > 0;
    if (indexed == a.reduces && tir::as_const_int(a.extent) != 1)
      return refused(where,
                     format("the axis '{}' is {}", variable_name(a.var),
                            a.reduces ? "reduced and an index of what is written" : "no index of what is written"),
                     "write the element that the data axes name");
    out.accumulates = out.accumulates || (a.reduces && !block->init);
  }
  if (!named.empty()) return refused(where, "what it writes is at indices that are no axes of its own");
  bool other = false, own = false;
  tir::for_each_expr(write->value, [&](const PrimExpr& e) {
    const auto* read = tir::as<tir::ReadNode>(e);
    if (read && read->source == write->target) (read->indices == write->indices ? own : other) = true;
    other = other || e->kind == tir::ExprKind::kLoad;
  });
  if (other) return refused(where, "it reads other elements of what it writes", "its instances have an order");
  out.accumulates = out.accumulates || (own && !block->init);
  if (block->init) {
    const auto* start = tir::as<tir::WriteNode>(block->init);
    bool fixed = start && start->target == write->target && start->indices == write->indices;
    if (fixed)
      tir::for_each_expr(start->value, [&](const PrimExpr& e) {
        const auto* read = tir::as<tir::ReadNode>(e);
        fixed = fixed && !(read && read->source == write->target);
        for (const tir::BlockAxis& a : block->axes) fixed = fixed && !(a.reduces && e == a.var);
      });
    if (!fixed)
      return refused(where, "what it starts with is no single assignment of the element that it writes",
                     "assign that element in T.init");
  }
  if (!trusted_.count(name))
    return refused(where, "its loops are no plain split of its axes, or other statements stand in them",
                   "schedule it from a function in which each block has plain loops of its own");
  return out;
}

// Checks that blocks inside are plain, and none of their reductions runs over the loop.
Status BlockSchedule::movable(const Stmt& body, const PrimExpr& loop) const {
  std::vector<const BlockNode*> blocks;
  bool loose = false;
  std::function<void(const Stmt&)> visit = [&](const Stmt& s) {
    if (const auto* n = tir::as<BlockNode>(s)) return void(blocks.push_back(n));
    loose = loose || (s->kind != tir::StmtKind::kFor && s->kind != tir::StmtKind::kSeq);
    tir::for_each_child(s, visit);
  };
  visit(body);
  if (loose)
    return refused(format("loop {}", variable_name(loop)), "statements outside of blocks stand in it",
                   "put each computation into a T.block");
  for (const BlockNode* b : blocks) {
    TW_TRY(plain(b->name));
    for (const tir::BlockAxis& a : b->axes)
      if (a.reduces && tir::uses(a.value, loop.get()))
        return refused(format("block {}", b->name),
                       format("the loop '{}' runs over its reduction", variable_name(loop)),
                       "its iterations change one element: take a loop of the data, or rfactor");
  }
  return Ok{};
}

void BlockSchedule::replace(const Stmt& old, const Stmt& with) { function_.body = replaced(function_.body, old, with); }

void BlockSchedule::tidy() {
  std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    Stmt out = tir::map_children(
        s, [](const PrimExpr& e) { return e; }, walk);
    auto is_empty = [](const Stmt& part) {
      const auto* n = tir::as<tir::SeqNode>(part);
      return n && n->stmts.empty();
    };
    if (const auto* n = tir::as<ForNode>(out); n && is_empty(n->body)) return n->body;
    return out;
  };
  function_.body = walk(function_.body);
  const auto& root = static_cast<const BlockNode&>(*function_.body);
  std::vector<Ref<Node>> memory;
  for (const Ref<Node>& m : root.memory)
    if (writes_array(root.body, m.get()) || reads_array(root.body, m.get())) memory.push_back(m);
  function_.body = make_node<BlockNode>(root.name, root.axes, root.predicate, root.init, root.body, std::move(memory),
                                        root.annotations);
}

void BlockSchedule::add_array(const tir::Array& array) {
  const auto& root = static_cast<const BlockNode&>(*function_.body);
  std::vector<Ref<Node>> memory = root.memory;
  memory.emplace_back(array);
  function_.body = make_node<BlockNode>(root.name, root.axes, root.predicate, root.init, root.body, std::move(memory),
                                        root.annotations);
}

std::string BlockSchedule::fresh_name(const std::string& name) const {
  std::string out = name;
  for (int i = 1; site_of(out).ok(); ++i) out = format("{}_{}", name, i);
  return out;
}

// The function's top-level statement that contains the place; its body may be one statement or a sequence.
Stmt BlockSchedule::top_level(const Site& site) const {
  size_t at = 1;
  if (at < site.path.size() && site.path[at]->kind == tir::StmtKind::kSeq) ++at;
  return site.path[std::min(at, site.path.size() - 1)];
}

// ---- loops ----

Result<std::vector<PrimExpr>> BlockSchedule::split(const PrimExpr& loop, const std::vector<int64_t>& factors) {
  const Site site = TW_TRY(site_of(loop));
  const auto& n = static_cast<const ForNode&>(*site.stmt());
  const std::string where = format("loop {}", variable_name(loop));
  if (n.for_kind != tir::ForKind::kSerial || !n.annotations.empty())
    return refused(where, "it is annotated, parallel, vectorized or unrolled already", "split it before");
  const DataType t = loop->dtype;
  int64_t known = 1, open = 0;
  for (int64_t f : factors) {
    if (f < 0 || (f > 0 && (__builtin_mul_overflow(known, f, &known) || known > kMaxIterations)))
      return refused(where, format("{} is no factor", f), "give positive numbers, and None for one of them");
    open += f == 0;
  }
  if (factors.empty() || open > 1)
    return refused(where, "more than one factor is left open", "give numbers, and None for one of them at most");
  const auto whole = tir::as_const_int(n.extent);
  const int64_t left = whole ? (*whole + known - 1) / known : 0;
  const int64_t made = whole ? known * (open ? left : 1) : 0;
  if (made > kMaxIterations) return refused(where, format("the factors make {} iterations", made), "give smaller ones");
  if (whole && made < *whole)
    return refused(where, format("the factors make {} iterations of {}", made, *whole), "make the product as large");
  const PrimExpr rest = whole ? tir::make_int(left, t) : tir::floordiv(n.extent + (known - 1), tir::make_int(known, t));
  std::vector<PrimExpr> vars, extents;
  PrimExpr index = tir::make_int(0, t), product = tir::make_int(1, t);
  for (size_t i = 0; i < factors.size(); ++i) {
    extents.push_back(factors[i] ? tir::make_int(factors[i], t) : rest);
    vars.push_back(tir::make_var(format("{}_{}", variable_name(loop), i), t));
  }
  for (size_t i = factors.size(); i-- > 0;) {
    index = i + 1 == factors.size() ? vars[i] : vars[i] * product + index;
    product = extents[i] * product;
  }
  Stmt body = tir::substitute(n.body, {{loop.get(), n.min + index}});
  if (!whole || *whole != made) body = guarded(body, tir::lt(index, n.extent));
  for (size_t i = vars.size(); i-- > 0;) body = tir::make_for(vars[i], tir::make_int(0, t), extents[i], body);
  replace(site.stmt(), body);
  return vars;
}

Result<PrimExpr> BlockSchedule::fuse(const std::vector<PrimExpr>& loops) {
  if (loops.empty()) return refused("fuse", "no loop is given");
  PrimExpr outer = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    const Site site = TW_TRY(site_of(outer));
    const auto& a = static_cast<const ForNode&>(*site.stmt());
    const auto* b = tir::as<ForNode>(a.body);
    const std::string where = format("loop {}", variable_name(loops[i]));
    if (!b || b->var != loops[i])
      return refused(where, format("it is not directly in '{}'", variable_name(outer)), "reorder them first");
    if (tir::uses(b->min, a.var.get()) || tir::uses(b->extent, a.var.get()))
      return refused(where, "its bounds depend on the loop around it");
    for (const ForNode* l : {&a, b})
      if (l->for_kind != tir::ForKind::kSerial || !l->annotations.empty())
        return refused(format("loop {}", variable_name(l->var)),
                       "it is annotated, parallel, vectorized or unrolled already", "fuse before");
    if (a.var->dtype != b->var->dtype) return refused(where, "the loops are of different dtypes");
    const PrimExpr fused =
        tir::make_var(format("{}_{}_fused", variable_name(a.var), variable_name(b->var)), a.var->dtype);
    Stmt body = tir::substitute(b->body, {{a.var.get(), a.min + tir::floordiv(fused, b->extent)},
                                          {b->var.get(), b->min + tir::floormod(fused, b->extent)}});
    replace(site.stmt(), tir::make_for(fused, tir::make_int(0, fused->dtype), a.extent * b->extent, body));
    outer = fused;
  }
  return outer;
}

Status BlockSchedule::reorder(const std::vector<PrimExpr>& order) {
  if (order.empty()) return Ok{};
  Site deepest;
  for (const PrimExpr& l : order) {
    Site s = TW_TRY(site_of(l));
    if (s.path.size() > deepest.path.size()) deepest = std::move(s);
  }
  std::vector<Stmt> chain;  // from the outermost to the innermost
  std::vector<size_t> places;
  for (const Stmt& s : deepest.path) {
    const auto* n = tir::as<ForNode>(s);
    const bool asked = n && std::find(order.begin(), order.end(), n->var) != order.end();
    if (chain.empty() && !asked) continue;
    if (!n) return refused("reorder", "between the loops stand several statements", "reorder loops of one nest");
    if (asked) places.push_back(chain.size());
    chain.push_back(s);
  }
  if (places.size() != order.size())
    return refused("reorder", "the loops are in different nests, or one is given twice",
                   "name each loop of one nest once");
  std::vector<const ForNode*> nodes;
  for (const Stmt& s : chain) nodes.push_back(&static_cast<const ForNode&>(*s));
  for (const ForNode* n : nodes)
    for (const ForNode* other : nodes)
      if (tir::uses(n->min, other->var.get()) || tir::uses(n->extent, other->var.get()))
        return refused(format("loop {}", variable_name(n->var)),
                       format("its bounds depend on '{}'", variable_name(other->var)));
  const Stmt inner = nodes.back()->body;
  if (tir::as<BlockNode>(inner)) {
    TW_TRY(plain(static_cast<const BlockNode&>(*inner).name));
  } else {
    for (const ForNode* n : nodes) TW_TRY_STATUS(movable(inner, n->var));
  }
  std::vector<const ForNode*> made = nodes;
  for (size_t i = 0; i < order.size(); ++i)
    made[places[i]] = *std::find_if(nodes.begin(), nodes.end(), [&](const ForNode* n) { return n->var == order[i]; });
  Stmt body = inner;
  for (size_t i = made.size(); i-- > 0;)
    body = tir::make_for(made[i]->var, made[i]->min, made[i]->extent, body, made[i]->for_kind, made[i]->annotations);
  replace(chain[0], body);
  return Ok{};
}

Status BlockSchedule::set_kind(const PrimExpr& loop, tir::ForKind kind) {
  const Site site = TW_TRY(site_of(loop));
  const auto& n = static_cast<const ForNode&>(*site.stmt());
  const std::string where = format("loop {}", variable_name(loop));
  if (kind == tir::ForKind::kVectorized || kind == tir::ForKind::kParallel) TW_TRY_STATUS(movable(n.body, loop));
  if (kind == tir::ForKind::kVectorized) {
    const auto extent = tir::as_const_int(n.extent);
    if (!extent || *extent < 1 || *extent > kMaxLanes)
      return refused(where, "its number of iterations is no constant from 1 to 1024", "split it by a constant before");
    // Lanes run in lockstep: one lane's private computation would overwrite another's.
    if (blocks_in(n.body).size() != 1)
      return refused(where, "several blocks are computed in it", "vectorize a loop around one block");
  }
  if (kind == tir::ForKind::kUnrolled && !tir::as_const_int(n.extent))
    return refused(where, "its number of iterations is no constant", "split it by a constant before");
  replace(site.stmt(), tir::make_for(n.var, n.min, n.extent, n.body, kind, n.annotations));
  return Ok{};
}

Status BlockSchedule::bind(const PrimExpr& loop, const std::string& thread) {
  const Site site = TW_TRY(site_of(loop));
  TW_TRY_STATUS(movable(static_cast<const ForNode&>(*site.stmt()).body, loop));
  return annotate(loop, "thread", thread);
}

namespace {
// Without a value the annotation is removed.
tir::Annotations with_note(tir::Annotations notes, const std::string& key, const std::string* value) {
  std::erase_if(notes, [&](const auto& note) { return note.first == key; });
  if (value) notes.emplace_back(key, *value);
  return notes;
}
bool has_note(const tir::Annotations& notes, const std::string& key) {
  return std::any_of(notes.begin(), notes.end(), [&](const auto& note) { return note.first == key; });
}
}  // namespace

Status BlockSchedule::edit_notes(const PrimExpr& loop, const std::string& key, const std::string* value) {
  const Site site = TW_TRY(site_of(loop));
  const auto& n = static_cast<const ForNode&>(*site.stmt());
  if (!value && !has_note(n.annotations, key))
    return refused(format("loop {}", variable_name(loop)), format("it has no annotation '{}'", key));
  replace(site.stmt(), tir::make_for(n.var, n.min, n.extent, n.body, n.for_kind, with_note(n.annotations, key, value)));
  return Ok{};
}

Status BlockSchedule::edit_notes(const std::string& block, const std::string& key, const std::string* value) {
  const Site site = TW_TRY(site_of(block));
  const auto& n = static_cast<const BlockNode&>(*site.stmt());
  if (!value && !has_note(n.annotations, key))
    return refused(format("block {}", block), format("it has no annotation '{}'", key));
  replace(site.stmt(), make_node<BlockNode>(n.name, n.axes, n.predicate, n.init, n.body, n.memory,
                                            with_note(n.annotations, key, value)));
  return Ok{};
}

Status BlockSchedule::annotate(const PrimExpr& loop, const std::string& key, const std::string& value) {
  return edit_notes(loop, key, &value);
}
Status BlockSchedule::annotate(const std::string& block, const std::string& key, const std::string& value) {
  return edit_notes(block, key, &value);
}
Status BlockSchedule::unannotate(const PrimExpr& loop, const std::string& key) {
  return edit_notes(loop, key, nullptr);
}
Status BlockSchedule::unannotate(const std::string& block, const std::string& key) {
  return edit_notes(block, key, nullptr);
}

}  // namespace tilewright::te
