// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch itself composes of others, for graphs that keep them whole.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace composite {
namespace {

using Ints = std::vector<int64_t>;

Value wholes(const Ints& numbers) {
  Values out;
  for (int64_t i : numbers) out.push_back(whole(i));
  return Value::of_list(std::move(out));
}
Expr number(NodeContext& c, double value, const Expr& like) { return c.scalar_like(value, like); }
Expr along(NodeContext& c, const Expr& x, const Expr& places, int64_t axis) {
  return c.call("take", {x, places}, make_attrs<relay::TakeAttrs>([&](auto& a) { a.axis = static_cast<int>(axis); }));
}

// ---- matrices

Values trace(NodeContext& c) {
  const Expr x = c.tensor("self");
  const Expr diagonal = c.aten("aten.diagonal.default", {{"self", x}}).at(0).expr;
  return {c.reduce("sum", c.dtype(x).is_float() ? diagonal : c.cast(diagonal, kInt64), {0}, false)};
}
Values diag_embed(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t rank = c.rank(x), offset = c.integer("offset", 0), away = std::abs(offset);
  const int64_t first = c.dim(c.integer("dim1", -2), rank + 1), second = c.dim(c.integer("dim2", -1), rank + 1);
  if (first == second) c.fail("its axes are the same");
  const int64_t size = c.dims(x).back() + away;
  if (away > 0) {
    Ints rest = c.dims(x);
    rest.back() = away;
    x = c.concat({x, c.zeros(c.dtype(x), rest)}, rank - 1);
  }
  // The element at (i, j) with j - i = offset is the smaller one's.
  const Expr i = c.expand(c.counting(size), 1), j = c.expand(c.counting(size), 0);
  const Expr on = c.call("equal", {c.sub(j, i), c.scalar(static_cast<double>(offset), kInt64)});
  const Expr placed = c.where(on, c.expand(x, offset >= 0 ? rank : rank - 1), c.zero_like(x));
  Ints order;
  for (int64_t k = 0, next = 0; k <= rank; ++k) order.push_back(k == first ? rank - 1 : k == second ? rank : next++);
  return {c.transpose(placed, order)};
}
Values kron(NodeContext& c) {
  Expr a = c.tensor("self"), b = c.tensor("other");
  const int64_t rank = std::max(c.rank(a), c.rank(b));
  a = c.expand(a, 0, rank - c.rank(a));
  b = c.expand(b, 0, rank - c.rank(b));
  Ints wide, narrow, out;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    wide.insert(wide.end(), {c.dims(a)[i], 1});
    narrow.insert(narrow.end(), {1, c.dims(b)[i]});
    out.push_back(c.dims(a)[i] * c.dims(b)[i]);
  }
  return {c.reshape(c.mul(c.reshape(a, wide), c.reshape(b, narrow)), out)};
}
Values tensordot(NodeContext& c) {
  const Expr a = c.tensor("self"), b = c.tensor("other");
  const Ints of_a = c.axes("dims_self", c.rank(a)), of_b = c.axes("dims_other", c.rank(b));
  if (of_a.size() != of_b.size()) c.fail("its lists of axes have other lengths");
  Ints order_a, order_b = of_b, out;
  int64_t rows = 1, columns = 1, shared = 1;
  for (int64_t i = 0; i < c.rank(a); ++i)
    if (std::find(of_a.begin(), of_a.end(), i) == of_a.end()) {
      order_a.push_back(i), out.push_back(c.dims(a)[static_cast<size_t>(i)]);
      rows *= out.back();
    }
  order_a.insert(order_a.end(), of_a.begin(), of_a.end());
  for (int64_t i : of_a) shared *= c.dims(a)[static_cast<size_t>(i)];
  for (int64_t i = 0; i < c.rank(b); ++i)
    if (std::find(of_b.begin(), of_b.end(), i) == of_b.end()) {
      order_b.push_back(i), out.push_back(c.dims(b)[static_cast<size_t>(i)]);
      columns *= out.back();
    }
  const Expr left = c.reshape(c.transpose(a, order_a), {rows, shared});
  const Expr right = c.reshape(c.transpose(b, order_b), {shared, columns});
  return {c.reshape(c.aten("aten.mm.default", {{"self", left}, {"mat2", right}}).at(0).expr, out)};
}
Values cross(NodeContext& c) {
  const Expr a = c.tensor("self"), b = c.tensor("other");
  const int64_t rank = std::max(c.rank(a), c.rank(b));
  if (c.rank(a) != c.rank(b)) c.fail_type("its operands have other ranks");
  const Ints d = c.dims(a);
  int64_t axis = rank - 1;
  if (c.has("dim"))
    axis = c.dim(c.integer("dim"), rank);
  else if (c.node().target.starts_with("aten.cross"))  // the first of three elements
    axis = std::find(d.begin(), d.end(), 3) - d.begin();
  if (axis >= rank || d[static_cast<size_t>(axis)] != 3) c.fail_type("it has no axis of three elements");
  auto turned = [&](const Expr& e, const Ints& places) { return along(c, e, c.ints_constant(places), axis); };
  return {c.sub(c.mul(turned(a, {1, 2, 0}), turned(b, {2, 0, 1})), c.mul(turned(a, {2, 0, 1}), turned(b, {1, 2, 0})))};
}
// ---- shapes

Values rot90(NodeContext& c) {
  const Value self = c.value("self");
  const Ints axes = c.axes("dims", c.rank(self.expr));
  if (axes.size() != 2) c.fail("it turns in two axes");
  const int64_t turns = ((c.integer("k", 1) % 4) + 4) % 4;
  auto flipped = [&](const Value& v, const Ints& along_axes) {
    return c.aten("aten.flip.default", {{"self", v}, {"dims", wholes(along_axes)}}).at(0);
  };
  auto swapped = [&](const Value& v) {
    return c.aten("aten.transpose.int", {{"self", v}, {"dim0", whole(axes[0])}, {"dim1", whole(axes[1])}}).at(0);
  };
  if (turns == 0) return {self};
  if (turns == 2) return {flipped(self, axes)};
  return {turns == 1 ? flipped(swapped(self), {axes[0]}) : flipped(swapped(self), {axes[1]})};
}
template <int kRank>
Values at_least_axes(NodeContext& c) {
  const Expr x = c.tensor("self");
  const int64_t rank = c.rank(x);
  if (rank >= kRank) return {x};
  if (kRank < 3 || rank == 0) return {c.expand(x, 0, kRank - rank)};
  return {rank == 1 ? c.expand(c.expand(x, 0), 2) : c.expand(x, 2)};
}
// The k-th smallest of each row, and its place.
Values kth_value(NodeContext& c) {
  const int64_t rank = c.rank(c.tensor("self")), k = c.integer("k");
  const Value axis = whole(rank == 0 ? 0 : c.dim(c.integer("dim", -1), rank));
  const Values sorted = c.aten("aten.sort.default", {{"self", c.value("self")}, {"dim", axis}});
  Values out;
  for (const Value& v : sorted) {
    Value one = c.aten("aten.select.int", {{"self", v}, {"dim", axis}, {"index", whole(k - 1)}}).at(0);
    if (c.flag("keepdim", false)) one = c.aten("aten.unsqueeze.default", {{"self", one}, {"dim", axis}}).at(0);
    out.push_back(one);
  }
  return out;
}

// ---- bags of embeddings

// Sums, means or maxima of the rows that each bag names; bags are given by where they begin. The further results are
// the bag of each row, the numbers of rows in bags, and which rows the maxima are from.
Values embedding_bag(NodeContext& c) {
  const Expr table = c.tensor("weight"), indices = c.cast(c.tensor("indices"), kInt64),
             starts = c.cast(c.tensor("offsets"), kInt64);
  const int64_t mode = c.integer("mode", 0), count = c.dims(indices).at(0);
  int64_t bags = c.dims(starts).at(0);
  Expr begin = starts;
  if (c.flag("include_last_offset", false)) begin = c.slice(starts, 0, 0, --bags);
  if (mode < 0 || mode > 2) c.fail(format("its mode is {}", mode));
  const Expr rows = along(c, table, indices, 0);
  // (bags, count): a row belongs to the last bag that begins at or before it.
  const Expr place = c.expand(c.counting(count), 0), from = c.expand(begin, 1);
  Expr to = c.slice(begin, 0, 1, bags);
  to = c.expand(c.concat({to, c.ints_constant({count})}, 0), 1);
  Expr belongs = c.call("logical_and", {c.call("greater_equal", {place, from}), c.call("less", {place, to})});
  if (c.integer("padding_idx", -1) >= 0)
    belongs = c.call(
        "logical_and",
        {belongs,
         c.expand(c.call("not_equal", {indices, c.scalar(static_cast<double>(c.integer("padding_idx")), kInt64)}), 0)});
  const DataType dtype = c.dtype(table);
  const Expr begun = c.cast(c.call("greater_equal", {place, from}), kInt64);
  const Expr bag = c.sub(c.reduce("sum", begun, {0}, false), c.scalar(1, kInt64));
  const Expr count_of_rows = c.reduce("sum", c.cast(belongs, kInt64), {1}, false);
  if (mode == 2) {
    const Expr low = c.scalar(-HUGE_VAL, dtype);
    const Value kept(c.where(c.expand(belongs, 2), c.expand(rows, 0), low));
    const Values most = c.aten("aten.max.dim", {{"self", kept}, {"dim", whole(1)}});
    const Expr any = c.expand(c.reduce("any", belongs, {1}, false), 1);
    return {c.where(any, most.at(0).expr, c.scalar(0, dtype)), bag, count_of_rows,
            along(c, indices, most.at(1).expr, 0)};
  }
  Expr weights = c.cast(belongs, dtype);
  if (c.has("per_sample_weights")) weights = c.mul(weights, c.expand(c.tensor("per_sample_weights"), 0));
  const Expr sums = c.aten("aten.mm.default", {{"self", weights}, {"mat2", rows}}).at(0).expr;
  const Expr none = c.zero_like(count_of_rows);
  if (mode == 0) return {sums, bag, count_of_rows, none};
  const Expr sizes = c.reduce("sum", c.cast(belongs, dtype), {1}, true);
  return {c.div(sums, c.call("maximum", {sizes, c.scalar(1, dtype)})), bag, count_of_rows, none};
}

// ---- numbers

template <bool kToRadians>
Values turned_angle(NodeContext& c) {
  const Expr x = c.real(c.tensor("self"));
  return {c.mul(x, number(c, kToRadians ? M_PI / 180 : 180 / M_PI, x))};
}
Expr is_negative(NodeContext& c, const Expr& x) {  // zeros have signs, too: 1 / -0 is below 0
  Expr below = c.call("less", {x, c.zero_like(x)});
  if (!c.dtype(x).is_float()) return below;
  const Expr zero = c.call("equal", {x, c.zero_like(x)});
  return c.where(zero, c.call("less", {c.div(number(c, 1, x), x), c.zero_like(x)}), below);
}
Values sign_bit(NodeContext& c) { return {is_negative(c, c.tensor("self"))}; }
Values copy_sign(NodeContext& c) {
  const DataType dtype = c.promoted_real({&c.value("self"), &c.value("other")});
  const Expr x = c.call("abs", {c.as_tensor(c.value("self"), dtype)}), y = c.as_tensor(c.value("other"), dtype);
  return {c.where(is_negative(c, y), c.call("negative", {x}), x)};
}
Values heaviside(NodeContext& c) {
  const Expr x = c.tensor("self"), at_zero = c.tensor("values");
  const Expr step = c.cast(c.call("greater", {x, c.zero_like(x)}), c.dtype(x));
  const Expr y = c.where(c.call("equal", {x, c.zero_like(x)}), at_zero, step);
  return {c.dtype(x).is_float() ? c.where(c.call("isnan", {x}), x, y) : y};
}
Values x_log_y(NodeContext& c) {
  const DataType dtype = c.promoted_real({&c.value("self"), &c.value("other")});
  const Expr x = c.as_tensor(c.value("self"), dtype), y = c.as_tensor(c.value("other"), dtype);
  const Expr product = c.mul(x, c.call("log", {y}));
  const Expr nothing =
      c.call("logical_and", {c.call("equal", {x, c.zero_like(x)}), c.call("logical_not", {c.call("isnan", {y})})});
  return {c.where(nothing, c.scalar(0, dtype), product)};
}
Values sinc(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), angle = c.mul(x, number(c, M_PI, x));
  const Expr zero = c.call("equal", {x, c.zero_like(x)});
  return {c.where(zero, number(c, 1, x), c.div(c.call("sin", {angle}), c.where(zero, number(c, 1, x), angle)))};
}
// Winitzki's approximation, made exact by Newton's method on erf.
Values erfinv(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), one = number(c, 1, x);
  const Expr log = c.call("log", {c.mul(c.sub(one, x), c.add(one, x))});
  const Expr a = c.add(c.mul(log, number(c, 0.5, x)), number(c, 2 / (M_PI * 0.147), x));
  const Expr root = c.call("sqrt", {c.sub(c.mul(a, a), c.mul(log, number(c, 1 / 0.147, x)))});
  Expr y = c.mul(c.call("sqrt", {c.sub(root, a)}), c.call("sign", {x}));
  for (int i = 0; i < 2; ++i) {
    const Expr slope = c.mul(c.call("exp", {c.call("negative", {c.mul(y, y)})}), number(c, 2 / std::sqrt(M_PI), x));
    y = c.sub(y, c.div(c.sub(c.call("erf", {y}), x), slope));
  }
  const Expr end = c.mul(x, number(c, HUGE_VAL, x));
  return {c.where(c.call("equal", {c.call("abs", {x}), one}), end, y)};
}
// In evaluation: the mean of its slopes.
Values rrelu(NodeContext& c) {
  if (c.flag("training", false)) c.unsupported("in training mode");
  const Expr x = c.tensor("self");
  const double slope = (c.number("lower", 0.125) + c.number("upper", 1.0 / 3)) / 2;
  return {c.where(c.call("less", {x, c.zero_like(x)}), c.mul(x, number(c, slope, x)), x)};
}

// Of the last axes of both.
Values inner(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  if (c.rank(a.expr) == 0 || c.rank(b.expr) == 0) return c.aten("aten.mul.Tensor", {{"self", a}, {"other", b}});
  const Value last_a = Value::of_list({whole(c.rank(a.expr) - 1)}),
              last_b = Value::of_list({whole(c.rank(b.expr) - 1)});
  return c.aten("aten.tensordot.default", {{"self", a}, {"other", b}, {"dims_self", last_a}, {"dims_other", last_b}});
}
Values vector_product(NodeContext& c) {
  const Expr both = c.one_of("aten.mul.Tensor", {{"self", c.value("x")}, {"other", c.value("y")}});
  return {c.reduce("sum", both, {c.dim(c.integer("dim", -1), c.rank(both))}, false)};
}
Values sorted_rows(NodeContext& c) {
  return {c.aten("aten.sort.default", {{"self", c.value("self")}, {"dim", whole(0)}}).at(0)};
}
Values diagonal_of_all(NodeContext& c) {
  return c.aten("aten.diag.default",
                {{"self", c.reshaped(c.tensor("self"), {-1})}, {"diagonal", whole(c.integer("offset", 0))}});
}

constexpr ConverterEntry kTable[] = {
    {"aten.inner", inner},
    {"aten.linalg_vecdot", vector_product},
    {"aten.msort", sorted_rows},
    {"aten.diagflat", diagonal_of_all},
    {"aten.trace", trace},
    {"aten.diag_embed", diag_embed},
    {"aten.kron", kron},
    {"aten.tensordot", tensordot},
    {"aten.cross", cross},
    {"aten.linalg_cross", cross},
    {"aten.rot90", rot90},
    {"aten.atleast_1d", at_least_axes<1>},
    {"aten.atleast_2d", at_least_axes<2>},
    {"aten.atleast_3d", at_least_axes<3>},
    {"aten.kthvalue", kth_value},
    {"aten.embedding_bag", embedding_bag},
    {"aten._embedding_bag", embedding_bag},
    {"aten._embedding_bag_forward_only", embedding_bag},
    {"aten.deg2rad", turned_angle<true>},
    {"aten.rad2deg", turned_angle<false>},
    {"aten.signbit", sign_bit},
    {"aten.copysign", copy_sign},
    {"aten.heaviside", heaviside},
    {"aten.xlogy", x_log_y},
    {"aten.special_xlogy", x_log_y},
    {"aten.sinc", sinc},
    {"aten.special_sinc", sinc},
    {"aten.erfinv", erfinv},
    {"aten.special_erfinv", erfinv},
    {"aten.rrelu", rrelu},
};

}  // namespace
}  // namespace composite

std::span<const ConverterEntry> composite_converters() { return composite::kTable; }

}  // namespace tilewright::torch
