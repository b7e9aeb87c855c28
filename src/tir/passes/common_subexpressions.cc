// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/format.h"
#include "tir/passes/loop_rewrites.h"
#include "tir/passes/rewritable.h"
#include "tir/structural.h"

namespace tilewright::tir {
namespace {

using Names = std::unordered_set<const ExprNode*>;
constexpr int64_t kMaxNodes = 100'000;  // of a statement's expressions as trees: a shared one may be huge as a tree

void bound_by(const Stmt& s, Names* out) {
  if (auto* loop = as<ForNode>(s)) out->insert(loop->var.get());
  if (auto* let = as<LetStmtNode>(s)) out->insert(let->var.get());
  if (auto* block = as<BlockNode>(s))
    for (const BlockAxis& axis : block->axes) out->insert(axis.var.get());
}

bool is_leaf(const PrimExpr& e) {
  return e->kind == ExprKind::kVar || e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm;
}

// Expressions of one form, and how often they occur in a statement.
struct Repeated {
  PrimExpr expr;
  int64_t size = 0, count = 0;  // nodes of one, occurrences
};

class Occurrences {
 public:
  explicit Occurrences(const Names& bound) : bound_(bound) {}

  void add(const Stmt& s) {
    for_each_own_expr(s, [&](const PrimExpr& e) { add(e); });
    for_each_child(s, [&](const Stmt& child) { add(child); });
  }
  // The largest that occurs more than once; the first of several.
  const Repeated* largest() const {
    const Repeated* best = nullptr;
    if (nodes_ > kMaxNodes) return best;
    for (const Repeated& r : all_)
      if (r.count > 1 && (best == nullptr || r.size > best->size)) best = &r;
    return best;
  }

 private:
  // Returns the number of nodes, or nothing if the expression is not to be moved.
  std::optional<int64_t> add(const PrimExpr& e) {
    if (++nodes_ > kMaxNodes) return std::nullopt;
    int64_t size = 1;
    bool movable = is_leaf(e) ? bound_.count(e.get()) == 0 : is_arithmetic(e);
    for_each_child(e, [&](const PrimExpr& child) {
      auto nodes = add(child);
      movable &= nodes.has_value();
      size += nodes.value_or(0);
    });
    if (!movable) return std::nullopt;
    if (!is_leaf(e)) count(e, size);
    return size;
  }
  void count(const PrimExpr& e, int64_t size) {
    std::vector<size_t>& alike = by_hash_[structural_hash(e, false)];
    for (size_t i : alike)
      if (structural_equal(all_[i].expr, e, false)) {
        ++all_[i].count;
        return;
      }
    alike.push_back(all_.size());
    all_.push_back({e, size, 1});
  }

  const Names& bound_;  // inside the statement
  int64_t nodes_ = 0;
  std::vector<Repeated> all_;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;
};

class Elimination {
 public:
  Stmt of(const Stmt& s) {
    Names bound;
    for_each_stmt(s, [&](const Stmt& inner) { bound_by(inner, &bound); });
    Occurrences here(bound);
    here.add(s);
    const Repeated* found = here.largest();
    if (found != nullptr && !in_one_child(s, *found)) {
      const PrimExpr var = make_var(format("cse_var_{}", ++made_), found->expr->dtype);
      const PrimExpr value = found->expr;
      // Once more with the binding, whose value may have parts that are left elsewhere.
      return of(let_stmt(var, value, mutate(s, [&](const PrimExpr& e) {
                           return !is_leaf(e) && structural_equal(e, value, false) ? var : e;
                         })));
    }
    return map_children(
        s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return of(child); });
  }

 private:
  static bool in_one_child(const Stmt& s, const Repeated& r) {
    bool one = false;
    for_each_child(s, [&](const Stmt& child) {
      int64_t count = 0;
      for_each_stmt(child, [&](const Stmt& inner) {
        for_each_own_expr(inner, [&](const PrimExpr& e) { count += occurrences(e, r.expr); });
      });
      one |= count == r.count;
    });
    return one;
  }
  static int64_t occurrences(const PrimExpr& e, const PrimExpr& wanted) {
    if (!is_leaf(e) && structural_equal(e, wanted, false)) return 1;
    int64_t count = 0;
    for_each_child(e, [&](const PrimExpr& child) { count += occurrences(child, wanted); });
    return count;
  }

  int made_ = 0;
};

}  // namespace

Stmt eliminate_common_subexpressions(const Stmt& s) { return Elimination().of(s); }

}  // namespace tilewright::tir
