// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include "base/result.h"

namespace tilewright {

Type tensor_type(Shape shape, DataType dtype) { return make_node<TensorTypeNode>(std::move(shape), dtype); }
Type tuple_type(std::vector<Type> fields) { return make_node<TupleTypeNode>(std::move(fields)); }
Type func_type(std::vector<Type> args, Type result) { return make_node<FuncTypeNode>(std::move(args), std::move(result)); }
Type incomplete_type() {
  static const Type kIncomplete = make_node<IncompleteTypeNode>();
  return kIncomplete;
}

const TensorTypeNode* as_tensor(const Type& t) {
  return t && t->kind == TypeKind::kTensor ? static_cast<const TensorTypeNode*>(t.get()) : nullptr;
}
const TupleTypeNode* as_tuple(const Type& t) {
  return t && t->kind == TypeKind::kTuple ? static_cast<const TupleTypeNode*>(t.get()) : nullptr;
}
const FuncTypeNode* as_func(const Type& t) {
  return t && t->kind == TypeKind::kFunc ? static_cast<const FuncTypeNode*>(t.get()) : nullptr;
}

namespace {
bool all_equal(const std::vector<Type>& a, const std::vector<Type>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!type_equal(a[i], b[i])) return false;
  return true;
}
std::string list_str(const std::vector<Type>& types) {
  std::string out = "(";
  for (size_t i = 0; i < types.size(); ++i) out += (i ? ", " : "") + type_str(types[i]);
  return out + (types.size() == 1 ? ",)" : ")");
}
}  // namespace

bool type_equal(const Type& a, const Type& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind) return false;
  switch (a->kind) {
    case TypeKind::kTensor:
      return as_tensor(a)->dtype == as_tensor(b)->dtype && as_tensor(a)->shape == as_tensor(b)->shape;
    case TypeKind::kTuple:
      return all_equal(as_tuple(a)->fields, as_tuple(b)->fields);
    case TypeKind::kFunc:
      return all_equal(as_func(a)->args, as_func(b)->args) && type_equal(as_func(a)->result, as_func(b)->result);
    case TypeKind::kIncomplete:
      return true;
  }
  return false;
}

std::string type_str(const Type& type) {
  if (!type) return "<null>";
  switch (type->kind) {
    case TypeKind::kTensor: {
      const auto* t = as_tensor(type);
      if (t->shape.empty()) return t->dtype.str();
      return "Tensor[" + shape_str(t->shape) + ", " + t->dtype.str() + "]";
    }
    case TypeKind::kTuple:
      return list_str(as_tuple(type)->fields);
    case TypeKind::kFunc: {
      std::string out = "fn (";
      const auto* f = as_func(type);
      for (size_t i = 0; i < f->args.size(); ++i) out += (i ? ", " : "") + type_str(f->args[i]);
      return out + ") -> " + type_str(f->result);
    }
    case TypeKind::kIncomplete:
      return "<incomplete>";
  }
  return "?";
}

}  // namespace tilewright
