// SPDX-License-Identifier: Apache-2.0
// Composites that place elements elsewhere: diagonals, grids of indices, stacks and splits by an axis's name.
#include <algorithm>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace rearrange {
namespace {

using Ints = std::vector<int64_t>;

// A matrix's diagonal, or the matrix of a vector.
Values diag(NodeContext& c) {
  const Expr x = c.tensor("self");
  const Value offset = whole(c.integer("diagonal", 0));
  return c.aten(c.rank(x) == 1 ? "aten.diag_embed.default" : "aten.diagonal.default",
                {{"self", x}, {"offset", offset}});
}
Values block_diag(NodeContext& c) {
  std::vector<Expr> blocks;
  int64_t width = 0;
  for (Expr e : c.tensors("tensors")) {
    if (c.rank(e) > 2) c.fail_type("an operand is not a matrix");
    e = c.expand(e, 0, 2 - c.rank(e));
    width += c.dims(e)[1];
    blocks.push_back(std::move(e));
  }
  std::vector<Expr> rows;
  int64_t left = 0;
  for (const Expr& e : blocks) {
    const Ints d = c.dims(e);
    const DataType dtype = c.dtype(e);
    rows.push_back(c.concat({c.zeros(dtype, {d[0], left}), e, c.zeros(dtype, {d[0], width - left - d[1]})}, 1));
    left += d[1];
  }
  return {c.concat(std::move(rows), 0)};
}
Values fill_diagonal(NodeContext& c) {
  const Expr x = c.tensor("self");
  const Ints d = c.dims(x);
  if (d.size() != 2 || (c.flag("wrap", false) && d[0] > d[1])) c.unsupported("other than matrices, or wrapped ones");
  const Expr on = c.call("equal", {c.expand(c.counting(d[0]), 1), c.expand(c.counting(d[1]), 0)});
  return {c.where(on, c.as_tensor(c.value("fill_value"), c.dtype(x)), x)};
}
// The tensor with a diagonal of its own in place of what is there.
Values diagonal_scatter(NodeContext& c) {
  const Expr x = c.tensor("self"), src = c.tensor("src");
  const int64_t rank = c.rank(x), first = c.dim(c.integer("dim1", 0), rank), second = c.dim(c.integer("dim2", 1), rank);
  const int64_t offset = c.integer("offset", 0);
  const int64_t rows = c.dims(x)[static_cast<size_t>(first)], columns = c.dims(x)[static_cast<size_t>(second)];
  if (first == second) c.fail("its axes are the same");
  auto along = [&](int64_t axis, int64_t size) { return c.expand(c.counting(size), 1, rank - 1 - axis); };
  const Expr row = along(first, rows), column = along(second, columns);
  const Expr on = c.call("equal", {c.sub(column, row), c.scalar(static_cast<double>(offset), kInt64)});
  // Each place reads the diagonal at its row (or column); those off it are not chosen.
  const int64_t count = c.dims(src).back();
  const int64_t size = offset >= 0 ? rows : columns;
  Expr values = src;
  if (count < size) {
    Ints more = c.dims(src);
    more.back() = size - count;
    values = c.concat({src, c.zeros(c.dtype(src), more)}, c.rank(src) - 1);
  }
  values = c.expand(values, offset >= 0 ? rank - 1 : rank - 2);
  const Expr placed =
      c.one_of("aten.movedim.intlist", {{"self", values},
                                        {"source", Value::of_list({whole(rank - 2), whole(rank - 1)})},
                                        {"destination", Value::of_list({whole(first), whole(second)})}});
  return {c.where(on, c.cast(placed, c.dtype(x)), x)};
}

// ---- indices

template <bool kLower>
Values triangle_indices(NodeContext& c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset", 0);
  if (rows < 0 || columns < 0 || c.product({rows, columns}) > (1 << 24)) c.fail("its sizes are impossible");
  Ints of_rows, of_columns;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (kLower ? j - i <= offset : j - i >= offset) of_rows.push_back(i), of_columns.push_back(j);
  const Expr both = c.concat({c.expand(c.ints_constant(of_rows), 0), c.expand(c.ints_constant(of_columns), 0)}, 0);
  return {c.cast(both, c.dtype_arg("dtype", kInt64))};
}
Values cartesian_product(NodeContext& c) {
  const std::vector<Expr> parts = c.tensors("tensors");
  if (parts.size() == 1) return {parts[0]};
  Ints sizes;
  for (const Expr& e : parts) sizes.push_back(c.dims(e).at(0));
  std::vector<Expr> columns;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr wide = c.expand(parts[i], 1, static_cast<int64_t>(parts.size() - 1 - i));
    columns.push_back(c.reshape(c.broadcast_to(wide, sizes), {-1, 1}));
  }
  return {c.concat(std::move(columns), 1)};
}
Values is_in(NodeContext& c) {
  const Expr x = c.tensor("elements");
  const Expr tests = c.reshaped(c.cast(c.tensor("test_elements"), c.dtype(x)), {-1});
  Expr found = c.call("equal", {c.expand(x, c.rank(x)), tests});
  found = c.reduce("any", found, {c.rank(x)}, false);
  return {c.flag("invert", false) ? c.call("logical_not", {found}) : found};
}
// Whether all elements are equal, as a number.
Values all_equal(NodeContext& c) {
  const Expr a = c.tensor("self"), b = c.tensor("other");
  if (c.dims(a) != c.dims(b)) return {Value::number(c.scalar(0, kBool))};
  Ints axes;
  for (int64_t i = 0; i < c.rank(a); ++i) axes.push_back(i);
  const Expr same = c.call("equal", {a, c.cast(b, c.dtype(a))});
  return {Value::number(axes.empty() ? same : c.reduce("all", same, axes, false))};
}
Values vandermonde(NodeContext& c) {
  const Expr x = c.tensor("x");
  const int64_t count = c.integer("N", c.dims(x).at(0));
  if (count < 0 || count > 256) c.unsupported(format("{} columns", count));
  std::vector<Expr> columns;
  Expr power = c.call("ones_like", {x});
  for (int64_t i = 0; i < count; ++i, power = c.mul(power, x)) columns.push_back(c.expand(power, 1));
  if (!c.flag("increasing", false)) std::reverse(columns.begin(), columns.end());
  return {c.concat(std::move(columns), 1)};
}

// ---- stacks and splits

Values column_stack(NodeContext& c) {
  std::vector<Expr> parts;
  for (const Expr& e : c.tensors("tensors")) parts.push_back(c.rank(e) < 2 ? c.reshaped(e, {-1, 1}) : e);
  return {c.concat(std::move(parts), 1)};
}
Values depth_stack(NodeContext& c) {
  std::vector<Expr> parts;
  for (const Expr& e : c.tensors("tensors")) parts.push_back(c.one_of("aten.atleast_3d.default", {{"self", e}}));
  return {c.concat(std::move(parts), 2)};
}
template <int kAxis>
Values split_along(NodeContext& c) {
  const bool only = kAxis == 1 && c.rank(c.tensor("self")) == 1;
  const bool places = c.has("indices");
  return c.aten(places ? "aten.tensor_split.indices" : "aten.tensor_split.sections",
                {{"self", c.value("self")},
                 {places ? "indices" : "sections", c.value(places ? "indices" : "sections")},
                 {"dim", whole(only ? 0 : kAxis)}});
}
template <int kAxis>
Values flipped(NodeContext& c) {
  return c.aten("aten.flip.default", {{"self", c.value("self")}, {"dims", Value::of_list({whole(kAxis)})}});
}

// Writes values back to the places that a maximum pooling gave.
Values max_unpool(NodeContext& c) {
  const Expr x = c.tensor("self"), places = c.cast(c.tensor("indices"), kInt64);
  Ints d = c.dims(x), sizes = c.ints("output_size");
  if (sizes.size() >= d.size()) c.fail("its output has more axes than its input");
  const size_t outer = d.size() - sizes.size();
  const int64_t area = c.product(sizes), images = c.product(d, 0, static_cast<int64_t>(outer));
  auto flat = [&](const Expr& e) { return c.reshape(e, {images, -1}); };
  const Expr made = c.call("scatter_elements", {c.zeros(c.dtype(x), {images, area}), flat(places), flat(x)},
                           make_attrs<relay::ScatterElementsAttrs>([](auto& a) { a.axis = 1; }));
  sizes.insert(sizes.begin(), d.begin(), d.begin() + static_cast<int64_t>(outer));
  return {c.reshape(made, sizes)};
}

// ---- products

Values outer_added(NodeContext& c) {
  const Expr product = c.mul(c.expand(c.tensor("vec1"), 1), c.expand(c.tensor("vec2"), 0));
  const Expr x = c.tensor("self");
  auto times = [&](const Expr& e, const char* name) {
    const double factor = c.number(name, 1);
    return factor == 1 ? e : c.mul(e, c.scalar_like(factor, e));
  };
  return {c.add(times(x, "beta"), times(product, "alpha"))};
}
Values product_of_all(NodeContext& c) {
  const std::vector<Expr> parts = c.tensors(c.has("tensors") ? "tensors" : "matrices");
  Expr out = parts.at(0);
  for (size_t i = 1; i < parts.size(); ++i) out = c.one_of("aten.matmul.default", {{"self", out}, {"other", parts[i]}});
  return {out};
}
Values scaled_by_powers(NodeContext& c) {
  const DataType dtype = c.promoted_real({&c.value("self"), &c.value("other")});
  const Expr power = c.call("power", {c.scalar(2, dtype), c.as_tensor(c.value("other"), dtype)});
  return {c.mul(c.as_tensor(c.value("self"), dtype), power)};
}

// Tensors of other lengths as rows of one, filled up behind (or before) their ends.
Values padded_rows(NodeContext& c) {
  const std::vector<Expr> rows = c.tensors("sequences");
  if (rows.empty()) c.fail("it has no sequences");
  int64_t longest = 0;
  for (const Expr& row : rows) longest = std::max(longest, c.dims(row).at(0));
  std::vector<Expr> out;
  for (const Expr& row : rows) {
    Ints rest = c.dims(row);
    rest[0] = longest - rest[0];
    const Expr fill = c.broadcast_to(c.scalar(c.number("padding_value", 0), c.dtype(row)), rest);
    const bool before = c.text("padding_side", "right") == "left";
    const Expr whole_row = rest[0] == 0 ? row : before ? c.concat({fill, row}, 0) : c.concat({row, fill}, 0);
    out.push_back(c.expand(whole_row, c.flag("batch_first", false) ? 0 : 1));
  }
  return {c.concat(std::move(out), c.flag("batch_first", false) ? 0 : 1)};
}

// ---- sparse tensors, which are dense here: sums of the values at each place

Values sparse_as_dense(NodeContext& c) {
  const Expr indices = c.tensor("indices"), values = c.tensor("values");
  Values places;
  for (int64_t i = 0; i < c.dims(indices).at(0); ++i)
    places.emplace_back(c.squeeze(c.slice(indices, 0, i, i + 1), {0}));
  if (!c.has("size")) c.unsupported("a sparse tensor without sizes");
  const Expr nothing = c.zeros(c.dtype(values), c.ints("size"));
  return c.aten("aten.index_put.default",
                {{"self", Value(nothing)},
                 {"indices", Value::of_list(std::move(places))},
                 {"values", Value(values)},
                 {"accumulate", Value::number(c.constant_of(Tensor::scalar<bool>(kBool, true)))}});
}
Values already_dense(NodeContext& c) { return {c.positional(0)}; }
Values sparse_product(NodeContext& c) {
  return {c.one_of("aten.mm.default", {{"self", c.positional(0)}, {"mat2", c.positional(1)}})};
}
Values sparse_sum_and_product(NodeContext& c) {
  NamedValues arguments = {{"self", c.positional(0)}, {"mat1", c.positional(1)}, {"mat2", c.positional(2)}};
  for (const char* name : {"beta", "alpha"})
    if (c.has(name)) arguments.emplace_back(name, c.value(name));
  return c.aten("aten.addmm.default", std::move(arguments));
}

constexpr ConverterEntry kTable[] = {
    {"aten.pad_sequence", padded_rows},
    {"aten.sparse_coo_tensor", sparse_as_dense},
    {"aten._sparse_coo_tensor_unsafe", sparse_as_dense},
    {"aten._sparse_coo_tensor_with_dims_and_tensors", sparse_as_dense},
    {"aten.coalesce", already_dense},
    {"aten._coalesce", already_dense},
    {"aten.to_dense", already_dense},
    {"aten._sparse_mm", sparse_product},
    {"aten._sparse_addmm", sparse_sum_and_product},
    {"aten.diag", diag},
    {"aten.block_diag", block_diag},
    {"aten.fill_diagonal", fill_diagonal},
    {"aten.diagonal_scatter", diagonal_scatter},
    {"aten.tril_indices", triangle_indices<true>},
    {"aten.triu_indices", triangle_indices<false>},
    {"aten.cartesian_prod", cartesian_product},
    {"aten.isin", is_in},
    {"aten.equal", all_equal},
    {"aten.vander", vandermonde},
    {"aten.column_stack", column_stack},
    {"aten.dstack", depth_stack},
    {"aten.hsplit", split_along<1>},
    {"aten.vsplit", split_along<0>},
    {"aten.dsplit", split_along<2>},
    {"aten.flipud", flipped<0>},
    {"aten.fliplr", flipped<1>},
    {"aten.max_unpool2d", max_unpool},
    {"aten.max_unpool3d", max_unpool},
    {"aten.addr", outer_added},
    {"aten.chain_matmul", product_of_all},
    {"aten.linalg_multi_dot", product_of_all},
    {"aten.ldexp", scaled_by_powers},
};

}  // namespace
}  // namespace rearrange

std::span<const ConverterEntry> rearrange_converters() { return rearrange::kTable; }

}  // namespace tilewright::torch
