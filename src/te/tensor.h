// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: what a computation's elements are, apart from how and when they are computed (te/schedule.h).
// Immutable. An element of a tensor in an expression is a ReadNode (tir/expr.h) whose source is the TensorNode.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tir/block.h"

namespace tilewright::te {

using tir::PrimExpr;

enum class IterKind : uint8_t { kData, kReduce };

// A variable of a computation and what it runs over: [min, min + extent).
class IterVarNode : public Node {
 public:
  IterVarNode(PrimExpr v, PrimExpr m, PrimExpr e, IterKind k)
      : var(std::move(v)), min(std::move(m)), extent(std::move(e)), kind(k) {}
  const std::string& name() const { return static_cast<const tir::VarNode&>(*var).name; }
  const PrimExpr var, min, extent;
  const IterKind kind;
};
using IterVar = Ref<IterVarNode>;
IterVar data_axis(const PrimExpr& extent, std::string name);
IterVar reduce_axis(PrimExpr min, PrimExpr extent, std::string name = "rv");

// How two partial results become one. Tuples: one entry for each output. `result` uses the variables of both sides;
// it is associative and commutative up to rounding, and identity leaves the other side as it is.
struct Combiner {
  std::vector<PrimExpr> lhs, rhs;  // variables
  std::vector<PrimExpr> result, identity;
};
enum class Reduction : uint8_t { kSum, kProd, kMin, kMax };
// Errors: InvalidArgument (a dtype without this reduction).
Result<Combiner> make_combiner(Reduction reduction, DataType dtype);

class OperationNode;
using Operation = Ref<OperationNode>;
class TensorNode : public Node {
 public:
  TensorNode(Operation o, int i) : op(std::move(o)), index(i) {}
  const Operation op;
  const int index;  // among the operation's outputs
  const std::vector<PrimExpr>& shape() const;
  DataType dtype() const;
};
using Tensor = Ref<TensorNode>;

// What statements of a script's own compute: they read whole inputs, as arrays, and write whole outputs.
struct ExternBody {
  std::vector<Tensor> inputs;
  std::vector<tir::Array> input_arrays, output_arrays;
  tir::Stmt body;
};
// A recurrence. The first dimension of every state is time: `init` says its first elements, `update` the others, one
// after another, from earlier ones, which it reads as elements of the placeholders `state`.
struct ScanBody {
  IterVar axis;
  std::vector<Tensor> init, update, state;
};

// A placeholder (no body), or elements computed one by one: values[i] is the element of output i at `axis`, or what is
// combined over `reduce_axis` where `condition` (may be null) holds.
class OperationNode : public Node {
 public:
  std::string name;
  std::vector<PrimExpr> shape;  // of every output, where `shapes` is empty
  std::vector<std::vector<PrimExpr>> shapes;
  std::vector<DataType> dtypes;
  std::vector<IterVar> axis, reduce_axis;
  std::vector<PrimExpr> values;
  std::optional<Combiner> combiner;
  PrimExpr condition;
  std::optional<ExternBody> external;
  std::optional<ScanBody> scan;
  std::string tag;       // what kind of computation scripts say it is ("broadcast")
  Ref<Node> attributes;  // what else its maker says of it

  bool is_placeholder() const { return values.empty() && !external && !scan; }
  // Elements computed one by one: what loops can be made of.
  bool is_compute() const { return !values.empty(); }
  // Tensors that the body reads, each once, in the order of their first use. Of a scan: init and update.
  std::vector<Tensor> inputs() const;
};

Tensor output(const Operation& op, int index = 0);
bool same_tensor(const TensorNode& a, const TensorNode& b);

Tensor placeholder(std::vector<PrimExpr> shape, DataType dtype, std::string name = "placeholder");
// An element. Errors: InvalidArgument (another number of indices than dimensions, an index that is no integer).
Result<PrimExpr> element(const Tensor& tensor, std::vector<PrimExpr> indices);

// An operation by its parts: an axis for each dimension (data_axis), and what its elements are.
struct Definition {
  std::string name;
  std::vector<IterVar> axis, reduce_axis;
  std::vector<PrimExpr> values;
  std::optional<Combiner> combiner;
  PrimExpr condition;
  std::string tag = {};
  Ref<Node> attributes = {};
};
// Errors: InvalidArgument (sizes or values that are none; a reduction without an axis, over an axis that is none of a
// reduction, or with a combiner of another number of values or of other dtypes).
Result<Operation> define(Definition definition);

// Errors of both: InvalidArgument (no output; statements over other memory; states that do not fit together).
Result<Operation> define_extern(std::string name, std::vector<Tensor> inputs, std::vector<tir::Array> input_arrays,
                                std::vector<tir::Array> output_arrays, tir::Stmt body);
Result<Operation> define_scan(std::string name, std::vector<Tensor> init, std::vector<Tensor> update,
                              std::vector<Tensor> state);

using Body = std::function<std::vector<PrimExpr>(const std::vector<PrimExpr>& axis)>;
// One output for each expression of the body.
Result<Operation> compute(const std::vector<PrimExpr>& shape, const Body& body, std::string name = "compute");
// The same with the body combined over axes.
Result<Operation> compute_reduction(const std::vector<PrimExpr>& shape, const Body& body,
                                    std::vector<IterVar> reduce_axis, Combiner combiner, PrimExpr condition = {},
                                    std::string name = "compute");

// The operation with its reads replaced (other source, other indices or another expression).
using ReadRewrite = std::function<PrimExpr(const tir::ReadNode& read, const PrimExpr& e)>;
Operation rewrite_reads(const Operation& op, const ReadRewrite& rewrite);

}  // namespace tilewright::te
