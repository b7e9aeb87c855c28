// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/manifest_memory.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/format.h"
#include "relay/ops/program/attrs_memory.h"
#include "relay/ops/program/memory.h"
#include "relay/passes/program/inline_primitives.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

struct Binding {
  Expr var, value;
};
// A chain of let bindings and its final body.
struct Chain {
  std::vector<Binding> bindings;
  Expr result;
};
Chain chain_of(Expr e) {
  Chain out;
  while (const auto* let = as<LetNode>(e)) {
    out.bindings.push_back({let->var, let->value});
    e = let->body;
  }
  out.result = e;
  return out;
}
Expr let_chain(const Chain& chain) {
  Expr e = chain.result;
  for (size_t i = chain.bindings.size(); i-- > 0;)
    e = make_node<LetNode>(chain.bindings[i].var, chain.bindings[i].value, e);
  return e;
}

// Applies `change` to chains inside a value: branches, clauses, functions that are not fused.
Expr inside(const Expr& e, const std::function<Expr(const Expr&)>& change) {
  if (const auto* branch = as<IfNode>(e))
    return with_children(e, {branch->condition, change(branch->then_branch), change(branch->else_branch)});
  if (const auto* function = as<FunctionNode>(e); function && !is_closed_function(e))
    return with_body(*function, change(function->body));
  if (const auto* match = as<MatchNode>(e)) {
    std::vector<Clause> clauses;
    for (const Clause& clause : match->clauses) clauses.push_back({clause.pattern, change(clause.body)});
    return make_match(match->data, std::move(clauses), match->complete, e->span);
  }
  return e;
}

Expr whole(int64_t value) { return make_constant(Tensor::from<int64_t>(kInt64, {}, std::vector<int64_t>{value})); }
Expr sizes(const std::vector<int64_t>& shape) {
  return make_constant(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(shape.size())}, shape));
}

bool flat_tensors(const Type& type, std::vector<const TensorTypeNode*>* out) {
  if (const auto* tuple = as_tuple(type))
    return std::all_of(tuple->fields.begin(), tuple->fields.end(),
                       [&](const Type& field) { return flat_tensors(field, out); });
  const auto* t = as_tensor(type);
  auto shape = t ? static_shape(t->shape) : std::nullopt;
  if (!shape || t->dtype.is_string() || !checked_element_count(*shape).ok()) return false;
  out->push_back(t);
  return true;
}
// Reassembles tensors to the structure of a type.
Expr in_form(const Type& type, const std::vector<Expr>& tensors, size_t* at) {
  const auto* tuple = as_tuple(type);
  if (!tuple) return tensors[(*at)++];
  std::vector<Expr> fields;
  for (const Type& field : tuple->fields) fields.push_back(in_form(field, tensors, at));
  return make_tuple(std::move(fields));
}

bool only_reshapes(const FunctionNode& function) {
  Expr e = function.body;
  while (called_op(e) && called_op(e)->facts.elements == Elements::kReshaped) e = arg(e, 0);
  return e != function.body && function.params.size() == 1 && e == function.params[0];
}

class Allocation {
 public:
  bool changed() const { return changed_; }
  Expr chain(const Expr& e) {
    Chain from = chain_of(e), to;
    for (const Binding& b : from.bindings) bind(b.var, b.value, &to);
    to.result = from.result;
    if (as<CallNode>(from.result)) {  // a call in result position gets a name
      to.result = make_var(format("result_{}", names_++), from.result->type);
      bind(to.result, from.result, &to);
    } else {
      to.result = inside(from.result, [this](const Expr& inner) { return chain(inner); });
    }
    return let_chain(to);
  }

 private:
  Expr named(const char* name, Expr value, Chain* to) {
    Expr var = make_var(format("{}_{}", name, names_++), value->type);
    to->bindings.push_back({var, std::move(value)});
    return var;
  }
  void bind(const Expr& var, const Expr& value, Chain* to) {
    const auto* made = as<CallNode>(value);
    const auto* function = made ? as<FunctionNode>(made->callee) : nullptr;
    std::vector<const TensorTypeNode*> types;
    if (!function || !function->primitive() || !flat_tensors(value->type, &types)) {
      to->bindings.push_back({var, inside(value, [this](const Expr& inner) { return chain(inner); })});
      return;
    }
    changed_ = true;
    if (only_reshapes(*function)) {
      auto shape = *static_shape(types[0]->shape);
      to->bindings.push_back(
          {var, call("vm.reshape_tensor", {made->args[0], sizes(shape)},
                     make_attrs<ReshapeTensorAttrs>([&](auto& a) { a.newshape = shape; }), value->span)});
      return;
    }
    std::vector<Expr> tensors;
    for (const TensorTypeNode* t : types) {
      const std::vector<int64_t> shape = *static_shape(t->shape);
      const int64_t bytes = *checked_element_count(shape) * static_cast<int64_t>(t->dtype.bytes());
      constexpr int64_t kAlignment = 64;
      Expr storage = named("storage",
                           call("memory.alloc_storage", {whole(bytes), whole(kAlignment)},
                                make_attrs<AllocStorageAttrs>([&](auto& a) { a.dtype = t->dtype; })),
                           to);
      tensors.push_back(named(
          "tensor",
          call("memory.alloc_tensor", {storage, whole(0), sizes(shape)}, make_attrs<AllocTensorAttrs>([&](auto& a) {
                 a.dtype = t->dtype;
                 a.assert_shape = shape;
               })),
          to));
    }
    named("invoke",
          call("vm.invoke_tvm_op", {made->callee, make_tuple(made->args), make_tuple(tensors)}, {}, value->span), to);
    size_t at = 0;
    to->bindings.push_back({var, in_form(value->type, tensors, &at)});
  }
  bool changed_ = false;
  int64_t names_ = 0;
};

// Variables used in an expression, including nested functions.
std::set<const ExprNode*> named_in(const Expr& e) {
  std::set<const ExprNode*> out;
  for (const Expr& part : post_order(e, true))
    if (as<VarNode>(part)) out.insert(part.get());
  return out;
}

class Lifetimes {
 public:
  bool changed() const { return names_ > 0; }
  Expr chain(const Expr& e) {
    Chain from = chain_of(e), to;
    // Aliases: each variable may stand for itself and for values that it was bound to without being computed.
    std::map<const ExprNode*, std::set<const ExprNode*>> roots;
    std::map<const ExprNode*, size_t> last;
    std::vector<Expr> own;  // produced by an operator in this chain
    for (size_t i = 0; i < from.bindings.size(); ++i) {
      const Binding& b = from.bindings[i];
      const OpDef* op = called_op(b.value);
      const bool fresh = op && std::string_view(op->name) != "vm.reshape_tensor";
      auto& mine = roots[b.var.get()];
      if (fresh && as_tensor(b.value->type)) {
        own.push_back(b.var);
        mine.insert(b.var.get());
      }
      for (const ExprNode* used : named_in(b.value))
        for (const ExprNode* root : roots[used]) {
          last[root] = i;
          if (!fresh) mine.insert(root);
        }
    }
    std::set<const ExprNode*> kept;
    for (const ExprNode* used : named_in(from.result))
      for (const ExprNode* root : roots[used]) kept.insert(root);
    for (size_t i = 0; i < from.bindings.size(); ++i) {
      const Binding& b = from.bindings[i];
      to.bindings.push_back({b.var, inside(b.value, [this](const Expr& inner) { return chain(inner); })});
      for (const Expr& var : own) {
        auto it = last.find(var.get());
        if (kept.count(var.get()) || it == last.end() || it->second != i) continue;
        to.bindings.push_back({make_var(format("kill_{}", names_++), tuple_type({})), call("memory.kill", {var})});
      }
    }
    to.result = inside(from.result, [this](const Expr& inner) { return chain(inner); });
    return let_chain(to);
  }

 private:
  int64_t names_ = 0;
};

class Elision {
 public:
  Expr function(const Expr& e) {
    const auto& node = *as<FunctionNode>(e);
    Expr body = chain(node.body);
    if (values_.empty() && !changed_) return e;
    return with_body(node, substitute(body, values_));
  }

 private:
  Expr chain(const Expr& e) {
    Chain from = chain_of(e), to;
    for (const Binding& b : from.bindings) {
      const OpDef* op = called_op(b.value);
      const std::string_view name = op ? op->name : "";
      if (name == "memory.alloc_storage" || name == "memory.alloc_tensor" || name == "memory.kill") {
        changed_ = true;
        continue;
      }
      if (name == "vm.invoke_tvm_op") {
        invoke(b.value, &to);
        continue;
      }
      to.bindings.push_back({b.var, inside(b.value, [this](const Expr& inner) { return chain(inner); })});
    }
    to.result = inside(from.result, [this](const Expr& inner) { return chain(inner); });
    return to.bindings.size() == from.bindings.size() && to.result == from.result && !changed_ ? e : let_chain(to);
  }
  static std::vector<Expr> fields_of(const Expr& tuple) {
    if (const auto* node = as<TupleNode>(tuple)) return node->fields;
    std::vector<Expr> out;
    for (size_t i = 0; i < as_tuple(tuple->type)->fields.size(); ++i)
      out.push_back(make_get(tuple, static_cast<int64_t>(i)));
    return out;
  }
  void invoke(const Expr& e, Chain* to) {
    changed_ = true;
    Expr made = call_function(arg(e, 0), fields_of(arg(e, 1)), e->span);
    Expr var = make_var(format("value_{}", names_++), made->type);
    to->bindings.push_back({var, made});
    std::vector<Expr> parts;
    take_apart(var, &parts);
    const std::vector<Expr> places = fields_of(arg(e, 2));
    for (size_t i = 0; i < std::min(parts.size(), places.size()); ++i)
      if (const auto* place = as<VarNode>(places[i])) values_[place] = parts[i];
  }
  static void take_apart(const Expr& e, std::vector<Expr>* out) {
    const auto* tuple = as_tuple(e->type);
    if (!tuple) return out->push_back(e);
    for (size_t i = 0; i < tuple->fields.size(); ++i) take_apart(make_get(e, static_cast<int64_t>(i)), out);
  }
  std::map<const VarNode*, Expr> values_;
  bool changed_ = false;
  int64_t names_ = 0;
};

bool has_memory(const Expr& function) {
  for (const Expr& e : post_order(function, true))
    if (const OpDef* op = called_op(e); op && is_memory_op(op->name)) return true;
  return false;
}

}  // namespace

Result<Module> manifest_alloc(const Module& module, PassContext& context) {
  Module ready = TW_TRY(inline_primitives(module, context));
  Module out = rewrite_functions(ready, [](const Expr& function) {
    const auto& node = *as<FunctionNode>(function);
    Allocation allocation;
    Expr body = allocation.chain(node.body);
    return allocation.changed() ? with_body(node, body) : function;
  });
  for (const auto& [name, function] : out.functions)
    if (has_memory(function)) out.types.try_emplace("Storage");
  return out;
}

Result<Module> manifest_lifetimes(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) {
    const auto& node = *as<FunctionNode>(function);
    Lifetimes lifetimes;
    Expr body = lifetimes.chain(node.body);
    return lifetimes.changed() ? with_body(node, body) : function;
  });
}

Result<Module> elide_memory(const Module& module, PassContext&) {
  Module out = rewrite_functions(
      module, [](const Expr& function) { return has_memory(function) ? Elision().function(function) : function; });
  if (!(out.functions == module.functions)) out.types.erase("Storage");
  return out;
}

}  // namespace tilewright::relay
