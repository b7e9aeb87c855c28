// SPDX-License-Identifier: Apache-2.0
#include "te/schedule.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::te {

Stage::Stage(Operation op) : op_(std::move(op)), leaves_(op_->axis) {
  leaves_.insert(leaves_.end(), op_->reduce_axis.begin(), op_->reduce_axis.end());
  if (op_->scan) leaves_ = {op_->scan->axis};
  if (!op_->external) return;
  for (const ScriptLoop& loop : op_->external->loops) {
    leaves_.push_back(loop.axis);
    nests_[loop.axis.get()] = loop.nest;
    if (loop.kind != tir::ForKind::kSerial) kinds_[loop.axis.get()] = loop.kind;
  }
}

int Stage::nest_of(const IterVar& loop) const {
  auto found = nests_.find(loop.get());
  return found == nests_.end() ? -1 : found->second;
}

Status Stage::check_nest(const IterVar& a, const IterVar& b) const {
  if (nest_of(a) == nest_of(b)) return Ok{};
  return refused(format("'{}' and '{}' are not of one nest of the script's loops", a->name(), b->name()),
                 "only loops directly inside each other, whose bounds do not depend on each other, change places");
}

Diagnostic Stage::refused(std::string what, std::string hint) const {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), format("stage {}", op_->name), std::move(hint));
}

Result<size_t> Stage::place_of(const IterVar& leaf) const {
  auto found = std::find(leaves_.begin(), leaves_.end(), leaf);
  if (found != leaves_.end()) return static_cast<size_t>(found - leaves_.begin());
  return refused(format("'{}' is none of the stage's loops", leaf->name()),
                 "a loop that was split or fused is no loop any more: use what the step returned");
}

tir::ForKind Stage::kind_of(const IterVar& leaf) const {
  auto found = kinds_.find(leaf.get());
  return found == kinds_.end() ? tir::ForKind::kSerial : found->second;
}

namespace {
IterVar derived(const IterVar& from, const char* suffix, IterKind kind) {
  const PrimExpr unknown = tir::make_int(0, from->var->dtype);  // determined by bound inference
  return make_node<IterVarNode>(tir::make_var(from->name() + suffix, from->var->dtype), unknown, unknown, kind);
}
}  // namespace

Result<Stage::Pair> Stage::split(const IterVar& parent, int64_t factor, int64_t parts) {
  const size_t at = TW_TRY(place_of(parent));
  if ((factor > 0) == (parts > 0) || factor < 0 || parts < 0)
    return refused(format("'{}' cannot be split by factor {} and nparts {}", parent->name(), factor, parts),
                   "give one of them, 1 or more");
  Pair made{derived(parent, ".outer", parent->kind), derived(parent, ".inner", parent->kind)};
  relations_.push_back({false, parent, made.outer, made.inner, factor, parts});
  if (const int nest = nest_of(parent); nest >= 0) {  // a script's loop keeps what the script says of it
    nests_[made.outer.get()] = nests_[made.inner.get()] = nest;
    const tir::ForKind kind = kind_of(parent);
    if (kind != tir::ForKind::kSerial) kinds_[(kind == tir::ForKind::kParallel ? made.outer : made.inner).get()] = kind;
  }
  kinds_.erase(parent.get());
  leaves_[at] = made.outer;
  leaves_.insert(leaves_.begin() + static_cast<std::ptrdiff_t>(at) + 1, made.inner);
  return made;
}

Result<IterVar> Stage::fuse(const IterVar& outer, const IterVar& inner) {
  const size_t at = TW_TRY(place_of(outer));
  const size_t below = TW_TRY(place_of(inner));
  if (below != at + 1)
    return refused(format("'{}' is not directly in '{}'", inner->name(), outer->name()), "reorder them first");
  if (outer->kind != inner->kind)
    return refused(format("'{}' and '{}' are an axis of the data and one of a reduction", outer->name(), inner->name()),
                   "fuse axes of one kind");
  TW_TRY_STATUS(check_nest(outer, inner));
  IterVar fused =
      make_node<IterVarNode>(tir::make_var(format("{}.{}.fused", outer->name(), inner->name()), outer->var->dtype),
                             tir::make_int(0, outer->var->dtype), tir::make_int(0, outer->var->dtype), outer->kind);
  relations_.push_back({true, fused, outer, inner});
  if (const int nest = nest_of(outer); nest >= 0) nests_[fused.get()] = nest;
  kinds_.erase(outer.get()), kinds_.erase(inner.get());
  leaves_[at] = fused;
  leaves_.erase(leaves_.begin() + static_cast<std::ptrdiff_t>(below));
  return fused;
}

Result<IterVar> Stage::singleton() {
  if (!leaves_.empty()) return refused("it has loops", "fuse those");
  if (op_->external) return refused("it has no loop of its own", "write one in the script");
  single_ = make_node<IterVarNode>(tir::make_var("singleton"), tir::make_int(0), tir::make_int(1), IterKind::kData);
  leaves_ = {single_};
  return single_;
}

Result<Stage::Tile> Stage::tile(const IterVar& x, const IterVar& y, int64_t x_factor, int64_t y_factor) {
  const std::vector<IterVar> axes = {x, y};  // copies: x and y may be elements of leaves(), which changes
  const Pair in_x = TW_TRY(split(axes[0], x_factor));
  const Pair in_y = TW_TRY(split(axes[1], y_factor));
  TW_TRY_STATUS(reorder({in_x.outer, in_y.outer, in_x.inner, in_y.inner}));
  return Tile{in_x.outer, in_y.outer, in_x.inner, in_y.inner};
}

Status Stage::reorder(const std::vector<IterVar>& order) {
  std::vector<size_t> places;
  for (const IterVar& leaf : order) places.push_back(TW_TRY(place_of(leaf)));
  std::sort(places.begin(), places.end());
  if (auto twice = std::adjacent_find(places.begin(), places.end()); twice != places.end())
    return refused(format("'{}' is given twice", leaves_[*twice]->name()), "name each loop once");
  for (const IterVar& leaf : order) TW_TRY_STATUS(check_nest(order.front(), leaf));
  for (size_t i = 0; i < order.size(); ++i) leaves_[places[i]] = order[i];
  return Ok{};
}

Status Stage::annotate(const IterVar& leaf, tir::ForKind kind) {
  TW_TRY_STATUS(place_of(leaf));
  if (leaf->kind == IterKind::kReduce && kind != tir::ForKind::kUnrolled)
    return refused(format("'{}' is an axis of a reduction: its iterations change one element", leaf->name()),
                   "vectorize or parallelize an axis of the data, or unroll this one");
  kinds_[leaf.get()] = kind;
  return Ok{};
}

Status Stage::bind(const IterVar& leaf, std::string thread) {
  TW_TRY_STATUS(place_of(leaf));
  threads_[leaf.get()] = std::move(thread);
  return Ok{};
}

Status Stage::tensorize(const IterVar& leaf, std::shared_ptr<const TensorIntrinsic> by) {
  TW_TRY_STATUS(place_of(leaf));
  if (!op_->is_compute()) return refused("it has no elements that are computed one by one", "tensorize a te.compute");
  tensorized_at_ = leaf, tensorized_by_ = std::move(by);
  return Ok{};
}

Status Stage::set_store_predicate(PrimExpr condition) {
  if (!op_->is_compute()) return refused("it stores no elements one by one", "give the condition to a te.compute");
  if (condition->dtype != kBool)
    return refused(format("the condition is of {}", condition->dtype.str()), "give a comparison");
  std::vector<const tir::ExprNode*> known;
  for (const std::vector<IterVar>& list : {leaves_, op_->axis, op_->reduce_axis})
    for (const IterVar& v : list) known.push_back(v->var.get());
  for (const Relation& r : relations_)
    for (const IterVar& v : {r.parent, r.outer, r.inner}) known.push_back(v->var.get());
  std::string other;
  tir::for_each_expr(condition, [&](const PrimExpr& e) {
    const bool foreign =
        e->kind == tir::ExprKind::kVar && std::find(known.begin(), known.end(), e.get()) == known.end();
    if (foreign || e->kind == tir::ExprKind::kRead) other = tir::to_text(e);
  });
  if (!other.empty())
    return refused(format("the condition uses '{}', which is none of its loops", other),
                   "write it over the stage's own loops; processors have no threads of other kinds");
  store_predicate_ = std::move(condition);
  return Ok{};
}

const std::string* Stage::bound_to(const IterVar& leaf) const {
  auto found = threads_.find(leaf.get());
  return found == threads_.end() ? nullptr : &found->second;
}

Status Stage::check_loop(const IterVar& leaf) const {
  TW_TRY_STATUS(place_of(leaf));
  return Ok{};
}

Status Stage::add_pragma(const IterVar& leaf, Pragma pragma) {
  TW_TRY_STATUS(place_of(leaf));
  pragmas_[leaf.get()].push_back(std::move(pragma));
  return Ok{};
}

const std::vector<Stage::Pragma>& Stage::pragmas(const IterVar& leaf) const {
  static const std::vector<Pragma> none;
  auto found = pragmas_.find(leaf.get());
  return found == pragmas_.end() ? none : found->second;
}

Status Stage::compute_at(const Stage& consumer, const IterVar& leaf) {
  if (op_->is_placeholder()) return refused("an input is not computed", "cache_read copies it");
  if (is_output_) return refused("an output is computed by itself", "compute_at is for what others read");
  if (!op_->is_compute()) return refused("it is computed whole", "compute_at is for a te.compute");
  for (const Stage* s = &consumer; s; s = s->attached_)
    if (s == this) return refused(format("'{}' is computed inside this stage", consumer.op_->name));
  TW_TRY_STATUS(consumer.place_of(leaf));
  if (consumer.op_->external)
    return refused(format("'{}' is a script, whose loops read whole tensors", consumer.op_->name), "compute_root it");
  attached_ = &consumer, attached_at_ = leaf, inline_ = false;
  return Ok{};
}

Status Stage::compute_inline() {
  if (op_->is_placeholder()) return refused("an input is not computed");
  if (is_output_) return refused("an output has to be stored", "inline what it reads");
  if (!op_->is_compute()) return refused("it has no expression that could be written into another");
  if (op_->combiner) return refused("a reduction cannot be written into another expression", "use compute_at");
  inline_ = true, attached_ = nullptr, attached_at_ = {};
  return Ok{};
}

Status Stage::compute_root() {
  if (op_->is_placeholder()) return refused("an input is not computed");
  inline_ = false, attached_ = nullptr, attached_at_ = {};
  return Ok{};
}

Schedule::Schedule(const std::vector<Operation>& outputs) {
  std::function<void(const Operation&)> visit = [&](const Operation& op) {
    if (by_op_.count(op.get())) return;
    by_op_[op.get()] = nullptr;
    for (const Tensor& input : op->inputs()) visit(input->op);
    stages_.push_back(std::make_unique<Stage>(op));
    by_op_[op.get()] = stages_.back().get();
  };
  for (const Operation& op : outputs) visit(op);
  for (const Operation& op : outputs) by_op_[op.get()]->is_output_ = true;
}

Result<Stage*> Schedule::stage(const Operation& op) const {
  auto found = by_op_.find(op.get());
  if (found != by_op_.end()) return found->second;
  return Diagnostic(ErrorCode::kInvalidArgument, "the operation is no part of this schedule", op->name,
                    "make the schedule of what needs it");
}

void Schedule::replace(Stage& stage, Operation with) {
  std::map<const OperationNode*, Operation> replaced;
  auto put = [&](Stage& s, Operation op) {
    replaced[s.op_.get()] = op;
    kept_.push_back(s.op_);
    by_op_[op.get()] = &s;
    s.op_ = std::move(op);
  };
  put(stage, std::move(with));
  for (const auto& s : stages_) {
    if (s.get() == &stage) continue;
    Operation op = rewrite_reads(s->op_, [&](const tir::ReadNode& read, const PrimExpr& e) -> PrimExpr {
      const auto* tensor = dynamic_cast<const TensorNode*>(read.source.get());
      auto found = tensor ? replaced.find(tensor->op.get()) : replaced.end();
      if (found == replaced.end()) return e;
      return tir::read(e->dtype, output(found->second, tensor->index), found->second->name, read.indices);
    });
    if (!(op == s->op_)) put(*s, std::move(op));
  }
}

Result<Tensor> Schedule::cache_read(const Tensor& tensor, const std::vector<Operation>& readers, std::string suffix) {
  Stage* from = TW_TRY(stage(tensor->op));
  const Tensor source = output(from->op_, tensor->index);
  std::vector<Stage*> reading;
  for (const Operation& reader : readers) reading.push_back(TW_TRY(stage(reader)));
  if (readers.empty())
    for (const auto& s : stages_) reading.push_back(s.get());
  auto reads = [&](const Stage& s) {
    const auto inputs = s.op_->inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return same_tensor(*t, *source); });
  };
  for (Stage* s : reading)
    if (!readers.empty() && !reads(*s))
      return from->refused(format("'{}' does not read it", s->op_->name), "name the operations that read the tensor");
  const Operation cache = TW_TRY(compute(
      source->shape(),
      [&](const std::vector<PrimExpr>& axis) {
        return std::vector<PrimExpr>{tir::read(source->dtype(), source, source->op->name, axis)};
      },
      format("{}.{}", source->op->name, suffix)));
  const Tensor copy = output(cache);
  for (Stage* s : reading) {
    if (!reads(*s)) continue;
    replace(*s, rewrite_reads(s->op_, [&](const tir::ReadNode& read, const PrimExpr& e) -> PrimExpr {
      const auto* t = dynamic_cast<const TensorNode*>(read.source.get());
      return t && same_tensor(*t, *source) ? tir::read(e->dtype, copy, cache->name, read.indices) : e;
    }));
  }
  auto place = std::find_if(stages_.begin(), stages_.end(), [&](const auto& s) { return s.get() == from; });
  by_op_[cache.get()] = stages_.insert(place + 1, std::make_unique<Stage>(cache))->get();
  return copy;
}

Result<Tensor> Schedule::cache_write(const Tensor& tensor, std::string suffix) {
  Stage* of = TW_TRY(stage(tensor->op));
  const Operation original = of->op_;
  if (original->is_placeholder()) return of->refused("an input is not computed", "cache_read copies it");
  if (!original->is_compute()) return of->refused("it is computed whole", "cache_write is for a te.compute");
  if (!of->relations_.empty())
    return of->refused("its loops were changed already", "call cache_write before split and fuse");
  // The computation keeps its axes; the copy, whose stage scripts refer to, has the data axes.
  auto node = std::make_unique<OperationNode>();
  tir::Substitution renamed;
  for (const IterVar& a : original->axis) {
    IterVar fresh = make_node<IterVarNode>(tir::make_var(a->name() + ".c", a->var->dtype), a->min, a->extent, a->kind);
    renamed[a->var.get()] = fresh->var;
    node->axis.push_back(std::move(fresh));
  }
  node->name = format("{}.{}", original->name, suffix);
  node->shape = original->shape, node->dtypes = original->dtypes;
  node->reduce_axis = original->reduce_axis, node->combiner = original->combiner;
  for (const PrimExpr& v : original->values) node->values.push_back(tir::substitute(v, renamed));
  if (original->condition) node->condition = tir::substitute(original->condition, renamed);
  const Operation cache(node.release());
  auto copy = std::make_unique<OperationNode>();
  copy->name = original->name, copy->shape = original->shape, copy->dtypes = original->dtypes;
  copy->axis = original->axis;
  std::vector<PrimExpr> at;
  for (const IterVar& a : original->axis) at.push_back(a->var);
  for (size_t i = 0; i < original->dtypes.size(); ++i)
    copy->values.push_back(tir::read(original->dtypes[i], output(cache, static_cast<int>(i)), cache->name, at));
  std::erase_if(of->leaves_, [](const IterVar& leaf) { return leaf->kind == IterKind::kReduce; });
  replace(*of, Operation(copy.release()));
  auto place = std::find_if(stages_.begin(), stages_.end(), [&](const auto& s) { return s.get() == of; });
  by_op_[cache.get()] = stages_.insert(place, std::make_unique<Stage>(cache))->get();
  return output(cache, tensor->index);
}

}  // namespace tilewright::te
