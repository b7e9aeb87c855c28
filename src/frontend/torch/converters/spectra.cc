// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and singular values of matrices, and what follows from them: inverses of any matrix, ranks, norms;
// powers.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/converters/matrices.h"

namespace tilewright::torch {
namespace matrices {
namespace {

using Ints = std::vector<int64_t>;

int64_t last_axis(NodeContext& c, const Expr& e) { return c.rank(e) - 1; }
Expr times(NodeContext& c, const Expr& a, const Expr& b) {
  return c.one_of("aten.matmul.default", {{"self", Value(a)}, {"other", Value(b)}});
}

// ---- eigenvalues of symmetric matrices

struct Spectrum {
  Expr values, vectors;
};
Spectrum spectrum(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0));
  const bool upper = c.text("UPLO", "L") != "L" && c.text("UPLO", "L") != "l";
  const Expr made = c.call("linalg.eigh", {upper ? turned(c, a) : a});
  return {c.get(made, 0), c.get(made, 1)};
}
Values eigh(NodeContext& c) {
  const Spectrum s = spectrum(c);
  return {as_given(c, s.values)[0], as_given(c, s.vectors)[0]};
}
Values eigvalsh(NodeContext& c) { return as_given(c, spectrum(c).values); }

// ---- singular values

struct Singular {
  Expr u, s, v;  // a = u diag(s) v
};
Singular singular(NodeContext& c, const Expr& a) {
  const Expr made = c.call("linalg.svd", {a});
  return {c.get(made, 0), c.get(made, 1), c.get(made, 2)};
}
// The columns of u, those of zeros replaced, and as many more that all are orthogonal: u = q r, where r is a diagonal
// of signs and zeros.
Expr completed(NodeContext& c, const Expr& u, bool square) {
  const int64_t columns = sides(c, u).columns, last = last_axis(c, u);
  const Expr made = c.call("linalg.qr", {u}, make_attrs<relay::QrAttrs>([&](auto& attrs) { attrs.complete = square; }));
  const Expr q = c.get(made, 0), r = c.get(made, 1);
  const Expr count = c.counting(columns), on = c.call("equal", {c.expand(count, 1), count});
  const Expr top = c.slice(r, last - 1, 0, columns);
  const Expr diagonal = c.reduce("sum", c.where(on, top, c.scalar(0, kFloat64)), {last - 1}, true);
  const Expr signs =
      c.where(c.call("less", {diagonal, c.scalar(0, kFloat64)}), c.scalar(-1, kFloat64), c.scalar(1, kFloat64));
  const int64_t more = sides(c, q).columns - columns;
  const Expr first = c.mul(more > 0 ? c.slice(q, last, 0, columns) : q, signs);
  return more > 0 ? c.concat({first, c.slice(q, last, columns, columns + more)}, last) : first;
}
// Of whole bases, or of as many vectors as there are values.
Singular with_bases(NodeContext& c, const Expr& a, bool whole_bases) {
  Singular out = singular(c, a);
  const Sides d = sides(c, a);
  if (d.rows > d.columns) out.u = completed(c, out.u, whole_bases);
  if (d.rows < d.columns) out.v = turned(c, completed(c, turned(c, out.v), whole_bases));
  return out;
}
Values svd(NodeContext& c) {
  const bool whole_bases = c.flag("full_matrices", without_overload(c.node().target) == "aten.linalg_svd");
  const Singular s = with_bases(c, matrix(c, c.positional(0), false), whole_bases);
  return {as_given(c, s.u)[0], as_given(c, s.s)[0], as_given(c, s.v)[0]};
}
// The older form, whose third result is turned.
Values older_svd(NodeContext& c) {
  if (!c.flag("compute_uv", true)) c.unsupported("singular values alone; torch.linalg.svdvals gives them");
  const Singular s = with_bases(c, matrix(c, c.positional(0), false), !c.flag("some", true));
  return {as_given(c, s.u)[0], as_given(c, s.s)[0], as_given(c, turned(c, s.v))[0]};
}
Values singular_values(NodeContext& c) { return as_given(c, singular(c, matrix(c, c.positional(0), false)).s); }

// ---- what counts as zero

// Per matrix, (..., 1): the larger of `absolute` and `relative` times the largest value. Without either, PyTorch's
// choice: the larger side times the dtype's distance from 1 to the next number.
Expr threshold(NodeContext& c, const Expr& a, const Expr& values, const char* absolute, const char* relative) {
  const Sides d = sides(c, a);
  const DataType dtype = c.dtype(c.positional(0).expr);
  auto given = [&](const char* name) {
    const Expr e = c.cast(c.tensor(name), kFloat64);
    return c.rank(e) > 0 ? c.expand(e, c.rank(e)) : e;
  };
  const bool has_absolute = absolute && c.has(absolute);
  const double step = dtype == kFloat64 ? 0x1p-52 : 0x1p-23;
  Expr factor = relative && c.has(relative)
                    ? given(relative)
                    : c.scalar(has_absolute ? 0 : step * static_cast<double>(std::max(d.rows, d.columns)), kFloat64);
  const Expr largest = c.reduce("max", values, {last_axis(c, values)}, true), bound = c.mul(largest, factor);
  return has_absolute ? c.call("maximum", {bound, given(absolute)}) : bound;
}
Expr pseudo_inverse(NodeContext& c, const Expr& a, const char* absolute, const char* relative) {
  const Singular s = singular(c, a);
  const Expr none = c.scalar(0, kFloat64), counts = c.call("greater", {s.s, threshold(c, a, s.s, absolute, relative)});
  const Expr inverse = c.where(counts, c.div(c.scalar(1, kFloat64), c.where(counts, s.s, c.scalar(1, kFloat64))), none);
  return times(c, c.mul(turned(c, s.v), c.expand(inverse, c.rank(inverse) - 1)), turned(c, s.u));
}
Values pinv(NodeContext& c) {
  const bool named = c.node().target.find("atol") != std::string::npos;
  const Expr a = matrix(c, c.positional(0), false);
  return as_given(c, pseudo_inverse(c, a, named ? "atol" : nullptr, named ? "rtol" : "rcond"));
}
Values matrix_rank(NodeContext& c) {
  const bool named = c.node().target.find("atol") != std::string::npos;
  const Expr a = matrix(c, c.positional(0), false), values = singular(c, a).s;
  const Expr bound = threshold(c, a, values, named ? "atol" : "tol", named ? "rtol" : nullptr);
  return {c.reduce("sum", c.cast(c.call("greater", {values, bound}), kInt64), {last_axis(c, values)}, false)};
}
// (solution, residuals, rank, singular values), the last two as the default driver gives them.
Values least_squares(NodeContext& c) {
  const Expr a = matrix(c, c.positional(0), false);
  Expr b = c.cast(c.positional(1).expr, kFloat64);
  const bool vector = c.rank(b) + 1 == c.rank(a);
  if (vector) b = c.expand(b, c.rank(b));
  const Sides d = sides(c, a);
  const Expr x = times(c, pseudo_inverse(c, a, nullptr, "rcond"), b);
  const Expr values = singular(c, a).s;
  const Expr rank =
      c.reduce("sum", c.cast(c.call("greater", {values, threshold(c, a, values, nullptr, "rcond")}), kInt64),
               {last_axis(c, values)}, false);
  Value residuals = c.zeros(kFloat64, {0});
  const std::string driver = c.text("driver", "gelsy");
  if (d.rows > d.columns && driver != "gelsy") {
    const Expr away = c.sub(times(c, a, x), b);
    residuals = c.reduce("sum", c.mul(away, away), {last_axis(c, away) - 1}, false);
  }
  return {as_given(c, vector ? c.squeeze(x, {last_axis(c, x)}) : x)[0], as_given(c, residuals.expr)[0], rank,
          as_given(c, c.zeros(kFloat64, {0}))[0]};
}

// ---- norms

// Of the last two axes; sums of a column or row, or singular values.
Expr norm_of_matrices(NodeContext& c, const Expr& x, double order) {
  const int64_t rank = c.rank(x);
  const bool least = order < 0;
  if (std::abs(order) == 2) return c.reduce(least ? "min" : "max", singular(c, x).s, {rank - 2}, false);
  if (std::abs(order) != 1 && !std::isinf(order)) c.unsupported(format("the norm {} of a matrix", order));
  const Expr sums = c.reduce("sum", c.call("abs", {x}), {std::abs(order) == 1 ? rank - 2 : rank - 1}, false);
  return c.reduce(least ? "min" : "max", sums, {rank - 2}, false);
}
Expr nuclear_norm(NodeContext& c, const Expr& x) { return c.reduce("sum", singular(c, x).s, {c.rank(x) - 2}, false); }
bool is_text(const Value& v) { return v.kind == Value::kText; }
Values matrix_norm(NodeContext& c) {
  const Value& self = c.positional(0);
  const int64_t rank = c.rank(self.expr);
  const bool fro = !c.has("ord") || (is_text(c.value("ord")) && c.text("ord", "fro") == "fro");
  Ints axes = c.has("dim") ? c.axes("dim", rank) : Ints{rank - 2, rank - 1};
  if (axes.size() != 2 || rank < 2) c.fail_type("a norm of matrices needs two axes");
  const DataType dtype = c.dtype_arg("dtype", c.real(self.expr) ? c.dtype(c.real(self.expr)) : kFloat32);
  const bool keeps = c.flag("keepdim", false);
  if (fro) {
    const Expr x = c.cast(self.expr, dtype);
    return {c.call("sqrt", {c.reduce("sum", c.mul(x, x), axes, keeps)})};
  }
  Ints order;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axes[0] && i != axes[1]) order.push_back(i);
  order.insert(order.end(), axes.begin(), axes.end());
  const Expr x = c.cast(c.transpose(self.expr, order), kFloat64);
  if (is_text(c.value("ord")) && c.text("ord", "") != "nuc") c.unsupported("the norm " + c.text("ord", ""));
  Expr y = is_text(c.value("ord")) ? nuclear_norm(c, x) : norm_of_matrices(c, x, c.number("ord"));
  if (keeps) {
    std::sort(axes.begin(), axes.end());
    for (int64_t axis : axes) y = c.expand(y, axis);
  }
  return {c.cast(y, dtype)};
}
// Of matrices where two axes, or none of a matrix and an order, are named; of vectors otherwise.
Values norm(NodeContext& c) {
  const Value& self = c.positional(0);
  const bool two_axes = c.has("dim") ? c.ints("dim").size() == 2 : c.rank(self.expr) == 2;
  if (two_axes && c.has("ord")) return matrix_norm(c);
  NamedValues arguments = {{"self", self}};
  for (const char* name : {"ord", "dim", "keepdim", "dtype"})
    if (c.has(name)) arguments.emplace_back(name, c.value(name));
  if (!c.has("ord") || is_text(c.value("ord")))
    std::erase_if(arguments, [](const auto& named) { return named.first == "ord"; });
  return {c.one_of("aten.linalg_vector_norm.default", std::move(arguments))};
}
// The norm of a matrix times that of its inverse.
Values condition(NodeContext& c) {
  const bool text = c.has("p") && is_text(c.value("p"));
  const double order = c.has("p") && !text ? c.number("p") : 2;
  const Expr a = matrix(c, c.positional(0), text || std::abs(order) != 2);
  if (!text && std::abs(order) == 2) {
    const Expr values = singular(c, a).s;
    const int64_t axis = last_axis(c, values);
    const Expr largest = c.reduce("max", values, {axis}, false), least = c.reduce("min", values, {axis}, false);
    return as_given(c, order > 0 ? c.div(largest, least) : c.div(least, largest));
  }
  auto size = [&](const Expr& e) {
    if (!text) return norm_of_matrices(c, e, order);
    if (c.text("p", "") == "nuc") return nuclear_norm(c, e);
    return c.call("sqrt", {c.reduce("sum", c.mul(e, e), {c.rank(e) - 2, c.rank(e) - 1}, false)});
  };
  return as_given(c, c.mul(size(a), size(c.one_of("aten.linalg_inv.default", {{"A", Value(a)}}))));
}

// ---- powers

Values matrix_power(NodeContext& c) {
  Expr x = c.tensor("self");
  int64_t n = c.integer("n");
  if (c.rank(x) < 2 || sides(c, x).rows != sides(c, x).columns) c.fail_type("its operand is not a square matrix");
  if (n < 0) x = c.one_of("aten.linalg_inv.default", {{"A", Value(x)}});
  Expr out;
  for (n = std::abs(n); n > 0; n /= 2) {
    if (n % 2 == 1) out = out ? times(c, out, x) : x;
    if (n > 1) x = times(c, x, x);
  }
  if (out) return {out};
  const Expr count = c.counting(sides(c, x).rows);
  return {c.broadcast_to(c.cast(c.call("equal", {c.expand(count, 1), count}), c.dtype(x)), c.dims(x))};
}
// A series of a small part of the matrix, squared until it is the whole.
Values matrix_exponential(NodeContext& c) {
  constexpr int kSquares = 10, kTerms = 18;
  const Expr a = c.mul(matrix(c, c.positional(0)), c.scalar(std::ldexp(1, -kSquares), kFloat64));
  const Expr count = c.counting(sides(c, a).rows);
  const Expr one = c.cast(c.call("equal", {c.expand(count, 1), count}), kFloat64);
  Expr sum = c.broadcast_to(one, c.dims(a));
  for (int k = kTerms; k >= 1; --k) sum = c.add(c.mul(times(c, a, sum), c.scalar(1.0 / k, kFloat64)), one);
  for (int i = 0; i < kSquares; ++i) sum = times(c, sum, sum);
  return as_given(c, sum);
}

constexpr ConverterEntry kSpectra[] = {
    {"aten.linalg_eigh", eigh},
    {"aten._linalg_eigh", eigh},
    {"aten.linalg_eigvalsh", eigvalsh},
    {"aten.linalg_svd", svd},
    {"aten._linalg_svd", svd},
    {"aten.svd", older_svd},
    {"aten.linalg_svdvals", singular_values},
    {"aten.linalg_pinv", pinv},
    {"aten.pinverse", pinv},
    {"aten.linalg_matrix_rank", matrix_rank},
    {"aten.linalg_lstsq", least_squares},
    {"aten.linalg_norm", norm},
    {"aten.linalg_matrix_norm", matrix_norm},
    {"aten.linalg_cond", condition},
    {"aten.matrix_power", matrix_power},
    {"aten.linalg_matrix_power", matrix_power},
    {"aten.linalg_matrix_exp", matrix_exponential},
    {"aten.matrix_exp", matrix_exponential},
};

}  // namespace
}  // namespace matrices

std::span<const ConverterEntry> spectra_converters() { return matrices::kSpectra; }

}  // namespace tilewright::torch
