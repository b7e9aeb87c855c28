// SPDX-License-Identifier: Apache-2.0
#include "te/tensor.h"

#include <algorithm>
#include <limits>

#include "base/format.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

Diagnostic bad_tensor(std::string what, const std::string& where, std::string hint = {}) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
}

// The least value of a dtype (the greatest for `greatest`).
PrimExpr extreme(DataType dtype, bool greatest) {
  if (dtype.is_float()) {
    const double infinity = std::numeric_limits<double>::infinity();
    return tir::make_float(greatest ? infinity : -infinity, dtype);
  }
  if (dtype.is_bool()) return tir::make_int(greatest ? 1 : 0, dtype);
  if (dtype.is_uint()) return tir::make_int(greatest ? -1 : 0, dtype);  // all bits
  const int64_t least = dtype.bits == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits - 1));
  return tir::make_int(greatest ? -(least + 1) : least, dtype);
}

std::vector<IterVar> axes_of(const std::vector<PrimExpr>& shape) {
  std::vector<IterVar> axis;
  for (size_t d = 0; d < shape.size(); ++d)
    axis.push_back(make_node<IterVarNode>(tir::make_var(format("i{}", d), shape[d]->dtype),
                                          tir::make_int(0, shape[d]->dtype), shape[d], IterKind::kData));
  return axis;
}

Result<std::shared_ptr<OperationNode>> begin_compute(std::vector<PrimExpr> shape, const Body& body, std::string name) {
  auto op = std::make_unique<OperationNode>();
  op->name = std::move(name);
  for (const PrimExpr& d : shape)
    if (!d->dtype.is_int() || d->dtype.bits < 32 || d->dtype.lanes != 1)
      return bad_tensor(format("a dimension is of {}", d->dtype.str()), op->name, "give sizes as int32 or int64");
  op->axis = axes_of(shape);
  op->shape = std::move(shape);
  std::vector<PrimExpr> variables;
  for (const IterVar& a : op->axis) variables.push_back(a->var);
  op->values = body(variables);
  if (op->values.empty()) return bad_tensor("a computation gives no value", op->name);
  for (const PrimExpr& v : op->values) op->dtypes.push_back(v->dtype);
  return std::shared_ptr<OperationNode>(std::move(op));
}

// The node leaves its builder: from here on nobody changes it.
Operation finished(const std::shared_ptr<OperationNode>& made) {
  auto* op = new OperationNode;
  op->name = made->name;
  op->shape = made->shape, op->dtypes = made->dtypes;
  op->axis = made->axis, op->reduce_axis = made->reduce_axis;
  op->values = made->values, op->combiner = made->combiner, op->condition = made->condition;
  return Operation(op);
}

}  // namespace

IterVar reduce_axis(PrimExpr min, PrimExpr extent, std::string name) {
  const DataType dtype = extent->dtype;
  return make_node<IterVarNode>(tir::make_var(std::move(name), dtype), tir::cast(dtype, std::move(min)),
                                std::move(extent), IterKind::kReduce);
}

Result<Combiner> make_combiner(Reduction reduction, DataType dtype) {
  if (dtype.lanes != 1 || !(dtype.is_float() || dtype.is_integral()))
    return bad_tensor(format("{} cannot be reduced", dtype.str()), "reduction", "cast the elements to a number first");
  Combiner c;
  const PrimExpr a = tir::make_var("x", dtype), b = tir::make_var("y", dtype);
  c.lhs = {a}, c.rhs = {b};
  switch (reduction) {
    case Reduction::kSum:
      c.result = {a + b}, c.identity = {tir::make_const(dtype, 0)};
      break;
    case Reduction::kProd:
      c.result = {a * b}, c.identity = {tir::make_const(dtype, 1)};
      break;
    case Reduction::kMin:
      c.result = {tir::min(a, b)}, c.identity = {extreme(dtype, true)};
      break;
    case Reduction::kMax:
      c.result = {tir::max(a, b)}, c.identity = {extreme(dtype, false)};
      break;
  }
  return c;
}

const std::vector<PrimExpr>& TensorNode::shape() const { return op->shape; }
DataType TensorNode::dtype() const { return op->dtypes[static_cast<size_t>(index)]; }

std::vector<Tensor> OperationNode::inputs() const {
  std::vector<Tensor> out;
  auto visit = [&](const PrimExpr& e) {
    if (e->kind != tir::ExprKind::kRead) return;
    const auto* tensor = dynamic_cast<const TensorNode*>(static_cast<const tir::ReadNode&>(*e).source.get());
    if (tensor && std::none_of(out.begin(), out.end(), [&](const Tensor& t) { return same_tensor(*t, *tensor); }))
      out.emplace_back(tensor);
  };
  for (const PrimExpr& v : values) tir::for_each_expr(v, visit);
  if (condition) tir::for_each_expr(condition, visit);
  return out;
}

Tensor output(const Operation& op, int index) { return make_node<TensorNode>(op, index); }
bool same_tensor(const TensorNode& a, const TensorNode& b) { return a.op == b.op && a.index == b.index; }

Tensor placeholder(std::vector<PrimExpr> shape, DataType dtype, std::string name) {
  auto* op = new OperationNode;
  op->name = std::move(name);
  op->axis = axes_of(shape);
  op->shape = std::move(shape);
  op->dtypes = {dtype};
  return output(Operation(op));
}

Result<PrimExpr> element(const Tensor& tensor, std::vector<PrimExpr> indices) {
  const std::string& name = tensor->op->name;
  if (indices.size() != tensor->shape().size())
    return bad_tensor(format("{} indices for a tensor of {} dimensions", indices.size(), tensor->shape().size()), name,
                      "give one index for each dimension");
  for (const PrimExpr& i : indices)
    if (!i->dtype.is_integral() || i->dtype.lanes != 1)
      return bad_tensor(format("an index is of {}", i->dtype.str()), name, "index with integers");
  return tir::read(tensor->dtype(), tensor, name, std::move(indices));
}

Result<Operation> compute(std::vector<PrimExpr> shape, const Body& body, std::string name) {
  return finished(TW_TRY(begin_compute(std::move(shape), body, std::move(name))));
}

Result<Operation> compute_reduction(std::vector<PrimExpr> shape, const Body& body, std::vector<IterVar> reduce_axis,
                                    Combiner combiner, PrimExpr condition, std::string name) {
  auto op = TW_TRY(begin_compute(std::move(shape), body, std::move(name)));
  if (reduce_axis.empty()) return bad_tensor("a reduction has no axis", op->name, "give it a reduce_axis");
  for (const IterVar& a : reduce_axis)
    if (a->kind != IterKind::kReduce)
      return bad_tensor(format("'{}' is no axis of a reduction", a->name()), op->name, "make it with reduce_axis");
  const size_t n = op->values.size();
  if (combiner.lhs.size() != n || combiner.rhs.size() != n || combiner.result.size() != n ||
      combiner.identity.size() != n)
    return bad_tensor(format("a combiner of {} values for {}", combiner.result.size(), n), op->name);
  for (size_t i = 0; i < n; ++i)
    for (const PrimExpr& e : {combiner.lhs[i], combiner.rhs[i], combiner.result[i], combiner.identity[i]})
      if (e->dtype != op->values[i]->dtype)
        return bad_tensor(
            format("value {} is of {}, its combiner of {}", i, op->values[i]->dtype.str(), e->dtype.str()), op->name);
  if (condition && condition->dtype != kBool)
    return bad_tensor(format("the condition is of {}", condition->dtype.str()), op->name, "give a comparison");
  op->reduce_axis = std::move(reduce_axis);
  op->combiner = std::move(combiner);
  op->condition = std::move(condition);
  return finished(op);
}

Operation rewrite_reads(const Operation& op, const ReadRewrite& rewrite) {
  if (op->is_placeholder()) return op;
  auto on_expr = [&](PrimExpr e) -> PrimExpr {
    return e->kind == tir::ExprKind::kRead ? rewrite(static_cast<const tir::ReadNode&>(*e), e) : e;
  };
  auto made = std::make_shared<OperationNode>();
  made->name = op->name, made->shape = op->shape, made->dtypes = op->dtypes;
  made->axis = op->axis, made->reduce_axis = op->reduce_axis, made->combiner = op->combiner;
  bool changed = false;
  for (const PrimExpr& v : op->values) {
    made->values.push_back(tir::mutate(v, on_expr));
    changed |= !(made->values.back() == v);
  }
  if (op->condition) {
    made->condition = tir::mutate(op->condition, on_expr);
    changed |= !(made->condition == op->condition);
  }
  return changed ? finished(made) : op;
}

}  // namespace tilewright::te
