// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/vectorize.h"

#include <type_traits>
#include <unordered_map>
#include <utility>

#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// Rewrites the body of one loop. `failed` means that the loop has no vector form; the returned statement must then be
// discarded.
class LoopBody {
 public:
  LoopBody(const ForNode& loop, int lanes) : loop_(loop), lanes_(lanes) {
    values_[loop.var.get()] = ramp(loop.min, 1, lanes);
  }
  bool failed = false;

  Stmt stmt(const Stmt& s) {
    if (failed) return s;
    switch (s->kind) {
      case StmtKind::kFor: {
        const auto& n = static_cast<const ForNode&>(*s);
        auto lo = expr(n.min), extent = expr(n.extent);
        if (failed || lo->dtype.lanes > 1 || extent->dtype.lanes > 1) return give_up(s);
        Stmt body = stmt(n.body);
        return failed ? s : make_for(n.var, lo, extent, body, n.for_kind);
      }
      case StmtKind::kStore:
        return store_stmt(s);
      case StmtKind::kWhile:
      case StmtKind::kCallExtern:
      case StmtKind::kBlock:
        return give_up(s);
      case StmtKind::kWrite:
        return write_stmt(s);
      case StmtKind::kPrefetch:
        return seq({});  // one prefetch per element would be too many
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        auto value = expr(n.value);
        if (failed) return s;
        auto var = bind_let(n.var, value);
        Stmt body = stmt(n.body);
        return failed ? s : let_stmt(var, value, body);
      }
      case StmtKind::kIf: {
        const auto& n = static_cast<const IfNode&>(*s);
        auto condition = expr(n.condition);
        if (failed) return s;
        if (condition->dtype.lanes == 1) {
          Stmt then_case = stmt(n.then_case), else_case = n.else_case ? stmt(n.else_case) : Stmt();
          return failed ? s : make_if(condition, then_case, else_case);
        }
        if (writes(s)) return one_by_one(s);
        // The mask is evaluated before the branches, which may change what the condition reads.
        auto taken = make_var("taken", condition->dtype);
        auto then_case = masked(taken, [&] { return stmt(n.then_case); });
        Stmt else_case;
        if (n.else_case) else_case = masked(logical_not(taken), [&] { return stmt(n.else_case); });
        if (failed) return s;
        return let_stmt(taken, condition, seq({then_case, else_case}));
      }
      case StmtKind::kSeq:
        return map_children(
            s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return stmt(child); });
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        const BufferNode& b = *n.buffer;
        if (b.scope != Scope::kRegister || b.dtype.lanes > 1) return give_up(s);
        // copies of one allocation share their widened buffer, as they may share parts of their bodies
        Buffer& wide = widened_[&b];
        if (!wide) wide = make_buffer(b.name, b.dtype.with_lanes(lanes_), b.size, Scope::kRegister, b.alignment);
        Stmt body = stmt(n.body);
        return failed ? s : allocate(widened_[&b], body);
      }
    }
    return s;
  }

 private:
  Stmt give_up(const Stmt& s) {
    failed = true;
    return s;
  }
  PrimExpr give_up(const PrimExpr& e) {
    failed = true;
    return e;
  }

  static bool writes(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& part) { found |= part->kind == StmtKind::kWrite; });
    return found;
  }

  // A statement over multi-dimensional memory that has no vector form, one iteration after the other; only where it
  // needs no value that became a vector before it.
  Stmt one_by_one(const Stmt& s) {
    failed = false;
    done_.clear();
    ++generation_;
    bool free = true;
    for_each_expr(s, [&](const PrimExpr& e) { free &= e == loop_.var || values_.count(e.get()) == 0; });
    return free ? make_for(loop_.var, loop_.min, loop_.extent, s) : give_up(s);
  }

  // Indices of multi-dimensional memory, and how many of them are vectors.
  std::vector<PrimExpr> all_indices(const std::vector<PrimExpr>& indices, size_t* wide) {
    std::vector<PrimExpr> out;
    for (const PrimExpr& i : indices) {
      out.push_back(expr(i));
      *wide += out.back()->dtype.lanes > 1 ? 1 : 0;
    }
    return out;
  }

  // Writes have no masks, and one of their indices may be a vector.
  Stmt write_stmt(const Stmt& s) {
    const auto& n = static_cast<const WriteNode&>(*s);
    size_t wide = 0;
    std::vector<PrimExpr> indices = all_indices(n.indices, &wide);
    const PrimExpr value = expr(n.value);
    if (failed || mask_ || wide != 1 || n.value->dtype.lanes > 1) return one_by_one(s);
    return write(n.target, n.name, std::move(indices), broadcast_to_lanes(value));
  }

  PrimExpr read_expr(const PrimExpr& e) {
    const auto& n = static_cast<const ReadNode&>(*e);
    size_t wide = 0;
    std::vector<PrimExpr> indices = all_indices(n.indices, &wide);
    if (failed || indices == n.indices) return e;
    if (wide > 1 || n.dtype.lanes > 1) return give_up(e);
    return read(wide ? n.dtype.with_lanes(lanes_) : n.dtype, n.source, n.name, std::move(indices));
  }

  // The variable for a let's value in the vector form. Adjacent lets may
  // share variable and parts of their bodies, so memoised results of an
  // earlier one must remain valid: once a vector, the variable stays one.
  PrimExpr bind_let(const PrimExpr& var, PrimExpr& value) {
    auto known = values_.find(var.get());
    if (known != values_.end()) {
      value = broadcast_to_lanes(value);
      return known->second;
    }
    if (value->dtype == var->dtype) return var;
    done_.clear();
    ++generation_;
    return values_[var.get()] = make_var(static_cast<const VarNode&>(*var).name, value->dtype);
  }

  template <class F>
  std::invoke_result_t<F> masked(const PrimExpr& condition, const F& inner) {
    PrimExpr outer = mask_;
    mask_ = outer ? logical_and(outer, condition) : condition;
    // Loads differ under another mask, so results memoised outside cannot be reused inside.
    auto outer_done = std::exchange(done_, {});
    const int generation = generation_;
    auto result = inner();
    mask_ = outer;
    if (generation == generation_)
      done_ = std::move(outer_done);
    else
      done_.clear();
    return result;
  }

  PrimExpr with_mask(const PrimExpr& own) {
    if (!mask_) return own;
    return own ? logical_and(own->dtype.lanes == 1 ? broadcast(own, lanes_) : own, mask_) : mask_;
  }

  Stmt store_stmt(const Stmt& s) {
    const auto& n = static_cast<const StoreNode&>(*s);
    auto index = expr(n.index), value = expr(n.value), mask = n.mask ? expr(n.mask) : PrimExpr();
    if (failed) return s;
    if (auto it = widened_.find(n.buffer.get()); it != widened_.end()) {
      if (index->dtype.lanes > 1) return give_up(s);
      if (mask_) value = select(mask_, value, load(it->second, index));
      return store(it->second, index, value);
    }
    // All iterations write one element: only sequential execution determines its final value.
    if (n.index->dtype.lanes > 1 || index->dtype.lanes == 1) return give_up(s);
    if (n.buffer->scope == Scope::kRegister) return give_up(s);
    return store(n.buffer, index, value, with_mask(mask));
  }

  PrimExpr expr(const PrimExpr& e) {
    if (failed) return e;
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    PrimExpr result = rewritten(e);
    // A value that already is a vector and depends on the loop variable would need two kinds of lanes.
    if (!failed && e->dtype.lanes > 1 && result != e) failed = true;
    done_.emplace(e.get(), result);
    return result;
  }

  PrimExpr rewritten(const PrimExpr& e) {
    auto recurse = [this](const PrimExpr& child) { return expr(child); };
    switch (e->kind) {
      case ExprKind::kVar: {
        auto it = values_.find(e.get());
        return it == values_.end() ? e : it->second;
      }
      case ExprKind::kLoad:
        return load_expr(e);
      case ExprKind::kRead:
        return read_expr(e);
      case ExprKind::kLet: {
        const auto& n = static_cast<const LetNode&>(*e);
        auto value = expr(n.value);
        if (failed) return e;
        auto var = bind_let(n.var, value);
        auto body = expr(n.body);
        return failed ? e : value == n.value && body == n.body ? e : let(var, value, body);
      }
      case ExprKind::kCall: {
        const auto& n = static_cast<const CallNode&>(*e);
        if (n.op == Intrinsic::k_if_then_else) return choice(n);
        break;
      }
      case ExprKind::kExtern:
        return lane_by_lane(static_cast<const ExternNode&>(*e), e);
      case ExprKind::kDiv:
      case ExprKind::kMod:
      case ExprKind::kFloorDiv:
      case ExprKind::kFloorMod: {
        const auto& n = static_cast<const BinaryNode&>(*e);
        auto a = expr(n.a), b = expr(n.b);
        if (failed) return e;
        // Inactive lanes must not divide by an arbitrary value.
        if (mask_ && e->dtype.is_integral() && b->dtype.lanes > 1 && !as_const_int(b))
          return binary(e->kind, a, select(mask_, b, make_int(1, b->dtype)));
        break;
      }
      case ExprKind::kShuffle:
      case ExprKind::kRamp:
      case ExprKind::kBroadcast: {
        bool changed = false;
        for_each_child(e, [&](const PrimExpr& child) { changed |= expr(child) != child; });
        return changed ? give_up(e) : e;
      }
      default:
        break;
    }
    bool reduces_lanes = false;
    if (auto* call = as<CallNode>(e)) reduces_lanes = call->args[0]->dtype.lanes > 1 && e->dtype.lanes == 1;
    if (failed) return e;
    PrimExpr result = map_children_unless_failed(e, recurse);
    return reduces_lanes && result != e ? give_up(e) : result;
  }

  // C functions take scalars: call per lane.
  PrimExpr lane_by_lane(const ExternNode& n, const PrimExpr& e) {
    std::vector<PrimExpr> wide;
    bool varies = false;
    for (const PrimExpr& a : n.args) {
      wide.push_back(expr(a));
      varies = varies || wide.back()->dtype.lanes > 1;
    }
    if (failed || !varies) return failed || wide == n.args ? e : extern_value(e->dtype, n.name, std::move(wide));
    std::vector<PrimExpr> values;
    std::vector<int> order;
    for (int lane = 0; lane < lanes_; ++lane) {
      std::vector<PrimExpr> args;
      for (const PrimExpr& a : wide) args.push_back(a->dtype.lanes > 1 ? shuffle({a}, {lane}) : a);
      values.push_back(extern_value(e->dtype, n.name, std::move(args)));
      order.push_back(lane);
    }
    return shuffle(std::move(values), std::move(order));
  }

  // The builders check dtypes, so nothing may be built from the invalid results of a failure.
  PrimExpr map_children_unless_failed(const PrimExpr& e, const std::function<PrimExpr(const PrimExpr&)>& f) {
    for_each_child(e, [&](const PrimExpr& child) {
      PrimExpr result = f(child);
      if (child->dtype.lanes > 1 && result != child) failed = true;
    });
    return failed ? e : map_children(e, f);
  }

  PrimExpr load_expr(const PrimExpr& e) {
    const auto& n = static_cast<const LoadNode&>(*e);
    auto index = expr(n.index), mask = n.mask ? expr(n.mask) : PrimExpr();
    if (failed) return e;
    if (auto it = widened_.find(n.buffer.get()); it != widened_.end())
      return index->dtype.lanes > 1 ? give_up(e) : load(it->second, index);
    if (n.buffer->scope == Scope::kRegister) return index == n.index ? e : give_up(e);
    if (e->dtype.lanes > 1) return index == n.index && mask == n.mask && !mask_ ? e : give_up(e);
    auto* same = as<BroadcastNode>(index);
    if (mask_) {
      // Even an element that all lanes share may be accessed only if at least one lane is active.
      return load(n.buffer, broadcast_to_lanes(index), with_mask(mask));
    }
    if (same && (!mask || mask->dtype.lanes == 1)) return broadcast(load(n.buffer, same->value, mask), lanes_);
    if (index->dtype.lanes == 1 && (!mask || mask->dtype.lanes == 1))
      return index == n.index && mask == n.mask ? e : load(n.buffer, index, mask);
    return load(n.buffer, broadcast_to_lanes(index), mask);
  }

  PrimExpr broadcast_to_lanes(const PrimExpr& e) { return e->dtype.lanes == 1 ? broadcast(e, lanes_) : e; }

  PrimExpr choice(const CallNode& n) {
    auto condition = expr(n.args[0]);
    if (failed) return n.args[1];
    if (condition->dtype.lanes == 1) {
      auto t = expr(n.args[1]), f = expr(n.args[2]);
      return failed ? n.args[1] : intrinsic(Intrinsic::k_if_then_else, {condition, t, f});
    }
    bool reads = false;  // multi-dimensional memory, without masks
    for_each_expr(PrimExpr(&n), [&](const PrimExpr& part) { reads |= part->kind == ExprKind::kRead; });
    if (reads) return give_up(n.args[1]);
    auto t = masked(condition, [&] { return expr(n.args[1]); });
    auto f = masked(logical_not(condition), [&] { return expr(n.args[2]); });
    return failed ? n.args[1] : select(condition, t, f);
  }

  const ForNode& loop_;
  const int lanes_;
  PrimExpr mask_;                                         // active lanes; null: all
  int generation_ = 0;                                    // number of times done_ was cleared
  std::unordered_map<const ExprNode*, PrimExpr> values_;  // vectors that replace variables
  std::unordered_map<const BufferNode*, Buffer> widened_;
  std::unordered_map<const ExprNode*, PrimExpr> done_;
};

Stmt vectorized(const Stmt& s) {
  Stmt inner = map_children(
      s, [](const PrimExpr& e) { return e; }, vectorized);
  auto* loop = as<ForNode>(inner);
  if (!loop || loop->for_kind != ForKind::kVectorized) return inner;
  auto extent = as_const_int(loop->extent);
  if (extent && *extent <= 0) return seq({});
  if (extent == 1) return substitute(loop->body, {{loop->var.get(), loop->min}});
  if (extent && *extent <= kMaxVectorLanes) {
    LoopBody body(*loop, static_cast<int>(*extent));
    Stmt result = body.stmt(loop->body);
    if (!body.failed) return result;
  }
  return make_for(loop->var, loop->min, loop->extent, loop->body);
}
}  // namespace

Stmt vectorize_loops(const Stmt& s) { return vectorized(s); }

PrimFunc vectorize(PrimFunc function) {
  function.body = vectorized(function.body);
  return function;
}
}  // namespace tilewright::tir
