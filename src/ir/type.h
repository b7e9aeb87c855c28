// SPDX-License-Identifier: Apache-2.0
// Types of graph expressions. Never null: an expression not yet typed carries an IncompleteType.
#pragma once
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ir/dim.h"

namespace tilewright {

#define TW_TYPE_KINDS(X) X(Tensor) X(Tuple) X(Func) X(Incomplete)
enum class TypeKind : uint8_t {
#define TW_KIND(name) k##name,
  TW_TYPE_KINDS(TW_KIND)
#undef TW_KIND
};

class TypeNode : public Node {
 public:
  explicit TypeNode(TypeKind k) : kind(k) {}
  const TypeKind kind;
};
using Type = Ref<TypeNode>;

class TensorTypeNode : public TypeNode {
 public:
  TensorTypeNode(Shape s, DataType d) : TypeNode(TypeKind::kTensor), shape(std::move(s)), dtype(d) {}
  const Shape shape;
  const DataType dtype;
};
class TupleTypeNode : public TypeNode {
 public:
  explicit TupleTypeNode(std::vector<Type> f) : TypeNode(TypeKind::kTuple), fields(std::move(f)) {}
  const std::vector<Type> fields;
};
class FuncTypeNode : public TypeNode {
 public:
  FuncTypeNode(std::vector<Type> a, Type r) : TypeNode(TypeKind::kFunc), args(std::move(a)), result(std::move(r)) {}
  const std::vector<Type> args;
  const Type result;
};
class IncompleteTypeNode : public TypeNode {
 public:
  IncompleteTypeNode() : TypeNode(TypeKind::kIncomplete) {}
};

Type tensor_type(Shape shape, DataType dtype);
Type tuple_type(std::vector<Type> fields);
Type func_type(std::vector<Type> args, Type result);
Type incomplete_type();

// The node as its class, or null when it is of another kind.
const TensorTypeNode* as_tensor(const Type& type);
const TupleTypeNode* as_tuple(const Type& type);
const FuncTypeNode* as_func(const Type& type);

bool type_equal(const Type& a, const Type& b);
// "Tensor[(1, 3, 224, 224), float32]"
std::string type_str(const Type& type);

}  // namespace tilewright
