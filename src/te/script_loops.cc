// SPDX-License-Identifier: Apache-2.0
#include "te/script_loops.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/format.h"
#include "tir/dependence.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;

namespace {

const std::string& name_of(const PrimExpr& var) { return static_cast<const tir::VarNode&>(*var).name; }

// Whether two iterations of the loop never access the same element, one of them writing it, whatever the iterations of
// the other loops are: each array that is written has a dimension whose index is the loop's variable in all accesses,
// up to the same constant.
bool iterations_apart(const ForNode& loop) {
  std::set<const Node*> own, written;
  std::vector<const tir::WriteNode*> writes;
  bool known = true;
  tir::for_each_stmt(loop.body, [&](const Stmt& s) {
    if (const auto* block = tir::as<tir::BlockNode>(s))
      for (const Ref<Node>& m : block->memory) own.insert(m.get());
    if (const auto* call = tir::as<tir::CallExternNode>(s)) known = known && call->args.empty();
    if (const auto* write = tir::as<tir::WriteNode>(s)) writes.push_back(write), written.insert(write->target.get());
  });
  for (const Node* array : written) {
    if (own.count(array)) continue;
    std::optional<std::vector<std::string>> common;  // by dimension: the index; empty: they differ
    auto access = [&](const std::vector<PrimExpr>& indices) {
      if (!common) common.emplace(indices.size(), "?");
      common->resize(std::min(common->size(), indices.size()));
      for (size_t d = 0; d < common->size(); ++d) {
        const auto& n = static_cast<const tir::BinaryNode&>(*indices[d]);
        const bool sum = indices[d]->kind == tir::ExprKind::kAdd || indices[d]->kind == tir::ExprKind::kSub;
        const bool moved = sum && n.a == loop.var && tir::as_const_int(n.b);
        const std::string text = indices[d] == loop.var || moved ? tir::to_text(indices[d]) : "";
        std::string& all = (*common)[d];
        all = all == "?" || all == text ? text : "";
      }
    };
    for (const tir::WriteNode* w : writes)
      if (w->target.get() == array) access(w->indices);
    tir::for_each_expr(loop.body, [&](const PrimExpr& e) {
      if (const auto* r = tir::as<tir::ReadNode>(e); r && r->source.get() == array) access(r->indices);
    });
    known = known && common && std::any_of(common->begin(), common->end(), [](const auto& t) { return !t.empty(); });
  }
  return known;
}

// A loop of a schedule in the order of the script: what it consists of, and its place, [first, last), where the
// script's loop number n of the nest takes [n, n + 1).
struct Rank {
  double first = 0, last = 0;
  std::vector<size_t> of;
};

// The kernels' loops of a script, rearranged.
class ScriptNests {
 public:
  ScriptNests(Planning& planning, const Stage& stage, Flatten& flatten)
      : planning_(planning), stage_(stage), loops_(stage.op()->external->loops) {
    for (size_t i = 0; i < loops_.size(); ++i) {
      at_[flatten.value_of(loops_[i].axis->var).get()] = i;
      plan_.extent[loops_[i].axis.get()] = tir::make_int(1);
    }
    tir::for_each_stmt(stage.op()->external->body, [&](const Stmt& s) {
      if (const auto* loop = tir::as<ForNode>(s))
        if (iterations_apart(*loop)) apart_.insert(loop->var.get());
    });
  }

  Status run(std::span<tir::PrimFunc> kernels) {
    for (const tir::PrimFunc& k : kernels)
      tir::for_each_stmt(k.body, [&](const Stmt& s) {
        if (const auto* loop = tir::as<ForNode>(s))
          if (const auto i = number_of(*loop)) plan_.extent[loops_[*i].axis.get()] = loop->extent;
      });
    planning_.relate(stage_, plan_, &uneven_);
    for (tir::PrimFunc& k : kernels) {
      root_ = k.body;
      dependence_.emplace(root_);
      k.body = visit(root_);
    }
    if (problem_) return std::move(*problem_);
    return Ok{};
  }

 private:
  std::optional<size_t> number_of(const ForNode& loop) const {
    auto found = at_.find(loop.var.get());
    return found == at_.end() ? std::nullopt : std::optional(found->second);
  }

  Stmt visit(const Stmt& s) {
    if (const auto* loop = tir::as<ForNode>(s))
      if (number_of(*loop)) return nest(*loop);
    return tir::map_children(
        s, [this](const PrimExpr& e) { return tir::substitute(e, values_); },
        [this](const Stmt& child) { return visit(child); });
  }

  // The loops of one nest, from its outermost on.
  Stmt nest(const ForNode& first) {
    std::vector<const ForNode*> chain = {&first};
    const int number = loops_[*number_of(first)].nest;
    while (const auto* inner = tir::as<ForNode>(chain.back()->body)) {
      const auto i = number_of(*inner);
      if (!i || loops_[*i].nest != number) break;
      chain.push_back(inner);
    }
    std::vector<IterVar> leaves;
    for (const IterVar& leaf : stage_.leaves())
      if (stage_.nest_of(leaf) == number) leaves.push_back(leaf);
    check(chain, leaves, number);
    std::vector<PrimExpr> starts, ends;
    for (const ForNode* loop : chain) {
      const IterVar& axis = loops_[*number_of(*loop)].axis;
      values_[loop->var.get()] = tir::substitute(loop->min, values_) + replaced(plan_.offset.at(axis.get()));
    }
    PrimExpr condition;
    for (const IterVar& v : uneven_) {
      if (stage_.nest_of(v) != number) continue;
      const PrimExpr within = replaced(tir::lt(plan_.offset.at(v.get()), plan_.extent.at(v.get())));
      if (tir::as_const_int(within) != 1) condition = condition ? tir::logical_and(condition, within) : within;
    }
    Stmt body = visit(chain.back()->body);
    if (condition) body = tir::make_if(condition, std::move(body));
    for (size_t i = leaves.size(); i-- > 0;)
      body = tir::make_for(plan_.loop.at(leaves[i].get()), tir::make_int(0), replaced(plan_.extent.at(leaves[i].get())),
                           std::move(body), stage_.kind_of(leaves[i]));
    return body;
  }

  PrimExpr replaced(const PrimExpr& e) const { return planning_.simplified(tir::substitute(e, values_)); }

  // Whether two iterations of chain[i] may access the same element, in any iterations of the `around` outermost loops.
  bool conflict(const std::vector<const ForNode*>& chain, size_t i, size_t around) {
    if (apart_.count(loops_[*number_of(*chain[i])].axis->var.get())) return false;
    std::unordered_set<const tir::ExprNode*> free;
    for (size_t k = 0; k < around; ++k) free.insert(chain[k]->var.get());
    return dependence_->carried_by(chain[i], free) != nullptr;
  }

  void check(const std::vector<const ForNode*>& chain, const std::vector<IterVar>& leaves, int number) {
    std::map<const IterVarNode*, Rank> ranks;
    auto exchange = [&](const Rank& before, const Rank& after) {
      for (const size_t x : before.of)
        for (const size_t y : after.of) {
          const size_t outer = std::min(x, y), inner = std::max(x, y);
          if (!conflict(chain, outer, 0) || (outer != inner && !conflict(chain, inner, inner))) continue;
          refuse(outer == inner
                     ? format("iterations of '{}' may access the same element and cannot change places", name(chain[x]))
                     : format("'{}' and '{}' cannot change places: iterations of both may access the same element",
                              name(chain[outer]), name(chain[inner])));
        }
    };
    for (size_t i = 0; i < chain.size(); ++i)
      ranks[loops_[*number_of(*chain[i])].axis.get()] = {static_cast<double>(i), static_cast<double>(i + 1), {i}};
    for (const Relation& r : stage_.relations()) {
      if (stage_.nest_of(r.parent) != number) continue;
      if (r.fuses) {
        const Rank &a = ranks.at(r.outer.get()), &b = ranks.at(r.inner.get());
        if (a.last > b.first) exchange(a, b);
        Rank both{std::min(a.first, b.first), std::max(a.last, b.last), a.of};
        both.of.insert(both.of.end(), b.of.begin(), b.of.end());
        ranks[r.parent.get()] = std::move(both);
        continue;
      }
      const Rank& whole = ranks.at(r.parent.get());
      const double middle = (whole.first + whole.last) / 2;
      ranks[r.outer.get()] = {whole.first, middle, whole.of};
      ranks[r.inner.get()] = {middle, whole.last, whole.of};
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Rank& here = ranks.at(leaves[i].get());
      for (size_t k = i + 1; k < leaves.size(); ++k)
        if (const Rank& later = ranks.at(leaves[k].get()); here.last > later.first) exchange(here, later);
      check_kind(chain, leaves[i], here);
    }
  }

  // What the script itself says of its loops is taken as said.
  void check_kind(const std::vector<const ForNode*>& chain, const IterVar& leaf, const Rank& rank) {
    const tir::ForKind kind = stage_.kind_of(leaf);
    if (kind != tir::ForKind::kVectorized && kind != tir::ForKind::kParallel) return;
    for (const size_t i : rank.of)
      if (loops_[*number_of(*chain[i])].kind != kind && conflict(chain, i, 0))
        refuse(format("iterations of '{}' may access the same element: it cannot be {}", name(chain[i]),
                      kind == tir::ForKind::kParallel ? "parallel" : "vectorized"));
  }

  static const std::string& name(const ForNode* loop) { return name_of(loop->var); }
  void refuse(std::string what) {
    if (!problem_)
      problem_ = Diagnostic(ErrorCode::kInvalidArgument, std::move(what), format("stage {}", stage_.op()->name),
                            "keep the order of loops that add up or read what earlier iterations write");
  }

  Planning& planning_;
  const Stage& stage_;
  const std::vector<ScriptLoop>& loops_;
  StagePlan plan_;
  std::vector<IterVar> uneven_;
  std::map<const tir::ExprNode*, size_t> at_;  // by the kernels' variables
  std::set<const tir::ExprNode*> apart_;       // by the script's variables
  tir::Substitution values_;                   // of the kernels' variables
  Stmt root_;
  std::optional<tir::Dependence> dependence_;
  std::optional<Diagnostic> problem_;
};

}  // namespace

std::vector<ScriptLoop> script_loops(const Stmt& body) {
  std::vector<ScriptLoop> out;
  int nests = 0;
  // Inner loops come after the loop around them, those of later statements before those of earlier ones.
  std::function<void(const Stmt&, const std::vector<const ForNode*>&)> visit = [&](const Stmt& s, const auto& around) {
    const auto* loop = tir::as<ForNode>(s);
    if (!loop) {
      std::vector<Stmt> parts;
      tir::for_each_child(s, [&](const Stmt& child) { parts.push_back(child); });
      for (size_t i = parts.size(); i-- > 0;) visit(parts[i], {});
      return;
    }
    const bool same = !around.empty() && std::none_of(around.begin(), around.end(), [&](const ForNode* o) {
      return tir::uses(loop->min, o->var.get()) || tir::uses(loop->extent, o->var.get());
    });
    std::vector<const ForNode*> nest = same ? around : std::vector<const ForNode*>();
    if (!same) ++nests;
    nest.push_back(loop);
    out.push_back({make_node<IterVarNode>(loop->var, loop->min, loop->extent, IterKind::kData), nests, loop->for_kind});
    visit(loop->body, nest);
  };
  visit(body, {});
  return out;
}

Status schedule_script(Planning& planning, const Stage& stage, Flatten& flatten, std::span<tir::PrimFunc> kernels) {
  return ScriptNests(planning, stage, flatten).run(kernels);
}

}  // namespace tilewright::te
