// SPDX-License-Identifier: Apache-2.0
// Concatenation, repetition, permutation and padding; sizes as numbers.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/alias.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace shape {
namespace {

using Ints = std::vector<int64_t>;

// The tensors of a list, cast to their promoted type.
std::vector<Expr> of_one_type(NodeContext& c, const char* name) {
  const Value& list = c.value(name);
  if (!list.list || list.list->empty()) c.fail(format("its argument '{}' is not a list of tensors", name));
  std::vector<const Value*> all;
  for (const Value& v : *list.list) all.push_back(&v);
  const DataType dtype = c.promoted(all);
  std::vector<Expr> out;
  for (const Value& v : *list.list) out.push_back(c.as_tensor(v, dtype));
  return out;
}
Expr joined(NodeContext& c, std::vector<Expr> parts, int64_t axis) {
  // cat ignores empty vectors, whatever the shape of the others.
  std::vector<Expr> kept;
  for (const Expr& e : parts)
    if (!(c.rank(e) == 1 && c.shape(e).at(0) == Dim(0))) kept.push_back(e);
  if (kept.empty()) return parts[0];
  return c.concat(kept, c.dim(axis, c.rank(kept[0])));
}
Values cat(NodeContext& c) { return {joined(c, of_one_type(c, "tensors"), c.integer("dim", 0))}; }
Values stack(NodeContext& c) {
  std::vector<Expr> parts = of_one_type(c, "tensors");
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(parts[0]) + 1);
  for (Expr& e : parts) e = c.expand(e, axis);
  return {c.concat(parts, axis)};
}
Values hstack(NodeContext& c) {
  std::vector<Expr> parts = of_one_type(c, "tensors");
  for (Expr& e : parts)
    if (c.rank(e) == 0) e = c.reshape(e, {1});
  const int64_t axis = c.rank(parts[0]) == 1 ? 0 : 1;
  return {joined(c, parts, axis)};
}
Values vstack(NodeContext& c) {
  std::vector<Expr> parts = of_one_type(c, "tensors");
  for (Expr& e : parts) e = c.rank(e) == 0 ? c.reshape(e, {1, 1}) : c.rank(e) == 1 ? c.expand(e, 0) : e;
  return {joined(c, parts, 0)};
}

Expr tiled(NodeContext& c, Expr x, Ints repeats) {
  if (repeats.size() < static_cast<size_t>(c.rank(x)))
    repeats.insert(repeats.begin(), static_cast<size_t>(c.rank(x)) - repeats.size(), 1);
  x = c.expand(x, 0, static_cast<int64_t>(repeats.size()) - c.rank(x));
  for (int64_t r : repeats)
    if (r < 0) c.fail(format("a repeat is {}", r));
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; })) return x;
  return c.call("tile", {x}, make_attrs<relay::TileAttrs>([&](auto& a) { a.reps = repeats; }));
}
Values repeat(NodeContext& c) {
  const Ints repeats = c.ints("repeats");
  if (repeats.size() < static_cast<size_t>(c.rank(c.tensor("self"))))
    c.fail("it has fewer repeats than the tensor has axes");
  return {tiled(c, c.tensor("self"), repeats)};
}
Values tile(NodeContext& c) { return {tiled(c, c.tensor("self"), c.ints("dims"))}; }
Values repeat_interleave(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool whole = !c.has("dim");
  if (whole) x = c.reshaped(x, {-1});
  const int64_t axis = whole ? 0 : c.dim(c.integer("dim"), c.rank(x));
  const Tensor times = c.constant(c.value("repeats").expr, "repeats");
  if (!times.dtype().is_integral()) c.fail_type("its repeats are not integers");
  if (times.size() == 1) {
    if (times.at_int(0) < 0) c.fail(format("a repeat is {}", times.at_int(0)));
    return {c.call("repeat", {x}, make_attrs<relay::RepeatAttrs>([&](auto& a) {
                     a.repeats = times.at_int(0);
                     a.axis = axis;
                   }))};
  }
  if (times.size() != c.dims(x).at(static_cast<size_t>(axis))) c.fail("it has another number of repeats than elements");
  Ints places;
  for (int64_t i = 0; i < times.size(); ++i) {
    const int64_t n = times.at_int(i);
    if (n < 0 || n > (1 << 20) || places.size() > (1u << 20)) c.fail(format("a repeat is {}", n));
    places.insert(places.end(), static_cast<size_t>(n), i);
  }
  return {c.call("take", {x, c.ints_constant(places)}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                   a.axis = axis;
                   a.mode = "fast";
                 }))};
}

Values flip(NodeContext& c) {
  Expr x = c.tensor("self");
  for (int64_t axis : c.axes("dims", c.rank(x)))
    x = c.call("reverse", {x}, make_attrs<relay::ReverseAttrs>([&](auto& a) { a.axis = axis; }));
  return {x};
}
Expr rolled(NodeContext& c, const Expr& x, int64_t axis, int64_t shift) {
  const int64_t size = c.dims(x).at(static_cast<size_t>(axis));
  if (size == 0) return x;
  const int64_t back = ((shift % size) + size) % size;
  if (back == 0) return x;
  return c.concat({c.slice(x, axis, size - back, size), c.slice(x, axis, 0, size - back)}, axis);
}
Values roll(NodeContext& c) {
  Expr x = c.tensor("self");
  const Ints shifts = c.ints("shifts"), axes = c.ints("dims", Ints());
  if (axes.empty()) {
    const Ints sizes = c.dims(x);
    return {c.reshaped(rolled(c, c.reshaped(x, {-1}), 0, shifts.at(0)), sizes)};
  }
  if (axes.size() != shifts.size()) c.fail("it has as many shifts as axes");
  for (size_t i = 0; i < axes.size(); ++i) x = rolled(c, x, c.dim(axes[i], c.rank(x)), shifts[i]);
  return {x};
}

template <bool kUpper>
Values triangle(NodeContext& c) {
  Expr x = c.tensor("self");
  const bool boolean = c.dtype(x).is_bool();
  Expr y = c.onnx(
      "Trilu", 14,
      {boolean ? c.cast(x, kUInt8) : x, c.constant_of(Tensor::scalar<int64_t>(kInt64, c.integer("diagonal", 0)))},
      {{"upper", int64_t{kUpper}}})[0];
  return {boolean ? c.cast(y, kBool) : y};
}

// Pairs of (before, after), from the last axis backwards.
std::vector<Ints> pad_widths(NodeContext& c, const Expr& x, const Ints& pads) {
  const auto rank = static_cast<size_t>(c.rank(x));
  if (pads.size() % 2 != 0 || pads.size() / 2 > rank) c.fail(format("{} pads do not fit the tensor", pads.size()));
  std::vector<Ints> widths(rank, Ints{0, 0});
  for (size_t i = 0; i < pads.size() / 2; ++i) widths[rank - 1 - i] = {pads[2 * i], pads[2 * i + 1]};
  return widths;
}
Expr padded(NodeContext& c, Expr x, const Ints& pads, const std::string& mode, const Value* value) {
  std::vector<Ints> widths = pad_widths(c, x, pads);
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return x;
  const Ints sizes = c.dims(x);
  for (size_t i = 0; i < widths.size(); ++i) {
    // Negative padding crops.
    const int64_t begin = std::max<int64_t>(0, -widths[i][0]), end = sizes[i] - std::max<int64_t>(0, -widths[i][1]);
    if (begin > 0 || end < sizes[i]) {
      if (begin > end) c.fail("its padding takes more away than there is");
      x = c.slice(x, static_cast<int64_t>(i), begin, end);
    }
    const bool mirrors = mode == "reflect" && (widths[i][0] >= sizes[i] || widths[i][1] >= sizes[i]);
    if (mirrors && (widths[i][0] > 0 || widths[i][1] > 0)) c.fail("its padding is wider than what it reflects");
    widths[i] = {std::max<int64_t>(0, widths[i][0]), std::max<int64_t>(0, widths[i][1])};
  }
  const bool boolean = c.dtype(x).is_bool();
  if (boolean) x = c.cast(x, kUInt8);
  Expr fill = value ? c.as_tensor(*value, c.dtype(x)) : c.zero_like(x);
  const std::string kind = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
  Expr y = c.call("nn.pad", {x, fill}, make_attrs<relay::PadAttrs>([&](auto& a) {
                    a.pad_width = widths;
                    a.pad_mode = kind;
                  }));
  return boolean ? c.cast(y, kBool) : y;
}
Values pad(NodeContext& c) {
  const std::string mode = c.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "replicate" && mode != "circular")
    c.fail(format("its mode '{}' is unknown", mode));
  return {padded(c, c.tensor("self"), c.ints("pad"), mode, c.find("value"))};
}
Values constant_pad(NodeContext& c) {
  return {padded(c, c.tensor("self"), c.ints("pad"), "constant", c.find("value"))};
}
Values reflection_pad(NodeContext& c) { return {padded(c, c.tensor("self"), c.ints("padding"), "reflect", nullptr)}; }
Values replication_pad(NodeContext& c) {
  return {padded(c, c.tensor("self"), c.ints("padding"), "replicate", nullptr)};
}

Values pixel_shuffle(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t r = c.integer("upscale_factor"), rank = c.rank(x);
  const Ints d = c.dims(x);
  if (rank < 3 || r < 1 || r > (1 << 15) || d[d.size() - 3] % (r * r) != 0)
    c.fail("its channels are no squares of the factor");
  const int64_t front = c.product(d, 0, rank - 3), channels = d[d.size() - 3] / (r * r), h = d[d.size() - 2],
                w = d.back();
  Expr y = c.transpose(c.reshaped(x, {front, channels, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  Ints out(d.begin(), d.end() - 3);
  for (int64_t n : {channels, h * r, w * r}) out.push_back(n);
  return {c.reshaped(y, out)};
}
Values pixel_unshuffle(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t r = c.integer("downscale_factor"), rank = c.rank(x);
  const Ints d = c.dims(x);
  if (rank < 3 || r < 1 || r > (1 << 15) || d[d.size() - 2] % r != 0 || d.back() % r != 0)
    c.fail("its factor does not divide its sizes");
  const int64_t front = c.product(d, 0, rank - 3), channels = d[d.size() - 3], h = d[d.size() - 2] / r,
                w = d.back() / r;
  Expr y = c.transpose(c.reshaped(x, {front, channels, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  Ints out(d.begin(), d.end() - 3);
  for (int64_t n : {channels * r * r, h, w}) out.push_back(n);
  return {c.reshaped(y, out)};
}
Values channel_shuffle(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t groups = c.integer("groups");
  const Ints d = c.dims(x);
  if (d.size() < 3 || groups < 1 || d[1] % groups != 0) c.fail("its groups do not divide the channels");
  Expr y = c.transpose(c.reshaped(x, {d[0], groups, d[1] / groups, c.product(d, 2)}), {0, 2, 1, 3});
  return {c.reshaped(y, d)};
}

Values broadcast_tensors(NodeContext& c) {
  Ints joint;
  const std::vector<Expr> tensors = c.tensors("tensors");
  for (const Expr& e : tensors) {
    const Ints d = c.dims(e);
    if (d.size() > joint.size()) joint.insert(joint.begin(), d.size() - joint.size(), 1);
    for (size_t i = 0; i < d.size(); ++i) {
      int64_t& to = joint[joint.size() - d.size() + i];
      to = to == 1 ? d[i] : to;
    }
  }
  std::vector<Value> out;
  for (const Expr& e : tensors) out.emplace_back(c.broadcast_to(e, joint));
  return {Value::of_list(std::move(out))};
}
Values meshgrid(NodeContext& c) {
  std::vector<Expr> vectors = c.tensors("tensors");
  const std::string indexing = c.text("indexing", "ij");
  for (Expr& v : vectors)
    if (c.rank(v) == 0) v = c.reshape(v, {1});
  Expr grid = c.call("meshgrid", {relay::make_tuple(vectors)},
                     make_attrs<relay::MeshgridAttrs>([&](auto& a) { a.indexing = indexing; }));
  std::vector<Value> out;
  for (size_t i = 0; i < vectors.size(); ++i) out.emplace_back(c.get(grid, static_cast<int64_t>(i)));
  return {Value::of_list(std::move(out))};
}
Values select_scatter(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t axis = c.dim(c.integer("dim"), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  int64_t at = c.integer("index");
  at = at < 0 ? at + size : at;
  if (at < 0 || at >= size) c.fail(format("its index {} is out of range for a size of {}", at, size));
  std::vector<Expr> all;
  if (at > 0) all.push_back(c.slice(x, axis, 0, at));
  all.push_back(c.expand(c.cast(c.tensor("src"), c.dtype(x)), axis));
  if (at + 1 < size) all.push_back(c.slice(x, axis, at + 1, size));
  return {c.concat(all, axis)};
}
Values slice_scatter(NodeContext& c) {
  Expr x = c.tensor("self"), source = c.cast(c.tensor("src"), c.dtype(x));
  const int64_t axis = c.dim(c.integer("dim", 0), c.rank(x)), size = c.dims(x).at(static_cast<size_t>(axis));
  const int64_t step = c.integer("step", 1);
  auto within = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t begin = within(c.integer("start", 0)), count = c.dims(source).at(static_cast<size_t>(axis));
  if (step < 1 || begin + (count - 1) * step >= size + (count == 0)) c.fail("its part does not fit the axis");
  if (count == 0) return {x};
  Ints places;
  for (int64_t i = 0; i < count; ++i) places.push_back(begin + i * step);
  if (step == 1) {
    std::vector<Expr> all;
    if (begin > 0) all.push_back(c.slice(x, axis, 0, begin));
    all.push_back(source);
    if (begin + count < size) all.push_back(c.slice(x, axis, begin + count, size));
    return {c.concat(all, axis)};
  }
  Expr index = c.expand(c.ints_constant(places), 1, c.rank(x) - axis - 1);
  return {c.call("scatter_elements", {x, c.broadcast_to(index, c.dims(source)), source},
                 make_attrs<relay::ScatterElementsAttrs>([&](auto& a) { a.axis = axis; }))};
}

// Where the elements of a view by strides stand in memory.
Ints places_in_memory(NodeContext& c, int64_t elements) {
  const Ints size = c.ints("size"), stride = c.ints("stride");
  if (size.size() != stride.size()) c.fail("it has not as many strides as sizes");
  const int64_t count = c.product(size);
  if (count > (int64_t{1} << 24)) c.unsupported(format("{} places in memory", count));
  Ints places = {c.integer("storage_offset", 0)};
  for (size_t i = 0; i < size.size(); ++i) {
    Ints longer;
    for (const int64_t at : places)
      for (int64_t k = 0; k < size[i]; ++k) longer.push_back(at + k * stride[i]);
    places = std::move(longer);
  }
  for (const int64_t at : places)
    if (at < 0 || at >= elements) c.fail("it shows memory outside of its tensor");
  return places;
}
// Elements by their places in memory, whatever the tensor shows of it.
Values as_strided(NodeContext& c) {
  const View* view = c.value("self").view.get();
  if (view && !c.has("storage_offset") && !begins_its_memory(*view))
    c.unsupported("places in memory behind the first of what it shows");
  const Expr x = view ? view->memory->whole : c.tensor("self");
  const Ints size = c.ints("size");
  const int64_t elements = c.product(c.dims(x));
  const Ints places = places_in_memory(c, elements);
  bool in_order = static_cast<int64_t>(places.size()) == elements;
  for (size_t i = 0; i < places.size(); ++i) in_order = in_order && places[i] == static_cast<int64_t>(i);
  if (in_order) return {c.reshaped(x, size)};
  const Expr flat = c.call("take", {c.reshaped(x, {-1}), c.ints_constant(places)},
                           make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
  return {c.reshaped(flat, size)};
}

// The tensor with what such a view shows replaced.
Values as_strided_scatter(NodeContext& c) {
  const Expr x = c.tensor("self"), source = c.cast(c.tensor("src"), c.dtype(x));
  const Ints places = places_in_memory(c, c.product(c.dims(x)));
  if (places.empty()) return {x};
  const Expr flat = c.call("scatter_elements", {c.reshaped(x, {-1}), c.ints_constant(places), c.reshaped(source, {-1})},
                           make_attrs<relay::ScatterElementsAttrs>([](auto& a) { a.axis = 0; }));
  return {c.reshaped(flat, c.dims(x))};
}
// The same by PyTorch's older names of the arguments.
Values prims_as_strided_scatter(NodeContext& c) {
  NamedValues arguments;
  constexpr const char* kNames[] = {"self", "src", "size", "stride", "storage_offset"};
  for (size_t i = 0; i < c.argument_count() && i < std::size(kNames); ++i)
    arguments.emplace_back(kNames[i], c.positional(i));
  return c.aten("aten.as_strided_scatter.default", std::move(arguments));
}

Values sym_size(NodeContext& c) {
  Expr x = c.tensor("self");
  auto one = [&](int64_t axis) {
    const Dim& d = c.shape(x).at(static_cast<size_t>(axis));
    if (auto n = d.constant()) return Value::number(c.constant_of(Tensor::scalar<int64_t>(kInt64, *n)));
    Expr all = c.call("shape_of", {x}, make_attrs<relay::ShapeOfAttrs>([](auto& a) { a.dtype = kInt64; }));
    return Value::number(c.reshape(c.slice(all, 0, axis, axis + 1), {}));
  };
  if (c.has("dim")) {
    if (c.rank(x) == 0) c.fail_type("a scalar has no sizes");
    return {one(c.dim(c.integer("dim"), c.rank(x)))};
  }
  std::vector<Value> sizes;
  for (int64_t i = 0; i < c.rank(x); ++i) sizes.push_back(one(i));
  return {Value::of_list(std::move(sizes))};
}
Values numel(NodeContext& c) {
  Expr x = c.tensor("self");
  if (auto sizes = static_shape(c.shape(x)))
    return {Value::number(c.constant_of(Tensor::scalar<int64_t>(kInt64, c.product(*sizes))))};
  return {Value::number(
      c.call("ndarray_size", {x}, make_attrs<relay::NdarraySizeAttrs>([](auto& a) { a.dtype = kInt64; })))};
}
// The tensor's only element as a Python number.
Values item(NodeContext& c) {
  Expr x = c.tensor("self");
  const DataType dtype = c.dtype(x);
  return {Value::number(c.cast(c.rank(x) == 0 ? x : c.reshape(x, {}), dtype.is_float()  ? kFloat64
                                                                      : dtype.is_bool() ? kBool
                                                                                        : kInt64))};
}
Values getitem(NodeContext& c) {
  const Value& list = c.positional(0);
  const int64_t at = c.integer_of(c.positional(1), "index");
  if (!list.list) c.fail_type("what it takes an item of is not a list");
  const auto size = static_cast<int64_t>(list.list->size());
  if (at < -size || at >= size) c.fail(format("its index {} is out of range for {} items", at, size));
  return {list.list->at(static_cast<size_t>(at < 0 ? at + size : at))};
}
// Assertions that PyTorch makes at run time hold by the export: they are dropped.
Values nothing(NodeContext&) { return {}; }

constexpr ConverterEntry kTable[] = {
    {"aten.cat", cat},
    {"aten.concat", cat},
    {"aten.concatenate", cat},
    {"aten.stack", stack},
    {"aten.hstack", hstack},
    {"aten.vstack", vstack},
    {"aten.row_stack", vstack},
    {"aten.repeat", repeat},
    {"aten.tile", tile},
    {"aten.repeat_interleave", repeat_interleave},
    {"aten.flip", flip},
    {"aten.roll", roll},
    {"aten.triu", triangle<true>},
    {"aten.tril", triangle<false>},
    {"aten.pad", pad},
    {"aten.constant_pad_nd", constant_pad},
    {"aten.reflection_pad1d", reflection_pad},
    {"aten.reflection_pad2d", reflection_pad},
    {"aten.reflection_pad3d", reflection_pad},
    {"aten.replication_pad1d", replication_pad},
    {"aten.replication_pad2d", replication_pad},
    {"aten.replication_pad3d", replication_pad},
    {"aten.pixel_shuffle", pixel_shuffle},
    {"aten.pixel_unshuffle", pixel_unshuffle},
    {"aten.channel_shuffle", channel_shuffle},
    {"aten.broadcast_tensors", broadcast_tensors},
    {"aten.meshgrid", meshgrid},
    {"aten.select_scatter", select_scatter},
    {"aten.slice_scatter", slice_scatter},
    {"aten.as_strided", as_strided},
    {"aten.as_strided_scatter", as_strided_scatter},
    {"prims.as_strided_scatter", prims_as_strided_scatter},
    {"aten.sym_size", sym_size},
    {"aten.size", sym_size},
    {"aten.sym_numel", numel},
    {"aten.numel", numel},
    {"aten.item", item},
    {"aten._local_scalar_dense", item},
    {"operator.getitem", getitem},
    {"aten._assert_tensor_metadata", nothing},
    {"aten._assert_scalar", nothing},
    {"aten._assert_async", nothing},
    {"aten._check", nothing},
    {"aten.sym_constrain_range", nothing},
    {"aten.sym_constrain_range_for_size", nothing},
};

}  // namespace
}  // namespace shape

std::span<const ConverterEntry> shape_converters() { return shape::kTable; }

}  // namespace tilewright::torch
