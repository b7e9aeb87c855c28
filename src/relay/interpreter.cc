// SPDX-License-Identifier: Apache-2.0
#include "relay/interpreter.h"

#include <algorithm>
#include <memory>

#include "base/format.h"
#include "relay/ops/program/memory.h"

namespace tilewright::relay {
namespace {

size_t field_count(const Type& type) {
  const auto* tuple = as_tuple(type);
  if (!tuple) return 1;
  size_t n = 0;
  for (const Type& f : tuple->fields) n += field_count(f);
  return n;
}

// "conv1 (nn.conv2d)": the model's name for the node and the operator.
std::string place_of(const Expr& e) {
  const OpDef* op = called_op(e);
  if (!e->span) return op ? op->name : "";
  return op ? format("{} ({})", *e->span, op->name) : *e->span;
}

// Variables and results of the Function body, Let or branch being evaluated.
struct Scope {
  Environment values;
  Scope* outer = nullptr;
  std::unordered_map<const ExprNode*, int> uses;  // remaining uses of the nodes evaluated in this scope
  const std::vector<Value>* find(const ExprNode* e) const {
    for (const Scope* s = this; s; s = s->outer) {
      auto it = s->values.find(e);
      if (it != s->values.end()) return &it->second;
    }
    return nullptr;
  }
  // Overwrites a variable's value in every enclosing scope that has it.
  void assign(const ExprNode* e, const Value& value) {
    for (Scope* s = this; s; s = s->outer)
      if (auto it = s->values.find(e); it != s->values.end()) it->second = {value};
  }
};

// Values that are not tensors live here and are referred to by a Value of dtype handle: closures, constructors as
// functions, data values, references. They are freed when the evaluation ends.
struct Object {
  const ExprNode* callee = nullptr;        // of a closure: its Function; or a Constructor used as a function
  Environment captured;                    // values of a closure's free variables
  int64_t tag = -1;                        // of a data value
  std::vector<std::vector<Value>> fields;  // of a data value; of a reference: one, its content
};
constexpr DataType kHandle{TypeCode::kHandle, 64, 1};

class Evaluator {
 public:
  explicit Evaluator(const InterpretOptions& options) : options_(options) {}

  // Evaluates `root` in its own scope. Recursion is limited to nested functions and branches.
  Result<std::vector<Value>> run(const Expr& root, Scope* scope, int depth) {
    if (depth > 200) return Diagnostic(ErrorCode::kLimitExceeded, "functions nest or recurse deeper than 200 calls");
    std::vector<Expr> order = operands_first(root, *scope);
    auto& uses = scope->uses;
    for (const Expr& e : order)
      for (const Expr& kid : eager_children(e)) ++uses[kid.get()];
    ++uses[root.get()];
    for (const Expr& e : order) {
      Result<std::vector<Value>> values = one(e, scope, depth);
      if (!values.ok()) return std::move(values).error().at(place_of(e));
      if (options_.hook && e->kind != ExprKind::kFunction && e->kind != ExprKind::kGlobalVar)
        TW_TRY_STATUS(options_.hook(e, *values));
      for (const Expr& kid : eager_children(e))
        if (--uses[kid.get()] == 0) scope->values.erase(kid.get());
      if (uses[e.get()] > 0) scope->values[e.get()] = std::move(values).value();
    }
    const std::vector<Value>* result = scope->find(root.get());
    TW_ICHECK(result, "the root was evaluated");
    return *result;
  }

 private:
  // Operands evaluated before the node itself; branches and bodies are evaluated on demand.
  static std::vector<Expr> eager_children(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kFunction:
        return {};
      case ExprKind::kLet:
        return {as<LetNode>(e)->value};
      case ExprKind::kIf:
        return {as<IfNode>(e)->condition};
      case ExprKind::kCall: {
        const auto* c = as<CallNode>(e);
        if (is_named(c->callee)) return c->args;
        return children(e);
      }
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kTuple:
      case ExprKind::kTupleGetItem:
      case ExprKind::kConstructor:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        return children(e);
      case ExprKind::kMatch:
        return {as<MatchNode>(e)->data};
    }
    return {};
  }

  // Whether the callee is looked up rather than evaluated.
  static bool is_named(const Expr& callee) {
    return as<OpNode>(callee) || as<GlobalVarNode>(callee) || as<FunctionNode>(callee) || as<ConstructorNode>(callee);
  }

  std::vector<Value> stored(Object object) {
    Value handle;
    handle.dtype = kHandle;
    handle.i = {static_cast<int64_t>(heap_.size())};
    heap_.push_back(std::make_unique<Object>(std::move(object)));
    return {std::move(handle)};
  }
  Result<Object*> object_of(const std::vector<Value>& values) {
    if (values.size() != 1 || !(values[0].dtype == kHandle))
      return Diagnostic(ErrorCode::kTypeMismatch,
                        "a tensor stands where a function, a reference or a value of a data type was expected");
    return heap_.at(static_cast<size_t>(values[0].i.at(0))).get();
  }

  std::vector<Value> closure(const Expr& e, const Scope& scope) {
    Object made;
    made.callee = e.get();
    for (const Expr& part : post_order(e, true))
      if (as<VarNode>(part))
        if (const auto* value = scope.find(part.get())) made.captured[part.get()] = *value;
    return stored(std::move(made));
  }

  // Whether the pattern matches; binds its variables.
  Result<bool> fits(const Pattern& p, const std::vector<Value>& values, const Type& type, Scope* scope) {
    switch (p->kind) {
      case PatternKind::kWildcard:
        return true;
      case PatternKind::kVar:
        scope->values[p->expr.get()] = values;
        return true;
      case PatternKind::kTuple: {
        const auto* tuple = as_tuple(type);
        size_t at = 0;
        for (size_t i = 0; i < p->fields.size(); ++i) {
          // Where the type is unknown, each field is taken as one value.
          size_t n = tuple ? field_count(tuple->fields[i]) : 1;
          if (at + n > values.size())
            return Diagnostic(ErrorCode::kUnsupportedModel, "a tuple inside a polymorphic function is taken apart");
          std::vector<Value> field(values.begin() + static_cast<int64_t>(at),
                                   values.begin() + static_cast<int64_t>(at + n));
          at += n;
          if (!TW_TRY(fits(p->fields[i], field, tuple ? tuple->fields[i] : incomplete_type(), scope))) return false;
        }
        return true;
      }
      case PatternKind::kConstructor: {
        Object* object = TW_TRY(object_of(values));
        if (object->tag != as<ConstructorNode>(p->expr)->tag) return false;
        const auto& signature = *as_func(p->expr->type);
        TypeMap types;
        const auto* data = as_data(type);
        for (size_t i = 0; data && i < std::min(signature.variables.size(), data->args.size()); ++i)
          types[signature.variables[i].get()] = data->args[i];
        for (size_t i = 0; i < p->fields.size(); ++i)
          if (!TW_TRY(fits(p->fields[i], object->fields.at(i), substitute_types(signature.args.at(i), types), scope)))
            return false;
        return true;
      }
    }
    return false;
  }

  Result<std::vector<Value>> match(const MatchNode& m, Scope* scope, int depth) {
    const std::vector<Value> data = *scope->find(m.data.get());
    for (const Clause& clause : m.clauses) {
      Scope bound{{}, scope, {}};
      if (!TW_TRY(fits(clause.pattern, data, m.data->type, &bound))) continue;
      Scope body{{}, &bound, {}};
      return run(clause.body, &body, depth + 1);
    }
    return Diagnostic(ErrorCode::kInvalidArgument, "no clause of a match fits the value");
  }

  static std::vector<Expr> operands_first(const Expr& root, const Scope& scope) {
    struct Frame {
      Expr expr;
      std::vector<Expr> kids;
      size_t next = 0;
    };
    std::vector<Expr> out;
    std::unordered_map<const ExprNode*, bool> seen;
    std::vector<Frame> stack;
    auto push = [&](const Expr& e) {
      if (scope.find(e.get()) || !seen.try_emplace(e.get(), true).second) return;
      stack.push_back({e, eager_children(e)});
    };
    push(root);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.kids.size()) {
        out.push_back(top.expr);
        stack.pop_back();
      } else {
        Expr kid = top.kids[top.next++];
        push(kid);
      }
    }
    return out;
  }

  Result<std::vector<Value>> one(const Expr& e, Scope* scope, int depth) {
    switch (e->kind) {
      case ExprKind::kVar: {
        const auto* v = scope->find(e.get());
        if (v) return *v;
        return Diagnostic(ErrorCode::kUnknownInput, format("variable {} has no value", as<VarNode>(e)->name));
      }
      case ExprKind::kConstant:
        return std::vector<Value>{value_from(as<ConstantNode>(e)->data)};
      case ExprKind::kGlobalVar: {
        const FunctionNode* function = function_of(e);
        Object made;
        made.callee = function;
        return function ? stored(std::move(made)) : std::vector<Value>{};
      }
      case ExprKind::kFunction:
        return closure(e, *scope);
      case ExprKind::kOp:
        return std::vector<Value>{};
      case ExprKind::kTuple: {
        std::vector<Value> out;
        for (const Expr& f : as<TupleNode>(e)->fields) {
          const auto& v = *scope->find(f.get());
          out.insert(out.end(), v.begin(), v.end());
        }
        return out;
      }
      case ExprKind::kTupleGetItem:
        return field(*as<TupleGetItemNode>(e), *scope);
      case ExprKind::kLet:
        return let_chain(e, scope, depth);
      case ExprKind::kIf: {
        const auto* n = as<IfNode>(e);
        const auto& c = *scope->find(n->condition.get());
        if (c.size() != 1 || c[0].i.size() != 1)
          return Diagnostic(ErrorCode::kTypeMismatch, "the condition of an If is not one bool");
        Scope inner{{}, scope, {}};
        return run(c[0].i[0] ? n->then_branch : n->else_branch, &inner, depth + 1);
      }
      case ExprKind::kCall:
        return call(*as<CallNode>(e), scope, depth);
      case ExprKind::kConstructor:
        return closure(e, *scope);
      case ExprKind::kMatch:
        return match(*as<MatchNode>(e), scope, depth);
      case ExprKind::kRefCreate: {
        Object made;
        made.fields = {*scope->find(as<RefCreateNode>(e)->value.get())};
        return stored(std::move(made));
      }
      case ExprKind::kRefRead:
        return TW_TRY(object_of(*scope->find(as<RefReadNode>(e)->reference.get())))->fields.at(0);
      case ExprKind::kRefWrite:
        TW_TRY(object_of(*scope->find(as<RefWriteNode>(e)->reference.get())))->fields.at(0) =
            *scope->find(as<RefWriteNode>(e)->value.get());
        return std::vector<Value>{};
    }
    return std::vector<Value>{};
  }

  static Result<std::vector<Value>> field(const TupleGetItemNode& get, const Scope& scope) {
    const auto& all = *scope.find(get.tuple.get());
    const auto* type = as_tuple(get.tuple->type);
    if (!type) return std::vector<Value>{all.at(static_cast<size_t>(get.index))};
    size_t first = 0;
    for (int64_t i = 0; i < get.index; ++i) first += field_count(type->fields[static_cast<size_t>(i)]);
    size_t n = field_count(type->fields[static_cast<size_t>(get.index)]);
    return std::vector<Value>(all.begin() + static_cast<int64_t>(first), all.begin() + static_cast<int64_t>(first + n));
  }

  // Evaluates let a = x; let b = y; ... body without recursion along the chain.
  Result<std::vector<Value>> let_chain(const Expr& first, Scope* scope, int depth) {
    Scope inner{{}, scope, {}};
    inner.values[as<LetNode>(first)->var.get()] = *scope->find(as<LetNode>(first)->value.get());
    TW_TRY_STATUS(tie(*as<LetNode>(first), inner));
    Expr e = as<LetNode>(first)->body;
    while (const auto* let = as<LetNode>(e)) {
      Scope value_scope{{}, &inner, {}};
      inner.values[let->var.get()] = TW_TRY(run(let->value, &value_scope, depth + 1));
      TW_TRY_STATUS(tie(*let, inner));
      e = let->body;
    }
    Scope body{{}, &inner, {}};
    return run(e, &body, depth + 1);
  }

  // Lets a function bound to a name refer to itself by that name.
  Status tie(const LetNode& let, const Scope& scope) {
    if (!as<FunctionNode>(let.value)) return Ok{};
    const auto& value = scope.values.at(let.var.get());
    TW_TRY(object_of(value))->captured[let.var.get()] = value;
    return Ok{};
  }

  const FunctionNode* function_of(const Expr& callee) const {
    if (const auto* global = as<GlobalVarNode>(callee)) {
      if (!options_.module) return nullptr;
      auto it = options_.module->functions.find(global->name);
      return it == options_.module->functions.end() ? nullptr : as<FunctionNode>(it->second);
    }
    return as<FunctionNode>(callee);
  }

  // Explicit memory operators. An allocated tensor is zero until a kernel's result is written to it.
  Result<std::vector<Value>> memory_call(std::string_view op, const CallNode& c, Scope* scope, int depth) {
    if (op == "memory.alloc_storage") return stored({});
    if (op == "memory.alloc_tensor") {
      const auto* type = as_tensor(c.type);
      TW_TRY_STATUS(within_limit(c.type, options_.max_elements));
      return std::vector<Value>{make_value(type->dtype, *static_shape(type->shape))};
    }
    if (op != "vm.invoke_tvm_op") return std::vector<Value>{};
    const Object* object = TW_TRY(object_of(*scope->find(c.args[0].get())));
    const auto* f = object->callee && object->callee->kind == ExprKind::kFunction
                        ? static_cast<const FunctionNode*>(object->callee)
                        : nullptr;
    if (!f) return Diagnostic(ErrorCode::kUnknownFunction, "what is invoked is not a function");
    const auto& operands = *scope->find(c.args[1].get());
    Scope around{object->captured, nullptr, {}}, inner{{}, &around, {}}, body{{}, &inner, {}};
    auto at = operands.begin();
    for (const Expr& param : f->params) {
      const auto n = static_cast<std::ptrdiff_t>(field_count(param->type));
      if (operands.end() - at < n) return Diagnostic(ErrorCode::kTypeMismatch, "a function lacks operands");
      inner.values[param.get()] = {at, at + n};
      at += n;
    }
    const std::vector<Value> results = TW_TRY(run(f->body, &body, depth + 1));
    const auto* places = as<TupleNode>(c.args[2]);
    if (!places || places->fields.size() != results.size())
      return Diagnostic(ErrorCode::kTypeMismatch, "results are written into a tuple of as many variables");
    for (size_t i = 0; i < results.size(); ++i) scope->assign(places->fields[i].get(), results[i]);
    return std::vector<Value>{};
  }

  Result<std::vector<Value>> call(const CallNode& c, Scope* scope, int depth) {
    if (const auto* op = as<OpNode>(c.callee)) {
      if (is_memory_op(op->def->name)) return memory_call(op->def->name, c, scope, depth);
      std::vector<Value> flat;
      std::vector<size_t> fields;
      if (c.args.size() == 1) {  // borrowed
        const auto& v = *scope->find(c.args[0].get());
        fields.push_back(as_tuple(c.args[0]->type) ? v.size() : 0);
        return evaluate_op(*op->def, v, fields, c.attrs, c.type, options_.max_elements);
      }
      for (const Expr& a : c.args) {
        auto own = scope->values.find(a.get());
        if (own != scope->values.end() && scope->uses[a.get()] == 1) {  // last use: the value is moved
          fields.push_back(as_tuple(a->type) ? own->second.size() : 0);
          for (Value& v : own->second) flat.push_back(std::move(v));
          continue;
        }
        const auto& v = *scope->find(a.get());
        fields.push_back(as_tuple(a->type) ? v.size() : 0);
        flat.insert(flat.end(), v.begin(), v.end());
      }
      return evaluate_op(*op->def, flat, fields, c.attrs, c.type, options_.max_elements);
    }
    auto make_data = [&](const ConstructorNode& constructor) {
      Object made;
      made.tag = constructor.tag;
      for (const Expr& a : c.args) made.fields.push_back(*scope->find(a.get()));
      return stored(std::move(made));
    };
    if (const auto* constructor = as<ConstructorNode>(c.callee)) return make_data(*constructor);
    const FunctionNode* f = function_of(c.callee);
    const Object* object = nullptr;
    if (!f && !as<GlobalVarNode>(c.callee)) {
      object = TW_TRY(object_of(*scope->find(c.callee.get())));
      if (object->callee && object->callee->kind == ExprKind::kConstructor)
        return make_data(*static_cast<const ConstructorNode*>(object->callee));
      if (object->callee) f = static_cast<const FunctionNode*>(object->callee);
    }
    if (!f) return Diagnostic(ErrorCode::kUnknownFunction, "the callee is not a function of this module");
    if (f->params.size() != c.args.size())
      return Diagnostic(ErrorCode::kTypeMismatch,
                        format("a function of {} parameters is called with {}", f->params.size(), c.args.size()));
    // A function literal that is called in place sees the surrounding variables.
    Scope around{object ? object->captured : Environment(), nullptr, {}};
    Scope inner{{},
                object                                                        ? &around
                : as<FunctionNode>(c.callee) && !is_closed_function(c.callee) ? scope
                                                                              : nullptr,
                {}};
    for (size_t i = 0; i < c.args.size(); ++i) inner.values[f->params[i].get()] = *scope->find(c.args[i].get());
    Scope body{{}, &inner, {}};
    return run(f->body, &body, depth + 1);
  }

  const InterpretOptions& options_;
  std::vector<std::unique_ptr<Object>> heap_;
};

Status check_input(const std::string& name, const Type& type, const Value& v, std::map<std::string, int64_t>* symbols) {
  const auto* t = as_tensor(type);
  if (!t) return Ok{};
  if (v.dtype != t->dtype)
    return Diagnostic(ErrorCode::kDtypeMismatch,
                      format("input {} is {}, the model takes {}", name, v.dtype.str(), t->dtype.str()));
  bool same = v.shape.size() == t->shape.size();
  for (size_t i = 0; same && i < v.shape.size(); ++i) {
    const Dim& d = t->shape[i];
    if (!d.is_const() && d.node()->kind == DimKind::kSymbol) {
      same = symbols->try_emplace(d.node()->name, v.shape[i]).first->second == v.shape[i];
    } else if (auto known = d.evaluate(*symbols)) {
      same = *known == v.shape[i];
    }
  }
  if (!same)
    return Diagnostic(ErrorCode::kShapeMismatch,
                      format("input {} is {}, the model takes {}", name, shape_str(v.shape), shape_str(t->shape)));
  return Ok{};
}

}  // namespace

Result<std::vector<Value>> evaluate(const Expr& expr, const Environment& free_vars, const InterpretOptions& options) {
  Scope outer{free_vars, nullptr, {}};
  Scope scope{{}, &outer, {}};
  return Evaluator(options).run(expr, &scope, 0);
}

Result<std::vector<Value>> interpret(const Module& module, const std::map<std::string, Value>& inputs,
                                     const InterpretOptions& options) {
  const FunctionNode* main = module.main_function();
  if (!main) return Diagnostic(ErrorCode::kInvalidArgument, "the module has no function \"main\"");
  InterpretOptions with_module = options;
  with_module.module = &module;
  Scope outer;
  std::map<std::string, int64_t> symbols;
  size_t used = 0;
  for (const Expr& p : main->params) {
    const std::string& name = as<VarNode>(p)->name;
    auto it = inputs.find(name);
    if (it == inputs.end()) return Diagnostic(ErrorCode::kUnknownInput, format("input {} has no value", name));
    TW_TRY_STATUS(check_input(name, p->type, it->second, &symbols));
    outer.values[p.get()] = {it->second};
    ++used;
  }
  if (used != inputs.size())
    for (const auto& given : inputs)
      if (std::none_of(main->params.begin(), main->params.end(),
                       [&](const Expr& p) { return as<VarNode>(p)->name == given.first; }))
        return Diagnostic(ErrorCode::kUnknownInput, format("the model has no input {}", given.first));
  Scope scope{{}, &outer, {}};
  return Evaluator(with_module).run(main->body, &scope, 0);
}

}  // namespace tilewright::relay
