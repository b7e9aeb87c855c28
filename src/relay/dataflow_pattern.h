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
// add, multiply, maximum and minimum match in either order. Names are the classic stack's.
#pragma once
#include <functional>
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
  // This dominates nothing further up: every path from `parent` to it goes through expressions like `path` only, and
  // nothing on those paths is used outside them.
  DFPattern dominates(const DFPattern& parent, const DFPattern& path) const;
  bool operator==(const DFPattern& other) const { return node_ == other.node_; }

 private:
  Ref<DFPatternNode> node_;
};

class DFPatternNode : public Node {
 public:
  DFPatternKind kind = DFPatternKind::kWildcard;
  std::string name;              // kVar (empty: any), kOp, kAttributes
  std::vector<DFPattern> parts;  // what it is made of
  bool any_args = false;      // kCall: of any number of operands; kTuple: of any fields; kFunction: of any parameters
  int64_t index = -1;         // kTupleGetItem: -1 for any
  Expr expr;                  // kExpr
  AttrValue value;            // kAttributes
  Type type;                  // kType
  Shape shape;                // kShape
  DataType dtype = kFloat32;  // kDataType
};

DFPattern wildcard();
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

// What each pattern object matched.
class MatchMap {
 public:
  // Null when the pattern had no part in the match (the other side of an alternative).
  Expr find(const DFPattern& pattern) const;
  Expr at(const DFPattern& pattern) const;  // a bug when it had no part
  // Everything that a pattern other than a wildcard, variable or constant matched.
  const std::vector<Expr>& inner() const { return inner_; }

 private:
  friend class DFMatcher;
  std::unordered_map<const DFPatternNode*, Expr> found_;
  std::vector<Expr> inner_;
};

// Whether `pattern` matches `e`; `graph` is what dominance is judged in (null: `e` itself).
std::optional<MatchMap> match(const DFPattern& pattern, const Expr& e, const Expr& graph = {});

struct RewriteRule {
  DFPattern pattern;
  // What takes the place of `matched`; the same object to leave it.
  std::function<Result<Expr>(const Expr& matched, const MatchMap& found)> replace;
  bool once = false;  // only the first match
};
// Applies the rules to everything in `graph`, operands first, again and again until no rule changes anything. Error:
// LimitExceeded when that does not end, and what the rules report.
Result<Expr> rewrite(const std::vector<RewriteRule>& rules, const Expr& graph);

// Each match becomes a call of a function over what its wildcards, variables and constants matched, with the attributes
// given and PartitionedFromPattern (the operators' names). Subgraphs whose inner values are used outside stay.
Expr partition(const DFPattern& pattern, const Expr& graph, const DictAttrs& attrs = {},
               const std::function<bool(const Expr&)>& accept = {});

}  // namespace tilewright::relay
