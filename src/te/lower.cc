// SPDX-License-Identifier: Apache-2.0
#include "te/lower.h"

#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "te/stage_plan.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::Stmt;

// The statements of planned stages.
class Emission {
 public:
  explicit Emission(Planning& planning) : planning_(planning), out_(planning.take()) {}

  Lowered run() {
    for (const auto& s : schedule().stages())
      if (planning_.of(*s).alive && !s->attached_to()) emit_kernel(*s);
    finish_parameters();
    return std::move(out_);
  }

 private:
  const Schedule& schedule() const { return planning_.schedule(); }

  enum class Part { kOuter, kInit, kUpdate };

  Stmt innermost(const Stage& s, Part part) {
    const StagePlan& p = planning_.of(s);
    Widening w = planning_.widening([this](const tir::ReadNode& read, const std::vector<PrimExpr>& indices) {
      const StagePlan& from = planning_.of(*planning_.stage_of(read));
      return tir::load(from.buffers[static_cast<size_t>(Planning::output_of(read))], planning_.place(from, indices));
    });
    std::vector<PrimExpr> at;
    for (const IterVar& a : p.body->axis) {
      at.push_back(p.value(a));
      w.bind(a->var, at.back());
    }
    const PrimExpr index = planning_.place(p, at);
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
    const StagePlan& p = planning_.of(s);
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
    for (const auto& t : schedule().stages())
      if (t->attached_to() == &s && t->attached_at() == leaf && planning_.of(*t).alive) out.push_back(t.get());
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
    const StagePlan& p = planning_.of(s);
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
      for (const tir::Buffer& b : planning_.of(*t).buffers)
        if (b->scope == tir::Scope::kStack) out = tir::allocate(b, std::move(out));
    return out;
  }

  void emit_kernel(const Stage& s) {
    tir::PrimFunc kernel;
    kernel.name = out_.kernels.empty() ? planning_.name() : format("{}_{}", planning_.name(), out_.kernels.size());
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
    for (const tir::Buffer& b : planning_.argument_buffers()) {
      if (!written.count(b.get()))
        read_only[b.get()] = tir::make_buffer(b->name, b->dtype, b->size, b->scope, b->alignment, true);
      params.push_back(written.count(b.get()) ? b : read_only[b.get()]);
    }
    for (const Lowered::Workspace& w : out_.workspaces) params.push_back(w.buffer);
    for (tir::PrimFunc& k : out_.kernels) {
      k.body = tir::mutate(k.body, [&](const PrimExpr& e) -> PrimExpr {
        auto* load = tir::as<tir::LoadNode>(e);
        auto found = load ? read_only.find(load->buffer.get()) : read_only.end();
        return found == read_only.end() ? e : tir::load(found->second, load->index, load->mask);
      });
      for (size_t i = out_.sizes.size(); i-- > 0;) {
        const PrimExpr given = tir::load(sizes, tir::make_int(static_cast<int64_t>(i)));
        k.body =
            tir::let_stmt(out_.size_values[i],
                          tir::min(tir::max(given, tir::make_int(0)), tir::make_int(plan::kMaxFunctionSize)), k.body);
      }
      k.params = params;
    }
  }

  const Planning& planning_;
  Lowered out_;
};

}  // namespace

Result<Lowered> lower(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::string& name,
                      const std::vector<PrimExpr>& scalars) {
  Planning planning(schedule, arguments, scalars, name);
  TW_TRY_STATUS(planning.run());
  return Emission(planning).run();
}

}  // namespace tilewright::te
