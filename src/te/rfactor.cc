// SPDX-License-Identifier: Apache-2.0
// rfactor: turns a reduction loop into a dimension of partial results.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "te/schedule.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using Values = std::map<const IterVarNode*, PrimExpr>;

// Extents of a stage's reduction loops, and its reduction axes as offsets over the loops, following splits and fusions.
struct ReductionLoops {
  Values extent, offset;
  PrimExpr condition;  // guards of uneven splits; null: none

  ReductionLoops(const Stage& stage, const Values& loop_values) : offset(loop_values) {
    for (const IterVar& a : stage.op()->reduce_axis) extent[a.get()] = a->extent;
    std::vector<const Relation*> here;
    for (const Relation& r : stage.relations())
      if (r.parent->kind == IterKind::kReduce) here.push_back(&r);
    std::vector<IterVar> uneven;
    for (const Relation* r : here) add_extents(*r, &uneven);
    for (auto r = here.rbegin(); r != here.rend(); ++r) add_offset(**r);
    for (const IterVar& v : uneven) {
      const PrimExpr inside = tir::lt(offset[v.get()], extent[v.get()]);
      condition = condition ? tir::logical_and(condition, inside) : inside;
    }
  }

 private:
  void add_extents(const Relation& r, std::vector<IterVar>* uneven) {
    if (r.fuses) {
      extent[r.parent.get()] = extent[r.outer.get()] * extent[r.inner.get()];
      return;
    }
    const PrimExpr whole = extent[r.parent.get()];
    const int64_t wanted = r.factor > 0 ? r.factor : r.parts;
    const PrimExpr fixed = tir::make_int(wanted, whole->dtype), other = tir::floordiv(whole + (wanted - 1), wanted);
    extent[r.outer.get()] = r.factor > 0 ? other : fixed;
    extent[r.inner.get()] = r.factor > 0 ? fixed : other;
    const auto known = tir::as_const_int(whole);
    if (!known || *known % wanted != 0) uneven->push_back(r.parent);
  }
  void add_offset(const Relation& r) {
    const PrimExpr inner = extent[r.inner.get()];
    if (!r.fuses) {
      offset[r.parent.get()] = offset[r.outer.get()] * inner + offset[r.inner.get()];
      return;
    }
    offset[r.outer.get()] = tir::floordiv(offset[r.parent.get()], inner);
    offset[r.inner.get()] = tir::floormod(offset[r.parent.get()], inner);
  }
};

PrimExpr renamed(const PrimExpr& e, const tir::Substitution& values) { return e ? tir::substitute(e, values) : e; }

}  // namespace

Result<std::vector<Tensor>> Schedule::rfactor(const Tensor& tensor, const IterVar& leaf, int factor_axis) {
  Stage* of = TW_TRY(stage(tensor->op));
  const Operation original = of->op_;
  if (!original->combiner) return of->refused("it is no reduction", "rfactor divides a reduction's loop");
  TW_TRY_STATUS(of->place_of(leaf));
  if (leaf->kind != IterKind::kReduce)
    return of->refused(format("'{}' is an axis of the data", leaf->name()), "give a loop of the reduction");
  if (of->attached_ || of->inline_)
    return of->refused("it is computed inside another stage", "call rfactor before compute_at");
  const int rank = static_cast<int>(original->axis.size());
  const int at = factor_axis < 0 ? factor_axis + rank + 1 : factor_axis;
  if (at < 0 || at > rank)
    return of->refused(format("there is no dimension {} among {}", factor_axis, rank + 1), "give 0 to the rank");

  // Partial results: the factored loop is a dimension, the other reduction loops are the axes.
  Values loops;
  for (const IterVar& l : of->leaves_)
    if (l->kind == IterKind::kReduce) loops[l.get()] = tir::make_var(l->name(), l->var->dtype);
  const ReductionLoops shape(*of, loops);
  Definition partial;
  partial.name = original->name + ".rf";
  tir::Substitution values;
  for (const IterVar& a : original->axis) {
    IterVar fresh = data_axis(a->extent, a->name());
    values[a->var.get()] = fresh->var;
    partial.axis.push_back(std::move(fresh));
  }
  tir::Substitution of_loops;
  for (const IterVar& l : of->leaves_) {
    if (l->kind != IterKind::kReduce) continue;
    const PrimExpr extent = shape.extent.at(l.get());
    IterVar fresh =
        l == leaf ? data_axis(extent, l->name()) : reduce_axis(tir::make_int(0, extent->dtype), extent, l->name());
    of_loops[loops[l.get()].get()] = tir::cast(l->var->dtype, fresh->var);
    (l == leaf ? partial.axis : partial.reduce_axis).push_back(fresh);
  }
  const IterVar factor = partial.axis.back();
  std::rotate(partial.axis.begin() + at, partial.axis.end() - 1, partial.axis.end());
  for (const IterVar& a : original->reduce_axis)
    values[a->var.get()] = tir::cast(a->var->dtype, a->min + renamed(shape.offset.at(a.get()), of_loops));
  PrimExpr condition = renamed(original->condition, values);
  if (const PrimExpr inside = renamed(shape.condition, of_loops))
    condition = condition ? tir::logical_and(condition, inside) : inside;
  for (size_t i = 0; i < original->values.size(); ++i) {
    PrimExpr value = renamed(original->values[i], values);
    if (partial.reduce_axis.empty() && condition)
      value = tir::intrinsic(tir::Intrinsic::k_if_then_else, {condition, value, original->combiner->identity[i]});
    partial.values.push_back(std::move(value));
  }
  if (!partial.reduce_axis.empty()) partial.combiner = original->combiner, partial.condition = condition;
  const Operation parts = TW_TRY(define(std::move(partial)));

  // Combines them, with the data axes and loops unchanged.
  const IterVar over = reduce_axis(tir::make_int(0, factor->extent->dtype), factor->extent, leaf->name() + ".v");
  Definition whole{original->name, original->axis,      {over}, {}, original->combiner, {},
                   original->tag,  original->attributes};
  std::vector<PrimExpr> indices;
  for (const IterVar& a : original->axis) indices.push_back(a->var);
  indices.insert(indices.begin() + at, over->var);
  for (size_t i = 0; i < original->dtypes.size(); ++i)
    whole.values.push_back(tir::read(original->dtypes[i], output(parts, static_cast<int>(i)), parts->name, indices));
  const Operation combined = TW_TRY(define(std::move(whole)));
  const auto first = std::find_if(of->leaves_.begin(), of->leaves_.end(),
                                  [](const IterVar& l) { return l->kind == IterKind::kReduce; });
  *first = over;
  of->leaves_.erase(std::remove_if(of->leaves_.begin(), of->leaves_.end(),
                                   [&](const IterVar& l) { return l->kind == IterKind::kReduce && !(l == over); }),
                    of->leaves_.end());
  std::erase_if(of->relations_, [](const Relation& r) { return r.parent->kind == IterKind::kReduce; });
  replace(*of, combined);
  auto place = std::find_if(stages_.begin(), stages_.end(), [&](const auto& s) { return s.get() == of; });
  by_op_[parts.get()] = stages_.insert(place, std::make_unique<Stage>(parts))->get();
  std::vector<Tensor> out;
  for (size_t i = 0; i < parts->dtypes.size(); ++i) out.push_back(output(parts, static_cast<int>(i)));
  return out;
}

}  // namespace tilewright::te
