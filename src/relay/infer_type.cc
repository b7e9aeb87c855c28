// SPDX-License-Identifier: Apache-2.0
#include "relay/infer_type.h"

#include <algorithm>

#include "base/format.h"
#include "relay/op.h"
#include "relay/rewrite.h"
#include "relay/run_time_values.h"
#include "relay/unify.h"

namespace tilewright::relay {
namespace {

// The type of an untyped variable used as operand `index` of the call, or null when the operator does not determine it.
Type open_weight(const CallNode& call, size_t index, const Type& first_operand) {
  const auto rule = as<OpNode>(call.callee)->def->facts.operand_type;
  const auto* data = as_tensor(first_operand);
  return rule && index > 0 && data && call.attrs ? rule(call.attrs, index, *data) : Type();
}

class Inference {
 public:
  explicit Inference(const Module& module) : module_(module) {
    for (auto& [name, function] : module.functions) globals_[name] = unifier_.opened(function->type);
  }

  Result<Module> run() {
    for (auto& [name, function] : module_.functions) {
      const std::vector<Expr> order = post_order(function, true);
      std::unordered_map<const ExprNode*, std::vector<Expr>> bindings;  // lets by their value
      for (const Expr& e : order)
        if (const auto* let = as<LetNode>(e)) bindings[let->value.get()].push_back(e);
      for (const Expr& e : order) {
        if (types_.count(e.get())) continue;
        TW_TRY_STATUS(visit(e));
        // A let variable gets its value's type before the body uses it, so that each use of a polymorphic function is
        // instantiated separately.
        if (auto it = bindings.find(e.get()); it != bindings.end())
          for (const Expr& let : it->second)
            if (auto var = types_.find(as<LetNode>(let)->var.get()); var != types_.end())
              TW_TRY_STATUS(join(var->second, types_.at(e.get()), let));
      }
      TW_TRY_STATUS(join(types_.at(function.get()), globals_.at(name), function));
    }
    TW_TRY_STATUS(solve_waiting());
    return rebuilt();
  }

 private:
  Type of(const Expr& e) const { return unifier_.resolved(types_.at(e.get())); }
  Status join(const Type& a, const Type& b, const Expr& at) {
    std::string clash = unifier_.unify(a, b);
    while (!clash.empty() && clash.back() == ' ') clash.pop_back();
    if (!clash.empty()) return Diagnostic(ErrorCode::kTypeMismatch, clash, at->span ? *at->span : "");
    return Ok{};
  }
  Status set(const Expr& e, Type t) {
    types_[e.get()] = std::move(t);
    return Ok{};
  }

  Status visit(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kVar:
        return set(e, unifier_.opened(e->type));
      case ExprKind::kConstant:
      case ExprKind::kConstructor:
        return set(e, e->type);
      case ExprKind::kOp:  // as a value: a function whose types nothing determines
        return set(e, unifier_.fresh());
      case ExprKind::kGlobalVar: {
        auto it = globals_.find(as<GlobalVarNode>(e)->name);
        return set(e, it == globals_.end() ? e->type : it->second);
      }
      case ExprKind::kCall:
        return visit_call(e, *as<CallNode>(e));
      case ExprKind::kFunction: {
        const auto& f = *as<FunctionNode>(e);
        std::vector<Type> args;
        for (const Expr& param : f.params) args.push_back(types_.at(param.get()));
        Type result = types_.at(f.body.get());
        // The declared result type can determine gaps in the body's type, and what a function takes that takes any
        // types.
        const Type declared = unifier_.opened(as_func(e->type)->result);
        TW_TRY_STATUS(join(result, declared, e));
        if (takes_any_types(of(f.body))) result = declared;
        return set(e, func_type(std::move(args), std::move(result), f.type_variables));
      }
      case ExprKind::kTuple: {
        std::vector<Type> fields;
        for (const Expr& field : as<TupleNode>(e)->fields) fields.push_back(types_.at(field.get()));
        return set(e, tuple_type(std::move(fields)));
      }
      case ExprKind::kTupleGetItem:
        TW_TRY_STATUS(set(e, unifier_.fresh()));
        return TW_TRY(solved(e)) ? Status(Ok{}) : wait(e);
      case ExprKind::kLet: {
        const auto& let = *as<LetNode>(e);
        TW_TRY_STATUS(join(types_.at(let.var.get()), types_.at(let.value.get()), e));
        return set(e, types_.at(let.body.get()));
      }
      case ExprKind::kIf: {
        const auto& branch = *as<IfNode>(e);
        TW_TRY_STATUS(join(types_.at(branch.condition.get()), tensor_type({}, kBool), e));
        TW_TRY_STATUS(join(types_.at(branch.then_branch.get()), types_.at(branch.else_branch.get()), e));
        // A function that takes any types has those of the one in the other branch.
        const bool any = takes_any_types(of(branch.then_branch));
        const Expr &one = any ? branch.else_branch : branch.then_branch, &other = branch.else_branch;
        // What is known of both already may leave sizes open that one of them has.
        if (is_complete(of(one)) && is_complete(of(other))) return set(e, type_of_either(of(one), of(other)));
        return set(e, types_.at(one.get()));
      }
      case ExprKind::kMatch: {
        const auto& match = *as<MatchNode>(e);
        Type result = unifier_.fresh();
        for (const Clause& clause : match.clauses) {
          TW_TRY_STATUS(visit_pattern(clause.pattern, types_.at(match.data.get()), e));
          TW_TRY_STATUS(join(result, types_.at(clause.body.get()), e));
        }
        return set(e, result);
      }
      case ExprKind::kRefCreate:
        return set(e, reference_type(types_.at(as<RefCreateNode>(e)->value.get())));
      case ExprKind::kRefRead: {
        Type value = unifier_.fresh();
        TW_TRY_STATUS(join(types_.at(as<RefReadNode>(e)->reference.get()), reference_type(value), e));
        return set(e, value);
      }
      case ExprKind::kRefWrite: {
        const auto& write = *as<RefWriteNode>(e);
        TW_TRY_STATUS(join(types_.at(write.reference.get()), reference_type(types_.at(write.value.get())), e));
        return set(e, tuple_type({}));
      }
    }
    return Ok{};
  }

  Status visit_pattern(const Pattern& p, const Type& type, const Expr& match) {
    switch (p->kind) {
      case PatternKind::kWildcard:
        return Ok{};
      case PatternKind::kVar:
        return join(types_.at(p->expr.get()), type, match);
      case PatternKind::kTuple: {
        std::vector<Type> fields;
        for (size_t i = 0; i < p->fields.size(); ++i) fields.push_back(unifier_.fresh());
        TW_TRY_STATUS(join(tuple_type(fields), type, match));
        for (size_t i = 0; i < fields.size(); ++i) TW_TRY_STATUS(visit_pattern(p->fields[i], fields[i], match));
        return Ok{};
      }
      case PatternKind::kConstructor: {
        Type signature = unifier_.instantiated(p->expr->type);
        const auto& f = *as_func(signature);
        TW_TRY_STATUS(join(f.result, type, match));
        if (f.args.size() != p->fields.size())
          return Diagnostic(
              ErrorCode::kTypeMismatch,
              format("{} has {} fields, not {}", as<ConstructorNode>(p->expr)->name, f.args.size(), p->fields.size()));
        for (size_t i = 0; i < f.args.size(); ++i) TW_TRY_STATUS(visit_pattern(p->fields[i], f.args[i], match));
        return Ok{};
      }
    }
    return Ok{};
  }

  Status visit_call(const Expr& e, const CallNode& call) {
    if (called_op(e)) {
      // An annotation is of its operand's type, also where that is a function whose types only its calls will tell.
      if (is_call_to(e, "on_device") && call.args.size() == 1) return set(e, types_.at(call.args[0].get()));
      TW_TRY_STATUS(set(e, unifier_.fresh()));
      return TW_TRY(solved(e)) ? Status(Ok{}) : wait(e);
    }
    Type callee = unifier_.instantiated(of(call.callee)), result = unifier_.fresh();
    std::vector<Type> args;
    for (const Expr& arg : call.args) args.push_back(types_.at(arg.get()));
    if (const auto* f = as_func(callee); f && f->args.size() != args.size())
      return Diagnostic(ErrorCode::kTypeMismatch,
                        format("a function of {} parameters is called with {} arguments", f->args.size(), args.size()),
                        call.span ? *call.span : "");
    TW_TRY_STATUS(join(callee, func_type(std::move(args), result), e));
    return set(e, result);
  }

  // --- deferred until operands' types are known
  Status wait(const Expr& e) {
    waiting_.push_back(e);
    return Ok{};
  }
  Result<bool> solved(const Expr& e) {
    if (const auto* get = as<TupleGetItemNode>(e)) {
      Type t = of(get->tuple);
      if (t->kind == TypeKind::kIncomplete) return false;
      const auto* tuple = as_tuple(t);
      if (!tuple || get->index >= static_cast<int64_t>(tuple->fields.size()))
        return Diagnostic(ErrorCode::kTypeMismatch, format("there is no field {} in {}", get->index, type_str(t)));
      TW_TRY_STATUS(join(types_.at(e.get()), tuple->fields[static_cast<size_t>(get->index)], e));
      return true;
    }
    const auto& call = *as<CallNode>(e);
    std::vector<Expr> operands;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Expr& arg = call.args[i];
      if (as<VarNode>(arg) && of(arg)->kind == TypeKind::kIncomplete)
        if (Type expected = open_weight(call, i, of(call.args[0])))
          TW_TRY_STATUS(join(types_.at(arg.get()), expected, e));
      if (!is_complete(of(arg))) return false;
      operands.push_back(operand(arg));
    }
    auto type = infer_call_type(*called_op(e), operands, call.attrs);
    if (!type.ok()) {
      Diagnostic error = type.error();
      if (call.span) error.where = format("{} ({})", *call.span, error.where);
      return error;
    }
    // Keeps the declared type where the rule would make a new unknown dimension.
    if (is_complete(call.type) && unifier_.unify(call.type, *type).empty()) type = call.type;
    TW_TRY_STATUS(join(types_.at(e.get()), *type, e));
    return true;
  }
  // What type rules see of an operand: its type and, of constants, the data.
  Expr operand(const Expr& e) const {
    if (as<ConstantNode>(e)) return e;
    if (const auto* tuple = as<TupleNode>(e)) {
      std::vector<Expr> fields;
      for (const Expr& field : tuple->fields) fields.push_back(operand(field));
      return make_tuple(std::move(fields));
    }
    return make_var("", of(e));
  }
  Status solve_waiting() {
    for (bool progress = true; progress && !waiting_.empty();) {
      std::vector<Expr> still;
      for (const Expr& e : waiting_)
        if (!TW_TRY(solved(e))) still.push_back(e);
      progress = still.size() < waiting_.size();
      waiting_ = std::move(still);
    }
    return Ok{};
  }

  // --- rebuilds the module with its types
  Result<Module> rebuilt() {
    Module out = module_;
    for (auto& [name, function] : out.functions) {
      for (const Expr& e : post_order(function, true)) {
        if (done_.count(e.get())) continue;
        if (e->kind == ExprKind::kOp) {
          done_[e.get()] = e;
          continue;
        }
        Type t = of(e);
        if (!is_complete(t)) {
          if (const auto* var = as<VarNode>(e))
            return Diagnostic(ErrorCode::kTypeMismatch, format("the type of %{} is not known", var->name), "@" + name,
                              "write it, for instance %x: Tensor[(1, 3), float32]");
          unknown_ = true;
        }
        done_[e.get()] = typed(e, t);
      }
      function = done_.at(function.get());
    }
    if (unknown_)
      return Diagnostic(ErrorCode::kTypeMismatch, "some types cannot be inferred", "",
                        "write the results' types of recursive functions");
    return out;
  }
  Expr typed(const Expr& e, const Type& t) {
    if (const auto* var = as<VarNode>(e)) return is_complete(e->type) ? e : make_var(var->name, t, e->span);
    if (const auto* global = as<GlobalVarNode>(e)) return is_complete(e->type) ? e : make_global_var(global->name, t);
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = done_.at(kid.get());
    if (is_complete(e->type) && kids == children(e)) return e;
    if (const auto* call = as<CallNode>(e)) {
      const bool op = called_op(e);
      Expr callee = op ? call->callee : kids[0];
      std::vector<Expr> args(kids.begin() + (op ? 0 : 1), kids.end());
      return make_node<CallNode>(callee, std::move(args), call->attrs, t, call->span);
    }
    if (const auto* f = as<FunctionNode>(e)) {
      std::vector<Expr> params(kids.begin(), kids.end() - 1);
      Type result = as_func(t) ? as_func(t)->result : incomplete_type();
      return make_node<FunctionNode>(std::move(params), kids.back(), f->attrs, f->span, f->type_variables, result);
    }
    return with_children(e, kids);
  }

  const Module& module_;
  Unifier unifier_;
  std::map<std::string, Type> globals_;
  std::unordered_map<const ExprNode*, Type> types_;
  std::vector<Expr> waiting_;
  std::unordered_map<const ExprNode*, Expr> done_;
  bool unknown_ = false;
};

// Nodes whose operand types nothing has checked since they were built: bindings, conditions and branches, declared
// results, reference cells, and calls of functions with operands of other types than their parameters.
bool is_doubtful(const Expr& e) {
  if (const auto* let = as<LetNode>(e)) return !types_agree(let->var->type, let->value->type);
  if (const auto* call = as<CallNode>(e); call && !called_op(e)) {
    const auto* f = as_func(call->callee->type);
    if (!f || !f->variables.empty()) return false;
    if (f->args.size() != call->args.size()) return true;
    for (size_t i = 0; i < f->args.size(); ++i)
      if (!type_equal(f->args[i], call->args[i]->type)) return true;
    return false;
  }
  if (const auto* branch = as<IfNode>(e)) {
    const auto* condition = as_tensor(branch->condition->type);
    return !condition || !condition->dtype.is_bool() || !condition->shape.empty() ||
           !types_agree(branch->then_branch->type, branch->else_branch->type);
  }
  if (const auto* match = as<MatchNode>(e))
    return std::any_of(match->clauses.begin(), match->clauses.end(),
                       [&](const Clause& clause) { return !types_agree(clause.body->type, e->type); });
  if (const auto* f = as<FunctionNode>(e)) return !types_agree(as_func(e->type)->result, f->body->type);
  return e->kind == ExprKind::kRefWrite;
}

bool has_gaps(const Module& module) {
  for (auto& [name, function] : module.functions)
    for (const Expr& e : post_order(function, true))
      if (e->kind != ExprKind::kOp && (!is_complete(e->type) || is_doubtful(e))) return true;
  return false;
}

}  // namespace

Result<Module> infer_type(const Module& module, PassContext&) {
  if (!has_gaps(module) || has_run_time_values(module)) return module;
  return Inference(module).run();
}

}  // namespace tilewright::relay
