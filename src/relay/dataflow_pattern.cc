// SPDX-License-Identifier: Apache-2.0
#include "relay/dataflow_pattern.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/format.h"
#include "relay/op.h"
#include "relay/passes/rewrite.h"

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
  return it == found_.end() ? Expr() : it->second;
}
Expr MatchMap::at(const DFPattern& pattern) const {
  Expr e = find(pattern);
  TW_ICHECK(e, "the pattern had no part in the match");
  return e;
}

// Matches with backtracking: what an attempt found is forgotten when it fails.
class DFMatcher {
 public:
  explicit DFMatcher(Expr graph) : graph_(std::move(graph)) {}

  bool matches(const DFPattern& p, const Expr& e) {
    if (auto it = found_.find(p.get()); it != found_.end()) return it->second == e;
    size_t mark = order_.size();
    if (!one(*p.get(), e)) {
      forget(mark);
      return false;
    }
    found_[p.get()] = e;
    order_.push_back(p.get());
    return true;
  }

  MatchMap result() const {
    MatchMap out;
    std::unordered_set<const ExprNode*> seen, leaves;
    for (const DFPatternNode* p : order_)
      if (is_leaf(p->kind)) leaves.insert(found_.at(p).get());
    for (const DFPatternNode* p : order_) {
      const Expr& e = found_.at(p);
      if (!is_leaf(p->kind) && p->kind != DFPatternKind::kOp && !as<OpNode>(e) &&
          !(is_wrapper(p->kind) && leaves.count(e.get())) && seen.insert(e.get()).second)
        out.inner_.push_back(e);
    }
    for (const Expr& e : between_)
      if (seen.insert(e.get()).second) out.inner_.push_back(e);
    out.found_ = found_;
    return out;
  }

 private:
  static bool is_leaf(DFPatternKind kind) {
    return kind == DFPatternKind::kWildcard || kind == DFPatternKind::kVar || kind == DFPatternKind::kConstant ||
           kind == DFPatternKind::kExpr;
  }
  static bool is_wrapper(DFPatternKind kind) {
    return kind == DFPatternKind::kAlternative || kind == DFPatternKind::kAttributes || kind == DFPatternKind::kType ||
           kind == DFPatternKind::kShape || kind == DFPatternKind::kDataType;
  }
  void forget(size_t mark) {
    while (order_.size() > mark) {
      found_.erase(order_.back());
      order_.pop_back();
    }
  }
  bool all(const std::vector<DFPattern>& patterns, size_t first, const std::vector<Expr>& es) {
    if (patterns.size() - first != es.size()) return false;
    for (size_t i = 0; i < es.size(); ++i)
      if (!matches(patterns[first + i], es[i])) return false;
    return true;
  }

  bool one(const DFPatternNode& p, const Expr& e) {
    switch (p.kind) {
      case DFPatternKind::kWildcard:
        return true;
      case DFPatternKind::kVar:
        return as<VarNode>(e) && (p.name.empty() || as<VarNode>(e)->name == p.name);
      case DFPatternKind::kConstant:
        return as<ConstantNode>(e) != nullptr;
      case DFPatternKind::kExpr:
        return structural_equal(p.expr, e);
      case DFPatternKind::kOp:
        return as<OpNode>(e) && p.name == as<OpNode>(e)->def->name;
      case DFPatternKind::kCall:
        return call(p, e);
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
        return has_attribute(p, e) && matches(p.parts[0], e);
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

  bool call(const DFPatternNode& p, const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (!c) return false;
    size_t mark = order_.size();
    if (!matches(p.parts[0], c->callee)) return false;
    if (p.any_args || all(p.parts, 1, c->args)) return true;
    const OpDef* op = called_op(e);
    static constexpr std::array<std::string_view, 6> kCommutative = {"add",     "equal",    "maximum",
                                                                     "minimum", "multiply", "not_equal"};
    if (!op || c->args.size() != 2 ||
        std::find(kCommutative.begin(), kCommutative.end(), op->name) == kCommutative.end())
      return false;
    forget(mark);
    return matches(p.parts[0], c->callee) && all(p.parts, 1, {c->args[1], c->args[0]});
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
    // Dtypes are compared as the names they are written with.
    std::string wanted = attr_text(p.value);
    for (auto& [name, text] : attr_texts(c->attrs))
      if (name == p.name) return text == wanted;
    return false;
  }

  // parts: parent, path, child.
  bool dominator(const DFPatternNode& p, const Expr& e) {
    if (!matches(p.parts[2], e)) return false;
    // What the child is made of before the paths begin: they start at its leaves that are not matched by more than a
    // wildcard.
    Expr parent;
    std::vector<Expr> between, waiting = path_starts(*p.parts[2].get(), e);
    std::unordered_set<const ExprNode*> seen;
    while (!waiting.empty()) {
      Expr at = waiting.back();
      waiting.pop_back();
      if (!seen.insert(at.get()).second) continue;
      if (as<VarNode>(at) || as<ConstantNode>(at)) continue;  // operands from outside the paths
      DFMatcher attempt(graph_);
      if (!parent && attempt.matches(p.parts[0], at)) {
        parent = at;
        continue;
      }
      if (at == parent) continue;
      DFMatcher step(graph_);
      if (!step.matches(p.parts[1], at)) return false;
      between.push_back(at);
      for (const Expr& kid : children(at)) waiting.push_back(kid);
    }
    if (!parent || !matches(p.parts[0], parent)) return false;
    // Nothing between, nor the parent, is used outside.
    std::unordered_set<const ExprNode*> inside{e.get()};
    for (const Expr& x : between) inside.insert(x.get());
    for (const auto& [pattern, x] : found_) inside.insert(x.get());
    if (graph_)
      for (const Expr& user : post_order(graph_, true)) {
        if (inside.count(user.get()) && !(user == parent)) continue;
        for (const Expr& kid : children(user))
          if ((kid == parent && !inside.count(user.get())) ||
              (!(user == parent) && std::find(between.begin(), between.end(), kid) != between.end()))
            return false;
      }
    between_.insert(between_.end(), between.begin(), between.end());
    return true;
  }
  // Operands of the child's matched part that lie beyond it.
  std::vector<Expr> path_starts(const DFPatternNode& child, const Expr& e) const {
    std::vector<Expr> out;
    std::vector<const DFPatternNode*> waiting{&child};
    while (!waiting.empty()) {
      const DFPatternNode* p = waiting.back();
      waiting.pop_back();
      if (p->kind == DFPatternKind::kWildcard && found_.count(p)) out.push_back(found_.at(p));
      for (const DFPattern& part : p->parts) waiting.push_back(part.get());
    }
    return out.empty() ? children(e) : out;
  }

  Expr graph_;
  std::unordered_map<const DFPatternNode*, Expr> found_;
  std::vector<const DFPatternNode*> order_;
  std::vector<Expr> between_;
};

std::optional<MatchMap> match(const DFPattern& pattern, const Expr& e, const Expr& graph) {
  DFMatcher matcher(graph ? graph : e);
  if (!matcher.matches(pattern, e)) return std::nullopt;
  return matcher.result();
}

Result<Expr> rewrite(const std::vector<RewriteRule>& rules, const Expr& graph) {
  constexpr int kMaxRounds = 100;
  // Rules that feed each other may double the graph each round; real ones replace a node a few times.
  const size_t most = 1024 + 16 * post_order(graph, true).size();
  size_t replaced = 0;
  std::vector<bool> spent(rules.size(), false);
  Expr current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::optional<Diagnostic> failure;
    // Dominance is judged in the graph as it was at the round's beginning; operands are rewritten first.
    Expr next = rewrite_expr(current, [&](const Expr&, const Expr& e) -> Expr {
      Expr now = e;
      for (size_t i = 0; i < rules.size() && !failure; ++i) {
        if (spent[i]) continue;
        auto found = match(rules[i].pattern, now, current);
        if (!found) continue;
        Result<Expr> made = rules[i].replace(now, *found);
        if (!made.ok()) {
          failure = made.error();
          break;
        }
        if (*made == now) continue;
        if (++replaced > most) {
          failure = Diagnostic(ErrorCode::kLimitExceeded, format("rewriting has not ended after {} replacements", most),
                               "", "two rules may undo each other");
          break;
        }
        now = *made;
        spent[i] = rules[i].once;
      }
      return now;
    });
    if (failure) return *failure;
    if (next == current || structural_equal(next, current)) return next;
    current = next;
  }
  return Diagnostic(ErrorCode::kLimitExceeded, format("rewriting has not ended after {} rounds", kMaxRounds), "",
                    "two rules may undo each other");
}

namespace {

std::string operator_names(const std::vector<Expr>& inner, const Expr& graph_part) {
  std::unordered_set<const ExprNode*> set;
  for (const Expr& e : inner) set.insert(e.get());
  std::string out;
  for (const Expr& e : post_order(graph_part))
    if (set.count(e.get()))
      if (const OpDef* op = called_op(e)) out += std::string(op->name) + "_";
  return out;
}

}  // namespace

Expr partition(const DFPattern& pattern, const Expr& graph, const DictAttrs& attrs,
               const std::function<bool(const Expr&)>& accept) {
  // Users first, so that the largest subgraph is taken; one expression belongs to one function.
  std::vector<Expr> order = post_order(graph, true);
  std::unordered_map<const ExprNode*, std::vector<const ExprNode*>> users;
  for (const Expr& e : order)
    for (const Expr& kid : children(e)) users[kid.get()].push_back(e.get());
  std::unordered_set<const ExprNode*> taken;
  std::unordered_map<const ExprNode*, std::vector<Expr>> parts;  // of each match, by its root
  for (size_t i = order.size(); i-- > 0;) {
    const Expr& e = order[i];
    if (as<FunctionNode>(e) || as<OpNode>(e) || taken.count(e.get())) continue;
    auto found = match(pattern, e, graph);
    if (!found || (accept && !accept(e))) continue;
    std::unordered_set<const ExprNode*> inside;
    for (const Expr& x : found->inner()) inside.insert(x.get());
    bool closed = inside.count(e.get()) > 0;
    for (const Expr& x : found->inner()) {
      closed &= !taken.count(x.get());
      if (!(x == e))
        for (const ExprNode* user : users[x.get()]) closed &= inside.count(user) > 0;
    }
    if (!closed) continue;
    taken.insert(inside.begin(), inside.end());
    parts[e.get()] = found->inner();
  }
  if (parts.empty()) return graph;
  // rewrite_expr rebuilds operands, so a match is written from the original's structure over rebuilt inputs.
  std::unordered_map<const ExprNode*, Expr> done;
  for (const Expr& e : order) {
    std::vector<Expr> kids = children(e);
    auto it = parts.find(e.get());
    if (it == parts.end()) {
      for (Expr& kid : kids) kid = done.at(kid.get());
      done[e.get()] = with_children(e, kids);
      continue;
    }
    std::unordered_set<const ExprNode*> inside;
    for (const Expr& x : it->second) inside.insert(x.get());
    std::vector<Expr> params, arguments;
    std::unordered_map<const ExprNode*, Expr> inner;
    for (const Expr& x : post_order(e)) {
      if (!inside.count(x.get())) continue;
      std::vector<Expr> own = children(x);
      for (Expr& kid : own) {
        if (inside.count(kid.get())) {
          kid = inner.at(kid.get());
        } else if (!as<ConstantNode>(kid)) {
          auto [known, fresh] = inner.try_emplace(kid.get());
          if (fresh) {
            known->second = make_var(format("FunctionVar_{}", params.size()), kid->type);
            params.push_back(known->second);
            arguments.push_back(done.at(kid.get()));
          }
          kid = known->second;
        }
      }
      inner[x.get()] = with_children(x, own);
    }
    DictAttrs all = attrs;
    all["PartitionedFromPattern"] = operator_names(it->second, e);
    done[e.get()] = call_function(make_function(params, inner.at(e.get()), all, e->span), arguments, e->span);
  }
  return done.at(graph.get());
}

}  // namespace tilewright::relay
