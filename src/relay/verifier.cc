// SPDX-License-Identifier: Apache-2.0
#include "relay/verifier.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "relay/op.h"
#include "relay/run_time_values.h"
#include "relay/text.h"

namespace tilewright::relay {
namespace {

using NodeSet = std::unordered_set<const ExprNode*>;

// Equal up to `?` dims, which match any size, since each inference makes its own. Type variables match any type: they
// are inferred at each call.
bool agree(const Type& a, const Type& b) {
  if (a == b || as_variable(a) || as_variable(b)) return true;
  // Only for values whose type is known at run time (has_run_time_values).
  if (a->kind == TypeKind::kIncomplete || b->kind == TypeKind::kIncomplete) return true;
  if (a->kind != b->kind) return false;
  if (a->kind == TypeKind::kTensor) {
    const auto &x = *as_tensor(a), &y = *as_tensor(b);
    auto any = [](const Dim& d) { return !d.is_const() && d.str().find('?') != std::string::npos; };
    auto same = [&](const Dim& p, const Dim& q) { return p == q || any(p) || any(q); };
    return x.dtype == y.dtype && x.shape.size() == y.shape.size() &&
           std::equal(x.shape.begin(), x.shape.end(), y.shape.begin(), same);
  }
  if (a->kind == TypeKind::kData && as_data(a)->name != as_data(b)->name) return false;
  std::vector<Type> x = parts_of(a), y = parts_of(b);
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), agree);
}

std::string describe(const Expr& e) {
  if (const OpDef* op = called_op(e)) return op->name;
  switch (e->kind) {
    case ExprKind::kVar:
      return "%" + as<VarNode>(e)->name;
    case ExprKind::kGlobalVar:
      return "@" + as<GlobalVarNode>(e)->name;
    case ExprKind::kConstant:
      return "a constant";
    case ExprKind::kOp:
      return as<OpNode>(e)->def->name;
    case ExprKind::kCall:
      return "a call";
    case ExprKind::kFunction:
      return "a function";
    case ExprKind::kTuple:
      return "a tuple";
    case ExprKind::kTupleGetItem:
      return "a tuple's field";
    case ExprKind::kLet:
      return "a let";
    case ExprKind::kIf:
      return "an if";
    case ExprKind::kConstructor:
      return as<ConstructorNode>(e)->name;
    case ExprKind::kMatch:
      return "a match";
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      return "a reference";
  }
  return "?";
}

class Verifier {
 public:
  Verifier(const Module& module, const Module* verified) : module_(module), open_types_(has_run_time_values(module)) {
    if (!verified) return;
    for (auto& [name, function] : verified->functions)
      for (const Expr& e : post_order(function, true)) trusted_.insert(e.get());
  }

  Status run() {
    for (auto& [name, function] : module_.functions) {
      current_ = "@" + name;
      bound_.clear();  // functions of a module may share parameters
      if (!as<FunctionNode>(function)) return fail("is not a function");
      // In post order, nested functions first, each expression once in the whole module.
      for (const Expr& e : post_order(function, true)) {
        if (!done_.insert(e.get()).second) continue;
        TW_TRY_STATUS(node(e));
        if (as<FunctionNode>(e)) TW_TRY_STATUS(scope(e));
      }
      if (!free_[function.get()].empty()) return unbound(*free_[function.get()].begin(), "");
    }
    return Ok{};
  }

 private:
  Diagnostic fail(std::string message, const Expr& e = {}) const {
    std::string place = current_;
    if (e) place += ": " + describe(e) + (e->span ? " from " + *e->span : "");
    return Diagnostic(ErrorCode::kVerifyFailed, std::move(message), std::move(place));
  }
  Diagnostic unbound(const ExprNode* var, std::string_view where) const {
    return fail(format("the variable %{} is used but not bound{}", static_cast<const VarNode*>(var)->name, where));
  }

  Status node(const Expr& e) {
    for (const Expr& kid : children(e))
      if (!done_.count(kid.get())) return fail("it is its own operand", e);
    if (e->kind == ExprKind::kOp) return Ok{};
    if (!is_complete(e->type) && !open_types_) return fail(format("its type {} is not complete", type_str(e->type)), e);
    switch (e->kind) {
      case ExprKind::kCall:
        return call_node(e, *as<CallNode>(e));
      case ExprKind::kGlobalVar: {
        auto it = module_.functions.find(as<GlobalVarNode>(e)->name);
        if (it == module_.functions.end()) return fail("it names no function of the module", e);
        if (!agree(e->type, it->second->type))
          return fail(format("it is used as {}, but is {}", type_str(e->type), type_str(it->second->type)), e);
        return Ok{};
      }
      case ExprKind::kConstant:
        if (!as<ConstantNode>(e)->data.defined()) return fail("it has no data", e);
        return Ok{};
      case ExprKind::kIf: {
        const auto& branch = *as<IfNode>(e);
        const auto* condition = as_tensor(branch.condition->type);
        const bool open = open_types_ && branch.condition->type->kind == TypeKind::kIncomplete;
        if (!open && (!condition || !condition->dtype.is_bool() || !condition->shape.empty()))
          return fail(format("its condition is {}, not bool", type_str(branch.condition->type)), e);
        if (!agree(branch.then_branch->type, branch.else_branch->type))
          return fail(format("its branches give {} and {}", type_str(branch.then_branch->type),
                             type_str(branch.else_branch->type)),
                      e);
        return Ok{};
      }
      case ExprKind::kLet: {
        const auto& let = *as<LetNode>(e);
        if (!as<VarNode>(let.var)) return fail("it binds something that is not a variable", e);
        if (!agree(let.var->type, let.value->type))
          return fail(
              format("{} is {}, its value {}", describe(let.var), type_str(let.var->type), type_str(let.value->type)),
              e);
        return bind(let.var);
      }
      case ExprKind::kFunction:
        for (const Expr& param : as<FunctionNode>(e)->params) {
          if (!as<VarNode>(param)) return fail("a parameter is not a variable", e);
          TW_TRY_STATUS(bind(param));
        }
        return Ok{};
      case ExprKind::kConstructor: {
        const auto& constructor = *as<ConstructorNode>(e);
        const ConstructorNode* known = module_.constructor(constructor.data_type, constructor.tag);
        if (!known || known->name != constructor.name)
          return fail(format("the module has no type {} with it", constructor.data_type), e);
        return Ok{};
      }
      case ExprKind::kMatch: {
        const auto& match = *as<MatchNode>(e);
        if (match.clauses.empty()) return fail("it has no clauses", e);
        for (const Clause& clause : match.clauses) {
          TW_TRY_STATUS(pattern(clause.pattern, match.data->type, e));
          if (!agree(clause.body->type, e->type))
            return fail(format("its clauses give {} and {}", type_str(e->type), type_str(clause.body->type)), e);
        }
        return Ok{};
      }
      case ExprKind::kRefRead:
        if (!as_reference(as<RefReadNode>(e)->reference->type)) return fail("it reads what is not a reference", e);
        return Ok{};
      case ExprKind::kRefWrite: {
        const auto& write = *as<RefWriteNode>(e);
        const auto* cell = as_reference(write.reference->type);
        if (!cell || !agree(cell->value, write.value->type))
          return fail(format("it writes {} into {}", type_str(write.value->type), type_str(write.reference->type)), e);
        return Ok{};
      }
      case ExprKind::kVar:
      case ExprKind::kOp:
      case ExprKind::kTuple:
      case ExprKind::kTupleGetItem:
      case ExprKind::kRefCreate:
        return Ok{};
    }
    return Ok{};
  }

  // Checks that a pattern matches values of `type`, and binds its variables.
  Status pattern(const Pattern& p, const Type& type, const Expr& match) {
    switch (p->kind) {
      case PatternKind::kWildcard:
        return Ok{};
      case PatternKind::kVar:
        if (!as<VarNode>(p->expr)) return fail("a pattern binds what is not a variable", match);
        if (!agree(p->expr->type, type))
          return fail(
              format("{} is {}, what it is bound to {}", describe(p->expr), type_str(p->expr->type), type_str(type)),
              match);
        return bind(p->expr);
      case PatternKind::kTuple: {
        const auto* tuple = as_tuple(type);
        if (!tuple || tuple->fields.size() != p->fields.size())
          return fail(format("a pattern of {} fields stands for {}", p->fields.size(), type_str(type)), match);
        for (size_t i = 0; i < p->fields.size(); ++i) TW_TRY_STATUS(pattern(p->fields[i], tuple->fields[i], match));
        return Ok{};
      }
      case PatternKind::kConstructor: {
        const auto* constructor = as<ConstructorNode>(p->expr);
        const auto* data = as_data(type);
        const ConstructorNode* known =
            constructor ? module_.constructor(constructor->data_type, constructor->tag) : nullptr;
        if (!known || known->name != constructor->name)
          return fail("a pattern's constructor is not one of the module's", match);
        const auto& signature = *as_func(constructor->type);
        if (!data || data->name != constructor->data_type || data->args.size() != signature.variables.size())
          return fail(format("the pattern {} stands for {}", constructor->name, type_str(type)), match);
        if (signature.args.size() != p->fields.size())
          return fail(format("{} has {} fields, not {}", constructor->name, signature.args.size(), p->fields.size()),
                      match);
        TypeMap values;
        for (size_t i = 0; i < data->args.size(); ++i) values[signature.variables[i].get()] = data->args[i];
        for (size_t i = 0; i < p->fields.size(); ++i)
          TW_TRY_STATUS(pattern(p->fields[i], substitute_types(signature.args[i], values), match));
        return Ok{};
      }
    }
    return Ok{};
  }

  Status call_node(const Expr& e, const CallNode& call) {
    if (const OpDef* op = called_op(e)) {
      if (trusted_.count(e.get())) return Ok{};
      auto inferred = infer_call_type(*op, call.args, call.attrs);
      if (!inferred.ok()) return fail(inferred.error().message, e);
      if (!agree(*inferred, call.type))
        return fail(format("its type is {}, its operands give {}", type_str(call.type), type_str(*inferred)), e);
      return Ok{};
    }
    const auto* function = as_func(call.callee->type);
    if (!function) return fail(format("it calls a value of type {}", type_str(call.callee->type)), e);
    if (function->args.size() != call.args.size())
      return fail(format("it passes {} arguments to a function of {}", call.args.size(), function->args.size()), e);
    for (size_t i = 0; i < call.args.size(); ++i)
      if (!agree(function->args[i], call.args[i]->type))
        return fail(format("argument {} is {}, the function takes {}", i, type_str(call.args[i]->type),
                           type_str(function->args[i])),
                    e);
    if (!agree(function->result, call.type))
      return fail(format("its type is {}, the function gives {}", type_str(call.type), type_str(function->result)), e);
    return Ok{};
  }

  Status bind(const Expr& var) {
    if (!bound_.insert(var.get()).second) return fail("it is bound twice", var);
    return Ok{};
  }

  // The variables that a function captures: used in its body or free in nested functions, minus its own.
  Status scope(const Expr& e) {
    const auto& function = *as<FunctionNode>(e);
    NodeSet own, used;
    for (const Expr& param : function.params) own.insert(param.get());
    for (const Expr& inner : post_order(function.body)) {
      if (const auto* let = as<LetNode>(inner)) own.insert(let->var.get());
      if (const auto* match = as<MatchNode>(inner))
        for (const Clause& clause : match->clauses)
          for (const Expr& var : pattern_vars(clause.pattern)) own.insert(var.get());
      if (as<VarNode>(inner)) used.insert(inner.get());
      if (as<FunctionNode>(inner))
        for (const ExprNode* var : free_[inner.get()]) used.insert(var);
    }
    if (as<FunctionNode>(function.body))  // post_order always enters its root; here it is a scope of its own
      used = {free_[function.body.get()].begin(), free_[function.body.get()].end()};
    auto& free = free_[e.get()];
    for (const ExprNode* var : used)
      if (!own.count(var)) free.push_back(var);
    if (function.primitive() && !free.empty()) return unbound(free.front(), " inside a primitive function");
    return Ok{};
  }

  const Module& module_;
  const bool open_types_;  // some types are known only at run time
  std::string current_;
  NodeSet trusted_, done_, bound_;
  std::unordered_map<const ExprNode*, std::vector<const ExprNode*>> free_;
};

}  // namespace

Status verify_module(const Module& module, const Module* verified) { return Verifier(module, verified).run(); }

}  // namespace tilewright::relay
