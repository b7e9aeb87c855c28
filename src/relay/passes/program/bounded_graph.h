// SPDX-License-Identifier: Apache-2.0
// The graph that bound_sizes makes, operator by operator: bound_sizes.cc walks both modules, bounded_operators.cc has
// the operators' rules.
#pragma once
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "relay/calls.h"
#include "relay/passes/program/bound_sizes.h"
#include "relay/passes/program/size_tags.h"

namespace tilewright::relay {

class BoundedGraph {
 public:
  explicit BoundedGraph(const std::vector<FreeSizeRange>& sizes) : sizes_(sizes) {}
  Result<BoundedModule> run(const Module& largest, const Module& smaller, const std::vector<FreeDim>& inputs);

 private:
  Result<Expr> visit(const Expr& large, const Expr& small);
  Result<Expr> constant(const ConstantNode& large, const ConstantNode& small, const Expr& e);
  Result<Expr> with_result(const Expr& original, const Expr& small, Result<Expr> made);
  int size_of_extents(int64_t large, int64_t small) const;  // -1: none, or more than one
  int size_at(const Expr& e, size_t axis) const;            // of an expression of the larger module, by both modules
  Diagnostic refused(const Expr& e, const std::string& why) const;

  // Operators: `args` are the new operands; the result has tags.
  Result<Expr> call_rule(const OpDef& op, const Expr& e, std::vector<Expr> args);
  Result<Expr> broadcast(const Expr& e, std::vector<Expr> args);
  Result<Expr> along_axis(const Expr& e, std::vector<Expr> args, int64_t axis);
  Result<Expr> reshape(const Expr& e, std::vector<Expr> args);
  Result<Expr> transpose(const Expr& e, std::vector<Expr> args);
  Result<Expr> filled(const Expr& e, std::vector<Expr> args);
  Result<Expr> broadcast_to(const Expr& e, std::vector<Expr> args);
  Result<Expr> concatenate(const Expr& e, std::vector<Expr> args);
  Result<Expr> split(const Expr& e, std::vector<Expr> args);
  Result<Expr> slice(const Expr& e, std::vector<Expr> args);
  Result<Expr> take(const Expr& e, std::vector<Expr> args);
  Result<Expr> dense(const Expr& e, std::vector<Expr> args);
  Result<Expr> batch_matmul(const Expr& e, std::vector<Expr> args);
  Result<Expr> softmax(const Expr& e, std::vector<Expr> args);
  Result<Expr> reduce(const Expr& e, std::vector<Expr> args);
  Result<Expr> first_axis(const Expr& e, std::vector<Expr> args);
  Expr with_zero_keys(const Expr& scores, size_t axis);
  Expr same_call(const Expr& e, std::vector<Expr> args, SizeTags tags);

  Expr within(const SizeTag& tag, size_t axis, size_t rank);
  Expr masked(const Expr& x, size_t axis, const Expr& fill);
  Expr zeroed(const Expr& x, size_t axis);
  Expr zeroed_before(const Expr& x, size_t axis);

  Expr with_tags(const Expr& e, SizeTags tags) {
    tags_[e.get()] = {std::move(tags)};
    keep_.push_back(e);
    return e;
  }
  const SizeTags& tags_of(const Expr& e) const { return tags_.at(e.get()).at(0); }
  static std::vector<int64_t> dims(const Expr& e);
  static std::vector<int64_t> permutation(const Expr& transpose);

  const std::vector<FreeSizeRange>& sizes_;
  std::vector<int64_t> largest_;
  std::vector<Expr> actual_;                                         // the sizes' parameters
  std::unordered_map<const ExprNode*, Expr> made_;                   // by expressions of the larger module
  std::unordered_map<const ExprNode*, Expr> small_;                  // what stands in their place in the smaller one
  std::unordered_map<const ExprNode*, std::vector<SizeTags>> tags_;  // of new expressions, by result
  std::vector<Expr> keep_;                                           // so that no address comes twice
  std::set<std::pair<const ExprNode*, size_t>> zero_;                // zero beyond the size along that dimension
  std::map<std::array<int64_t, 4>, Expr> masks_;
};

}  // namespace tilewright::relay
