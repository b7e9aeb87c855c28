// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include <algorithm>
#include <map>

#include "base/result.h"

namespace tilewright {

Type tensor_type(Shape shape, DataType dtype) { return make_node<TensorTypeNode>(std::move(shape), dtype); }
Type tuple_type(std::vector<Type> fields) { return make_node<TupleTypeNode>(std::move(fields)); }
Type func_type(std::vector<Type> args, Type result, std::vector<Type> variables) {
  return make_node<FuncTypeNode>(std::move(args), std::move(result), std::move(variables));
}
Type incomplete_type() {
  static const Type kIncomplete = make_node<IncompleteTypeNode>();
  return kIncomplete;
}
Type reference_type(Type value) { return make_node<ReferenceTypeNode>(std::move(value)); }
Type variable_type(std::string name) { return make_node<VariableTypeNode>(std::move(name)); }
Type data_type(std::string name, std::vector<Type> args) {
  return make_node<DataTypeNode>(std::move(name), std::move(args));
}

#define TW_AS(function, Class, Kind)                                                      \
  const Class* function(const Type& t) {                                                  \
    return t && t->kind == TypeKind::Kind ? static_cast<const Class*>(t.get()) : nullptr; \
  }
TW_AS(as_tensor, TensorTypeNode, kTensor)
TW_AS(as_tuple, TupleTypeNode, kTuple)
TW_AS(as_func, FuncTypeNode, kFunc)
TW_AS(as_reference, ReferenceTypeNode, kReference)
TW_AS(as_variable, VariableTypeNode, kVariable)
TW_AS(as_data, DataTypeNode, kData)
#undef TW_AS

std::vector<Type> parts_of(const Type& type) {
  switch (type->kind) {
    case TypeKind::kTensor:
    case TypeKind::kVariable:
    case TypeKind::kIncomplete:
      return {};
    case TypeKind::kTuple:
      return as_tuple(type)->fields;
    case TypeKind::kFunc: {
      std::vector<Type> out = as_func(type)->args;
      out.push_back(as_func(type)->result);
      return out;
    }
    case TypeKind::kReference:
      return {as_reference(type)->value};
    case TypeKind::kData:
      return as_data(type)->args;
  }
  return {};
}

Type with_parts(const Type& type, std::vector<Type> parts) {
  switch (type->kind) {
    case TypeKind::kTensor:
    case TypeKind::kVariable:
    case TypeKind::kIncomplete:
      return type;
    case TypeKind::kTuple:
      return tuple_type(std::move(parts));
    case TypeKind::kFunc: {
      Type result = parts.back();
      parts.pop_back();
      return func_type(std::move(parts), std::move(result), as_func(type)->variables);
    }
    case TypeKind::kReference:
      return reference_type(parts.at(0));
    case TypeKind::kData:
      return data_type(as_data(type)->name, std::move(parts));
  }
  return type;
}

Type substitute_types(const Type& type, const TypeMap& values) {
  if (values.empty() || type->kind == TypeKind::kTensor) return type;
  if (auto it = values.find(type.get()); it != values.end()) return it->second;
  std::vector<Type> parts = parts_of(type);
  bool changed = false;
  for (Type& part : parts) {
    Type now = substitute_types(part, values);
    changed |= !(now == part);
    part = std::move(now);
  }
  return changed ? with_parts(type, std::move(parts)) : type;
}

namespace {
void read_variables(const Type& wanted, const Type& given, TypeMap* found) {
  if (auto it = found->find(wanted.get()); it != found->end()) {
    if (!is_complete(it->second)) it->second = given;
    return;
  }
  if (wanted->kind != given->kind) return;
  if (const auto* f = as_func(given); f && !f->variables.empty()) {
    // The type variables of a polymorphic argument determine nothing.
    TypeMap open;
    for (const Type& variable : f->variables) open[variable.get()] = incomplete_type();
    return read_variables(wanted, substitute_types(func_type(f->args, f->result), open), found);
  }
  std::vector<Type> x = parts_of(wanted), y = parts_of(given);
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) read_variables(x[i], y[i], found);
}
}  // namespace

Type applied_type(const FuncTypeNode& f, const std::vector<Type>& args) {
  if (f.variables.empty()) return f.result;
  TypeMap found;
  for (const Type& variable : f.variables) found[variable.get()] = incomplete_type();
  for (size_t i = 0; i < std::min(args.size(), f.args.size()); ++i) read_variables(f.args[i], args[i], &found);
  return substitute_types(f.result, found);
}

bool is_complete(const Type& type) {
  if (type->kind == TypeKind::kTensor) return true;
  if (type->kind == TypeKind::kIncomplete) return false;
  std::vector<Type> parts = parts_of(type);
  return std::all_of(parts.begin(), parts.end(), is_complete);
}

namespace {

// Two function types' variables at the same position are identified.
using Renaming = std::map<const TypeNode*, const TypeNode*>;

bool equal_under(const Type& a, const Type& b, Renaming& renaming) {
  if (a == b && renaming.empty()) return true;
  if (!a || !b || a->kind != b->kind) return false;
  if (a->kind == TypeKind::kTensor)
    return as_tensor(a)->dtype == as_tensor(b)->dtype && as_tensor(a)->shape == as_tensor(b)->shape;
  if (a->kind == TypeKind::kVariable) {
    auto it = renaming.find(a.get());
    return (it == renaming.end() ? a.get() : it->second) == b.get();
  }
  if (a->kind == TypeKind::kData && as_data(a)->name != as_data(b)->name) return false;
  if (const auto* f = as_func(a)) {
    const auto* g = as_func(b);
    if (f->variables.size() != g->variables.size()) return false;
    for (size_t i = 0; i < f->variables.size(); ++i) renaming[f->variables[i].get()] = g->variables[i].get();
  }
  std::vector<Type> x = parts_of(a), y = parts_of(b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (!equal_under(x[i], y[i], renaming)) return false;
  return true;
}

std::string joined(const std::vector<Type>& types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + type_str(types[i]);
  return out;
}

}  // namespace

bool type_equal(const Type& a, const Type& b) {
  Renaming renaming;
  return equal_under(a, b, renaming);
}

std::string type_str(const Type& type) {
  if (!type) return "<null>";
  switch (type->kind) {
    case TypeKind::kTensor: {
      const auto* t = as_tensor(type);
      if (t->shape.empty()) return t->dtype.str();
      std::string dims;
      for (size_t i = 0; i < t->shape.size(); ++i) dims += (i ? ", " : "") + t->shape[i].str();
      return "Tensor[(" + dims + "), " + t->dtype.str() + "]";
    }
    case TypeKind::kTuple:
      return "(" + joined(as_tuple(type)->fields) + (as_tuple(type)->fields.size() == 1 ? ",)" : ")");
    case TypeKind::kFunc: {
      const auto* f = as_func(type);
      std::string variables = f->variables.empty() ? "" : "[" + joined(f->variables) + "]";
      return "fn " + variables + "(" + joined(f->args) + ") -> " + type_str(f->result);
    }
    case TypeKind::kReference:
      return "ref(" + type_str(as_reference(type)->value) + ")";
    case TypeKind::kVariable:
      return as_variable(type)->name;
    case TypeKind::kData:
      return as_data(type)->name + (as_data(type)->args.empty() ? "" : "[" + joined(as_data(type)->args) + "]");
    case TypeKind::kIncomplete:
      return "_";
  }
  return "?";
}

}  // namespace tilewright
