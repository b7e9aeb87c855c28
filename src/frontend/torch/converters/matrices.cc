// SPDX-License-Identifier: Apache-2.0
// Decompositions of small matrices and what they solve, written out row by row: an operator's steps are as many as its
// matrices have rows. They are computed in float64.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace matrices {
namespace {

using Ints = std::vector<int64_t>;

// Steps are nodes of the graph: beyond this, compiling them takes longer than any run is worth.
constexpr int64_t kMostRows = 64;

// The last two axes of operands, and elements, rows and columns of them. Every part keeps its rank.
struct Steps {
  NodeContext& c;

  Expr wide(const Expr& e) const { return c.cast(e, kFloat64); }
  Expr number(double v) const { return c.scalar(v, kFloat64); }
  int64_t rows(const Expr& e) const { return c.dims(e).at(static_cast<size_t>(c.rank(e) - 2)); }
  int64_t columns(const Expr& e) const { return c.dims(e).back(); }
  Expr row(const Expr& e, int64_t i) const { return c.slice(e, c.rank(e) - 2, i, i + 1); }
  Expr column(const Expr& e, int64_t i) const { return c.slice(e, c.rank(e) - 1, i, i + 1); }
  Expr element(const Expr& e, int64_t i, int64_t j) const { return column(row(e, i), j); }
  Expr sum_of_rows(const Expr& e) const { return c.reduce("sum", e, {c.rank(e) - 2}, true); }
  Expr turned(const Expr& e) const {
    Ints order(static_cast<size_t>(c.rank(e)));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return c.transpose(e, order);
  }
  // (n, 1): the number of each row.
  Expr places(int64_t n) const { return c.expand(c.counting(n), 1); }
  Expr from(int64_t n, int64_t first) const {
    return c.call("greater_equal", {places(n), c.scalar(static_cast<double>(first), kInt64)});
  }
  Expr identity(int64_t n) const { return c.cast(c.call("equal", {places(n), c.expand(c.counting(n), 0)}), kFloat64); }
  // Without both axes.
  Expr alone(const Expr& e) const { return c.squeeze(e, {c.rank(e) - 2, c.rank(e) - 1}); }
};

Expr matrix(NodeContext& c, const Value& v, bool square = true) {
  if (!v.expr) c.fail_type("its operand is not a tensor");
  if (v.complex) c.unsupported("complex matrices");
  const Expr e = v.expr;
  if (c.rank(e) < 2) c.fail_type("its operand is not a matrix");
  const Ints d = c.dims(e);
  const int64_t rows = d[d.size() - 2];
  if (square && rows != d.back()) c.fail_type(format("its matrices are {} x {}, not square", rows, d.back()));
  if (std::min(rows, d.back()) < 1 || std::min(rows, d.back()) > kMostRows)
    c.unsupported(format("matrices of {} x {}", rows, d.back()));
  return Steps{c}.wide(e);
}
DataType real_dtype(NodeContext& c, const Value& v) { return c.dtype(v.expr).is_float() ? c.dtype(v.expr) : kFloat32; }
Values as_given(NodeContext& c, const Expr& e) { return {c.cast(e, real_dtype(c, c.positional(0)))}; }
// The codes that LAPACK gives: nothing is checked here, as PyTorch does without `check_errors`.
Expr no_errors(NodeContext& c, const Expr& a) {
  Ints batch = c.dims(a);
  batch.resize(batch.size() - 2);
  return c.zeros(kInt32, batch);
}
Values with_no_errors(NodeContext& c, Values made) {
  made.emplace_back(no_errors(c, c.positional(0).expr));
  return made;
}
Expr joined_batches(NodeContext& c, const Expr& e, const Expr& other) {
  // The batch axes of one that the other lacks.
  Ints d = c.dims(e), o = c.dims(other);
  Ints shape;
  const size_t rank = std::max(d.size(), o.size());
  d.insert(d.begin(), rank - d.size(), 1);
  o.insert(o.begin(), rank - o.size(), 1);
  for (size_t i = 0; i + 2 < rank; ++i) shape.push_back(std::max(d[i], o[i]));
  shape.insert(shape.end(), {d[rank - 2], d[rank - 1]});
  return c.broadcast_to(e, shape);
}

// ---- elimination

struct Eliminated {
  Expr solution;            // of a and the right-hand sides, if there are any
  std::vector<Expr> found;  // the pivots, (..., 1, 1)
  Expr sign;                // 1 or -1, by the number of rows that were exchanged
};
// Gauss's and Jordan's elimination with the largest element of a column as its pivot.
Eliminated eliminated(NodeContext& c, const Expr& a, const Expr& sides) {
  const Steps s{c};
  const int64_t n = s.rows(a), rank = c.rank(a);
  Expr z = sides ? c.concat({a, sides}, rank - 1) : a;
  const Expr places = s.places(n), none = s.number(0);
  Eliminated out;
  out.sign = s.number(1);
  for (int64_t k = 0; k < n; ++k) {
    const Expr at_k = c.scalar(static_cast<double>(k), kInt64);
    const Expr size = c.where(s.from(n, k), c.call("abs", {s.column(z, k)}), s.number(-1));
    const Expr at = c.call("argmax", {size}, make_attrs<relay::ArgReduceAttrs>([&](auto& attrs) {
                             attrs.axis = Ints{rank - 2};
                             attrs.keepdims = true;
                             attrs.dtype = kInt64;
                           }));
    const Expr here = c.call("equal", {places, at});
    const Expr best = s.sum_of_rows(c.where(here, z, none)), given = s.row(z, k);
    const Expr pivot = s.column(best, k);
    out.found.push_back(pivot);
    out.sign = c.mul(out.sign, c.where(c.call("equal", {at, at_k}), s.number(1), s.number(-1)));
    // A determinant of 0 shall not become a quotient of zeros.
    const Expr divisor = sides ? pivot : c.where(c.call("equal", {pivot, none}), s.number(1), pivot);
    const Expr row = c.div(best, divisor), moved = c.where(here, given, z);
    z = c.where(c.call("equal", {places, at_k}), row, c.sub(moved, c.mul(s.column(moved, k), row)));
  }
  if (sides) out.solution = c.slice(z, rank - 1, n, n + s.columns(sides));
  return out;
}
Values inverse(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0));
  const Steps s{c};
  const Expr one = c.broadcast_to(s.identity(s.rows(a)), c.dims(a));
  return as_given(c, eliminated(c, a, one).solution);
}
Values inverse_ex(NodeContext& c) { return with_no_errors(c, inverse(c)); }
Values determinant(NodeContext& c) {
  const Eliminated e = eliminated(c, matrix(c, c.positional(0)), {});
  Expr product = e.sign;
  for (const Expr& pivot : e.found) product = c.mul(product, pivot);
  return as_given(c, Steps{c}.alone(product));
}
struct LogDeterminant {
  Expr sign, log;  // float64
};
LogDeterminant log_of_determinant(NodeContext& c) {
  const Eliminated e = eliminated(c, matrix(c, c.positional(0)), {});
  Expr sign = e.sign, log;
  for (const Expr& pivot : e.found) {
    sign = c.mul(sign, c.call("sign", {pivot}));
    const Expr one = c.call("log", {c.call("abs", {pivot})});
    log = log ? c.add(log, one) : one;
  }
  const Steps s{c};
  return {s.alone(sign), s.alone(log)};
}
Values sign_and_log(NodeContext& c) {
  const LogDeterminant d = log_of_determinant(c);
  return {as_given(c, d.sign)[0], as_given(c, d.log)[0]};
}
Values log_determinant(NodeContext& c) {
  const LogDeterminant d = log_of_determinant(c);
  return as_given(c, c.add(d.log, c.call("log", {d.sign})));  // not a number below 0
}
// A X = B, or X A = B; B is a vector where it has one axis less.
Values solved(NodeContext& c) {
  const Steps s{c};
  Expr a = matrix(c, c.positional(0)), b = s.wide(c.positional(1).expr);
  const Ints d = c.dims(a), of_b = c.dims(b);
  const bool vector =
      of_b.size() == 1 || (of_b.size() + 1 == d.size() && std::equal(of_b.begin(), of_b.end(), d.begin()));
  if (vector) b = c.expand(b, c.rank(b));
  const bool left = c.flag("left", true);
  if (!left) a = s.turned(a), b = s.turned(b);
  const Expr wide_a = joined_batches(c, a, b), wide_b = joined_batches(c, b, a);
  Expr x = eliminated(c, wide_a, wide_b).solution;
  if (!left) x = s.turned(x);
  return as_given(c, vector ? c.squeeze(x, {c.rank(x) - 1}) : x);
}
Values solved_ex(NodeContext& c) { return with_no_errors(c, solved(c)); }

// ---- triangles

// Row by row: lower triangles from the first one, upper triangles from the last one.
Expr substituted(NodeContext& c, const Expr& a, const Expr& b, bool upper, bool ones) {
  const Steps s{c};
  const Expr wide_a = joined_batches(c, a, b);
  Expr rest = joined_batches(c, b, a);
  const int64_t n = s.rows(a);
  std::vector<Expr> made(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = upper ? n - 1 - i : i;
    const Expr own = s.row(rest, k);
    const Expr x = ones ? own : c.div(own, s.element(wide_a, k, k));
    made[static_cast<size_t>(k)] = x;
    if (i + 1 < n) rest = c.sub(rest, c.mul(s.column(wide_a, k), x));
  }
  return c.concat(made, c.rank(rest) - 2);
}
Values solved_triangle(NodeContext& c) {
  const Steps s{c};
  const Expr a = matrix(c, c.positional(0)), b = s.wide(c.positional(1).expr);
  const bool upper = c.flag("upper", false), ones = c.flag("unitriangular", false);
  if (c.flag("left", true)) return as_given(c, substituted(c, a, b, upper, ones));
  return as_given(c, s.turned(substituted(c, s.turned(a), s.turned(b), !upper, ones)));
}
// The older form: (b, A).
Values triangular_solve(NodeContext& c) {
  const Steps s{c};
  Expr a = matrix(c, c.positional(1));
  const Expr b = s.wide(c.positional(0).expr);
  const bool turns = c.flag("transpose", false), upper = c.flag("upper", true);
  if (turns) a = s.turned(a);
  return {as_given(c, substituted(c, a, b, upper != turns, c.flag("unitriangular", false)))[0], c.positional(1)};
}

// ---- Cholesky

Values cholesky(NodeContext& c) {
  const Steps s{c};
  Expr z = matrix(c, c.positional(0));
  const int64_t n = s.rows(z);
  std::vector<Expr> columns;
  for (int64_t k = 0; k < n; ++k) {
    const Expr scaled = c.div(s.column(z, k), c.call("sqrt", {s.element(z, k, k)}));
    columns.push_back(c.where(s.from(n, k), scaled, s.number(0)));
    if (k + 1 < n) z = c.sub(z, c.mul(columns.back(), s.turned(columns.back())));
  }
  const Expr lower = c.concat(columns, c.rank(z) - 1);
  return as_given(c, c.flag("upper", false) ? s.turned(lower) : lower);
}
Values cholesky_ex(NodeContext& c) { return with_no_errors(c, cholesky(c)); }
Expr solved_by_factor(NodeContext& c, const Expr& factor, const Expr& b) {
  const Steps s{c};
  const bool upper = c.flag("upper", false);
  const Expr lower = upper ? s.turned(factor) : factor;
  return substituted(c, s.turned(lower), substituted(c, lower, b, false, false), true, false);
}
Values cholesky_solve(NodeContext& c) {
  return as_given(c, solved_by_factor(c, matrix(c, c.positional(1)), Steps{c}.wide(c.positional(0).expr)));
}
Values cholesky_inverse(NodeContext& c) {
  const Expr factor = matrix(c, c.positional(0));
  const Steps s{c};
  return as_given(c, solved_by_factor(c, factor, c.broadcast_to(s.identity(s.rows(factor)), c.dims(factor))));
}

// ---- QR, by Householder's reflections, with LAPACK's signs

Values orthogonal(NodeContext& c) {
  const Steps s{c};
  Expr z = matrix(c, c.positional(0), false);
  const std::string mode = c.text("mode", "reduced");
  const int64_t rows = s.rows(z), count = std::min(rows, s.columns(z)), rank = c.rank(z);
  if (rows > 4 * kMostRows) c.unsupported(format("matrices of {} rows", rows));
  Ints square = c.dims(z);
  square.back() = rows;
  Expr q = c.broadcast_to(s.identity(rows), square);
  const Expr none = s.number(0), one = s.number(1);
  for (int64_t k = 0; k < count && k + 1 < rows; ++k) {
    const Expr x = c.where(s.from(rows, k), s.column(z, k), none), own = s.row(x, k);
    const Expr below = c.where(s.from(rows, k + 1), x, none);
    const Expr away = s.sum_of_rows(c.mul(below, below)), idle = c.call("equal", {away, none});
    const Expr length = c.call("sqrt", {c.add(away, c.mul(own, own))});
    const Expr signed_length = c.where(c.call("less", {own, none}), length, c.call("negative", {length}));
    const Expr at_k = c.call("equal", {s.places(rows), c.scalar(static_cast<double>(k), kInt64)});
    const Expr v = c.where(at_k, c.sub(own, signed_length), below);
    const Expr scale = c.where(idle, none, c.div(s.number(2), c.where(idle, one, s.sum_of_rows(c.mul(v, v)))));
    z = c.sub(z, c.mul(c.mul(scale, v), s.sum_of_rows(c.mul(v, z))));
    const Expr across = c.reduce("sum", c.mul(q, s.turned(v)), {rank - 1}, true);
    q = c.sub(q, c.mul(c.mul(scale, across), s.turned(v)));
  }
  const int64_t kept = mode == "complete" ? rows : count;
  const Expr on = c.call("greater_equal", {c.expand(c.counting(s.columns(z)), 0), s.places(kept)});
  const Expr r = c.where(on, c.slice(z, rank - 2, 0, kept), none);
  return {
      mode == "r" ? Value(c.zeros(real_dtype(c, c.positional(0)), {0})) : as_given(c, c.slice(q, rank - 1, 0, kept))[0],
      as_given(c, r)[0]};
}
Values nothing(NodeContext&) { return {}; }

constexpr ConverterEntry kTable[] = {
    {"aten.linalg_inv", inverse},
    {"aten.inverse", inverse},
    {"aten.linalg_inv_ex", inverse_ex},
    {"aten.linalg_det", determinant},
    {"aten.det", determinant},
    {"aten._linalg_det", determinant},
    {"aten.linalg_slogdet", sign_and_log},
    {"aten.slogdet", sign_and_log},
    {"aten._linalg_slogdet", sign_and_log},
    {"aten.logdet", log_determinant},
    {"aten.linalg_solve", solved},
    {"aten._linalg_solve_ex", solved},
    {"aten.linalg_solve_ex", solved_ex},
    {"aten.linalg_solve_triangular", solved_triangle},
    {"aten.triangular_solve", triangular_solve},
    {"aten.linalg_cholesky", cholesky},
    {"aten.cholesky", cholesky},
    {"aten.linalg_cholesky_ex", cholesky_ex},
    {"aten.cholesky_solve", cholesky_solve},
    {"aten.cholesky_inverse", cholesky_inverse},
    {"aten.linalg_qr", orthogonal},
    {"aten._linalg_check_errors", nothing},
};

}  // namespace
}  // namespace matrices

std::span<const ConverterEntry> matrices_converters() { return matrices::kTable; }

}  // namespace tilewright::torch
