// SPDX-License-Identifier: Apache-2.0
// Multi-dimensional memory, which Read and Write access, and functions over it: the form that scripts write and
// te::BlockSchedule transforms. te/flatten.h lowers it to kernels.
#pragma once
#include <string>
#include <vector>

#include "tir/stmt.h"

namespace tilewright::tir {

class ArrayNode : public Node {
 public:
  ArrayNode(std::string n, DataType d, std::vector<PrimExpr> s, std::vector<PrimExpr> t, std::string sc)
      : name(std::move(n)), dtype(d), shape(std::move(s)), strides(std::move(t)), scope(std::move(sc)) {}
  const std::string name;
  const DataType dtype;
  const std::vector<PrimExpr> shape;    // int32 or int64
  const std::vector<PrimExpr> strides;  // in elements; empty: row-major without gaps
  const std::string scope;              // "global", or a script's name; CPUs have only one scope
};
using Array = Ref<ArrayNode>;
inline Array make_array(std::string name, DataType dtype, std::vector<PrimExpr> shape, std::string scope = "global",
                        std::vector<PrimExpr> strides = {}) {
  return make_node<ArrayNode>(std::move(name), dtype, std::move(shape), std::move(strides), std::move(scope));
}
inline PrimExpr read(const Array& array, std::vector<PrimExpr> indices) {
  return read(array->dtype, array, array->name, std::move(indices));
}
inline Stmt write(const Array& array, std::vector<PrimExpr> indices, PrimExpr value) {
  return write(Ref<Node>(array), array->name, std::move(indices), std::move(value));
}
inline const ArrayNode* array_of(const Ref<Node>& source) { return dynamic_cast<const ArrayNode*>(source.get()); }

// The name of a call that evaluates its argument and has no effect: what scripts write as T.evaluate(x).
inline constexpr const char* kEvaluate = "tir.evaluate";
// The name of a call that ends the function with its argument as the result: T.ret(x).
inline constexpr const char* kReturn = "tir.ret";

// A function whose parameters are arrays and sizes in any order; free variables in shapes are sizes as well.
struct BlockFunction {
  std::string name;
  struct Param {
    Array array;   // either an array,
    PrimExpr var;  // or a size
  };
  std::vector<Param> params;
  Stmt body;  // arrays that are not parameters are allocated by blocks
};

}  // namespace tilewright::tir
