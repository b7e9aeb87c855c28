// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of matrices that need not be symmetric. A complex number is a pair on the last axis.
#include <algorithm>
#include <cmath>
#include <complex>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Result<Type> eig_type(const TypeArgs& args) {
  const auto& x = args.tensor(0);
  if (x.dtype != kFloat32 && x.dtype != kFloat64)
    return type_error(format("operand 0 has {}, not float32 or float64", x.dtype.str()), "cast it first");
  const size_t rank = x.shape.size();
  if (rank < 3 || dims_differ(x.shape[rank - 1], Dim(2)))
    return type_error(format("operand 0 {} is not a matrix of pairs", shape_str(x.shape)));
  if (dims_differ(x.shape[rank - 2], x.shape[rank - 3]))
    return type_error(format("the matrices of operand 0 {} are not square", shape_str(x.shape)));
  Shape values = x.shape;
  values.erase(values.end() - 3);
  return tuple_type({tensor_type(values, x.dtype), args.types[0]});
}

using Number = std::complex<double>;
constexpr double kTiny = 0x1p-52;
constexpr int64_t kStepsPerRow = 40, kStepsBetweenShoves = 10;

double size(const Number& a) { return std::fabs(a.real()) + std::fabs(a.imag()); }

// h = q t q^H, where q is unitary and t, which h becomes, an upper triangle.
class Triangle {
 public:
  explicit Triangle(int64_t n) : n_(n), h_(static_cast<size_t>(n * n)), q_(static_cast<size_t>(n * n)) {
    for (int64_t i = 0; i < n; ++i) q(i, i) = 1;
  }
  Number& h(int64_t i, int64_t j) { return h_[static_cast<size_t>(i * n_ + j)]; }
  Number& q(int64_t i, int64_t j) { return q_[static_cast<size_t>(i * n_ + j)]; }
  void make() {
    for (int64_t k = 0; k + 2 < n_; ++k)
      for (int64_t i = n_ - 2; i > k; --i) {
        if (h(i + 1, k) == 0.0) continue;
        const Rotation r(h(i, k), h(i + 1, k));
        turn_rows(r, i, k);
        turn_columns(r, i, n_);
        h(i + 1, k) = 0;
      }
    int64_t steps = 0;
    for (int64_t last = n_ - 1, all = 0; last > 0 && all < kStepsPerRow * n_; ++all) {
      const int64_t first = block_start(last);
      if (first == last) {
        --last;
        steps = 0;
      } else {
        step(first, last, ++steps % kStepsBetweenShoves == 0);
      }
    }
  }
  // Of t's entry k, of length 1, its largest entry real.
  std::vector<Number> vector(int64_t k) {
    double largest = 0;
    for (const Number& a : h_) largest = std::max(largest, size(a));
    const double least = std::max(largest * kTiny, 0x1p-900);
    std::vector<Number> v(static_cast<size_t>(n_)), out(static_cast<size_t>(n_));
    v[static_cast<size_t>(k)] = 1;
    for (int64_t i = k - 1; i >= 0; --i) {
      Number sum = 0, apart = h(k, k) - h(i, i);
      for (int64_t j = i + 1; j <= k; ++j) sum += h(i, j) * v[static_cast<size_t>(j)];
      if (size(apart) < least) apart = least;
      const Number made = v[static_cast<size_t>(i)] = sum / apart;
      if (size(made) > 0x1p+300)
        for (Number& a : v) a /= size(made);
    }
    double squares = 0;
    Number greatest = 0;
    for (int64_t j = 0; j < n_; ++j) {
      Number& a = out[static_cast<size_t>(j)];
      for (int64_t i = 0; i < n_; ++i) a += v[static_cast<size_t>(i)] * q(j, i);
      squares += std::norm(a);
      if (std::norm(a) > std::norm(greatest)) greatest = a;
    }
    const Number by = greatest == 0.0 ? 1.0 : std::conj(greatest) / (std::abs(greatest) * std::sqrt(squares));
    for (Number& a : out) a *= by;
    return out;
  }

 private:
  struct Rotation {
    Number c = 1, s = 0;
    Rotation() = default;
    Rotation(const Number& x, const Number& y) {
      const double length = std::sqrt(std::norm(x) + std::norm(y));
      c = x / length;
      s = y / length;
    }
  };
  void turn_rows(const Rotation& r, int64_t k, int64_t from) {
    for (int64_t j = from; j < n_; ++j) {
      const Number a = h(k, j), b = h(k + 1, j);
      h(k, j) = std::conj(r.c) * a + std::conj(r.s) * b;
      h(k + 1, j) = r.c * b - r.s * a;
    }
  }
  void turn_columns(const Rotation& r, int64_t k, int64_t rows) {
    auto turn = [&](Number& a, Number& b) {
      const Number x = a, y = b;
      a = r.c * x + r.s * y;
      b = std::conj(r.c) * y - std::conj(r.s) * x;
    };
    for (int64_t i = 0; i < rows; ++i) turn(h(i, k), h(i, k + 1));
    for (int64_t i = 0; i < n_; ++i) turn(q(i, k), q(i, k + 1));
  }
  int64_t block_start(int64_t last) {
    for (int64_t i = last; i > 0; --i)
      if (!(size(h(i, i - 1)) > kTiny * (size(h(i - 1, i - 1)) + size(h(i, i))))) {
        h(i, i - 1) = 0;
        return i;
      }
    return 0;
  }
  void step(int64_t first, int64_t last, bool shoves) {
    const Number d = h(last, last), half = (h(last - 1, last - 1) - d) * 0.5,
                 product = h(last - 1, last) * h(last, last - 1);
    Number root = std::sqrt(half * half + product);
    if (half.real() * root.real() + half.imag() * root.imag() < 0) root = -root;
    Number shift = half + root == 0.0 ? d : d - product / (half + root);
    if (shoves) shift = d + size(h(last, last - 1));
    for (int64_t k = first; k <= last; ++k) h(k, k) -= shift;
    std::vector<Rotation> turns;
    for (int64_t k = first; k < last; ++k) {
      turns.push_back(h(k + 1, k) == 0.0 ? Rotation() : Rotation(h(k, k), h(k + 1, k)));
      turn_rows(turns.back(), k, k);
    }
    for (int64_t k = first; k < last; ++k) turn_columns(turns[static_cast<size_t>(k - first)], k, k + 2);
    for (int64_t k = first; k <= last; ++k) h(k, k) += shift;
  }

  int64_t n_;
  std::vector<Number> h_, q_;
};

// Where another order of the sums may lead to, for matrices whose eigenvalues are apart.
void bound_by_largest(Value* v, int64_t n) {
  double largest = 0;
  for (double x : v->f)
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  v->bound.assign(v->f.size(), 64 * static_cast<double>(n + 1) * unit_roundoff(v->dtype) * largest);
}
Result<std::vector<Value>> eval_eig(const EvalArgs& args) {
  const Value& a = args.inputs[0];
  Value values = out_value(args, 0), vectors = out_value(args, 1);
  const int64_t n = a.shape[a.shape.size() - 2], count = n == 0 ? 0 : a.size() / (2 * n * n);
  auto put = [](Value* v, int64_t at, const Number& x) {
    v->f[static_cast<size_t>(2 * at)] = x.real();
    v->f[static_cast<size_t>(2 * at + 1)] = x.imag();
  };
  for (int64_t m = 0; m < count; ++m) {
    Triangle t(n);
    for (int64_t i = 0; i < n * n; ++i) {
      const auto at = static_cast<size_t>(2 * (m * n * n + i));
      t.h(i / n, i % n) = Number(a.f[at], a.f[at + 1]);
    }
    t.make();
    for (int64_t k = 0; k < n; ++k) {
      put(&values, m * n + k, t.h(k, k));
      const std::vector<Number> v = t.vector(k);
      for (int64_t j = 0; j < n; ++j) put(&vectors, (m * n + j) * n + k, v[static_cast<size_t>(j)]);
    }
  }
  bound_by_largest(&values, n);
  bound_by_largest(&vectors, n);
  return std::vector<Value>{std::move(values), std::move(vectors)};
}

}  // namespace

std::vector<OpDef> eigenvalues_ops() {
  return {define_op("linalg.eig",
                    "The eigenvalues of matrices of complex numbers, in the order in which they are found, and "
                    "eigenvectors of length 1 as columns, whose largest entries are real.",
                    {{"a", "(..., n, n, 2), float32 or float64: pairs of real and imaginary parts"}},
                    OpPattern::kOpaque, eig_type, eval_eig, nullptr)};
}

}  // namespace tilewright::relay
