// SPDX-License-Identifier: Apache-2.0
#include "relay/expr.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "relay/infer_type.h"
#include "relay/op.h"

namespace tilewright::relay {
namespace {

Type type_of_constant(const Tensor& data) { return tensor_type(to_shape(data.shape()), data.dtype()); }

Type type_of_function(const std::vector<Expr>& params, const Type& result, const std::vector<Type>& variables) {
  std::vector<Type> args;
  for (const Expr& p : params) args.push_back(p->type);
  return func_type(std::move(args), result, variables);
}

// The declared result counts where the body's type has gaps, where that is of a function of any types, and where it is
// another type, which InferType refuses.
const Type& result_of_function(const Type& declared, const Type& body) {
  if (!declared) return body;
  const bool of_any_types = takes_any_types(body) && is_complete(declared);
  return is_complete(body) && !of_any_types && types_agree(declared, body) ? body : declared;
}

Type type_of_match(const std::vector<Clause>& clauses) {
  Type type = incomplete_type();
  for (const Clause& clause : clauses)
    if (is_complete(clause.body->type)) type = type_of_either(type, clause.body->type);
  return type;
}

Type type_of_tuple(const std::vector<Expr>& fields) {
  std::vector<Type> types;
  for (const Expr& f : fields) types.push_back(f->type);
  return tuple_type(std::move(types));
}

// Unknown where there is no such field; inference then says so.
Type type_of_field(const Expr& tuple, int64_t index) {
  const auto* type = as_tuple(tuple->type);
  if (!type || index < 0 || index >= static_cast<int64_t>(type->fields.size())) return incomplete_type();
  return type->fields[static_cast<size_t>(index)];
}

// The children that a walk visits: unless entered, a Function is a leaf.
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
FunctionNode::FunctionNode(std::vector<Expr> p, Expr b, DictAttrs a, Span s, std::vector<Type> v, const Type& declared)
    : ExprNode(ExprKind::kFunction, type_of_function(p, result_of_function(declared, b->type), v), std::move(s)),
      params(std::move(p)),
      body(std::move(b)),
      attrs(std::move(a)),
      type_variables(std::move(v)) {}
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
    : ExprNode(ExprKind::kIf, type_of_either(t->type, e->type), std::move(s)),
      condition(std::move(c)),
      then_branch(std::move(t)),
      else_branch(std::move(e)) {}

ConstructorNode::ConstructorNode(std::string n, std::vector<Type> inputs, const Type& made, int64_t t)
    : ExprNode(ExprKind::kConstructor, func_type(std::move(inputs), made, as_data(made)->args), {}),
      name(std::move(n)),
      data_type(as_data(made)->name),
      tag(t) {}
MatchNode::MatchNode(Expr d, std::vector<Clause> c, bool all, Span s)
    : ExprNode(ExprKind::kMatch, type_of_match(c), std::move(s)),
      data(std::move(d)),
      clauses(std::move(c)),
      complete(all) {}
RefCreateNode::RefCreateNode(Expr v, Span s)
    : ExprNode(ExprKind::kRefCreate, reference_type(v->type), std::move(s)), value(std::move(v)) {}
RefReadNode::RefReadNode(Expr r, Span s)
    : ExprNode(ExprKind::kRefRead, as_reference(r->type) ? as_reference(r->type)->value : incomplete_type(),
               std::move(s)),
      reference(std::move(r)) {}
RefWriteNode::RefWriteNode(Expr r, Expr v, Span s)
    : ExprNode(ExprKind::kRefWrite, tuple_type({}), std::move(s)), reference(std::move(r)), value(std::move(v)) {}

Expr make_var(std::string name, Type type, Span span) {
  return make_node<VarNode>(std::move(name), std::move(type), std::move(span));
}
Expr make_global_var(std::string name, Type type) { return make_node<GlobalVarNode>(std::move(name), std::move(type)); }
Expr make_constant(Tensor data, Span span) { return make_node<ConstantNode>(std::move(data), std::move(span)); }
Expr make_tuple(std::vector<Expr> fields, Span span) {
  return make_node<TupleNode>(std::move(fields), std::move(span));
}
Expr make_get(Expr tuple, int64_t index, Span span) {
  return make_node<TupleGetItemNode>(std::move(tuple), index, std::move(span));
}
Expr make_function(std::vector<Expr> params, Expr body, DictAttrs attrs, Span span, std::vector<Type> type_variables) {
  return make_node<FunctionNode>(std::move(params), std::move(body), std::move(attrs), std::move(span),
                                 std::move(type_variables));
}
Expr with_body(const FunctionNode& f, std::vector<Expr> params, Expr body) {
  Type result = is_complete(body->type) ? Type() : as_func(f.type)->result;
  return make_node<FunctionNode>(std::move(params), std::move(body), f.attrs, f.span, f.type_variables,
                                 std::move(result));
}
Expr make_constructor(std::string name, std::vector<Type> inputs, const Type& made, int64_t tag) {
  return make_node<ConstructorNode>(std::move(name), std::move(inputs), made, tag);
}
Pattern make_pattern(PatternKind kind, Expr expr, std::vector<Pattern> fields) {
  return make_node<PatternNode>(kind, std::move(expr), std::move(fields));
}
Expr make_match(Expr data, std::vector<Clause> clauses, bool complete, Span span) {
  return make_node<MatchNode>(std::move(data), std::move(clauses), complete, std::move(span));
}

namespace {
void collect_vars(const Pattern& pattern, std::vector<Expr>* out) {
  if (pattern->kind == PatternKind::kVar) out->push_back(pattern->expr);
  for (const Pattern& field : pattern->fields) collect_vars(field, out);
}
}  // namespace

std::vector<Expr> pattern_vars(const Pattern& pattern) {
  std::vector<Expr> out;
  collect_vars(pattern, &out);
  return out;
}

Pattern with_pattern_vars(const Pattern& pattern, const std::map<const ExprNode*, Expr>& vars) {
  if (pattern->kind == PatternKind::kVar) {
    auto it = vars.find(pattern->expr.get());
    return it == vars.end() || it->second == pattern->expr ? pattern : make_pattern(PatternKind::kVar, it->second);
  }
  std::vector<Pattern> fields;
  for (const Pattern& field : pattern->fields) fields.push_back(with_pattern_vars(field, vars));
  return fields == pattern->fields ? pattern : make_pattern(pattern->kind, pattern->expr, std::move(fields));
}

bool is_closed_function(const Expr& e) {
  const auto* function = as<FunctionNode>(e);
  return function && (function->primitive() || function->attrs.count("Compiler") || function->attrs.count("Extern"));
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
  if (type && type->args.size() != args.size()) type = nullptr;  // inference says that the numbers differ
  std::vector<Type> given;
  for (const Expr& arg : args) given.push_back(arg->type);
  Type result = type ? applied_type(*type, given) : incomplete_type();
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
    case ExprKind::kConstructor:
      return {};
    case ExprKind::kMatch: {
      const auto* match = as<MatchNode>(e);
      std::vector<Expr> out{match->data};
      for (const Clause& clause : match->clauses) {
        for (Expr& var : pattern_vars(clause.pattern)) out.push_back(std::move(var));
        out.push_back(clause.body);
      }
      return out;
    }
    case ExprKind::kRefCreate:
      return {as<RefCreateNode>(e)->value};
    case ExprKind::kRefRead:
      return {as<RefReadNode>(e)->reference};
    case ExprKind::kRefWrite:
      return {as<RefWriteNode>(e)->reference, as<RefWriteNode>(e)->value};
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
  if (kids.empty() || kids == children(e)) return e;
  switch (e->kind) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kConstructor:
      return e;
    case ExprKind::kMatch: {
      const auto* match = as<MatchNode>(e);
      std::vector<Clause> clauses;
      size_t at = 1;
      for (const Clause& clause : match->clauses) {
        std::map<const ExprNode*, Expr> vars;
        for (const Expr& var : pattern_vars(clause.pattern)) {
          if (kids[at]->kind == ExprKind::kVar) vars[var.get()] = kids[at];
          ++at;
        }
        clauses.push_back({with_pattern_vars(clause.pattern, vars), kids[at++]});
      }
      return make_match(kids[0], std::move(clauses), match->complete, e->span);
    }
    case ExprKind::kRefCreate:
      return make_node<RefCreateNode>(kids[0], e->span);
    case ExprKind::kRefRead:
      return make_node<RefReadNode>(kids[0], e->span);
    case ExprKind::kRefWrite:
      return make_node<RefWriteNode>(kids[0], kids[1], e->span);
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
      return with_body(*f, std::move(params), kids.back());
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
    for (Expr& kid : kids) kid = done.at(kid.get());
    done[e.get()] = rewrite(e, with_children(e, kids));
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

const ConstructorNode* Module::constructor(const std::string& type, int64_t tag) const {
  auto it = types.find(type);
  if (it == types.end() || tag < 0 || tag >= static_cast<int64_t>(it->second.constructors.size())) return nullptr;
  return as<ConstructorNode>(it->second.constructors[static_cast<size_t>(tag)]);
}

}  // namespace tilewright::relay
