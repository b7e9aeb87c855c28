// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/normal_forms.h"

#include <algorithm>

#include "base/format.h"
#include "relay/passes/pipeline/dead_code.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool is_name(const Expr& e) {
  return as<VarNode>(e) || as<GlobalVarNode>(e) || as<OpNode>(e) || as<ConstructorNode>(e);
}

// A scope is a function's body, a branch of an If, or what follows a let binding.
class Binder {
 public:
  Binder(const Expr& function, bool bind_all) : bind_all_(bind_all) {
    order_ = post_order(function, true);
    scopes_.push_back({});
    place(function);
    lower(function);
  }
  Expr result() const { return result_; }

 private:
  struct Scope {
    size_t parent = 0;
    int depth = 0;
    std::vector<std::pair<Expr, Expr>> bindings;  // variable, value: in order
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t new_scope(size_t parent) {
    scopes_.push_back({parent, scopes_[parent].depth + 1, {}});
    return scopes_.size() - 1;
  }
  size_t common(size_t a, size_t b) const {
    while (a != b) {
      if (scopes_[a].depth >= scopes_[b].depth && a != b) {
        size_t up = scopes_[a].parent;
        if (scopes_[b].depth > scopes_[a].depth)
          b = scopes_[b].parent;
        else
          a = up;
      } else {
        b = scopes_[b].parent;
      }
    }
    return a;
  }

  // Assigns each expression the scope it is evaluated in, users before operands.
  void place(const Expr& function) {
    std::unordered_map<const ExprNode*, size_t> users;
    auto use = [&](const Expr& e, size_t scope) {
      ++uses_[e.get()];
      auto [it, fresh] = scope_of_.try_emplace(e.get(), scope);
      if (!fresh && it->second != scope) {
        it->second = common(it->second, scope);
        shared_[e.get()] = true;
      }
    };
    use(function, 0);
    for (size_t i = order_.size(); i-- > 0;) {
      const Expr& e = order_[i];
      auto it = scope_of_.find(e.get());
      if (it == scope_of_.end()) continue;  // inside a leaf function
      size_t scope = it->second;
      if (is_closed_function(e) && !(e == function)) continue;
      if (const auto* f = as<FunctionNode>(e)) {
        size_t inner = new_scope(scope);
        inner_[e.get()] = {inner};
        use(f->body, inner);
      } else if (const auto* branch = as<IfNode>(e)) {
        size_t then_scope = new_scope(scope), else_scope = new_scope(scope);
        inner_[e.get()] = {then_scope, else_scope};
        use(branch->condition, scope);
        use(branch->then_branch, then_scope);
        use(branch->else_branch, else_scope);
      } else if (const auto* let = as<LetNode>(e)) {
        size_t rest = new_scope(scope);
        inner_[e.get()] = {rest};
        bound_[let->value.get()] = true;
        use(let->value, scope);
        use(let->body, rest);
      } else if (const auto* match = as<MatchNode>(e)) {
        use(match->data, scope);
        for (const Clause& clause : match->clauses) {
          inner_[e.get()].push_back(new_scope(scope));
          use(clause.body, inner_[e.get()].back());
        }
      } else {
        for (const Expr& kid : children(e)) use(kid, scope);
      }
    }
  }

  // Wraps a scope's bindings around its result.
  Expr closed(size_t scope, Expr result) {
    auto& bindings = scopes_[scope].bindings;
    for (size_t i = bindings.size(); i-- > 0;)
      result = make_node<LetNode>(bindings[i].first, bindings[i].second, result, bindings[i].second->span);
    bindings.clear();
    return result;
  }

  const Expr& done(const Expr& e) const { return done_.at(e.get()); }

  void lower(const Expr& function) {
    for (const Expr& e : order_) {
      auto it = scope_of_.find(e.get());
      if (it == scope_of_.end()) {
        if (as<VarNode>(e)) done_[e.get()] = e;
        continue;
      }
      Expr out = rebuilt(e, function);
      // A-normal form names everything, including constants and functions, unless a let already does.
      bool bind = bind_all_ ? !is_name(out) && !as<LetNode>(e) && !(bound_.count(e.get()) && uses_.at(e.get()) == 1)
                            : shared_.count(e.get()) && !is_name(out) && !as<ConstantNode>(out);
      if (bind && !(e == function)) {
        Expr var = make_var(format("x_{}", next_++), out->type, out->span);
        scopes_[it->second].bindings.emplace_back(var, out);
        out = var;
      }
      done_[e.get()] = out;
    }
    result_ = done(function);
  }

  Expr rebuilt(const Expr& e, const Expr& function) {
    if (is_closed_function(e) && !(e == function)) return e;
    if (const auto* f = as<FunctionNode>(e)) {
      Expr body = closed(inner_.at(e.get())[0], done(f->body));
      return body == f->body ? e : with_body(*f, body);
    }
    if (const auto* branch = as<IfNode>(e)) {
      const auto& inner = inner_.at(e.get());
      Expr then_branch = closed(inner[0], done(branch->then_branch)),
           else_branch = closed(inner[1], done(branch->else_branch));
      return with_children(e, {done(branch->condition), then_branch, else_branch});
    }
    if (const auto* match = as<MatchNode>(e)) {
      std::vector<Clause> clauses;
      bool changed = !(done(match->data) == match->data);
      for (size_t i = 0; i < match->clauses.size(); ++i) {
        const Clause& clause = match->clauses[i];
        clauses.push_back({clause.pattern, closed(inner_.at(e.get())[i], done(clause.body))});
        changed |= !(clauses.back().body == clause.body);
      }
      return changed ? make_match(done(match->data), std::move(clauses), match->complete, e->span) : e;
    }
    if (const auto* let = as<LetNode>(e)) {
      Expr body = closed(inner_.at(e.get())[0], done(let->body));
      return with_children(e, {let->var, done(let->value), body});
    }
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(done(kid));
    // Types are unchanged: operands are replaced by variables of the same type.
    if (const auto* call = as<CallNode>(e); call && called_op(e) && kids != call->args)
      return make_node<CallNode>(call->callee, kids, call->attrs, call->type, call->span);
    return with_children(e, kids);
  }

  bool bind_all_;
  int64_t next_ = 0;
  std::vector<Expr> order_;
  std::vector<Scope> scopes_;
  std::unordered_map<const ExprNode*, size_t> scope_of_;
  std::unordered_map<const ExprNode*, bool> shared_, bound_;  // shared_: used in several scopes; bound_: value of a let
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, std::vector<size_t>> inner_;
  std::unordered_map<const ExprNode*, Expr> done_;
  Expr result_;
};

}  // namespace

Result<Module> to_basic_block_normal_form(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) { return Binder(function, false).result(); });
}

Result<Module> to_a_normal_form(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) { return Binder(function, true).result(); });
}

namespace {

// The values of removable bindings, by variable.
std::unordered_map<const ExprNode*, Expr> removable_lets(const Expr& function) {
  std::unordered_map<const ExprNode*, Expr> out;
  for (const Expr& e : post_order(function, true)) {
    const auto* let = as<LetNode>(e);
    if (!let || (has_effect(let->value) && !as<FunctionNode>(let->value)) || as<RefCreateNode>(let->value) ||
        as<RefReadNode>(let->value))
      continue;
    bool names_itself = false;
    if (as<FunctionNode>(let->value))
      for (const Expr& part : post_order(let->value, true)) names_itself |= part == let->var;
    if (!names_itself) out[let->var.get()] = let->value;
  }
  return out;
}

Expr without_lets(const Expr& function) {
  auto values = removable_lets(function);
  if (values.empty()) return function;
  // Resolves an expression: a variable to its value, a let to its body.
  auto operands = [&](const Expr& e) -> std::vector<Expr> {
    if (auto it = values.find(e.get()); it != values.end()) return {it->second};
    if (const auto* let = as<LetNode>(e); let && values.count(let->var.get())) return {let->body};
    return is_closed_function(e) ? std::vector<Expr>() : children(e);
  };
  struct Frame {
    Expr e;
    std::vector<Expr> kids;
    size_t next = 0;
  };
  std::unordered_map<const ExprNode*, Expr> done;
  std::vector<Frame> stack;
  stack.push_back({function, operands(function)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.kids.size()) {
      Expr kid = top.kids[top.next++];
      if (!done.count(kid.get())) stack.push_back({kid, operands(kid)});
      continue;
    }
    Frame frame = std::move(top);
    stack.pop_back();
    const auto* let = as<LetNode>(frame.e);
    if (values.count(frame.e.get()) || (let && values.count(let->var.get()))) {
      done[frame.e.get()] = done.at(frame.kids[0].get());
      continue;
    }
    for (Expr& kid : frame.kids) kid = done.at(kid.get());
    done[frame.e.get()] = with_children(frame.e, frame.kids);
  }
  return done.at(function.get());
}

}  // namespace

Result<Module> to_graph_normal_form(const Module& module, PassContext&) {
  return rewrite_functions(module, without_lets);
}

}  // namespace tilewright::relay
