// SPDX-License-Identifier: Apache-2.0
// How each operator treats free sizes: it carries them along, reads across one (and elements beyond the size are
// masked), or needs to know it.
#include <algorithm>
#include <limits>
#include <set>

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
      {"cumsum", &BoundedGraph::scan},
      {"cumprod", &BoundedGraph::scan},
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
      {"nn.conv1d", &BoundedGraph::window_rule},
      {"nn.conv2d", &BoundedGraph::window_rule},
      {"nn.conv3d", &BoundedGraph::window_rule},
      {"nn.max_pool1d", &BoundedGraph::window_rule},
      {"nn.max_pool2d", &BoundedGraph::window_rule},
      {"nn.max_pool3d", &BoundedGraph::window_rule},
      {"nn.avg_pool1d", &BoundedGraph::window_rule},
      {"nn.avg_pool2d", &BoundedGraph::window_rule},
      {"nn.avg_pool3d", &BoundedGraph::window_rule},
      {"nn.global_avg_pool2d", &BoundedGraph::global_pool},
      {"nn.global_max_pool2d", &BoundedGraph::global_pool},
      {"nn.batch_norm", &BoundedGraph::batch_norm},
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

// Elementwise, with dimensions aligned at the last.
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
  // Elements beyond the size must not make an integer division fail by zero.
  static const std::set<std::string_view> divisions = {"divide", "floor_divide", "trunc_divide",
                                                       "mod",    "floor_mod",    "trunc_mod"};
  if (divisions.count(called_op(e)->name) > 0 && !tensor_of(args[1]).dtype.is_float()) {
    const SizeTags divisor = tags_of(args[1]);
    for (size_t d = 0; d < divisor.size() && !constant_data(args[1]); ++d)
      if (divisor[d].size >= 0) args[1] = masked(args[1], d, full_constant(1, tensor_of(args[1]).dtype));
  }
  return same_call(e, std::move(args), std::move(tags));
}

// Elementwise in the first operand; the others are vectors along `axis`.
Result<Expr> BoundedGraph::along_axis(const Expr& e, std::vector<Expr> args, int64_t axis) {
  const SizeTags tags = tags_of(args[0]);
  if (tags[static_cast<size_t>(positive_axis(axis, tags.size()))].size >= 0 || !as_tensor(e->type))
    return refused(e, "its axis is a free size");
  return same_call(e, std::move(args), tags);
}

Result<Expr> BoundedGraph::reshape(const Expr& e, std::vector<Expr> args) {
  const Expr x = std::move(args[0]);
  auto tags = reshaped_tags(dims(x), tags_of(x), dims(e), largest_);
  if (!tags) return refused(e, "a free size does not stay one dimension");
  // Shapes in attributes are those of the larger module, which this graph follows.
  return with_tags(reshape_to(x, dims(e)), std::move(*tags));
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
  // A created dimension belongs to a size if its extents in both modules are those of the size.
  for (size_t d = 0; d < out.size(); ++d) {
    const bool made = d + own.size() < out.size() || own[d + own.size() - out.size()] != out[d];
    if (made && tags[d].size < 0) tags[d].size = size_at(e, d);
  }
  return same_call(e, std::move(args), std::move(tags));
}

Result<Expr> BoundedGraph::concatenate(const Expr& e, std::vector<Expr> args) {
  const std::vector<SizeTags> all = tags_.at(args[0].get());
  const auto axis = static_cast<size_t>(positive_axis(attrs_of<ConcatenateAttrs>(e).axis, all[0].size()));
  if (all[0][axis].size >= 0) return appended(e, args[0], axis);
  for (const SizeTags& tags : all)
    if (tags != all[0]) return refused(e, "something lies behind a free size");
  return same_call(e, std::move(args), all[0]);
}

// Indices 0, 1, 2, ... along a dimension, with `trailing` unit dimensions behind it.
Expr BoundedGraph::iota_along(int64_t extent, size_t trailing) {
  Tensor values(kInt64, {extent});
  for (int64_t i = 0; i < extent; ++i) values.set_int(i, i);
  std::vector<int64_t> shape(trailing + 1, 1);
  shape[0] = extent;
  return reshape_to(make_constant(std::move(values)), shape);
}

// Concatenation of a tensor of free size with another behind it, such as cached keys and a new one: the second goes
// where the first actually ends.
Result<Expr> BoundedGraph::appended(const Expr& e, const Expr& tuple, size_t axis) {
  const auto* parts = as<TupleNode>(tuple);
  if (!parts) return refused(e, "something lies behind a free size");
  const SizeTags tags = tags_of(parts->fields[0]);
  const auto size = static_cast<size_t>(tags[axis].size);
  if (tags[axis].outer != 1 || tags[axis].inner != 1) return refused(e, "something lies behind a free size");
  int64_t more = 0;
  for (size_t i = 1; i < parts->fields.size(); ++i) {
    SizeTags other = tags_of(parts->fields[i]);
    if (other[axis].size >= 0) return refused(e, "a free size lies behind another");
    other[axis] = tags[axis];
    if (other != tags) return refused(e, "two sizes meet in a dimension");
    more += dims(parts->fields[i])[axis];
  }
  const AttrsRef& attrs = as<CallNode>(e)->attrs;
  std::vector<Expr> behind(parts->fields.begin() + 1, parts->fields.end());
  const Expr last = behind.size() == 1 ? behind[0] : call("concatenate", {make_tuple(behind)}, attrs, e->span);
  // Concatenated at the largest size; elements beyond the first part's actual size are then replaced.
  const Expr first = call("concatenate", {make_tuple({parts->fields[0], last})}, attrs, e->span);
  const int64_t extent = largest_[size] + more;
  const size_t trailing = tags.size() - axis - 1;
  const Expr within_first = call("less", {iota_along(extent, trailing), sizes_[size].actual}, {}, {});
  Expr moved = last;
  if (more > 1) {
    const Expr from = both("subtract", iota_along(extent, 0), sizes_[size].actual);
    moved = call("take", {last, both("maximum", from, full_constant(0, kInt64))},
                 make_attrs<TakeAttrs>([&](auto& a) { a.axis = static_cast<int64_t>(axis); }), e->span);
  }
  SizeTags out = tags;
  out[axis].size = static_cast<int>(derived(size, more, 1));
  return with_tags(call("where", {within_first, first, moved}, {}, e->span), std::move(out));
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
  const auto &attrs = attrs_of<StridedSliceAttrs>(e), &other = attrs_of<StridedSliceAttrs>(small_.at(e.get()));
  if (attrs.begin != other.begin || attrs.strides != other.strides || attrs.axes != other.axes)
    return refused(e, "where it begins depends on a size");
  const std::vector<int64_t> own = dims(args[0]), out = dims(e);
  SizeTags tags = tags_of(args[0]);
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const auto d = static_cast<size_t>(attrs.axes && !attrs.axes->empty() ? positive_axis((*attrs.axes)[i], own.size())
                                                                          : static_cast<int64_t>(i));
    const int64_t stride = i < attrs.strides.size() ? attrs.strides[i] : 1, begin = attrs.begin[i];
    if (tags[d].size < 0) {
      // A slice of a fixed tensor that is as long as a free size: its first elements.
      tags[d].size = begin == 0 && stride == 1 ? size_at(e, d) : -1;
      continue;
    }
    if (own[d] == out[d] && stride == 1 && begin <= 0) continue;
    const auto& range = sizes_[static_cast<size_t>(tags[d].size)].range;
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
  // Elements beyond the size must not be used as out-of-range indices.
  for (size_t d = 0; d < index.size() && !constant_data(args[1]); ++d)
    if (index[d].size >= 0) args[1] = zeroed(args[1], d);
  if (!attrs.axis || attrs.batch_dims != 0) {
    if (!no_tags(data) || attrs.batch_dims != 0) return refused(e, "it may read across a free size");
    return same_call(e, std::move(args), index);
  }
  const auto axis = static_cast<size_t>(positive_axis(*attrs.axis, data.size()));
  if (data[axis].size >= 0) {
    const Tensor* places = constant_data(args[1]);
    const int64_t low = sizes_[static_cast<size_t>(data[axis].size)].range.low;
    bool good = places && no_tags(index) && data[axis].outer == 1 && data[axis].inner == 1;
    for (int64_t i = 0; good && i < places->size(); ++i) good = places->at_int(i) >= 0 && places->at_int(i) < low;
    if (!good) return refused(e, "it picks places of a free size");
  }
  SizeTags tags(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  tags.insert(tags.end(), index.begin(), index.end());
  tags.insert(tags.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  return same_call(e, std::move(args), std::move(tags));
}

// A forward scan never reads later elements.
Result<Expr> BoundedGraph::scan(const Expr& e, std::vector<Expr> args) {
  const auto& attrs = attrs_of<ScanopAttrs>(e);
  const SizeTags tags = tags_of(args[0]);
  if (!attrs.axis) return refused(e, "it may read across a free size");
  if (attrs.reverse && tags[static_cast<size_t>(positive_axis(*attrs.axis, tags.size()))].size >= 0)
    return refused(e, "it begins at the end of a free size");
  return same_call(e, std::move(args), tags);
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

// Zeroes the columns beyond the size before masking, so that only finite numbers are masked: the attention kernel adds
// its mask.
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

// The mean over these dimensions up to their actual sizes.
Expr BoundedGraph::mean_over(const Expr& given, const std::vector<size_t>& axes, bool keepdims, const Span& span) {
  const SizeTags tags = tags_of(given);
  const DataType dtype = tensor_of(given).dtype;
  double fixed = 1;  // elements per index of the free sizes
  Expr x = given, count;
  for (size_t d : axes) {
    if (tags[d].size < 0) {
      fixed *= static_cast<double>(dims(given)[d]);
      continue;
    }
    x = zeroed(x, d);
    fixed *= static_cast<double>(tags[d].outer * tags[d].inner);
    const Expr size = cast(sizes_[static_cast<size_t>(tags[d].size)].actual, dtype);
    count = count ? both("multiply", count, size) : size;
  }
  const Expr sum = call("sum", {x}, make_attrs<ReduceAttrs>([&](auto& a) {
                          a.axis.emplace(axes.begin(), axes.end());
                          a.keepdims = keepdims;
                        }),
                        span);
  return both("divide", sum, reshape_to(both("multiply", count, full_constant(fixed, dtype)), {}));
}

Result<Expr> BoundedGraph::reduce(const Expr& e, std::vector<Expr> args) {
  const Expr given = std::move(args[0]);
  const auto& attrs = attrs_of<ReduceAttrs>(e);
  const std::string_view name = called_op(e)->name;
  const SizeTags tags = tags_of(given);
  const std::vector<size_t> axes = reduced_axes(attrs, tags.size());
  const DataType dtype = tensor_of(given).dtype;
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Expr x = given;
  bool across = false;
  SizeTags out;
  for (size_t d = 0; d < tags.size(); ++d) {
    const bool gone = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!gone) out.push_back(tags[d]);
    if (gone && attrs.keepdims) out.push_back({});
    if (!gone || tags[d].size < 0) continue;
    across = true;
    if ((name == "max" || name == "min" || name == "mean") && !dtype.is_float())
      return refused(e, "it takes the mean or an extreme of integers along a free size");
    const double fill = name == "max"                     ? -kInfinite
                        : name == "min"                   ? kInfinite
                        : name == "prod" || name == "all" ? 1
                                                          : 0;
    x = fill == 0 ? zeroed(x, d) : masked(x, d, full_constant(fill, dtype));
  }
  if (!across || name != "mean") return same_call(e, {x}, std::move(out));
  return with_tags(mean_over(given, axes, attrs.keepdims, e->span), std::move(out));
}

}  // namespace tilewright::relay
