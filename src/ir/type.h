// SPDX-License-Identifier: Apache-2.0
// Types of graph expressions. Never null: an expression not yet typed carries an IncompleteType.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ir/dim.h"

namespace tilewright {

#define TW_TYPE_KINDS(X) X(Tensor) X(Tuple) X(Func) X(Incomplete) X(Reference) X(Variable) X(Data)
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
// "fn [A](A) -> A": `variables` are its type variables, instantiated at each use.
class FuncTypeNode : public TypeNode {
 public:
  FuncTypeNode(std::vector<Type> a, Type r, std::vector<Type> v = {})
      : TypeNode(TypeKind::kFunc), args(std::move(a)), result(std::move(r)), variables(std::move(v)) {}
  const std::vector<Type> args;
  const Type result;
  const std::vector<Type> variables;
};
// "ref(T)": a cell that holds a T.
class ReferenceTypeNode : public TypeNode {
 public:
  explicit ReferenceTypeNode(Type v) : TypeNode(TypeKind::kReference), value(std::move(v)) {}
  const Type value;
};
// A type variable of a function or of a type definition; identity is the object.
class VariableTypeNode : public TypeNode {
 public:
  explicit VariableTypeNode(std::string n) : TypeNode(TypeKind::kVariable), name(std::move(n)) {}
  const std::string name;
};
// "List[float32]": an algebraic data type of the module, over its arguments.
class DataTypeNode : public TypeNode {
 public:
  DataTypeNode(std::string n, std::vector<Type> a)
      : TypeNode(TypeKind::kData), name(std::move(n)), args(std::move(a)) {}
  const std::string name;
  const std::vector<Type> args;
};
// An unknown type. Inference distinguishes unknowns by identity; `incomplete_type` is a shared one.
class IncompleteTypeNode : public TypeNode {
 public:
  IncompleteTypeNode() : TypeNode(TypeKind::kIncomplete) {}
};

Type tensor_type(Shape shape, DataType dtype);
Type tuple_type(std::vector<Type> fields);
Type func_type(std::vector<Type> args, Type result, std::vector<Type> variables = {});
Type incomplete_type();
Type reference_type(Type value);
Type variable_type(std::string name);
Type data_type(std::string name, std::vector<Type> args = {});

// The node as its class, or null when it is of another kind.
const TensorTypeNode* as_tensor(const Type& type);
const TupleTypeNode* as_tuple(const Type& type);
const FuncTypeNode* as_func(const Type& type);
const ReferenceTypeNode* as_reference(const Type& type);
const VariableTypeNode* as_variable(const Type& type);
const DataTypeNode* as_data(const Type& type);

// A type's components in order (for a function: arguments, then result); and the type with other components.
std::vector<Type> parts_of(const Type& type);
Type with_parts(const Type& type, std::vector<Type> parts);
// The result type of calling a function of type `f` with these argument types: type variables are inferred from
// arguments; those that are not determined become incomplete.
Type applied_type(const FuncTypeNode& f, const std::vector<Type>& args);
// Substitutes type variables.
using TypeMap = std::map<const TypeNode*, Type>;
Type substitute_types(const Type& type, const TypeMap& values);
// Whether it contains no unknown.
bool is_complete(const Type& type);

bool type_equal(const Type& a, const Type& b);
// As the text form writes it: "Tensor[(1, 3, 224, 224), float32]", "fn [A](A, List[A]) -> ref(A)".
std::string type_str(const Type& type);

}  // namespace tilewright
