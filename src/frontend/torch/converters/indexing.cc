// SPDX-License-Identifier: Apache-2.0
// Reading and writing by indices.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace indexing {
namespace {

using Ints = std::vector<int64_t>;

Expr taken(NodeContext& c, const Expr& x, const Expr& index, int64_t axis) {
  return c.call("take", {x, c.cast(index, kInt64)}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                  a.axis = axis;
                  a.mode = "fast";
                }));
}
Values embedding(NodeContext& c) { return {taken(c, c.tensor("weight"), c.tensor("indices"), 0)}; }
Values index_select(NodeContext& c) {
  Expr x = c.tensor("self"), index = c.tensor("index");
  if (c.rank(index) == 0) index = c.reshape(index, {1});
  if (c.rank(x) == 0) return {x};
  return {taken(c, x, index, c.dim(c.integer("dim"), c.rank(x)))};
}
Values take(NodeContext& c) { return {taken(c, c.reshaped(c.tensor("self"), {-1}), c.tensor("index"), 0)}; }
Expr gathered(NodeContext& c, const Expr& x, const Expr& index, int64_t dim) {
  const int64_t axis = c.dim(dim, c.rank(x));
  if (c.rank(x) == 0) return c.rank(index) == 0 ? x : c.broadcast_to(x, c.dims(index));
  return c.onnx("GatherElements", 13, {x, c.cast(index, kInt64)}, {{"axis", axis}})[0];
}
Values gather(NodeContext& c) { return {gathered(c, c.tensor("self"), c.tensor("index"), c.integer("dim"))}; }
Values take_along_dim(NodeContext& c) {
  if (c.has("dim")) {  // the other axes have common sizes
    Expr x = c.tensor("self"), indices = c.tensor("indices");
    const auto axis = static_cast<size_t>(c.dim(c.integer("dim"), c.rank(x)));
    Ints from = c.dims(x), to = c.dims(indices);
    if (from.size() != to.size() || from.empty()) return {gathered(c, x, indices, c.integer("dim"))};
    for (size_t i = 0; i < from.size(); ++i)
      if (i != axis) from[i] = to[i] = from[i] == 1 ? to[i] : from[i];
    return {gathered(c, c.broadcast_to(x, from), c.broadcast_to(indices, to), static_cast<int64_t>(axis))};
  }
  return {gathered(c, c.reshaped(c.tensor("self"), {-1}), c.reshaped(c.tensor("indices"), {-1}), 0)};
}

// x[indices] with integer tensors for some of the axes, listed in `axes`.
struct Indexed {
  std::vector<Expr> indices;  // one for each of `axes`, broadcast to one shape
  Ints axes, joint;           // joint: that shape
  int64_t place = 0;          // where the joint axes stand in the result
};
Indexed read_indices(NodeContext& c, const Expr& x) {
  const Value& list = c.value("indices");
  if (!list.list) c.fail_type("its indices are not a list");
  Indexed out;
  int64_t axis = 0;
  for (const Value& v : *list.list) {
    if (v.kind == Value::kNothing) {
      ++axis;
      continue;
    }
    if (!v.expr) c.fail_type("an index is not a tensor");
    if (c.dtype(v.expr).is_bool() || c.dtype(v.expr) == kUInt8) {
      const Tensor* mask = c.known(v.expr);
      if (!mask) c.unsupported("a mask that is known only at run time");
      // A mask becomes the indices of its true elements, one list per axis.
      const Ints shape = mask->shape();
      std::vector<Ints> places(shape.size());
      for (int64_t i = 0; i < mask->size(); ++i) {
        if (mask->at_int(i) == 0) continue;
        int64_t rest = i;
        for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) places[d].push_back(rest % shape[d]);
      }
      for (const Ints& p : places) {
        out.indices.push_back(c.ints_constant(p));
        out.axes.push_back(axis++);
      }
      continue;
    }
    out.indices.push_back(c.cast(v.expr, kInt64));
    out.axes.push_back(axis++);
  }
  if (axis > c.rank(x)) c.fail_type(format("it has {} indices for a tensor of rank {}", axis, c.rank(x)));
  if (out.axes.empty()) c.fail("it has no index");
  for (const Expr& e : out.indices) {
    const Ints d = c.dims(e);
    if (d.size() > out.joint.size()) out.joint.insert(out.joint.begin(), d.size() - out.joint.size(), 1);
    for (size_t i = 0; i < d.size(); ++i) {
      int64_t& to = out.joint[out.joint.size() - d.size() + i];
      if (to != 1 && d[i] != 1 && to != d[i]) c.fail_type("its indices do not broadcast");
      to = to == 1 ? d[i] : to;
    }
  }
  // Adjacent indexed axes keep their place in the result; otherwise the joint axes come first.
  const bool together = out.axes.back() - out.axes.front() + 1 == static_cast<int64_t>(out.axes.size());
  out.place = together ? out.axes.front() : 0;
  return out;
}
// The permutation that moves the indexed axes to the front, to be merged into one.
Ints front_order(const Indexed& at, int64_t rank) {
  Ints order = at.axes;
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(at.axes.begin(), at.axes.end(), i) == at.axes.end()) order.push_back(i);
  return order;
}
// Linear indices into the merged axis.
Expr flat_place(NodeContext& c, const Indexed& at, const Ints& sizes) {
  Expr place;
  for (size_t i = 0; i < at.indices.size(); ++i) {
    const auto size = static_cast<double>(sizes[static_cast<size_t>(at.axes[i])]);
    Expr e = at.indices[i], n = c.scalar(size, kInt64);
    e = c.where(c.call("less", {e, c.scalar(0, kInt64)}), c.add(e, n), e);
    place = place ? c.add(c.mul(place, n), e) : e;
  }
  return c.broadcast_to(place, at.joint);
}
Values index(NodeContext& c) {
  Expr x = c.tensor("self");
  const Indexed at = read_indices(c, x);
  if (at.axes.size() == 1) return {taken(c, x, c.broadcast_to(at.indices[0], at.joint), at.axes[0])};
  const Ints sizes = c.dims(x), order = front_order(at, c.rank(x));
  const auto indexed = static_cast<int64_t>(at.axes.size()), joint = static_cast<int64_t>(at.joint.size());
  Ints rows = {1};
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(order[i])];
    if (static_cast<int64_t>(i) < indexed)
      rows[0] *= size;
    else
      rows.push_back(size);
  }
  Expr y = taken(c, c.reshaped(c.transpose(x, order), rows), flat_place(c, at, sizes), 0);
  // Moves the joint axes from the front, (joint..., rest...), behind the first `place` of the rest.
  Ints back;
  for (int64_t i = 0; i < at.place; ++i) back.push_back(joint + i);
  for (int64_t i = 0; i < joint; ++i) back.push_back(i);
  for (int64_t i = joint + at.place; i < c.rank(y); ++i) back.push_back(i);
  return {c.transpose(y, back)};
}
Values index_put(NodeContext& c) {
  Expr x = c.tensor("self");
  const Value& list = c.value("indices");
  // One mask over leading axes and a single value: a select, without indices.
  if (list.list && list.list->size() == 1 && list.list->front().expr && c.dtype(list.list->front().expr).is_bool() &&
      !c.known(list.list->front().expr)) {
    Expr mask = list.list->front().expr, values = c.cast(c.tensor("values"), c.dtype(x));
    if (c.rank(values) == 0 || c.product(c.dims(values)) == 1) {
      values = c.reshape(values, {});
      mask = c.expand(mask, c.rank(mask), c.rank(x) - c.rank(mask));
      return {c.where(mask, c.flag("accumulate", false) ? c.add(x, values) : values, x)};
    }
  }
  const Indexed at = read_indices(c, x);
  const Ints sizes = c.dims(x), order = front_order(at, c.rank(x));
  const auto indexed = static_cast<int64_t>(at.axes.size()), joint = static_cast<int64_t>(at.joint.size());
  Ints rows = {1}, rest, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(order[i])];
    if (static_cast<int64_t>(i) < indexed)
      rows[0] *= size;
    else
      rest.push_back(size);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  rows.insert(rows.end(), rest.begin(), rest.end());
  Ints moved;
  for (int64_t axis : order) moved.push_back(sizes[static_cast<size_t>(axis)]);
  // Broadcasts the values to the shape of the result, with the joint axes in their place.
  Ints shape(rest.begin(), rest.begin() + at.place), front;
  shape.insert(shape.end(), at.joint.begin(), at.joint.end());
  shape.insert(shape.end(), rest.begin() + at.place, rest.end());
  for (int64_t i = 0; i < joint; ++i) front.push_back(at.place + i);
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (i < at.place || i >= at.place + joint) front.push_back(i);
  Expr values = c.transpose(c.broadcast_to(c.cast(c.tensor("values"), c.dtype(x)), shape), front);
  Expr place = c.reshaped(flat_place(c, at, sizes), {-1});
  Ints flat = {c.product(at.joint)};
  flat.insert(flat.end(), rest.begin(), rest.end());
  Expr data = c.reshaped(c.transpose(x, order), rows);
  Expr y = c.onnx("ScatterND", 18, {data, c.expand(place, 1), c.reshaped(values, flat)},
                  {{"reduction", std::string(c.flag("accumulate", false) ? "add" : "none")}})[0];
  return {c.transpose(c.reshaped(y, moved), back)};
}

Expr scattered(NodeContext& c, Expr x, Expr index, Expr source, const std::string& reduction) {
  const DataType dtype = c.dtype(x);
  const bool scalar = c.rank(x) == 0;
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  source = c.cast(source, dtype);
  if (scalar) x = c.reshape(x, {1}), index = c.reshaped(index, {-1}), source = c.reshaped(source, {-1});
  const Ints wanted = c.dims(index);
  if (c.rank(source) == 0) source = c.broadcast_to(source, wanted);
  // A source larger than the index is cut to the index's extents.
  const Ints sizes = c.dims(source);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (sizes[i] > wanted[i]) source = c.slice(source, static_cast<int64_t>(i), 0, wanted[i]);
  Expr y =
      c.onnx("ScatterElements", 18, {x, c.cast(index, kInt64), source}, {{"axis", axis}, {"reduction", reduction}})[0];
  return scalar ? c.reshape(y, {}) : y;
}
std::string reduction_name(NodeContext& c, const std::string& name) {
  if (name == "sum" || name == "add") return "add";
  if (name == "prod" || name == "multiply") return "mul";
  if (name == "amax") return "max";
  if (name == "amin") return "min";
  c.unsupported(format("the reduction '{}'", name));
}
Values scatter(NodeContext& c) {
  Expr source = c.tensor(c.has("src") ? "src" : "value");
  const std::string reduce = c.text("reduce", "");
  return {
      scattered(c, c.tensor("self"), c.tensor("index"), source, reduce.empty() ? "none" : reduction_name(c, reduce))};
}
Values scatter_add(NodeContext& c) {
  return {scattered(c, c.tensor("self"), c.tensor("index"), c.tensor("src"), "add")};
}
// What changes no result of the reduction.
Expr neutral(NodeContext& c, const std::string& reduction, const Expr& like) {
  if (reduction == "add" || reduction == "mul") return c.scalar_like(reduction == "mul" ? 1 : 0, like);
  const DataType dtype = c.dtype(like);
  if (!dtype.is_float()) c.unsupported("the extremes of whole numbers without the elements that are replaced");
  return c.scalar(reduction == "max" ? -HUGE_VAL : HUGE_VAL, dtype);
}
Values scatter_reduce(NodeContext& c) {
  const std::string reduce = c.text("reduce", "");
  const bool mean = reduce == "mean", with_self = c.flag("include_self", true);
  const std::string reduction = mean ? "add" : reduction_name(c, reduce);
  Expr x = c.tensor("self"), index = c.tensor("index");
  if (mean && !c.dtype(x).is_float()) c.unsupported("means of whole numbers");
  if (!with_self) x = scattered(c, x, index, neutral(c, reduction, x), "none");
  const Expr total = scattered(c, x, index, c.tensor("src"), reduction);
  if (!mean) return {total};
  const Expr one = c.scalar_like(1, x);
  const Expr start = c.broadcast_to(with_self ? one : c.zero_like(x), c.dims(x));
  return {c.div(total, c.call("maximum", {scattered(c, start, index, one, "add"), one}))};
}
// For each element of rows of this shape, which row along the axis it goes to.
Expr places_of_rows(NodeContext& c, const Expr& index, int64_t axis, const Ints& shape) {
  return c.broadcast_to(c.expand(c.cast(index, kInt64), 1, static_cast<int64_t>(shape.size()) - axis - 1), shape);
}
// Scatters whole rows along an axis.
Values rows_put(NodeContext& c, Expr source, const std::string& reduction) {
  Expr x = c.tensor("self"), index = c.tensor("index");
  const int64_t rank = c.rank(x), axis = c.dim(c.integer("dim"), rank);
  if (c.rank(index) == 0) index = c.reshape(index, {1});
  Ints shape = c.dims(x);
  shape.at(static_cast<size_t>(axis)) = c.dims(index).at(0);
  source = c.broadcast_to(c.cast(source, c.dtype(x)), shape);
  const Expr places = places_of_rows(c, index, axis, shape);
  return {c.onnx("ScatterElements", 18, {x, places, source}, {{"axis", axis}, {"reduction", reduction}})[0]};
}
Values index_reduce(NodeContext& c) {
  Expr source = c.tensor("source"), index = c.tensor("index");
  const int64_t rank = c.rank(source), axis = c.dim(c.integer("dim"), rank);
  index = places_of_rows(c, index, axis, c.dims(source));
  return c.aten("aten.scatter_reduce.two",
                {{"self", c.value("self")},
                 {"dim", whole(axis)},
                 {"index", index},
                 {"src", source},
                 {"reduce", c.value("reduce")},
                 {"include_self", Value::number(c.scalar(c.flag("include_self", true), kBool))}});
}
Values index_copy(NodeContext& c) { return rows_put(c, c.tensor("source"), "none"); }
Values index_fill(NodeContext& c) { return rows_put(c, c.tensor("value"), "none"); }
Values index_add(NodeContext& c) {
  Expr source = c.tensor("source");
  const double alpha = c.number("alpha", 1);
  return rows_put(c, alpha == 1 ? source : c.mul(source, c.scalar_like(alpha, source)), "add");
}

Values one_hot(NodeContext& c) {
  Expr x = c.tensor("self");
  int64_t classes = c.integer("num_classes", -1);
  if (classes < 0) {
    const Tensor t = c.constant(x, "classes");
    for (int64_t i = 0; i < t.size(); ++i) classes = std::max(classes, t.at_int(i) + 1);
  }
  if (classes < 1) c.fail("it has no class");
  return {c.call("one_hot", {x, c.scalar(1, kInt64), c.scalar(0, kInt64)}, make_attrs<relay::OneHotAttrs>([&](auto& a) {
                   a.depth = classes;
                   a.axis = -1;
                   a.dtype = kInt64;
                 }))};
}
Values nonzero(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.transpose(c.onnx("NonZero", 13, {x}, {})[0], {1, 0})};
}
// The mask's prefix sum says which element of the source goes where, whatever the number of true elements.
Values masked_scatter(NodeContext& c) {
  Expr x = c.tensor("self"), mask = c.cast(c.tensor("mask"), kBool), source = c.reshaped(c.tensor("source"), {-1});
  const Ints shape = c.dims(x);
  Expr held = c.reshaped(c.broadcast_to(mask, shape), {-1});
  Expr count = c.call("cumsum", {c.cast(held, kInt64)}, make_attrs<relay::ScanopAttrs>([](auto& a) { a.axis = 0; }));
  Expr place = c.call("maximum", {c.sub(count, c.scalar(1, kInt64)), c.scalar(0, kInt64)});
  Expr taken_source = c.call("take", {source, place}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
  return {c.reshaped(c.where(held, taken_source, c.reshaped(x, {-1})), shape)};
}

// A program does these with indices found at run time (data_sized.cc).
Values only_in_programs(NodeContext& c) { c.unsupported("as many elements as the data decide, outside of a program"); }

constexpr ConverterEntry kTable[] = {
    {"aten.masked_select", only_in_programs},
    {"aten.nonzero_numpy", only_in_programs},
    {"aten.bincount", only_in_programs},
    {"aten._unique2", only_in_programs},
    {"aten.unique_dim", only_in_programs},
    {"aten.embedding", embedding},
    {"aten.index_select", index_select},
    {"aten.take", take},
    {"aten.gather", gather},
    {"aten.take_along_dim", take_along_dim},
    {"aten.index", index},
    {"aten._unsafe_index", index},
    {"aten.index_put", index_put},
    {"aten._unsafe_index_put", index_put},
    {"aten.scatter", scatter},
    {"aten.scatter_add", scatter_add},
    {"aten.scatter_reduce", scatter_reduce},
    {"aten.index_reduce", index_reduce},
    {"aten.index_copy", index_copy},
    {"aten.index_fill", index_fill},
    {"aten.index_add", index_add},
    {"aten.one_hot", one_hot},
    {"aten.nonzero", nonzero},
    {"aten.argwhere", nonzero},
    {"aten.masked_scatter", masked_scatter},
};

}  // namespace
}  // namespace indexing

std::span<const ConverterEntry> indexing_converters() { return indexing::kTable; }

}  // namespace tilewright::torch
