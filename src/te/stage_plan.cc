// SPDX-License-Identifier: Apache-2.0
#include "te/stage_plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "te/kernels.h"
#include "te/tensorize.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

constexpr int64_t kMaxStackTotal = 64 << 10;  // of a kernel, below what code generation takes

}  // namespace

bool uses_any(const PrimExpr& e, const std::vector<Loop>& loops) {
  bool found = false;
  tir::for_each_expr(e, [&](const PrimExpr& part) {
    for (const Loop& l : loops) found = found || part == l.var;
  });
  return found;
}

Status Planning::run() {
  TW_TRY_STATUS(check_whole_tensors());
  inline_stages();
  TW_TRY_STATUS(find_scans());
  TW_TRY_STATUS(find_arguments());
  TW_TRY_STATUS(find_sizes());
  describe_arguments();
  for (const auto& s : schedule_.stages())
    if (s->op()->is_placeholder() && !scans_.count(s.get())) plan_placeholder(*s);
  for (auto s = schedule_.stages().rbegin(); s != schedule_.stages().rend(); ++s)
    if (!(*s)->op()->is_placeholder() && !(*s)->is_inline()) TW_TRY_STATUS(plan(**s));
  for (const auto& s : schedule_.stages()) {
    out_.imports.insert(out_.imports.end(), s->imports().begin(), s->imports().end());
    if (s->tensorized_by() && plans_.at(s.get()).alive) TW_TRY_STATUS(match_intrinsic(*this, *s, &plans_[s.get()]));
  }
  return Ok{};
}

Diagnostic Planning::wrong(const std::string& where, std::string what, std::string hint) const {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
}
Stage* Planning::stage_of(const tir::ReadNode& read) const {
  const auto* tensor = dynamic_cast<const TensorNode*>(read.source.get());
  return tensor ? schedule_.stage(tensor->op).value() : nullptr;
}
// Producers first: an inlined expression must not contain anything still to be inlined.
void Planning::inline_stages() {
  for (const auto& s : schedule_.stages())
    plans_[s.get()].body = rewrite_reads(s->op(), [&](const tir::ReadNode& read, const PrimExpr& e) -> PrimExpr {
      const Stage* from = stage_of(read);
      if (!from->is_inline()) return e;
      const Operation& op = plans_[from].body;
      tir::Substitution at;
      for (size_t d = 0; d < op->axis.size(); ++d)
        at[op->axis[d]->var.get()] = tir::cast(op->axis[d]->var->dtype, read.indices[d]);
      return tir::substitute(op->values[static_cast<size_t>(output_of(read))], at);
    });
}

Status Planning::find_arguments() {
  for (const Tensor& t : arguments_) {
    int64_t elements = 1;
    bool known = true;
    for (const PrimExpr& d : t->shape()) {
      const auto c = tir::as_const_int(d);
      known = known && c && !__builtin_mul_overflow(elements, *c, &elements);
    }
    tir::Buffer buffer = tir::make_buffer(t->op->name, t->dtype(), known ? elements : tir::kUnknownSize);
    argument_buffers_.push_back(buffer);
    if (t->op->is_placeholder() && !schedule_.stage(t->op).ok()) continue;  // an unused input
    const Stage* s = TW_TRY(schedule_.stage(t->op));
    if (!given_.emplace(std::pair(s, t->index), buffer).second)
      return wrong(s->op()->name, "the tensor is given twice as an argument", "name each argument once");
  }
  // An output that is no argument is computed in a workspace, as in the classic stack.
  for (const auto& s : schedule_.stages())
    for (size_t i = 0; i < s->op()->dtypes.size(); ++i)
      if (s->op()->is_placeholder() && !scans_.count(s.get()) && !given_.count(std::pair(s.get(), static_cast<int>(i))))
        return wrong(s->op()->name, "the input is no argument", "give all inputs as arguments");
  return Ok{};
}

// Unbound variables are sizes given by the call.
Status Planning::find_sizes() {
  std::unordered_set<const tir::ExprNode*> bound;
  for (const auto& [_, p] : plans_) {
    for (const auto* axes : {&p.body->axis, &p.body->reduce_axis})
      for (const IterVar& a : *axes) bound.insert(a->var.get());
  }
  std::optional<Diagnostic> problem;
  auto visit = [&](const PrimExpr& e) {
    if (e->kind != tir::ExprKind::kVar || !bound.insert(e.get()).second) return;
    if (auto no_scalar = check_scalar(e)) problem = (*std::move(no_scalar)).at(name_);
    out_.sizes.push_back(e);
    out_.size_values.push_back(scalar_value(e));
    if (e->dtype.is_int()) scopes_.add(out_.size_values.back(), {0, plan::kMaxFunctionSize});
    sizes_.emplace_back(e, out_.size_values.back());
  };
  auto visit_all = [&](const PrimExpr& e) { tir::for_each_expr(e, visit); };
  for (const PrimExpr& scalar : scalars_) {
    if (scalar->kind != tir::ExprKind::kVar)
      return wrong(name_, "an argument is an expression", "give tensors and variables as arguments");
    visit(scalar);
  }
  for (const Tensor& t : arguments_)
    for (const PrimExpr& d : t->shape()) visit_all(d);
  for (const auto& s : schedule_.stages()) {
    const Operation& op = plans_[s.get()].body;
    for (const PrimExpr& d : op->shape) visit_all(d);
    for (const auto& shape : op->shapes)
      for (const PrimExpr& d : shape) visit_all(d);
    for (const PrimExpr& v : op->values) visit_all(v);
    for (const IterVar& a : op->reduce_axis) visit_all(a->min), visit_all(a->extent);
    if (op->condition) visit_all(op->condition);
    if (op->external) {
      for (const PrimExpr& v : bound_variables(op->external->body)) bound.insert(v.get());
      tir::for_each_expr(op->external->body, visit);
    }
  }
  if (problem) return std::move(*problem);
  return Ok{};
}

void Planning::describe_arguments() {
  for (const Tensor& t : arguments_) {
    Lowered::Argument argument{t->op->name, t->dtype(), {}};
    for (const PrimExpr& d : t->shape()) argument.shape.push_back(size(d));
    out_.arguments.push_back(std::move(argument));
  }
}

Widening Planning::widening(Widening::OnRead on_read) const {
  Widening w(std::move(on_read));
  for (const auto& [var, value] : sizes_) w.bind(var, value);
  return w;
}
PrimExpr Planning::size(const PrimExpr& e) const {
  auto none = [](const tir::ReadNode& r, std::vector<PrimExpr> i) {
    return tir::read(r.dtype, r.source, r.name, std::move(i));
  };
  return scopes_.simplify(widening(none).index(e));
}

// ---- regions ----

Status Planning::plan(const Stage& s) {
  StagePlan& p = plans_[&s];
  const std::vector<const Stage*> readers = readers_of(s);
  bool is_argument = false;
  for (size_t i = 0; i < s.op()->dtypes.size(); ++i) is_argument |= given_.count({&s, static_cast<int>(i)}) != 0;
  if (readers.empty() && !is_argument && !s.is_output()) return Ok{};
  p.alive = true;
  std::vector<PrimExpr> dims, extents, allocated;
  for (const PrimExpr& d : p.body->shape) dims.push_back(size(d));
  p.lo.assign(dims.size(), tir::make_int(0));
  extents = allocated = dims;
  const auto in = scans_.find(&s);
  const bool of_state = in != scans_.end() && in->second.role != InScan::Role::kBetween;
  if (home_of(s)) {
    TW_TRY_STATUS(find_path(s, readers));
    if (of_state) {  // an update: the elements of one time step
      const Stage& scan = *in->second.scan;
      p.lo[0] = plans_[&scan].value(scan.op()->scan->axis);
      extents[0] = tir::make_int(1);
    } else {
      find_region(s, readers, dims, &extents, &allocated);
      if (is_argument && !covers(s, dims, extents))
        return wrong(
            s.op()->name,
            "the tensor is an argument, and the stage that it is computed inside does not show that each of its "
            "elements is computed, by one thread",
            "compute_root it");
    }
  }
  if (s.op()->is_compute() || s.op()->scan) set_loops(s, dims, extents);
  if (s.op()->external) set_script_loops(s);
  p.origin = of_state || is_argument ? std::vector<PrimExpr>(dims.size(), tir::make_int(0)) : p.lo;
  plan_memory(s, dims, is_argument ? dims : allocated);
  return Ok{};
}

// Whether the loops around a stage compute its whole tensor: along each dimension all of it at once, or one piece after
// the other by a loop of its own. Threads may only divide the loops that pieces belong to.
bool Planning::covers(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& extents) const {
  const StagePlan& p = plans_.at(&s);
  auto is_zero = [&](const PrimExpr& e) { return tir::as_const_int(scopes_.simplify(e)) == int64_t{0}; };
  std::set<const tir::ExprNode*> used;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (is_zero(p.lo[d]) && is_zero(dims[d] - extents[d])) continue;
    const auto by = std::find_if(p.path.begin(), p.path.end(), [&](const Loop& l) {
      return used.count(l.var.get()) == 0 && is_zero(p.lo[d] - l.var * extents[d]) &&
             is_zero(dims[d] - l.extent * extents[d]);
    });
    if (by == p.path.end()) return false;
    used.insert(by->var.get());
  }
  for (const Stage* home = &s; home_of(*home); home = home_of(*home)) {
    const Stage& around = *home_of(*home);
    for (const IterVar& leaf : around.leaves()) {
      const bool parallel = around.kind_of(leaf) == tir::ForKind::kParallel;
      if (parallel && used.count(plans_.at(&around).loop.at(leaf.get()).get()) == 0) return false;
      if (leaf == home_loop_of(*home)) break;
    }
  }
  return true;
}

void Planning::plan_memory(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& allocated) {
  StagePlan& p = plans_[&s];
  const auto in = scans_.find(&s);
  for (size_t i = 0; i < s.op()->dtypes.size(); ++i) {
    if (in != scans_.end() && in->second.role != InScan::Role::kBetween) {
      const StagePlan& scan = plans_.at(in->second.scan);
      const auto state = static_cast<size_t>(in->second.state.at(static_cast<int>(i)));
      p.buffers.push_back(scan.buffers[state]), p.strides.push_back(scan.strides[state]);
      continue;
    }
    std::vector<PrimExpr> sizes = allocated;
    if (!s.op()->shapes.empty()) {
      sizes.clear();
      for (const PrimExpr& d : s.op()->shapes[i]) sizes.push_back(size(d));
    }
    PrimExpr stride = tir::make_int(1);
    std::vector<PrimExpr>& strides = p.strides.emplace_back(sizes.size(), stride);
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = stride;
      stride = scopes_.simplify(stride * sizes[d]);
    }
    p.buffers.push_back(memory(s, static_cast<int>(i), stride));
  }
  if (!s.op()->scan) return;
  for (const auto& [stage, other] : scans_)  // contains the states' placeholders
    if (other.scan == &s && other.role == InScan::Role::kState) {
      StagePlan& state = plans_[stage];
      const auto i = static_cast<size_t>(other.state.begin()->second);
      state.lo.assign(dims.size(), tir::make_int(0)), state.origin = state.lo;
      state.buffers = {p.buffers[i]}, state.strides = {p.strides[i]};
    }
}

std::vector<const Stage*> Planning::readers_of(const Stage& s) const {
  std::vector<const Stage*> out;
  for (const auto& k : schedule_.stages()) {
    if (!plans_.at(k.get()).alive) continue;
    for (const Tensor& t : plans_.at(k.get()).body->inputs())
      if (t->op == s.op() && (out.empty() || out.back() != k.get())) out.push_back(k.get());
  }
  return out;
}

// Finds the loops around the stage; all readers must be inside the loop at which it is computed.
Status Planning::find_path(const Stage& s, const std::vector<const Stage*>& readers) {
  const Stage& home = *home_of(s);
  const auto& leaves = home.leaves();
  const auto at = std::find(leaves.begin(), leaves.end(), home_loop_of(s));
  if (at == leaves.end())
    return wrong(format("stage {}", s.op()->name),
                 format("the loop '{}' of '{}', which it is computed in, was split or fused since",
                        home_loop_of(s)->name(), home.op()->name),
                 "call compute_at after the loops are made");
  if (!plans_[&home].alive)
    return wrong(format("stage {}", s.op()->name), format("'{}' is not computed in loops of its own", home.op()->name),
                 "compute_at a stage that is not inlined");
  for (const Stage* k : readers) {
    const Stage* below = k;
    while (below != &home && home_of(*below) && home_of(*below) != &home) below = home_of(*below);
    const bool inside = below == &home || (home_of(*below) == &home &&
                                           std::find(leaves.begin(), leaves.end(), home_loop_of(*below)) >= at);
    if (!inside)
      return wrong(format("stage {}", s.op()->name),
                   format("it is computed inside '{}', but '{}' outside of that loop reads it, too", home.op()->name,
                          k->op()->name),
                   "compute_root it, or compute that stage inside the same loop");
  }
  StagePlan& p = plans_[&s];
  const StagePlan& outer = plans_[&home];
  p.path = outer.path;
  for (auto leaf = leaves.begin(); leaf <= at; ++leaf)
    p.path.push_back({outer.loop.at(leaf->get()), outer.extent.at(leaf->get())});
  return Ok{};
}

// The variables that vary for a fixed iteration of the path's loops.
Running Planning::running_beside(const StagePlan& k, const Stage& reader, const std::vector<Loop>& path,
                                 bool* known) const {
  Running running;
  std::vector<Loop> loops = k.path;
  for (const IterVar& leaf : reader.leaves()) loops.push_back({k.loop.at(leaf.get()), k.extent.at(leaf.get())});
  for (const Loop& l : loops) {
    if (std::any_of(path.begin(), path.end(), [&](const Loop& o) { return o.var == l.var; })) continue;
    auto last = region_of(l.extent - 1, running, scopes_);
    *known = *known && last.has_value();
    running[l.var.get()] = {tir::make_int(0), last ? last->hi : l.extent - 1};
  }
  return running;
}

// The region of each dimension that one iteration of the path's loops reads.
void Planning::find_region(const Stage& s, const std::vector<const Stage*>& readers, const std::vector<PrimExpr>& dims,
                           std::vector<PrimExpr>* extents, std::vector<PrimExpr>* allocated) {
  StagePlan& p = plans_[&s];
  std::vector<std::optional<Region>> region(dims.size());
  std::vector<bool> anywhere(dims.size(), false);
  for (const Stage* reader : readers) {
    const StagePlan& k = plans_[reader];
    bool known = true;
    Running running = running_beside(k, *reader, p.path, &known);
    Widening w = widening([](const tir::ReadNode& r, std::vector<PrimExpr> i) {
      return tir::read(r.dtype, r.source, r.name, std::move(i));
    });
    Running axes;
    for (const auto* list : {&k.body->axis, &k.body->reduce_axis})
      for (const IterVar& a : *list) {
        const PrimExpr root = tir::make_var(a->name()), value = scopes_.simplify(k.value(a));
        const PrimExpr first = k.base.at(a.get()), last = first + k.extent.at(a.get()) - 1;
        // An axis all of whose loops vary is covered completely: its own bounds are tighter than those of uneven
        // splits.
        const bool whole = !uses_any(k.offset.at(a.get()), p.path);
        auto lower = region_of(whole ? first : value, running, scopes_);
        auto upper = whole ? region_of(last, running, scopes_) : lower;
        known = known && lower && upper;
        if (lower && upper) axes[root.get()] = {lower->lo, upper->hi};
        roots_.push_back(root);
        w.bind(a->var, root);
      }
    auto visit = [&](const PrimExpr& e) {
      if (e->kind != tir::ExprKind::kRead) return;
      const auto& read = static_cast<const tir::ReadNode&>(*e);
      if (stage_of(read) != &s) return;
      for (size_t d = 0; d < dims.size(); ++d) {
        auto r = known ? region_of(w.index(read.indices[d]), axes, scopes_) : std::nullopt;
        if (!r)
          anywhere[d] = true;
        else
          region[d] = region[d] ? hull(*region[d], *r, scopes_) : *r;
      }
    };
    for (const PrimExpr& v : k.body->values) tir::for_each_expr(v, visit);
    if (k.body->condition) tir::for_each_expr(k.body->condition, visit);
  }
  Running all;
  for (const Loop& l : p.path) {
    auto last = region_of(l.extent - 1, all, scopes_);
    all[l.var.get()] = {tir::make_int(0), last ? last->hi : l.extent - 1};
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (anywhere[d] || !region[d]) continue;  // the whole dimension
    const PrimExpr extent = scopes_.simplify(region[d]->hi - region[d]->lo + 1);
    auto most = region_of(extent, all, scopes_);
    if (!most || uses_any(most->hi, p.path)) continue;
    p.lo[d] = region[d]->lo;
    (*extents)[d] = extent, (*allocated)[d] = most->hi;
  }
}

// ---- loops ----

void Planning::set_loops(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& extents) {
  StagePlan& p = plans_[&s];
  for (size_t d = 0; d < p.body->axis.size(); ++d) {
    p.base[p.body->axis[d].get()] = p.lo[d];
    p.extent[p.body->axis[d].get()] = extents[d];
  }
  std::vector<IterVar> reduces = p.body->reduce_axis;
  if (p.body->scan) reduces = {p.body->scan->axis};
  for (const IterVar& a : reduces) {
    p.base[a.get()] = size(a->min);
    p.extent[a.get()] = size(a->extent);
  }
  if (s.single_loop()) p.extent[s.single_loop().get()] = tir::make_int(1);
  std::vector<IterVar> uneven;
  relate(s, p, &uneven);
  auto guard = [&](const PrimExpr& condition) {
    const PrimExpr simple = scopes_.simplify(condition);
    if (tir::as_const_int(simple) != 1) p.guards.push_back(simple);
  };
  for (const IterVar& v : uneven) guard(tir::lt(p.offset[v.get()], p.extent[v.get()]));
  if (!home_of(s) || s.op()->scan) return;
  for (size_t d = 0; d < dims.size(); ++d) {
    const PrimExpr value = p.value(p.body->axis[d]);
    guard(tir::ge(value, tir::make_int(0)));
    guard(tir::lt(value, dims[d]));
  }
}

// For bounds_of; te/script_loops.h plans a script's loops when their statements are lowered.
void Planning::set_script_loops(const Stage& s) {
  StagePlan& p = plans_[&s];
  for (const ScriptLoop& loop : s.op()->external->loops) {
    p.base[loop.axis.get()] = size(loop.axis->min);
    p.extent[loop.axis.get()] = size(loop.axis->extent);
  }
  std::vector<IterVar> uneven;
  for (const Relation& r : s.relations()) split_extents(r, p, &uneven);
}

void Planning::relate(const Stage& s, StagePlan& p, std::vector<IterVar>* uneven) {
  for (const Relation& r : s.relations()) split_extents(r, p, uneven);
  for (const IterVar& leaf : s.leaves()) {
    const std::string* thread = s.bound_to(leaf);
    if (thread) out_.bound.push_back(*thread);
    const PrimExpr var = tir::make_var(thread ? *thread : leaf->name());
    const auto extent = tir::as_const_int(p.extent[leaf.get()]);
    scopes_.add(var, {0, extent ? std::max<int64_t>(*extent - 1, 0) : int64_t{1} << 40});
    p.loop[leaf.get()] = p.offset[leaf.get()] = var;
  }
  for (auto r = s.relations().rbegin(); r != s.relations().rend(); ++r) {
    const PrimExpr inner = p.extent[r->inner.get()];
    if (r->fuses) {
      p.offset[r->outer.get()] = tir::floordiv(p.offset[r->parent.get()], inner);
      p.offset[r->inner.get()] = tir::floormod(p.offset[r->parent.get()], inner);
    } else {
      p.offset[r->parent.get()] = p.offset[r->outer.get()] * inner + p.offset[r->inner.get()];
    }
  }
}

void Planning::split_extents(const Relation& r, StagePlan& p, std::vector<IterVar>* uneven) {
  auto& extent = p.extent;
  if (r.fuses) {
    extent[r.parent.get()] = scopes_.simplify(extent[r.outer.get()] * extent[r.inner.get()]);
    return;
  }
  const PrimExpr whole = extent[r.parent.get()];
  const auto known = tir::as_const_int(whole);
  const int64_t wanted = r.factor > 0 ? r.factor : r.parts;
  auto ceiling = [&](int64_t by) { return scopes_.simplify(tir::floordiv(whole + (by - 1), by)); };
  PrimExpr outer, inner;
  if (r.factor > 0) {
    const bool short_loop = known && *known <= wanted;
    inner = short_loop ? whole : tir::make_int(wanted);
    outer = short_loop ? tir::make_int(1) : ceiling(wanted);
  } else {
    const bool short_loop = known && *known <= wanted;
    outer = short_loop ? whole : tir::make_int(wanted);
    inner = short_loop ? tir::make_int(1) : ceiling(wanted);
  }
  extent[r.outer.get()] = outer, extent[r.inner.get()] = inner;
  if (!scopes_.proves(tir::eq(outer * inner, whole))) uneven->push_back(r.parent);
}

tir::Buffer Planning::memory(const Stage& s, int output, const PrimExpr& elements) {
  if (auto found = given_.find({&s, output}); found != given_.end()) return found->second;
  const DataType dtype = s.op()->dtypes[static_cast<size_t>(output)];
  const auto known = tir::as_const_int(elements);
  const std::string name = output == 0 ? s.op()->name : format("{}.{}", s.op()->name, output);
  if (home_of(s) && known && *known <= kMaxStackBytes) {
    const auto bytes = static_cast<int64_t>(dtype.bytes_for(static_cast<uint64_t>(*known)));
    if (bytes <= kMaxStackBytes && stack_bytes_ + bytes <= kMaxStackTotal) {
      stack_bytes_ += bytes;
      return tir::make_buffer(name, dtype, std::max<int64_t>(*known, 1), tir::Scope::kStack);
    }
  }
  tir::Buffer buffer = tir::make_buffer(name, dtype, known ? *known : tir::kUnknownSize);
  out_.workspaces.push_back({buffer, elements, home_of(s) != nullptr});
  return buffer;
}

PrimExpr Planning::place(const StagePlan& p, int output, const std::vector<PrimExpr>& indices) const {
  PrimExpr sum = tir::make_int(0);
  const std::vector<PrimExpr>& strides = p.strides[static_cast<size_t>(output)];
  for (size_t d = 0; d < indices.size(); ++d) sum = sum + scopes_.simplify(indices[d] - p.origin[d]) * strides[d];
  return sum;
}

// Its elements are in an argument's memory.
void Planning::plan_placeholder(const Stage& s) {
  StagePlan& p = plans_[&s];
  PrimExpr stride = tir::make_int(1);
  const size_t n = s.op()->shape.size();
  p.lo.assign(n, tir::make_int(0)), p.origin = p.lo;
  p.strides.assign(1, std::vector<PrimExpr>(n, stride));
  for (size_t d = n; d-- > 0;) {
    p.strides[0][d] = stride;
    stride = stride * size(s.op()->shape[d]);
  }
  p.buffers.push_back(given_.at({&s, 0}));
}

}  // namespace tilewright::te
