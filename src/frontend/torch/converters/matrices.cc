// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices and what they solve, by the operators linalg.*, in float64.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/matrices.h"
#include "frontend/torch/converters/matrices.h"

namespace tilewright::torch {
namespace matrices {
using Ints = std::vector<int64_t>;
using frontend::identity_rows;
using frontend::row_order;

Sides sides(NodeContext& c, const Expr& e) {
  const Ints d = c.dims(e);
  return {d[d.size() - 2], d.back()};
}
Expr turned(NodeContext& c, const Expr& e) {
  Ints order(static_cast<size_t>(c.rank(e)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return c.transpose(e, order);
}
Expr matrix(NodeContext& c, const Value& v, bool square) {
  if (!v.expr) c.fail_type("its operand is not a tensor");
  if (v.complex) c.unsupported("complex matrices");
  const Expr e = v.expr;
  if (c.rank(e) < 2) c.fail_type("its operand is not a matrix");
  const Sides d = sides(c, e);
  if (square && d.rows != d.columns) c.fail_type(format("its matrices are {} x {}, not square", d.rows, d.columns));
  return c.cast(e, kFloat64);
}
namespace {
DataType real_dtype(NodeContext& c, const Value& v) { return c.dtype(v.expr).is_float() ? c.dtype(v.expr) : kFloat32; }
}  // namespace
Values as_given(NodeContext& c, const Expr& e) { return {c.cast(e, real_dtype(c, c.positional(0)))}; }

namespace {

Expr wide(NodeContext& c, const Expr& e) { return c.cast(e, kFloat64); }
// (rows, columns): whether the column's number is at least the row's plus `first`.
Expr upper_part(NodeContext& c, int64_t rows, int64_t columns, int64_t first) {
  return c.call("greater_equal", {c.counting(columns), c.expand(c.counting(rows, first), 1)});
}

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

// The x of a triangle's system; batches are joined.
Expr substituted(NodeContext& c, const Expr& a, const Expr& b, bool upper, bool ones) {
  const Expr wide_a = joined_batches(c, a, b), wide_b = joined_batches(c, b, a);
  return c.call("linalg.solve_triangular", {wide_a, wide_b}, make_attrs<relay::SolveTriangularAttrs>([&](auto& attrs) {
                  attrs.upper = upper;
                  attrs.unit = ones;
                }));
}

// ---- factors with exchanged rows

// a x = b by the factors of a.
Expr solved_by(NodeContext& c, const Expr& factors, const Expr& pivots, const Expr& b) {
  const Expr wide_b = joined_batches(c, b, factors);
  Expr order = row_order(c, pivots, sides(c, factors).rows);
  const Expr places = c.broadcast_to(c.expand(order, c.rank(order)), c.dims(wide_b));
  const Expr moved =
      c.call("gather", {wide_b, places}, make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = c.rank(wide_b) - 2; }));
  return substituted(c, factors, substituted(c, factors, moved, false, true), true, false);
}
// a^T x = b: the triangles the other way round, and the rows go back to where they were.
Expr solved_by_turned(NodeContext& c, const Expr& factors, const Expr& pivots, const Expr& b) {
  const Expr wide_factors = turned(c, factors);
  const Expr inner = substituted(c, wide_factors, substituted(c, wide_factors, b, false, false), true, true);
  const Expr order = row_order(c, pivots, sides(c, factors).rows);
  const Expr back = c.call("argsort", {order}, make_attrs<relay::ArgsortAttrs>([&](auto& a) {
                             a.axis = c.rank(order) - 1;
                             a.is_ascend = true;
                             a.dtype = kInt64;
                           }));
  const Expr places = c.broadcast_to(c.expand(back, c.rank(back)), c.dims(inner));
  return c.call("gather", {inner, places},
                make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = c.rank(inner) - 2; }));
}
Values inverse(NodeContext& c) { return as_given(c, frontend::inverse(c, matrix(c, c.positional(0)))); }
Values inverse_ex(NodeContext& c) { return with_no_errors(c, inverse(c)); }
Values determinant(NodeContext& c) { return as_given(c, frontend::determinant(c, matrix(c, c.positional(0)))); }
struct LogDeterminant {
  Expr sign, log;  // float64
};
LogDeterminant log_of_determinant(NodeContext& c) {
  const frontend::LuFactors f = frontend::lu_factors(c, matrix(c, c.positional(0)));
  const int64_t last = c.rank(f.diagonal) - 1;
  return {c.mul(f.sign, c.reduce("prod", c.call("sign", {f.diagonal}), {last}, false)),
          c.reduce("sum", c.call("log", {c.call("abs", {f.diagonal})}), {last}, false)};
}
Values sign_and_log(NodeContext& c) {
  const LogDeterminant d = log_of_determinant(c);
  return {as_given(c, d.sign)[0], as_given(c, d.log)[0]};
}
Values log_determinant(NodeContext& c) {
  const LogDeterminant d = log_of_determinant(c);
  return as_given(c, c.add(d.log, c.call("log", {d.sign})));  // not a number below 0
}
// A X = B, or X A = B; B is a vector where it has one axis less. X and the factors of A, or of A's transpose.
struct Solved {
  Expr x;
  frontend::LuFactors factors;
};
Solved solved_system(NodeContext& c) {
  Expr a = matrix(c, c.positional(0)), b = wide(c, c.positional(1).expr);
  const Ints d = c.dims(a), of_b = c.dims(b);
  const bool vector =
      of_b.size() == 1 || (of_b.size() + 1 == d.size() && std::equal(of_b.begin(), of_b.end(), d.begin()));
  if (vector) b = c.expand(b, c.rank(b));
  const bool left = c.flag("left", true);
  if (!left) a = turned(c, a), b = turned(c, b);
  frontend::LuFactors f = frontend::lu_factors(c, a);
  Expr x = solved_by(c, f.factors, f.pivots, b);
  if (!left) x = turned(c, x);
  return {vector ? c.squeeze(x, {c.rank(x) - 1}) : x, std::move(f)};
}
// PyTorch's pivots count rows from 1.
Expr counted_from_one(NodeContext& c, const Expr& pivots) { return c.cast(c.add(pivots, c.scalar(1, kInt64)), kInt32); }
Values solved(NodeContext& c) { return as_given(c, solved_system(c).x); }
// Decomposed form: (x, factors, pivots, no errors).
Values solved_with_factors(NodeContext& c) {
  const Solved s = solved_system(c);
  return with_no_errors(
      c, {as_given(c, s.x)[0], as_given(c, s.factors.factors)[0], counted_from_one(c, s.factors.pivots)});
}
Values solved_ex(NodeContext& c) { return with_no_errors(c, solved(c)); }
Values lu_factor(NodeContext& c) {
  if (!c.flag("pivot", true)) c.unsupported("factors without pivots");
  const Expr made = c.call("linalg.lu", {matrix(c, c.positional(0), false)});
  return {as_given(c, c.get(made, 0))[0], counted_from_one(c, c.get(made, 1))};
}
Values lu_factor_ex(NodeContext& c) { return with_no_errors(c, lu_factor(c)); }
// (P, L, U) of factors and pivots.
Values unpacked(NodeContext& c, const Expr& factors, const Expr& pivots) {
  const Sides d = sides(c, factors);
  const int64_t kept = std::min(d.rows, d.columns), rank = c.rank(factors);
  const Expr none = c.scalar(0, kFloat64);
  const Expr below = c.slice(factors, rank - 1, 0, kept), above = c.slice(factors, rank - 2, 0, kept);
  const Expr lower = c.add(c.where(upper_part(c, d.rows, kept, 0), none, below),
                           c.cast(c.call("equal", {c.expand(c.counting(d.rows), 1), c.counting(kept)}), kFloat64));
  return {as_given(c, turned(c, identity_rows(c, row_order(c, pivots, d.rows))))[0], as_given(c, lower)[0],
          as_given(c, c.where(upper_part(c, kept, d.columns, 0), above, none))[0]};
}
Values lu(NodeContext& c) {
  if (!c.flag("pivot", true)) c.unsupported("factors without pivots");
  const Expr made = c.call("linalg.lu", {matrix(c, c.positional(0), false)});
  return unpacked(c, c.get(made, 0), c.get(made, 1));
}
Expr given_pivots(NodeContext& c, size_t i) { return c.sub(c.cast(c.positional(i).expr, kInt64), c.scalar(1, kInt64)); }
Values lu_unpack(NodeContext& c) { return unpacked(c, matrix(c, c.positional(0), false), given_pivots(c, 1)); }
Values lu_solve(NodeContext& c) {
  const Expr factors = matrix(c, c.positional(0)), pivots = given_pivots(c, 1);
  const bool left = c.flag("left", true), adjoint = c.flag("adjoint", false);
  Expr b = wide(c, c.positional(2).expr);
  if (!left) b = turned(c, b);
  const Expr x = left != adjoint ? solved_by(c, factors, pivots, b) : solved_by_turned(c, factors, pivots, b);
  return as_given(c, left ? x : turned(c, x));
}

// ---- triangles

Values solved_triangle(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0)), b = wide(c, c.positional(1).expr);
  const bool upper = c.flag("upper", false), ones = c.flag("unitriangular", false);
  if (c.flag("left", true)) return as_given(c, substituted(c, a, b, upper, ones));
  return as_given(c, turned(c, substituted(c, turned(c, a), turned(c, b), !upper, ones)));
}
// The older form: (b, A).
Values triangular_solve(NodeContext& c) {
  Expr a = matrix(c, c.positional(1));
  const Expr b = wide(c, c.positional(0).expr);
  const bool turns = c.flag("transpose", false), upper = c.flag("upper", true);
  if (turns) a = turned(c, a);
  return {as_given(c, substituted(c, a, b, upper != turns, c.flag("unitriangular", false)))[0], c.positional(1)};
}

// ---- Cholesky

// Of the lower triangle, or the upper one.
Values cholesky(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0));
  const bool upper = c.flag("upper", false);
  const Expr lower = c.call("linalg.cholesky", {upper ? turned(c, a) : a});
  return as_given(c, upper ? turned(c, lower) : lower);
}
Values cholesky_ex(NodeContext& c) { return with_no_errors(c, cholesky(c)); }
Expr solved_by_factor(NodeContext& c, const Expr& factor, const Expr& b) {
  const Expr lower = c.flag("upper", false) ? turned(c, factor) : factor;
  return substituted(c, turned(c, lower), substituted(c, lower, b, false, false), true, false);
}
Values cholesky_solve(NodeContext& c) {
  return as_given(c, solved_by_factor(c, matrix(c, c.positional(1)), wide(c, c.positional(0).expr)));
}
Values cholesky_inverse(NodeContext& c) {
  const Expr factor = matrix(c, c.positional(0));
  return as_given(c, solved_by_factor(c, factor, identity_rows(c, c.counting(sides(c, factor).rows))));
}

// ---- QR

Values orthogonal(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0), false);
  const std::string mode = c.text("mode", "reduced");
  const Expr made =
      c.call("linalg.qr", {a}, make_attrs<relay::QrAttrs>([&](auto& attrs) { attrs.complete = mode == "complete"; }));
  return {mode == "r" ? Value(c.zeros(real_dtype(c, c.positional(0)), {0})) : as_given(c, c.get(made, 0))[0],
          as_given(c, c.get(made, 1))[0]};
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
    {"aten._linalg_solve_ex", solved_with_factors},
    {"aten.linalg_solve_ex", solved_ex},
    {"aten.linalg_lu", lu},
    {"aten.linalg_lu_factor", lu_factor},
    {"aten.linalg_lu_factor_ex", lu_factor_ex},
    {"aten._lu_with_info", lu_factor_ex},
    {"aten.linalg_lu_solve", lu_solve},
    {"aten.lu_unpack", lu_unpack},
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
