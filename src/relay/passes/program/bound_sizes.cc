// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/bound_sizes.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/format.h"
#include "relay/passes/program/bounded_graph.h"

namespace tilewright::relay {
namespace {

// Whether the two are equal within the smaller one's extents.
bool same_within(const Tensor& large, const Tensor& small) {
  if (large.dtype().is_string() || !(large.dtype() == small.dtype()) || large.dtype().bits < 8) return false;
  const auto &from = large.shape(), &to = small.shape();
  const uint64_t bytes = large.dtype().bytes();
  if (small.size() == 0) return true;
  std::vector<int64_t> at(to.size());
  while (true) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < to.size(); ++d) a = a * from[d] + at[d], b = b * to[d] + at[d];
    const size_t run = to.empty() ? 1 : static_cast<size_t>(to.back());
    if (std::memcmp(large.raw() + static_cast<uint64_t>(a) * bytes, small.raw() + static_cast<uint64_t>(b) * bytes,
                    run * bytes) != 0)
      return false;
    size_t d = to.empty() ? 0 : to.size() - 1;
    while (d > 0 && ++at[d - 1] == to[d - 1]) at[--d] = 0;
    if (d == 0) return true;
  }
}

// Operators with shapes or limits as attributes, which their rules handle.
bool has_shape_attributes(const OpDef& op) {
  const std::string_view name = op.name;
  return op.facts.elements == Elements::kReshaped || name == "broadcast_to" || name == "full" || name == "zeros" ||
         name == "ones" || name == "strided_slice";
}

}  // namespace

// A constant whose extents depend on a size is used as far as both versions agree; a scalar that equals the size
// becomes the actual size.
Result<Expr> BoundedGraph::constant(const ConstantNode& large, const ConstantNode& small, const Expr& e) {
  const Tensor &a = large.data, &b = small.data;
  if (a.shape() == b.shape()) {
    if (a.dtype() == b.dtype() && !a.dtype().is_string() && a.bytes() == b.bytes() &&
        (a.raw() == b.raw() || a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0))
      return with_tags(e, SizeTags(a.shape().size()));
    if (a.dtype().is_string() && b.dtype().is_string() && a.string_values() == b.string_values())
      return with_tags(e, SizeTags(a.shape().size()));
    if (a.size() == 1 && (a.dtype().is_integral() || a.dtype().is_float()))
      for (size_t s = 0; s < sizes_.size(); ++s)
        if (a.at_double(0) == static_cast<double>(sizes_[s].range.largest) &&
            b.at_double(0) == static_cast<double>(sizes_[s].range.smaller)) {
          Expr now = reshape_to(cast(sizes_[s].actual, a.dtype()), a.shape());
          return with_tags(now, SizeTags(a.shape().size()));
        }
    return refused(e, "a value is computed from a size");
  }
  if (a.shape().size() != b.shape().size()) return refused(e, "a constant has another rank for another size");
  SizeTags tags(a.shape().size());
  for (size_t d = 0; d < tags.size(); ++d)
    if (a.shape()[d] != b.shape()[d]) {
      const int size = size_of_extents(a.shape()[d], b.shape()[d]);
      if (size < 0) return refused(e, "a constant's extent is no size of an input");
      tags[d].size = size;
    }
  if (!same_within(a, b)) return refused(e, "a constant holds other values for another size");
  return with_tags(e, tags);
}

BoundedGraph::BoundedGraph(const std::vector<FreeSizeRange>& sizes) {
  for (const FreeSizeRange& s : sizes) {
    sizes_.push_back({s, sizes_.size()});
    largest_.push_back(s.largest);
  }
}

// The index of the derived size (size + add) / divide, rounded down.
size_t BoundedGraph::derived(size_t size, int64_t add, int64_t divide) {
  const Size from = sizes_[size];
  Size to{from.range, from.base, from.add + from.divide * add, from.divide * divide};
  for (size_t s = 0; s < sizes_.size(); ++s)
    if (sizes_[s].base == to.base && sizes_[s].add == to.add && sizes_[s].divide == to.divide) return s;
  const Size& base = sizes_[to.base];
  to.range = base.range;
  for (int64_t* n : {&to.range.low, &to.range.largest, &to.range.smaller}) *n = (*n + to.add) / to.divide;
  auto number = [](int64_t n) { return full_constant(static_cast<double>(n), kInt64); };
  const Expr sum = to.add == 0 ? base.actual : both("add", base.actual, number(to.add));
  to.actual = to.divide == 1 ? sum : both("floor_divide", sum, number(to.divide));
  largest_.push_back(to.range.largest);
  sizes_.push_back(std::move(to));
  return sizes_.size() - 1;
}

int BoundedGraph::size_of_extents(int64_t large, int64_t small) {
  int found = -1;
  for (size_t s = 0; s < sizes_.size(); ++s)
    if (sizes_[s].range.largest == large && sizes_[s].range.smaller == small) {
      if (found >= 0) return -1;
      found = static_cast<int>(s);
    }
  if (found >= 0 || large == small) return found;
  // A size plus a constant, from appending.
  for (size_t s = 0; s < sizes_.size(); ++s) {
    const FreeSizeRange& range = sizes_[s].range;
    if (sizes_[s].base != s || large - range.largest != small - range.smaller || large < range.largest) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(s);
  }
  if (found < 0) return -1;
  const auto base = static_cast<size_t>(found);
  return static_cast<int>(derived(base, large - sizes_[base].range.largest, 1));
}

int BoundedGraph::size_at(const Expr& e, size_t axis) {
  const auto small = dims(small_.at(e.get()));
  return axis < small.size() ? size_of_extents(dims(e)[axis], small[axis]) : -1;
}

Diagnostic BoundedGraph::refused(const Expr& e, const std::string& why) const {
  const OpDef* op = called_op(e);
  return Diagnostic(ErrorCode::kUnsupportedModel,
                    op ? format("operator {} cannot leave a size free: {}", op->name, why) : why,
                    e->span ? *e->span : "", "give bounds of few sizes, each of which is compiled, or fixed sizes");
}

// A boolean mask, broadcastable to this rank: which indices are below the actual size.
Expr BoundedGraph::within(const SizeTag& tag, size_t axis, size_t rank) {
  const auto size = static_cast<size_t>(tag.size);
  const int64_t largest = largest_[size], extent = tag.outer * largest * tag.inner;
  Expr& mask = masks_[{tag.size, tag.outer, tag.inner, static_cast<int64_t>(rank - axis)}];
  if (mask) return mask;
  Tensor places(kInt64, {extent});
  auto* values = reinterpret_cast<int64_t*>(places.mutable_raw());
  for (int64_t i = 0; i < extent; ++i) values[i] = i / tag.inner % largest;
  std::vector<int64_t> shape(rank - axis, 1);
  shape[0] = extent;
  return mask = reshape_to(call("less", {make_constant(std::move(places)), sizes_[size].actual}, {}, {}), shape);
}

Expr BoundedGraph::masked(const Expr& x, size_t axis, const Expr& fill) {
  const SizeTags tags = tags_of(x);
  Expr out = call("where", {within(tags[axis], axis, tags.size()), x, fill}, {}, x->span);
  return with_tags(out, tags);
}

// Zeros the elements beyond the size. Inserted behind data movement, so that the mask fuses with the producing kernel.
Expr BoundedGraph::zeroed(const Expr& x, size_t axis) {
  if (zero_.count({x.get(), axis})) return x;
  const SizeTags tags = tags_of(x);
  const Expr moved = zeroed_before(x, axis);
  Expr out = moved ? with_tags(moved, tags) : masked(x, axis, full_constant(0, tensor_of(x).dtype));
  zero_.insert({out.get(), axis});
  return out;
}

Expr BoundedGraph::zeroed_before(const Expr& x, size_t axis) {
  const bool transpose = is_call_to(x, "transpose");
  const OpDef* op = called_op(x);
  if (!transpose && !(op && op->facts.elements == Elements::kReshaped)) return {};
  const Expr& before = arg(x, 0);
  const SizeTags tags = tags_of(before);
  for (size_t d = 0; d < tags.size(); ++d) {
    if (tags[d].size < 0 || tags[d].size != tags_of(x)[axis].size) continue;
    if (transpose) {
      if (permutation(x)[axis] != static_cast<int64_t>(d)) continue;
    } else {
      auto moved = reshaped_tag(dims(before), d, tags[d], dims(x), largest_[static_cast<size_t>(tags[d].size)]);
      if (!moved || moved->axis != axis) continue;
    }
    std::vector<Expr> args = as<CallNode>(x)->args;
    args[0] = zeroed(before, d);
    return call(op->name, std::move(args), as<CallNode>(x)->attrs, x->span);
  }
  return {};
}

std::vector<int64_t> BoundedGraph::dims(const Expr& e) {
  return static_shape(tensor_of(e).shape).value_or(std::vector<int64_t>{});
}

std::vector<int64_t> BoundedGraph::permutation(const Expr& transpose) {
  const size_t rank = tensor_of(transpose).shape.size();
  const auto& given = attrs_of<TransposeAttrs>(transpose).axes;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i)
    axes.push_back(given && !given->empty() ? positive_axis((*given)[i], rank) : static_cast<int64_t>(rank - 1 - i));
  return axes;
}

Result<Expr> BoundedGraph::with_result(const Expr& original, const Expr& small, Result<Expr> made) {
  if (!made.ok()) return made;
  // Checks that the rules' result agrees with the shapes of both modules.
  auto check = [&](const Type& large_type, const Type& small_type, const SizeTags& tags) {
    const auto *a = as_tensor(large_type), *b = as_tensor(small_type);
    if (!a || !b) return false;
    const auto la = static_shape(a->shape), lb = static_shape(b->shape);
    if (!la || !lb || la->size() != lb->size() || tags.size() != la->size()) return false;
    for (size_t d = 0; d < la->size(); ++d) {
      const SizeTag& t = tags[d];
      const auto s = static_cast<size_t>(std::max(t.size, 0));
      const int64_t part = t.outer * t.inner;
      if (t.size < 0 ? (*la)[d] != (*lb)[d]
                     : (*la)[d] != part * sizes_[s].range.largest || (*lb)[d] != part * sizes_[s].range.smaller)
        return false;
    }
    return true;
  };
  const std::vector<SizeTags>& all = tags_[made->get()];
  const auto *large_tuple = as_tuple(original->type), *small_tuple = as_tuple(small->type);
  const size_t count = large_tuple ? large_tuple->fields.size() : 1;
  bool good = all.size() == count && (!large_tuple || (small_tuple && small_tuple->fields.size() == count));
  for (size_t i = 0; good && i < count; ++i)
    good = check(large_tuple ? large_tuple->fields[i] : original->type,
                 small_tuple ? small_tuple->fields[i] : small->type, all[i]);
  if (!good) return refused(original, "its result's sizes are no sizes of the inputs");
  return made;
}

Result<Expr> BoundedGraph::visit(const Expr& large, const Expr& small) {
  if (large->kind != small->kind) return refused(large, "sizes decide which operators there are");
  switch (large->kind) {
    case ExprKind::kConstant:
      return constant(*as<ConstantNode>(large), *as<ConstantNode>(small), large);
    case ExprKind::kTuple: {
      std::vector<Expr> fields;
      std::vector<SizeTags> tags;
      for (const Expr& field : as<TupleNode>(large)->fields) {
        fields.push_back(made_.at(field.get()));
        tags.push_back(tags_of(fields.back()));
      }
      Expr out = make_tuple(std::move(fields), large->span);
      tags_[out.get()] = std::move(tags);
      keep_.push_back(out);
      return out;
    }
    case ExprKind::kTupleGetItem: {
      const auto* get = as<TupleGetItemNode>(large);
      const Expr& tuple = made_.at(get->tuple.get());
      const SizeTags tags = tags_.at(tuple.get()).at(static_cast<size_t>(get->index));
      return with_tags(make_get(tuple, get->index, large->span), tags);
    }
    case ExprKind::kCall: {
      const OpDef *op = called_op(large), *other = called_op(small);
      if (!op || op != other) return refused(large, "sizes decide which operators there are");
      std::vector<Expr> args;
      const auto &own = as<CallNode>(large)->args, &others = as<CallNode>(small)->args;
      if (!has_shape_attributes(*op) && attrs_str(as<CallNode>(large)->attrs) != attrs_str(as<CallNode>(small)->attrs))
        return refused(large, "its attributes depend on a size");
      for (size_t i = 0; i < own.size() && own.size() == others.size(); ++i) {
        if (small_.at(own[i].get()) != others[i]) return refused(large, "sizes decide what it takes");
        args.push_back(made_.at(own[i].get()));
      }
      for (const Expr& a : args)
        if (!as_tensor(a->type) && !as_tuple(a->type)) return refused(large, "an operand is no tensor");
      return with_result(large, small, call_rule(*op, large, std::move(args)));
    }
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kOp:
    case ExprKind::kFunction:
    case ExprKind::kLet:
    case ExprKind::kIf:
    case ExprKind::kConstructor:
    case ExprKind::kMatch:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      break;
  }
  return refused(large, "control flow needs each size by itself");
}

Result<BoundedModule> BoundedGraph::run(const Module& largest, const Module& smaller,
                                        const std::vector<FreeDim>& inputs) {
  const FunctionNode *large = largest.main_function(), *small = smaller.main_function();
  const std::vector<Expr> a = post_order(large->body), b = post_order(small->body);
  if (a.size() != b.size() || large->params.size() != small->params.size())
    return refused(large->body, "sizes decide which operators there are");
  std::vector<Expr> params = large->params;
  DictAttrs attrs = large->attrs;
  const size_t free = sizes_.size();
  for (Size& s : sizes_) {
    s.actual = make_var("size of " + s.range.name, tensor_type({1}, kInt64));
    params.push_back(s.actual);
  }
  for (size_t i = 0; i < large->params.size(); ++i) {
    const auto* type = as_tensor(large->params[i]->type);
    if (!type) return refused(large->params[i], "an input is no tensor");
    SizeTags tags(type->shape.size());
    for (const FreeDim& d : inputs)
      if (d.tensor == i) tags[d.axis].size = static_cast<int>(d.size);
    for (size_t d = 0; d < tags.size(); ++d)
      if (tags[d].size >= 0) zero_.insert({large->params[i].get(), d});
    made_[large->params[i].get()] = with_tags(large->params[i], tags);
    small_[large->params[i].get()] = small->params[i];
  }
  for (size_t i = 0; i < a.size(); ++i) {
    small_[a[i].get()] = b[i];
    if (a[i]->kind == ExprKind::kOp || made_.count(a[i].get())) continue;
    made_[a[i].get()] = TW_TRY(visit(a[i], b[i]));
  }
  BoundedModule out;
  const Expr body = made_.at(large->body.get());
  const std::vector<SizeTags>& results = tags_.at(body.get());
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t d = 0; d < results[i].size(); ++d) {
      const SizeTag& t = results[i][d];
      if (t.size < 0) continue;
      if (t.outer != 1 || t.inner != 1) return refused(body, "an output has a dimension that is several sizes in one");
      const Size& size = sizes_[static_cast<size_t>(t.size)];
      out.outputs.push_back({i, d, size.base, size.add, size.divide});
    }
  if (auto names = attrs.find("input_names"); names != attrs.end())
    if (auto* list = std::get_if<std::vector<std::string>>(&names->second))
      for (size_t s = 0; s < free; ++s) list->push_back("size of " + sizes_[s].range.name);
  out.module = largest.with_main(make_function(std::move(params), body, std::move(attrs)));
  return out;
}

Result<BoundedModule> bound_sizes(const Module& largest, const Module& smaller, const std::vector<FreeSizeRange>& sizes,
                                  const std::vector<FreeDim>& inputs) {
  return BoundedGraph(sizes).run(largest, smaller, inputs);
}

}  // namespace tilewright::relay
