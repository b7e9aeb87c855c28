// SPDX-License-Identifier: Apache-2.0
// The dataflow pattern language: describes subgraphs to match, rewrite or partition into functions.
//
//   DFPattern x = wildcard(), bias = wildcard();
//   DFPattern conv = is_op("nn.conv2d")({x, is_constant()}).has_attr("groups", int64_t{1});
//   DFPattern pattern = is_op("nn.relu")({is_op("add")({conv, bias})});
//   auto replace = [&](const Expr& before, const Expr& after, const MatchMap& found) { ... found.at(conv) ... };
//   Result<Expr> out = rewrite({{pattern, replace}}, function);
//
// One pattern object stands for one expression: used twice in a pattern, both places must be the same. The operands of
// add and multiply match in either order, and (a * b) / c matches a * (b / c) too. Names are the classic stack's.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

enum class DFPatternKind : uint8_t {
  kWildcard,
  kVar,
  kConstant,
  kExpr,
  kOp,
  kCall,
  kTuple,
  kTupleGetItem,
  kFunction,
  kIf,
  kLet,
  kAlternative,
  kAttributes,
  kType,
  kShape,
  kDataType,
  kDominator,
};

class DFPatternNode;

class DFPattern {
 public:
  DFPattern() = default;
  explicit DFPattern(Ref<DFPatternNode> node) : node_(std::move(node)) {}
  const DFPatternNode* get() const { return node_.get(); }
  const DFPatternNode* operator->() const { return node_.get(); }
  explicit operator bool() const { return static_cast<bool>(node_); }
  // A call of the callee that this matches; without arguments given, of any operands.
  DFPattern operator()(std::vector<DFPattern> args) const;
  // Alternatives; the left one is tried first.
  DFPattern operator|(const DFPattern& other) const;
  // This, with or without what `wrap` puts around it: `conv.optional([](auto x) { return is_op("nn.relu")({x}); })`.
  DFPattern optional(const std::function<DFPattern(DFPattern)>& wrap) const;
  // A call or function with this attribute.
  DFPattern has_attr(std::string name, AttrValue value) const;
  DFPattern has_type(Type type) const;
  DFPattern has_shape(Shape shape) const;
  DFPattern has_dtype(DataType dtype) const;
  // Dominance: all paths from this expression through its operands consist of expressions that match `path` and end at
  // `parent`, and all users of the parent lead here.
  DFPattern dominates(const DFPattern& parent, const DFPattern& path) const;
  bool operator==(const DFPattern& other) const { return node_ == other.node_; }

 private:
  Ref<DFPatternNode> node_;
};

class DFPatternNode : public Node {
 public:
  DFPatternKind kind = DFPatternKind::kWildcard;
  std::string name;  // kVar (empty: any), kOp, kAttributes
  // Sub-patterns. A wildcard has none, or the pattern that it was redirected to, which may contain the wildcard itself.
  std::vector<DFPattern> parts;
  bool any_args = false;      // kCall: any operands; kTuple: any fields; kFunction: any parameters
  int64_t index = -1;         // kTupleGetItem: -1 for any
  Expr expr;                  // kExpr
  AttrValue value;            // kAttributes
  Type type;                  // kType
  Shape shape;                // kShape
  DataType dtype = kFloat32;  // kDataType
};

DFPattern wildcard();
// Makes a wildcard stand for `pattern`, so that a pattern can be recursive. A recursive pattern holds a reference to
// itself and is freed only when its wildcard is redirected elsewhere.
void redirect(const DFPattern& wildcard, DFPattern pattern);
DFPattern is_var(std::string name = "");
DFPattern is_constant();
DFPattern is_expr(Expr expr);
DFPattern is_op(std::string name);
DFPattern is_call(DFPattern callee);  // with any operands
DFPattern is_tuple(std::vector<DFPattern> fields);
DFPattern is_any_tuple();
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
DFPattern is_function(std::vector<DFPattern> params, DFPattern body);
DFPattern is_function_of(DFPattern body);  // with any parameters
DFPattern is_if(DFPattern condition, DFPattern then_branch, DFPattern else_branch);
DFPattern is_let(DFPattern var, DFPattern value, DFPattern body);

// The expressions that each pattern matched; several on the paths of a dominator.
using Matches = std::unordered_map<const DFPatternNode*, std::vector<Expr>>;
class MatchMap {
 public:
  MatchMap() = default;
  explicit MatchMap(Matches found) : found_(std::move(found)) {}
  // Null when the pattern did not take part in the match (the other side of an alternative).
  Expr find(const DFPattern& pattern) const;
  Expr at(const DFPattern& pattern) const;  // an internal error when it did not take part
  std::vector<Expr> all(const DFPattern& pattern) const;

 private:
  Matches found_;
};

// All patterns of a tree, each once, sub-patterns first.
std::vector<DFPattern> post_order(const DFPattern& root);

// Matches patterns against the expressions of one graph; dominance is relative to that graph.
class DFMatcher {
 public:
  explicit DFMatcher(const Expr& graph);
  ~DFMatcher();
  // The match of `pattern` rooted at `e`.
  std::optional<Matches> match(const DFPattern& pattern, const Expr& e);
  // The expressions that use `e`.
  const std::vector<Expr>& users(const Expr& e) const;
  // The graph's expressions, operands first.
  const std::vector<Expr>& order() const;

 private:
  class Graph;
  class Attempt;
  std::unique_ptr<Graph> graph_;
};

// Whether `pattern` matches `e`; dominance is relative to `graph` (null: to `e`).
std::optional<MatchMap> match(const DFPattern& pattern, const Expr& e, const Expr& graph = {});

struct RewriteRule {
  DFPattern pattern;
  // Gives the replacement of `before`; `after` is `before` with its operands already rewritten. `found` is what the
  // patterns matched, rewritten likewise.
  std::function<Result<Expr>(const Expr& before, const Expr& after, const MatchMap& found)> replace;
  bool once = false;  // stops after the first round that changed something
  // Infers types before each round, for rules that look at them.
  std::function<Result<Expr>(const Expr&)> typed = {};
};
// Applies the rules to `graph` until nothing changes. Within a round matches do not overlap; those closest to the
// result win; and nothing outside a match uses its inner values. Errors: LimitExceeded if it does not terminate, and
// what rules report.
Result<Expr> rewrite(const std::vector<RewriteRule>& rules, const Expr& graph);

// Turns each match into a call of a function over what its wildcards and variables matched, in the pattern's order; the
// function has the given attributes and PartitionedFromPattern (the names of its operators). Constants matched by a
// constant pattern move into the function. Subgraphs whose inner values are used outside are left alone, and functions
// made from patterns are not entered.
Expr partition(const DFPattern& pattern, const Expr& graph, const DictAttrs& attrs = {},
               const std::function<bool(const Expr&)>& accept = {});

}  // namespace tilewright::relay
