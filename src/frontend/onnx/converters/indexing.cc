// SPDX-License-Identifier: Apache-2.0
// Gathers, scatters and what selects by index or condition.
#include <algorithm>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Non-negative indices: a negative one counts from the end of the dimension.
Expr from_the_end(NodeContext& c, const Expr& indices, const Dim& size) {
  if (c.dtype(indices).is_uint() || !size.is_const()) return indices;
  if (const Tensor* t = c.known(indices)) {
    bool plain = true;
    for (int64_t i = 0; i < t->size(); ++i) plain &= t->at_int(i) >= 0;
    if (plain) return indices;
  }
  Expr wrapped = c.add(indices, c.scalar_like(static_cast<double>(size.value()), indices));
  return c.where(c.call("less", {indices, c.scalar_like(0, indices)}), wrapped, indices);
}

void check_constant_indices(NodeContext& c, const Expr& indices, const Dim& size) {
  const Tensor* t = c.known(indices);
  if (!t || !size.is_const()) return;
  for (int64_t i = 0; i < t->size(); ++i)
    if (t->at_int(i) < -size.value() || t->at_int(i) >= size.value())
      c.fail(format("the index {} is out of range for a size of {}", t->at_int(i), size.value()));
}

Values gather(NodeContext& c) {
  Expr x = c.input(0), indices = c.input(1);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x));
  check_constant_indices(c, indices, c.shape(x)[static_cast<size_t>(axis)]);
  return {c.call("take", {x, indices}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                   a.axis = axis;
                   a.mode = "fast";
                 }))};
}

Values gather_elements(NodeContext& c) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x));
  const Dim& size = c.shape(x)[static_cast<size_t>(axis)];
  check_constant_indices(c, c.input(1), size);
  return {c.call("gather", {x, c.input(1)}, make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = axis; }))};
}

// The graph IR has the axis of index tuples first, ONNX last. Negative indices are wrapped as well.
Expr tuple_first(NodeContext& c, Expr indices, const Expr& data, int64_t batch_dims) {
  int64_t rank = c.rank(indices);
  if (rank < 1) c.fail_type("its indices are a scalar");
  auto width = c.shape(indices)[static_cast<size_t>(rank - 1)].constant();
  if (!width) width = c.dims(indices).back();
  if (batch_dims < 0 || batch_dims + *width > c.rank(data))
    c.fail_type(format("index tuples of {} are too long for an operand of rank {}", *width, c.rank(data)));
  Ints sizes;
  bool known = true;
  for (int64_t i = 0; i < *width; ++i) {
    auto d = c.shape(data)[static_cast<size_t>(batch_dims + i)].constant();
    known = known && d;
    sizes.push_back(d.value_or(0));
  }
  const Tensor* t = c.known(indices);
  bool negative = !t;
  for (int64_t i = 0; t && i < t->size(); ++i) negative |= t->at_int(i) < 0;
  if (negative && known && !sizes.empty()) {
    Expr limits = c.cast(c.ints_constant(sizes), c.dtype(indices));
    indices = c.where(c.call("less", {indices, c.scalar_like(0, indices)}), c.add(indices, limits), indices);
  }
  Ints axes = {rank - 1};
  for (int64_t i = 0; i + 1 < rank; ++i) axes.push_back(i);
  return c.transpose(indices, axes);
}

// GatherND as a plain take: the indexed axes are merged into one, and each index tuple becomes a linear index.
Values gather_nd(NodeContext& c) {
  Expr x = c.input(0);
  int64_t batch = c.int_attr("batch_dims", 0);
  Expr indices = c.input(1);
  auto sizes = static_shape(c.shape(x)), index_sizes = static_shape(c.shape(indices));
  if (sizes && index_sizes && !index_sizes->empty() && batch >= 0 &&
      batch < static_cast<int64_t>(index_sizes->size()) && index_sizes->back() >= 1 &&
      batch + index_sizes->back() <= static_cast<int64_t>(sizes->size())) {
    int64_t width = index_sizes->back(), last = static_cast<int64_t>(index_sizes->size()) - 1, indexed = batch + width;
    Expr place;
    for (int64_t i = 0; i < width; ++i) {
      Expr part = c.cast(c.squeeze(c.slice(indices, last, i, i + 1), {last}), kInt64);
      const Dim size = (*sizes)[static_cast<size_t>(batch + i)];
      part = from_the_end(c, part, size);
      auto scale = static_cast<double>(c.product(*sizes, batch + i + 1, indexed));
      if (scale != 1) part = c.mul(part, c.scalar(scale, kInt64));
      place = place ? c.add(place, part) : part;
    }
    if (batch > 0) {
      // Each batch indexes its own segment of the merged axis.
      int64_t stretch = c.product(*sizes, batch, indexed), batches = c.product(*sizes, 0, batch);
      Expr starts = c.mul(c.counting(batches), c.scalar(static_cast<double>(stretch), kInt64));
      Ints shape(sizes->begin(), sizes->begin() + batch);
      shape.resize(static_cast<size_t>(last), 1);
      place = c.add(place, c.reshape(starts, shape));
    }
    Ints merged = {c.product(*sizes, 0, indexed)};
    merged.insert(merged.end(), sizes->begin() + indexed, sizes->end());
    if (std::find(merged.begin(), merged.end(), 0) == merged.end() &&
        std::find(index_sizes->begin(), index_sizes->end(), 0) == index_sizes->end())
      return {c.call("take", {c.reshape(x, merged), place}, make_attrs<relay::TakeAttrs>([](auto& a) {
                       a.axis = 0;
                       a.mode = "clip";
                     }))};
  }
  return {c.call("gather_nd", {x, tuple_first(c, c.input(1), x, batch)},
                 make_attrs<relay::GatherNDAttrs>([&](auto& a) { a.batch_dims = batch; }))};
}

std::string reduction_of(NodeContext& c) {
  std::string reduction = c.string_attr("reduction", "none");
  if (reduction == "none") return "update";
  if (reduction != "add" && reduction != "mul" && reduction != "min" && reduction != "max")
    c.fail(format("its reduction '{}' is unknown", reduction));
  return reduction;
}

Values scatter_nd(NodeContext& c) {
  Expr x = c.input(0);
  std::string mode = reduction_of(c);
  return {c.call("scatter_nd", {x, tuple_first(c, c.input(1), x, 0), c.input(2)},
                 make_attrs<relay::ScatterNDAttrs>([&](auto& a) { a.mode = mode; }))};
}

Values scatter_elements(NodeContext& c) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x));
  std::string reduction = reduction_of(c);
  const Dim& size = c.shape(x)[static_cast<size_t>(axis)];
  check_constant_indices(c, c.input(1), size);
  return {c.call("scatter_elements", {x, from_the_end(c, c.input(1), size), c.input(2)},
                 make_attrs<relay::ScatterElementsAttrs>([&](auto& a) {
                   a.axis = axis;
                   a.reduction = reduction;
                 }))};
}

Values one_hot(NodeContext& c) {
  Expr indices = c.input(0), values = c.input(2);
  Tensor depth_value = c.constant(1, "depth");
  if (depth_value.size() != 1) c.fail_type("its depth is not one number");
  auto depth = static_cast<int64_t>(depth_value.at_double(0));
  if (depth < 1 || depth > (int64_t{1} << 31)) c.fail(format("its depth is {}", depth));
  int64_t axis = c.axis(c.int_attr("axis", -1), c.rank(indices) + 1);
  Expr whole = c.cast(indices, kInt64);
  whole = c.where(c.call("less", {whole, c.scalar(0, kInt64)}),
                  c.add(whole, c.scalar(static_cast<double>(depth), kInt64)), whole);
  auto pick = [&](int64_t i) { return c.squeeze(c.slice(values, 0, i, i + 1), {0}); };
  Expr places = c.expand(c.counting(depth), 1, c.rank(indices) - axis);
  return {c.where(c.call("equal", {c.expand(whole, axis), places}), pick(1), pick(0))};
}

Values non_zero(NodeContext& c) {
  Expr x = c.input(0);
  return {c.cast(c.transpose(c.call("argwhere", {x}), {1, 0}), kInt64)};
}

Values compress(NodeContext& c) {
  Expr x = c.input(0);
  Tensor condition = c.constant(1, "condition");
  if (condition.rank() != 1) c.fail_type("its condition is not a vector");
  int64_t axis = 0;
  if (c.has_attr("axis"))
    axis = c.axis(c.int_attr("axis"), c.rank(x));
  else
    x = c.reshape(x, {-1});
  Ints kept;
  for (int64_t i = 0; i < condition.size(); ++i)
    if (condition.at_int(i) != 0) kept.push_back(i);
  check_constant_indices(c, c.ints_constant(kept), c.shape(x)[static_cast<size_t>(axis)]);
  return {c.call("take", {x, c.ints_constant(kept)}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                   a.axis = axis;
                   a.mode = "fast";
                 }))};
}

Values reverse_sequence(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  return {c.call("reverse_sequence", {x, c.input(1)}, make_attrs<relay::ReverseSequenceAttrs>([&](auto& a) {
                   a.seq_axis = c.axis(c.int_attr("time_axis", 0), rank);
                   a.batch_axis = c.axis(c.int_attr("batch_axis", 1), rank);
                 }))};
}

Values grid_sample(NodeContext& c) {
  Expr x = c.input(0), grid = c.input(1);
  const int64_t rank = c.rank(x);
  if (rank != 4 && rank != 5) c.unsupported("another number of spatial axes than two or three");
  std::string mode = c.string_attr("mode", "linear"), padding = c.string_attr("padding_mode", "zeros");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  if (mode != "bilinear" && mode != "bicubic" && mode != "nearest") c.fail(format("its mode '{}' is unknown", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    c.fail(format("its padding_mode '{}' is unknown", padding));
  if (rank == 5 && mode == "bicubic") c.unsupported("cubic over three spatial axes");
  Ints order{0, rank - 1};
  for (int64_t d = 1; d + 1 < rank; ++d) order.push_back(d);
  // Other types are sampled as a float type that holds them exactly, and truncated afterwards.
  const DataType dtype = c.dtype(x);
  if (!dtype.is_float()) x = c.cast(x, dtype.bits < 32 ? kFloat32 : kFloat64);
  Expr y = c.call("image.grid_sample", {x, c.transpose(grid, order)}, make_attrs<relay::GridSampleAttrs>([&](auto& a) {
                    if (rank == 5) a.layout = "NCDHW";
                    a.method = mode;
                    a.padding_mode = padding;
                    a.align_corners = c.int_attr("align_corners", 0) != 0;
                  }));
  return {c.cast(y, dtype)};
}

constexpr ConverterEntry kIndexingConverters[] = {
    {"Gather", 1, gather},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"GatherND", 1, gather_nd, "com.microsoft"},
    {"ScatterND", 11, scatter_nd},
    {"ScatterElements", 11, scatter_elements},
    {"Scatter", 9, scatter_elements},
    {"OneHot", 9, one_hot},
    {"NonZero", 9, non_zero},
    {"Compress", 9, compress},
    {"ReverseSequence", 10, reverse_sequence},
    {"GridSample", 16, grid_sample},
    {"GridSample", 1, grid_sample, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> indexing_converters() { return kIndexingConverters; }

}  // namespace tilewright::onnx
