// SPDX-License-Identifier: Apache-2.0
// What each operator does with sizes that are free: it carries them along, reads across one (and then what lies beyond
// is masked), or needs to know it.
#include <algorithm>
#include <limits>

#include "relay/ops/nn/attrs_nn.h"
#include "relay/ops/tensor/attrs_reduce.h"
#include "relay/passes/program/bounded_graph.h"

namespace tilewright::relay {
namespace {

bool no_tags(const SizeTags& tags) {
  return std::all_of(tags.begin(), tags.end(), [](const SizeTag& t) { return t.size < 0; });
}

std::vector<size_t> reduced_axes(const ReduceAttrs& attrs, size_t rank) {
  std::vector<bool> chosen(rank, !attrs.axis);
  if (attrs.axis)
    for (int64_t a : *attrs.axis) chosen[static_cast<size_t>(positive_axis(a, rank))] = true;
  if (attrs.axis && attrs.exclude) chosen.flip();
  std::vector<size_t> out;
  for (size_t d = 0; d < rank; ++d)
    if (chosen[d]) out.push_back(d);
  return out;
}

}  // namespace

Expr BoundedGraph::same_call(const Expr& e, std::vector<Expr> args, SizeTags tags) {
  const auto* c = as<CallNode>(e);
  return with_tags(call(called_op(e)->name, std::move(args), c->attrs, e->span), std::move(tags));
}

Result<Expr> BoundedGraph::call_rule(const OpDef& op, const Expr& e, std::vector<Expr> args) {
  const std::string_view name = op.name;
  if (op.stateful) return refused(e, "it has effects");
  if (std::any_of(args.begin(), args.end(), [](const Expr& a) { return as_tuple(a->type); }))
    return name == "concatenate" ? concatenate(e, std::move(args)) : refused(e, "it takes a tuple");
  using Rule = Result<Expr> (BoundedGraph::*)(const Expr&, std::vector<Expr>);
  static const std::map<std::string_view, Rule> rules = {
      {"transpose", &BoundedGraph::transpose},
      {"broadcast_to", &BoundedGraph::broadcast_to},
      {"split", &BoundedGraph::split},
      {"strided_slice", &BoundedGraph::slice},
      {"take", &BoundedGraph::take},
      {"nn.dense", &BoundedGraph::dense},
      {"nn.batch_matmul", &BoundedGraph::batch_matmul},
      {"nn.softmax", &BoundedGraph::softmax},
      {"nn.fast_softmax", &BoundedGraph::softmax},
      {"nn.log_softmax", &BoundedGraph::softmax},
      {"sum", &BoundedGraph::reduce},
      {"mean", &BoundedGraph::reduce},
      {"max", &BoundedGraph::reduce},
      {"min", &BoundedGraph::reduce},
      {"prod", &BoundedGraph::reduce},
      {"all", &BoundedGraph::reduce},
      {"any", &BoundedGraph::reduce},
      {"nn.conv1d", &BoundedGraph::first_axis},
      {"nn.conv2d", &BoundedGraph::first_axis},
      {"nn.conv3d", &BoundedGraph::first_axis},
      {"nn.max_pool2d", &BoundedGraph::first_axis},
      {"nn.avg_pool2d", &BoundedGraph::first_axis},
      {"nn.global_avg_pool2d", &BoundedGraph::first_axis},
      {"nn.batch_flatten", &BoundedGraph::reshape},
      {"full", &BoundedGraph::filled},
      {"zeros", &BoundedGraph::filled},
      {"ones", &BoundedGraph::filled},
  };
  if (auto rule = rules.find(name); rule != rules.end()) return (this->*rule->second)(e, std::move(args));
  const auto& attrs = as<CallNode>(e)->attrs;
  if (const auto* a = attrs_as<LayerNormAttrs>(attrs)) return along_axis(e, std::move(args), a->axis);
  if (const auto* a = attrs_as<BiasAddAttrs>(attrs)) return along_axis(e, std::move(args), a->axis);
  if (const auto* a = attrs_as<PReluAttrs>(attrs)) return along_axis(e, std::move(args), a->axis);
  if (op.facts.elements == Elements::kReshaped && args.size() == 1) return reshape(e, std::move(args));
  if (op.pattern == OpPattern::kElemWise || op.pattern == OpPattern::kBroadcast) return broadcast(e, std::move(args));
  if (std::all_of(args.begin(), args.end(), [&](const Expr& a) { return no_tags(tags_of(a)); }) && as_tensor(e->type))
    return same_call(e, std::move(args), SizeTags(tensor_of(e).shape.size()));
  return refused(e, "it may read across a free size");
}

// Element by element, dimensions aligned at the end.
Result<Expr> BoundedGraph::broadcast(const Expr& e, std::vector<Expr> args) {
  if (!as_tensor(e->type)) return refused(e, "it has several results");
  const std::vector<int64_t> out = dims(e);
  SizeTags tags(out.size());
  for (const Expr& a : args) {
    const std::vector<int64_t> own = dims(a);
    if (own.size() > out.size()) return refused(e, "it may read across a free size");
    const size_t shift = out.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d) {
      const SizeTag& t = tags_of(a)[d];
      if (own[d] != out[shift + d] && own[d] != 1) return refused(e, "it may read across a free size");
      if (t.size < 0) continue;
      if (tags[shift + d].size >= 0 && !(tags[shift + d] == t)) return refused(e, "two sizes meet in a dimension");
      tags[shift + d] = t;
    }
  }
  return same_call(e, std::move(args), std::move(tags));
}

// The first operand's elements, each by its place along `axis` and the others' values there.
Result<Expr> BoundedGraph::along_axis(const Expr& e, std::vector<Expr> args, int64_t axis) {
  const SizeTags tags = tags_of(args[0]);
  if (tags[static_cast<size_t>(positive_axis(axis, tags.size()))].size >= 0 || !as_tensor(e->type))
    return refused(e, "its axis is a free size");
  return same_call(e, std::move(args), tags);
}

Result<Expr> BoundedGraph::reshape(const Expr& e, std::vector<Expr> args) {
  auto tags = reshaped_tags(dims(args[0]), tags_of(args[0]), dims(e), largest_);
  if (!tags) return refused(e, "a free size does not stay one dimension");
  // Shapes in its attributes are those of the larger module, which this is.
  return with_tags(reshape_to(args[0], dims(e)), std::move(*tags));
}

Result<Expr> BoundedGraph::transpose(const Expr& e, std::vector<Expr> args) {
  SizeTags tags;
  for (int64_t axis : permutation(e)) tags.push_back(tags_of(args[0])[static_cast<size_t>(axis)]);
  return same_call(e, std::move(args), std::move(tags));
}

// One value everywhere.
Result<Expr> BoundedGraph::filled(const Expr& e, std::vector<Expr> args) {
  SizeTags tags(dims(e).size());
  for (size_t d = 0; d < tags.size(); ++d) tags[d].size = size_at(e, d);
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::broadcast_to(const Expr& e, std::vector<Expr> args) {
  const std::vector<int64_t> own = dims(args[0]), out = dims(e);
  SizeTags tags(out.size());
  const SizeTags& given = tags_of(args[0]);
  for (size_t d = 0; d < own.size(); ++d) tags[out.size() - own.size() + d] = given[d];
  // A dimension that it makes is as long as the inputs that the model gives a size of that length.
  for (size_t d = 0; d < out.size(); ++d) {
    const bool made = d + own.size() < out.size() || own[d + own.size() - out.size()] != out[d];
    if (made && tags[d].size < 0) tags[d].size = size_at(e, d);
  }
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::concatenate(const Expr& e, std::vector<Expr> args) {
  const std::vector<SizeTags> all = tags_.at(args[0].get());
  const auto axis = static_cast<size_t>(positive_axis(attrs_of<ConcatenateAttrs>(e).axis, all[0].size()));
  for (const SizeTags& tags : all)
    if (tags[axis].size >= 0 || tags != all[0]) return refused(e, "something lies behind a free size");
  return same_call(e, std::move(args), all[0]);
}

Result<Expr> BoundedGraph::split(const Expr& e, std::vector<Expr> args) {
  const SizeTags tags = tags_of(args[0]);
  if (tags[static_cast<size_t>(positive_axis(attrs_of<SplitAttrs>(e).axis, tags.size()))].size >= 0)
    return refused(e, "it takes a free size apart");
  Expr out = same_call(e, std::move(args), {});
  tags_[out.get()].assign(as_tuple(e->type)->fields.size(), tags);
  return out;
}

Result<Expr> BoundedGraph::slice(const Expr& e, std::vector<Expr> args) {
  if (args.size() != 1) return refused(e, "its limits are computed");
  const auto& attrs = attrs_of<StridedSliceAttrs>(e);
  const std::vector<int64_t> own = dims(args[0]), out = dims(e);
  SizeTags tags = tags_of(args[0]);
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const auto d = static_cast<size_t>(attrs.axes && !attrs.axes->empty() ? positive_axis((*attrs.axes)[i], own.size())
                                                                          : static_cast<int64_t>(i));
    const int64_t stride = i < attrs.strides.size() ? attrs.strides[i] : 1, begin = attrs.begin[i];
    if (tags[d].size < 0) {
      // A part of something fixed that is as long as a free size: the first places of it.
      tags[d].size = begin == 0 && stride == 1 ? size_at(e, d) : -1;
      continue;
    }
    if (own[d] == out[d] && stride == 1 && begin <= 0) continue;
    const auto& range = sizes_[static_cast<size_t>(tags[d].size)];
    const bool first_places = tags[d].outer == 1 && tags[d].inner == 1 && begin >= 0 && stride > 0 && out[d] > 0 &&
                              begin + (out[d] - 1) * stride < range.low && size_at(e, d) < 0;
    if (!first_places) return refused(e, "it cuts a free size");
    tags[d] = {};
  }
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::take(const Expr& e, std::vector<Expr> args) {
  const auto& attrs = attrs_of<TakeAttrs>(e);
  const SizeTags data = tags_of(args[0]), index = tags_of(args[1]);
  if (!attrs.axis || attrs.batch_dims != 0) {
    if (!no_tags(data) || attrs.batch_dims != 0) return refused(e, "it may read across a free size");
    return same_call(e, std::move(args), index);
  }
  const auto axis = static_cast<size_t>(positive_axis(*attrs.axis, data.size()));
  if (data[axis].size >= 0) {
    const Tensor* places = constant_data(args[1]);
    const int64_t low = sizes_[static_cast<size_t>(data[axis].size)].low;
    bool good = places && no_tags(index) && data[axis].outer == 1 && data[axis].inner == 1;
    for (int64_t i = 0; good && i < places->size(); ++i) good = places->at_int(i) >= 0 && places->at_int(i) < low;
    if (!good) return refused(e, "it picks places of a free size");
  }
  SizeTags tags(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  tags.insert(tags.end(), index.begin(), index.end());
  tags.insert(tags.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::dense(const Expr& e, std::vector<Expr> args) {
  SizeTags tags = tags_of(args[0]);
  if (tags.back().size >= 0 || !no_tags(tags_of(args[1]))) return refused(e, "its weights are as large as a free size");
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::batch_matmul(const Expr& e, std::vector<Expr> args) {
  const auto& attrs = attrs_of<BatchMatmulAttrs>(e);
  const size_t rank = dims(e).size();
  if (dims(args[0]).size() != rank || dims(args[1]).size() != rank) return refused(e, "its operands' ranks differ");
  const size_t row = rank - (attrs.transpose_a ? 1 : 2), column = rank - (attrs.transpose_b ? 2 : 1),
               depth[] = {rank - (attrs.transpose_a ? 2 : 1), rank - (attrs.transpose_b ? 1 : 2)};
  SizeTags tags(rank);
  for (size_t d = 0; d + 2 < rank; ++d)
    for (const Expr& a : args) {
      const SizeTag& t = tags_of(a)[d];
      if (t.size < 0) continue;
      if (tags[d].size >= 0 && !(tags[d] == t)) return refused(e, "two sizes meet in a dimension");
      tags[d] = t;
    }
  tags[rank - 2] = tags_of(args[0])[row];
  tags[rank - 1] = tags_of(args[1])[column];
  for (size_t i : {size_t{0}, size_t{1}})
    if (tags_of(args[i])[depth[i]].size >= 0) args[i] = zeroed(args[i], depth[i]);
  return same_call(e, std::move(args), std::move(tags));
}

// Scores whose columns beyond the size are products with zeros, so that nothing but numbers is masked: the kernel of
// attention adds its mask.
Expr BoundedGraph::with_zero_keys(const Expr& scores, size_t axis) {
  const auto* c = as<CallNode>(scores);
  const OpDef* op = called_op(scores);
  if (!op || tags_.count(scores.get()) == 0) return scores;
  if (is_call_to(scores, "nn.batch_matmul")) {
    const bool turned = attrs_of<BatchMatmulAttrs>(scores).transpose_b;
    const size_t rank = dims(scores).size();
    if (axis != rank - 1) return scores;
    return same_call(scores, {c->args[0], zeroed(c->args[1], rank - (turned ? 2 : 1))}, tags_of(scores));
  }
  if (op->pattern != OpPattern::kElemWise && op->pattern != OpPattern::kBroadcast) return scores;
  std::vector<Expr> args = c->args;
  for (Expr& a : args)
    if (as_tensor(a->type) && dims(a) == dims(scores)) a = with_zero_keys(a, axis);
  return args == c->args ? scores : same_call(scores, std::move(args), tags_of(scores));
}

Result<Expr> BoundedGraph::softmax(const Expr& e, std::vector<Expr> args) {
  const SizeTags tags = tags_of(args[0]);
  const auto axis = static_cast<size_t>(positive_axis(attrs_of<SoftmaxAttrs>(e).axis, tags.size()));
  if (tags[axis].size < 0) return same_call(e, std::move(args), tags);
  const Expr least = full_constant(-std::numeric_limits<double>::infinity(), tensor_of(args[0]).dtype);
  Expr out = same_call(e, {masked(with_zero_keys(args[0], axis), axis, least)}, tags);
  if (!is_call_to(e, "nn.log_softmax")) zero_.insert({out.get(), axis});
  return out;
}

Result<Expr> BoundedGraph::reduce(const Expr& e, std::vector<Expr> args) {
  const auto& attrs = attrs_of<ReduceAttrs>(e);
  const std::string_view name = called_op(e)->name;
  const SizeTags tags = tags_of(args[0]);
  const std::vector<size_t> axes = reduced_axes(attrs, tags.size());
  const DataType dtype = tensor_of(args[0]).dtype;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Expr x = args[0], actual;
  double fixed = 1;  // elements of a mean for each place of the free sizes
  SizeTags out;
  for (size_t d = 0; d < tags.size(); ++d) {
    const bool gone = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!gone) out.push_back(tags[d]);
    if (gone && attrs.keepdims) out.push_back({});
    if (gone && tags[d].size < 0) fixed *= static_cast<double>(dims(args[0])[d]);
    if (!gone || tags[d].size < 0) continue;
    if ((name == "max" || name == "min") && !dtype.is_float())
      return refused(e, "it takes the extreme of integers along a free size");
    if (name == "mean" && !dtype.is_float()) return refused(e, "it takes the mean of integers along a free size");
    const double fill = name == "max"                     ? -kInfinite
                        : name == "min"                   ? kInfinite
                        : name == "prod" || name == "all" ? 1
                                                          : 0;
    x = fill == 0 ? zeroed(x, d) : masked(x, d, full_constant(fill, dtype));
    fixed *= static_cast<double>(tags[d].outer * tags[d].inner);
    const Expr size = cast(actual_[static_cast<size_t>(tags[d].size)], dtype);
    actual = actual ? both("multiply", actual, size) : size;
  }
  if (!actual || name != "mean") return same_call(e, {x}, std::move(out));
  const Expr sum = call("sum", {x}, as<CallNode>(e)->attrs, e->span);
  const Expr count = reshape_to(both("multiply", actual, full_constant(fixed, dtype)), {});
  return with_tags(both("divide", sum, count), std::move(out));
}

// Samples side by side: the first dimension of the first operand goes through, the others are fixed.
Result<Expr> BoundedGraph::first_axis(const Expr& e, std::vector<Expr> args) {
  SizeTags tags = tags_of(args[0]);
  const bool rest = std::any_of(tags.begin() + 1, tags.end(), [](const SizeTag& t) { return t.size >= 0; }) ||
                    std::any_of(args.begin() + 1, args.end(), [&](const Expr& a) { return !no_tags(tags_of(a)); });
  if (rest) return refused(e, "its window moves along a free size");
  SizeTags out(dims(e).size());
  out[0] = tags[0];
  return same_call(e, std::move(args), std::move(out));
}

}  // namespace tilewright::relay
