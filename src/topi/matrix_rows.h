// SPDX-License-Identifier: Apache-2.0
// What the loops over rows of matrices share.
#pragma once
#include <algorithm>

#include "topi/matrices.h"

namespace tilewright::topi {

inline int vector_lanes(DataType dtype, int64_t columns, const Target& target) {
  int lanes = 1;
  while (lanes < target.lanes(dtype.bits) && lanes < columns) lanes *= 2;
  return lanes;
}
inline int64_t row_length(DataType dtype, int64_t columns, const Target& target) {
  return round_up(std::max<int64_t>(columns, 1), vector_lanes(dtype, columns, target));
}

// Rows in scratch memory, each of whole vectors.
struct ScratchRows {
  tir::Buffer memory;
  int64_t first = 0, columns = 0, length = 0;
  int lanes = 1;

  ScratchRows(const MatrixProblem& p, int64_t from, int64_t count, const KernelContext& context)
      : memory(context.scratch),
        first(from),
        columns(count),
        length(row_length(p.dtype, count, *context.target)),
        lanes(vector_lanes(p.dtype, count, *context.target)) {}
  int64_t vectors() const { return length / lanes; }
  tir::PrimExpr place(const tir::PrimExpr& i, const tir::PrimExpr& j) const { return i * length + j + first; }
  tir::PrimExpr spread(const tir::PrimExpr& value) const { return lanes > 1 ? tir::broadcast(value, lanes) : value; }
  tir::PrimExpr whole(const tir::PrimExpr& i, const tir::PrimExpr& v) const {
    return lanes > 1 ? tir::ramp(place(i, v * lanes), 1, lanes) : place(i, v);
  }
  tir::PrimExpr element(const tir::PrimExpr& i, const tir::PrimExpr& j) const { return tir::load(memory, place(i, j)); }
  tir::PrimExpr vector(const tir::PrimExpr& i, const tir::PrimExpr& v) const { return tir::load(memory, whole(i, v)); }
  tir::Stmt put(const tir::PrimExpr& i, const tir::PrimExpr& j, const tir::PrimExpr& value) const {
    return tir::store(memory, place(i, j), value);
  }
  tir::Stmt put_vector(const tir::PrimExpr& i, const tir::PrimExpr& v, const tir::PrimExpr& value) const {
    return tir::store(memory, whole(i, v), value);
  }
  // The vector that has column j.
  tir::PrimExpr vector_of(const tir::PrimExpr& j) const { return lanes > 1 ? tir::floordiv(j, lanes) : j; }
  tir::PrimExpr zero() const { return tir::make_const(memory->dtype, 0); }

  // Rows [0, rows) by element; what is behind a row's end is 0.
  tir::Stmt fill(int64_t rows,
                 const std::function<tir::PrimExpr(const tir::PrimExpr& i, const tir::PrimExpr& j)>& value) const {
    return loop("i", rows, [&](const tir::PrimExpr& i) {
      return tir::seq({loop("j", columns, [&](const tir::PrimExpr& j) { return put(i, j, value(i, j)); }),
                       loop("j", tir::make_int(columns), tir::make_int(length),
                            [&](const tir::PrimExpr& j) { return put(i, j, zero()); })});
    });
  }
  // Row i less `times` row k, from vector `from` on.
  tir::Stmt take(const tir::PrimExpr& i, const tir::PrimExpr& times, const tir::PrimExpr& k,
                 const tir::PrimExpr& from) const {
    return bind("times", zero() - times, [&](const tir::PrimExpr& less) {
      return loop("v", from, tir::make_int(vectors()), [&](const tir::PrimExpr& v) {
        return put_vector(i, v, tir::fma(spread(less), vector(k, v), vector(i, v)));
      });
    });
  }
  tir::Stmt scale(const tir::PrimExpr& i, const tir::PrimExpr& divisor, const tir::PrimExpr& from) const {
    return bind("divisor", divisor, [&](const tir::PrimExpr& by) {
      return loop("v", from, tir::make_int(vectors()),
                  [&](const tir::PrimExpr& v) { return put_vector(i, v, tir::div(vector(i, v), spread(by))); });
    });
  }
  tir::Stmt exchange(const tir::PrimExpr& i, const tir::PrimExpr& k) const {
    return loop("v", vectors(), [&](const tir::PrimExpr& v) {
      return bind("held", vector(i, v), [&](const tir::PrimExpr& held) {
        return tir::seq({put_vector(i, v, vector(k, v)), put_vector(k, v, held)});
      });
    });
  }
};

inline Index of_batch(const Index& batch, const tir::PrimExpr& i) {
  Index out = batch;
  out.push_back(i);
  return out;
}
inline Index of_batch(const Index& batch, const tir::PrimExpr& i, const tir::PrimExpr& j) {
  Index out = of_batch(batch, i);
  out.push_back(j);
  return out;
}
inline tir::Stmt each_matrix(const MatrixProblem& p, const KernelContext& context,
                             const std::function<tir::Stmt(const Index&)>& body) {
  const int64_t count = product(p.batch);
  if (count == 0) return tir::seq({});
  return parallel_for(context, "matrix", count, [&](const tir::PrimExpr& m) { return body(unravel(m, p.batch)); });
}
// For the verifier, which does not know that it is one.
inline tir::PrimExpr row_in(const tir::PrimExpr& i, int64_t rows) {
  return tir::max(tir::min(i, tir::make_int(rows - 1)), tir::make_int(0));
}
inline tir::Stmt from_to(const tir::PrimExpr& begin, int64_t end, const std::function<tir::Stmt(tir::PrimExpr)>& body) {
  return loop("i", begin, tir::make_int(end), body);
}

}  // namespace tilewright::topi
