// SPDX-License-Identifier: Apache-2.0
// The graph that bound_sizes builds, operator by operator: bound_sizes.cc walks both modules, bounded_operators.cc has
// the rules.
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
  explicit BoundedGraph(const std::vector<FreeSizeRange>& sizes);
  Result<BoundedModule> run(const Module& largest, const Module& smaller, const std::vector<FreeDim>& inputs);

 private:
  // A free size, or one that windows derive from it: (base + add) / divide.
  struct Size {
    FreeSizeRange range;
    size_t base = 0;
    int64_t add = 0, divide = 1;
    Expr actual = {};  // int64 (1)
  };
  size_t derived(size_t size, int64_t add, int64_t divide);

  Result<Expr> visit(const Expr& large, const Expr& small);
  Result<Expr> constant(const ConstantNode& large, const ConstantNode& small, const Expr& e);
  Result<Expr> with_result(const Expr& original, const Expr& small, Result<Expr> made);
  int size_of_extents(int64_t large, int64_t small);  // -1: none, or ambiguous
  // the size of an axis of the larger module's expression, by comparing both modules
  int size_at(const Expr& e, size_t axis);
  Diagnostic refused(const Expr& e, const std::string& why) const;

  // Operator rules: `args` are the new operands; the result has tags.
  Result<Expr> call_rule(const OpDef& op, const Expr& e, std::vector<Expr> args);
  Result<Expr> broadcast(const Expr& e, std::vector<Expr> args);
  Result<Expr> along_axis(const Expr& e, std::vector<Expr> args, int64_t axis);
  Result<Expr> reshape(const Expr& e, std::vector<Expr> args);
  Result<Expr> transpose(const Expr& e, std::vector<Expr> args);
  Result<Expr> filled(const Expr& e, std::vector<Expr> args);
  Result<Expr> broadcast_to(const Expr& e, std::vector<Expr> args);
  Result<Expr> concatenate(const Expr& e, std::vector<Expr> args);
  Result<Expr> appended(const Expr& e, const Expr& tuple, size_t axis);
  Expr iota_along(int64_t extent, size_t trailing);
  Result<Expr> split(const Expr& e, std::vector<Expr> args);
  Result<Expr> slice(const Expr& e, std::vector<Expr> args);
  Result<Expr> take(const Expr& e, std::vector<Expr> args);
  Result<Expr> scan(const Expr& e, std::vector<Expr> args);
  Result<Expr> dense(const Expr& e, std::vector<Expr> args);
  Result<Expr> batch_matmul(const Expr& e, std::vector<Expr> args);
  Result<Expr> softmax(const Expr& e, std::vector<Expr> args);
  Result<Expr> reduce(const Expr& e, std::vector<Expr> args);
  // What a window sliding along one dimension reads.
  struct Window {
    int64_t extent = 1, stride = 1, before = 0, after = 0;
    bool rounds_up = false;
  };
  Result<Expr> windows(const Expr& e, std::vector<Expr> args, const std::vector<Window>& windows, double beyond);
  template <class Attrs>
  Result<Expr> convolution(const Expr& e, std::vector<Expr> args, const Attrs& attrs);
  template <class Attrs>
  Result<Expr> pool(const Expr& e, std::vector<Expr> args, const Attrs& attrs, bool average, bool counts_padding);
  Result<Expr> window_rule(const Expr& e, std::vector<Expr> args);
  Result<Expr> global_pool(const Expr& e, std::vector<Expr> args);
  Result<Expr> batch_norm(const Expr& e, std::vector<Expr> args);
  Expr mean_over(const Expr& x, const std::vector<size_t>& axes, bool keepdims, const Span& span);
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

  std::vector<Size> sizes_;  // free sizes first, then derived ones
  std::vector<int64_t> largest_;
  std::unordered_map<const ExprNode*, Expr> made_;   // by expression of the larger module
  std::unordered_map<const ExprNode*, Expr> small_;  // the corresponding expression of the smaller module
  std::unordered_map<const ExprNode*, std::vector<SizeTags>> tags_;  // of new expressions, for each result
  std::vector<Expr> keep_;                                           // keeps addresses from being reused
  std::set<std::pair<const ExprNode*, size_t>> zero_;                // zero beyond the size along that dimension
  std::map<std::array<int64_t, 4>, Expr> masks_;
};

}  // namespace tilewright::relay
