// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>

#include "relay/passes/fusion/compiler_marks.h"
#include "relay/passes/fusion/compiler_regions.h"

namespace tilewright::relay {
namespace {

bool is_mark(const Expr& e) { return is_call_to(e, kCompilerBegin) || is_call_to(e, kCompilerEnd); }

class DisjointSets {
 public:
  explicit DisjointSets(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t into, size_t other) { parent_[find(other)] = find(into); }

 private:
  std::vector<size_t> parent_;
};

// The scope in which each expression is evaluated: branches, let bodies and match clauses are scopes; an expression
// used in several belongs to the innermost one that contains them all.
class Scopes {
 public:
  explicit Scopes(const std::vector<Expr>& order) {
    parent_.push_back(0), depth_.push_back(0);
    if (!order.empty()) scope_[order.back().get()] = 0;
    for (size_t i = order.size(); i-- > 0;) {
      const Expr& e = order[i];
      const size_t here = of(e);
      const std::vector<Expr> kids = children(e);
      for (size_t k = 0; k < kids.size(); ++k) place(kids[k], opens_scope(e, k) ? open(here) : here);
    }
  }
  size_t of(const Expr& e) const {
    auto found = scope_.find(e.get());
    return found == scope_.end() ? 0 : found->second;
  }

 private:
  static bool opens_scope(const Expr& e, size_t kid) {
    if (e->kind == ExprKind::kIf) return kid > 0;
    if (e->kind == ExprKind::kLet) return kid + 1 == children(e).size();
    return e->kind == ExprKind::kMatch && kid > 0;
  }
  size_t open(size_t parent) {
    parent_.push_back(parent), depth_.push_back(depth_[parent] + 1);
    return parent_.size() - 1;
  }
  void place(const Expr& e, size_t scope) {
    auto [it, fresh] = scope_.try_emplace(e.get(), scope);
    size_t other = it->second;
    while (!fresh && other != scope) {
      size_t& deeper = depth_[other] >= depth_[scope] ? other : scope;
      deeper = parent_[deeper];
    }
    it->second = scope;
  }
  std::unordered_map<const ExprNode*, size_t> scope_;
  std::vector<size_t> parent_, depth_;
};

// Decides which regions of one body are merged.
class RegionMerger {
 public:
  explicit RegionMerger(const Expr& body)
      : regions_(body), scopes_(regions_.order()), sets_(regions_.count()), members_(regions_.count()) {
    std::vector<size_t> scope(regions_.count());
    for (const Expr& e : regions_.order()) {
      const std::ptrdiff_t region = regions_.of(e);
      if (region >= 0 && !is_mark(e)) scope[static_cast<size_t>(region)] = scopes_.of(e);
      for (const Expr& kid : CompilerRegions::operands(e)) users_[kid.get()].push_back(e);
    }
    for (const Expr& e : regions_.order()) {
      const std::ptrdiff_t region = regions_.of(e);
      if (region < 0) continue;
      members_[static_cast<size_t>(region)].push_back(e);
      if (!is_call_to(e, kCompilerBegin)) continue;
      const Expr& source = as<CallNode>(e)->args[0];
      const std::ptrdiff_t producer = is_call_to(source, kCompilerEnd) ? regions_.of(source) : -1;
      if (producer < 0 || producer == region) continue;
      const auto from = static_cast<size_t>(producer), to = static_cast<size_t>(region);
      if (regions_.compiler(from) != regions_.compiler(to) || scope[from] != scope[to]) continue;
      if (sets_.find(from) != sets_.find(to)) candidates_.emplace_back(from, to);
    }
  }

  // The body without the marks inside merged regions.
  Expr run(const Expr& body) {
    for (const auto& [from, to] : candidates_)
      if (sets_.find(from) != sets_.find(to) && !detour(sets_.find(from), sets_.find(to))) {
        const size_t kept = sets_.find(from), gone = sets_.find(to);
        sets_.join(kept, gone);
        members_[kept].insert(members_[kept].end(), members_[gone].begin(), members_[gone].end());
        members_[gone].clear();
      }
    return rewrite_graph(body, [&](const Expr& original, const Expr& e) -> Expr {
      if (!is_call_to(original, kCompilerBegin)) return e;
      const Expr& source = as<CallNode>(original)->args[0];
      if (!is_call_to(source, kCompilerEnd) || regions_.of(original) < 0 || regions_.of(source) < 0) return e;
      if (sets_.find(static_cast<size_t>(regions_.of(original))) !=
          sets_.find(static_cast<size_t>(regions_.of(source))))
        return e;
      return as<CallNode>(as<CallNode>(e)->args[0])->args[0];
    });
  }

 private:
  std::ptrdiff_t set_of(const Expr& e) {
    const std::ptrdiff_t region = regions_.of(e);
    return region < 0 ? -1 : static_cast<std::ptrdiff_t>(sets_.find(static_cast<size_t>(region)));
  }

  // Whether a path leads from `from` to `to` through a node in neither. Entering any other region reaches all of its
  // outputs, since a region is computed as a whole.
  bool detour(size_t from, size_t to) {
    std::vector<Expr> waiting;
    std::set<const ExprNode*> seen;
    std::set<size_t> entered;
    auto step = [&](const Expr& e) {
      for (const Expr& user : users_[e.get()])
        if (seen.insert(user.get()).second) waiting.push_back(user);
    };
    for (const Expr& e : members_[from])
      for (const Expr& user : users_[e.get()])
        if (const auto set = set_of(user); set != static_cast<std::ptrdiff_t>(from) &&
                                           set != static_cast<std::ptrdiff_t>(to) && seen.insert(user.get()).second)
          waiting.push_back(user);
    while (!waiting.empty()) {
      const Expr e = waiting.back();
      waiting.pop_back();
      const std::ptrdiff_t set = set_of(e);
      if (set == static_cast<std::ptrdiff_t>(to)) return true;
      if (set == static_cast<std::ptrdiff_t>(from)) continue;
      if (set >= 0 && entered.insert(static_cast<size_t>(set)).second)
        for (const Expr& member : members_[static_cast<size_t>(set)]) step(member);
      step(e);
    }
    return false;
  }

  CompilerRegions regions_;
  Scopes scopes_;
  DisjointSets sets_;
  std::vector<std::vector<Expr>> members_;
  std::unordered_map<const ExprNode*, std::vector<Expr>> users_;
  std::vector<std::pair<size_t, size_t>> candidates_;  // adjacent regions, consumers in order
};

}  // namespace

Result<Module> merge_compiler_regions(const Module& module, PassContext&) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    const Expr body = RegionMerger(node->body).run(node->body);
    if (body != node->body) function = with_body(*node, body);
  }
  return out;
}

}  // namespace tilewright::relay
