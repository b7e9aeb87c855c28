// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/training/unfold.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "relay/op.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

struct UnfoldScope;
// The value of an expression: a graph, or a function or reference, which have no place in one.
struct Known {
  Expr graph;                              // null for a function or reference
  const FunctionNode* function = nullptr;  // with its defining scope
  std::shared_ptr<UnfoldScope> scope;
  size_t cell = static_cast<size_t>(-1);
  std::vector<Known> fields;
  bool is_tuple = false;
};
struct UnfoldScope {
  std::shared_ptr<UnfoldScope> outer;
  std::unordered_map<const ExprNode*, Known> values;
  const Known* find(const Expr& e) const {
    for (const UnfoldScope* s = this; s; s = s->outer.get())
      if (auto it = s->values.find(e.get()); it != s->values.end()) return &it->second;
    return nullptr;
  }
};
using ScopeRef = std::shared_ptr<UnfoldScope>;

class Unfolder {
 public:
  explicit Unfolder(const Module& module) : module_(module) {}

  Result<Expr> run(const FunctionNode& f) {
    auto scope = std::make_shared<UnfoldScope>();
    for (const Expr& p : f.params) scope->values[p.get()] = Known{p, nullptr, {}, kNone, {}, false};
    Expr body = TW_TRY(graph_of(TW_TRY(eval(f.body, scope)), f.body));
    return make_function(f.params, body, f.attrs, f.span);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static Known of(Expr graph) { return Known{std::move(graph), nullptr, {}, kNone, {}, false}; }
  static Diagnostic refused(const Expr& e, std::string what) {
    return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), e->span ? *e->span : "");
  }
  static Result<Expr> graph_of(const Known& k, const Expr& at) {
    if (k.graph) return k.graph;
    if (!k.is_tuple) return refused(at, k.function ? "a function is a value of the result" : "a reference is a value");
    std::vector<Expr> fields;
    for (const Known& f : k.fields) fields.push_back(TW_TRY(graph_of(f, at)));
    return make_tuple(std::move(fields), at->span);
  }

  Result<Known> eval(const Expr& e, const ScopeRef& s) {
    if (const Known* known = s->find(e)) return *known;
    constexpr int kDeepest = 200;
    if (++depth_ > kDeepest)
      return Diagnostic(ErrorCode::kLimitExceeded, format("the program nests deeper than {}", kDeepest));
    // Chains of operators are deeper than the stack: operands are evaluated first, iteratively.
    const auto operands = [&](const Expr& x) {
      const bool plain = called_op(x) || as<TupleNode>(x) || as<TupleGetItemNode>(x);
      return plain && !s->find(x) ? children(x) : std::vector<Expr>();
    };
    for (const Expr& x : post_order_over(e, operands))
      if (!s->find(x)) s->values[x.get()] = TW_TRY(carried_out(x, s));
    --depth_;
    return *s->find(e);
  }

  Result<Known> carried_out(const Expr& e, const ScopeRef& s) {
    switch (e->kind) {
      case ExprKind::kVar:
        return refused(e, format("variable '{}' is not bound", as<VarNode>(e)->name));
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kConstructor:
        return of(e);
      case ExprKind::kGlobalVar: {
        auto it = module_.functions.find(as<GlobalVarNode>(e)->name);
        const auto* f = it == module_.functions.end() ? nullptr : as<FunctionNode>(it->second);
        if (!f) return refused(e, format("the module has no function '{}'", as<GlobalVarNode>(e)->name));
        return Known{{}, f, std::make_shared<UnfoldScope>(), kNone, {}, false};
      }
      case ExprKind::kFunction:
        if (is_closed_function(e)) return of(e);
        return Known{{}, as<FunctionNode>(e), s, kNone, {}, false};
      case ExprKind::kTuple: {
        Known out{{}, nullptr, {}, kNone, {}, true};
        for (const Expr& f : as<TupleNode>(e)->fields) out.fields.push_back(TW_TRY(eval(f, s)));
        return out;
      }
      case ExprKind::kTupleGetItem: {
        const auto* get = as<TupleGetItemNode>(e);
        Known tuple = TW_TRY(eval(get->tuple, s));
        if (tuple.is_tuple) return tuple.fields[static_cast<size_t>(get->index)];
        return of(make_get(TW_TRY(graph_of(tuple, e)), get->index, e->span));
      }
      case ExprKind::kLet: {
        Expr at = e;
        for (; at->kind == ExprKind::kLet; at = as<LetNode>(at)->body) {
          const auto* let = as<LetNode>(at);
          // A recursive function needs its own name in its scope.
          s->values[let->var.get()] = TW_TRY(eval(let->value, s));
        }
        return eval(at, s);
      }
      case ExprKind::kIf: {
        const auto* branch = as<IfNode>(e);
        Expr condition = TW_TRY(graph_of(TW_TRY(eval(branch->condition, s)), e));
        if (auto known = uniform_value(condition))
          return eval(*known != 0 ? branch->then_branch : branch->else_branch, s);
        const bool outer = std::exchange(in_branch_, true);
        Expr sides[2];
        for (size_t i : {size_t{0}, size_t{1}}) {
          auto inner = std::make_shared<UnfoldScope>(UnfoldScope{s, {}});
          sides[i] = TW_TRY(graph_of(TW_TRY(eval(i ? branch->else_branch : branch->then_branch, inner)), e));
          if (written_) return refused(e, "a branch writes a reference");
        }
        in_branch_ = outer;
        return of(make_node<IfNode>(condition, sides[0], sides[1], e->span));
      }
      case ExprKind::kMatch:
        return Diagnostic(ErrorCode::kUnsupportedModel, "a match is no graph of operators", e->span ? *e->span : "",
                          "run PartialEvaluate first");
      case ExprKind::kRefCreate: {
        Known value = TW_TRY(eval(as<RefCreateNode>(e)->value, s));
        cells_.push_back(std::move(value));
        return Known{{}, nullptr, {}, cells_.size() - 1, {}, false};
      }
      case ExprKind::kRefRead: {
        Known cell = TW_TRY(eval(as<RefReadNode>(e)->reference, s));
        if (cell.cell >= cells_.size()) return refused(e, "the reference is not known");
        return cells_[cell.cell];
      }
      case ExprKind::kRefWrite: {
        Known cell = TW_TRY(eval(as<RefWriteNode>(e)->reference, s));
        Known value = TW_TRY(eval(as<RefWriteNode>(e)->value, s));
        if (cell.cell >= cells_.size()) return refused(e, "the reference is not known");
        cells_[cell.cell] = std::move(value);
        written_ |= in_branch_;
        return Known{{}, nullptr, {}, kNone, {}, true};
      }
      case ExprKind::kCall:
        return called(e, s);
    }
    return refused(e, "an expression of an unknown kind");
  }

  Result<Known> called(const Expr& e, const ScopeRef& s) {
    const auto& call = *as<CallNode>(e);
    std::vector<Known> args;
    if (called_op(e) || as<ConstructorNode>(call.callee) || is_closed_function(call.callee)) {
      std::vector<Expr> graphs;
      for (const Expr& a : call.args) graphs.push_back(TW_TRY(graph_of(TW_TRY(eval(a, s)), e)));
      if (graphs == call.args) return of(e);
      if (const OpDef* op = called_op(e)) return of(TW_TRY(try_call(op->name, std::move(graphs), call.attrs, e->span)));
      return of(call_function(call.callee, std::move(graphs), e->span));
    }
    Known callee = TW_TRY(eval(call.callee, s));
    if (!callee.function || callee.function->params.size() != call.args.size())
      return refused(e, "what is called is not known");
    for (const Expr& a : call.args) args.push_back(TW_TRY(eval(a, s)));
    if (++calls_ > 10000)
      return Diagnostic(ErrorCode::kLimitExceeded, "more than 10000 calls: the recursion does not end");
    auto inner = std::make_shared<UnfoldScope>(UnfoldScope{callee.scope, {}});
    for (size_t i = 0; i < args.size(); ++i) inner->values[callee.function->params[i].get()] = args[i];
    return eval(callee.function->body, inner);
  }

  const Module& module_;
  std::vector<Known> cells_;  // current content of each reference
  int depth_ = 0, calls_ = 0;
  bool written_ = false, in_branch_ = false;
};

bool is_graph(const Expr& e) {
  return as<VarNode>(e) || as<ConstantNode>(e) || as<TupleNode>(e) || as<TupleGetItemNode>(e) || called_op(e) ||
         as<OpNode>(e) || as<IfNode>(e);
}

}  // namespace

Result<Expr> unfolded(const Module& module, const Expr& function) {
  const auto& f = *as<FunctionNode>(function);
  const std::vector<Expr> order = post_order(f.body);
  if (std::all_of(order.begin(), order.end(), is_graph)) return function;
  return Unfolder(module).run(f);
}

}  // namespace tilewright::relay
