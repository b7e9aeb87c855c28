// SPDX-License-Identifier: Apache-2.0
// Composed operators that pick, place or mask elements by index.
#include <algorithm>
#include <cstdlib>

#include "relay/ops/composition.h"
#include "relay/ops/tensor/attrs_indexing.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

Ints sequence(int64_t count) {
  Ints out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  return out;
}
Status integer_places(const TypeArgs& args, size_t i) {
  if (!args.tensor(i).dtype.is_integral())
    return type_error(format("operand {} is {}, not integers", i, type_str(args.types[i])));
  return Ok{};
}

// Sliding windows over the axes from `axis` on: (..., places, window).
Result<Expr> expand_sliding_window(const TypeArgs& args) {
  const auto& a = attrs_of<SlidingWindowAttrs>(args);
  Composition c(args);
  Ints shape = TW_TRY(known_sizes(args, 0));
  const int64_t first = TW_TRY(checked_axis(a.axis, shape.size()));
  const size_t count = shape.size() - static_cast<size_t>(first);
  if (a.window_shape.size() != count || a.strides.size() != count)
    return type_error(format("{} axes need as many window sizes and strides", count));
  Expr out = c[0];
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = first + static_cast<int64_t>(i), extent = shape[static_cast<size_t>(axis)];
    const int64_t window = a.window_shape[i], stride = a.strides[i];
    if (window < 1 || stride < 1 || window > extent)
      return type_error(format("a window of {} with stride {} does not fit an axis of {}", window, stride, extent));
    const int64_t places = (extent - window) / stride + 1;
    TW_TRY_STATUS(fits_constant({places, window}));
    Ints from, order;
    for (int64_t p = 0; p < places; ++p)
      for (int64_t w = 0; w < window; ++w) from.push_back(p * stride + w);
    // The axis becomes (places, window); the windows of earlier axes stay last, in order.
    out = c.take(out, c.indices(from, {places, window}), axis);
    const auto rank = static_cast<int64_t>(shape.size() + i + 1);
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis + 1) order.push_back(d);
    order.push_back(axis + 1);
    out = c.transpose(out, order);
  }
  return c.result(out);
}

Result<Expr> expand_unravel_index(const TypeArgs& args) {
  Composition c(args);
  TW_TRY_STATUS(integer_places(args, 0));
  TW_TRY_STATUS(integer_places(args, 1));
  const auto& shape = args.tensor(1).shape;
  if (shape.size() != 1 || !shape[0].is_const() || shape[0].value() < 1)
    return type_error(format("the shape is {}, not a list of sizes", type_str(args.types[1])));
  const int64_t rank = shape[0].value();
  if (rank > 64) return type_error(format("{} axes", rank));
  const DataType dtype = args.tensor(0).dtype;
  std::vector<Expr> rows(static_cast<size_t>(rank));
  Expr rest = c[0], sizes = c.cast(c[1], dtype);
  for (int64_t i = rank; i-- > 0;) {
    Expr size = c.reshape(c.slice(sizes, 0, i, i + 1), {});
    rows[static_cast<size_t>(i)] = c.expand_dims(c.call("floor_mod", {rest, size}), 0);
    rest = c.call("floor_divide", {rest, size});
  }
  return c.result(c.concatenate(rows, 0));
}

// The fields of a tuple operand, whether it is a literal tuple or any other expression.
std::vector<Expr> fields_of(Composition* c, const TypeArgs& args) {
  if (args.args.size() != 1 || !as_tuple(args.types[0])) return {args.args.begin(), args.args.end()};
  if (const auto* tuple = as<TupleNode>(args.args[0])) return tuple->fields;
  std::vector<Expr> out;
  for (size_t i = 0; i < as_tuple(args.types[0])->fields.size(); ++i)
    out.push_back(c->field(args.args[0], static_cast<int64_t>(i)));
  return out;
}
Result<Expr> expand_adv_index(const TypeArgs& args) {
  Composition c(args);
  const std::vector<Expr> fields = fields_of(&c, args);
  if (fields.size() < 2) return type_error("it needs data and an index at least");
  Shape joint;
  for (size_t i = 1; i < fields.size(); ++i) {
    const auto& index = *as_tensor(fields[i]->type);
    if (!index.dtype.is_integral()) return type_error(format("an index is {}, not integers", index.dtype.str()));
    joint = TW_TRY(broadcast_shapes(joint, index.shape));
  }
  auto shape = static_shape(joint);
  if (!shape) return Diagnostic(ErrorCode::kFreeDimension, "the sizes of the indices are not all known");
  std::vector<Expr> rows;
  for (size_t i = 1; i < fields.size(); ++i)
    rows.push_back(c.expand_dims(c.broadcast(c.cast(fields[i], kInt64), *shape), 0));
  return c.result(c.call<GatherNDAttrs>("gather_nd", {fields[0], c.concatenate(rows, 0)}, [](auto&) {}));
}

Result<Expr> expand_invert_permutation(const TypeArgs& args) {
  Composition c(args);
  TW_TRY_STATUS(integer_places(args, 0));
  if (args.tensor(0).shape.size() != 1)
    return type_error(format("{} is not a list of places", type_str(args.types[0])));
  return c.result(c.call<ArgsortAttrs>("argsort", {c[0]}, [&](auto& a) {
    a.axis = -1;
    a.is_ascend = true;
    a.dtype = args.tensor(0).dtype;
  }));
}

// Counts the elements of its row that are below each value (`right`: below or equal).
Result<Expr> expand_searchsorted(const TypeArgs& args) {
  const auto& a = attrs_of<SearchSortedAttrs>(args);
  Composition c(args);
  Ints rows = TW_TRY(known_sizes(args, 0)), wanted = TW_TRY(known_sizes(args, 1));
  if (rows.empty()) return type_error("there is no sorted axis in a scalar");
  if (a.dtype != kInt32 && a.dtype != kInt64)
    return type_error(format("places are int32 or int64, not {}", a.dtype.str()));
  Ints left(wanted.size(), 1), right = wanted;
  if (rows.size() > 1) {
    if (rows.size() != wanted.size() || !std::equal(rows.begin(), rows.end() - 1, wanted.begin()))
      return type_error(format("the rows of {} and {} differ", shape_str(rows), shape_str(wanted)));
    left.assign(rows.begin(), rows.end() - 1);
    left.push_back(1);
  }
  left.push_back(rows.back());
  right.push_back(1);
  Expr below = c.call(a.right ? "less_equal" : "less", {c.reshape(c[0], left), c.reshape(c[1], right)});
  return c.result(c.sum(c.cast(below, a.dtype), {-1}));
}

Result<Expr> expand_sparse_to_dense(const TypeArgs& args) {
  const Ints& shape = attrs_of<SparseToDenseAttrs>(args).output_shape;
  Composition c(args);
  TW_TRY_STATUS(integer_places(args, 0));
  const Ints places = TW_TRY(known_sizes(args, 0)), given = TW_TRY(known_sizes(args, 1));
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t count = places.empty() ? 1 : places[0];
  if (places.size() > 2 || (places.size() == 2 ? places[1] : 1) != rank)
    return type_error(format("indices {} do not name places in {}", shape_str(places), shape_str(shape)));
  if (given.size() > 1) return type_error(format("the values are {}, not a list", shape_str(given)));
  if (!args.tensor(2).shape.empty())
    return type_error(format("the default value is {}, not one number", type_str(args.types[2])));
  const DataType dtype = args.tensor(1).dtype;
  Expr base = c.call<InitOpAttrs>("full", {c.reshape(c.cast(c[2], dtype), {})}, [&](auto& a) { a.shape = shape; });
  Expr index = c.transpose(c.reshape(c.cast(c[0], kInt64), {count, rank}), {1, 0});
  return c.result(c.call<ScatterNDAttrs>("scatter_nd", {base, index, c.broadcast(c[1], {count})}, [](auto&) {}));
}

// The indices of begin:end:stride along an axis of n elements (numpy's rules).
Result<Ints> places_of(int64_t begin, int64_t end, int64_t stride, int64_t n) {
  if (stride == 0) return type_error("a stride is 0");
  stride = std::clamp<int64_t>(stride, -(n + 1), n + 1);
  auto edge = [&](int64_t at) {
    if (at < 0) at += n;
    return stride > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
  };
  Ints out;
  const int64_t from = edge(begin), to = edge(end);
  for (int64_t i = from; stride > 0 ? i < to : i > to; i += stride) out.push_back(i);
  return out;
}
Result<Expr> expand_strided_set(const TypeArgs& args) {
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0)), begin = TW_TRY(known_values(args, 2)),
             end = TW_TRY(known_values(args, 3));
  Ints strides = TW_TRY(known_values(args, 4));
  if (begin.size() != end.size() || begin.size() > shape.size() || strides.size() > shape.size())
    return type_error(
        format("{} begins, {} ends and {} strides for {}", begin.size(), end.size(), strides.size(), shape_str(shape)));
  strides.resize(shape.size(), 1);
  std::vector<Ints> axes;
  Ints counts{static_cast<int64_t>(shape.size())};
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back(i < begin.size() ? TW_TRY(places_of(begin[i], end[i], strides[i], shape[i])) : sequence(shape[i]));
    counts.push_back(static_cast<int64_t>(axes.back().size()));
  }
  TW_TRY_STATUS(fits_constant(counts));
  const Ints picked(counts.begin() + 1, counts.end());
  int64_t total = 1;
  for (int64_t n : picked) total *= n;
  if (total == 0) return c.result(c[0]);
  Ints index;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t inner = 1;
    for (size_t k = i + 1; k < picked.size(); ++k) inner *= picked[k];
    for (int64_t e = 0; e < total; ++e) index.push_back(axes[i][static_cast<size_t>(e / inner % picked[i])]);
  }
  Expr values = c.reshape(c.broadcast(c[1], picked), {total});
  return c.result(c.call<ScatterNDAttrs>(
      "scatter_nd", {c[0], c.indices(index, {static_cast<int64_t>(shape.size()), total}), values}, [](auto&) {}));
}
Result<Type> strided_set_type(const TypeArgs& args) {
  if (args.tensor(0).dtype != args.tensor(1).dtype)
    return type_error(format("the data are {}, the values {}", args.tensor(0).dtype.str(), args.tensor(1).dtype.str()));
  for (size_t i = 2; i < 5; ++i) TW_TRY_STATUS(integer_places(args, i));
  auto expanded = expand_strided_set(args);
  if (!expanded.ok() && expanded.error().code != ErrorCode::kFreeDimension) return std::move(expanded).error();
  return args.types[0];
}

// Diagonals k1..k2 are given as rows, the highest first; shorter ones are aligned right or left in their row.
Result<Expr> expand_matrix_set_diag(const TypeArgs& args) {
  const auto& a = attrs_of<MatrixSetDiagAttrs>(args);
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0)), given = TW_TRY(known_sizes(args, 1));
  if (shape.size() < 2) return type_error(format("{} has no matrices", shape_str(shape)));
  const int64_t rows = shape[shape.size() - 2], cols = shape.back();
  if (a.k1 > a.k2 || a.k1 <= -std::max<int64_t>(rows, 1) || a.k2 >= std::max<int64_t>(cols, 1))
    return type_error(format("there are no diagonals {} to {} in {}", a.k1, a.k2, shape_str(shape)));
  TW_TRY_STATUS(fits_constant({rows, cols}));
  auto length = [&](int64_t d) { return std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)); };
  const int64_t count = a.k2 - a.k1 + 1;
  const int64_t longest = std::min(rows + std::min<int64_t>(a.k2, 0), cols - std::max<int64_t>(a.k1, 0));
  Ints want(shape.begin(), shape.end() - 2);
  const Ints lead = want;
  if (count > 1) want.push_back(count);
  want.push_back(longest);
  if (given != want) return type_error(format("the diagonals are {}, not {}", shape_str(given), shape_str(want)));
  Ints from;
  std::vector<double> inside;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t d = col - r;
      const bool in = d >= a.k1 && d <= a.k2;
      const bool right = d >= 0 ? a.super_diag_right_align : a.sub_diag_right_align;
      inside.push_back(in);
      from.push_back(in ? (a.k2 - d) * longest + (right ? longest - length(d) : 0) + std::min(r, col) : 0);
    }
  Ints flat = lead;
  flat.push_back(count * longest);
  if (rows * cols == 0 || longest <= 0) return c.result(c[0]);
  Expr spread = c.reshape(c.take(c.reshape(c[1], flat), c.vector(from), static_cast<int64_t>(lead.size())), shape);
  return c.result(c.where(c.numbers(inside, {rows, cols}, kBool), spread, c[0]));
}

template <class A, const char* const* kReduction>
Result<Expr> expand_scatter(const TypeArgs& args) {
  Composition c(args);
  return c.result(c.call<ScatterElementsAttrs>("scatter_elements", {c[0], c[1], c[2]}, [&](auto& a) {
    a.axis = attrs_of<A>(args).axis;
    a.reduction = *kReduction;
  }));
}
constexpr const char *kReplacement = "update", *kAddition = "add";

Result<Expr> expand_sequence_mask(const TypeArgs& args) {
  const auto& a = attrs_of<SequenceMaskAttrs>(args);
  Composition c(args);
  const auto &data = args.tensor(0), &lengths = args.tensor(1);
  if (a.axis != 0 && a.axis != 1) return type_error(format("the axis is {}, not 0 or 1", a.axis));
  if (data.shape.size() < 2 || lengths.shape.size() != 1)
    return type_error(format("lengths {} do not fit data {}", type_str(args.types[1]), type_str(args.types[0])));
  if (dims_differ(data.shape[static_cast<size_t>(1 - a.axis)], lengths.shape[0]))
    return type_error(format("{} has other batches than {}", type_str(args.types[1]), type_str(args.types[0])));
  if (!lengths.dtype.is_integral() && !lengths.dtype.is_float())
    return type_error(format("the lengths are {}", lengths.dtype.str()));
  const DataType dtype = lengths.dtype.is_float() ? lengths.dtype : kInt64;
  const Dim& extent = data.shape[static_cast<size_t>(a.axis)];
  Expr steps;
  if (extent.is_const()) {
    TW_TRY_STATUS(fits_constant({extent.value()}));
    steps = c.vector(sequence(extent.value()));
  } else {
    Expr sizes = c.call<ShapeOfAttrs>("shape_of", {c[0]}, [](auto& s) { s.dtype = kInt64; });
    Expr length = c.reshape(c.slice(sizes, 0, a.axis, a.axis + 1), {});
    steps = c.call<ArangeAttrs>("arange", {c.number(0, kInt64), length, c.number(1, kInt64)},
                                [](auto& r) { r.dtype = kInt64; });
  }
  const auto after = static_cast<int64_t>(data.shape.size()) - 2;
  Expr row = c.expand_dims(c.cast(steps, dtype), a.axis == 0 ? 1 : 0);
  Expr column = c.expand_dims(c.cast(c[1], dtype), a.axis == 0 ? 0 : 1);
  Expr inside = c.call("less", {row, column});
  if (after > 0) inside = c.expand_dims(inside, 2, after);
  return c.result(c.where(inside, c[0], c.number(a.mask_value, data.dtype)));
}
Result<Type> sequence_mask_type(const TypeArgs& args) {
  TW_TRY(expand_sequence_mask(args));
  return args.types[0];
}

// reshape whose codes are read from the last axis backwards.
Result<Expr> expand_contrib_reverse_reshape(const TypeArgs& args) {
  const Ints& codes = attrs_of<ReshapeAttrs>(args).newshape;
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0));
  Ints out;  // from the last axis backwards
  size_t next = 0;
  auto size_at = [&](size_t from_end) -> Result<int64_t> {
    if (from_end >= shape.size())
      return type_error(format("{} has no axis {} from the end", shape_str(to_shape(shape)), from_end + 1));
    return shape[shape.size() - 1 - from_end];
  };
  for (size_t i = codes.size(); i-- > 0;) {
    if (codes[i] < -3) return type_error(format("there is no code {}", codes[i]));
    if (codes[i] == -2) {  // all remaining
      for (; next < shape.size(); ++next) out.push_back(shape[shape.size() - 1 - next]);
    } else if (codes[i] == -3) {  // two merged
      const int64_t last = TW_TRY(size_at(next));
      const int64_t before = TW_TRY(size_at(next + 1));
      out.push_back(last * before);
      next += 2;
    } else {
      int64_t size = codes[i];
      if (size == 0) size = TW_TRY(size_at(next));
      out.push_back(size);
      ++next;
    }
  }
  std::reverse(out.begin(), out.end());
  return c.result(c.call<ReshapeAttrs>("reshape", {c[0]}, [&](auto& a) { a.newshape = out; }));
}

// --- sparse tensors as lists of indices

// The list's elements as scalars.
std::vector<Expr> scalars_of(Composition* c, const Expr& list, int64_t count) {
  std::vector<Expr> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(c->reshape(c->slice(list, 0, i, i + 1), {}));
  return out;
}
Result<int64_t> list_length(const TypeArgs& args, size_t i) {
  TW_TRY_STATUS(integer_places(args, i));
  const auto& shape = args.tensor(i).shape;
  if (shape.size() != 1 || !shape[0].is_const() || shape[0].value() < 1 || shape[0].value() > 64)
    return type_error(format("operand {} is {}, not a list of sizes", i, type_str(args.types[i])));
  return shape[0].value();
}
// Checks indices (count, rank) of a tensor of that rank.
Status places_fit(const TypeArgs& args, int64_t rank) {
  TW_TRY_STATUS(integer_places(args, 0));
  const auto& shape = args.tensor(0).shape;
  if (shape.size() != 2 || dims_differ(shape[1], Dim(rank)))
    return type_error(format("places {} do not fit {} axes", type_str(args.types[0]), rank));
  return Ok{};
}
Result<Expr> expand_sparse_reshape(const TypeArgs& args) {
  Composition c(args);
  const int64_t before = TW_TRY(list_length(args, 1)), after = TW_TRY(list_length(args, 2));
  TW_TRY_STATUS(places_fit(args, before));
  const std::vector<Expr> from = scalars_of(&c, c.cast(c[1], kInt64), before),
                          codes = scalars_of(&c, c.cast(c[2], kInt64), after);
  // The size given as -1 follows from the others.
  Expr total = c.number(1, kInt64), given = total;
  for (const Expr& size : from) total = c.times(total, size);
  for (const Expr& code : codes)
    given = c.times(given, c.where(c.compare("equal", code, -1), c.number(1, kInt64), code));
  std::vector<Expr> to, list;
  for (const Expr& code : codes) {
    to.push_back(c.where(c.compare("equal", code, -1), c.call("floor_divide", {total, given}), code));
    list.push_back(c.expand_dims(c.cast(to.back(), args.tensor(2).dtype), 0));
  }
  Expr flat, stride = c.number(1, kInt64), places = c.cast(c[0], kInt64);
  for (int64_t i = before; i-- > 0;) {
    Expr part = c.times(c.slice(places, 1, i, i + 1), stride);
    flat = flat ? c.plus(flat, part) : part;
    stride = c.times(stride, from[static_cast<size_t>(i)]);
  }
  std::vector<Expr> columns(static_cast<size_t>(after));
  for (int64_t i = after; i-- > 0;) {
    const Expr& size = to[static_cast<size_t>(i)];
    columns[static_cast<size_t>(i)] = i ? c.call("floor_mod", {flat, size}) : flat;
    flat = c.call("floor_divide", {flat, size});
  }
  return c.result(c.tuple({c.cast(c.concatenate(columns, 1), args.tensor(0).dtype), c.concatenate(list, 0)}));
}

// Rows without values get the default value in their first column.
Result<Expr> expand_sparse_fill_empty_rows(const TypeArgs& args) {
  Composition c(args);
  const int64_t rank = TW_TRY(list_length(args, 2));
  TW_TRY_STATUS(places_fit(args, rank));
  const auto &places = args.tensor(0), &values = args.tensor(1);
  if (values.shape.size() != 1 || dims_differ(values.shape[0], places.shape[0]))
    return type_error(format("values {} do not fit places {}", type_str(args.types[1]), type_str(args.types[0])));
  Expr rows =
      c.cast(c.call<ReshapeAttrs>("reshape", {c.slice(c[0], 1, 0, 1)}, [](auto& a) { a.newshape = {-1}; }), kInt64);
  Expr none;
  if (const Tensor* sizes = constant_operand(args, 2)) {
    TW_TRY_STATUS(fits_constant({sizes->at_int(0)}));
    none = c.indices(Ints(static_cast<size_t>(sizes->at_int(0)), 0), {sizes->at_int(0)});
  } else {
    none =
        c.call<InitOpAttrs>("dyn.zeros", {c.cast(c.slice(c[2], 0, 0, 1), kInt64)}, [](auto& a) { a.dtype = "int64"; });
  }
  Expr counts = c.call<ScatterElementsAttrs>("scatter_elements", {none, rows, c.plus(c.times(rows, 0.0), 1.0)},
                                             [](auto& a) { a.reduction = "add"; });
  Expr empty = c.compare("equal", counts, 0);
  Expr added = c.call("argwhere", {empty}), zero = c.times(added, 0.0);
  std::vector<Expr> columns{added};
  for (int64_t i = 1; i < rank; ++i) columns.push_back(zero);
  Expr all = c.concatenate({c[0], c.cast(c.concatenate(columns, 1), places.dtype)}, 0);
  Expr flat_zero = c.call<ReshapeAttrs>("reshape", {zero}, [](auto& a) { a.newshape = {-1}; });
  Expr defaults = c.plus(c.cast(flat_zero, values.dtype), c.reshape(c.cast(c[3], values.dtype), {}));
  Expr first = c.call<ReshapeAttrs>("reshape", {c.slice(all, 1, 0, 1)}, [](auto& a) { a.newshape = {-1}; });
  Expr order = c.call<ArgsortAttrs>("argsort", {first}, [](auto& a) {
    a.axis = 0;
    a.is_ascend = true;
    a.dtype = kInt64;
  });
  return c.result(c.tuple({c.take(all, order, 0), c.take(c.concatenate({c[1], defaults}, 0), order, 0), empty}));
}

}  // namespace

std::vector<OpDef> composed_indexing_ops() {
  constexpr OpPattern kInj = OpPattern::kInjective, kOpaque = OpPattern::kOpaque;
  const std::vector<ArgDoc> write = {{"data", "any dtype"}, {"indices", "integers"}, {"updates", "the data's dtype"}};
  std::vector<OpDef> ops = {
      define_composed("sliding_window", "Windows over the axes from `axis` on: (..., places, window).",
                      {{"data", "any dtype"}}, kOpaque, expand_sliding_window, make_default_attrs<SlidingWindowAttrs>),
      define_composed("unravel_index", "Coordinates of places in a flattened tensor: a row for each axis.",
                      {{"indices", "integers"}, {"shape", "a list of sizes"}}, kInj, expand_unravel_index),
      define_composed("adv_index", "data[indices...], the indices broadcast against each other.",
                      {{"inputs", "a tuple: data, then integers"}}, kInj, expand_adv_index),
      define_composed("invert_permutation", "Where each place went: out[data[i]] = i.", {{"data", "a permutation"}},
                      kInj, expand_invert_permutation),
      define_composed("searchsorted", "Where each value goes in its sorted row, or in the one row there is.",
                      {{"sorted_sequence", "(..., n) numbers"}, {"values", "(..., m), or any shape for one row"}},
                      kOpaque, expand_searchsorted, make_default_attrs<SearchSortedAttrs>),
      define_composed("sparse_to_dense", "Values at places in a tensor of one default value.",
                      {{"sparse_indices", "(count, rank), (count) or () integers"},
                       {"sparse_values", "(count), or one for all"},
                       {"default_value", "a scalar"}},
                      kOpaque, expand_sparse_to_dense, make_default_attrs<SparseToDenseAttrs>),
      define_composed("strided_set", "data with data[begin:end:strides] = v.",
                      {{"data", "any dtype"},
                       {"v", "the data's dtype; broadcast to the slice"},
                       {"begin", "integers, for the leading axes"},
                       {"end", "integers"},
                       {"strides", "integers"}},
                      kInj, expand_strided_set, nullptr, strided_set_type),
      define_composed(
          "matrix_set_diag", "Matrices with some of their diagonals replaced.",
          {{"input", "(..., rows, columns)"}, {"diagonal", "(..., diagonals, longest), or (..., length) of one"}}, kInj,
          expand_matrix_set_diag, make_default_attrs<MatrixSetDiagAttrs>),
      define_composed("scatter", "A copy of data with data[indices[i][j]][j] replaced, for axis 0.", write, kOpaque,
                      expand_scatter<ScatterAttrs, &kReplacement>, make_default_attrs<ScatterAttrs>),
      define_composed("scatter_add", "A copy of data with updates added to data[indices[i][j]][j], for axis 0.", write,
                      kOpaque, expand_scatter<ScatterAddAttrs, &kAddition>, make_default_attrs<ScatterAddAttrs>),
      define_composed(
          "sequence_mask", "data with mask_value beyond the valid length of each batch.",
          {{"data", "(length, batch, ...); (batch, length, ...) for axis 1"}, {"valid_length", "(batch) numbers"}},
          kInj, expand_sequence_mask, make_default_attrs<SequenceMaskAttrs>, sequence_mask_type),
      define_composed("contrib_reverse_reshape", "reshape with its codes 0 and -1 read from the last axis on.",
                      {{"data", "any dtype"}}, kInj, expand_contrib_reverse_reshape, make_default_attrs<ReshapeAttrs>)
          .with({.elements = Elements::kReshaped}),
      define_composed("sparse_reshape", "Places of a tensor's elements under another shape, and that shape.",
                      {{"sparse_indices", "(count, rank) integers"},
                       {"prev_shape", "a list of sizes"},
                       {"new_shape", "a list of sizes, one of which may be -1"}},
                      kInj, expand_sparse_reshape),
      define_composed("sparse_fill_empty_rows",
                      "Places and values with a default value in each row that has none, sorted by row; and which rows "
                      "had none.",
                      {{"sparse_indices", "(count, rank) integers, sorted by row"},
                       {"sparse_values", "(count)"},
                       {"dense_shape", "a list of sizes"},
                       {"default_value", "one value"}},
                      kOpaque, expand_sparse_fill_empty_rows),
  };
  for (OpDef& op : ops)
    if (std::string_view(op.name) == "adv_index") op.num_inputs = -1;
  return ops;
}

}  // namespace tilewright::relay
