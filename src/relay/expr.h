// SPDX-License-Identifier: Apache-2.0
// The graph IR: immutable, typed, shared expressions. Identity is the object; names are hints.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace tilewright::relay {

// clang-format off
#define TW_EXPR_KINDS(X) \
  X(Var) X(GlobalVar) X(Constant) X(Op) X(Call) X(Function) X(Tuple) X(TupleGetItem) X(Let) X(If) \
  X(Constructor) X(Match) X(RefCreate) X(RefRead) X(RefWrite)
// clang-format on
enum class ExprKind : uint8_t {
#define TW_KIND(name) k##name,
  TW_EXPR_KINDS(TW_KIND)
#undef TW_KIND
};

// Where an expression came from: the model's node name(s), joined by '+' when passes merge nodes. Shared, may be null.
using Span = std::shared_ptr<const std::string>;
Span make_span(std::string name);

class ExprNode : public Node {
 public:
  ExprNode(ExprKind k, Type t, Span s) : kind(k), type(std::move(t)), span(std::move(s)) {}
  const ExprKind kind;
  const Type type;  // never null
  const Span span;
};
using Expr = Ref<ExprNode>;

struct OpDef;

class VarNode : public ExprNode {
 public:
  VarNode(std::string n, Type t, Span s = {})
      : ExprNode(ExprKind::kVar, std::move(t), std::move(s)), name(std::move(n)) {}
  const std::string name;
};
class GlobalVarNode : public ExprNode {
 public:
  GlobalVarNode(std::string n, Type t) : ExprNode(ExprKind::kGlobalVar, std::move(t), {}), name(std::move(n)) {}
  const std::string name;
};
class ConstantNode : public ExprNode {
 public:
  explicit ConstantNode(Tensor d, Span s = {});
  const Tensor data;
};
class OpNode : public ExprNode {
 public:
  explicit OpNode(const OpDef* d) : ExprNode(ExprKind::kOp, incomplete_type(), {}), def(d) {}
  const OpDef* const def;
};
class CallNode : public ExprNode {
 public:
  CallNode(Expr c, std::vector<Expr> a, AttrsRef at, Type t, Span s)
      : ExprNode(ExprKind::kCall, std::move(t), std::move(s)),
        callee(std::move(c)),
        args(std::move(a)),
        attrs(std::move(at)) {}
  const Expr callee;  // an Op, or a function value: Function, GlobalVar, Constructor, Var ...
  const std::vector<Expr> args;
  const AttrsRef attrs;  // may be null
};
using DictAttrs = std::map<std::string, AttrValue>;
class FunctionNode : public ExprNode {
 public:
  FunctionNode(std::vector<Expr> p, Expr b, DictAttrs a, Span s = {}, std::vector<Type> v = {},
               const Type& declared = {});
  const std::vector<Expr> params;  // Vars
  const Expr body;
  const DictAttrs attrs;                   // "Primitive" = 1 marks a fusion group
  const std::vector<Type> type_variables;  // of a polymorphic function
  bool primitive() const;
};
class TupleNode : public ExprNode {
 public:
  explicit TupleNode(std::vector<Expr> f, Span s = {});
  const std::vector<Expr> fields;
};
class TupleGetItemNode : public ExprNode {
 public:
  TupleGetItemNode(Expr t, int64_t i, Span s = {});
  const Expr tuple;
  const int64_t index;
};
class LetNode : public ExprNode {
 public:
  LetNode(Expr v, Expr x, Expr b, Span s = {});
  const Expr var, value, body;
};
class IfNode : public ExprNode {
 public:
  IfNode(Expr c, Expr t, Expr e, Span s = {});
  const Expr condition, then_branch, else_branch;
};

// A constructor of an algebraic data type, as a function value: Cons: fn [A](A, List[A]) -> List[A].
class ConstructorNode : public ExprNode {
 public:
  ConstructorNode(std::string n, std::vector<Type> inputs, const Type& made, int64_t t);
  const std::string name;
  const std::string data_type;  // the type's name
  const int64_t tag;            // its index among the type's constructors
};
enum class PatternKind : uint8_t { kWildcard, kVar, kConstructor, kTuple };
class PatternNode;
using Pattern = Ref<PatternNode>;
class PatternNode : public Node {
 public:
  PatternNode(PatternKind k, Expr e, std::vector<Pattern> f) : kind(k), expr(std::move(e)), fields(std::move(f)) {}
  const PatternKind kind;
  const Expr expr;  // kVar: the Var it binds; kConstructor: the Constructor
  const std::vector<Pattern> fields;
};
struct Clause {
  Pattern pattern;
  Expr body;
};
// Evaluates the first clause whose pattern matches. `complete` states that one always does.
class MatchNode : public ExprNode {
 public:
  MatchNode(Expr d, std::vector<Clause> c, bool all, Span s = {});
  const Expr data;
  const std::vector<Clause> clauses;
  const bool complete;
};
class RefCreateNode : public ExprNode {
 public:
  explicit RefCreateNode(Expr v, Span s = {});
  const Expr value;
};
class RefReadNode : public ExprNode {
 public:
  explicit RefReadNode(Expr r, Span s = {});
  const Expr reference;
};
// The result is the empty tuple.
class RefWriteNode : public ExprNode {
 public:
  RefWriteNode(Expr r, Expr v, Span s = {});
  const Expr reference, value;
};

// The node as its class, or null when it is of another kind: `if (const auto* call = as<CallNode>(e))`.
template <class T>
const T* as(const Expr& e);
#define TW_AS(name)                                                                               \
  template <>                                                                                     \
  inline const name##Node* as<name##Node>(const Expr& e) {                                        \
    return e && e->kind == ExprKind::k##name ? static_cast<const name##Node*>(e.get()) : nullptr; \
  }
TW_EXPR_KINDS(TW_AS)
#undef TW_AS

Expr make_var(std::string name, Type type, Span span = {});
Expr make_global_var(std::string name, Type type);
Expr make_constant(Tensor data, Span span = {});
Expr make_tuple(std::vector<Expr> fields, Span span = {});
Expr make_get(Expr tuple, int64_t index, Span span = {});
Expr make_function(std::vector<Expr> params, Expr body, DictAttrs attrs = {}, Span span = {},
                   std::vector<Type> type_variables = {});
// The function with another body and parameters; attributes and type variables are kept. The result type is the body's,
// or the old one where the body's is unknown.
Expr with_body(const FunctionNode& function, std::vector<Expr> params, Expr body);
inline Expr with_body(const FunctionNode& function, Expr body) {
  return with_body(function, function.params, std::move(body));
}
Expr make_constructor(std::string name, std::vector<Type> inputs, const Type& made, int64_t tag);
Pattern make_pattern(PatternKind kind, Expr expr = {}, std::vector<Pattern> fields = {});
Expr make_match(Expr data, std::vector<Clause> clauses, bool complete = true, Span span = {});
// The variables that a pattern binds, left to right; and a copy of the pattern with other variables.
std::vector<Expr> pattern_vars(const Pattern& pattern);
Pattern with_pattern_vars(const Pattern& pattern, const std::map<const ExprNode*, Expr>& vars);
// A function that passes treat as a unit: a fused group, or one for an external compiler.
bool is_closed_function(const Expr& e);
// A scalar float32 / int64 / any-dtype constant.
Expr make_scalar(double value, DataType dtype = kFloat32);
// Calls an operator by name and infers the type. Errors: UnknownOp, TypeMismatch (located at the op's name). With an
// incompletely typed argument, the call gets an IncompleteType.
Result<Expr> try_call(std::string_view op, std::vector<Expr> args, AttrsRef attrs = {}, Span span = {});
// The same where the call is known to be valid: a failure is an internal error.
Expr call(std::string_view op, std::vector<Expr> args, AttrsRef attrs = {}, Span span = {});
// Calls a function value (a fusion group, a global).
Expr call_function(Expr callee, std::vector<Expr> args, Span span = {});
// The OpDef a call names, or null when the callee is not an op.
const OpDef* called_op(const Expr& e);
bool is_call_to(const Expr& e, std::string_view op);
// A new attribute node: `make_attrs<Conv2DAttrs>([&](auto& a) { a.strides = {1, 1}; })`.
template <class A, class F>
AttrsRef make_attrs(F&& fill) {
  auto* attrs = new A();
  AttrsRef kept(attrs);  // owned before `fill`, which may throw
  fill(*attrs);
  return kept;
}

// Children in evaluation order; the callee comes first when it is not an op.
std::vector<Expr> children(const Expr& e);
// Every expression reachable from `root`, operands before users, each once; iterative. Does not enter Function bodies
// unless `enter_functions`; a root that is itself a Function is always entered.
std::vector<Expr> post_order(const Expr& root, bool enter_functions = false);
// Rebuilds the graph bottom-up without recursion: `rewrite(old, with_new_children)` returns the replacement. Unchanged
// nodes keep their identity. Function bodies are rewritten when `enter_functions`.
using Rewrite = std::function<Expr(const Expr& original, const Expr& rebuilt)>;
Expr rewrite_graph(const Expr& root, const Rewrite& rewrite, bool enter_functions = false);
// The node over new children, with op calls typed again; `e` itself when the children are unchanged.
Expr with_children(const Expr& e, const std::vector<Expr>& kids);
// Replaces free variables by expressions.
Expr substitute(const Expr& root, const std::map<const VarNode*, Expr>& values);

// A module: global functions by name; the entry is "main". Copies share the (immutable) functions.
struct TypeDefinition {
  std::vector<Type> variables;
  std::vector<Expr> constructors;  // by tag
};
class Module {
 public:
  std::map<std::string, Expr> functions;        // GlobalVar name -> Function
  std::map<std::string, TypeDefinition> types;  // algebraic data types by name
  std::map<std::string, std::string> metadata;  // the model's own key/value pairs, carried into the artifact
  Expr main() const;                            // the entry function, or null
  const FunctionNode* main_function() const { return as<FunctionNode>(main()); }
  Module with_main(Expr function) const;
  const ConstructorNode* constructor(const std::string& type, int64_t tag) const;  // null when there is none
};

bool structural_equal(const Expr& a, const Expr& b);
bool structural_equal(const Module& a, const Module& b);

}  // namespace tilewright::relay
