// SPDX-License-Identifier: Apache-2.0
#include "relay/unify.h"

#include <algorithm>

#include "base/format.h"
#include "relay/infer_type.h"

namespace tilewright::relay {

Type Unifier::fresh() { return make_node<IncompleteTypeNode>(); }
Type Unifier::opened(const Type& t) {
  if (t->kind == TypeKind::kIncomplete) return fresh();
  if (is_complete(t)) return t;
  std::vector<Type> parts = parts_of(t);
  for (Type& part : parts) part = opened(part);
  return with_parts(t, std::move(parts));
}

Type Unifier::instantiated(const Type& t) {
  const auto* f = as_func(t);
  if (!f || f->variables.empty()) return t;
  TypeMap values;
  for (const Type& variable : f->variables) values[variable.get()] = fresh();
  Type plain = func_type(f->args, f->result);
  return substitute_types(plain, values);
}

Type Unifier::resolved(const Type& t) const {
  if (t->kind == TypeKind::kIncomplete) {
    auto it = bound_.find(t.get());
    return it == bound_.end() ? t : resolved(it->second.second);
  }
  if (is_complete(t)) return t;
  std::vector<Type> parts = parts_of(t);
  for (Type& part : parts) part = resolved(part);
  return with_parts(t, std::move(parts));
}

std::string Unifier::unify(const Type& left, const Type& right) {
  std::string clash = meet(left, right, 0);
  return clash.empty()
             ? clash
             : format("{} and {} are not one type{}", type_str(resolved(left)), type_str(resolved(right)), clash);
}

bool Unifier::occurs(const Type& hole, const Type& t) const {
  Type now = resolved(t);
  if (now == hole) return true;
  std::vector<Type> parts = parts_of(now);
  return std::any_of(parts.begin(), parts.end(), [&](const Type& part) { return occurs(hole, part); });
}

std::string Unifier::meet(const Type& left, const Type& right, int depth) {
  if (depth > 200) return ": they nest too deeply";
  Type a = resolved(left), b = resolved(right);
  if (a == b) return "";
  if (b->kind == TypeKind::kIncomplete) std::swap(a, b);
  if (a->kind == TypeKind::kIncomplete) {
    if (occurs(a, b)) return ": one holds the other";
    bound_[a.get()] = {a, b};
    return "";
  }
  if (a->kind != b->kind) return " ";
  if (const auto* t = as_tensor(a)) {
    const auto& other = *as_tensor(b);
    // Dimensions that are not constant may turn out equal at run time.
    auto differ = [](const Dim& x, const Dim& y) { return x.is_const() && y.is_const() && x.value() != y.value(); };
    bool same = t->dtype == other.dtype && t->shape.size() == other.shape.size();
    for (size_t i = 0; same && i < t->shape.size(); ++i) same = !differ(t->shape[i], other.shape[i]);
    return same ? "" : " ";
  }
  if (a->kind == TypeKind::kVariable) return " ";
  if (a->kind == TypeKind::kData && as_data(a)->name != as_data(b)->name) return " ";
  if (as_func(a)) {
    a = instantiated(a);
    b = instantiated(b);
  }
  std::vector<Type> x = parts_of(a), y = parts_of(b);
  if (x.size() != y.size()) return " ";
  for (size_t i = 0; i < x.size(); ++i)
    if (std::string clash = meet(x[i], y[i], depth + 1); !clash.empty()) return clash;
  return "";
}

bool takes_any_types(const Type& t) {
  const auto* function = as_func(t);
  return function && !function->variables.empty();
}

bool types_agree(const Type& a, const Type& b) {
  if (a == b) return true;
  Unifier unifier;
  return unifier.unify(unifier.opened(a), unifier.opened(b)).empty();
}

Type type_of_either(const Type& a, const Type& b) {
  if (!is_complete(a) || !is_complete(b) || type_equal(a, b)) return is_complete(a) ? a : b;
  if (a->kind != b->kind) return a;
  const auto *x = as_tensor(a), *y = as_tensor(b);
  if (x && x->shape.size() == y->shape.size()) {
    Shape shape = x->shape;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i].is_const() && !y->shape[i].is_const()) shape[i] = y->shape[i];
    return tensor_type(std::move(shape), x->dtype);
  }
  if (const auto* s = as_tuple(a), *t = as_tuple(b); s && s->fields.size() == t->fields.size()) {
    std::vector<Type> fields;
    for (size_t i = 0; i < s->fields.size(); ++i) fields.push_back(type_of_either(s->fields[i], t->fields[i]));
    return tuple_type(std::move(fields));
  }
  return a;
}

}  // namespace tilewright::relay
