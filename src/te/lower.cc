// SPDX-License-Identifier: Apache-2.0
#include "te/lower.h"

#include <algorithm>

#include "base/format.h"
#include "te/kernels.h"
#include "te/script_loops.h"
#include "te/stage_plan.h"
#include "te/tensorize.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::Stmt;

// Emits the statements of planned stages.
class Emission {
 public:
  explicit Emission(Planning& planning) : planning_(planning), out_(planning.take()) {}

  Result<Lowered> run() {
    for (const auto& s : schedule().stages()) {
      if (!planning_.of(*s).alive || planning_.home_of(*s)) continue;
      if (s->op()->external)
        TW_TRY_STATUS(emit_extern(*s));
      else
        emit_kernel(*s);
    }
    if (problem_) return std::move(*problem_);
    finish_parameters(planning_.argument_buffers(), &out_);
    return std::move(out_);
  }

 private:
  const Schedule& schedule() const { return planning_.schedule(); }

  enum class Part { kOuter, kInit, kUpdate };

  Stmt innermost(const Stage& s, Part part) {
    const StagePlan& p = planning_.of(s);
    if (s.op()->scan) return tir::seq({});  // computed by its updates, inside its loop
    Widening w = planning_.widening([this](const tir::ReadNode& read, const std::vector<PrimExpr>& indices) {
      const StagePlan& from = planning_.of(*planning_.stage_of(read));
      const int output = Planning::output_of(read);
      return tir::load(from.buffers[static_cast<size_t>(output)], planning_.place(from, output, indices));
    });
    std::vector<PrimExpr> at;
    for (const IterVar& a : p.body->axis) {
      at.push_back(p.value(a));
      w.bind(a->var, at.back());
    }
    std::vector<PrimExpr> index;
    for (size_t i = 0; i < p.buffers.size(); ++i) index.push_back(planning_.place(p, static_cast<int>(i), at));
    if (part == Part::kInit) {
      std::vector<Stmt> stores;
      for (size_t i = 0; i < p.buffers.size(); ++i)
        stores.push_back(tir::store(p.buffers[i], index[i], w.value(p.body->combiner->identity[i])));
      return tir::seq(std::move(stores));
    }
    for (const IterVar& a : p.body->reduce_axis) w.bind(a->var, p.value(a));
    std::vector<PrimExpr> values;
    for (const PrimExpr& v : p.body->values) values.push_back(w.value(v));
    if (part == Part::kUpdate) {
      tir::Substitution sides;
      for (size_t i = 0; i < values.size(); ++i) {
        sides[p.body->combiner->lhs[i].get()] = tir::load(p.buffers[i], index[i]);
        sides[p.body->combiner->rhs[i].get()] = values[i];
      }
      for (size_t i = 0; i < values.size(); ++i) values[i] = tir::substitute(p.body->combiner->result[i], sides);
    }
    Stmt body = stored(p, index, values);
    return part == Part::kUpdate && p.body->condition ? tir::make_if(w.value(p.body->condition), body) : body;
  }

  // All of several values are computed before any is stored, since each may read the others' old values.
  static Stmt stored(const StagePlan& p, const std::vector<PrimExpr>& index, const std::vector<PrimExpr>& values) {
    if (values.size() == 1) return tir::store(p.buffers[0], index[0], values[0]);
    std::vector<PrimExpr> held;
    std::vector<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      held.push_back(tir::make_var(format("value{}", i), values[i]->dtype));
      stores.push_back(tir::store(p.buffers[i], index[i], held[i]));
    }
    Stmt out = tir::seq(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) out = tir::let_stmt(held[i], values[i], std::move(out));
    return out;
  }

  Stmt guarded_innermost(const Stage& s, Part part) {
    const StagePlan& p = planning_.of(s);
    std::vector<Loop> reduces;
    for (const IterVar& leaf : s.leaves())
      if (leaf->kind == IterKind::kReduce) reduces.push_back({p.loop.at(leaf.get()), {}});
    PrimExpr condition;
    for (const PrimExpr& g : p.guards)
      if (part != Part::kInit || !uses_any(g, reduces)) condition = condition ? tir::logical_and(condition, g) : g;
    Stmt body = innermost(s, part);
    if (s.store_predicate() && part != Part::kInit) {
      const PrimExpr holds = store_condition(s);
      condition = condition ? tir::logical_and(condition, holds) : holds;
    }
    return condition ? tir::make_if(condition, std::move(body)) : body;
  }

  std::vector<const Stage*> attached_at(const Stage& s, const IterVar& leaf) const {
    std::vector<const Stage*> out;
    for (const auto& t : schedule().stages())
      if (planning_.of(*t).alive && planning_.home_of(*t) == &s && planning_.home_loop_of(*t) == leaf)
        out.push_back(t.get());
    return out;
  }

  Stmt loops(const Stage& s, size_t from, Part part) {
    const auto& leaves = s.leaves();
    if (from == leaves.size()) return guarded_innermost(s, part);
    const IterVar& leaf = leaves[from];
    if (s.tensorized_by() && leaf == s.tensorized_at()) return tensorized(s, from, part);
    const bool reduces = leaf->kind == IterKind::kReduce;
    if (reduces && part == Part::kOuter) return tir::seq({loops(s, from, Part::kInit), loops(s, from, Part::kUpdate)});
    if (reduces && part == Part::kInit) return loops(s, from + 1, part);
    Stmt body = loops(s, from + 1, part);
    if (part != Part::kInit) body = with_attached(attached_at(s, leaf), std::move(body));
    const StagePlan& p = planning_.of(s);
    return tir::make_for(p.loop.at(leaf.get()), tir::make_int(0), p.extent.at(leaf.get()), std::move(body),
                         kind_of(s, from));
  }

  // A loop that contains other stages shares their memory between iterations: it is not vectorised, but may be divided
  // among threads, each with its own memory.
  tir::ForKind kind_of(const Stage& s, size_t from) const {
    const tir::ForKind kind = s.kind_of(s.leaves()[from]);
    if (kind != tir::ForKind::kVectorized) return kind;
    for (size_t i = from; i < s.leaves().size(); ++i)
      if (!attached_at(s, s.leaves()[i]).empty()) return tir::ForKind::kSerial;
    return kind;
  }

  Stmt with_attached(const std::vector<const Stage*>& attached, Stmt body) {
    if (attached.empty()) return body;
    std::vector<Stmt> parts;
    for (const Stage* t : attached) parts.push_back(loops(*t, 0, Part::kOuter));
    parts.push_back(std::move(body));
    Stmt out = tir::seq(std::move(parts));
    for (const Stage* t : attached)
      for (const tir::Buffer& b : planning_.of(*t).buffers)
        if (b->scope == tir::Scope::kStack) out = tir::allocate(b, std::move(out));
    return out;
  }

  PrimExpr store_condition(const Stage& s) {
    const StagePlan& p = planning_.of(s);
    Widening w = planning_.widening({});
    for (const auto& [v, at] : p.offset) w.bind(v->var, at);
    for (const auto* list : {&p.body->axis, &p.body->reduce_axis})
      for (const IterVar& a : *list) w.bind(a->var, p.value(a));
    return w.value(s.store_predicate());
  }

  // The intrinsic's code replaces the loops from `from` on (matched by te/tensorize.h).
  Stmt tensorized(const Stage& s, size_t from, Part part) {
    const StagePlan& p = planning_.of(s);
    const TensorIntrinsic& by = *s.tensorized_by();
    const bool whole = part == Part::kOuter;
    Stmt body = whole ? by.body : part == Part::kInit ? by.reset : by.update;
    if (whole && !body) body = tir::seq({by.reset, by.update});
    if (part == Part::kInit && !by.reset) return tir::seq({});  // without a reset, the first update computes all
    Stmt code = placed_code(s, body);
    if (part == Part::kUpdate && !by.reset) {
      PrimExpr first;
      for (size_t i = 0; i < from; ++i) {
        if (s.leaves()[i]->kind != IterKind::kReduce) continue;
        const PrimExpr start = tir::eq(p.loop.at(s.leaves()[i].get()), tir::make_int(0));
        first = first ? tir::logical_and(first, start) : start;
      }
      code = tir::make_if(first, placed_code(s, by.body), std::move(code));
    }
    PrimExpr condition;
    for (const PrimExpr& g : p.guards) condition = condition ? tir::logical_and(condition, g) : g;
    return condition && part != Part::kInit ? tir::make_if(condition, std::move(code)) : code;
  }

  Stmt placed_code(const Stage& s, const Stmt& body) {
    const StagePlan& p = planning_.of(s);
    Flatten flatten(planning_.scopes(), planning_.sizes(), format("stage {}", s.op()->name),
                    [this](const tir::ArrayNode& a, const PrimExpr& n) { return workspace(a, n, true); });
    for (const auto& [array, at] : p.intrinsic->places) flatten.place(array, at);
    for (const auto& [var, value] : p.intrinsic->values) flatten.bind(var, value);
    auto made = flatten.run(body);
    if (made) return *made;
    if (!problem_) problem_ = made.error();
    return tir::seq({});
  }

  tir::Buffer workspace(const tir::ArrayNode& a, const PrimExpr& elements, bool per_thread) {
    const auto known = tir::as_const_int(elements);
    tir::Buffer buffer = tir::make_buffer(a.name, a.dtype.element(), known ? *known : tir::kUnknownSize);
    out_.workspaces.push_back({buffer, elements, per_thread});
    return buffer;
  }

  Status emit_extern(const Stage& s) {
    const StagePlan& p = planning_.of(s);
    const ExternBody& e = *s.op()->external;
    Flatten flatten(planning_.scopes(), planning_.sizes(), format("extern {}", s.op()->name),
                    [this](const tir::ArrayNode& a, const PrimExpr& n) { return workspace(a, n, true); });
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      const StagePlan& from = planning_.of(*TW_TRY(schedule().stage(e.inputs[i]->op)));
      const auto k = static_cast<size_t>(e.inputs[i]->index);
      flatten.place(e.input_arrays[i], {from.buffers[k], from.strides[k], tir::make_int(0)});
    }
    for (size_t i = 0; i < e.output_arrays.size(); ++i)
      flatten.place(e.output_arrays[i], {p.buffers[i], p.strides[i], tir::make_int(0)});
    const size_t first = out_.kernels.size();
    TW_TRY_STATUS(add_statements(e.body, flatten, planning_.name(), planning_.argument_buffers(), &out_));
    if (!e.is_script) return Ok{};
    return schedule_script(planning_, s, flatten,
                           {out_.kernels.begin() + static_cast<std::ptrdiff_t>(first), out_.kernels.end()});
  }

  void emit_kernel(const Stage& s) {
    tir::PrimFunc kernel;
    kernel.name = kernel_name(planning_.name(), out_);
    kernel.body = loops(s, 0, s.op()->scan ? Part::kUpdate : Part::kOuter);
    out_.kernels.push_back(std::move(kernel));
  }

  Planning& planning_;
  Lowered out_;
  std::optional<Diagnostic> problem_;
};

}  // namespace

Result<Lowered> lower(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::string& name,
                      const std::vector<PrimExpr>& scalars) {
  Planning planning(schedule, arguments, scalars, name);
  TW_TRY_STATUS(planning.run());
  return Emission(planning).run();
}

namespace {
// A plan's 64-bit expression in the dtype of a script's variables, over those.
PrimExpr in_script(const PrimExpr& e, const tir::Substitution& names, DataType type) {
  if (const auto known = names.find(e.get()); known != names.end()) return tir::cast(type, known->second);
  if (const auto constant = tir::as_const_int(e)) return tir::make_int(*constant, e->dtype.is_bool() ? e->dtype : type);
  auto part = [&](const PrimExpr& child) { return in_script(child, names, type); };
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    return tir::binary(e->kind, part(n.a), part(n.b));
  }
  if (const auto* n = tir::as<tir::SelectNode>(e))
    return tir::select(part(n->condition), part(n->on_true), part(n->on_false));
  return tir::cast(type, e);
}
}  // namespace

Result<std::vector<Bound>> bounds_of(const Schedule& schedule) {
  std::vector<Tensor> arguments;
  for (const auto& s : schedule.stages())
    if (s->op()->is_placeholder()) arguments.push_back(output(s->op(), 0));
  const std::vector<PrimExpr> none;
  Planning planning(schedule, arguments, none, "bounds");
  TW_TRY_STATUS(planning.run());
  tir::Substitution names;  // the plan's variables are its own
  for (const auto& [size, value] : planning.sizes()) names[value.get()] = size;
  for (const auto& s : schedule.stages())
    for (const auto& [leaf, var] : planning.of(*s).loop) names[var.get()] = leaf->var;
  std::vector<Bound> out;
  for (const auto& s : schedule.stages()) {
    const StagePlan& p = planning.of(*s);
    std::vector<IterVar> variables = p.body->axis;
    variables.insert(variables.end(), p.body->reduce_axis.begin(), p.body->reduce_axis.end());
    if (p.body->scan) variables = {p.body->scan->axis};
    if (p.body->external)
      for (const ScriptLoop& loop : p.body->external->loops) variables.push_back(loop.axis);
    if (s->single_loop()) variables.push_back(s->single_loop());
    for (const Relation& r : s->relations()) {
      if (r.fuses) {
        variables.push_back(r.parent);
        continue;
      }
      variables.push_back(r.outer), variables.push_back(r.inner);
    }
    for (const IterVar& v : variables) {
      const auto extent = p.extent.find(v.get());
      if (extent == p.extent.end()) continue;
      const auto first = p.base.find(v.get());
      const DataType type = v->var->dtype;
      const PrimExpr zero = tir::make_int(0, type);
      out.push_back({v, first == p.base.end() ? zero : in_script(first->second, names, type),
                     in_script(extent->second, names, type)});
    }
  }
  return out;
}

}  // namespace tilewright::te
