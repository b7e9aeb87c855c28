// SPDX-License-Identifier: Apache-2.0
// Matrices of complex numbers: eigenvalues of any matrix, and systems, which are those of real matrices of twice the
// size: [A -B; B A] does to (x, y) what A + iB does to x + iy.
#include "base/format.h"
#include "frontend/torch/converters/complex.h"
#include "frontend/torch/converters/matrices.h"

namespace tilewright::torch {
namespace complex_matrices {
namespace {

using complex::as_complex;
using complex::axes_of;
using complex::joined;
using complex::Parts;
using complex::parts_of;
using complex::zeros_of;

using matrices::Sides;
using matrices::sides;

Parts matrix_parts(NodeContext& c, const Value& v, bool square) {
  const Parts p = parts_of(c, v);
  if (c.rank(p.real) < 2) c.fail_type("its operand is not a matrix");
  const Sides d = sides(c, p.real);
  if (square && d.rows != d.columns) c.fail_type(format("its matrices are {} x {}, not square", d.rows, d.columns));
  const Expr real = c.cast(p.real, kFloat64);
  return {real, p.imaginary ? c.cast(p.imaginary, kFloat64) : zeros_of(c, real)};
}
DataType own_dtype(NodeContext& c) {
  const DataType dtype = c.dtype(c.positional(0).expr);
  return dtype.is_float() ? dtype : kFloat32;
}
Value given_back(NodeContext& c, const Expr& real, const Expr& imaginary) {
  return joined(c, c.cast(real, own_dtype(c)), c.cast(imaginary, own_dtype(c)));
}

// ---- eigenvalues

Expr decomposed(NodeContext& c) {
  const Parts p = matrix_parts(c, c.positional(0), true);
  return c.call("linalg.eig", {joined(c, p.real, p.imaginary).expr});
}
Value field(NodeContext& c, const Expr& made, int64_t i) { return as_complex(c.cast(c.get(made, i), own_dtype(c))); }
Values eig(NodeContext& c) {
  const Expr e = decomposed(c);
  return {field(c, e, 0), field(c, e, 1)};
}
Values eigvals(NodeContext& c) { return {field(c, decomposed(c), 0)}; }

// ---- systems

Expr doubled(NodeContext& c, const Parts& p) {
  const int64_t last = c.rank(p.real) - 1;
  const Expr top = c.concat({p.real, c.call("negative", {p.imaginary})}, last);
  return c.concat({top, c.concat({p.imaginary, p.real}, last)}, last - 1);
}
// Its first `rows` rows are the real part, the others the imaginary one.
Parts halves(NodeContext& c, const Expr& e, int64_t rows) {
  const int64_t axis = c.rank(e) - 2;
  return {c.slice(e, axis, 0, rows), c.slice(e, axis, rows, 2 * rows)};
}
Values inverse(NodeContext& c) {
  const Parts p = matrix_parts(c, c.positional(0), true);
  const int64_t n = sides(c, p.real).rows;
  const Expr all = c.one_of("aten.linalg_inv.default", {{"A", Value(doubled(c, p))}});
  const Parts made = halves(c, c.slice(all, c.rank(all) - 1, 0, n), n);
  return {given_back(c, made.real, made.imaginary)};
}
// The codes that LAPACK gives, as for real matrices.
Values with_no_errors(NodeContext& c, Values made) {
  std::vector<int64_t> batch = c.dims(matrix_parts(c, c.positional(0), true).real);
  batch.resize(batch.size() - 2);
  made.emplace_back(c.zeros(kInt32, batch));
  return made;
}
Values inverse_ex(NodeContext& c) { return with_no_errors(c, inverse(c)); }
Values solve(NodeContext& c) {
  if (!c.flag("left", true)) c.unsupported("complex systems from the right");
  const Parts a = matrix_parts(c, c.positional(0), true), given = parts_of(c, c.positional(1));
  const int64_t n = sides(c, a.real).rows;
  const bool vector = c.rank(given.real) + 1 == c.rank(a.real);
  auto columns = [&](const Expr& e) {
    const Expr wide = c.cast(e, kFloat64);
    return vector ? c.expand(wide, c.rank(wide)) : wide;
  };
  const Expr real = columns(given.real), imaginary = given.imaginary ? columns(given.imaginary) : zeros_of(c, real);
  const Expr x = c.one_of("aten.linalg_solve.default",
                          {{"A", Value(doubled(c, a))}, {"B", Value(c.concat({real, imaginary}, c.rank(real) - 2))}});
  const Parts made = halves(c, x, n);
  auto narrow = [&](const Expr& e) { return vector ? c.squeeze(e, {c.rank(e) - 1}) : e; };
  return {given_back(c, narrow(made.real), narrow(made.imaginary))};
}
Values solve_ex(NodeContext& c) { return with_no_errors(c, solve(c)); }
// The product of the eigenvalues.
Values determinant(NodeContext& c) {
  const Value values = field(c, decomposed(c), 0);
  return c.aten("aten.prod.dim_int", {{"self", values}, {"dim", whole(axes_of(c, values) - 1)}});
}

constexpr ConverterEntry kOfAny[] = {
    {"aten.linalg_eig", eig},
    {"aten.linalg_eigvals", eigvals},
};
constexpr ConverterEntry kTable[] = {
    {"aten.linalg_inv_ex", inverse_ex}, {"aten.linalg_solve_ex", solve_ex}, {"aten.linalg_inv", inverse},
    {"aten.inverse", inverse},          {"aten.linalg_solve", solve},       {"aten.det", determinant},
    {"aten.linalg_det", determinant},
};

}  // namespace
}  // namespace complex_matrices

std::span<const ConverterEntry> complex_matrices_converters() { return complex_matrices::kOfAny; }
std::span<const ConverterEntry> converters_of_complex_matrices() { return complex_matrices::kTable; }

}  // namespace tilewright::torch
