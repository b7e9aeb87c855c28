// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: ensembles of decision trees. All trees of all rows descend together, one level per step: a node is an
// index into tables of features, thresholds and children, and a leaf is its own child, so that shallow trees wait.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/format.h"
#include "frontend/onnx/converters/ml.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

enum NodeMode : uint8_t { kNodeAtMost, kNodeBelow, kNodeAtLeast, kNodeAbove, kNodeEqual, kNodeUnequal, kNodeMember };

struct TreeNode {
  uint8_t mode = kNodeAtMost;
  int64_t feature = 0;
  double split = 0;
  bool missing_is_true = false;
  int64_t children[2] = {0, 0};  // for false and true; leaf i has the index nodes.size() + i
};
struct LeafValue {
  int64_t leaf, target;
  double weight;
};
struct Forest {
  std::vector<TreeNode> nodes;
  Ints roots;  // index of each tree's root: a node or a leaf
  int64_t leaves = 0, targets = 0;
  std::vector<LeafValue> values;
  std::string aggregate = "SUM";
  std::vector<double> base;
};

// The length of the longest path from a root to a leaf; fails on a cycle.
int64_t depth_of(NodeContext& c, const Forest& f) {
  const auto count = static_cast<int64_t>(f.nodes.size());
  std::vector<int64_t> below(f.nodes.size(), -1);  // -2: on the current path
  int64_t deepest = 0;
  std::vector<std::pair<int64_t, int>> way;
  for (int64_t root : f.roots) {
    if (root < 0 || root >= count + f.leaves) c.fail(format("a tree begins at node {}, which is none", root));
    if (root < count && below[static_cast<size_t>(root)] < 0) way.emplace_back(root, 0);
    while (!way.empty()) {
      auto& [node, side] = way.back();
      const auto at = static_cast<size_t>(node);
      if (side == 2) {
        int64_t most = 0;
        for (int64_t child : f.nodes[at].children)
          if (child < count) most = std::max(most, below[static_cast<size_t>(child)]);
        below[at] = most + 1;
        way.pop_back();
        continue;
      }
      below[at] = -2;
      const int64_t child = f.nodes[at].children[side++];
      if (child < 0 || child >= count + f.leaves) c.fail(format("a node's child is {}, which is none", child));
      if (child >= count || below[static_cast<size_t>(child)] >= 0) continue;
      if (below[static_cast<size_t>(child)] == -2) c.fail("its nodes lead in a circle");
      way.emplace_back(child, 0);
    }
    if (root < count) deepest = std::max(deepest, below[static_cast<size_t>(root)]);
  }
  if (deepest > 2048) c.unsupported(format("trees of {} levels", deepest));
  return deepest;
}

// The tables that the descent reads: one entry for each node and leaf.
struct ForestTables {
  Expr features, splits, modes, missing, children;  // children: two entries each
  bool one_mode = true, any_missing = false;
  uint8_t mode = kNodeAtMost;
};
ForestTables tables_of(NodeContext& c, const Forest& f, DataType dtype, int64_t columns) {
  const auto count = static_cast<int64_t>(f.nodes.size()), all = count + f.leaves;
  Ints features, children;
  std::vector<double> splits;
  Tensor modes(kUInt8, {all}), missing(kBool, {all});
  ForestTables t;
  t.mode = f.nodes.empty() ? static_cast<uint8_t>(kNodeAtMost) : f.nodes[0].mode;
  for (int64_t i = 0; i < all; ++i) {
    const TreeNode leaf{t.mode, 0, 0, false, {i, i}};
    const TreeNode& n = i < count ? f.nodes[static_cast<size_t>(i)] : leaf;
    if (n.feature < 0 || n.feature >= columns) c.fail_type(format("a node reads feature {} of {}", n.feature, columns));
    features.push_back(n.feature), splits.push_back(n.split);
    children.push_back(n.children[0]), children.push_back(n.children[1]);
    modes.set_int(i, n.mode), missing.set_int(i, n.missing_is_true);
    t.one_mode = t.one_mode && n.mode == t.mode;
    t.any_missing = t.any_missing || n.missing_is_true;
  }
  t.features = c.ints_constant(features), t.children = c.ints_constant(children);
  t.splits = c.constant_of(numbers_of(splits, {all}, dtype));
  t.modes = c.constant_of(modes), t.missing = c.constant_of(missing);
  return t;
}

Expr table_entry(NodeContext& c, const Expr& table, const Expr& index) {
  return c.call("take", {table, index}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
}

Expr branch_taken(NodeContext& c, const ForestTables& t, const Expr& value, const Expr& node) {
  const Expr split = table_entry(c, t.splits, node);
  static constexpr const char* kOps[] = {"less_equal", "less", "greater_equal", "greater", "equal", "not_equal"};
  Expr taken = c.call(kOps[t.mode], {value, split});
  if (!t.one_mode) {
    const Expr mode = table_entry(c, t.modes, node);
    for (uint8_t m = 0; m < kNodeMember; ++m)
      if (m != t.mode)
        taken = c.where(c.call("equal", {mode, c.scalar(m, kUInt8)}), c.call(kOps[m], {value, split}), taken);
  }
  if (!t.any_missing) return taken;
  const Expr is_missing = c.call("logical_and", {c.call("isnan", {value}), table_entry(c, t.missing, node)});
  return c.call("logical_or", {taken, is_missing});
}

// The sum (or minimum, maximum) of the values of the leaves that each row reaches: (rows, targets).
Expr forest_scores(NodeContext& c, const Forest& f, const Expr& x) {
  const DataType dtype = c.dtype(x);
  const Ints d = c.dims(x);
  const auto trees = static_cast<int64_t>(f.roots.size()), count = static_cast<int64_t>(f.nodes.size());
  const int64_t levels = depth_of(c, f);
  if (trees == 0 || f.targets < 1 || f.targets > (1 << 20)) c.fail("it has no trees or no targets");
  c.product({f.leaves, f.targets});
  const ForestTables t = tables_of(c, f, dtype, d[1]);
  Expr node = c.broadcast_to(c.reshape(c.ints_constant(f.roots), {1, trees}), {d[0], trees});
  for (int64_t level = 0; level < levels; ++level) {
    const Expr value = c.call("gather", {x, table_entry(c, t.features, node)},
                              make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
    const Expr side = c.cast(branch_taken(c, t, value, node), kInt64);
    // One kernel per level: fused, a node's index would be computed again for each of its several uses.
    node =
        c.call("annotation.stop_fusion", {table_entry(c, t.children, c.add(c.mul(node, c.scalar(2, kInt64)), side))});
  }
  // A target that no reached leaf names is 0, also for minimum and maximum.
  const bool most = f.aggregate == "MAX", extreme = most || f.aggregate == "MIN";
  const double unnamed = !extreme ? 0 : (most ? -1 : 1) * std::numeric_limits<double>::infinity();
  std::vector<double> said(static_cast<size_t>(f.leaves * f.targets), unnamed);
  for (const LeafValue& v : f.values) {
    if (v.leaf < 0 || v.leaf >= f.leaves || v.target < 0 || v.target >= f.targets)
      c.fail(format("a leaf speaks of target {} of {}", v.target, f.targets));
    double& to = said[static_cast<size_t>(v.leaf * f.targets + v.target)];
    to = extreme ? v.weight : to + v.weight;
  }
  const Expr leaf = c.sub(node, c.scalar(static_cast<double>(count), kInt64));
  const Expr each = table_entry(c, c.constant_of(numbers_of(said, {f.leaves, f.targets}, dtype)), leaf);
  Expr y = c.reduce(extreme ? (most ? "max" : "min") : "sum", each, {1}, false);
  if (extreme) y = c.where(c.call("isinf", {y}), c.scalar(0, dtype), y);
  if (f.aggregate == "AVERAGE") y = c.div(y, c.scalar(static_cast<double>(trees), dtype));
  const auto bases = static_cast<int64_t>(f.base.size());
  if (bases != 0 && bases != 1 && bases != f.targets)
    c.fail(format("it has {} base values for {} targets", bases, f.targets));
  return bases == 0 ? y : c.add(y, c.constant_of(numbers_of(f.base, {bases}, dtype)));
}

std::vector<double> numbers_attr(NodeContext& c, const std::string& name) {
  if (const Attribute* a = c.attr(name, AttributeKind::kUndefined); a && a->kind == AttributeKind::kTensor) {
    const Tensor& t = a->tensors.at(0);
    std::vector<double> out;
    for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at_double(i));
    return out;
  }
  return c.floats_attr(name);
}
// The attribute is a list of floats, `name`, or a tensor, `name`_as_tensor.
std::vector<double> either_numbers(NodeContext& c, const std::string& name) {
  return c.has_attr(name + "_as_tensor") ? numbers_attr(c, name + "_as_tensor") : c.floats_attr(name);
}
DataType tensor_dtype(NodeContext& c, const std::string& name) {
  const Attribute* a = c.attr(name, AttributeKind::kUndefined);
  return a && a->kind == AttributeKind::kTensor && a->tensors.at(0).dtype() == kFloat64 ? kFloat64 : kFloat32;
}
void same_length(NodeContext& c, size_t length, size_t want, const char* what) {
  if (length != want) c.fail(format("it has {} {} for {} nodes", length, what, want));
}

// --- TreeEnsemble: nodes and leaves are lists of their own

// A set membership test becomes a chain of nodes that test one value each.
void expand_members(NodeContext& c, Forest* f) {
  const std::vector<double> values = numbers_attr(c, "membership_values");
  size_t at = 0;
  const size_t count = f->nodes.size();
  const bool any =
      std::any_of(f->nodes.begin(), f->nodes.end(), [](const TreeNode& n) { return n.mode == kNodeMember; });
  if (!any) return;
  // Leaf indices follow the nodes and would move as nodes are added, so they are kept negative meanwhile.
  for (TreeNode& n : f->nodes)
    for (int64_t& child : n.children)
      if (child >= static_cast<int64_t>(count)) child = -1 - (child - static_cast<int64_t>(count));
  for (size_t i = 0; i < count; ++i) {
    if (f->nodes[i].mode != kNodeMember) continue;
    std::vector<double> set;
    while (at < values.size() && !std::isnan(values[at])) set.push_back(values[at++]);
    if (at == values.size()) c.fail("its membership_values end before its last set does");
    ++at;
    if (set.empty()) c.fail("a node asks for one of no values");
    const TreeNode whole = f->nodes[i];
    size_t place = i;
    for (size_t k = 0; k < set.size(); ++k) {
      TreeNode one = whole;
      one.mode = kNodeEqual, one.split = set[k];
      const size_t next = f->nodes.size();
      if (k + 1 < set.size()) one.children[0] = static_cast<int64_t>(next);
      f->nodes[place] = one;
      if (k + 1 < set.size()) f->nodes.push_back(whole), place = next;
    }
  }
  const auto grown = static_cast<int64_t>(f->nodes.size());
  for (TreeNode& n : f->nodes)
    for (int64_t& child : n.children)
      if (child < 0) child = grown - 1 - child;
}

Values tree_ensemble(NodeContext& c) {
  Forest f;
  const Ints features = c.ints_attr("nodes_featureids"), yes = c.ints_attr("nodes_truenodeids"),
             no = c.ints_attr("nodes_falsenodeids"), yes_leaf = c.ints_attr("nodes_trueleafs"),
             no_leaf = c.ints_attr("nodes_falseleafs"), missing = c.ints_attr("nodes_missing_value_tracks_true"),
             targets = c.ints_attr("leaf_targetids");
  const std::vector<double> splits = numbers_attr(c, "nodes_splits"), modes = numbers_attr(c, "nodes_modes"),
                            weights = numbers_attr(c, "leaf_weights");
  const size_t count = features.size();
  for (const Ints* list : {&yes, &no, &yes_leaf, &no_leaf}) same_length(c, list->size(), count, "children");
  same_length(c, splits.size(), count, "thresholds"), same_length(c, modes.size(), count, "modes");
  if (weights.size() != targets.size()) c.fail("its leaves do not have one weight and one target each");
  const auto nodes = static_cast<int64_t>(count);
  f.leaves = static_cast<int64_t>(targets.size()), f.targets = c.int_attr("n_targets");
  auto child = [&](int64_t id, int64_t is_leaf) {
    if (id < 0 || id >= (is_leaf ? f.leaves : nodes)) c.fail(format("a node's child is {}, which is none", id));
    return is_leaf ? nodes + id : id;
  };
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(kNodeMember)))
      c.fail(format("a node's mode is {}", modes[i]));
    f.nodes.push_back({static_cast<uint8_t>(modes[i]),
                       features[i],
                       splits[i],
                       i < missing.size() && missing[i] != 0,
                       {child(no[i], no_leaf[i]), child(yes[i], yes_leaf[i])}});
  }
  for (size_t i = 0; i < targets.size(); ++i) f.values.push_back({static_cast<int64_t>(i), targets[i], weights[i]});
  expand_members(c, &f);
  f.roots = c.ints_attr("tree_roots");
  // The format writes a tree of one leaf as a node whose two children are that leaf.
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const int64_t aggregate = c.int_attr("aggregate_function", 1), transform = c.int_attr("post_transform", 0);
  if (aggregate < 0 || aggregate > 3) c.fail(format("its aggregate_function is {}", aggregate));
  if (transform < 0 || transform > 4) c.fail(format("its post_transform is {}", transform));
  f.aggregate = kAggregates[aggregate];
  const Expr scores = forest_scores(c, f, feature_rows(c, tensor_dtype(c, "nodes_splits")));
  return {post_transformed(c, scores, static_cast<PostTransform>(transform))};
}

// --- TreeEnsembleRegressor and TreeEnsembleClassifier: leaves are nodes, known by tree and number

struct NamedForest {
  Forest forest;
  DataType dtype;
};
// `side` is the prefix of the attributes that describe the leaves: target or class.
NamedForest named_forest(NodeContext& c, const std::string& side, int64_t targets) {
  NamedForest out{{}, tensor_dtype(c, "nodes_values_as_tensor")};
  Forest& f = out.forest;
  f.targets = targets;
  const Ints trees = c.ints_attr("nodes_treeids"), ids = c.ints_attr("nodes_nodeids"),
             features = c.ints_attr("nodes_featureids"), yes = c.ints_attr("nodes_truenodeids"),
             no = c.ints_attr("nodes_falsenodeids"), missing = c.ints_attr("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = c.strings_attr("nodes_modes");
  const std::vector<double> splits = either_numbers(c, "nodes_values");
  const size_t count = ids.size();
  for (const Ints* list : {&trees, &features, &yes, &no}) same_length(c, list->size(), count, "entries");
  same_length(c, modes.size(), count, "modes"), same_length(c, splits.size(), count, "thresholds");
  static const std::map<std::string, NodeMode> kModes = {{"BRANCH_LEQ", kNodeAtMost},  {"BRANCH_LT", kNodeBelow},
                                                         {"BRANCH_GTE", kNodeAtLeast}, {"BRANCH_GT", kNodeAbove},
                                                         {"BRANCH_EQ", kNodeEqual},    {"BRANCH_NEQ", kNodeUnequal}};
  // Branches are numbered first, then leaves.
  int64_t branches = 0;
  for (const auto& m : modes) branches += m != "LEAF";
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  int64_t branch = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t place = modes[i] == "LEAF" ? branches + f.leaves++ : branch++;
    if (!places.emplace(std::make_pair(trees[i], ids[i]), place).second)
      c.fail(format("tree {} has two nodes {}", trees[i], ids[i]));
  }
  auto place_of_node = [&](int64_t tree, int64_t id) {
    auto it = places.find({tree, id});
    if (it == places.end()) c.fail(format("tree {} has no node {}", tree, id));
    return it->second;
  };
  std::vector<bool> is_child(count, false);
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] == "LEAF") continue;
    auto mode = kModes.find(modes[i]);
    if (mode == kModes.end()) c.fail(format("a node's mode '{}' is unknown", modes[i]));
    const int64_t children[2] = {place_of_node(trees[i], no[i]), place_of_node(trees[i], yes[i])};
    for (int64_t child : children) is_child[static_cast<size_t>(child)] = true;
    f.nodes.push_back(
        {mode->second, features[i], splits[i], i < missing.size() && missing[i] != 0, {children[0], children[1]}});
  }
  for (size_t i = 0; i < count; ++i) {
    const int64_t place = place_of_node(trees[i], ids[i]);
    if (!is_child[static_cast<size_t>(place)]) f.roots.push_back(place);
  }
  const Ints said_trees = c.ints_attr(side + "_treeids"), said_ids = c.ints_attr(side + "_nodeids"),
             said = c.ints_attr(side + "_ids");
  const std::vector<double> weights = either_numbers(c, side + "_weights");
  if (said_trees.size() != said.size() || said_ids.size() != said.size() || weights.size() != said.size())
    c.fail("what its leaves say has lists of several lengths");
  for (size_t i = 0; i < said.size(); ++i) {
    const int64_t place = place_of_node(said_trees[i], said_ids[i]);
    if (place >= branches) f.values.push_back({place - branches, said[i], weights[i]});
  }
  f.base = either_numbers(c, "base_values");
  return out;
}

Values tree_ensemble_regressor(NodeContext& c) {
  NamedForest named = named_forest(c, "target", c.int_attr("n_targets", 1));
  named.forest.aggregate = c.string_attr("aggregate_function", "SUM");
  const Expr scores = forest_scores(c, named.forest, feature_rows(c, named.dtype));
  return {c.cast(post_transformed(c, scores, post_transform_of(c)), kFloat32)};
}

// Two classes, and all leaves name the same one: a threshold decides.
Expr label_over_threshold(NodeContext& c, const Forest& f, const Expr& score, const Tensor& labels) {
  const bool positive = std::all_of(f.values.begin(), f.values.end(), [](const LeafValue& v) { return v.weight >= 0; });
  const Expr over = c.call("greater", {score, c.scalar(positive ? 0.5 : 0, c.dtype(score))});
  return labels_of(c, c.cast(c.squeeze(over, {1}), kInt64), labels);
}
// They name the first: their sum is the second's score, whose complement the first has.
Values completed_classes(NodeContext& c, const Forest& f, const Tensor& labels, PostTransform transform) {
  const bool positive = std::all_of(f.values.begin(), f.values.end(), [](const LeafValue& v) { return v.weight >= 0; });
  const Expr score = forest_scores(c, f, feature_rows(c, tensor_dtype(c, "nodes_values_as_tensor")));
  const Expr label = label_over_threshold(c, f, score, labels);
  if (transform == PostTransform::kProbit) return {label, c.cast(post_transformed(c, score, transform), kFloat32)};
  const Expr negative = c.call("negative", {score});
  Expr other = positive ? c.sub(c.scalar(1, c.dtype(score)), score) : negative, own = score;
  if (transform == PostTransform::kLogistic) own = c.call("sigmoid", {score}), other = c.call("sigmoid", {negative});
  return {label, c.cast(c.concat({other, own}, 1), kFloat32)};
}

Values tree_ensemble_classifier(NodeContext& c) {
  const Tensor labels = class_labels(c);
  NamedForest named = named_forest(c, "class", labels.size());
  Forest& f = named.forest;
  const PostTransform transform = post_transform_of(c);
  const bool one =
      labels.size() == 2 && !f.values.empty() &&
      std::all_of(f.values.begin(), f.values.end(), [&](const LeafValue& v) { return v.target == f.values[0].target; });
  if (one && f.values[0].target == 0) {
    f.targets = 1;
    if (f.base.size() == 2) f.base = {f.base[1]};
    return completed_classes(c, f, labels, transform);
  }
  const Expr scores = forest_scores(c, f, feature_rows(c, named.dtype)), given = post_transformed(c, scores, transform);
  if (one) return {label_over_threshold(c, f, c.slice(scores, 1, 1, 2), labels), c.cast(given, kFloat32)};
  // SOFTMAX_ZERO leaves out classes that no leaf votes for, also where all others have negative scores.
  const Expr& judged = transform == PostTransform::kSoftmaxZero ? given : scores;
  return {labels_of(c, best_class(c, judged), labels), c.cast(given, kFloat32)};
}

constexpr ConverterEntry kTreeConverters[] = {
    {"TreeEnsemble", 5, tree_ensemble, kMlDomain},
    {"TreeEnsembleRegressor", 1, tree_ensemble_regressor, kMlDomain},
    {"TreeEnsembleClassifier", 1, tree_ensemble_classifier, kMlDomain},
};

}  // namespace

std::span<const ConverterEntry> ml_trees_converters() { return kTreeConverters; }

}  // namespace tilewright::onnx
