// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/defunctionalization.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/format.h"
#include "relay/passes/program/functions.h"
#include "relay/passes/program/lambda_lift.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr size_t kMostCopies = 4096;
constexpr size_t kLongestTypes = 1 << 14;  // length of one instantiation's types as text

Diagnostic unsupported(std::string message) {
  return {ErrorCode::kUnsupportedModel, std::move(message), {}, "run PartialEvaluate first"};
}

// All expressions of an open function; closed functions are leaves.
std::vector<Expr> parts_of_function(const Expr& function) {
  std::vector<Expr> out;
  rewrite_expr(function, [&](const Expr& original, const Expr&) {
    out.push_back(original);
    return original;
  });
  return out;
}
// The children of an expression without the callee.
std::vector<Expr> operands(const Expr& e) {
  std::vector<Expr> kids = children(e);
  if (as<CallNode>(e) && !called_op(e)) kids.erase(kids.begin());
  return kids;
}
bool is_global_or_constructor(const Expr& e) { return as<GlobalVarNode>(e) || as<ConstructorNode>(e); }

bool has_function_values(const Expr& function) {
  for (const Expr& e : parts_of_function(function)) {
    if (e == function || as<OpNode>(e) || is_global_or_constructor(e) || is_closed_function(e)) continue;
    if (holds_function(e->type)) return true;
    for (const Expr& kid : operands(e))
      if (is_global_or_constructor(kid)) return true;
  }
  return false;
}

// Copies the functions that main reaches, one copy per type instantiation.
class Copier {
 public:
  explicit Copier(const Module& module) : module_(module), out_(module) { out_.functions.clear(); }

  Result<Module> run() {
    request("main", {});
    while (!waiting_.empty()) {
      if (++copies_ > kMostCopies) return endless();
      const auto [name, copy, types] = waiting_.back();
      waiting_.pop_back();
      const Expr& function = module_.functions.at(name);
      out_.functions[copy] = is_closed_function(function) ? function : copied(*as<FunctionNode>(function), types);
      if (problem_) return *problem_;
    }
    return std::move(out_);
  }

 private:
  struct Request {
    std::string name, copy;
    TypeMap types;
  };

  // The copy's name.
  std::string request(const std::string& name, TypeMap types) {
    const auto& variables = as<FunctionNode>(module_.functions.at(name))->type_variables;
    std::string key = name;
    for (const Type& variable : variables) key += ";" + type_str(types.at(variable.get()));
    if (key.size() > kLongestTypes && !problem_) problem_ = endless();
    auto [it, fresh] = names_.try_emplace(key, name);
    if (!fresh || problem_) return it->second;
    for (size_t n = 0; !variables.empty() && (module_.functions.count(it->second) || taken_.count(it->second)); ++n)
      it->second = format("{}_{}", name, n);
    taken_.insert(it->second);
    waiting_.push_back({name, it->second, std::move(types)});
    return it->second;
  }

  static Diagnostic endless() {
    return {ErrorCode::kLimitExceeded,
            "there is no end of copies of polymorphic functions",
            {},
            "a function calls itself with ever larger types"};
  }
  void fail(std::string message) {
    if (!problem_) problem_ = unsupported(std::move(message));
  }

  Expr copied(const FunctionNode& function, const TypeMap& types) {
    Expr root = make_function(function.params, function.body);
    if (!types.empty())
      root = rewrite_expr(root, [&](const Expr& original, const Expr& e) -> Expr {
        if (as<VarNode>(e)) return make_var(as<VarNode>(e)->name, substitute_types(e->type, types), e->span);
        const auto* call = as<CallNode>(e);
        if (!call || called_op(e)) return e;
        return make_node<CallNode>(call->callee, call->args, call->attrs, substitute_types(original->type, types),
                                   e->span);
      });
    // Polymorphic function literals that are called or passed are instantiated first, since the functions they call
    // depend on it.
    root = rewrite_expr(root, [&](const Expr& original, const Expr& e) -> Expr {
      const auto* call = as<CallNode>(e);
      if (!call || called_op(e)) return e;
      std::vector<Expr> args = call->args;
      std::vector<Type> given;
      for (const Expr& arg : args) given.push_back(arg->type);
      const Expr callee = with_types(call->callee, func_type(given, original->type));
      if (const auto* signature = as_func(callee->type)) {
        const TypeMap chosen = chosen_types(*signature, args, original->type);
        for (size_t i = 0; i < args.size(); ++i)
          args[i] = with_types(args[i], substitute_types(signature->args[i], chosen));
      }
      return make_node<CallNode>(callee, std::move(args), call->attrs, original->type, e->span);
    });
    Expr out = rewrite_expr(root, [&](const Expr& original, const Expr& e) -> Expr {
      if (problem_) return original;
      if (const auto* inner = as<FunctionNode>(original); inner && !inner->type_variables.empty())
        fail("a polymorphic function is a value whose types are not known");
      if (const auto* call = as<CallNode>(original); call && !called_op(original)) return called(*call, e);
      std::vector<Expr> kids = operands(e);
      for (Expr& kid : kids)
        if (is_global_or_constructor(kid)) kid = as_value(kid, kid->type);
      return with_children(e, kids);
    });
    const auto& made = *as<FunctionNode>(out);
    DictAttrs attrs = function.attrs;
    attrs.erase("Closure");  // captured values are determined again
    return make_function(made.params, made.body, std::move(attrs), function.span);
  }

  // Instantiates a polymorphic function literal at type `wanted`; returns anything else unchanged.
  static Expr with_types(const Expr& e, const Type& wanted) {
    const auto* literal = as<FunctionNode>(e);
    const auto* type = as_func(wanted);
    if (!literal || literal->type_variables.empty() || !type || type->args.size() != literal->params.size()) return e;
    std::vector<Expr> params;
    for (size_t i = 0; i < type->args.size(); ++i)
      params.push_back(make_var(as<VarNode>(literal->params[i])->name, type->args[i]));
    return make_function(params, applied(*literal, params), literal->attrs, literal->span);
  }

  // The type arguments of a function called with `args` and returning `result`.
  static TypeMap chosen_types(const FuncTypeNode& signature, const std::vector<Expr>& args, const Type& result) {
    TypeMap chosen;
    if (signature.variables.empty()) return chosen;
    std::vector<Type> wanted = signature.args, given;
    wanted.push_back(signature.result);
    for (const Expr& arg : args)
      given.push_back(as_func(arg->type) && !as_func(arg->type)->variables.empty() ? incomplete_type() : arg->type);
    given.push_back(result);
    const Type all = func_type(wanted, tuple_type(signature.variables), signature.variables);
    const Type found = applied_type(*as_func(all), given);
    for (size_t i = 0; i < signature.variables.size(); ++i) {
      const Type& one = as_tuple(found)->fields[i];
      chosen[signature.variables[i].get()] = is_complete(one) ? one : tuple_type({});
    }
    return chosen;
  }

  // `rebuilt`: the call over copied operands.
  Expr called(const CallNode& original, const Expr& rebuilt) {
    const auto& call = *as<CallNode>(rebuilt);
    Expr callee = call.callee;
    std::vector<Expr> args = call.args;
    const auto* signature = as_func(callee->type);
    if (!signature) return rebuilt;
    const TypeMap chosen = chosen_types(*signature, args, original.type);
    for (size_t i = 0; i < args.size(); ++i)
      if (is_global_or_constructor(args[i])) args[i] = as_value(args[i], substitute_types(signature->args[i], chosen));
    if (const auto* global = as<GlobalVarNode>(callee)) callee = copy_of(*global, chosen);
    return make_node<CallNode>(callee, std::move(args), call.attrs, original.type, call.span);
  }

  Expr copy_of(const GlobalVarNode& global, const TypeMap& chosen) {
    const auto& function = *as<FunctionNode>(module_.functions.at(global.name));
    const auto& variables = as_func(global.type)->variables;
    TypeMap types;
    for (size_t i = 0; i < function.type_variables.size(); ++i)
      types[function.type_variables[i].get()] =
          i < variables.size() ? chosen.at(variables[i].get()) : Type(tuple_type({}));
    const auto* type = as_func(global.type);
    return make_global_var(request(global.name, types), substitute_types(func_type(type->args, type->result), chosen));
  }

  // A global or constructor used as a value of type `wanted`.
  Expr as_value(const Expr& e, const Type& wanted) {
    const auto* type = as_func(wanted);
    if (!type || !type->variables.empty() || !is_complete(wanted)) {
      fail("a polymorphic function is a value whose types are not known");
      return e;
    }
    const auto& declared = *as_func(e->type);
    TypeMap chosen;
    if (!declared.variables.empty()) {
      std::vector<Type> open = declared.args, given = type->args;
      open.push_back(declared.result), given.push_back(type->result);
      const Type found =
          applied_type(*as_func(func_type(open, tuple_type(declared.variables), declared.variables)), given);
      for (size_t i = 0; i < declared.variables.size(); ++i)
        chosen[declared.variables[i].get()] = as_tuple(found)->fields[i];
    }
    if (const auto* global = as<GlobalVarNode>(e)) return copy_of(*global, chosen);
    std::vector<Expr> params;
    for (const Type& arg : type->args) params.push_back(make_var(format("a{}", params.size()), arg));
    return make_function(params, make_node<CallNode>(e, params, AttrsRef(), type->result, Span()));
  }

  const Module& module_;
  Module out_;
  std::map<std::string, std::string> names_;  // names of copies, by function and types
  std::set<std::string> taken_;
  std::vector<Request> waiting_;
  std::optional<Diagnostic> problem_;
  size_t copies_ = 0;
};

// Encodes function values as data; no function is polymorphic or nested in another, except those that functions marked
// Closure return.
class Encoder {
 public:
  explicit Encoder(const Module& module) : module_(module), out_(module) {}

  Module run() {
    for (auto& [name, function] : module_.functions)
      if (!is_closed_function(function)) {
        out_.functions.erase(name);
        out_.functions[name_of(name)] = encoded(*as<FunctionNode>(function));
      }
    // Last, since encoding functions' own types may add closures.
    for (size_t i = 0; i < closures_.size(); ++i) {
      Expr apply = apply_function(i);
      out_.functions[closures_[i].apply] = apply;
    }
    for (const Closure& closure : closures_) out_.types[closure.name] = {{}, closure.constructors};
    return std::move(out_);
  }

 private:
  struct Closure {
    std::string name, apply;
    Type type;                       // type of the function values
    std::vector<Expr> constructors;  // one per function in `functions`
    std::vector<std::string> functions;
  };

  static bool is_maker(const FunctionNode& function) { return function.attrs.count("Closure") != 0; }
  const FunctionNode& function_of(const std::string& name) const {
    return *as<FunctionNode>(module_.functions.at(name));
  }

  size_t closure_of(const Type& type) {
    auto [it, fresh] = by_type_.try_emplace(type_str(type), closures_.size());
    if (fresh) {
      std::string name;
      do name = format("Closure{}", next_++);
      while (module_.types.count(name) || module_.functions.count("apply_" + name));
      closures_.push_back({name, "apply_" + name, type, {}, {}});
    }
    return it->second;
  }
  Type type_of(const Type& type) {
    if (as_func(type)) return data_type(closures_[closure_of(type)].name);
    if (!holds_function(type)) return type;
    std::vector<Type> parts = parts_of(type);
    for (Type& part : parts) part = type_of(part);
    return with_parts(type, std::move(parts));
  }
  std::vector<Type> types_of(const std::vector<Type>& types) {
    std::vector<Type> out;
    for (const Type& type : types) out.push_back(type_of(type));
    return out;
  }
  Expr fresh(const Expr& var) { return make_var(as<VarNode>(var)->name, type_of(var->type), var->span); }

  // A function value: a constructor applied to the captured values.
  Expr value(const std::string& name, const Type& type, std::vector<Expr> captured, const Span& span) {
    Closure& closure = closures_[closure_of(type)];
    const std::string closure_name = closure.name;
    size_t at = static_cast<size_t>(std::find(closure.functions.begin(), closure.functions.end(), name) -
                                    closure.functions.begin());
    if (at == closure.functions.size()) {
      const size_t index = closure_of(type);
      std::vector<Type> fields;
      if (is_maker(function_of(name)))
        for (const Expr& param : function_of(name).params) fields.push_back(type_of(param->type));
      Closure& same = closures_[index];  // looked up again: encoding types may have reallocated closures_
      same.functions.push_back(name);
      same.constructors.push_back(make_constructor(format("{}_{}", closure_name, name), std::move(fields),
                                                   data_type(closure_name), static_cast<int64_t>(at)));
    }
    Expr constructor = closures_[closure_of(type)].constructors[at];
    return make_node<CallNode>(constructor, std::move(captured), AttrsRef(), data_type(closure_name), span);
  }

  // The name of a function; one whose type changes gets a new name.
  const std::string& name_of(const std::string& name) {
    auto [it, fresh] = names_.try_emplace(name, name);
    const FunctionNode& function = function_of(name);
    if (!fresh || is_maker(function) || !holds_function(tuple_type(parts_of(function.type)))) return it->second;
    for (size_t n = 0; module_.functions.count(it->second); ++n) it->second = format("{}_{}", name, n);
    return it->second;
  }

  Expr global(const std::string& name) {
    const FunctionNode& function = function_of(name);
    const auto& type = *as_func(function.type);
    if (!is_maker(function))
      return make_global_var(name_of(name), func_type(types_of(type.args), type_of(type.result)));
    const auto& made = *as_func(type.result);
    std::vector<Type> args = types_of(type.args);
    for (const Type& arg : made.args) args.push_back(type_of(arg));
    return make_global_var(name, func_type(std::move(args), type_of(made.result)));
  }

  Expr encoded(const FunctionNode& function) {
    // Functions that return closures take their arguments, too.
    const auto* inner = is_maker(function) ? as<FunctionNode>(function.body) : nullptr;
    std::vector<Expr> params = function.params;
    if (inner) params.insert(params.end(), inner->params.begin(), inner->params.end());
    Expr root = make_function(params, inner ? inner->body : function.body);
    std::unordered_set<const ExprNode*> values;
    for (const Expr& e : parts_of_function(root))
      for (const Expr& kid : operands(e))
        if (as<GlobalVarNode>(kid)) values.insert(kid.get());
    Expr out = rewrite_expr(root, [&](const Expr& original, const Expr& e) -> Expr {
      if (as<VarNode>(original)) return fresh(original);
      if (const auto* name = as<GlobalVarNode>(original))
        return values.count(original.get()) ? value(name->name, original->type, {}, {}) : original;
      const auto* call = as<CallNode>(original);
      if (!call || called_op(original) || is_closed_function(call->callee)) return e;
      std::vector<Expr> args = as<CallNode>(e)->args;
      const Type type = type_of(original->type);
      if (as<ConstructorNode>(call->callee))
        return make_node<CallNode>(call->callee, std::move(args), AttrsRef(), type, e->span);
      if (const auto* callee = as<GlobalVarNode>(call->callee)) {
        if (is_closed_function(module_.functions.at(callee->name)))
          return make_node<CallNode>(call->callee, std::move(args), call->attrs, type, e->span);
        if (is_maker(function_of(callee->name))) return value(callee->name, original->type, std::move(args), e->span);
        return make_node<CallNode>(global(callee->name), std::move(args), call->attrs, type, e->span);
      }
      const size_t closure = closure_of(call->callee->type);
      args.insert(args.begin(), as<CallNode>(e)->callee);
      return make_node<CallNode>(apply_of(closure), std::move(args), AttrsRef(), type, e->span);
    });
    const auto& made = *as<FunctionNode>(out);
    DictAttrs attrs = function.attrs;
    attrs.erase("Closure");
    return make_function(made.params, made.body, std::move(attrs), function.span);
  }

  Expr apply_of(size_t closure) {
    const Type type = closures_[closure].type;
    std::vector<Type> args = types_of(as_func(type)->args);
    args.insert(args.begin(), data_type(closures_[closure].name));
    Type result = type_of(as_func(type)->result);
    return make_global_var(closures_[closure].apply, func_type(std::move(args), std::move(result)));
  }

  Expr apply_function(size_t index) {
    const Type type = closures_[index].type;
    Expr self = make_var("closure", data_type(closures_[index].name));
    std::vector<Expr> params{self};
    for (const Type& arg : as_func(type)->args)
      params.push_back(make_var(format("a{}", params.size() - 1), type_of(arg)));
    const Type result = type_of(as_func(type)->result);
    const Closure closure = closures_[index];
    std::vector<Clause> clauses;
    for (size_t i = 0; i < closure.functions.size(); ++i) {
      std::vector<Pattern> fields;
      std::vector<Expr> args;
      for (const Type& field : as_func(closure.constructors[i]->type)->args) {
        args.push_back(make_var(format("c{}", args.size()), field));
        fields.push_back(make_pattern(PatternKind::kVar, args.back()));
      }
      args.insert(args.end(), params.begin() + 1, params.end());
      clauses.push_back(
          {make_pattern(PatternKind::kConstructor, closure.constructors[i], std::move(fields)),
           make_node<CallNode>(global(closure.functions[i]), std::move(args), AttrsRef(), result, Span())});
    }
    if (clauses.empty())  // no such value exists: never called
      clauses.push_back({make_pattern(PatternKind::kWildcard),
                         make_node<CallNode>(apply_of(index), params, AttrsRef(), result, Span())});
    return make_function(params, make_match(self, std::move(clauses)));
  }

  const Module& module_;
  Module out_;
  std::vector<Closure> closures_;
  std::map<std::string, size_t> by_type_;
  std::map<std::string, std::string> names_;
  int64_t next_ = 0;
};

}  // namespace

Result<Module> defunctionalization(const Module& module, PassContext& context) {
  const auto* main = module.main_function();
  if (!main || is_closed_function(module.main())) return module;
  std::set<std::string> reached = reached_from(module, "main");
  reached.insert("main");
  bool any = false;
  for (const std::string& name : reached) {
    auto it = module.functions.find(name);
    if (it == module.functions.end() || is_closed_function(it->second)) continue;
    any |= has_function_values(it->second);
  }
  if (!any) return module;
  if (!main->type_variables.empty()) return unsupported("main is polymorphic");
  for (const Type& type : parts_of(main->type))
    if (holds_function(type)) return unsupported(format("main takes or gives functions: {}", type_str(type)));
  TW_TRY_STATUS(check_first_order_data(module));
  Module first_order_types = TW_TRY(Copier(module).run());
  Module lifted = TW_TRY(lambda_lift(first_order_types, context));
  return Encoder(lifted).run();
}

}  // namespace tilewright::relay
