// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/partial_evaluate.h"

#include <algorithm>

#include "relay/infer_type.h"
#include "relay/passes/pipeline/dead_code.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/passes/program/forward_references.h"
#include "relay/passes/program/functions.h"
#include "relay/passes/program/normal_forms.h"
#include "relay/rewrite.h"
#include "relay/structural.h"

namespace tilewright::relay {
namespace {

constexpr int kMaxRounds = 64;
constexpr int kMaxRecursiveCalls = 256;  // inlined recursive calls, over the whole module

// Whether its outermost constructor is known, so that a match or branch on it can be decided.
bool is_known(const Expr& e) {
  const auto* call = as<CallNode>(e);
  return as<ConstantNode>(e) || as<TupleNode>(e) || as<FunctionNode>(e) || (call && as<ConstructorNode>(call->callee));
}

bool reads_references(const Expr& e) {
  if (as<FunctionNode>(e)) return false;
  for (const Expr& part : post_order(e))
    if (as<RefReadNode>(part) || as<RefCreateNode>(part) || as<RefWriteNode>(part)) return true;
  return false;
}
bool can_move(const Expr& e) { return !has_effect(e) && !reads_references(e); }

enum class Fit { kNo, kYes, kUnknown };
// Whether a pattern matches a value that may be
// known; collects the values of its variables.
Fit fits(const Pattern& p, const Expr& e, std::map<const VarNode*, Expr>* values) {
  auto all = [&](const std::vector<Expr>& parts) {
    Fit out = Fit::kYes;
    for (size_t i = 0; i < parts.size(); ++i) {
      Fit one = fits(p->fields[i], parts[i], values);
      if (one == Fit::kNo) return Fit::kNo;
      if (one == Fit::kUnknown) out = Fit::kUnknown;
    }
    return out;
  };
  switch (p->kind) {
    case PatternKind::kWildcard:
      return Fit::kYes;
    case PatternKind::kVar:
      (*values)[as<VarNode>(p->expr)] = e;
      return Fit::kYes;
    case PatternKind::kTuple:
      return as<TupleNode>(e) ? all(as<TupleNode>(e)->fields) : Fit::kUnknown;
    case PatternKind::kConstructor: {
      const auto* call = as<CallNode>(e);
      const auto* constructor = call ? as<ConstructorNode>(call->callee) : nullptr;
      if (!constructor) return Fit::kUnknown;
      return constructor->tag == as<ConstructorNode>(p->expr)->tag ? all(call->args) : Fit::kNo;
    }
  }
  return Fit::kUnknown;
}

class PartialEvaluator {
 public:
  explicit PartialEvaluator(const Module& module) : module_(module) {
    for (auto& [name, function] : module.functions) recursive_[name] = reached_from(module, name).count(name) > 0;
  }

  // Functions that lets bind and that call themselves.
  void find_local_functions(const Module& module) {
    locals_.clear();
    for (auto& [name, function] : module.functions)
      for (const Expr& e : post_order(function, true))
        if (const auto* let = as<LetNode>(e); let && as<FunctionNode>(let->value)) locals_[let->var.get()] = let->value;
  }

  Expr step(const Expr& e) {
    if (const auto* get = as<TupleGetItemNode>(e))
      if (const auto* tuple = as<TupleNode>(get->tuple); tuple && can_move(get->tuple))
        return tuple->fields[static_cast<size_t>(get->index)];
    if (const auto* let = as<LetNode>(e)) return bind(e, *let);
    if (const auto* match = as<MatchNode>(e)) return decide(e, *match);
    if (const auto* call = as<CallNode>(e); call && !called_op(e)) return apply(e, *call);
    if (as<IfNode>(e)) return fold_expr(e, 0);
    return e;
  }

 private:
  Expr bind(const Expr& e, const LetNode& let) {
    if (as<LetNode>(let.value)) {  // bindings inside of a value come before it
      std::vector<const LetNode*> inner;
      Expr value = let.value;
      for (const auto* next = as<LetNode>(value); next; next = as<LetNode>(value)) {
        inner.push_back(next);
        value = next->body;
      }
      Expr out = make_node<LetNode>(let.var, value, let.body, e->span);
      for (size_t i = inner.size(); i-- > 0;)
        out = make_node<LetNode>(inner[i]->var, inner[i]->value, out, inner[i]->span);
      return out;
    }
    if (as<FunctionNode>(let.value)) {
      for (const Expr& part : post_order(let.value, true))
        if (part == let.var) return e;
      // Calls of it are calls of a literal now.
      return rewrite_expr(substitute(let.body, {{as<VarNode>(let.var), let.value}}),
                          [&](const Expr&, const Expr& part) -> Expr {
                            const auto* call = as<CallNode>(part);
                            return call && as<FunctionNode>(call->callee) ? apply(part, *call) : part;
                          });
    }
    return is_known(let.value) && can_move(let.value) ? substitute(let.body, {{as<VarNode>(let.var), let.value}}) : e;
  }

  Expr decide(const Expr& e, const MatchNode& match) {
    if (!can_move(match.data)) return e;
    for (const Clause& clause : match.clauses) {
      std::map<const VarNode*, Expr> values;
      Fit fit = fits(clause.pattern, match.data, &values);
      if (fit == Fit::kUnknown) return e;
      if (fit == Fit::kYes) return substitute(clause.body, values);
    }
    return e;
  }

  Expr apply(const Expr& e, const CallNode& call) {
    const FunctionNode* function = as<FunctionNode>(call.callee);
    bool recursive = false;
    if (const auto* global = as<GlobalVarNode>(call.callee)) {
      auto it = module_.functions.find(global->name);
      if (it == module_.functions.end() || is_closed_function(it->second)) return e;
      function = as<FunctionNode>(it->second);
      recursive = recursive_.at(global->name);
    }
    if (auto it = locals_.find(call.callee.get()); it != locals_.end()) {
      function = as<FunctionNode>(it->second);
      recursive = true;  // bind() puts the others into their calls
    }
    if (!function || is_closed_function(call.callee) || function->params.size() != call.args.size()) return e;
    if (!std::all_of(call.args.begin(), call.args.end(), can_move)) return e;
    if (recursive) {
      if (std::none_of(call.args.begin(), call.args.end(), is_known) || ++recursive_calls_ > kMaxRecursiveCalls)
        return e;
    }
    return applied(*function, call.args);
  }

  const Module& module_;
  std::map<std::string, bool> recursive_;
  std::map<const ExprNode*, Expr> locals_;
  int recursive_calls_ = 0;
};

// Functions with references in the form in which their order can be followed; the others as they are.
Result<Module> with_known_references(const Module& module, bool* any, PassContext& context) {
  for (auto& [name, function] : module.functions) *any |= creates_references(function);
  if (!*any) return module;
  Module out = TW_TRY(to_a_normal_form(module, context));
  for (auto& [name, function] : module.functions)
    if (!creates_references(function)) out.functions[name] = function;
  return forward_references(out);
}

}  // namespace

Result<Module> partial_evaluate(const Module& module, PassContext& context) {
  PartialEvaluator evaluator(module);
  Module current = module;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool ordered = false;
    Module next = TW_TRY(with_known_references(current, &ordered, context));
    evaluator.find_local_functions(next);
    next = rewrite_module(next, [&](const Expr&, const Expr& e) { return evaluator.step(e); });
    next = TW_TRY(fold_constant(next, context));
    next = TW_TRY(dead_code_elimination(next, context));
    next = TW_TRY(infer_type(next, context));
    if (next.functions == current.functions || (ordered && structural_equal(next, current, {}))) break;
    current = std::move(next);
  }
  return current;
}

}  // namespace tilewright::relay
