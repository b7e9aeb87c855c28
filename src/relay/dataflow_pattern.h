// SPDX-License-Identifier: Apache-2.0
// The pattern language over graphs: what a subgraph looks like, found, rewritten or taken out as a function.
//
//   DFPattern x = wildcard(), bias = wildcard();
//   DFPattern conv = is_op("nn.conv2d")({x, is_constant()}).has_attr("groups", int64_t{1});
//   DFPattern pattern = is_op("nn.relu")({is_op("add")({conv, bias})});
//   Result<Expr> out = rewrite({{pattern, [&](const Expr& whole, const MatchMap& found) { ... found.at(conv) ... }}},
//   function);
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
  // A call of what this matches. Without arguments given: of any.
  DFPattern operator()(std::vector<DFPattern> args) const;
  // Either; the left one is tried first.
  DFPattern operator|(const DFPattern& other) const;
  // The same with or without what `wrap` puts around it: `conv.optional([](auto x) { return is_op("nn.relu")({x}); })`.
  DFPattern optional(const std::function<DFPattern(DFPattern)>& wrap) const;
  // An operator's call, or a function, with this attribute.
  DFPattern has_attr(std::string name, AttrValue value) const;
  DFPattern has_type(Type type) const;
  DFPattern has_shape(Shape shape) const;
  DFPattern has_dtype(DataType dtype) const;
  // Every way from this up through its operands goes through expressions like `path` and ends at `parent`, and
  // everything that uses the parent leads to this.
  DFPattern dominates(const DFPattern& parent, const DFPattern& path) const;
  bool operator==(const DFPattern& other) const { return node_ == other.node_; }

 private:
  Ref<DFPatternNode> node_;
};

class DFPatternNode : public Node {
 public:
  DFPatternKind kind = DFPatternKind::kWildcard;
  std::string name;  // kVar (empty: any), kOp, kAttributes
  // What it is made of. Of a wildcard: nothing, or what it was redirected to, which may hold the wildcard itself.
  std::vector<DFPattern> parts;
  bool any_args = false;      // kCall: of any number of operands; kTuple: of any fields; kFunction: of any parameters
  int64_t index = -1;         // kTupleGetItem: -1 for any
  Expr expr;                  // kExpr
  AttrValue value;            // kAttributes
  Type type;                  // kType
  Shape shape;                // kShape
  DataType dtype = kFloat32;  // kDataType
};

DFPattern wildcard();
// A wildcard made before what it stands for is known: a pattern may hold itself. One that does lives until its wildcard
// is redirected elsewhere.
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

// What each pattern object matched; more than one expression on the paths of a dominator.
using Matches = std::unordered_map<const DFPatternNode*, std::vector<Expr>>;
class MatchMap {
 public:
  MatchMap() = default;
  explicit MatchMap(Matches found) : found_(std::move(found)) {}
  // Null when the pattern had no part in the match (the other side of an alternative).
  Expr find(const DFPattern& pattern) const;
  Expr at(const DFPattern& pattern) const;  // a bug when it had no part
  std::vector<Expr> all(const DFPattern& pattern) const;

 private:
  Matches found_;
};

// Every pattern object of a tree once, parts before what they are part of.
std::vector<DFPattern> post_order(const DFPattern& root);

// Tries patterns on the expressions of one graph, in which dominance is judged.
class DFMatcher {
 public:
  explicit DFMatcher(const Expr& graph);
  ~DFMatcher();
  // What `pattern` found, beginning at `e`.
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

// Whether `pattern` matches `e`; `graph` is what dominance is judged in (null: `e` itself).
std::optional<MatchMap> match(const DFPattern& pattern, const Expr& e, const Expr& graph = {});

struct RewriteRule {
  DFPattern pattern;
  // What takes the place of `before`, which is now `after`: its operands may have been rewritten. `found` is what the
  // patterns matched, rewritten likewise.
  std::function<Result<Expr>(const Expr& before, const Expr& after, const MatchMap& found)> replace;
  bool once = false;  // goes over the graph until it has changed something
  // Completes types before each round, where the rule looks at them.
  std::function<Result<Expr>(const Expr&)> typed = {};
};
// Applies the rules to everything in `graph` until nothing changes. In one round matches do not overlap, the ones
// closest to the result come first, and what they hold is used by nothing outside. Error: LimitExceeded when that does
// not end, and what the rules report.
Result<Expr> rewrite(const std::vector<RewriteRule>& rules, const Expr& graph);

// Each match becomes a call of a function over what its wildcards and variables matched, in the pattern's order, with
// the attributes given and PartitionedFromPattern (the operators' names). Constants that a constant's pattern matched
// stay inside. Subgraphs whose inner values are used outside stay, and functions made from patterns are not entered.
Expr partition(const DFPattern& pattern, const Expr& graph, const DictAttrs& attrs = {},
               const std::function<bool(const Expr&)>& accept = {});

}  // namespace tilewright::relay
