// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "relay/structural.h"

namespace tilewright::relay {

// A size computed from an unknown one is unknown.
bool is_unknown(const Dim& d) {
  if (d.is_const()) return false;
  if (d.node()->kind == DimKind::kAny) return true;
  return d.node()->kind != DimKind::kSymbol && (is_unknown(d.node()->a) || is_unknown(d.node()->b));
}

namespace {

bool dims_alike(const Dim& a, const Dim& b) {
  if (a == b || (is_unknown(a) && is_unknown(b))) return true;
  if (a.is_const() || b.is_const() || a.node()->kind != b.node()->kind) return false;
  if (a.node()->kind == DimKind::kAny) return true;
  return a.node()->name == b.node()->name && dims_alike(a.node()->a, b.node()->a) &&
         dims_alike(a.node()->b, b.node()->b);
}

// Type variables correspond one to one: those that a function type binds by their place, free ones as they are met, or
// only each to itself.
struct Variables {
  bool map_free = true;
  std::map<const TypeNode*, const TypeNode*> forth, back;

  void bind(const Type& a, const Type& b) {
    forth[a.get()] = b.get();
    back[b.get()] = a.get();
  }
  bool alike(const Type& a, const Type& b) {
    auto known = forth.find(a.get());
    if (known != forth.end()) return known->second == b.get();
    if (back.count(b.get()) || (!map_free && a.get() != b.get())) return false;
    bind(a, b);
    return true;
  }
};

bool types_alike(const Type& a, const Type& b, Variables& variables) {
  if (a->kind != b->kind) return false;
  if (a->kind == TypeKind::kTensor) {
    const auto &x = *as_tensor(a), &y = *as_tensor(b);
    return x.dtype == y.dtype && x.shape.size() == y.shape.size() &&
           std::equal(x.shape.begin(), x.shape.end(), y.shape.begin(), dims_alike);
  }
  if (a->kind == TypeKind::kVariable) return variables.alike(a, b);
  if (a->kind == TypeKind::kData && as_data(a)->name != as_data(b)->name) return false;
  if (const auto* f = as_func(a), *g = as_func(b); f && g) {
    if (f->variables.size() != g->variables.size()) return false;
    for (size_t i = 0; i < f->variables.size(); ++i) variables.bind(f->variables[i], g->variables[i]);
  }
  std::vector<Type> x = parts_of(a), y = parts_of(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (!types_alike(x[i], y[i], variables)) return false;
  return true;
}

bool same_data(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype().is_string()) return a.string_values() == b.string_values();
  return a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// Equal within the rounding of a text.
bool numbers_alike(double a, double b) { return a == b || std::fabs(a - b) < 1e-9; }

bool attrs_alike(const AttrsRef& a, const AttrsRef& b) {
  if (attrs_equal(a, b)) return true;
  if (!a || !b || std::string_view(a->type_name()) != b->type_name()) return false;
  const auto x = attr_texts(a), y = attr_texts(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    if (p == q) return true;
    // A trailing f marks a real number: "1e-05f".
    auto is_real = [](const std::string& s) { return s.size() > 1 && s[0] != '"' && s.back() == 'f'; };
    return p.first == q.first && is_real(p.second) && is_real(q.second) &&
           numbers_alike(std::strtod(p.second.c_str(), nullptr), std::strtod(q.second.c_str(), nullptr));
  });
}

bool dict_alike(const DictAttrs& a, const DictAttrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& p, const auto& q) {
    const auto *x = std::get_if<double>(&p.second), *y = std::get_if<double>(&q.second);
    return p.first == q.first && (x && y ? numbers_alike(*x, *y) : p.second == q.second);
  });
}

// Compares everything but children.
bool same_patterns(const Pattern& a, const Pattern& b) {
  if (a->kind != b->kind || a->fields.size() != b->fields.size()) return false;
  if (a->kind == PatternKind::kConstructor) {
    const auto *x = as<ConstructorNode>(a->expr), *y = as<ConstructorNode>(b->expr);
    if (x->data_type != y->data_type || x->name != y->name) return false;
  }
  for (size_t i = 0; i < a->fields.size(); ++i)
    if (!same_patterns(a->fields[i], b->fields[i])) return false;
  return true;
}

// Binds the type variables of two functions; their results' types differ only where one of them is not known.
bool results_alike(const Expr& a, const Expr& b, Variables& variables) {
  const auto *x = as<FunctionNode>(a), *y = as<FunctionNode>(b);
  if (x->type_variables.size() != y->type_variables.size()) return false;
  for (size_t i = 0; i < x->type_variables.size(); ++i) variables.bind(x->type_variables[i], y->type_variables[i]);
  const auto *f = as_func(a->type), *g = as_func(b->type);
  if (!f || !g || !as_tensor(f->result) || !as_tensor(g->result)) return true;
  return types_alike(f->result, g->result, variables);
}

bool same_head(const Expr& a, const Expr& b, Variables& variables) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case ExprKind::kVar:
      return types_alike(a->type, b->type, variables);
    case ExprKind::kGlobalVar:
      return as<GlobalVarNode>(a)->name == as<GlobalVarNode>(b)->name;
    case ExprKind::kConstant:
      return same_data(as<ConstantNode>(a)->data, as<ConstantNode>(b)->data);
    case ExprKind::kOp:
      return as<OpNode>(a)->def == as<OpNode>(b)->def;
    case ExprKind::kCall:
      return called_op(a) == called_op(b) && attrs_alike(as<CallNode>(a)->attrs, as<CallNode>(b)->attrs);
    case ExprKind::kFunction:
      return dict_alike(as<FunctionNode>(a)->attrs, as<FunctionNode>(b)->attrs) && results_alike(a, b, variables);
    case ExprKind::kConstructor:
      return as<ConstructorNode>(a)->name == as<ConstructorNode>(b)->name &&
             as<ConstructorNode>(a)->data_type == as<ConstructorNode>(b)->data_type;
    case ExprKind::kMatch: {
      const auto *x = as<MatchNode>(a), *y = as<MatchNode>(b);
      return x->complete == y->complete && x->clauses.size() == y->clauses.size() &&
             std::equal(x->clauses.begin(), x->clauses.end(), y->clauses.begin(),
                        [](const Clause& p, const Clause& q) { return same_patterns(p.pattern, q.pattern); });
    }
    case ExprKind::kTupleGetItem:
      return as<TupleGetItemNode>(a)->index == as<TupleGetItemNode>(b)->index;
    case ExprKind::kTuple:
    case ExprKind::kLet:
    case ExprKind::kIf:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      return true;
  }
  return false;
}

bool same_definition(const TypeDefinition& a, const TypeDefinition& b) {
  if (a.variables.size() != b.variables.size() || a.constructors.size() != b.constructors.size()) return false;
  Variables variables;
  for (size_t i = 0; i < a.constructors.size(); ++i)
    if (!same_head(a.constructors[i], b.constructors[i], variables) ||
        !types_alike(a.constructors[i]->type, b.constructors[i]->type, variables))
      return false;
  return true;
}

// Expressions whose sharing matters; others are compared by content only.
bool is_shared(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kCall:
    case ExprKind::kFunction:
    case ExprKind::kLet:
    case ExprKind::kIf:
    case ExprKind::kMatch:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      return true;
    case ExprKind::kTuple:
      return !as<TupleNode>(e)->fields.empty();
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kTupleGetItem:
    case ExprKind::kConstructor:
      return false;
  }
  return false;
}

std::unordered_set<const ExprNode*> set_of_free(const Expr& root) {
  std::unordered_set<const ExprNode*> out;
  for (const Expr& e : free_variables(root)) out.insert(e.get());
  return out;
}

}  // namespace

std::vector<Expr> free_variables(const Expr& root) {
  std::unordered_set<const ExprNode*> bound;
  const std::vector<Expr> order = post_order(root, true);
  for (const Expr& e : order) {
    if (const auto* f = as<FunctionNode>(e))
      for (const Expr& p : f->params) bound.insert(p.get());
    if (const auto* let = as<LetNode>(e)) bound.insert(let->var.get());
    if (const auto* match = as<MatchNode>(e))
      for (const Clause& clause : match->clauses)
        for (const Expr& v : pattern_vars(clause.pattern)) bound.insert(v.get());
  }
  std::vector<Expr> out;
  for (const Expr& e : order)
    if (as<VarNode>(e) && !bound.count(e.get())) out.push_back(e);
  return out;
}

bool structural_equal(const Type& a, const Type& b) {
  Variables variables{.map_free = false, .forth = {}, .back = {}};
  if (!a || !b) return !a && !b;
  return types_alike(a, b, variables);
}

bool structural_equal(const Expr& a, const Expr& b, const StructuralOptions& options) {
  if (!a || !b) return !a && !b;
  std::unordered_set<const ExprNode*> fixed;  // free variables compared by identity
  if (!options.map_free_variables)
    for (const Expr& side : {a, b}) fixed.merge(set_of_free(side));
  std::vector<std::pair<Expr, Expr>> stack{{a, b}};
  std::set<std::pair<const ExprNode*, const ExprNode*>> seen;
  // One-to-one correspondence of variables and, with sharing, of shared nodes.
  std::unordered_map<const ExprNode*, const ExprNode*> left, right;
  Variables variables;
  while (!stack.empty()) {
    auto [x, y] = stack.back();
    stack.pop_back();
    if (!seen.insert({x.get(), y.get()}).second) continue;
    if (fixed.count(x.get()) || fixed.count(y.get())) {
      if (!(x == y)) return false;
      continue;
    }
    if (!same_head(x, y, variables)) return false;
    const bool variable = x->kind == ExprKind::kVar;
    if (variable || (options.sharing && is_shared(x))) {
      if (left.try_emplace(x.get(), y.get()).first->second != y.get()) return false;
      if (right.try_emplace(y.get(), x.get()).first->second != x.get()) return false;
    }
    if (variable) continue;
    std::vector<Expr> kx = children(x), ky = children(y);
    if (kx.size() != ky.size()) return false;
    for (size_t i = 0; i < kx.size(); ++i) stack.emplace_back(kx[i], ky[i]);
  }
  return true;
}

bool structural_equal(const Expr& a, const Expr& b) { return structural_equal(a, b, {.sharing = false}); }

bool structural_equal(const Module& a, const Module& b, const StructuralOptions& options) {
  if (a.functions.size() != b.functions.size() || a.metadata != b.metadata || a.types.size() != b.types.size())
    return false;
  for (auto x = a.types.begin(), y = b.types.begin(); x != a.types.end(); ++x, ++y)
    if (x->first != y->first || !same_definition(x->second, y->second)) return false;
  for (auto x = a.functions.begin(), y = b.functions.begin(); x != a.functions.end(); ++x, ++y)
    if (x->first != y->first || !structural_equal(x->second, y->second, options)) return false;
  return true;
}

bool structural_equal(const Module& a, const Module& b) { return structural_equal(a, b, {.sharing = false}); }

}  // namespace tilewright::relay
