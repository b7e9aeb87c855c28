// SPDX-License-Identifier: Apache-2.0
#include "relay/dataflow_pattern.h"

#include <unordered_set>

#include "base/format.h"
#include "relay/op.h"
#include "relay/rewrite.h"
#include "relay/structural.h"

namespace tilewright::relay {
namespace {

DFPattern made(DFPatternKind kind, std::vector<DFPattern> parts = {},
               const std::function<void(DFPatternNode&)>& fill = {}) {
  auto* node = new DFPatternNode();
  node->kind = kind;
  node->parts = std::move(parts);
  if (fill) fill(*node);
  return DFPattern(Ref<DFPatternNode>(node));
}

}  // namespace

DFPattern wildcard() { return made(DFPatternKind::kWildcard); }
void redirect(const DFPattern& wildcard, DFPattern pattern) {
  TW_ICHECK(wildcard->kind == DFPatternKind::kWildcard, "only a wildcard can be redirected");
  const_cast<DFPatternNode*>(wildcard.get())->parts = {std::move(pattern)};
}
DFPattern is_var(std::string name) {
  return made(DFPatternKind::kVar, {}, [&](auto& n) { n.name = std::move(name); });
}
DFPattern is_constant() { return made(DFPatternKind::kConstant); }
DFPattern is_expr(Expr expr) {
  return made(DFPatternKind::kExpr, {}, [&](auto& n) { n.expr = std::move(expr); });
}
DFPattern is_op(std::string name) {
  return made(DFPatternKind::kOp, {}, [&](auto& n) { n.name = std::move(name); });
}
DFPattern is_call(DFPattern callee) {
  return made(DFPatternKind::kCall, {std::move(callee)}, [](auto& n) { n.any_args = true; });
}
DFPattern is_tuple(std::vector<DFPattern> fields) { return made(DFPatternKind::kTuple, std::move(fields)); }
DFPattern is_any_tuple() {
  return made(DFPatternKind::kTuple, {}, [](auto& n) { n.any_args = true; });
}
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  return made(DFPatternKind::kTupleGetItem, {std::move(tuple)}, [&](auto& n) { n.index = index; });
}
DFPattern is_function(std::vector<DFPattern> params, DFPattern body) {
  params.push_back(std::move(body));
  return made(DFPatternKind::kFunction, std::move(params));
}
DFPattern is_function_of(DFPattern body) {
  return made(DFPatternKind::kFunction, {std::move(body)}, [](auto& n) { n.any_args = true; });
}
DFPattern is_if(DFPattern condition, DFPattern then_branch, DFPattern else_branch) {
  return made(DFPatternKind::kIf, {std::move(condition), std::move(then_branch), std::move(else_branch)});
}
DFPattern is_let(DFPattern var, DFPattern value, DFPattern body) {
  return made(DFPatternKind::kLet, {std::move(var), std::move(value), std::move(body)});
}

DFPattern DFPattern::operator()(std::vector<DFPattern> args) const {
  args.insert(args.begin(), *this);
  return made(DFPatternKind::kCall, std::move(args));
}
DFPattern DFPattern::operator|(const DFPattern& other) const {
  return made(DFPatternKind::kAlternative, {*this, other});
}
DFPattern DFPattern::optional(const std::function<DFPattern(DFPattern)>& wrap) const { return wrap(*this) | *this; }
DFPattern DFPattern::has_attr(std::string name, AttrValue value) const {
  return made(DFPatternKind::kAttributes, {*this}, [&](auto& n) {
    n.name = std::move(name);
    n.value = std::move(value);
  });
}
DFPattern DFPattern::has_type(Type type) const {
  return made(DFPatternKind::kType, {*this}, [&](auto& n) { n.type = std::move(type); });
}
DFPattern DFPattern::has_shape(Shape shape) const {
  return made(DFPatternKind::kShape, {*this}, [&](auto& n) { n.shape = std::move(shape); });
}
DFPattern DFPattern::has_dtype(DataType dtype) const {
  return made(DFPatternKind::kDataType, {*this}, [&](auto& n) { n.dtype = dtype; });
}
DFPattern DFPattern::dominates(const DFPattern& parent, const DFPattern& path) const {
  return made(DFPatternKind::kDominator, {parent, path, *this});
}

Expr MatchMap::find(const DFPattern& pattern) const {
  auto it = found_.find(pattern.get());
  return it == found_.end() || it->second.empty() ? Expr() : it->second.front();
}
Expr MatchMap::at(const DFPattern& pattern) const {
  Expr e = find(pattern);
  TW_ICHECK(e, "the pattern had no part in the match");
  return e;
}
std::vector<Expr> MatchMap::all(const DFPattern& pattern) const {
  auto it = found_.find(pattern.get());
  return it == found_.end() ? std::vector<Expr>() : it->second;
}

std::vector<DFPattern> post_order(const DFPattern& root) {
  std::vector<DFPattern> out;
  std::unordered_set<const DFPatternNode*> seen;
  std::function<void(const DFPattern&)> visit = [&](const DFPattern& p) {
    if (!seen.insert(p.get()).second) return;
    for (const DFPattern& part : p->parts) visit(part);
    out.push_back(p);
  };
  visit(root);
  return out;
}

// The graph's expressions with their users and immediate dominators: every path from a node to the result passes
// through its dominator.
class DFMatcher::Graph {
 public:
  explicit Graph(const Expr& root) : order_(post_order_over(root, inputs)) {
    for (size_t i = 0; i < order_.size(); ++i) index_[order_[i].get()] = i;
    users_.resize(order_.size());
    for (const Expr& e : order_)
      for (const Expr& kid : inputs(e)) users_[index_.at(kid.get())].push_back(e);
    find_dominators();
  }
  static std::vector<Expr> inputs(const Expr& e) {
    const auto* f = as<FunctionNode>(e);
    return f && f->primitive() ? std::vector<Expr>() : children(e);
  }
  const std::vector<Expr>& order() const { return order_; }
  const std::vector<Expr>& users(const Expr& e) const {
    static const std::vector<Expr> kNone;
    auto it = index_.find(e.get());
    return it == index_.end() ? kNone : users_[it->second];
  }
  // The expressions that `e` immediately dominates.
  const std::vector<Expr>& dominated(const Expr& e) const {
    static const std::vector<Expr> kNone;
    auto it = index_.find(e.get());
    return it == index_.end() ? kNone : dominated_[it->second];
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  void find_dominators() {
    dominated_.resize(order_.size());
    std::vector<size_t> parent(order_.size(), kNone), depth(order_.size(), 1);
    for (size_t i = order_.size(); i-- > 0;) {
      if (users_[i].empty()) continue;
      size_t common = index_.at(users_[i][0].get());
      for (const Expr& user : users_[i]) {
        size_t other = index_.at(user.get());
        while (common != other && common != kNone && other != kNone) {
          size_t& deeper = depth[common] >= depth[other] ? common : other;
          deeper = parent[deeper];
        }
        if (other == kNone) common = kNone;
        if (common == kNone) break;
      }
      parent[i] = common;
      if (common == kNone) continue;
      depth[i] = depth[common] + 1;
      dominated_[common].push_back(order_[i]);
    }
  }

  std::vector<Expr> order_;
  std::unordered_map<const ExprNode*, size_t> index_;
  std::vector<std::vector<Expr>> users_, dominated_;
};

// Matching with backtracking: bindings of a failed attempt are undone.
class DFMatcher::Attempt {
 public:
  explicit Attempt(const Graph& graph) : graph_(graph) {}
  Matches take() {
    for (const DFPattern& p : made_) found_.erase(p.get());
    return std::move(found_);
  }

  bool matches(const DFPattern& p, const Expr& e) {
    if (memoize_)
      if (auto it = found_.find(p.get()); it != found_.end()) return it->second.front() == e;
    // Recursive patterns recurse as deep as the graph, which may exceed the stack.
    constexpr int kDeepest = 2000;
    if (depth_ > kDeepest) return false;
    ++depth_;
    const size_t mark = order_.size();
    const bool fits = one(p, e);
    --depth_;
    if (!fits) {
      forget(mark);
      return false;
    }
    found_[p.get()].push_back(e);
    order_.push_back(p.get());
    return true;
  }

 private:
  void forget(size_t mark) {
    while (order_.size() > mark) {
      auto it = found_.find(order_.back());
      it->second.pop_back();
      if (it->second.empty()) found_.erase(it);
      order_.pop_back();
    }
  }
  bool all(const std::vector<DFPattern>& patterns, size_t first, const std::vector<Expr>& es) {
    if (patterns.size() - first != es.size()) return false;
    for (size_t i = 0; i < es.size(); ++i)
      if (!matches(patterns[first + i], es[i])) return false;
    return true;
  }

  bool one(const DFPattern& pattern, const Expr& e) {
    const DFPatternNode& p = *pattern.get();
    switch (p.kind) {
      case DFPatternKind::kWildcard:
        return p.parts.empty() || matches(p.parts[0], e);
      case DFPatternKind::kVar:
        return as<VarNode>(e) && (p.name.empty() || as<VarNode>(e)->name == p.name);
      case DFPatternKind::kConstant:
        return as<ConstantNode>(e) != nullptr;
      case DFPatternKind::kExpr:
        return structural_equal(p.expr, e, {.map_free_variables = false, .sharing = false});
      case DFPatternKind::kOp:
        return as<OpNode>(e) && p.name == as<OpNode>(e)->def->name;
      case DFPatternKind::kCall:
        return call(pattern, e);
      case DFPatternKind::kTuple:
        return as<TupleNode>(e) && (p.any_args || all(p.parts, 0, as<TupleNode>(e)->fields));
      case DFPatternKind::kTupleGetItem: {
        const auto* get = as<TupleGetItemNode>(e);
        return get && (p.index < 0 || get->index == p.index) && matches(p.parts[0], get->tuple);
      }
      case DFPatternKind::kFunction: {
        const auto* f = as<FunctionNode>(e);
        if (!f || (!p.any_args && f->params.size() + 1 != p.parts.size())) return false;
        for (size_t i = 0; !p.any_args && i < f->params.size(); ++i)
          if (!matches(p.parts[i], f->params[i])) return false;
        return matches(p.parts.back(), f->body);
      }
      case DFPatternKind::kIf: {
        const auto* branch = as<IfNode>(e);
        return branch && all(p.parts, 0, {branch->condition, branch->then_branch, branch->else_branch});
      }
      case DFPatternKind::kLet: {
        const auto* let = as<LetNode>(e);
        return let && all(p.parts, 0, {let->var, let->value, let->body});
      }
      case DFPatternKind::kAlternative:
        return matches(p.parts[0], e) || matches(p.parts[1], e);
      case DFPatternKind::kAttributes:
        return matches(p.parts[0], e) && has_attribute(p, e);
      case DFPatternKind::kType:
        return type_equal(p.type, e->type) && matches(p.parts[0], e);
      case DFPatternKind::kShape:
        return as_tensor(e->type) && as_tensor(e->type)->shape == p.shape && matches(p.parts[0], e);
      case DFPatternKind::kDataType:
        return as_tensor(e->type) && as_tensor(e->type)->dtype == p.dtype && matches(p.parts[0], e);
      case DFPatternKind::kDominator:
        return dominator(p, e);
    }
    return false;
  }

  bool call(const DFPattern& pattern, const Expr& e) {
    const DFPatternNode& p = *pattern.get();
    const auto* c = as<CallNode>(e);
    if (!c) return false;
    const size_t mark = order_.size();
    if (matches(p.parts[0], c->callee)) {
      if (p.any_args || all(p.parts, 1, c->args)) return true;
      if (p.parts.size() != 3 || !(is_pattern_of(p, "add") || is_pattern_of(p, "multiply"))) return false;
      forget(mark);
      return matches(p.parts[0], c->callee) && all({p.parts[2], p.parts[1]}, 0, c->args);
    }
    forget(mark);
    return reassociated(p, e);
  }
  static bool is_pattern_of(const DFPatternNode& p, std::string_view op) {
    return p.kind == DFPatternKind::kCall && p.parts[0]->kind == DFPatternKind::kOp && p.parts[0]->name == op;
  }
  // (a * b) / c equals a * (b / c): a pattern of either form matches both.
  bool reassociated(const DFPatternNode& p, const Expr& e) {
    const auto& args = as<CallNode>(e)->args;
    if (p.parts.size() != 3 || args.size() != 2) return false;
    auto holds = [&](const char* op) { return is_call_to(args[0], op) || is_call_to(args[1], op); };
    const size_t mark = order_.size();
    if (is_pattern_of(p, "divide") && is_pattern_of(*p.parts[1].get(), "multiply") && is_call_to(e, "multiply") &&
        holds("divide")) {
      const auto& product = p.parts[1]->parts;
      for (size_t i : {size_t{0}, size_t{1}}) {
        made_.push_back(p.parts[0]({product[1 + i], p.parts[2]}));
        made_.push_back(product[0]({product[2 - i], made_.back()}));
        if (matches(made_.back(), e)) return true;
        forget(mark);
      }
    }
    if (is_pattern_of(p, "multiply") && is_call_to(e, "divide") && holds("multiply"))
      for (size_t i : {size_t{0}, size_t{1}}) {
        const DFPattern& quotient = p.parts[1 + i];
        if (!is_pattern_of(*quotient.get(), "divide") || quotient->parts.size() != 3) continue;
        made_.push_back(p.parts[0]({quotient->parts[1], p.parts[2 - i]}));
        made_.push_back(quotient->parts[0]({made_.back(), quotient->parts[2]}));
        return matches(made_.back(), e);
      }
    return false;
  }

  static bool has_attribute(const DFPatternNode& p, const Expr& e) {
    if (const auto* f = as<FunctionNode>(e)) {
      auto it = f->attrs.find(p.name);
      return it != f->attrs.end() && it->second == p.value;
    }
    const auto* wanted_class = p.name == "TOpPattern" ? std::get_if<int64_t>(&p.value) : nullptr;
    if (const auto* op = as<OpNode>(e)) return wanted_class && *wanted_class == static_cast<int64_t>(op->def->pattern);
    const auto* c = as<CallNode>(e);
    if (const auto* f = c ? as<FunctionNode>(c->callee) : nullptr) {
      auto it = f->attrs.find(p.name);
      return it != f->attrs.end() && it->second == p.value;
    }
    if (c && called_op(e) && p.name == "TOpPattern")
      return wanted_class && *wanted_class == static_cast<int64_t>(called_op(e)->pattern);
    if (!c || !c->attrs) return false;
    // Dtypes are compared by their names.
    std::string wanted = attr_text(p.value);
    for (auto& [name, text] : attr_texts(c->attrs))
      if (name == p.name) return text == wanted;
    return false;
  }

  // parts: parent, path, child. The parent matches one expression, the path's patterns many.
  bool dominator(const DFPatternNode& p, const Expr& e) {
    if (!matches(p.parts[2], e)) return false;
    const bool leads = paths_lead_to_parent(p, e);
    memoize_ = true;
    return leads && dominates_parent(p, e);
  }
  bool paths_lead_to_parent(const DFPatternNode& p, const Expr& child) {
    std::vector<Expr> waiting{child};
    std::unordered_set<const ExprNode*> seen{child.get()};
    while (!waiting.empty()) {
      Expr at = waiting.back();
      waiting.pop_back();
      bool any = false;
      for (const Expr& input : Graph::inputs(at)) {
        if (const auto* c = as<CallNode>(at); c && c->callee == input) continue;
        any = true;
        memoize_ = true;
        if (matches(p.parts[0], input)) continue;
        memoize_ = false;
        if (!matches(p.parts[1], input)) return false;
        if (seen.insert(input.get()).second) waiting.push_back(input);
      }
      if (!any) return false;
    }
    return true;
  }
  bool dominates_parent(const DFPatternNode& p, const Expr& child) {
    std::vector<Expr> waiting{child};
    while (!waiting.empty()) {
      Expr at = waiting.back();
      waiting.pop_back();
      for (const Expr& below : graph_.dominated(at)) {
        if (matches(p.parts[0], below)) return true;
        waiting.push_back(below);
      }
    }
    return false;
  }

  const Graph& graph_;
  Matches found_;
  std::vector<const DFPatternNode*> order_;
  std::vector<DFPattern> made_;  // reassociated patterns
  bool memoize_ = true;
  int depth_ = 0;
};

DFMatcher::DFMatcher(const Expr& graph) : graph_(std::make_unique<Graph>(graph)) {}
DFMatcher::~DFMatcher() = default;
std::optional<Matches> DFMatcher::match(const DFPattern& pattern, const Expr& e) {
  Attempt attempt(*graph_);
  if (!attempt.matches(pattern, e)) return std::nullopt;
  return attempt.take();
}
const std::vector<Expr>& DFMatcher::users(const Expr& e) const { return graph_->users(e); }
const std::vector<Expr>& DFMatcher::order() const { return graph_->order(); }

std::optional<MatchMap> match(const DFPattern& pattern, const Expr& e, const Expr& graph) {
  auto found = DFMatcher(graph ? graph : e).match(pattern, e);
  if (!found) return std::nullopt;
  return MatchMap(std::move(*found));
}

}  // namespace tilewright::relay
