// SPDX-License-Identifier: Apache-2.0
#include "te/tensor.h"

#include <algorithm>
#include <limits>

#include "base/format.h"
#include "te/script_loops.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

Diagnostic bad_tensor(std::string what, const std::string& where, std::string hint = {}) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
}

// The smallest value of a dtype (the largest for `greatest`).
PrimExpr extreme(DataType dtype, bool greatest) {
  if (dtype.is_float()) {
    const double infinity = std::numeric_limits<double>::infinity();
    return tir::make_float(greatest ? infinity : -infinity, dtype);
  }
  if (dtype.is_bool()) return tir::make_int(greatest ? 1 : 0, dtype);
  if (dtype.is_uint()) return tir::make_int(greatest ? -1 : 0, dtype);  // all bits set
  const int64_t least = dtype.bits == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits - 1));
  return tir::make_int(greatest ? -(least + 1) : least, dtype);
}

std::vector<IterVar> axes_of(const std::vector<PrimExpr>& shape) {
  std::vector<IterVar> axis;
  for (size_t d = 0; d < shape.size(); ++d) axis.push_back(data_axis(shape[d], format("i{}", d)));
  return axis;
}

Status check_reduction(const Definition& d) {
  if (d.reduce_axis.empty()) return bad_tensor("a reduction has no axis", d.name, "give it a reduce_axis");
  for (const IterVar& a : d.reduce_axis)
    if (a->kind != IterKind::kReduce)
      return bad_tensor(format("'{}' is no axis of a reduction", a->name()), d.name, "make it with reduce_axis");
  const Combiner& c = *d.combiner;
  const size_t n = d.values.size();
  if (c.lhs.size() != n || c.rhs.size() != n || c.result.size() != n || c.identity.size() != n)
    return bad_tensor(format("a combiner of {} values for {}", c.result.size(), n), d.name);
  for (size_t i = 0; i < n; ++i)
    for (const PrimExpr& e : {c.lhs[i], c.rhs[i], c.result[i], c.identity[i]})
      if (e->dtype != d.values[i]->dtype)
        return bad_tensor(format("value {} is of {}, its combiner of {}", i, d.values[i]->dtype.str(), e->dtype.str()),
                          d.name);
  if (d.condition && d.condition->dtype != kBool)
    return bad_tensor(format("the condition is of {}", d.condition->dtype.str()), d.name, "give a comparison");
  return Ok{};
}

Operation made_of(Definition d, std::vector<PrimExpr> shape, std::vector<DataType> dtypes) {
  auto* op = new OperationNode;
  op->name = std::move(d.name);
  op->shape = std::move(shape), op->dtypes = std::move(dtypes);
  op->axis = std::move(d.axis), op->reduce_axis = std::move(d.reduce_axis);
  op->values = std::move(d.values), op->combiner = std::move(d.combiner), op->condition = std::move(d.condition);
  op->tag = std::move(d.tag), op->attributes = std::move(d.attributes);
  return Operation(op);
}

}  // namespace

IterVar data_axis(const PrimExpr& extent, std::string name) {
  return make_node<IterVarNode>(tir::make_var(std::move(name), extent->dtype), tir::make_int(0, extent->dtype), extent,
                                IterKind::kData);
}

Result<Operation> define(Definition d) {
  if (d.values.empty()) return bad_tensor("a computation gives no value", d.name);
  std::vector<PrimExpr> shape;
  std::vector<DataType> dtypes;
  for (const IterVar& a : d.axis) {
    if (!a->extent->dtype.is_int() || a->extent->dtype.bits < 32 || a->extent->dtype.lanes != 1)
      return bad_tensor(format("a dimension is of {}", a->extent->dtype.str()), d.name, "give sizes as int32 or int64");
    shape.push_back(a->extent);
  }
  for (const PrimExpr& v : d.values) dtypes.push_back(v->dtype);
  if (d.combiner) TW_TRY_STATUS(check_reduction(d));
  return made_of(std::move(d), std::move(shape), std::move(dtypes));
}

Result<Operation> define_extern(std::string name, std::vector<Tensor> inputs, std::vector<tir::Array> input_arrays,
                                std::vector<tir::Array> output_arrays, tir::Stmt body, bool is_script) {
  if (output_arrays.empty()) return bad_tensor("an extern has no output", name, "give it a shape");
  if (inputs.size() != input_arrays.size())
    return bad_tensor(format("{} buffers for {} inputs", input_arrays.size(), inputs.size()), name);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]->dtype() != input_arrays[i]->dtype || inputs[i]->shape().size() != input_arrays[i]->shape.size())
      return bad_tensor(format("the buffer of '{}' is of {} and {} dimensions", inputs[i]->op->name,
                               input_arrays[i]->dtype.str(), input_arrays[i]->shape.size()),
                        name, "give buffers the dtypes and dimensions of the tensors");
  auto* op = new OperationNode;
  Operation out(op);
  op->name = std::move(name);
  for (const tir::Array& a : output_arrays) op->shapes.push_back(a->shape), op->dtypes.push_back(a->dtype);
  op->shape = op->shapes[0];
  std::vector<ScriptLoop> loops = is_script ? script_loops(body) : std::vector<ScriptLoop>();
  op->external = ExternBody{std::move(inputs), std::move(input_arrays), std::move(output_arrays), std::move(body),
                            is_script,         std::move(loops)};
  return out;
}

Result<Operation> define_scan(std::string name, std::vector<Tensor> init, std::vector<Tensor> update,
                              std::vector<Tensor> state) {
  if (init.empty() || init.size() != update.size() || init.size() != state.size())
    return bad_tensor(format("a scan of {} inits, {} updates and {} states", init.size(), update.size(), state.size()),
                      name, "give each state its init and its update");
  auto* op = new OperationNode;
  Operation out(op);
  for (size_t i = 0; i < state.size(); ++i) {
    const Tensor &first = init[i], &next = update[i], &s = state[i];
    if (!s->op->is_placeholder()) return bad_tensor(format("state {} is computed", i), name, "give a placeholder");
    if (!first->op->is_compute() || !next->op->is_compute())
      return bad_tensor(format("init or update {} is no te.compute", i), name, "compute them");
    const size_t rank = s->shape().size();
    if (rank == 0 || first->shape().size() != rank || next->shape().size() != rank)
      return bad_tensor(format("state {} has {} dimensions, its init {}, its update {}", i, rank, first->shape().size(),
                               next->shape().size()),
                        name, "give all three the same dimensions, the first of them time");
    if (s->dtype() != first->dtype() || s->dtype() != next->dtype())
      return bad_tensor(format("state {} is of {}, its init of {}, its update of {}", i, s->dtype().str(),
                               first->dtype().str(), next->dtype().str()),
                        name, "cast them");
    op->shapes.push_back(s->shape()), op->dtypes.push_back(s->dtype());
  }
  op->name = std::move(name);
  op->shape = op->shapes[0];
  const PrimExpr first = init[0]->shape()[0], last = state[0]->shape()[0];
  const IterVar axis = reduce_axis(first, tir::cast(first->dtype, last) - first, op->name + ".idx");
  op->scan = ScanBody{axis, std::move(init), std::move(update), std::move(state)};
  return out;
}

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

const std::vector<PrimExpr>& TensorNode::shape() const {
  return op->shapes.empty() ? op->shape : op->shapes[static_cast<size_t>(index)];
}
DataType TensorNode::dtype() const { return op->dtypes[static_cast<size_t>(index)]; }

std::vector<Tensor> OperationNode::inputs() const {
  if (external) return external->inputs;
  std::vector<Tensor> out;
  if (scan) {
    out = scan->init;
    out.insert(out.end(), scan->update.begin(), scan->update.end());
    return out;
  }
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

namespace {
Definition begin_compute(const std::vector<PrimExpr>& shape, const Body& body, std::string name) {
  Definition d;
  d.name = std::move(name);
  d.axis = axes_of(shape);
  std::vector<PrimExpr> variables;
  for (const IterVar& a : d.axis) variables.push_back(a->var);
  d.values = body(variables);
  return d;
}
}  // namespace

Result<Operation> compute(const std::vector<PrimExpr>& shape, const Body& body, std::string name) {
  return define(begin_compute(shape, body, std::move(name)));
}

Result<Operation> compute_reduction(const std::vector<PrimExpr>& shape, const Body& body,
                                    std::vector<IterVar> reduce_axis, Combiner combiner, PrimExpr condition,
                                    std::string name) {
  Definition d = begin_compute(shape, body, std::move(name));
  d.reduce_axis = std::move(reduce_axis);
  d.combiner = std::move(combiner);
  d.condition = std::move(condition);
  return define(std::move(d));
}

namespace {
// For operations on whole tensors: replaces the tensors.
Operation rewrite_inputs(const Operation& op, const ReadRewrite& rewrite) {
  bool changed = false;
  auto replaced = [&](Tensor& t) {
    const PrimExpr e =
        tir::read(t->dtype(), t, t->op->name, std::vector<PrimExpr>(t->shape().size(), tir::make_int(0)));
    const PrimExpr with = rewrite(static_cast<const tir::ReadNode&>(*e), e);
    const auto* read = tir::as<tir::ReadNode>(with);
    const auto* tensor = read ? dynamic_cast<const TensorNode*>(read->source.get()) : nullptr;
    if (with == e || !tensor) return;
    t = Tensor(tensor), changed = true;
  };
  auto* made = new OperationNode;
  Operation out(made);
  made->name = op->name, made->shape = op->shape, made->shapes = op->shapes, made->dtypes = op->dtypes;
  made->external = op->external, made->scan = op->scan, made->tag = op->tag, made->attributes = op->attributes;
  if (made->external)
    for (Tensor& t : made->external->inputs) replaced(t);
  if (made->scan)
    for (std::vector<Tensor>* list : {&made->scan->init, &made->scan->update})
      for (Tensor& t : *list) replaced(t);
  return changed ? out : op;
}
}  // namespace

Operation rewrite_reads(const Operation& op, const ReadRewrite& rewrite) {
  if (op->is_placeholder()) return op;
  if (!op->is_compute()) return rewrite_inputs(op, rewrite);
  auto on_expr = [&](const PrimExpr& e) -> PrimExpr {
    return e->kind == tir::ExprKind::kRead ? rewrite(static_cast<const tir::ReadNode&>(*e), e) : e;
  };
  Definition made{op->name, op->axis, op->reduce_axis, {}, op->combiner, {}, op->tag, op->attributes};
  bool changed = false;
  for (const PrimExpr& v : op->values) {
    made.values.push_back(tir::mutate(v, on_expr));
    changed |= !(made.values.back() == v);
  }
  if (op->condition) {
    made.condition = tir::mutate(op->condition, on_expr);
    changed |= !(made.condition == op->condition);
  }
  return changed ? made_of(std::move(made), op->shape, op->dtypes) : op;
}

}  // namespace tilewright::te
