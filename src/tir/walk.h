// SPDX-License-Identifier: Apache-2.0
// Walking and rewriting loop IR with lambdas. Expressions are DAGs: analyses visit each distinct node once, rewriting
// processes it once, and unchanged parts keep their identity.
#pragma once
#include <functional>
#include <unordered_map>

#include "tir/stmt.h"

namespace tilewright::tir {

// The maximum depth of a valid function (verify checks it), so that recursive code over it fits an ordinary stack.
inline constexpr int kMaxExprDepth = 1000;
inline constexpr int kMaxStmtDepth = 1000;

// Calls f on each direct child expression.
void for_each_child(const PrimExpr& e, const std::function<void(const PrimExpr&)>& f);
// Calls f on each expression a statement holds itself (bounds, conditions, values), not on those of nested statements.
void for_each_own_expr(const Stmt& s, const std::function<void(const PrimExpr&)>& f);
// Calls f on each nested statement.
void for_each_child(const Stmt& s, const std::function<void(const Stmt&)>& f);

// Every distinct expression below e or s, children before parents.
void for_each_expr(const PrimExpr& e, const std::function<void(const PrimExpr&)>& f);
// Whether `e` reads the variable.
bool uses(const PrimExpr& e, const ExprNode* var);
void for_each_expr(const Stmt& s, const std::function<void(const PrimExpr&)>& f);
// Every statement, parents before children.
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& f);

// The node with each child replaced by f(child), through the (folding) builders; e or s itself if nothing changed.
// Bound variables are not children.
PrimExpr map_children(const PrimExpr& e, const std::function<PrimExpr(const PrimExpr&)>& f);
Stmt map_children(const Stmt& s, const std::function<PrimExpr(const PrimExpr&)>& on_expr,
                  const std::function<Stmt(const Stmt&)>& on_stmt);

// Bottom-up rewriting: f gets each node with its children already rewritten and returns it or its replacement.
PrimExpr mutate(const PrimExpr& e, const std::function<PrimExpr(PrimExpr)>& f);
Stmt mutate(const Stmt& s, const std::function<PrimExpr(PrimExpr)>& on_expr,
            const std::function<Stmt(Stmt)>& on_stmt = {});

// Replaces variables by expressions of the same dtype. Nested bindings keep their variables: two copies of a body in
// sequence share them, which is valid (a variable may be bound again in a sibling scope, not in a nested one).
using Substitution = std::unordered_map<const ExprNode*, PrimExpr>;
PrimExpr substitute(const PrimExpr& e, const Substitution& values);
Stmt substitute(const Stmt& s, const Substitution& values);

}  // namespace tilewright::tir
