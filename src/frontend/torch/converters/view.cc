// SPDX-License-Identifier: Apache-2.0
// Views: operators whose result shares the elements of their operand.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace view {
namespace {

using Ints = std::vector<int64_t>;

Values to_sizes(NodeContext& c) { return {c.reshaped(c.tensor("self"), c.ints("size"))}; }
Values reshape(NodeContext& c) { return {c.reshaped(c.tensor("self"), c.ints(c.has("shape") ? "shape" : "size"))}; }
Values as_other(NodeContext& c) { return {c.reshaped(c.tensor("self"), c.dims(c.tensor("other")))}; }
// Reinterprets the bits as another type of the same width, or changes the shape.
Values view(NodeContext& c) {
  if (!c.has("dtype")) return to_sizes(c);
  Expr x = c.tensor("self");
  const DataType dtype = c.dtype_arg("dtype", kFloat32);
  if (dtype == c.dtype(x)) return {x};
  if (dtype.bits != c.dtype(x).bits) c.unsupported("a view of elements of another width");
  return {c.call("reinterpret", {x}, make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = dtype; }))};
}

Values flatten(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t rank = c.rank(x);
  if (rank == 0) return {c.reshape(x, {1})};
  const int64_t begin = c.dim(c.integer("start_dim", 0), rank), end = c.dim(c.integer("end_dim", -1), rank);
  if (begin > end) c.fail("its start_dim comes after its end_dim");
  const Ints sizes = c.dims(x);
  Ints out(sizes.begin(), sizes.begin() + begin);
  out.push_back(c.product(sizes, begin, end + 1));
  out.insert(out.end(), sizes.begin() + end + 1, sizes.end());
  return {c.reshaped(x, out)};
}
Values unflatten(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  const Ints sizes = c.dims(x);
  Ints parts = c.ints("sizes");
  auto open = std::find(parts.begin(), parts.end(), -1);
  if (open != parts.end()) {
    *open = 1;
    const int64_t others = c.product(parts), whole = sizes[static_cast<size_t>(axis)];
    if (others == 0 || whole % others != 0) c.fail(format("an axis of {} cannot be split so", whole));
    *open = whole / others;
  }
  Ints out(sizes.begin(), sizes.begin() + axis);
  out.insert(out.end(), parts.begin(), parts.end());
  out.insert(out.end(), sizes.begin() + axis + 1, sizes.end());
  return {c.reshaped(x, out)};
}

Values permute(NodeContext& c) {
  Expr x = c.tensor("self");
  const Ints axes = c.axes("dims", c.rank(x));
  if (static_cast<int64_t>(axes.size()) != c.rank(x))
    c.fail(format("it has {} axes for a tensor of rank {}", axes.size(), c.rank(x)));
  return {c.transpose(x, axes)};
}
Expr swapped(NodeContext& c, const Expr& x, int64_t a, int64_t b) {
  Ints axes;
  for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  if (axes.empty()) return x;
  std::swap(axes[static_cast<size_t>(c.dim(a, c.rank(x)))], axes[static_cast<size_t>(c.dim(b, c.rank(x)))]);
  return c.transpose(x, axes);
}
Values transpose(NodeContext& c) { return {swapped(c, c.tensor("self"), c.integer("dim0"), c.integer("dim1"))}; }
Values swapaxes(NodeContext& c) {
  return {swapped(c, c.tensor("self"), c.integer(c.has("axis0") ? "axis0" : "dim0"),
                  c.integer(c.has("axis1") ? "axis1" : "dim1"))};
}
Values t(NodeContext& c) {
  Expr x = c.tensor("self");
  if (c.rank(x) > 2) c.fail_type(format("a tensor of rank {} is no matrix", c.rank(x)));
  return {c.rank(x) < 2 ? x : c.transpose(x, {1, 0})};
}
Values last_two(NodeContext& c) { return {swapped(c, c.tensor("self"), -2, -1)}; }
Values all_axes(NodeContext& c) {
  Expr x = c.tensor("self");
  Ints axes;
  for (int64_t i = c.rank(x); i-- > 0;) axes.push_back(i);
  return {c.transpose(x, axes)};
}
Values movedim(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t rank = c.rank(x);
  const Ints from = c.axes("source", rank), to = c.axes("destination", rank);
  if (from.size() != to.size()) c.fail("it moves as many axes as it has places for");
  Ints axes(static_cast<size_t>(rank), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) axes[static_cast<size_t>(to[i])] = from[i];
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(from.begin(), from.end(), i) == from.end()) rest.push_back(i);
  size_t next = 0;
  for (int64_t& a : axes)
    if (a < 0) a = rest[next++];
  return {c.transpose(x, axes)};
}

// Removes the given axes where their extent is 1.
Values squeeze(NodeContext& c) {
  Expr x = c.tensor("self");
  const Ints sizes = c.dims(x);
  Ints axes;
  if (c.has("dim")) {
    axes = c.axes("dim", c.rank(x));
  } else {
    for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  }
  Ints out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (sizes[i] != 1 || !named) out.push_back(sizes[i]);
  }
  return {c.reshaped(x, out)};
}
Values unsqueeze(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.expand(x, c.dim(c.integer("dim"), c.rank(x) + 1))};
}

Expr expanded(NodeContext& c, const Expr& x, Ints sizes) {
  const Ints now = c.dims(x);
  if (sizes.size() < now.size()) c.fail_type(format("{} does not expand to {}", shape_str(now), shape_str(sizes)));
  const size_t more = sizes.size() - now.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && i >= more) sizes[i] = now[i - more];
    if (sizes[i] < 0 || (i >= more && now[i - more] != 1 && now[i - more] != sizes[i]))
      c.fail_type(format("{} does not expand to {}", shape_str(now), shape_str(sizes)));
  }
  return c.broadcast_to(x, sizes);
}
Values expand(NodeContext& c) { return {expanded(c, c.tensor("self"), c.ints("size"))}; }
Values expand_as(NodeContext& c) { return {expanded(c, c.tensor("self"), c.dims(c.tensor("other")))}; }

Values select(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x));
  const Value& index = c.value("index");
  if (!c.known(index.expr) || !c.shape(x).at(static_cast<size_t>(axis)).is_const())
    return {c.call("take", {x, c.cast(index.expr, kInt64)}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                     a.axis = axis;
                     a.mode = "fast";
                   }))};
  const int64_t size = c.shape(x).at(static_cast<size_t>(axis)).value();
  int64_t at = c.integer("index");
  if (at < -size || at >= size) c.fail(format("its index {} is out of range for a size of {}", at, size));
  at = at < 0 ? at + size : at;
  return {c.squeeze(c.slice(x, axis, at, at + 1), {axis})};
}
Values slice(NodeContext& c) {
  Expr x = c.tensor("self");
  if (c.rank(x) == 0) c.fail_type("a scalar has no parts");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), step = c.integer("step", 1);
  if (step < 1) c.fail(format("its step is {}", step));
  const int64_t begin = c.integer("start", 0), end = c.integer("end", INT64_MAX);
  if (begin == 0 && end == INT64_MAX && step == 1) return {x};
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  auto within = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t first = within(begin), last = std::max(first, within(end));
  if (first == 0 && last == size && step == 1) return {x};
  return {c.slice(x, axis, first, last, step)};
}
Values narrow(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  int64_t begin = c.integer("start");
  const int64_t length = c.integer("length");
  if (begin < 0) begin += size;
  if (begin < 0 || length < 0 || begin > size - length) c.fail("its part lies outside of the axis");
  return {c.slice(x, axis, begin, begin + length)};
}

// Splits the axis at these offsets.
Values parts(NodeContext& c, const Expr& x, int64_t axis, const Ints& begins) {
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  std::vector<Value> out;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t begin = std::clamp<int64_t>(begins[i], 0, size);
    const int64_t end = i + 1 < begins.size() ? std::clamp<int64_t>(begins[i + 1], begin, size) : size;
    out.emplace_back(begin == 0 && end == size ? x : c.slice(x, axis, begin, end));
  }
  return {Value::of_list(std::move(out))};
}
constexpr int64_t kMostParts = 1 << 16;
Values split(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  const char* name = c.has("split_sizes") ? "split_sizes" : "split_size";
  Ints begins = {0};
  if (c.value(name).list) {
    const Ints sizes = c.ints(name);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 0) c.fail(format("a part has {} elements", sizes[i]));
      begins.push_back(begins.back() + sizes[i]);
    }
    if (begins.back() != size) c.fail(format("its parts have {} elements of {}", begins.back(), size));
    begins.pop_back();
  } else {
    const int64_t each = c.integer(name);
    if (each < 0 || (each == 0 && size != 0) || (each > 0 && size / each > kMostParts))
      c.fail(format("it splits {} elements by {}", size, each));
    for (int64_t at = each; each > 0 && at < size; at += each) begins.push_back(at);
  }
  return parts(c, x, axis, begins);
}
Values chunk(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  const int64_t count = c.integer("chunks");
  if (count < 1 || count > kMostParts) c.fail(format("it makes {} chunks", count));
  const int64_t each = std::max<int64_t>(1, (size + count - 1) / count);
  Ints begins = {0};
  for (int64_t at = each; at < size; at += each) begins.push_back(at);
  return parts(c, x, axis, begins);
}
Values tensor_split(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  Ints begins = {0};
  if (c.has("indices")) {
    for (int64_t at : c.ints("indices")) begins.push_back(std::clamp<int64_t>(at < 0 ? at + size : at, 0, size));
  } else {
    const int64_t count = c.integer("sections");
    if (count < 1 || count > kMostParts) c.fail(format("it makes {} parts", count));
    for (int64_t i = 0; i + 1 < count; ++i) begins.push_back(begins.back() + size / count + (i < size % count ? 1 : 0));
  }
  return parts(c, x, axis, begins);
}
Values unbind(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  if (size > kMostParts) c.fail(format("it makes {} tensors", size));
  std::vector<Value> out;
  for (int64_t i = 0; i < size; ++i) out.emplace_back(c.squeeze(c.slice(x, axis, i, i + 1), {axis}));
  return {Value::of_list(std::move(out))};
}

// Sliding windows along an axis, appended as a last axis.
Values unfold(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dimension"), c.rank(x)), width = c.integer("size"), step = c.integer("step");
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  if (width < 0 || step < 1 || width > size) c.fail(format("windows of {} do not fit {} elements", width, size));
  const int64_t count = (size - width) / step + 1;
  if (c.product({count, width}) > (int64_t{1} << 22)) c.unsupported("so many windows");
  Ints places;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < width; ++k) places.push_back(i * step + k);
  Expr index = c.reshape(c.ints_constant(places), {count, width});
  Expr taken = c.call("take", {x, index}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                        a.axis = axis;
                        a.mode = "fast";
                      }));
  // Moves the window axis of (..., count, width, ...) last.
  Ints axes;
  for (int64_t i = 0; i < c.rank(taken); ++i)
    if (i != axis + 1) axes.push_back(i);
  axes.push_back(axis + 1);
  return {c.transpose(taken, axes)};
}
Values diagonal(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t rank = c.rank(x), offset = c.integer("offset", 0);
  const int64_t a = c.dim(c.integer("dim1", 0), rank), b = c.dim(c.integer("dim2", 1), rank);
  if (a == b) c.fail("its two axes are one");
  Ints axes;
  for (int64_t i = 0; i < rank; ++i)
    if (i != a && i != b) axes.push_back(i);
  axes.push_back(a), axes.push_back(b);
  Expr e = c.transpose(x, axes);
  const Ints sizes = c.dims(e);
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  const int64_t row = std::max<int64_t>(0, -offset), column = std::max<int64_t>(0, offset);
  const int64_t count = std::max<int64_t>(0, std::min(rows - row, columns - column));
  Ints flat(sizes.begin(), sizes.end() - 2), places;
  flat.push_back(c.product({rows, columns}));
  for (int64_t i = 0; i < count; ++i) places.push_back((row + i) * columns + column + i);
  return {c.call("take", {c.reshaped(e, flat), c.ints_constant(places)}, make_attrs<relay::TakeAttrs>([&](auto& at) {
                   at.axis = rank - 2;
                   at.mode = "fast";
                 }))};
}

constexpr ConverterEntry kTable[] = {
    {"aten.view", view},
    {"aten._unsafe_view", to_sizes},
    {"aten.view_copy", view},
    {"aten._reshape_alias", to_sizes},
    {"aten.reshape", reshape},
    {"aten._reshape_copy", to_sizes},
    {"aten.view_as", as_other},
    {"aten.reshape_as", as_other},
    {"aten.flatten", flatten},
    {"aten.ravel", [](NodeContext& c) -> Values { return {c.reshaped(c.tensor("self"), {-1})}; }},
    {"aten.unflatten", unflatten},
    {"aten.permute", permute},
    {"aten.permute_copy", permute},
    {"aten.transpose", transpose},
    {"aten.transpose_copy", transpose},
    {"aten.swapaxes", swapaxes},
    {"aten.swapdims", swapaxes},
    {"aten.t", t},
    {"aten.t_copy", t},
    {"aten.mT", last_two},
    {"aten.adjoint", last_two},
    {"aten.mH", last_two},
    {"aten.numpy_T", all_axes},
    {"aten.movedim", movedim},
    {"aten.moveaxis", movedim},
    {"aten.squeeze", squeeze},
    {"aten.squeeze_copy", squeeze},
    {"aten.unsqueeze", unsqueeze},
    {"aten.unsqueeze_copy", unsqueeze},
    {"aten.expand", expand},
    {"aten.expand_copy", expand},
    {"aten.expand_as", expand_as},
    {"aten.broadcast_to", expand},
    {"aten.select", select},
    {"aten.select_copy", select},
    {"aten.slice", slice},
    {"aten.slice_copy", slice},
    {"aten.narrow", narrow},
    {"aten.split", split},
    {"aten.split_copy", split},
    {"aten.split_with_sizes", split},
    {"aten.unsafe_split_with_sizes", split},
    {"aten.split_with_sizes_copy", split},
    {"aten.chunk", chunk},
    {"aten.unsafe_chunk", chunk},
    {"aten.unsafe_split", split},
    {"aten.tensor_split", tensor_split},
    {"aten.unbind", unbind},
    {"aten.unbind_copy", unbind},
    {"aten.unfold", unfold},
    {"aten.diagonal", diagonal},
    {"aten.diagonal_copy", diagonal},
};

}  // namespace
}  // namespace view

std::span<const ConverterEntry> view_converters() { return view::kTable; }

}  // namespace tilewright::torch
