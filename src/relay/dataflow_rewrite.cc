// SPDX-License-Identifier: Apache-2.0
// Rewriting and partitioning by patterns: selects the matches of one round and replaces them.
#include <unordered_set>

#include "base/format.h"
#include "relay/dataflow_pattern.h"
#include "relay/op.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// One match: its computation as a function of the values from outside.
struct Group {
  Expr root;
  Matches found;
  std::vector<Expr> arguments, params;
  Expr body;
  std::string name;
};

// The node over other operands, whose types may be unknown or not fit.
Expr over_children(const Expr& e, const std::vector<Expr>& kids) {
  if (kids == children(e)) return e;
  const auto* call = as<CallNode>(e);
  const auto* op = call ? as<OpNode>(call->callee) : nullptr;
  if (call && !op) {
    const auto* type = as_func(kids[0]->type);
    if (!type || type->args.size() + 1 != kids.size())
      return make_node<CallNode>(kids[0], std::vector<Expr>(kids.begin() + 1, kids.end()), AttrsRef(),
                                 incomplete_type(), call->span);
  }
  if (!op) return with_children(e, kids);
  auto typed = try_call(op->def->name, kids, call->attrs, call->span);
  return typed.ok() ? *typed : make_node<CallNode>(call->callee, kids, call->attrs, incomplete_type(), call->span);
}

// Copies the matched subgraph over variables for what its leaves matched.
class Extractor {
 public:
  explicit Extractor(std::unordered_map<const ExprNode*, Expr> inputs) : inputs_(std::move(inputs)) {}
  Expr extract(const Expr& root) {
    const auto operands = [&](const Expr& e) { return inputs_.count(e.get()) ? std::vector<Expr>() : children(e); };
    for (const Expr& e : post_order_over(root, operands)) {
      visited.push_back(e);
      if (auto it = inputs_.find(e.get()); it != inputs_.end()) {
        made_[e.get()] = it->second;
        continue;
      }
      std::vector<Expr> kids = children(e);
      for (Expr& kid : kids) kid = made_.at(kid.get());
      made_[e.get()] = over_children(e, kids);
      name += name_of(e);
    }
    return made_.at(root.get());
  }
  std::vector<Expr> visited;
  std::string name;

 private:
  static std::string name_of(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kCall:
        return called_op(e) ? std::string(called_op(e)->name) + "_" : "Call_";
      case ExprKind::kTuple:
        return "Tuple_";
      case ExprKind::kTupleGetItem:
        return format("TupleGetItem{}_", as<TupleGetItemNode>(e)->index);
      case ExprKind::kLet:
        return "Let_";
      case ExprKind::kIf:
        return "If_";
      case ExprKind::kFunction:
        return "Function";
      case ExprKind::kMatch:
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kConstructor:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        return "";
    }
    return "";
  }
  std::unordered_map<const ExprNode*, Expr> inputs_, made_;
};

// Nodes that several matches may share, since they compute nothing.
bool is_shared_kind(const Expr& e) { return as<OpNode>(e) || as<FunctionNode>(e) || as<ConstantNode>(e); }

// Selects the matches of one round: from the result upwards, without overlap, and without inner values that are read
// outside.
class Grouper {
 public:
  Grouper(const DFPattern& pattern, const Expr& graph)
      : pattern_(pattern), parts_(post_order(pattern)), matcher_(graph) {
    std::unordered_set<const ExprNode*> partitioned;
    const std::vector<Expr>& order = matcher_.order();
    for (size_t i = order.size(); i-- > 0;) {
      const Expr& e = order[i];
      if (taken_.count(e.get())) continue;
      if (const auto* f = as<FunctionNode>(e); f && f->attrs.count("PartitionedFromPattern"))
        for (const Expr& inner : post_order(e, true)) partitioned.insert(inner.get());
      if (partitioned.count(e.get())) continue;
      if (auto found = matcher_.match(pattern_, e)) add(e, std::move(*found));
    }
  }
  const Group* group_at(const Expr& root) const {
    auto it = groups_.find(root.get());
    return it == groups_.end() ? nullptr : &it->second;
  }
  const std::vector<DFPattern>& parts() const { return parts_; }

 private:
  static const std::vector<Expr>& found_by(const Matches& found, const DFPattern& p) {
    static const std::vector<Expr> kNone;
    auto it = found.find(p.get());
    return it == found.end() ? kNone : it->second;
  }
  // Inner values of dominators and of matched functions are not inputs, even if a wildcard matched them.
  std::unordered_set<const ExprNode*> inner_by_nature(const Matches& found) const {
    std::unordered_set<const ExprNode*> out;
    for (const DFPattern& p : parts_) {
      if (p->kind == DFPatternKind::kDominator)
        for (size_t i : {size_t{0}, size_t{1}})
          for (const Expr& e : found_by(found, p->parts[i])) out.insert(e.get());
      if (p->kind == DFPatternKind::kFunction)
        for (const Expr& f : found_by(found, p))
          for (const Expr& e : post_order(f, true)) out.insert(e.get());
    }
    return out;
  }
  // A constant that a constant pattern matched moves into the function; one that a wildcard matched stays an input.
  bool stays_inside(const Expr& e, const DFPattern& p) {
    if (!as<ConstantNode>(e)) return false;
    if (p->kind == DFPatternKind::kConstant) return true;
    return p->kind == DFPatternKind::kExpr && as<ConstantNode>(p->expr);
  }

  void add(const Expr& root, Matches found) {
    Group group{root, std::move(found), {}, {}, {}, {}};
    const auto inner = inner_by_nature(group.found);
    std::unordered_map<const ExprNode*, Expr> inputs;
    auto input = [&](const Expr& e, const DFPattern& p) {
      if (inner.count(e.get()) || as<OpNode>(e) || as<FunctionNode>(e) || stays_inside(e, p)) return;
      Expr var = make_var(format("FunctionVar_{}_{}", attempts_, group.params.size()), e->type);
      if (!inputs.try_emplace(e.get(), var).second) return;
      group.arguments.push_back(e);
      group.params.push_back(std::move(var));
    };
    for (const DFPattern& p : parts_) {
      for (const Expr& e : found_by(group.found, p)) {
        if (p->kind == DFPatternKind::kTuple && p->any_args)
          for (const Expr& field : as<TupleNode>(e)->fields) input(field, p);
        else if (p->kind == DFPatternKind::kCall && p->any_args)
          for (const Expr& arg : as<CallNode>(e)->args) input(arg, p);
        else if (p->parts.empty())
          input(e, p);
      }
    }
    ++attempts_;
    Extractor extractor(inputs);
    group.body = extractor.extract(root);
    group.name = extractor.name;
    std::unordered_set<const ExprNode*> visited;
    for (const Expr& e : extractor.visited) visited.insert(e.get());
    for (const Expr& e : extractor.visited) {
      if (inputs.count(e.get()) || is_shared_kind(e)) continue;
      if (taken_.count(e.get())) return;
      if (e == root) continue;
      for (const Expr& user : matcher_.users(e))
        if (!visited.count(user.get())) return;
    }
    for (const Expr& e : extractor.visited)
      if (!inputs.count(e.get()) && !is_shared_kind(e)) taken_.insert(e.get());
    taken_.insert(root.get());
    groups_[root.get()] = std::move(group);
  }

  DFPattern pattern_;
  std::vector<DFPattern> parts_;
  DFMatcher matcher_;
  std::unordered_set<const ExprNode*> taken_;
  std::unordered_map<const ExprNode*, Group> groups_;
  int attempts_ = 0;
};

// The graph with each group's root replaced; `done` maps old expressions to new ones.
using Done = std::unordered_map<const ExprNode*, Expr>;
Result<Expr> with_groups(const Expr& graph, const Grouper& groups,
                         const std::function<Result<Expr>(const Group&, const Expr& after, const Done&)>& replace) {
  const auto operands = [](const Expr& e) {
    const auto* f = as<FunctionNode>(e);
    return f && f->primitive() ? std::vector<Expr>() : children(e);
  };
  Done done;
  for (const Expr& e : post_order_over(graph, operands)) {
    std::vector<Expr> kids = operands(e);
    for (Expr& kid : kids) kid = done.at(kid.get());
    Expr after = kids.empty() ? e : over_children(e, kids);
    if (const Group* group = groups.group_at(e)) after = TW_TRY(replace(*group, after, done));
    done[e.get()] = after;
  }
  return done.at(graph.get());
}

}  // namespace

Result<Expr> rewrite(const std::vector<RewriteRule>& rules, const Expr& graph) {
  constexpr int kMaxRounds = 100;
  // Rules that feed each other can double the graph in each round; legitimate ones replace a node a few times.
  const size_t most = 1024 + 16 * post_order(graph, true).size();
  size_t replaced = 0;
  std::vector<bool> done(rules.size(), false);
  Expr current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    const Expr before = current;
    for (size_t i = 0; i < rules.size(); ++i) {
      const RewriteRule& rule = rules[i];
      if (done[i]) continue;
      const Expr previous = current;
      if (rule.typed) current = TW_TRY(rule.typed(current));
      const Grouper groups(rule.pattern, current);
      current = TW_TRY(
          with_groups(current, groups, [&](const Group& group, const Expr& after, const Done& done) -> Result<Expr> {
            Matches found = group.found;
            for (auto& [pattern, list] : found)
              for (Expr& e : list)
                if (auto it = done.find(e.get()); it != done.end())
                  e = it->second;
                else if (e == group.root)
                  e = after;
            Expr made = TW_TRY(rule.replace(group.root, after, MatchMap(std::move(found))));
            if (!(made == after) && ++replaced > most)
              return Diagnostic(ErrorCode::kLimitExceeded,
                                format("rewriting has not ended after {} replacements", most), "",
                                "two rules may undo each other");
            return made;
          }));
      done[i] = rule.once && !structural_equal(current, previous);
    }
    if (current == before || structural_equal(current, before)) return current;
  }
  return Diagnostic(ErrorCode::kLimitExceeded, format("rewriting has not ended after {} rounds", kMaxRounds), "",
                    "two rules may undo each other");
}

Expr partition(const DFPattern& pattern, const Expr& graph, const DictAttrs& attrs,
               const std::function<bool(const Expr&)>& accept) {
  if (pattern->kind == DFPatternKind::kFunction) return graph;  // already a function
  const Grouper groups(pattern, graph);
  auto out = with_groups(graph, groups, [&](const Group& group, const Expr& after, const Done& done) -> Result<Expr> {
    if (accept && !accept(group.root)) return after;
    std::vector<Expr> arguments;
    for (const Expr& e : group.arguments) arguments.push_back(done.at(e.get()));
    DictAttrs all = attrs;
    all["PartitionedFromPattern"] = group.name;
    Expr function = make_function(group.params, group.body, std::move(all), group.root->span);
    return call_function(std::move(function), std::move(arguments), group.root->span);
  });
  return std::move(out).value();
}

}  // namespace tilewright::relay
