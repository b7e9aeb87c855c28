// SPDX-License-Identifier: Apache-2.0
#include "topi/matrices.h"

#include <algorithm>

#include "topi/matrix_rows.h"

namespace tilewright::topi {

using namespace tir;

namespace {

int64_t reflections(const MatrixProblem& p) { return std::min(p.columns, p.rows - 1); }
int64_t columns_of_q(const MatrixProblem& p) { return p.complete ? p.rows : std::min(p.rows, p.columns); }

// One step of elimination: the largest element of column k at or below row k comes to row k, and what is below it is
// taken out.
struct Elimination {
  const MatrixProblem& p;
  const ScratchRows& z;  // one row more than the matrix has: the pivot's, with zeros up to its column
  const Index& batch;
  const View& pivots;
  Buffer best, at;

  PrimExpr size(const PrimExpr& i, const PrimExpr& k) const { return intrinsic(Intrinsic::k_fabs, {z.element(i, k)}); }
  Stmt find(const PrimExpr& k) const {
    const PrimExpr zero = make_int(0);
    return seq({store(best, zero, size(k, k)), store(at, zero, k), from_to(k + 1, p.rows, [&](const PrimExpr& i) {
                  return bind("size", size(i, k), [&](const PrimExpr& found) {
                    return make_if(gt(found, load(best, zero)), seq({store(best, zero, found), store(at, zero, i)}));
                  });
                })});
  }
  Stmt exchange(const PrimExpr& k) const {
    return bind("pivot", row_in(load(at, make_int(0)), p.rows), [&](const PrimExpr& i) {
      return seq({pivots.store(of_batch(batch, k), i), z.exchange(k, i)});
    });
  }
  Stmt take_out(const PrimExpr& k) const {
    const PrimExpr row = make_int(p.rows);
    const Stmt copy = loop("v", z.vectors(), [&](const PrimExpr& v) { return z.put_vector(row, v, z.vector(k, v)); });
    const Stmt clear = loop("j", make_int(0), k + 1, [&](const PrimExpr& j) { return z.put(row, j, z.zero()); });
    const Stmt all = bind("divisor", z.element(k, k), [&](const PrimExpr& divisor) {
      return bind("from", z.vector_of(k), [&](const PrimExpr& from) {
        return from_to(k + 1, p.rows, [&](const PrimExpr& i) {
          return bind("share", div(z.element(i, k), divisor), [&](const PrimExpr& share) {
            return seq({z.put(i, k, share), z.take(i, share, row, from)});
          });
        });
      });
    });
    // A column of zeros stays as it is.
    return seq({copy, clear, make_if(ne(load(best, make_int(0)), z.zero()), all)});
  }
};

}  // namespace

int64_t lu_scratch(const MatrixProblem& p, const Target& target) {
  return (p.rows + 1) * row_length(p.dtype, p.columns, target);
}
Stmt lu(const MatrixProblem& p, const Operand& a, const View& factors, const View& pivots,
        const KernelContext& context) {
  const ScratchRows z(p, 0, p.columns, context);
  return each_matrix(p, context, [&](const Index& batch) {
    const Elimination e{p,
                        z,
                        batch,
                        pivots,
                        make_buffer("best", p.dtype, 1, Scope::kRegister),
                        make_buffer("at", kInt64, 1, Scope::kRegister)};
    return allocate(
        e.best, allocate(e.at, seq({z.fill(p.rows, [&](const PrimExpr& i,
                                                       const PrimExpr& j) { return a(of_batch(batch, i, j), 1, {}); }),
                                    loop("k", std::min(p.rows, p.columns),
                                         [&](const PrimExpr& k) {
                                           return seq({e.find(k), e.exchange(k), e.take_out(k)});
                                         }),
                                    loop("i", p.rows, [&](const PrimExpr& i) {
                                      return loop("j", p.columns, [&](const PrimExpr& j) {
                                        return factors.store(of_batch(batch, i, j), z.element(i, j));
                                      });
                                    })})));
  });
}

Stmt row_order(const MatrixProblem& p, const Operand& pivots, const View& order, const KernelContext& context) {
  return each_matrix(p, context, [&](const Index& batch) {
    return seq({loop("i", p.rows, [&](const PrimExpr& i) { return order.store(of_batch(batch, i), i); }),
                loop("k", p.columns, [&](const PrimExpr& k) {
                  return bind("i", row_in(pivots(of_batch(batch, k), 1, {}), p.rows), [&](const PrimExpr& i) {
                    return bind("first", order.load(of_batch(batch, k)), [&](const PrimExpr& first) {
                      return bind("second", order.load(of_batch(batch, i)), [&](const PrimExpr& second) {
                        return seq({order.store(of_batch(batch, k), second), order.store(of_batch(batch, i), first)});
                      });
                    });
                  });
                })});
  });
}

int64_t cholesky_scratch(const MatrixProblem& p, const Target& target) {
  return p.rows * row_length(p.dtype, p.columns, target);
}
// The rows are those of the transposed factor, so that columns of the lower triangle lie in vectors. Left of the
// diagonal they hold what nothing reads.
Stmt cholesky(const MatrixProblem& p, const Operand& a, const View& lower, const KernelContext& context) {
  const ScratchRows z(p, 0, p.columns, context);
  return each_matrix(p, context, [&](const Index& batch) {
    const Stmt fill = z.fill(p.rows, [&](const PrimExpr& i, const PrimExpr& j) {
      return intrinsic(Intrinsic::k_if_then_else, {ge(j, i), a(of_batch(batch, j, i), 1, {}), z.zero()});
    });
    const Stmt steps = loop("k", p.rows, [&](const PrimExpr& k) {
      return seq(
          {z.scale(k, intrinsic(Intrinsic::k_sqrt, {z.element(k, k)}), z.vector_of(k)),
           from_to(k + 1, p.rows, [&](const PrimExpr& i) { return z.take(i, z.element(k, i), k, z.vector_of(i)); })});
    });
    const Stmt out = loop("i", p.rows, [&](const PrimExpr& i) {
      return loop("j", p.columns, [&](const PrimExpr& j) {
        return lower.store(of_batch(batch, i, j), select(le(j, i), z.element(j, i), z.zero()));
      });
    });
    return seq({fill, steps, out});
  });
}

int64_t triangle_scratch(const MatrixProblem& p, const Target& target) {
  return p.rows * row_length(p.dtype, p.columns, target);
}
Stmt solve_triangular(const MatrixProblem& p, const Operand& a, const Operand& b, const View& out,
                      const KernelContext& context) {
  const ScratchRows z(p, 0, p.columns, context);
  return each_matrix(p, context, [&](const Index& batch) {
    auto of_a = [&](const PrimExpr& i, const PrimExpr& j) { return a(of_batch(batch, i, j), 1, {}); };
    const Stmt fill =
        z.fill(p.rows, [&](const PrimExpr& i, const PrimExpr& j) { return b(of_batch(batch, i, j), 1, {}); });
    const Stmt steps = loop("step", p.rows, [&](const PrimExpr& step) {
      return bind("k", p.upper ? make_int(p.rows - 1) - step : step, [&](const PrimExpr& k) {
        const Stmt own = p.unit ? seq({}) : z.scale(k, of_a(k, k), make_int(0));
        return seq({own, loop("i", p.upper ? make_int(0) : k + 1, p.upper ? k : make_int(p.rows),
                              [&](const PrimExpr& i) { return z.take(i, of_a(i, k), k, make_int(0)); })});
      });
    });
    const Stmt all = loop("i", p.rows, [&](const PrimExpr& i) {
      return loop("j", p.columns, [&](const PrimExpr& j) { return out.store(of_batch(batch, i, j), z.element(i, j)); });
    });
    return seq({fill, steps, all});
  });
}

namespace {

// Householder's reflections with LAPACK's signs: below the diagonal a column holds its reflection's vector, whose
// first element stands apart, as does its scale.
struct Reflection {
  const MatrixProblem& p;
  const ScratchRows &z, &rest;  // rest: first elements, scales, and two rows of sums
  Buffer found;

  enum Row : uint8_t { kFirst, kScale, kSums, kRows };
  PrimExpr number(double v) const { return make_const(p.dtype, v); }
  Stmt set(Row row, const PrimExpr& k, const PrimExpr& value) const { return rest.put(make_int(row), k, value); }
  PrimExpr get(Row row, const PrimExpr& k) const { return rest.element(make_int(row), k); }

  // Element i >= k of reflection k's vector.
  Stmt with_element(const PrimExpr& k, const std::function<Stmt(const PrimExpr& i, const PrimExpr& value)>& f) const {
    return seq(
        {f(k, get(kFirst, k)), from_to(k + 1, p.rows, [&](const PrimExpr& i) { return f(i, z.element(i, k)); })});
  }
  // Reflects the columns of `m` from column `from` on.
  Stmt reflect(const ScratchRows& m, const PrimExpr& k, const PrimExpr& from) const {
    const PrimExpr sums = make_int(kSums), zero = make_int(0);
    const PrimExpr start = m.vector_of(from);
    const Stmt clear = loop("v", m.vectors(),
                            [&](const PrimExpr& v) { return store(rest.memory, sums_at(m, v), m.spread(number(0))); });
    auto over = [&](const std::function<Stmt(const PrimExpr& v)>& f) {
      return loop("v", start, make_int(m.vectors()), f);
    };
    const Stmt add = with_element(k, [&](const PrimExpr& i, const PrimExpr& value) {
      return bind("value", value * get(kScale, k), [&](const PrimExpr& times) {
        return over([&](const PrimExpr& v) {
          return store(rest.memory, sums_at(m, v),
                       fma(m.spread(times), m.vector(i, v), load(rest.memory, sums_at(m, v))));
        });
      });
    });
    const Stmt before = loop("j", zero, from, [&](const PrimExpr& j) { return rest.put(sums, j, number(0)); });
    const Stmt take = with_element(k, [&](const PrimExpr& i, const PrimExpr& value) {
      return bind("less", number(0) - value, [&](const PrimExpr& less) {
        return over([&](const PrimExpr& v) {
          return m.put_vector(i, v, fma(m.spread(less), load(rest.memory, sums_at(m, v)), m.vector(i, v)));
        });
      });
    });
    return seq({clear, add, before, take});
  }
  PrimExpr sums_at(const ScratchRows& m, const PrimExpr& v) const {
    const PrimExpr at = rest.place(make_int(kSums), m.lanes > 1 ? v * m.lanes : v);
    return m.lanes > 1 ? ramp(at, 1, m.lanes) : at;
  }
  Stmt step(const PrimExpr& k) const {
    const PrimExpr zero = make_int(0);
    const Stmt away = seq({store(found, zero, number(0)), from_to(k + 1, p.rows, [&](const PrimExpr& i) {
                             return store(found, zero, fma(z.element(i, k), z.element(i, k), load(found, zero)));
                           })});
    const Stmt idle = seq({set(kFirst, k, number(1)), set(kScale, k, number(0))});
    const Stmt turn = bind("own", z.element(k, k), [&](const PrimExpr& own) {
      return bind("length", intrinsic(Intrinsic::k_sqrt, {fma(own, own, load(found, zero))}),
                  [&](const PrimExpr& length) {
                    return bind("diagonal", select(lt(own, number(0)), length, number(0) - length),
                                [&](const PrimExpr& diagonal) {
                                  return bind("first", own - diagonal, [&](const PrimExpr& first) {
                                    return seq({set(kFirst, k, first),
                                                set(kScale, k, div(number(2), fma(first, first, load(found, zero)))),
                                                reflect(z, k, k + 1), z.put(k, k, diagonal)});
                                  });
                                });
                  });
    });
    return seq({away, make_if(eq(load(found, zero), number(0)), idle, turn)});
  }
};
int64_t rest_columns(const MatrixProblem& p) { return std::max(p.rows, p.columns); }

}  // namespace

int64_t qr_scratch(const MatrixProblem& p, const Target& target) {
  return p.rows * row_length(p.dtype, p.columns, target) + p.rows * row_length(p.dtype, columns_of_q(p), target) +
         Reflection::kRows * row_length(p.dtype, rest_columns(p), target);
}
Stmt qr(const MatrixProblem& p, const Operand& a, const View& q, const View& r, const KernelContext& context) {
  const int64_t kept = columns_of_q(p);
  const ScratchRows z(p, 0, p.columns, context), orthogonal(p, p.rows * z.length, kept, context),
      rest(p, p.rows * (z.length + orthogonal.length), rest_columns(p), context);
  return each_matrix(p, context, [&](const Index& batch) {
    const Reflection each{p, z, rest, make_buffer("found", p.dtype, 1, Scope::kRegister)};
    const PrimExpr one = each.number(1), zero = each.number(0);
    const Stmt fill =
        z.fill(p.rows, [&](const PrimExpr& i, const PrimExpr& j) { return a(of_batch(batch, i, j), 1, {}); });
    const Stmt steps = loop("k", reflections(p), [&](const PrimExpr& k) { return each.step(k); });
    const Stmt identity =
        orthogonal.fill(p.rows, [&](const PrimExpr& i, const PrimExpr& j) { return select(eq(i, j), one, zero); });
    // From the last one on, what the reflections turn lies in the columns from theirs on.
    const Stmt back = loop("step", reflections(p), [&](const PrimExpr& step) {
      return bind("k", make_int(reflections(p) - 1) - step,
                  [&](const PrimExpr& k) { return each.reflect(orthogonal, k, k); });
    });
    const Stmt of_q = loop("i", p.rows, [&](const PrimExpr& i) {
      return loop("j", kept,
                  [&](const PrimExpr& j) { return q.store(of_batch(batch, i, j), orthogonal.element(i, j)); });
    });
    const Stmt of_r = loop("i", kept, [&](const PrimExpr& i) {
      return loop("j", p.columns, [&](const PrimExpr& j) {
        return r.store(of_batch(batch, i, j), select(ge(j, i), z.element(i, j), zero));
      });
    });
    return allocate(each.found, seq({fill, steps, identity, back, of_q, of_r}));
  });
}

}  // namespace tilewright::topi
