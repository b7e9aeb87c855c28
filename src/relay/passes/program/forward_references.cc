// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/forward_references.h"

#include <map>
#include <set>

#include "relay/rewrite.h"
#include "relay/structural.h"

namespace tilewright::relay {
namespace {

// The value of each reference at a point of the program; references that are not in it are unknown.
using Contents = std::map<const ExprNode*, Expr>;

class Reads {
 public:
  explicit Reads(const Expr& function) { enter(function); }
  const std::map<const ExprNode*, Expr>& known() const { return known_; }

 private:
  // A function's own references: those that are created in it and used only by its own reads and writes.
  void enter(const Expr& function) {
    const Expr& body = as<FunctionNode>(function)->body;
    for (const Expr& e : post_order(body)) {
      const auto* read = as<RefReadNode>(e);
      const auto* write = as<RefWriteNode>(e);
      if (as<FunctionNode>(e))
        for (const Expr& var : free_variables(e)) shared_.insert(var.get());
      else if (const auto* let = as<LetNode>(e))
        share({let->value, let->body});
      else if (write)
        share({write->value});
      else if (!read)
        share(children(e));
    }
    Contents contents;
    follow(body, &contents);
  }
  void share(const std::vector<Expr>& parts) {
    for (const Expr& part : parts)
      if (as<VarNode>(part)) shared_.insert(part.get());
  }

  // Evaluates a scope's bindings in order.
  void follow(const Expr& scope, Contents* contents) {
    Expr e = scope;
    for (const auto* let = as<LetNode>(e); let; let = as<LetNode>(e)) {
      const auto* created = as<RefCreateNode>(let->value);
      if (created && !shared_.count(let->var.get()))
        (*contents)[let->var.get()] = created->value;
      else
        step(let->value, contents);
      e = let->body;
    }
    step(e, contents);
  }
  // Operands that are no atoms are evaluated in an order that is not followed here.
  static void forget_written(const Expr& operand, Contents* contents) {
    for (const Expr& part : post_order(operand))
      if (const auto* write = as<RefWriteNode>(part)) contents->erase(write->reference.get());
  }
  void step(const Expr& e, Contents* contents) {
    if (as<LetNode>(e)) {
      join({e}, contents);
    } else if (const auto* read = as<RefReadNode>(e)) {
      if (auto it = contents->find(read->reference.get()); it != contents->end()) known_[e.get()] = it->second;
    } else if (const auto* write = as<RefWriteNode>(e)) {
      forget_written(write->value, contents);
      if (auto it = contents->find(write->reference.get()); it != contents->end()) it->second = write->value;
    } else if (const auto* branch = as<IfNode>(e)) {
      forget_written(branch->condition, contents);
      join({branch->then_branch, branch->else_branch}, contents);
    } else if (const auto* match = as<MatchNode>(e)) {
      forget_written(match->data, contents);
      std::vector<Expr> bodies;
      for (const Clause& clause : match->clauses) bodies.push_back(clause.body);
      join(bodies, contents);
    } else if (as<FunctionNode>(e)) {
      enter(e);
    } else if (const auto* call = as<CallNode>(e)) {
      if (as<FunctionNode>(call->callee)) enter(call->callee);
      for (const Expr& arg : call->args)
        if (as<FunctionNode>(arg)) enter(arg);
      forget_written(e, contents);
    } else {
      forget_written(e, contents);
    }
  }
  // After the branches (or a scope of bindings) only what all of them agree on is known, and only values that were
  // bound before.
  void join(const std::vector<Expr>& branches, Contents* contents) {
    const Contents before = *contents;
    bool first = true;
    for (const Expr& branch : branches) {
      Contents after = before;
      follow(branch, &after);
      if (first)
        *contents = after;
      else
        std::erase_if(*contents, [&](const auto& entry) {
          auto it = after.find(entry.first);
          return it == after.end() || !(it->second == entry.second);
        });
      first = false;
    }
    std::erase_if(*contents, [&](const auto& entry) {
      auto it = before.find(entry.first);
      return !as<ConstantNode>(entry.second) && (it == before.end() || !(it->second == entry.second));
    });
  }

  std::set<const ExprNode*> shared_;
  std::map<const ExprNode*, Expr> known_;
};

}  // namespace

bool creates_references(const Expr& function) {
  for (const Expr& e : post_order(function, true))
    if (as<RefCreateNode>(e)) return true;
  return false;
}

Module forward_references(const Module& module) {
  return rewrite_functions(module, [](const Expr& function) {
    const Reads reads(function);
    if (reads.known().empty()) return function;
    return rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
      auto it = reads.known().find(original.get());
      return it == reads.known().end() ? e : it->second;
    });
  });
}

}  // namespace tilewright::relay
