// SPDX-License-Identifier: Apache-2.0
#include "tir/dependence.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tir/walk.h"

namespace tilewright::tir {

using arith::Interval;
using arith::LinearForm;

namespace {

std::optional<int64_t> constant(const PrimExpr& e) {
  const auto* imm = e->kind == ExprKind::kIntImm ? as<IntImmNode>(e) : nullptr;
  return imm ? std::optional(imm->value) : std::nullopt;
}

// Buffers allocated inside the statement: every iteration of an enclosing loop has its own.
std::unordered_set<const BufferNode*> buffers_of_its_own(const Stmt& body) {
  std::unordered_set<const BufferNode*> own;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* allocate = as<AllocateNode>(s)) own.insert(allocate->buffer.get());
  });
  return own;
}

// Up to `count` steps of `size`, in both directions.
struct Stride {
  int64_t size, count;
};

// Whether size * distance + offset + (any sum of `steps`) can be zero for some |distance| in 1..`farthest`. It cannot
// if the large steps are multiples of a number that the rest never reaches, and the small steps cannot cover one
// distance.
bool may_meet(int64_t size, int64_t farthest, Interval offset, std::vector<Stride> steps) {
  if (farthest < 1) return false;
  if (size == 0 || !offset.bounded()) return true;
  std::sort(steps.begin(), steps.end(), [](const Stride& a, const Stride& b) { return a.size > b.size; });
  int64_t large = 0;  // the greatest common divisor of the large steps; 0: none
  for (size_t i = 0; i <= steps.size(); ++i) {
    Interval small = offset;
    for (size_t k = i; k < steps.size(); ++k)
      small = arith::add(small, arith::scale(Interval{-steps[k].count, steps[k].count}, steps[k].size));
    const Interval reach = arith::add(small, arith::scale(Interval{-farthest, farthest}, size));
    const bool alone = large == 0 || (reach.bounded() && reach.lo > -large && reach.hi < large);
    if (alone && small.bounded() && small.lo > -size && small.hi < size) return false;
    if (i < steps.size()) large = std::gcd(large, steps[i].size);
  }
  return true;
}

}  // namespace

Dependence::Dependence(const Stmt& root) {
  for_each_stmt(root, [&](const Stmt& s) {
    if (const auto* let = as<LetStmtNode>(s)) lets_[let->var.get()] = let->value;
    if (const auto* loop = as<ForNode>(s)) {
      auto lo = constant(loop->min), n = constant(loop->extent);
      symbol(loop->var, lo && n ? Interval{*lo, *lo + *n - 1} : Interval::everything());
    }
  });
}

LinearForm Dependence::symbol(const PrimExpr& e, Interval range) {
  auto [it, added] = numbers_.try_emplace(e.get(), arith::Symbol{});
  if (added) {
    it->second = ranges_.add(range);
    symbols_.push_back(e);
  }
  return LinearForm::of_symbol(it->second);
}

LinearForm Dependence::form(const PrimExpr& e) {
  if (e->dtype.bits != 64) return symbol(e, Interval::everything());  // narrower sums may wrap
  switch (e->kind) {
    case ExprKind::kIntImm:
      return LinearForm::of_constant(as<IntImmNode>(e)->value);
    case ExprKind::kVar:
      if (auto let = lets_.find(e.get()); let != lets_.end() && let->second->dtype.is_int()) return form(let->second);
      return symbol(e, Interval::everything());
    case ExprKind::kAdd:
      return form(as<BinaryNode>(e)->a).plus(form(as<BinaryNode>(e)->b));
    case ExprKind::kSub:
      return form(as<BinaryNode>(e)->a).minus(form(as<BinaryNode>(e)->b));
    case ExprKind::kMul: {
      LinearForm a = form(as<BinaryNode>(e)->a), b = form(as<BinaryNode>(e)->b);
      if (a.is_constant()) return b.times(a.constant());
      if (b.is_constant()) return a.times(b.constant());
      return symbol(e, Interval::everything());
    }
    case ExprKind::kFloorMod: {
      auto divisor = constant(as<BinaryNode>(e)->b);
      return symbol(e, divisor && *divisor > 0 ? Interval{0, *divisor - 1} : Interval::everything());
    }
    case ExprKind::kBroadcast:
      return form(as<BroadcastNode>(e)->value);
    case ExprKind::kRamp: {  // for all lanes at once: the node's symbol is the lane's distance from the first
      const auto* r = as<RampNode>(e);
      const int64_t last = r->stride * (e->dtype.lanes - 1);
      return form(r->base).plus(symbol(e, {std::min<int64_t>(0, last), std::max<int64_t>(0, last)}));
    }
    default:
      return symbol(e, Interval::everything());
  }
}

bool Dependence::varies(const PrimExpr& e, const std::unordered_set<const ExprNode*>& variables) const {
  bool found = false;
  for_each_expr(e, [&](const PrimExpr& part) {
    if (found || part->kind == ExprKind::kLoad || variables.count(part.get()))
      found = true;
    else if (auto let = lets_.find(part.get()); let != lets_.end())
      found = varies(let->second, variables);
  });
  return found;
}

const BufferNode* Dependence::carried_by(const ForNode* loop, const std::unordered_set<const ExprNode*>& free) {
  std::vector<Access> accesses;
  std::unordered_set<const BufferNode*> written;
  std::unordered_set<const ExprNode*> inner = free, itself{loop->var.get()};
  const auto own = buffers_of_its_own(loop->body);
  for_each_stmt(loop->body, [&](const Stmt& s) {
    if (const auto* store = as<StoreNode>(s)) {
      accesses.push_back({store->buffer.get(), store->index, true});
      written.insert(store->buffer.get());
    }
    if (const auto* nested = as<ForNode>(s)) inner.insert(nested->var.get());
  });
  for_each_expr(loop->body, [&](const PrimExpr& e) {
    if (e->kind == ExprKind::kLoad) accesses.push_back({as<LoadNode>(e)->buffer.get(), as<LoadNode>(e)->index, false});
  });

  // An index as coefficient * variable + a part equal in all iterations + a part that varies within an iteration.
  struct Parts {
    int64_t coefficient = 0;
    LinearForm shared;
    std::vector<arith::Term> rest;
  };
  auto parts_of = [&](const PrimExpr& index) -> std::optional<Parts> {
    LinearForm whole = form(index);
    Parts parts;
    parts.shared = LinearForm::of_constant(whole.constant());
    for (const arith::Term& term : whole.terms()) {
      const PrimExpr& e = symbols_[term.symbol];
      if (e.get() == loop->var.get())
        parts.coefficient = term.coefficient;
      else if (e->kind == ExprKind::kRamp || inner.count(e.get()))
        parts.rest.push_back(term);
      else if (e->kind != ExprKind::kVar && varies(e, itself))
        return std::nullopt;
      else if (e->kind != ExprKind::kVar && varies(e, inner))
        parts.rest.push_back(term);
      else
        parts.shared = parts.shared.plus(LinearForm::of_symbol(term.symbol).times(term.coefficient));
    }
    return parts;
  };
  const auto extent = constant(loop->extent);
  for (const Access& access : accesses) {
    if (!access.writes || own.count(access.buffer)) continue;
    auto a = parts_of(access.index);
    for (const Access& other : accesses) {
      if (other.buffer != access.buffer) continue;
      auto b = parts_of(other.index);
      if (!a || !b || a->coefficient != b->coefficient) return other.buffer;
      const LinearForm shared = a->shared.minus(b->shared);
      if (!shared.is_constant() || !extent) return other.buffer;
      // The two indices differ by coefficient * distance + offset + multiples of the steps of `aligned`.
      Interval offset = Interval::point(shared.constant());
      std::vector<Stride> aligned;
      for (const arith::Term& term : a->rest) {
        const Interval range = ranges_.of(term.symbol);
        auto twin = std::find(b->rest.begin(), b->rest.end(), term);
        if (twin != b->rest.end() && symbols_[term.symbol]->kind != ExprKind::kRamp && range.bounded()) {
          aligned.push_back({std::abs(term.coefficient), range.hi - range.lo});
          b->rest.erase(twin);
        } else {
          offset = arith::add(offset, arith::scale(range, term.coefficient));
        }
      }
      for (const arith::Term& term : b->rest)
        offset = arith::sub(offset, arith::scale(ranges_.of(term.symbol), term.coefficient));
      if (may_meet(std::abs(a->coefficient), *extent - 1, offset, aligned)) return other.buffer;
    }
  }
  return nullptr;
}

}  // namespace tilewright::tir
