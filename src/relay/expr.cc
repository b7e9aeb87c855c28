// SPDX-License-Identifier: Apache-2.0
#include "relay/expr.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "relay/op.h"

namespace tilewright::relay {
namespace {

Type type_of_constant(const Tensor& data) { return tensor_type(to_shape(data.shape()), data.dtype()); }

Type type_of_function(const std::vector<Expr>& params, const Expr& body) {
  std::vector<Type> args;
  for (const Expr& p : params) args.push_back(p->type);
  return func_type(std::move(args), body->type);
}

Type type_of_tuple(const std::vector<Expr>& fields) {
  std::vector<Type> types;
  for (const Expr& f : fields) types.push_back(f->type);
  return tuple_type(std::move(types));
}

Type type_of_field(const Expr& tuple, int64_t index) {
  if (tuple->type->kind == TypeKind::kIncomplete) return incomplete_type();
  const auto* type = as_tuple(tuple->type);
  TW_ICHECK(type && index >= 0 && index < static_cast<int64_t>(type->fields.size()),
            format("field {} of {}", index, type_str(tuple->type)));
  return type->fields[static_cast<size_t>(index)];
}

// The children that a walk visits: a Function is a leaf unless entered.
std::vector<Expr> walk_children(const Expr& e, bool enter) {
  if (e->kind == ExprKind::kFunction && !enter) return {};
  return children(e);
}

}  // namespace

Span make_span(std::string name) {
  return name.empty() ? nullptr : std::make_shared<const std::string>(std::move(name));
}

ConstantNode::ConstantNode(Tensor d, Span s)
    : ExprNode(ExprKind::kConstant, type_of_constant(d), std::move(s)), data(std::move(d)) {}
FunctionNode::FunctionNode(std::vector<Expr> p, Expr b, DictAttrs a, Span s)
    : ExprNode(ExprKind::kFunction, type_of_function(p, b), std::move(s)),
      params(std::move(p)), body(std::move(b)), attrs(std::move(a)) {}
bool FunctionNode::primitive() const {
  auto it = attrs.find("Primitive");
  if (it == attrs.end()) return false;
  if (const auto* n = std::get_if<int64_t>(&it->second)) return *n != 0;
  const auto* b = std::get_if<bool>(&it->second);
  return b && *b;
}
TupleNode::TupleNode(std::vector<Expr> f, Span s)
    : ExprNode(ExprKind::kTuple, type_of_tuple(f), std::move(s)), fields(std::move(f)) {}
TupleGetItemNode::TupleGetItemNode(Expr t, int64_t i, Span s)
    : ExprNode(ExprKind::kTupleGetItem, type_of_field(t, i), std::move(s)), tuple(std::move(t)), index(i) {}
LetNode::LetNode(Expr v, Expr x, Expr b, Span s)
    : ExprNode(ExprKind::kLet, b->type, std::move(s)), var(std::move(v)), value(std::move(x)), body(std::move(b)) {}
IfNode::IfNode(Expr c, Expr t, Expr e, Span s)
    : ExprNode(ExprKind::kIf, t->type, std::move(s)),
      condition(std::move(c)), then_branch(std::move(t)), else_branch(std::move(e)) {}

Expr make_var(std::string name, Type type, Span span) {
  return make_node<VarNode>(std::move(name), std::move(type), std::move(span));
}
Expr make_global_var(std::string name, Type type) { return make_node<GlobalVarNode>(std::move(name), std::move(type)); }
Expr make_constant(Tensor data, Span span) { return make_node<ConstantNode>(std::move(data), std::move(span)); }
Expr make_tuple(std::vector<Expr> fields, Span span) { return make_node<TupleNode>(std::move(fields), std::move(span)); }
Expr make_get(Expr tuple, int64_t index, Span span) {
  return make_node<TupleGetItemNode>(std::move(tuple), index, std::move(span));
}
Expr make_function(std::vector<Expr> params, Expr body, DictAttrs attrs, Span span) {
  return make_node<FunctionNode>(std::move(params), std::move(body), std::move(attrs), std::move(span));
}
Expr make_scalar(double value, DataType dtype) {
  Tensor t = Tensor::zeros(dtype, {});
  t.set_double(0, value);
  return make_constant(std::move(t));
}

Expr call(std::string_view op, std::vector<Expr> args, AttrsRef attrs, Span span) {
  return try_call(op, std::move(args), std::move(attrs), std::move(span)).value();
}

Expr call_function(Expr callee, std::vector<Expr> args, Span span) {
  const auto* type = as_func(callee->type);
  TW_ICHECK(!type || type->args.size() == args.size(), "call with another number of arguments");
  Type result = type ? type->result : incomplete_type();
  return make_node<CallNode>(std::move(callee), std::move(args), AttrsRef(), std::move(result), std::move(span));
}

const OpDef* called_op(const Expr& e) {
  const auto* c = as<CallNode>(e);
  const auto* op = c ? as<OpNode>(c->callee) : nullptr;
  return op ? op->def : nullptr;
}

bool is_call_to(const Expr& e, std::string_view op) {
  const OpDef* def = called_op(e);
  return def && op == def->name;
}

std::vector<Expr> children(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
      return {};
    case ExprKind::kCall: {
      const auto* c = as<CallNode>(e);
      if (c->callee->kind == ExprKind::kOp) return c->args;
      std::vector<Expr> out{c->callee};
      out.insert(out.end(), c->args.begin(), c->args.end());
      return out;
    }
    case ExprKind::kFunction: {
      const auto* f = as<FunctionNode>(e);
      std::vector<Expr> out = f->params;
      out.push_back(f->body);
      return out;
    }
    case ExprKind::kTuple:
      return as<TupleNode>(e)->fields;
    case ExprKind::kTupleGetItem:
      return {as<TupleGetItemNode>(e)->tuple};
    case ExprKind::kLet: {
      const auto* l = as<LetNode>(e);
      return {l->var, l->value, l->body};
    }
    case ExprKind::kIf: {
      const auto* i = as<IfNode>(e);
      return {i->condition, i->then_branch, i->else_branch};
    }
  }
  return {};
}

std::vector<Expr> post_order(const Expr& root, bool enter_functions) {
  struct Frame {
    Expr expr;
    std::vector<Expr> kids;
    size_t next = 0;
  };
  std::vector<Expr> out;
  std::unordered_set<const ExprNode*> seen{root.get()};
  std::vector<Frame> stack;
  stack.push_back({root, walk_children(root, true)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.kids.size()) {
      out.push_back(top.expr);
      stack.pop_back();
      continue;
    }
    Expr kid = top.kids[top.next++];
    if (seen.insert(kid.get()).second) stack.push_back({kid, walk_children(kid, enter_functions)});
  }
  return out;
}

Expr with_children(const Expr& e, const std::vector<Expr>& kids) {
  switch (e->kind) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
      return e;
    case ExprKind::kCall: {
      const auto* c = as<CallNode>(e);
      if (const auto* op = as<OpNode>(c->callee)) return call(op->def->name, kids, c->attrs, c->span);
      return call_function(kids[0], {kids.begin() + 1, kids.end()}, c->span);
    }
    case ExprKind::kFunction: {
      const auto* f = as<FunctionNode>(e);
      std::vector<Expr> params(kids.begin(), kids.end() - 1);
      for (size_t i = 0; i < params.size(); ++i)
        if (params[i]->kind != ExprKind::kVar) params[i] = f->params[i];
      return make_function(std::move(params), kids.back(), f->attrs, f->span);
    }
    case ExprKind::kTuple:
      return make_tuple(kids, e->span);
    case ExprKind::kTupleGetItem:
      return make_get(kids[0], as<TupleGetItemNode>(e)->index, e->span);
    case ExprKind::kLet: {
      const Expr& var = kids[0]->kind == ExprKind::kVar ? kids[0] : as<LetNode>(e)->var;
      return make_node<LetNode>(var, kids[1], kids[2], e->span);
    }
    case ExprKind::kIf:
      return make_node<IfNode>(kids[0], kids[1], kids[2], e->span);
  }
  return e;
}

Expr rewrite_graph(const Expr& root, const Rewrite& rewrite, bool enter_functions) {
  std::unordered_map<const ExprNode*, Expr> done;
  for (const Expr& e : post_order(root, enter_functions)) {
    std::vector<Expr> kids = walk_children(e, enter_functions || e == root);
    bool changed = false;
    for (Expr& kid : kids) {
      const Expr& now = done.at(kid.get());
      if (!(now == kid)) {
        kid = now;
        changed = true;
      }
    }
    done[e.get()] = rewrite(e, changed ? with_children(e, kids) : e);
  }
  return done.at(root.get());
}

Expr substitute(const Expr& root, const std::map<const VarNode*, Expr>& values) {
  return rewrite_graph(
      root,
      [&](const Expr& original, const Expr& rebuilt) {
        const auto* var = as<VarNode>(original);
        auto it = var ? values.find(var) : values.end();
        return it == values.end() ? rebuilt : it->second;
      },
      true);
}

Expr Module::main() const {
  auto it = functions.find("main");
  return it == functions.end() ? Expr() : it->second;
}

Module Module::with_main(Expr function) const {
  Module out = *this;
  out.functions["main"] = std::move(function);
  return out;
}

namespace {

// Equality up to the names of variables. Two `?` dims count as equal: each text or model makes its own.
bool dims_alike(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_const() || b.is_const() || a.node()->kind != b.node()->kind) return false;
  if (a.node()->kind == DimKind::kAny) return true;
  return a.node()->name == b.node()->name && dims_alike(a.node()->a, b.node()->a) && dims_alike(a.node()->b, b.node()->b);
}

bool types_alike(const Type& a, const Type& b) {
  if (a->kind != b->kind) return false;
  auto all = [](const std::vector<Type>& x, const std::vector<Type>& y) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), types_alike);
  };
  switch (a->kind) {
    case TypeKind::kTensor: {
      const auto &x = *as_tensor(a), &y = *as_tensor(b);
      return x.dtype == y.dtype && x.shape.size() == y.shape.size() &&
             std::equal(x.shape.begin(), x.shape.end(), y.shape.begin(), dims_alike);
    }
    case TypeKind::kTuple:
      return all(as_tuple(a)->fields, as_tuple(b)->fields);
    case TypeKind::kFunc:
      return all(as_func(a)->args, as_func(b)->args) && types_alike(as_func(a)->result, as_func(b)->result);
    case TypeKind::kIncomplete:
      return true;
  }
  return false;
}

bool same_data(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype().is_string()) return a.string_values() == b.string_values();
  return a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// The part of equality that is not about children.
bool same_head(const Expr& a, const Expr& b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case ExprKind::kVar:
      return types_alike(a->type, b->type);
    case ExprKind::kGlobalVar:
      return as<GlobalVarNode>(a)->name == as<GlobalVarNode>(b)->name;
    case ExprKind::kConstant:
      return same_data(as<ConstantNode>(a)->data, as<ConstantNode>(b)->data);
    case ExprKind::kOp:
      return as<OpNode>(a)->def == as<OpNode>(b)->def;
    case ExprKind::kCall:
      return called_op(a) == called_op(b) && attrs_equal(as<CallNode>(a)->attrs, as<CallNode>(b)->attrs);
    case ExprKind::kFunction:
      return as<FunctionNode>(a)->attrs == as<FunctionNode>(b)->attrs;
    case ExprKind::kTupleGetItem:
      return as<TupleGetItemNode>(a)->index == as<TupleGetItemNode>(b)->index;
    case ExprKind::kTuple:
    case ExprKind::kLet:
    case ExprKind::kIf:
      return true;
  }
  return false;
}

}  // namespace

bool structural_equal(const Expr& a, const Expr& b) {
  if (!a || !b) return !a && !b;
  std::vector<std::pair<Expr, Expr>> stack{{a, b}};
  std::set<std::pair<const ExprNode*, const ExprNode*>> seen;
  std::unordered_map<const ExprNode*, const ExprNode*> left, right;  // variables, one to one
  while (!stack.empty()) {
    auto [x, y] = stack.back();
    stack.pop_back();
    if (!seen.insert({x.get(), y.get()}).second) continue;
    if (!same_head(x, y)) return false;
    if (x->kind == ExprKind::kVar) {
      if (left.try_emplace(x.get(), y.get()).first->second != y.get()) return false;
      if (right.try_emplace(y.get(), x.get()).first->second != x.get()) return false;
      continue;
    }
    std::vector<Expr> kx = children(x), ky = children(y);
    if (kx.size() != ky.size()) return false;
    for (size_t i = 0; i < kx.size(); ++i) stack.emplace_back(kx[i], ky[i]);
  }
  return true;
}

bool structural_equal(const Module& a, const Module& b) {
  if (a.functions.size() != b.functions.size() || a.metadata != b.metadata) return false;
  for (auto x = a.functions.begin(), y = b.functions.begin(); x != a.functions.end(); ++x, ++y)
    if (x->first != y->first || !structural_equal(x->second, y->second)) return false;
  return true;
}

}  // namespace tilewright::relay
