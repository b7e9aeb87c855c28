// SPDX-License-Identifier: Apache-2.0
#include "te/tensorize.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::ExprKind;

// How an intrinsic's input maps to a tensor: its first element, and which tensor dimensions correspond to its own (-1:
// extent one, without counterpart).
struct Found {
  Tensor tensor;
  std::vector<PrimExpr> start;
  std::vector<int> dims;
};
using Inputs = std::map<const OperationNode*, Found>;

class Matcher {
 public:
  Matcher(Planning& planning, const Stage& stage, StagePlan* plan)
      : planning_(planning), stage_(stage), plan_(*plan), by_(*stage.tensorized_by()) {}

  Status run() {
    TW_TRY_STATUS(find_loops());
    std::vector<int> output_dims;
    TW_TRY_STATUS(match_axes(plan_.body->axis, by_.operation->axis, &output_dims));
    std::vector<int> unused;
    TW_TRY_STATUS(match_axes(plan_.body->reduce_axis, by_.operation->reduce_axis, &unused));
    TW_TRY_STATUS(match_bodies());
    TW_TRY_STATUS(check_parts());
    auto places = std::make_shared<IntrinsicPlaces>();
    std::vector<PrimExpr> start;
    for (const IterVar& a : plan_.body->axis) start.push_back(outer_.at(a.get()));
    for (size_t i = 0; i < by_.outputs.size(); ++i)
      TW_TRY_STATUS(place(by_.outputs[i], plan_, static_cast<int>(i), start, output_dims, places.get()));
    const std::vector<Tensor> wanted = by_.operation->inputs();
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto found = inputs_.find(wanted[i]->op.get());
      if (found == inputs_.end()) return wrong(format("its input '{}' is not in the expression", wanted[i]->op->name));
      const Stage* from = TW_TRY(planning_.schedule().stage(found->second.tensor->op));
      TW_TRY_STATUS(place(by_.inputs[i], planning_.of(*from), found->second.tensor->index, found->second.start,
                          found->second.dims, places.get()));
    }
    plan_.intrinsic = std::move(places);
    return Ok{};
  }

 private:
  Diagnostic wrong(std::string what, std::string hint = {}) const {
    return Diagnostic(ErrorCode::kInvalidArgument, format("the intrinsic '{}' does not fit: {}", by_.name, what),
                      format("stage {}", stage_.op()->name), std::move(hint));
  }
  bool is_inner(const PrimExpr& e) const { return uses_any(e, inner_); }
  PrimExpr simple(const PrimExpr& e) const { return planning_.simplified(e); }

  // Determines which variables vary inside, and where each axis starts.
  Status find_loops() {
    const auto& leaves = stage_.leaves();
    const auto at = std::find(leaves.begin(), leaves.end(), stage_.tensorized_at());
    if (at == leaves.end())
      return wrong(format("the loop '{}' was split or fused since", stage_.tensorized_at()->name()),
                   "call tensorize after the loops are made");
    for (auto leaf = at; leaf != leaves.end(); ++leaf) {
      inner_.push_back({plan_.loop.at(leaf->get()), plan_.extent.at(leaf->get())});
      if (!tir::as_const_int(inner_.back().extent))
        return wrong(format("the loop '{}' has no constant number of iterations", (*leaf)->name()),
                     "split it by a number");
      for (const auto& t : planning_.schedule().stages())
        if (planning_.home_of(*t) == &stage_ && planning_.home_loop_of(*t) == *leaf)
          return wrong(format("'{}' is computed in its loop '{}'", t->op()->name, (*leaf)->name()),
                       "compute it in a loop outside of the intrinsic");
    }
    for (const PrimExpr& g : plan_.guards)
      if (is_inner(g))
        return wrong("its loops do not divide the axes evenly", "split by numbers that divide the sizes");
    if (stage_.store_predicate()) return wrong("the stage has a store predicate");
    tir::Substitution zero;
    for (const Loop& l : inner_) zero[l.var.get()] = tir::make_int(0);
    for (const auto* list : {&plan_.body->axis, &plan_.body->reduce_axis})
      for (const IterVar& a : *list) {
        const PrimExpr value = plan_.value(a);
        outer_[a.get()] = simple(tir::substitute(value, zero));
        const int64_t n = covered(simple(value - outer_[a.get()]));
        if (n == 0)
          return wrong(format("its loops take '{}' in no contiguous piece", a->name()), "give it whole inner loops");
        extent_[a.get()] = n;
      }
    return Ok{};
  }

  // The n for which the offset takes the values 0 to n - 1 exactly once each, as a mixed radix of loops; 0 if there is
  // none.
  int64_t covered(const PrimExpr& offset) const {
    std::vector<std::pair<int64_t, int64_t>> digits;  // (scale, extent)
    PrimExpr sum = tir::make_int(0);
    for (const Loop& l : inner_) {
      tir::Substitution one;
      for (const Loop& o : inner_) one[o.var.get()] = tir::make_int(o.var == l.var ? 1 : 0);
      const auto scale = tir::as_const_int(simple(tir::substitute(offset, one)));
      const int64_t n = *tir::as_const_int(l.extent);
      if (!scale) return 0;
      if (*scale == 0 || n == 1) continue;
      digits.emplace_back(*scale, n);
      sum = sum + l.var * *scale;
    }
    if (!planning_.scopes().proves(tir::eq(sum, offset))) return 0;
    std::sort(digits.begin(), digits.end());
    int64_t next = 1;
    for (const auto& [scale, n] : digits) {
      if (scale != next) return 0;
      next *= n;
    }
    return next;
  }

  // Matches axes with more than one element in order; the others have one.
  Status match_axes(const std::vector<IterVar>& have, const std::vector<IterVar>& want, std::vector<int>* dims) {
    dims->assign(want.size(), -1);
    size_t next = 0;
    for (size_t w = 0; w < want.size(); ++w) {
      const auto n = tir::as_const_int(want[w]->extent);
      if (!n) return wrong(format("its axis '{}' has no constant size", want[w]->name()));
      values_[want[w]->var.get()] = tir::make_int(0);
      if (*n == 1) continue;
      while (next < have.size() && extent_.at(have[next].get()) == 1) ++next;
      if (next == have.size())
        return wrong(format("it has {} elements of '{}', and the loops have no such axis", *n, want[w]->name()));
      if (extent_.at(have[next].get()) != *n)
        return wrong(format("it has {} elements of '{}', and the loops {} of '{}'", *n, want[w]->name(),
                            extent_.at(have[next].get()), have[next]->name()),
                     "split the axis by that number");
      const PrimExpr var = tir::make_var(want[w]->name());
      planning_.scopes().add(var, {0, *n - 1});
      inside_.push_back({var, tir::make_int(*n)});
      values_[want[w]->var.get()] = var;
      values_[have[next]->var.get()] = simple(outer_.at(have[next].get()) + var);
      (*dims)[w] = static_cast<int>(next++);
    }
    for (; next < have.size(); ++next)
      if (extent_.at(have[next].get()) != 1)
        return wrong(
            format("it has no axis for the {} elements of '{}'", extent_.at(have[next].get()), have[next]->name()));
    for (const IterVar& a : have)
      if (!values_.count(a->var.get())) values_[a->var.get()] = outer_.at(a.get());
    return Ok{};
  }

  PrimExpr index(const PrimExpr& e) {
    Widening w = planning_.widening([](const tir::ReadNode& r, std::vector<PrimExpr> i) {
      return tir::read(r.dtype, r.source, r.name, std::move(i));
    });
    for (const auto* op : {plan_.body.get(), by_.operation.get()})
      for (const auto* list : {&op->axis, &op->reduce_axis})
        for (const IterVar& a : *list) w.bind(a->var, values_.at(a->var.get()));
    return simple(w.index(e));
  }

  Status match_bodies() {
    const OperationNode &have = *plan_.body, &want = *by_.operation;
    if (!want.is_compute() || have.values.size() != want.values.size() ||
        have.combiner.has_value() != want.combiner.has_value() || !have.condition != !want.condition)
      return wrong("it is another kind of computation");
    if (have.combiner && combiner_text(*have.combiner) != combiner_text(*want.combiner))
      return wrong("it combines other than the stage does");
    for (size_t i = 0; i < have.values.size(); ++i)
      if (!same(have.values[i], want.values[i], &inputs_))
        return wrong(
            format("it computes {}, and the stage {}", tir::to_text(want.values[i]), tir::to_text(have.values[i])));
    if (have.condition && !same(have.condition, want.condition, &inputs_)) return wrong("its condition is another");
    return Ok{};
  }

  static std::string combiner_text(const Combiner& c) {
    tir::Substitution names;
    for (size_t i = 0; i < c.lhs.size(); ++i) {
      names[c.lhs[i].get()] = tir::make_var(format("x{}", i), c.lhs[i]->dtype);
      names[c.rhs[i].get()] = tir::make_var(format("y{}", i), c.rhs[i]->dtype);
    }
    std::string text;
    for (const auto* list : {&c.result, &c.identity})
      for (const PrimExpr& e : *list) text += tir::to_text(tir::substitute(e, names)) + ";" + e->dtype.str() + ";";
    return text;
  }

  bool same(const PrimExpr& have, const PrimExpr& want, Inputs* inputs) {
    if (have->dtype.is_int() && have->dtype.bits >= 32 && want->dtype.is_int() && want->dtype.bits >= 32 &&
        have->kind != ExprKind::kRead && want->kind != ExprKind::kRead && !has_read(have) && !has_read(want))
      return planning_.scopes().proves(tir::eq(index(have), index(want)));
    if (have->dtype != want->dtype || have->kind != want->kind) return false;
    if (have->kind == ExprKind::kRead)
      return same_read(static_cast<const tir::ReadNode&>(*have), static_cast<const tir::ReadNode&>(*want), inputs);
    if (have->kind == ExprKind::kIntImm || have->kind == ExprKind::kFloatImm)
      return tir::to_text(have) == tir::to_text(want);
    if (have->kind == ExprKind::kVar) return have == want;
    if (const auto* n = tir::as<tir::CallNode>(have); n && n->op != tir::as<tir::CallNode>(want)->op) return false;
    if (const auto* n = tir::as<tir::ExternNode>(have); n && n->name != tir::as<tir::ExternNode>(want)->name)
      return false;
    std::vector<PrimExpr> a, b;
    tir::for_each_child(have, [&](const PrimExpr& e) { a.push_back(e); });
    tir::for_each_child(want, [&](const PrimExpr& e) { b.push_back(e); });
    if (a.size() != b.size()) return false;
    const Inputs before = *inputs;
    bool all = true;
    for (size_t i = 0; i < a.size() && all; ++i) all = same(a[i], b[i], inputs);
    if (all) return true;
    *inputs = before;
    const bool turns = have->kind == ExprKind::kAdd || have->kind == ExprKind::kMul;
    if (!turns) return false;
    if (same(a[0], b[1], inputs) && same(a[1], b[0], inputs)) return true;
    *inputs = before;
    return false;
  }

  static bool has_read(const PrimExpr& e) {
    bool found = false;
    tir::for_each_expr(e, [&](const PrimExpr& part) { found = found || part->kind == ExprKind::kRead; });
    return found;
  }

  // A dimension of the intrinsic's input corresponds to the tensor dimension with the same variation; other dimensions
  // are constant.
  bool same_read(const tir::ReadNode& have, const tir::ReadNode& want, Inputs* inputs) {
    const auto* x = dynamic_cast<const TensorNode*>(have.source.get());
    const auto* q = dynamic_cast<const TensorNode*>(want.source.get());
    if (!x || !q) return false;
    Found found{Tensor(x), {}, std::vector<int>(want.indices.size(), -1)};
    std::vector<PrimExpr> places;
    for (const PrimExpr& i : have.indices) places.push_back(index(i));
    found.start = places;
    size_t next = places.size();
    for (size_t w = want.indices.size(); w-- > 0;) {
      const PrimExpr wanted = index(want.indices[w]);
      if (!uses_any(wanted, inside_)) {
        if (tir::as_const_int(wanted) != 0) return false;
        continue;
      }
      while (next > 0 && !uses_any(places[next - 1], inside_)) --next;
      if (next-- == 0) return false;
      const PrimExpr start = simple(places[next] - wanted);
      if (uses_any(start, inside_)) return false;
      found.start[next] = start, found.dims[w] = static_cast<int>(next);
    }
    for (const PrimExpr& s : found.start)
      if (uses_any(s, inside_)) return false;
    auto [it, fresh] = inputs->try_emplace(q->op.get(), found);
    if (fresh) return true;
    if (!same_tensor(*it->second.tensor, *x) || it->second.dims != found.dims) return false;
    for (size_t d = 0; d < found.start.size(); ++d)
      if (!planning_.scopes().proves(tir::eq(found.start[d], it->second.start[d]))) return false;
    return true;
  }

  // A reduction that continues outside of the intrinsic needs its reset and update.
  Status check_parts() const {
    bool outside = false;
    for (const IterVar& leaf : stage_.leaves()) {
      if (leaf == stage_.tensorized_at()) break;
      outside = outside || leaf->kind == IterKind::kReduce;
    }
    if (outside && !by_.update)
      return wrong("the reduction goes on in a loop around it, and it has no update",
                   "give (body, reset, update), or take the whole reduction into it");
    if (outside && !by_.reset && !by_.body) return wrong("it has neither a reset nor a body");
    if (!outside && !by_.body && !(by_.reset && by_.update)) return wrong("it has no body");
    return Ok{};
  }

  Status place(const tir::Array& array, const StagePlan& of, int output, const std::vector<PrimExpr>& start,
               const std::vector<int>& dims, IntrinsicPlaces* out) {
    Placed at;
    at.buffer = of.buffers[static_cast<size_t>(output)];
    at.offset = simple(planning_.place(of, output, start));
    const std::vector<PrimExpr>& strides = of.strides[static_cast<size_t>(output)];
    PrimExpr compact = tir::make_int(1);
    at.strides.assign(dims.size(), compact);
    for (size_t d = dims.size(); d-- > 0;) {
      const auto n = tir::as_const_int(array->shape[d]);
      const PrimExpr stride = dims[d] < 0 ? compact : strides[static_cast<size_t>(dims[d])];
      at.strides[d] = stride;
      const PrimExpr asked = array->strides.empty() ? compact : array->strides[d];
      if (!array->strides.empty() && asked->kind == ExprKind::kVar)
        out->values.emplace_back(asked, stride);
      else if (n != 1 && !planning_.scopes().proves(tir::eq(stride, tir::cast(kInt64, asked))))
        return wrong(
            format("elements of dimension {} of its buffer '{}' lie {} apart, and those of '{}' {}", d, array->name,
                   tir::to_text(asked), at.buffer->name, tir::to_text(stride)),
            "declare the buffer with strides that are variables: decl_buffer(..., strides=[te.var(\"s\"), 1])");
      if (n) compact = compact * *n;
    }
    out->places.emplace_back(array, std::move(at));
    return Ok{};
  }

  Planning& planning_;
  const Stage& stage_;
  StagePlan& plan_;
  const TensorIntrinsic& by_;
  std::vector<Loop> inner_, inside_;  // the stage's loops; the intrinsic's axes
  std::map<const IterVarNode*, PrimExpr> outer_;
  std::map<const IterVarNode*, int64_t> extent_;
  std::map<const tir::ExprNode*, PrimExpr> values_;  // of both sides' axes, over outer loops and `inside_`
  Inputs inputs_;
};

}  // namespace

Status match_intrinsic(Planning& planning, const Stage& stage, StagePlan* plan) {
  return Matcher(planning, stage, plan).run();
}

}  // namespace tilewright::te
