// SPDX-License-Identifier: Apache-2.0
// Tensor expressions as blocks in plain loops.
#include <map>

#include "base/format.h"
#include "te/block_schedule.h"
#include "te/schedule.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::Stmt;
using ArrayOf = std::map<std::pair<const OperationNode*, int>, tir::Array>;

class BlockMaker {
 public:
  BlockMaker(const ArrayOf& arrays, const OperationNode& op, std::string name)
      : arrays_(arrays), op_(op), name_(std::move(name)) {}

  Stmt make() {
    if (op_.external) return extern_block();
    std::vector<PrimExpr> index;
    std::vector<PrimExpr> loops;
    std::vector<tir::BlockAxis> axes;
    tir::Substitution inner;
    for (const auto* list : {&op_.axis, &op_.reduce_axis})
      for (const IterVar& a : *list) {
        const bool reduces = a->kind == IterKind::kReduce;
        const PrimExpr loop = tir::make_var(a->name(), a->var->dtype);
        const PrimExpr var = tir::make_var("v_" + a->name(), a->var->dtype);
        inner[a->var.get()] = var;
        axes.push_back({var, tir::cast(a->var->dtype, a->min), tir::cast(a->var->dtype, a->extent), reduces, loop});
        loops.push_back(loop);
        if (!reduces) index.push_back(var);
      }
    std::vector<PrimExpr> values;
    for (const PrimExpr& v : op_.values) values.push_back(rewritten(v, inner));
    Stmt init, body;
    if (op_.combiner) {
      std::vector<Stmt> starts;
      tir::Substitution sides;
      for (size_t i = 0; i < values.size(); ++i) {
        starts.push_back(tir::write(array(i), index, op_.combiner->identity[i]));
        sides[op_.combiner->lhs[i].get()] = tir::read(array(i), index);
        sides[op_.combiner->rhs[i].get()] = values[i];
      }
      init = tir::seq(std::move(starts));
      for (size_t i = 0; i < values.size(); ++i) values[i] = tir::substitute(op_.combiner->result[i], sides);
    }
    body = written(index, values);
    if (op_.condition) body = tir::make_if(rewritten(op_.condition, inner), body);
    Stmt out = make_node<tir::BlockNode>(name_, axes, PrimExpr(), init, body, std::vector<Ref<Node>>());
    for (size_t i = loops.size(); i-- > 0;) out = tir::make_for(loops[i], axes[i].min, axes[i].extent, out);
    return out;
  }

 private:
  tir::Array array(size_t output) const { return arrays_.at({&op_, static_cast<int>(output)}); }

  PrimExpr rewritten(const PrimExpr& e, const tir::Substitution& inner) const {
    return tir::mutate(tir::substitute(e, inner), [&](const PrimExpr& part) -> PrimExpr {
      const auto* read = tir::as<tir::ReadNode>(part);
      const auto* tensor = read ? dynamic_cast<const TensorNode*>(read->source.get()) : nullptr;
      if (!tensor) return part;
      return tir::read(arrays_.at({tensor->op.get(), tensor->index}), read->indices);
    });
  }

  // All of several values are computed before any is stored.
  Stmt written(const std::vector<PrimExpr>& index, const std::vector<PrimExpr>& values) const {
    if (values.size() == 1) return tir::write(array(0), index, values[0]);
    std::vector<PrimExpr> held;
    std::vector<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      held.push_back(tir::make_var(format("value{}", i), values[i]->dtype));
      stores.push_back(tir::write(array(i), index, held[i]));
    }
    Stmt out = tir::seq(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) out = tir::let_stmt(held[i], values[i], std::move(out));
    return out;
  }

  // The statements unchanged, over the function's arrays.
  Stmt extern_block() const {
    std::map<const Node*, tir::Array> to;
    for (size_t i = 0; i < op_.external->inputs.size(); ++i) {
      const Tensor& t = op_.external->inputs[i];
      to[op_.external->input_arrays[i].get()] = arrays_.at({t->op.get(), t->index});
    }
    for (size_t i = 0; i < op_.external->output_arrays.size(); ++i) to[op_.external->output_arrays[i].get()] = array(i);
    Stmt body = tir::mutate(
        op_.external->body,
        [&](const PrimExpr& e) -> PrimExpr {
          const auto* n = tir::as<tir::ReadNode>(e);
          auto found = n ? to.find(n->source.get()) : to.end();
          return found == to.end() ? e : tir::read(n->dtype, found->second, found->second->name, n->indices);
        },
        [&](const Stmt& s) -> Stmt {
          const auto* n = tir::as<tir::WriteNode>(s);
          auto found = n ? to.find(n->target.get()) : to.end();
          return found == to.end() ? s : tir::write(found->second, n->indices, n->value);
        });
    return body;
  }

  const ArrayOf& arrays_;
  const OperationNode& op_;
  const std::string name_;
};

}  // namespace

Result<tir::BlockFunction> block_function(const std::vector<Tensor>& arguments, const std::vector<PrimExpr>& scalars,
                                          const std::vector<bool>& is_scalar, const std::string& name) {
  tir::BlockFunction out{name, {}, {}};
  ArrayOf arrays;
  std::vector<Operation> outputs;
  size_t tensor = 0, scalar = 0;
  for (const bool s : is_scalar) {
    if (s) {
      out.params.push_back({{}, scalars[scalar++]});
      continue;
    }
    const Tensor& t = arguments[tensor++];
    const tir::Array a = tir::make_array(t->op->name, t->dtype(), t->shape());
    if (!arrays.emplace(std::pair(t->op.get(), t->index), a).second)
      return Diagnostic(ErrorCode::kInvalidArgument, "the tensor is given twice as an argument", t->op->name,
                        "name each argument once");
    out.params.push_back({a, {}});
    if (!t->op->is_placeholder()) outputs.push_back(t->op);
  }
  const Schedule schedule(outputs);
  std::vector<Stmt> parts;
  std::vector<Ref<Node>> memory;
  std::set<std::string> names = {"root"};
  for (const auto& stage : schedule.stages()) {
    const Operation& op = stage->op();
    if (op->scan)
      return Diagnostic(ErrorCode::kInvalidArgument, "a scan is no block", op->name,
                        "make a schedule with te.create_schedule");
    for (size_t i = 0; i < op->dtypes.size(); ++i) {
      const Tensor t = output(op, static_cast<int>(i));
      if (arrays.count({op.get(), t->index})) continue;
      if (op->is_placeholder())
        return Diagnostic(ErrorCode::kInvalidArgument, "the input is no argument", op->name,
                          "give all inputs and outputs as arguments");
      const std::string own = op->dtypes.size() == 1 ? op->name : format("{}_v{}", op->name, i);
      arrays[{op.get(), t->index}] = tir::make_array(own, t->dtype(), t->shape());
      memory.emplace_back(arrays[{op.get(), t->index}]);
    }
    if (op->is_placeholder()) continue;
    std::string block = op->name;
    for (int i = 1; !names.insert(block).second; ++i) block = format("{}_{}", op->name, i);
    parts.push_back(BlockMaker(arrays, *op, block).make());
  }
  out.body = make_node<tir::BlockNode>("root", std::vector<tir::BlockAxis>(), PrimExpr(), Stmt(),
                                       tir::seq(std::move(parts)), std::move(memory));
  return out;
}

namespace {

// Arrays whose sizes contain given variables become others, everywhere.
class Specialization {
 public:
  explicit Specialization(const tir::Substitution& values) : values_(values) {}

  tir::Array array(const tir::Array& a) {
    tir::Array& made = made_[a.get()];
    if (made) return made;
    auto sizes = [&](std::vector<PrimExpr> list) {
      for (PrimExpr& e : list) e = tir::substitute(e, values_);
      return list;
    };
    std::vector<PrimExpr> shape = sizes(a->shape), strides = sizes(a->strides);
    const bool same = shape == a->shape && strides == a->strides;
    return made = same ? a : tir::make_array(a->name, a->dtype, std::move(shape), a->scope, std::move(strides));
  }

  Stmt body(const Stmt& s) {
    return tir::mutate(
        tir::substitute(s, values_),
        [&](const PrimExpr& e) -> PrimExpr {
          const auto* read = tir::as<tir::ReadNode>(e);
          const auto* source = read ? tir::array_of(read->source) : nullptr;
          return source ? tir::read(e->dtype, array(tir::Array(source)), read->name, read->indices) : e;
        },
        [&](Stmt part) -> Stmt {
          if (const auto* n = tir::as<tir::WriteNode>(part))
            if (const auto* target = tir::array_of(n->target))
              return tir::write(array(tir::Array(target)), n->indices, n->value);
          const auto* block = tir::as<tir::BlockNode>(part);
          if (!block || block->memory.empty()) return part;
          std::vector<Ref<Node>> memory;
          for (const Ref<Node>& m : block->memory) memory.emplace_back(array(tir::Array(tir::array_of(m))));
          return make_node<tir::BlockNode>(block->name, block->axes, block->predicate, block->init, block->body,
                                           std::move(memory), block->annotations);
        });
  }

 private:
  const tir::Substitution& values_;
  std::map<const tir::ArrayNode*, tir::Array> made_;
};

}  // namespace

tir::BlockFunction specialized(const tir::BlockFunction& function, const tir::Substitution& values) {
  Specialization made(values);
  tir::BlockFunction out{function.name, {}, made.body(function.body)};
  for (const auto& p : function.params) {
    if (p.array)
      out.params.push_back({made.array(p.array), {}});
    else if (values.count(p.var.get()) == 0)
      out.params.push_back(p);
  }
  return out;
}

}  // namespace tilewright::te
