// SPDX-License-Identifier: Apache-2.0
// The analysis behind FuseOps: which expressions of a function form one kernel. The rules are the classic stack's: op
// patterns on nodes and edges, a post-dominator tree, three phases of merging, union-find groups with one anchor each.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

struct FusionOptions {
  bool fuse = true;         // false: every operator is a group of its own
  int64_t max_depth = 256;  // the largest number of nodes in a group
  // In-place concatenations (written directly by their operands' kernels) join no group, and transformations between
  // plain and blocked layouts fuse with elementwise users only.
  bool in_place = true;
};

class FusionGroups {
 public:
  // Groups everything reachable from `root`; bodies of functions that are not Primitive are part of the graph.
  FusionGroups(const Expr& root, const FusionOptions& options);

  const std::vector<Expr>& nodes() const { return nodes_; }  // operands before users
  size_t index_of(const Expr& e) const { return index_.at(e.get()); }
  // The group's id: two nodes are in one group exactly when their ids are equal.
  size_t group_of(size_t node) const;
  // Whether the node is its group's result.
  bool is_root(size_t node) const { return groups_[group_of(node)].root == node; }

 private:
  struct Edge {
    size_t to;
    OpPattern pattern;
  };
  struct Vertex {
    OpPattern pattern = OpPattern::kOpaque;
    std::vector<Edge> outputs;
    bool external = false;  // used outside the dataflow graph: a function's result, a binding, a branch
  };
  struct Dominator {
    size_t parent = kNone;
    size_t depth = 1;
    OpPattern pattern = OpPattern::kOpaque;  // the most general one among the edges to the parent
  };
  struct Group {
    mutable size_t parent = kNone;
    OpPattern pattern = OpPattern::kOpaque;
    size_t root = 0;
    bool has_anchor = false;
    int64_t size = 1;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::unordered_set<const ExprNode*> turned_;  // operands of transposes
  void build_graph(const Expr& root, bool in_place);
  void link_operands(size_t node, bool in_place);
  void build_dominators();
  size_t common_ancestor(size_t a, size_t b, OpPattern* pattern) const;
  void run_phase(int phase, int64_t max_depth);
  // Calls `enter(node, is_sink)` for each node on the paths from `source` (exclusive) to `sink`; stops when it returns
  // false.
  template <class F>
  bool every_on_paths(size_t source, size_t sink, F&& enter);
  int64_t size_if_fused(size_t source, size_t sink);
  void merge_into(size_t source, size_t sink);
  void merge_groups(size_t child, size_t parent);

  std::vector<Expr> nodes_;
  std::unordered_map<const ExprNode*, size_t> index_;
  std::vector<Vertex> graph_;
  std::vector<Dominator> dominators_;
  std::vector<Group> groups_;
  std::vector<uint32_t> visited_;  // stamp of the last walk that visited the node
  uint32_t stamp_ = 0;
};

}  // namespace tilewright::relay
