// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/simplify.h"

#include <optional>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "tir/passes/index_algebra.h"
#include "tir/passes/rewritable.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

using arith::Interval;
using Form = IndexAlgebra::Form;

constexpr Interval kThreadNumber{0, 65534}, kThreadCount{1, 65535};

bool has_load(const PrimExpr& e) {
  bool found = false;
  for_each_expr(e, [&](const PrimExpr& inner) { found |= inner->kind == ExprKind::kLoad; });
  return found;
}

class Simplifier {
 public:
  PrimExpr expression(const PrimExpr& e, std::span<const VariableRange> ranges) {
    for (const auto& [var, range] : ranges)
      if (IndexAlgebra::handles(var->dtype)) algebra_.bind(var, range);
    return expr(e);
  }
  void assume_no_overflow() { algebra_.assume_no_overflow(); }
  void thread_variables(const PrimExpr& tid, const PrimExpr& nthreads) {
    algebra_.bind(tid, kThreadNumber);
    algebra_.bind(nthreads, kThreadCount);
  }

  Stmt stmt(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kFor:
        return loop(static_cast<const ForNode&>(*s));
      case StmtKind::kStore: {
        const auto& n = static_cast<const StoreNode&>(*s);
        PrimExpr index = expr(n.index), value = expr(n.value), mask = n.mask ? expr(n.mask) : PrimExpr();
        return index == n.index && value == n.value && mask == n.mask ? s : store(n.buffer, index, value, mask);
      }
      case StmtKind::kPrefetch: {
        const auto& n = static_cast<const PrefetchNode&>(*s);
        PrimExpr index = expr(n.index);
        return index == n.index ? s : prefetch(n.buffer, index);
      }
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        PrimExpr value = expr(n.value);
        if (stands_for_itself(n.var, value)) return stmt(n.body);
        Stmt body = stmt(n.body);
        if (is_empty(body)) return body;
        return value == n.value && body == n.body ? s : let_stmt(n.var, value, body);
      }
      case StmtKind::kIf: {
        const auto& n = static_cast<const IfNode&>(*s);
        PrimExpr condition = expr(n.condition);
        if (auto c = as_const_int(condition)) return *c ? stmt(n.then_case) : n.else_case ? stmt(n.else_case) : seq({});
        Stmt then_case = assuming(condition, true, [&] { return stmt(n.then_case); });
        Stmt else_case;
        if (n.else_case) else_case = assuming(condition, false, [&] { return stmt(n.else_case); });
        if (else_case && is_empty(else_case)) else_case = {};
        if (is_empty(then_case)) {
          if (!else_case) return then_case;
          return make_if(logical_not(condition), else_case);
        }
        if (condition == n.condition && then_case == n.then_case && else_case == n.else_case) return s;
        return make_if(condition, then_case, else_case);
      }
      case StmtKind::kBlock:
        for (const BlockAxis& axis : static_cast<const BlockNode&>(*s).axes) rebind(axis.var);
        [[fallthrough]];
      case StmtKind::kWhile:
        return map_children(
            s, [&](const PrimExpr& e) { return expr(e); }, [&](const Stmt& child) { return stmt(child); });
      case StmtKind::kSeq:
        return map_children(
            s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return stmt(child); });
      case StmtKind::kCallExtern:
      case StmtKind::kWrite:
        return map_children(
            s, [&](const PrimExpr& e) { return expr(e); }, [](const Stmt& child) { return child; });
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        Stmt body = stmt(n.body);
        if (is_empty(body)) return body;
        return body == n.body ? s : allocate(n.buffer, body);
      }
    }
    return s;
  }

 private:
  Stmt loop(const ForNode& n) {
    PrimExpr min = expr(n.min), extent = expr(n.extent);
    if (!IndexAlgebra::handles(n.var->dtype)) {
      rebind(n.var);
      Stmt body = stmt(n.body);
      return is_empty(body) ? body : make_for(n.var, min, extent, body, n.for_kind, n.annotations);
    }
    const DataType type = n.var->dtype;
    const Form first = *form(min), count = *form(extent);
    const Interval counts = algebra_.range(count, type);
    if (counts.hi <= 0) return seq({});
    if (count == Form::of_constant(1)) {
      if (algebra_.is_pure(first)) {
        rebind(n.var);
        algebra_.bind(n.var, first);
        return stmt(n.body);
      }
      bind(n.var, algebra_.range(first, type));
      Stmt body = stmt(n.body);
      return is_empty(body) ? body : let_stmt(n.var, min, body);
    }
    // Inside the loop the count is positive, so max(count, 0) is the count.
    Form running = count;
    if (auto* most = as<BinaryNode>(extent); most && most->kind == ExprKind::kMax && as_const_int(most->b) == 0)
      running = *form(most->a);
    Interval last = algebra_.range(first.plus(running).plus(-1), type);
    bind(n.var, {algebra_.range(first, type).lo, last.hi});
    Stmt body = stmt(n.body);
    if (is_empty(body)) return body;
    return make_for(n.var, min, extent, body, n.for_kind, n.annotations);
  }

  void rebind(const PrimExpr& var) {
    if (bound_.insert(var.get()).second) return;
    // The variable was bound before in a sibling scope: discard what was derived from that range or value.
    done_.clear();
    forms_.clear();
    values_.erase(var.get());
    algebra_.forget_opaque();
  }
  void bind(const PrimExpr& var, Interval range) {
    rebind(var);
    algebra_.bind(var, range);
  }

  // Binds a let's variable; true if its uses are substituted, so that the let can go.
  bool stands_for_itself(const PrimExpr& var, const PrimExpr& value) {
    std::optional<Form> f;
    if (IndexAlgebra::handles(var->dtype) && var->dtype.lanes == 1) f = form(value);
    rebind(var);
    if (f) {
      if (algebra_.is_pure(*f) && algebra_.is_short(*f)) {
        algebra_.bind(var, *f);
        return true;
      }
      algebra_.bind(var, algebra_.range(*f, var->dtype));
      return false;
    }
    const bool constant = as_const_int(value) || as_const_float(value);
    if (constant || value->kind == ExprKind::kVar) values_[var.get()] = value;
    return constant || value->kind == ExprKind::kVar;
  }

  template <class F>
  std::invoke_result_t<F> assuming(const PrimExpr& condition, bool truth, const F& inner) {
    auto mark = algebra_.mark();
    auto done = std::move(done_);
    auto forms = std::move(forms_);
    done_.clear();
    forms_.clear();
    assume(condition, truth);
    auto result = inner();
    algebra_.release(mark);
    done_ = std::move(done);
    forms_ = std::move(forms);
    return result;
  }

  void assume(const PrimExpr& condition, bool truth) {
    if (condition->kind == ExprKind::kNot) return assume(static_cast<const NotNode&>(*condition).a, !truth);
    if (!is_binary(condition->kind)) return;
    const auto& n = static_cast<const BinaryNode&>(*condition);
    if (n.kind == (truth ? ExprKind::kAnd : ExprKind::kOr)) {
      assume(n.a, truth);
      assume(n.b, truth);
    } else if (is_comparison(n.kind) && IndexAlgebra::handles(n.a->dtype)) {
      auto a = form(n.a), b = form(n.b);
      if (a && b) algebra_.assume(n.kind, n.a->dtype, *a, *b, truth);
    }
  }

  PrimExpr expr(const PrimExpr& e) {
    if (e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm) return e;
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    PrimExpr result = simplified(e);
    done_.emplace(e.get(), result);
    return result;
  }

  PrimExpr simplified(const PrimExpr& e) {
    if (IndexAlgebra::handles(e->dtype))
      if (auto f = form(e)) return algebra_.expr(*f, e->dtype);
    if (e->kind == ExprKind::kVar) {
      auto it = values_.find(e.get());
      return it == values_.end() ? e : it->second;
    }
    return with_simple_children(e);
  }

  PrimExpr with_simple_children(const PrimExpr& e) {
    auto recurse = [this](const PrimExpr& child) { return expr(child); };
    if (is_comparison(e->kind)) {
      const auto& n = static_cast<const BinaryNode&>(*e);
      if (IndexAlgebra::handles(n.a->dtype)) {
        auto a = form(n.a), b = form(n.b);
        if (a && b)
          if (auto known = algebra_.compare(e->kind, n.a->dtype, *a, *b)) return make_int(*known, e->dtype);
      }
    }
    if (auto* call = as<CallNode>(e); call && call->op == Intrinsic::k_if_then_else) {
      PrimExpr condition = expr(call->args[0]);
      if (auto c = as_const_int(condition)) return expr(call->args[*c ? 1 : 2]);
      PrimExpr t = assuming(condition, true, [&] { return expr(call->args[1]); });
      PrimExpr f = assuming(condition, false, [&] { return expr(call->args[2]); });
      if (condition == call->args[0] && t == call->args[1] && f == call->args[2]) return e;
      return intrinsic(Intrinsic::k_if_then_else, {condition, t, f});
    }
    if (auto* n = as<LetNode>(e)) {
      PrimExpr value = expr(n->value);
      if (stands_for_itself(n->var, value)) return expr(n->body);
      PrimExpr body = expr(n->body);
      return value == n->value && body == n->body ? e : let(n->var, value, body);
    }
    PrimExpr result = map_children(e, recurse);
    if (auto* n = as<LoadNode>(result)) {
      if (n->mask && as_const_int(n->mask) == 0) return make_const(e->dtype, 0);
      if (auto* same = as<BroadcastNode>(n->index); same && !n->mask)
        return broadcast(load(n->buffer, same->value), e->dtype.lanes);
    }
    return result;
  }

  static bool is_multiple(const Form& form, int64_t of) {
    bool all = form.constant() % of == 0;
    for (const arith::Term& term : form.terms()) all = all && term.coefficient % of == 0;
    return all;
  }

  // min(max(x, y), x) and max(min(x, y), x) are x; null for anything else.
  static PrimExpr absorbed(const BinaryNode& n) {
    if (n.kind != ExprKind::kMin && n.kind != ExprKind::kMax) return {};
    const ExprKind other = n.kind == ExprKind::kMin ? ExprKind::kMax : ExprKind::kMin;
    for (const auto& [inner, x] : {std::pair(n.a, n.b), std::pair(n.b, n.a)})
      if (inner->kind == other) {
        const auto& m = static_cast<const BinaryNode&>(*inner);
        if (m.a == x || m.b == x) return x;
      }
    return {};
  }

  // The linear form of an int32 or int64 expression; scalars always have one.
  std::optional<Form> form(const PrimExpr& e) {
    if (e->kind == ExprKind::kIntImm) return Form::of_constant(static_cast<const IntImmNode&>(*e).value);
    if (auto it = forms_.find(e.get()); it != forms_.end()) return it->second.form;
    std::optional<Form> f = computed_form(e);
    forms_.emplace(e.get(), Known{e, f});
    return f;
  }

  std::optional<Form> computed_form(const PrimExpr& e) {
    const DataType type = e->dtype;
    switch (e->kind) {
      case ExprKind::kVar:
        if (type.lanes > 1) {
          auto it = values_.find(e.get());
          return it == values_.end() ? std::nullopt : form(it->second);
        }
        if (auto* known = algebra_.variable(e.get())) return *known;
        return algebra_.opaque(e, opaque_range(e), true);
      case ExprKind::kAdd:
      case ExprKind::kSub:
      case ExprKind::kMul:
      case ExprKind::kFloorDiv:
      case ExprKind::kFloorMod:
      case ExprKind::kMin:
      case ExprKind::kMax: {
        const auto& n = static_cast<const BinaryNode&>(*e);
        if (const PrimExpr kept = absorbed(n)) return form(kept);
        auto a = form(n.a), b = form(n.b);
        if (a && b)
          if (auto f = algebra_.binary(e->kind, type, *a, *b)) return f;
        if (type.lanes > 1) return std::nullopt;
        break;
      }
      case ExprKind::kDiv:
      case ExprKind::kMod: {  // truncating: equals floor for non-negative values and for multiples
        const auto& n = static_cast<const BinaryNode&>(*e);
        auto a = form(n.a), b = form(n.b);
        if (a && b && b->is_constant() && b->constant() > 0 &&
            (algebra_.range(*a, type).lo >= 0 || (algebra_.assumes_no_overflow() && is_multiple(*a, b->constant()))))
          if (auto f =
                  algebra_.binary(e->kind == ExprKind::kDiv ? ExprKind::kFloorDiv : ExprKind::kFloorMod, type, *a, *b))
            return f;
        break;
      }
      case ExprKind::kRamp: {
        const auto& n = static_cast<const RampNode&>(*e);
        return form(n.base)->plus(algebra_.lane(type.lanes).times(n.stride));
      }
      case ExprKind::kBroadcast:
        return form(static_cast<const BroadcastNode&>(*e).value);
      default:
        break;
    }
    if (type.lanes > 1) return std::nullopt;
    PrimExpr simple = with_simple_children(e);
    if (simple->kind == ExprKind::kIntImm) return form(simple);
    return algebra_.opaque(simple, opaque_range(simple), !has_load(simple));
  }

  Interval opaque_range(const PrimExpr& e) {
    const Interval all = IndexAlgebra::dtype_range(e->dtype);
    if (auto* n = as<VarNode>(e)) return n->is_size ? Interval{0, all.hi} : all;
    if (auto* n = as<CastNode>(e)) {
      const DataType from = n->value->dtype;
      if (!from.is_integral() && !from.is_bool()) return all;
      Interval range =
          IndexAlgebra::handles(from) ? algebra_.range(*form(n->value), from) : IndexAlgebra::dtype_range(from);
      return range.inside(all) ? range : all;
    }
    if (auto* n = as<SelectNode>(e)) {
      return arith::join(algebra_.range(*form(n->on_true), e->dtype), algebra_.range(*form(n->on_false), e->dtype));
    }
    return all;
  }

  struct Known {
    PrimExpr expr;  // keeps the key's address from being reused
    std::optional<Form> form;
  };
  IndexAlgebra algebra_;
  std::unordered_map<const ExprNode*, PrimExpr> done_;
  std::unordered_map<const ExprNode*, Known> forms_;
  std::unordered_map<const ExprNode*, PrimExpr> values_;  // constants and variables that replace let variables
  std::unordered_set<const ExprNode*> bound_;
};

// Removes unused lets and arrays, bottom-up, since removing one may make another unused.
class DeadCodeElimination {
 public:
  explicit DeadCodeElimination(const Stmt& body) {
    for_each_stmt(body, [&](const Stmt& s) {
      for_each_own_expr(s, [&](const PrimExpr& e) { count(e, 1); });
      if (auto* n = as<StoreNode>(s)) buffers_[n->buffer.get()]++;
      if (auto* n = as<PrefetchNode>(s)) buffers_[n->buffer.get()]++;
      if (auto* n = as<CallExternNode>(s))
        for (const ExternArgument& a : n->args) buffers_[a.buffer.get()]++;
    });
  }

  Stmt stmt(const Stmt& s) {
    if (auto* n = as<LetStmtNode>(s)) {
      Stmt body = stmt(n->body);
      if (is_empty(body) || uses_[n->var.get()] == 0) {
        count(n->value, -1);
        return body;
      }
      return body == n->body ? s : let_stmt(n->var, n->value, body);
    }
    if (auto* n = as<AllocateNode>(s)) {
      Stmt body = stmt(n->body);
      if (is_empty(body) || buffers_[n->buffer.get()] == 0) return body;
      return body == n->body ? s : allocate(n->buffer, body);
    }
    return map_children(
        s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return stmt(child); });
  }

 private:
  void count(const PrimExpr& e, int sign) {
    for_each_expr(e, [&](const PrimExpr& inner) {
      if (inner->kind == ExprKind::kVar) uses_[inner.get()] += sign;
      if (inner->kind == ExprKind::kLoad) buffers_[static_cast<const LoadNode&>(*inner).buffer.get()] += sign;
    });
  }
  std::unordered_map<const ExprNode*, int64_t> uses_;
  std::unordered_map<const BufferNode*, int64_t> buffers_;
};
}  // namespace

PrimExpr simplify_expr(const PrimExpr& e, std::span<const VariableRange> ranges) {
  return Simplifier().expression(e, ranges);
}
PrimExpr simplify_index(const PrimExpr& e, std::span<const VariableRange> ranges) {
  Simplifier simplifier;
  simplifier.assume_no_overflow();
  return simplifier.expression(e, ranges);
}

Stmt simplify_statement(const Stmt& s) {
  Simplifier simplifier;
  simplifier.assume_no_overflow();
  const Stmt simple = simplifier.stmt(s);
  return DeadCodeElimination(simple).stmt(simple);
}

PrimFunc simplify(PrimFunc function) {
  Simplifier simplifier;
  if (function.tid) simplifier.thread_variables(function.tid, function.nthreads);
  function.body = simplifier.stmt(function.body);
  function.body = DeadCodeElimination(function.body).stmt(function.body);
  return function;
}

}  // namespace tilewright::tir
