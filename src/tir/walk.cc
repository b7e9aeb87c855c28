// SPDX-License-Identifier: Apache-2.0
#include "tir/walk.h"

#include <unordered_set>

namespace tilewright::tir {
namespace {
template <class T>
const T& node(const PrimExpr& e) {
  return static_cast<const T&>(*e);
}
template <class T>
const T& node(const Stmt& s) {
  return static_cast<const T&>(*s);
}

using Visited = std::unordered_set<const ExprNode*>;
void visit(const PrimExpr& e, Visited& visited, const std::function<void(const PrimExpr&)>& f) {
  if (!visited.insert(e.get()).second) return;
  for_each_child(e, [&](const PrimExpr& child) { visit(child, visited, f); });
  f(e);
}

using Rewritten = std::unordered_map<const ExprNode*, PrimExpr>;
PrimExpr rewrite(const PrimExpr& e, Rewritten& done, const std::function<PrimExpr(PrimExpr)>& f) {
  if (auto it = done.find(e.get()); it != done.end()) return it->second;
  PrimExpr result = f(map_children(e, [&](const PrimExpr& child) { return rewrite(child, done, f); }));
  done.emplace(e.get(), result);
  return result;
}
Stmt rewrite(const Stmt& s, Rewritten& done, const std::function<PrimExpr(PrimExpr)>& on_expr,
             const std::function<Stmt(Stmt)>& on_stmt) {
  Stmt result = map_children(
      s, [&](const PrimExpr& e) { return rewrite(e, done, on_expr); },
      [&](const Stmt& child) { return rewrite(child, done, on_expr, on_stmt); });
  return on_stmt ? on_stmt(std::move(result)) : result;
}
}  // namespace

void for_each_child(const PrimExpr& e, const std::function<void(const PrimExpr&)>& f) {
  switch (e->kind) {
#define TW_KIND(name) case ExprKind::k##name:
    TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
    f(node<BinaryNode>(e).a);
    f(node<BinaryNode>(e).b);
    break;
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
      break;
    case ExprKind::kNot:
      f(node<NotNode>(e).a);
      break;
    case ExprKind::kSelect:
      f(node<SelectNode>(e).condition);
      f(node<SelectNode>(e).on_true);
      f(node<SelectNode>(e).on_false);
      break;
    case ExprKind::kCast:
      f(node<CastNode>(e).value);
      break;
    case ExprKind::kReinterpret:
      f(node<ReinterpretNode>(e).value);
      break;
    case ExprKind::kLoad:
      f(node<LoadNode>(e).index);
      if (node<LoadNode>(e).mask) f(node<LoadNode>(e).mask);
      break;
    case ExprKind::kRead:
      for (const auto& i : node<ReadNode>(e).indices) f(i);
      break;
    case ExprKind::kRamp:
      f(node<RampNode>(e).base);
      break;
    case ExprKind::kBroadcast:
      f(node<BroadcastNode>(e).value);
      break;
    case ExprKind::kShuffle:
      for (const auto& v : node<ShuffleNode>(e).vectors) f(v);
      break;
    case ExprKind::kCall:
      for (const auto& a : node<CallNode>(e).args) f(a);
      break;
    case ExprKind::kExtern:
      for (const auto& a : node<ExternNode>(e).args) f(a);
      break;
    case ExprKind::kLet:
      f(node<LetNode>(e).value);
      f(node<LetNode>(e).body);
      break;
  }
}

void for_each_own_expr(const Stmt& s, const std::function<void(const PrimExpr&)>& f) {
  switch (s->kind) {
    case StmtKind::kFor:
      f(node<ForNode>(s).min);
      f(node<ForNode>(s).extent);
      break;
    case StmtKind::kStore:
      f(node<StoreNode>(s).index);
      f(node<StoreNode>(s).value);
      if (node<StoreNode>(s).mask) f(node<StoreNode>(s).mask);
      break;
    case StmtKind::kPrefetch:
      f(node<PrefetchNode>(s).index);
      break;
    case StmtKind::kLetStmt:
      f(node<LetStmtNode>(s).value);
      break;
    case StmtKind::kIf:
      f(node<IfNode>(s).condition);
      break;
    case StmtKind::kWhile:
      f(node<WhileNode>(s).condition);
      break;
    case StmtKind::kCallExtern:
      for (const auto& a : node<CallExternNode>(s).args) f(a.value);
      break;
    case StmtKind::kWrite:
      for (const auto& i : node<WriteNode>(s).indices) f(i);
      f(node<WriteNode>(s).value);
      break;
    case StmtKind::kBlock:
      for (const auto& a : node<BlockNode>(s).axes) f(a.min), f(a.extent), f(a.value);
      if (node<BlockNode>(s).predicate) f(node<BlockNode>(s).predicate);
      break;
    case StmtKind::kSeq:
    case StmtKind::kAllocate:
      break;
  }
}

void for_each_child(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  switch (s->kind) {
    case StmtKind::kFor:
      f(node<ForNode>(s).body);
      break;
    case StmtKind::kStore:
    case StmtKind::kPrefetch:
    case StmtKind::kCallExtern:
    case StmtKind::kWrite:
      break;
    case StmtKind::kBlock:
      if (node<BlockNode>(s).init) f(node<BlockNode>(s).init);
      f(node<BlockNode>(s).body);
      break;
    case StmtKind::kLetStmt:
      f(node<LetStmtNode>(s).body);
      break;
    case StmtKind::kIf:
      f(node<IfNode>(s).then_case);
      if (node<IfNode>(s).else_case) f(node<IfNode>(s).else_case);
      break;
    case StmtKind::kWhile:
      f(node<WhileNode>(s).body);
      break;
    case StmtKind::kSeq:
      for (const auto& child : node<SeqNode>(s).stmts) f(child);
      break;
    case StmtKind::kAllocate:
      f(node<AllocateNode>(s).body);
      break;
  }
}

void for_each_expr(const PrimExpr& e, const std::function<void(const PrimExpr&)>& f) {
  Visited visited;
  visit(e, visited, f);
}

bool uses(const PrimExpr& e, const ExprNode* var) {
  bool found = false;
  for_each_expr(e, [&](const PrimExpr& part) { found |= part.get() == var; });
  return found;
}

void for_each_expr(const Stmt& s, const std::function<void(const PrimExpr&)>& f) {
  Visited visited;
  for_each_stmt(s,
                [&](const Stmt& inner) { for_each_own_expr(inner, [&](const PrimExpr& e) { visit(e, visited, f); }); });
}

void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f) {
  f(s);
  for_each_child(s, [&](const Stmt& child) { for_each_stmt(child, f); });
}

PrimExpr map_children(const PrimExpr& e, const std::function<PrimExpr(const PrimExpr&)>& f) {
  switch (e->kind) {
#define TW_KIND(name) case ExprKind::k##name:
    TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
    {
      const auto& n = node<BinaryNode>(e);
      auto a = f(n.a), b = f(n.b);
      return a == n.a && b == n.b ? e : binary(e->kind, std::move(a), std::move(b));
    }
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
      return e;
    case ExprKind::kNot: {
      auto a = f(node<NotNode>(e).a);
      return a == node<NotNode>(e).a ? e : logical_not(std::move(a));
    }
    case ExprKind::kSelect: {
      const auto& n = node<SelectNode>(e);
      auto c = f(n.condition), t = f(n.on_true), o = f(n.on_false);
      return c == n.condition && t == n.on_true && o == n.on_false ? e
                                                                   : select(std::move(c), std::move(t), std::move(o));
    }
    case ExprKind::kCast: {
      auto v = f(node<CastNode>(e).value);
      return v == node<CastNode>(e).value ? e : cast(e->dtype.element(), std::move(v));
    }
    case ExprKind::kReinterpret: {
      auto v = f(node<ReinterpretNode>(e).value);
      if (v == node<ReinterpretNode>(e).value) return e;
      // A lane-wise conversion follows its operand's lanes; one that regroups bits keeps its shape.
      bool lane_by_lane = e->dtype.bits == v->dtype.bits;
      const DataType to = lane_by_lane ? e->dtype.with_lanes(v->dtype.lanes) : e->dtype;
      return reinterpret(to, std::move(v));
    }
    case ExprKind::kLoad: {
      const auto& n = node<LoadNode>(e);
      auto i = f(n.index), m = n.mask ? f(n.mask) : PrimExpr();
      return i == n.index && m == n.mask ? e : load(n.buffer, std::move(i), std::move(m));
    }
    case ExprKind::kRead: {
      const auto& n = node<ReadNode>(e);
      std::vector<PrimExpr> indices;
      indices.reserve(n.indices.size());
      for (const auto& i : n.indices) indices.push_back(f(i));
      return indices == n.indices ? e : read(e->dtype, n.source, n.name, std::move(indices));
    }
    case ExprKind::kRamp: {
      const auto& n = node<RampNode>(e);
      auto b = f(n.base);
      return b == n.base ? e : ramp(std::move(b), n.stride, e->dtype.lanes);
    }
    case ExprKind::kBroadcast: {
      auto v = f(node<BroadcastNode>(e).value);
      return v == node<BroadcastNode>(e).value ? e : broadcast(std::move(v), e->dtype.lanes);
    }
    case ExprKind::kShuffle: {
      const auto& n = node<ShuffleNode>(e);
      std::vector<PrimExpr> vectors;
      vectors.reserve(n.vectors.size());
      for (const auto& v : n.vectors) vectors.push_back(f(v));
      return vectors == n.vectors ? e : shuffle(std::move(vectors), n.indices);
    }
    case ExprKind::kCall: {
      const auto& n = node<CallNode>(e);
      std::vector<PrimExpr> args;
      args.reserve(n.args.size());
      for (const auto& a : n.args) args.push_back(f(a));
      return args == n.args ? e : intrinsic(n.op, std::move(args));
    }
    case ExprKind::kExtern: {
      const auto& n = node<ExternNode>(e);
      std::vector<PrimExpr> args;
      args.reserve(n.args.size());
      for (const auto& a : n.args) args.push_back(f(a));
      return args == n.args ? e : extern_value(e->dtype, n.name, std::move(args));
    }
    case ExprKind::kLet: {
      const auto& n = node<LetNode>(e);
      auto v = f(n.value), b = f(n.body);
      return v == n.value && b == n.body ? e : let(n.var, std::move(v), std::move(b));
    }
  }
  return e;
}

namespace {
Stmt map_block(const BlockNode& n, const Stmt& s, const std::function<PrimExpr(const PrimExpr&)>& on_expr,
               const std::function<Stmt(const Stmt&)>& on_stmt) {
  std::vector<BlockAxis> axes = n.axes;
  bool changed = false;
  auto map = [&](PrimExpr& e) {
    PrimExpr made = on_expr(e);
    changed = changed || made != e;
    e = std::move(made);
  };
  for (BlockAxis& a : axes) map(a.min), map(a.extent), map(a.value);
  PrimExpr predicate = n.predicate;
  if (predicate) map(predicate);
  Stmt init = n.init ? on_stmt(n.init) : Stmt(), body = on_stmt(n.body);
  if (!changed && init == n.init && body == n.body) return s;
  return make_node<BlockNode>(n.name, std::move(axes), std::move(predicate), std::move(init), std::move(body), n.memory,
                              n.annotations);
}
}  // namespace

Stmt map_children(const Stmt& s, const std::function<PrimExpr(const PrimExpr&)>& on_expr,
                  const std::function<Stmt(const Stmt&)>& on_stmt) {
  switch (s->kind) {
    case StmtKind::kFor: {
      const auto& n = node<ForNode>(s);
      auto lo = on_expr(n.min), extent = on_expr(n.extent);
      auto body = on_stmt(n.body);
      return lo == n.min && extent == n.extent && body == n.body
                 ? s
                 : make_for(n.var, std::move(lo), std::move(extent), std::move(body), n.for_kind, n.annotations);
    }
    case StmtKind::kStore: {
      const auto& n = node<StoreNode>(s);
      auto i = on_expr(n.index), v = on_expr(n.value), m = n.mask ? on_expr(n.mask) : PrimExpr();
      return i == n.index && v == n.value && m == n.mask ? s
                                                         : store(n.buffer, std::move(i), std::move(v), std::move(m));
    }
    case StmtKind::kPrefetch: {
      const auto& n = node<PrefetchNode>(s);
      auto i = on_expr(n.index);
      return i == n.index ? s : prefetch(n.buffer, std::move(i));
    }
    case StmtKind::kLetStmt: {
      const auto& n = node<LetStmtNode>(s);
      auto v = on_expr(n.value);
      auto body = on_stmt(n.body);
      return v == n.value && body == n.body ? s : let_stmt(n.var, std::move(v), std::move(body));
    }
    case StmtKind::kIf: {
      const auto& n = node<IfNode>(s);
      auto c = on_expr(n.condition);
      auto t = on_stmt(n.then_case), o = n.else_case ? on_stmt(n.else_case) : Stmt();
      return c == n.condition && t == n.then_case && o == n.else_case
                 ? s
                 : make_if(std::move(c), std::move(t), std::move(o));
    }
    case StmtKind::kWhile: {
      const auto& n = node<WhileNode>(s);
      auto c = on_expr(n.condition);
      auto body = on_stmt(n.body);
      return c == n.condition && body == n.body ? s : make_while(std::move(c), std::move(body));
    }
    case StmtKind::kSeq: {
      const auto& n = node<SeqNode>(s);
      std::vector<Stmt> stmts;
      stmts.reserve(n.stmts.size());
      for (const auto& child : n.stmts) stmts.push_back(on_stmt(child));
      return stmts == n.stmts ? s : seq(std::move(stmts));
    }
    case StmtKind::kAllocate: {
      const auto& n = node<AllocateNode>(s);
      auto body = on_stmt(n.body);
      return body == n.body ? s : allocate(n.buffer, std::move(body));
    }
    case StmtKind::kCallExtern: {
      const auto& n = node<CallExternNode>(s);
      std::vector<ExternArgument> args = n.args;
      bool changed = false;
      for (ExternArgument& a : args) {
        PrimExpr value = on_expr(a.value);
        changed = changed || value != a.value;
        a.value = std::move(value);
      }
      return changed ? call_extern(n.name, std::move(args), n.packed) : s;
    }
    case StmtKind::kWrite: {
      const auto& n = node<WriteNode>(s);
      std::vector<PrimExpr> indices;
      indices.reserve(n.indices.size());
      for (const auto& i : n.indices) indices.push_back(on_expr(i));
      PrimExpr value = on_expr(n.value);
      return indices == n.indices && value == n.value ? s
                                                      : write(n.target, n.name, std::move(indices), std::move(value));
    }
    case StmtKind::kBlock:
      return map_block(node<BlockNode>(s), s, on_expr, on_stmt);
  }
  return s;
}

PrimExpr mutate(const PrimExpr& e, const std::function<PrimExpr(PrimExpr)>& f) {
  Rewritten done;
  return rewrite(e, done, f);
}

Stmt mutate(const Stmt& s, const std::function<PrimExpr(PrimExpr)>& on_expr, const std::function<Stmt(Stmt)>& on_stmt) {
  Rewritten done;
  return rewrite(s, done, on_expr, on_stmt);
}

namespace {
auto replacing(const Substitution& values) {
  return [&values](PrimExpr e) -> PrimExpr {
    if (e->kind != ExprKind::kVar) return e;
    auto it = values.find(e.get());
    return it == values.end() ? e : it->second;
  };
}
}  // namespace
PrimExpr substitute(const PrimExpr& e, const Substitution& values) { return mutate(e, replacing(values)); }
Stmt substitute(const Stmt& s, const Substitution& values) { return mutate(s, replacing(values)); }

}  // namespace tilewright::tir
