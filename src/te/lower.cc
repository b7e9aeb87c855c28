// SPDX-License-Identifier: Apache-2.0
#include "te/lower.h"

#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "te/region.h"
#include "te/widen.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::Stmt;

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxStackBytes = 16 << 10;  // of one tensor; larger ones are workspaces
constexpr int64_t kMaxStackTotal = 64 << 10;  // of a kernel, below what code generation takes

struct Loop {
  PrimExpr var, extent;
};

// What is known of a stage's loops and memory.
struct StagePlan {
  Operation body;  // inlined expressions written in
  bool alive = false;
  std::vector<Loop> path;                                 // the loops around the stage, outermost first
  std::vector<PrimExpr> lo;                               // of each dimension: the first index that is computed
  std::vector<PrimExpr> strides;                          // of the buffers
  std::map<const IterVarNode*, PrimExpr> extent, offset;  // offset: from the start, over the loops' variables
  std::map<const IterVarNode*, PrimExpr> base;            // where an operation's axis starts
  std::map<const IterVarNode*, PrimExpr> loop;            // the variable of a leaf
  std::vector<PrimExpr> guards;
  std::vector<tir::Buffer> buffers;  // by output

  PrimExpr value(const IterVar& axis) const { return base.at(axis.get()) + offset.at(axis.get()); }
};

class Lowering {
 public:
  Lowering(const Schedule& schedule, const std::vector<Tensor>& arguments, std::string name)
      : schedule_(schedule), arguments_(arguments), name_(std::move(name)) {}

  Result<Lowered> run() {
    inline_stages();
    TW_TRY_STATUS(find_arguments());
    TW_TRY_STATUS(find_sizes());
    for (auto s = schedule_.stages().rbegin(); s != schedule_.stages().rend(); ++s)
      if (!(*s)->op()->is_placeholder() && !(*s)->is_inline()) TW_TRY_STATUS(plan(**s));
    for (const auto& s : schedule_.stages()) {
      const StagePlan& p = plans_[s.get()];
      if (p.alive && !s->attached_to()) emit_kernel(*s);
    }
    finish_parameters();
    return std::move(out_);
  }

 private:
  Diagnostic wrong(const std::string& where, std::string what, std::string hint = {}) const {
    return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
  }
  Stage* stage_of(const tir::ReadNode& read) const {
    const auto* tensor = dynamic_cast<const TensorNode*>(read.source.get());
    return tensor ? schedule_.stage(tensor->op).value() : nullptr;
  }
  static int output_of(const tir::ReadNode& read) { return static_cast<const TensorNode&>(*read.source).index; }

  // Producers come first, so that what is written into an expression has nothing left to be inlined.
  void inline_stages() {
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

  Status find_arguments() {
    for (const Tensor& t : arguments_) {
      const Stage* s = TW_TRY(schedule_.stage(t->op));
      int64_t elements = 1;
      bool known = true;
      for (const PrimExpr& d : t->shape()) {
        const auto c = tir::as_const_int(d);
        known = known && c && !__builtin_mul_overflow(elements, *c, &elements);
      }
      tir::Buffer buffer = tir::make_buffer(s->op()->name, t->dtype(), known ? elements : tir::kUnknownSize);
      if (!given_.emplace(std::pair(s, t->index), buffer).second)
        return wrong(s->op()->name, "the tensor is given twice as an argument", "name each argument once");
      argument_buffers_.push_back(buffer);
    }
    for (const auto& s : schedule_.stages())
      for (size_t i = 0; i < s->op()->dtypes.size(); ++i)
        if ((s->is_output() || s->op()->is_placeholder()) && !given_.count(std::pair(s.get(), static_cast<int>(i))))
          return wrong(s->op()->name, s->is_output() ? "the output is no argument" : "the input is no argument",
                       "give all inputs and outputs as arguments");
    return Ok{};
  }

  // Variables that nothing binds are sizes of the call.
  Status find_sizes() {
    std::unordered_set<const tir::ExprNode*> bound;
    for (const auto& [_, p] : plans_) {
      for (const auto* axes : {&p.body->axis, &p.body->reduce_axis})
        for (const IterVar& a : *axes) bound.insert(a->var.get());
    }
    std::optional<Diagnostic> problem;
    auto visit = [&](const PrimExpr& e) {
      if (e->kind != tir::ExprKind::kVar || !bound.insert(e.get()).second) return;
      const std::string& name = static_cast<const tir::VarNode&>(*e).name;
      if (!e->dtype.is_int() || e->dtype.bits < 32)
        problem = wrong(name_, format("the variable '{}' of {} is no size", name, e->dtype.str()),
                        "use int32 or int64 variables, and a tensor of one element for other values");
      out_.sizes.push_back(e);
      out_.size_values.push_back(tir::make_var(name));
      scopes_.add(out_.size_values.back(), {0, kMaxSize});
      sizes_.emplace_back(e, out_.size_values.back());
    };
    auto visit_all = [&](const PrimExpr& e) { tir::for_each_expr(e, visit); };
    for (const Tensor& t : arguments_)
      for (const PrimExpr& d : t->shape()) visit_all(d);
    for (const auto& s : schedule_.stages()) {
      const Operation& op = plans_[s.get()].body;
      for (const PrimExpr& d : op->shape) visit_all(d);
      for (const PrimExpr& v : op->values) visit_all(v);
      for (const IterVar& a : op->reduce_axis) visit_all(a->min), visit_all(a->extent);
      if (op->condition) visit_all(op->condition);
    }
    if (problem) return std::move(*problem);
    return Ok{};
  }

  Widening widening(Widening::OnRead on_read) const {
    Widening w(std::move(on_read));
    for (const auto& [var, value] : sizes_) w.bind(var, value);
    return w;
  }
  PrimExpr size(const PrimExpr& e) const {
    auto none = [](const tir::ReadNode& r, std::vector<PrimExpr> i) {
      return tir::read(r.dtype, r.source, r.name, std::move(i));
    };
    return scopes_.simplify(widening(none).index(e));
  }

  // ---- regions ----

  Status plan(const Stage& s) {
    StagePlan& p = plans_[&s];
    const std::vector<const Stage*> readers = readers_of(s);
    bool is_argument = false;
    for (size_t i = 0; i < s.op()->dtypes.size(); ++i) is_argument |= given_.count({&s, static_cast<int>(i)}) != 0;
    if (readers.empty() && !is_argument) return Ok{};
    p.alive = true;
    std::vector<PrimExpr> dims, extents, allocated;
    for (const PrimExpr& d : p.body->shape) dims.push_back(size(d));
    p.lo.assign(dims.size(), tir::make_int(0));
    extents = allocated = dims;
    if (s.attached_to()) {
      if (is_argument)
        return wrong(s.op()->name, "the tensor is an argument and is computed inside another stage's loop",
                     "compute_root it");
      TW_TRY_STATUS(find_path(s, readers));
      find_region(s, readers, dims, &extents, &allocated);
    }
    set_loops(s, dims, extents);
    PrimExpr stride = tir::make_int(1);
    p.strides.assign(dims.size(), stride);
    for (size_t d = dims.size(); d-- > 0;) {
      p.strides[d] = stride;
      stride = scopes_.simplify(stride * allocated[d]);
    }
    for (size_t i = 0; i < s.op()->dtypes.size(); ++i) p.buffers.push_back(memory(s, static_cast<int>(i), stride));
    return Ok{};
  }

  std::vector<const Stage*> readers_of(const Stage& s) {
    std::vector<const Stage*> out;
    for (const auto& k : schedule_.stages()) {
      if (!plans_[k.get()].alive) continue;
      for (const Tensor& t : plans_[k.get()].body->inputs())
        if (t->op == s.op() && (out.empty() || out.back() != k.get())) out.push_back(k.get());
    }
    return out;
  }

  // All readers are inside the loop that the stage is computed in.
  Status find_path(const Stage& s, const std::vector<const Stage*>& readers) {
    const Stage& home = *s.attached_to();
    const auto& leaves = home.leaves();
    const auto at = std::find(leaves.begin(), leaves.end(), s.attached_at());
    if (at == leaves.end())
      return wrong(format("stage {}", s.op()->name),
                   format("the loop '{}' of '{}', which it is computed in, was split or fused since",
                          s.attached_at()->name(), home.op()->name),
                   "call compute_at after the loops are made");
    if (!plans_[&home].alive)
      return wrong(format("stage {}", s.op()->name),
                   format("'{}' is not computed in loops of its own", home.op()->name),
                   "compute_at a stage that is not inlined");
    for (const Stage* k : readers) {
      const Stage* below = k;
      while (below != &home && below->attached_to() && below->attached_to() != &home) below = below->attached_to();
      const bool inside = below == &home || (below->attached_to() == &home &&
                                             std::find(leaves.begin(), leaves.end(), below->attached_at()) >= at);
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

  // While the loops that are not on the path run.
  Running running_beside(const StagePlan& k, const Stage& reader, const std::vector<Loop>& path, bool* known) {
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

  static bool uses_any(const PrimExpr& e, const std::vector<Loop>& loops) {
    bool found = false;
    tir::for_each_expr(e, [&](const PrimExpr& part) {
      for (const Loop& l : loops) found = found || part == l.var;
    });
    return found;
  }

  // What one iteration of the path's loops reads of each dimension.
  void find_region(const Stage& s, const std::vector<const Stage*>& readers, const std::vector<PrimExpr>& dims,
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
          // An axis whose loops all run is itself run through: its own ends are nearer than those of uneven splits.
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
      if (anywhere[d] || !region[d]) continue;  // all of it
      const PrimExpr extent = scopes_.simplify(region[d]->hi - region[d]->lo + 1);
      auto most = region_of(extent, all, scopes_);
      if (!most || uses_any(most->hi, p.path)) continue;
      p.lo[d] = region[d]->lo;
      (*extents)[d] = extent, (*allocated)[d] = most->hi;
    }
  }

  // ---- loops ----

  void set_loops(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& extents) {
    StagePlan& p = plans_[&s];
    for (size_t d = 0; d < dims.size(); ++d) {
      p.base[p.body->axis[d].get()] = p.lo[d];
      p.extent[p.body->axis[d].get()] = extents[d];
    }
    for (const IterVar& a : p.body->reduce_axis) {
      p.base[a.get()] = size(a->min);
      p.extent[a.get()] = size(a->extent);
    }
    std::vector<IterVar> uneven;
    for (const Relation& r : s.relations()) split_extents(r, p, &uneven);
    for (const IterVar& leaf : s.leaves()) {
      const PrimExpr var = tir::make_var(leaf->name());
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
    auto guard = [&](const PrimExpr& condition) {
      const PrimExpr simple = scopes_.simplify(condition);
      if (tir::as_const_int(simple) != 1) p.guards.push_back(simple);
    };
    for (const IterVar& v : uneven) guard(tir::lt(p.offset[v.get()], p.extent[v.get()]));
    if (!s.attached_to()) return;
    for (size_t d = 0; d < dims.size(); ++d) {
      const PrimExpr value = p.value(p.body->axis[d]);
      guard(tir::ge(value, tir::make_int(0)));
      guard(tir::lt(value, dims[d]));
    }
  }

  void split_extents(const Relation& r, StagePlan& p, std::vector<IterVar>* uneven) {
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

  // ---- memory ----

  tir::Buffer memory(const Stage& s, int output, const PrimExpr& elements) {
    if (auto found = given_.find({&s, output}); found != given_.end()) return found->second;
    const DataType dtype = s.op()->dtypes[static_cast<size_t>(output)];
    const auto known = tir::as_const_int(elements);
    const std::string name = output == 0 ? s.op()->name : format("{}.{}", s.op()->name, output);
    if (s.attached_to() && known && *known <= kMaxStackBytes) {
      const auto bytes = static_cast<int64_t>(dtype.bytes_for(static_cast<uint64_t>(*known)));
      if (bytes <= kMaxStackBytes && stack_bytes_ + bytes <= kMaxStackTotal) {
        stack_bytes_ += bytes;
        return tir::make_buffer(name, dtype, std::max<int64_t>(*known, 1), tir::Scope::kStack);
      }
    }
    tir::Buffer buffer = tir::make_buffer(name, dtype, known ? *known : tir::kUnknownSize);
    out_.workspaces.push_back({buffer, elements, s.attached_to() != nullptr});
    return buffer;
  }

  PrimExpr place(const StagePlan& p, const std::vector<PrimExpr>& indices) const {
    PrimExpr sum = tir::make_int(0);
    for (size_t d = 0; d < indices.size(); ++d) sum = sum + (indices[d] - p.lo[d]) * p.strides[d];
    return sum;
  }

  // A placeholder's elements lie in an argument.
  const StagePlan& plan_of_source(const Stage* s) {
    StagePlan& p = plans_[s];
    if (p.buffers.empty()) {
      PrimExpr stride = tir::make_int(1);
      const size_t n = s->op()->shape.size();
      p.lo.assign(n, tir::make_int(0)), p.strides.assign(n, stride);
      for (size_t d = n; d-- > 0;) {
        p.strides[d] = stride;
        stride = stride * size(s->op()->shape[d]);
      }
      p.buffers.push_back(given_.at({s, 0}));
    }
    return p;
  }

  // ---- statements ----

  enum class Part { kOuter, kInit, kUpdate };

  Stmt innermost(const Stage& s, Part part) {
    const StagePlan& p = plans_[&s];
    Widening w = widening([this](const tir::ReadNode& read, std::vector<PrimExpr> indices) {
      const StagePlan& from = plan_of_source(stage_of(read));
      return tir::load(from.buffers[static_cast<size_t>(output_of(read))], place(from, indices));
    });
    std::vector<PrimExpr> at;
    for (const IterVar& a : p.body->axis) {
      at.push_back(p.value(a));
      w.bind(a->var, at.back());
    }
    const PrimExpr index = place(p, at);
    if (part == Part::kInit) {
      std::vector<Stmt> stores;
      for (size_t i = 0; i < p.buffers.size(); ++i)
        stores.push_back(tir::store(p.buffers[i], index, w.value(p.body->combiner->identity[i])));
      return tir::seq(std::move(stores));
    }
    for (const IterVar& a : p.body->reduce_axis) w.bind(a->var, p.value(a));
    std::vector<PrimExpr> values;
    for (const PrimExpr& v : p.body->values) values.push_back(w.value(v));
    if (part == Part::kUpdate) {
      tir::Substitution sides;
      for (size_t i = 0; i < values.size(); ++i) {
        sides[p.body->combiner->lhs[i].get()] = tir::load(p.buffers[i], index);
        sides[p.body->combiner->rhs[i].get()] = values[i];
      }
      for (size_t i = 0; i < values.size(); ++i) values[i] = tir::substitute(p.body->combiner->result[i], sides);
    }
    Stmt body = stored(p, index, values);
    return part == Part::kUpdate && p.body->condition ? tir::make_if(w.value(p.body->condition), body) : body;
  }

  // Of several values all are computed before the first is stored: each may read what others had.
  static Stmt stored(const StagePlan& p, const PrimExpr& index, const std::vector<PrimExpr>& values) {
    if (values.size() == 1) return tir::store(p.buffers[0], index, values[0]);
    std::vector<PrimExpr> held;
    std::vector<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      held.push_back(tir::make_var(format("value{}", i), values[i]->dtype));
      stores.push_back(tir::store(p.buffers[i], index, held[i]));
    }
    Stmt out = tir::seq(std::move(stores));
    for (size_t i = values.size(); i-- > 0;) out = tir::let_stmt(held[i], values[i], std::move(out));
    return out;
  }

  Stmt guarded_innermost(const Stage& s, Part part) {
    const StagePlan& p = plans_[&s];
    std::vector<Loop> reduces;
    for (const IterVar& leaf : s.leaves())
      if (leaf->kind == IterKind::kReduce) reduces.push_back({p.loop.at(leaf.get()), {}});
    PrimExpr condition;
    for (const PrimExpr& g : p.guards)
      if (part != Part::kInit || !uses_any(g, reduces)) condition = condition ? tir::logical_and(condition, g) : g;
    Stmt body = innermost(s, part);
    return condition ? tir::make_if(condition, std::move(body)) : body;
  }

  std::vector<const Stage*> attached_at(const Stage& s, const IterVar& leaf) const {
    std::vector<const Stage*> out;
    for (const auto& t : schedule_.stages())
      if (t->attached_to() == &s && t->attached_at() == leaf && plans_.at(t.get()).alive) out.push_back(t.get());
    return out;
  }

  Stmt loops(const Stage& s, size_t from, Part part) {
    const auto& leaves = s.leaves();
    if (from == leaves.size()) return guarded_innermost(s, part);
    const IterVar& leaf = leaves[from];
    const bool reduces = leaf->kind == IterKind::kReduce;
    if (reduces && part == Part::kOuter) return tir::seq({loops(s, from, Part::kInit), loops(s, from, Part::kUpdate)});
    if (reduces && part == Part::kInit) return loops(s, from + 1, part);
    Stmt body = loops(s, from + 1, part);
    if (part != Part::kInit) body = with_attached(attached_at(s, leaf), std::move(body));
    const StagePlan& p = plans_[&s];
    return tir::make_for(p.loop.at(leaf.get()), tir::make_int(0), p.extent.at(leaf.get()), std::move(body),
                         kind_of(s, from));
  }

  // Iterations of a loop that hold other stages share those stages' memory: they are not done side by side, but by
  // threads, which have memory of their own.
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
      for (const tir::Buffer& b : plans_[t].buffers)
        if (b->scope == tir::Scope::kStack) out = tir::allocate(b, std::move(out));
    return out;
  }

  void emit_kernel(const Stage& s) {
    tir::PrimFunc kernel;
    kernel.name = out_.kernels.empty() ? name_ : format("{}_{}", name_, out_.kernels.size());
    kernel.body = loops(s, 0, Part::kOuter);
    out_.kernels.push_back(std::move(kernel));
  }

  // All kernels take the same buffers; what none of them writes is read-only.
  void finish_parameters() {
    std::unordered_set<const tir::BufferNode*> written;
    for (const tir::PrimFunc& k : out_.kernels)
      tir::for_each_stmt(k.body, [&](const Stmt& st) {
        if (auto* store = tir::as<tir::StoreNode>(st)) written.insert(store->buffer.get());
      });
    std::map<const tir::BufferNode*, tir::Buffer> read_only;
    std::vector<tir::Buffer> params;
    tir::Buffer sizes;
    if (!out_.sizes.empty()) {
      sizes = tir::make_buffer("sizes", kInt64, static_cast<int64_t>(out_.sizes.size()), tir::Scope::kGlobal, 0, true);
      params.push_back(sizes);
    }
    for (const tir::Buffer& b : argument_buffers_) {
      if (!written.count(b.get()))
        read_only[b.get()] = tir::make_buffer(b->name, b->dtype, b->size, b->scope, b->alignment, true);
      params.push_back(written.count(b.get()) ? b : read_only[b.get()]);
    }
    for (const Lowered::Workspace& w : out_.workspaces) params.push_back(w.buffer);
    for (tir::PrimFunc& k : out_.kernels) {
      k.body = tir::mutate(k.body, [&](PrimExpr e) -> PrimExpr {
        auto* load = tir::as<tir::LoadNode>(e);
        auto found = load ? read_only.find(load->buffer.get()) : read_only.end();
        return found == read_only.end() ? e : tir::load(found->second, load->index, load->mask);
      });
      for (size_t i = out_.sizes.size(); i-- > 0;) {
        const PrimExpr given = tir::load(sizes, tir::make_int(static_cast<int64_t>(i)));
        k.body = tir::let_stmt(out_.size_values[i],
                               tir::min(tir::max(given, tir::make_int(0)), tir::make_int(kMaxSize)), k.body);
      }
      k.params = params;
    }
  }

  const Schedule& schedule_;
  const std::vector<Tensor>& arguments_;
  const std::string name_;
  Lowered out_;
  Scopes scopes_;
  std::map<const Stage*, StagePlan> plans_;
  std::map<std::pair<const Stage*, int>, tir::Buffer> given_;
  std::vector<tir::Buffer> argument_buffers_;
  std::vector<std::pair<PrimExpr, PrimExpr>> sizes_;
  std::vector<PrimExpr> roots_;  // keeps the variables that regions are keyed by
  int64_t stack_bytes_ = 0;
};

}  // namespace

Result<Lowered> lower(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::string& name) {
  return Lowering(schedule, arguments, name).run();
}

}  // namespace tilewright::te
