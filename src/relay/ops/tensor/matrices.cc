// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices, the last two axes of a tensor, and triangular systems.
#include <algorithm>
#include <cmath>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Status matrix_operand(const TypeArgs& args, size_t i) {
  const auto& x = args.tensor(i);
  if (x.dtype != kFloat32 && x.dtype != kFloat64)
    return type_error(format("operand {} has {}, not float32 or float64", i, x.dtype.str()), "cast it first");
  if (x.shape.size() < 2) return type_error(format("operand {} {} is not a matrix", i, shape_str(x.shape)));
  return Ok{};
}
Status square_operand(const TypeArgs& args, size_t i) {
  TW_TRY_STATUS(matrix_operand(args, i));
  const Shape& shape = args.tensor(i).shape;
  if (dims_differ(shape[shape.size() - 2], shape.back()))
    return type_error(format("the matrices of operand {} {} are not square", i, shape_str(shape)));
  return Ok{};
}
Dim smaller_side(const Shape& shape) { return make_dim(DimKind::kMin, shape[shape.size() - 2], shape.back()); }
Shape with_sides(Shape shape, const Dim& rows, const Dim& columns) {
  shape[shape.size() - 2] = rows;
  shape.back() = columns;
  return shape;
}

Result<Type> lu_type(const TypeArgs& args) {
  TW_TRY_STATUS(matrix_operand(args, 0));
  const auto& x = args.tensor(0);
  Shape pivots(x.shape.begin(), x.shape.end() - 1);
  pivots.back() = smaller_side(x.shape);
  return tuple_type({args.types[0], tensor_type(pivots, kInt64)});
}
Result<Type> row_order_type(const TypeArgs& args) {
  const auto& x = args.tensor(0);
  const int64_t rows = attrs_of<RowOrderAttrs>(args).rows;
  if (x.dtype != kInt64 || x.shape.empty())
    return type_error(format("operand 0 is {}, not int64 with an axis", type_str(args.types[0])));
  if (rows < 0 || dims_differ(make_dim(DimKind::kMin, x.shape.back(), Dim(rows)), x.shape.back()))
    return type_error(format("pivots {} are more than {} rows", shape_str({x.shape.back()}), rows));
  Shape order = x.shape;
  order.back() = rows;
  return tensor_type(order, kInt64);
}
Result<Type> cholesky_type(const TypeArgs& args) {
  TW_TRY_STATUS(square_operand(args, 0));
  return args.types[0];
}
Result<Type> solve_triangular_type(const TypeArgs& args) {
  TW_TRY_STATUS(square_operand(args, 0));
  TW_TRY_STATUS(matrix_operand(args, 1));
  const auto &a = args.tensor(0), &b = args.tensor(1);
  bool differ = a.dtype != b.dtype || a.shape.size() != b.shape.size();
  for (size_t i = 0; !differ && i + 1 < a.shape.size(); ++i) differ = dims_differ(a.shape[i], b.shape[i]);
  if (differ)
    return type_error(
        format("{} and {} do not belong to one system", type_str(args.types[0]), type_str(args.types[1])));
  return args.types[1];
}
Result<Type> qr_type(const TypeArgs& args) {
  TW_TRY_STATUS(matrix_operand(args, 0));
  const auto& x = args.tensor(0);
  const Dim &rows = x.shape[x.shape.size() - 2], &columns = x.shape.back();
  const Dim kept = attrs_of<QrAttrs>(args).complete ? rows : smaller_side(x.shape);
  return tuple_type({tensor_type(with_sides(x.shape, rows, kept), x.dtype),
                     tensor_type(with_sides(x.shape, kept, columns), x.dtype)});
}

Result<Type> eigh_type(const TypeArgs& args) {
  TW_TRY_STATUS(square_operand(args, 0));
  const auto& x = args.tensor(0);
  return tuple_type({tensor_type({x.shape.begin(), x.shape.end() - 1}, x.dtype), args.types[0]});
}
Result<Type> svd_type(const TypeArgs& args) {
  TW_TRY_STATUS(matrix_operand(args, 0));
  const auto& x = args.tensor(0);
  const Dim kept = smaller_side(x.shape);
  Shape values(x.shape.begin(), x.shape.end() - 1);
  values.back() = kept;
  return tuple_type({tensor_type(with_sides(x.shape, x.shape[x.shape.size() - 2], kept), x.dtype),
                     tensor_type(values, x.dtype), tensor_type(with_sides(x.shape, kept, x.shape.back()), x.dtype)});
}

// A matrix of a value or of several.
struct MatrixRef {
  std::vector<double>* data;
  int64_t first, columns;
  double& operator()(int64_t i, int64_t j) const { return (*data)[static_cast<size_t>(first + i * columns + j)]; }
};
struct Matrices {
  int64_t count, rows, columns;
  explicit Matrices(const std::vector<int64_t>& shape)
      : count(product(shape, 0, shape.size() - 2)), rows(shape[shape.size() - 2]), columns(shape.back()) {}
  MatrixRef of(Value* v, int64_t m) const { return {&v->f, m * rows * columns, columns}; }
};
// How far another order of the sums may come out, for matrices that are not close to singular ones.
void bound_by_size(Value* v, int64_t steps) {
  double largest = 0;
  for (double x : v->f)
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  v->bound.assign(v->f.size(), 16 * static_cast<double>(steps + 1) * unit_roundoff(v->dtype) * largest);
}

Result<std::vector<Value>> eval_lu(const EvalArgs& args) {
  Value z = args.inputs[0], pivots = out_value(args, 1);
  const Matrices all(z.shape);
  const int64_t steps = std::min(all.rows, all.columns);
  for (int64_t m = 0; m < all.count; ++m) {
    const MatrixRef a = all.of(&z, m);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t best = k;
      for (int64_t i = k + 1; i < all.rows; ++i)
        if (std::fabs(a(i, k)) > std::fabs(a(best, k))) best = i;
      pivots.i[static_cast<size_t>(m * steps + k)] = best;
      if (best != k)
        for (int64_t j = 0; j < all.columns; ++j) std::swap(a(k, j), a(best, j));
      for (int64_t i = k + 1; a(k, k) != 0 && i < all.rows; ++i) {
        a(i, k) /= a(k, k);
        for (int64_t j = k + 1; j < all.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
      }
    }
  }
  bound_by_size(&z, steps);
  return std::vector<Value>{std::move(z), std::move(pivots)};
}
Result<std::vector<Value>> eval_row_order(const EvalArgs& args) {
  const Value& pivots = args.inputs[0];
  Value order = out_value(args);
  const auto rows = static_cast<size_t>(order.shape.back()), steps = static_cast<size_t>(pivots.shape.back());
  for (size_t m = 0; m * rows < order.i.size(); ++m) {
    int64_t* own = order.i.data() + m * rows;
    for (size_t i = 0; i < rows; ++i) own[i] = static_cast<int64_t>(i);
    for (size_t k = 0; k < steps; ++k) {
      const int64_t other = pivots.i[m * steps + k];
      if (other < 0 || static_cast<size_t>(other) >= rows)
        return eval_error(format("pivot {} is outside {} rows", other, rows));
      std::swap(own[k], own[other]);
    }
  }
  return one(std::move(order));
}

Result<std::vector<Value>> eval_cholesky(const EvalArgs& args) {
  Value given = args.inputs[0], out = out_value(args);
  const Matrices all(given.shape);
  for (int64_t m = 0; m < all.count; ++m) {
    const MatrixRef a = all.of(&given, m), l = all.of(&out, m);
    for (int64_t i = 0; i < all.rows; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double sum = a(i, j);
        for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
        l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
      }
  }
  bound_by_size(&out, all.rows);
  return one(std::move(out));
}

Result<std::vector<Value>> eval_solve_triangular(const EvalArgs& args) {
  const auto& attrs = args.as<SolveTriangularAttrs>();
  Value given = args.inputs[0], out = args.inputs[1];
  const Matrices left(given.shape), right(out.shape);
  for (int64_t m = 0; m < right.count; ++m) {
    const MatrixRef a = left.of(&given, m), x = right.of(&out, m);
    for (int64_t step = 0; step < right.rows; ++step) {
      const int64_t i = attrs.upper ? right.rows - 1 - step : step;
      for (int64_t j = 0; j < right.columns; ++j) {
        double sum = x(i, j);
        for (int64_t k = attrs.upper ? i + 1 : 0; k < (attrs.upper ? right.rows : i); ++k) sum -= a(i, k) * x(k, j);
        x(i, j) = attrs.unit ? sum : sum / a(i, i);
      }
    }
  }
  bound_by_size(&out, right.rows);
  return one(std::move(out));
}

// Takes from columns [from, columns) of m what the reflection I - scale v v^T takes; v has its elements from `k` on.
void reflect(const MatrixRef& m, int64_t columns, const std::vector<double>& v, int64_t k, int64_t from, double scale) {
  for (int64_t j = from; j < columns; ++j) {
    double sum = 0;
    for (size_t i = static_cast<size_t>(k); i < v.size(); ++i) sum += v[i] * m(static_cast<int64_t>(i), j);
    for (size_t i = static_cast<size_t>(k); i < v.size(); ++i) m(static_cast<int64_t>(i), j) -= scale * sum * v[i];
  }
}
// Householder's reflections; the diagonal of r has LAPACK's signs.
Result<std::vector<Value>> eval_qr(const EvalArgs& args) {
  Value given = args.inputs[0], q = out_value(args, 0), r = out_value(args, 1);
  const Matrices all(given.shape), of_q(q.shape), of_r(r.shape);
  for (int64_t m = 0; m < all.count; ++m) {
    const MatrixRef a = all.of(&given, m), qs = of_q.of(&q, m), rs = of_r.of(&r, m);
    std::vector<std::vector<double>> vectors;
    std::vector<double> scales;
    for (int64_t k = 0; k < std::min(all.rows - 1, all.columns); ++k) {
      std::vector<double> v(static_cast<size_t>(all.rows));
      double away = 0;
      for (int64_t i = k + 1; i < all.rows; ++i) {
        v[static_cast<size_t>(i)] = a(i, k);
        away += a(i, k) * a(i, k);
      }
      const double length = std::sqrt(a(k, k) * a(k, k) + away), diagonal = a(k, k) < 0 ? length : -length;
      double& first = v[static_cast<size_t>(k)];
      first = a(k, k) - diagonal;
      scales.push_back(away == 0 ? 0 : 2 / (first * first + away));
      if (away != 0) reflect(a, all.columns, v, k, k, scales.back());
      vectors.push_back(std::move(v));
    }
    for (int64_t i = 0; i < of_r.rows; ++i)
      for (int64_t j = i; j < of_r.columns; ++j) rs(i, j) = a(i, j);
    for (int64_t i = 0; i < std::min(of_q.rows, of_q.columns); ++i) qs(i, i) = 1;
    for (size_t k = vectors.size(); k-- > 0;)
      reflect(qs, of_q.columns, vectors[k], static_cast<int64_t>(k), 0, scales[k]);
  }
  bound_by_size(&q, all.columns);
  bound_by_size(&r, all.columns);
  return std::vector<Value>{std::move(q), std::move(r)};
}

// Jacobi's rotations of the pairs of rows of a square matrix, or of rows of any length, until nothing changes.
struct Rotation {
  double cosine, sine;
  Rotation(double off, double apart) {
    const double ratio = apart / (2 * off);
    const double tangent = (ratio < 0 ? -1 : 1) / (std::fabs(ratio) + std::sqrt(ratio * ratio + 1));
    cosine = 1 / std::sqrt(tangent * tangent + 1);
    sine = tangent * cosine;
  }
  void turn(double* a, double* b) const {
    const double x = *a, y = *b;
    *a = cosine * x - sine * y;
    *b = sine * x + cosine * y;
  }
};
constexpr int kMostSweeps = 40;
constexpr double kTinyAngle = 0x1p-50;

template <class F>
void rotate_pairs(int64_t rows, F&& pair) {
  bool changed = true;
  for (int sweep = 0; sweep < kMostSweeps && changed; ++sweep) {
    changed = false;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = i + 1; k < rows; ++k) changed = pair(i, k) || changed;
  }
}
std::vector<int64_t> order_of(const std::vector<double>& values, bool descending) {
  std::vector<int64_t> out(values.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) {
    const double x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return descending ? x > y : x < y;
  });
  return out;
}
std::vector<double> identity_matrix(int64_t n) {
  std::vector<double> out(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i * n + i)] = 1;
  return out;
}

Result<std::vector<Value>> eval_eigh(const EvalArgs& args) {
  Value given = args.inputs[0], values = out_value(args, 0), vectors = out_value(args, 1);
  const Matrices all(given.shape);
  const int64_t n = all.rows;
  for (int64_t m = 0; m < all.count; ++m) {
    const MatrixRef a = all.of(&given, m), out = all.of(&vectors, m);
    std::vector<double> turns = identity_matrix(n);
    const MatrixRef turned{&turns, 0, n};
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) a(i, j) = a(j, i);
    rotate_pairs(n, [&](int64_t i, int64_t k) {
      if (!(std::fabs(a(i, k)) > kTinyAngle * (std::fabs(a(i, i)) + std::fabs(a(k, k))))) return false;
      const Rotation r(a(i, k), a(k, k) - a(i, i));
      for (int64_t j = 0; j < n; ++j) r.turn(&a(i, j), &a(k, j));
      for (int64_t j = 0; j < n; ++j) r.turn(&a(j, i), &a(j, k));
      for (int64_t j = 0; j < n; ++j) r.turn(&turned(i, j), &turned(k, j));
      a(i, k) = a(k, i) = 0;
      return true;
    });
    std::vector<double> diagonal;
    for (int64_t i = 0; i < n; ++i) diagonal.push_back(a(i, i));
    const std::vector<int64_t> order = order_of(diagonal, false);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      values.f[static_cast<size_t>(m * n + i)] = diagonal[static_cast<size_t>(from)];
      for (int64_t j = 0; j < n; ++j) out(j, i) = turned(from, j);
    }
  }
  bound_by_size(&values, n);
  bound_by_size(&vectors, n);
  return std::vector<Value>{std::move(values), std::move(vectors)};
}

Result<std::vector<Value>> eval_svd(const EvalArgs& args) {
  Value given = args.inputs[0], u = out_value(args, 0), s = out_value(args, 1), v = out_value(args, 2);
  const Matrices all(given.shape), of_u(u.shape), of_v(v.shape);
  const bool tall = all.rows >= all.columns;
  const int64_t few = std::min(all.rows, all.columns), many = std::max(all.rows, all.columns);
  for (int64_t m = 0; m < all.count; ++m) {
    const MatrixRef a = all.of(&given, m), left = of_u.of(&u, m), right = of_v.of(&v, m);
    std::vector<double> rows(static_cast<size_t>(few * many)), turns = identity_matrix(few), lengths;
    const MatrixRef z{&rows, 0, many}, turned{&turns, 0, few};
    for (int64_t i = 0; i < few; ++i)
      for (int64_t j = 0; j < many; ++j) z(i, j) = tall ? a(j, i) : a(i, j);
    auto dot = [&](int64_t i, int64_t k) {
      double sum = 0;
      for (int64_t j = 0; j < many; ++j) sum += z(i, j) * z(k, j);
      return sum;
    };
    rotate_pairs(few, [&](int64_t i, int64_t k) {
      const double first = dot(i, i), second = dot(k, k), off = dot(i, k);
      if (!(std::fabs(off) > kTinyAngle * std::sqrt(first) * std::sqrt(second))) return false;
      const Rotation r(off, second - first);
      for (int64_t j = 0; j < many; ++j) r.turn(&z(i, j), &z(k, j));
      for (int64_t j = 0; j < few; ++j) r.turn(&turned(i, j), &turned(k, j));
      return true;
    });
    for (int64_t i = 0; i < few; ++i) lengths.push_back(std::sqrt(dot(i, i)));
    const std::vector<int64_t> order = order_of(lengths, true);
    for (int64_t i = 0; i < few; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      const double length = lengths[static_cast<size_t>(from)];
      s.f[static_cast<size_t>(m * few + i)] = length;
      for (int64_t j = 0; j < many; ++j) {
        const double unit = length == 0 ? 0 : z(from, j) / length;
        (tall ? left(j, i) : right(i, j)) = unit;
      }
      for (int64_t j = 0; j < few; ++j) (tall ? right(i, j) : left(j, i)) = turned(from, j);
    }
  }
  for (Value* each : {&u, &s, &v}) bound_by_size(each, many);
  return std::vector<Value>{std::move(u), std::move(s), std::move(v)};
}

}  // namespace

std::vector<OpDef> matrices_ops() {
  const ArgDoc matrices{"a", "(..., m, n), float32 or float64"}, square{"a", "(..., n, n), float32 or float64"};
  return {
      define_op("linalg.lu",
                "Factors with partial pivoting: (L below the diagonal, whose own is ones, and U; the row that step k "
                "exchanged with row k).",
                {matrices}, OpPattern::kOpaque, lu_type, eval_lu, nullptr),
      define_op("linalg.row_order", "The row that each row was before the exchanges that pivots say.",
                {{"pivots", "(..., k) int64, of linalg.lu"}}, OpPattern::kOpaque, row_order_type, eval_row_order,
                make_default_attrs<RowOrderAttrs>),
      define_op("linalg.cholesky",
                "The lower factor L of a = L L^T, from a's lower triangle; NaN where a is not positive definite.",
                {square}, OpPattern::kOpaque, cholesky_type, eval_cholesky, nullptr),
      define_op("linalg.solve_triangular", "The x of a x = b, where a is a triangle.",
                {square, {"b", "(..., n, k), with a's dtype and batch"}}, OpPattern::kOpaque, solve_triangular_type,
                eval_solve_triangular, make_default_attrs<SolveTriangularAttrs>),
      define_op("linalg.qr", "An orthogonal q and an upper triangle r of a = q r.", {matrices}, OpPattern::kOpaque,
                qr_type, eval_qr, make_default_attrs<QrAttrs>),
      define_op("linalg.eigh",
                "The eigenvalues of the symmetric matrix of a's lower triangle, ascending, and unit eigenvectors as "
                "columns.",
                {square}, OpPattern::kOpaque, eigh_type, eval_eigh, nullptr),
      define_op("linalg.svd",
                "(u, s, v) of a = u diag(s) v, singular values descending; a column of u, or a row of v, that belongs "
                "to a singular value of 0 is zero if a has more rows than columns, or more columns than rows.",
                {matrices}, OpPattern::kOpaque, svd_type, eval_svd, nullptr),
  };
}

}  // namespace tilewright::relay
