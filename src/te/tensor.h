// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: what a computation's elements are, independent of how and when they are computed (te/schedule.h).
// Immutable. A tensor element in an expression is a ReadNode (tir/expr.h) whose source is the TensorNode.
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

// A variable of a computation and its domain: [min, min + extent).
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

// Combines two partial results. Tuples: one entry per output. `result` uses the variables of both sides; it is
// associative and commutative up to rounding, with `identity` as neutral element.
struct Combiner {
  std::vector<PrimExpr> lhs, rhs;  // variables
  std::vector<PrimExpr> result, identity;
};
enum class Reduction : uint8_t { kSum, kProd, kMin, kMax };
// Errors: InvalidArgument (the dtype does not support this reduction).
Result<Combiner> make_combiner(Reduction reduction, DataType dtype);

class OperationNode;
using Operation = Ref<OperationNode>;
class TensorNode : public Node {
 public:
  TensorNode(Operation o, int i) : op(std::move(o)), index(i) {}
  const Operation op;
  const int index;  // index among the operation's outputs
  const std::vector<PrimExpr>& shape() const;
  DataType dtype() const;
};
using Tensor = Ref<TensorNode>;

// A loop of a script's statements that its schedule may change. `nest`: loops directly inside each other whose bounds
// do not use each other's variables have the same number.
struct ScriptLoop {
  IterVar axis;
  int nest;
  tir::ForKind kind;
};
// A script's own statements: they read whole inputs and write whole outputs, as arrays.
struct ExternBody {
  std::vector<Tensor> inputs;
  std::vector<tir::Array> input_arrays, output_arrays;
  tir::Stmt body;
  bool is_script = false;         // a hybrid script
  std::vector<ScriptLoop> loops;  // of a hybrid script (te/script_loops.h)
};
// A recurrence. Each state's first dimension is time: `init` gives the first elements, `update` computes later ones in
// order from earlier ones, which it reads as elements of the placeholders `state`.
struct ScanBody {
  IterVar axis;
  std::vector<Tensor> init, update, state;
};

// A placeholder (no body), or elementwise: values[i] is output i's element at `axis`, or the term reduced over
// `reduce_axis` where `condition` (may be null) holds.
class OperationNode : public Node {
 public:
  std::string name;
  std::vector<PrimExpr> shape;  // of all outputs, if `shapes` is empty
  std::vector<std::vector<PrimExpr>> shapes;
  std::vector<DataType> dtypes;
  std::vector<IterVar> axis, reduce_axis;
  std::vector<PrimExpr> values;
  std::optional<Combiner> combiner;
  PrimExpr condition;
  std::optional<ExternBody> external;
  std::optional<ScanBody> scan;
  std::string tag;       // the kind of computation as named by scripts ("broadcast")
  Ref<Node> attributes;  // further data of its creator

  bool is_placeholder() const { return values.empty() && !external && !scan; }
  // Whether elements are computed individually, so that loops can be scheduled.
  bool is_compute() const { return !values.empty(); }
  // Tensors that the body reads, without duplicates, in order of first use. For a scan: init and update.
  std::vector<Tensor> inputs() const;
};

Tensor output(const Operation& op, int index = 0);
bool same_tensor(const TensorNode& a, const TensorNode& b);

Tensor placeholder(std::vector<PrimExpr> shape, DataType dtype, std::string name = "placeholder");
// An element of a tensor. Errors: InvalidArgument (a wrong number of indices, a non-integer index).
Result<PrimExpr> element(const Tensor& tensor, std::vector<PrimExpr> indices);

// The parts of an operation: an axis for each dimension (data_axis), and element values.
struct Definition {
  std::string name;
  std::vector<IterVar> axis, reduce_axis;
  std::vector<PrimExpr> values;
  std::optional<Combiner> combiner;
  PrimExpr condition;
  std::string tag = {};
  Ref<Node> attributes = {};
};
// Errors: InvalidArgument (invalid sizes or values; a reduction without axes, over a data axis, or whose combiner has
// another number of values or other dtypes).
Result<Operation> define(Definition definition);

// Errors of both: InvalidArgument (no output; statements over unknown memory; inconsistent states).
Result<Operation> define_extern(std::string name, std::vector<Tensor> inputs, std::vector<tir::Array> input_arrays,
                                std::vector<tir::Array> output_arrays, tir::Stmt body, bool is_script = false);
Result<Operation> define_scan(std::string name, std::vector<Tensor> init, std::vector<Tensor> update,
                              std::vector<Tensor> state);

using Body = std::function<std::vector<PrimExpr>(const std::vector<PrimExpr>& axis)>;
// One output for each expression of the body.
Result<Operation> compute(const std::vector<PrimExpr>& shape, const Body& body, std::string name = "compute");
// The body reduced over axes.
Result<Operation> compute_reduction(const std::vector<PrimExpr>& shape, const Body& body,
                                    std::vector<IterVar> reduce_axis, Combiner combiner, PrimExpr condition = {},
                                    std::string name = "compute");

// The operation with its reads replaced (by another source, indices or expression).
using ReadRewrite = std::function<PrimExpr(const tir::ReadNode& read, const PrimExpr& e)>;
Operation rewrite_reads(const Operation& op, const ReadRewrite& rewrite);

}  // namespace tilewright::te
