// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and singular values by Jacobi's rotations of pairs of rows (Golub, Van Loan, Matrix Computations, 8.5
// and 8.6.3): as many sweeps over all pairs as change anything.
#include "topi/matrix_rows.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostSweeps = 40;

// `rows`: what is rotated until nothing is left to do; `turned`: the product of the rotations, by rows.
struct Rotations {
  const MatrixProblem& p;
  const ScratchRows &rows, &turned;
  int64_t count;  // of rows
  Buffer changed = make_buffer("changed", kInt32, 1, Scope::kRegister);

  PrimExpr number(double v) const { return make_const(p.dtype, v); }
  PrimExpr tiny() const { return number(p.dtype == kFloat64 ? 0x1p-50 : 0x1p-21); }
  static PrimExpr size(const PrimExpr& v) { return intrinsic(Intrinsic::k_fabs, {v}); }

  Stmt turn(const ScratchRows& z, const PrimExpr& i, const PrimExpr& k, const PrimExpr& cosine,
            const PrimExpr& sine) const {
    return loop("v", z.vectors(), [&](const PrimExpr& v) {
      return bind("a", z.vector(i, v), [&](const PrimExpr& a) {
        return bind("b", z.vector(k, v), [&](const PrimExpr& b) {
          return seq({z.put_vector(i, v, z.spread(cosine) * a - z.spread(sine) * b),
                      z.put_vector(k, v, z.spread(sine) * a + z.spread(cosine) * b)});
        });
      });
    });
  }
  // With the smaller of the two angles that make `off` zero between two that differ by `apart`.
  Stmt with_angle(const PrimExpr& off, const PrimExpr& apart,
                  const std::function<Stmt(const PrimExpr& cosine, const PrimExpr& sine)>& f) const {
    return bind("ratio", div(apart, off * number(2)), [&](const PrimExpr& ratio) {
      const PrimExpr root = intrinsic(Intrinsic::k_sqrt, {fma(ratio, ratio, number(1))});
      const PrimExpr tangent = div(select(lt(ratio, number(0)), number(-1), number(1)), size(ratio) + root);
      return bind("tangent", tangent, [&](const PrimExpr& t) {
        return bind("cosine", div(number(1), intrinsic(Intrinsic::k_sqrt, {fma(t, t, number(1))})),
                    [&](const PrimExpr& cosine) {
                      return bind("sine", t * cosine, [&](const PrimExpr& sine) { return f(cosine, sine); });
                    });
      });
    });
  }
  Stmt sweeps(const std::function<Stmt(const PrimExpr& i, const PrimExpr& k)>& pair) const {
    const PrimExpr zero = make_int(0);
    const Stmt sweep = loop("i", count, [&](const PrimExpr& i) {
      return loop("k", i + 1, make_int(count), [&](const PrimExpr& k) { return pair(i, k); });
    });
    return seq({store(changed, zero, make_int(1, kInt32)), loop("sweep", kMostSweeps, [&](const PrimExpr&) {
                  return make_if(gt(load(changed, zero), make_int(0, kInt32)),
                                 seq({store(changed, zero, make_int(0, kInt32)), sweep}));
                })});
  }
  Stmt mark() const { return store(changed, make_int(0), make_int(1, kInt32)); }
  Stmt identity() const {
    return turned.fill(count,
                       [&](const PrimExpr& i, const PrimExpr& j) { return select(eq(i, j), number(1), number(0)); });
  }
  // f(i, place of row i) in the order of row `values` of `z`.
  Stmt in_order(const ScratchRows& z, const PrimExpr& values, bool descending,
                const std::function<Stmt(const PrimExpr& i, const PrimExpr& place)>& f) const {
    const Buffer place = make_buffer("place", kInt64, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    return allocate(
        place, loop("i", count, [&](const PrimExpr& i) {
          return bind("own", z.element(values, i), [&](const PrimExpr& own) {
            const Stmt look = loop("j", count, [&](const PrimExpr& j) {
              return bind("other", z.element(values, j), [&](const PrimExpr& other) {
                const PrimExpr before = descending ? gt(other, own) : lt(other, own);
                const PrimExpr earlier = logical_and(eq(other, own), lt(j, i));
                return make_if(logical_or(before, earlier), store(place, zero, load(place, zero) + 1));
              });
            });
            return seq({store(place, zero, zero), look,
                        bind("place", row_in(load(place, zero), count), [&](const PrimExpr& at) { return f(i, at); })});
          });
        }));
  }
};

}  // namespace

int64_t eigh_scratch(const MatrixProblem& p, const Target& target) {
  return (2 * p.rows + 1) * row_length(p.dtype, p.columns, target);
}
Stmt eigh(const MatrixProblem& p, const Operand& a, const View& values, const View& vectors,
          const KernelContext& context) {
  const ScratchRows z(p, 0, p.columns, context), turned(p, p.rows * z.length, p.columns, context),
      found(p, 2 * p.rows * z.length, p.columns, context);
  const PrimExpr zero = make_int(0);
  return each_matrix(p, context, [&](const Index& batch) {
    const Rotations r{p, z, turned, p.rows};
    const Stmt fill = z.fill(
        p.rows, [&](const PrimExpr& i, const PrimExpr& j) { return a(of_batch(batch, max(i, j), min(i, j)), 1, {}); });
    const Stmt sweeps = r.sweeps([&](const PrimExpr& i, const PrimExpr& k) {
      return bind("off", z.element(i, k), [&](const PrimExpr& off) {
        const PrimExpr first = z.element(i, i), second = z.element(k, k);
        const Stmt rotate = r.with_angle(off, second - first, [&](const PrimExpr& cosine, const PrimExpr& sine) {
          const Stmt columns = loop("j", p.rows, [&](const PrimExpr& j) {
            return bind("a", z.element(j, i), [&](const PrimExpr& x) {
              return bind("b", z.element(j, k), [&](const PrimExpr& y) {
                return seq({z.put(j, i, cosine * x - sine * y), z.put(j, k, sine * x + cosine * y)});
              });
            });
          });
          return seq({r.mark(), r.turn(z, i, k, cosine, sine), columns, r.turn(turned, i, k, cosine, sine),
                      z.put(i, k, r.number(0)), z.put(k, i, r.number(0))});
        });
        return make_if(gt(Rotations::size(off), r.tiny() * (Rotations::size(first) + Rotations::size(second))), rotate);
      });
    });
    const Stmt diagonal = loop("i", p.rows, [&](const PrimExpr& i) { return found.put(zero, i, z.element(i, i)); });
    const Stmt out = r.in_order(found, zero, false, [&](const PrimExpr& i, const PrimExpr& place) {
      return seq(
          {values.store(of_batch(batch, place), found.element(zero, i)), loop("j", p.rows, [&](const PrimExpr& j) {
             return vectors.store(of_batch(batch, j, place), turned.element(i, j));
           })});
    });
    return allocate(r.changed, seq({fill, r.identity(), sweeps, diagonal, out}));
  });
}

int64_t svd_scratch(const MatrixProblem& p, const Target& target) {
  const int64_t few = std::min(p.rows, p.columns), many = std::max(p.rows, p.columns);
  return few * row_length(p.dtype, many, target) + (few + 1) * row_length(p.dtype, few, target);
}
// The rows that are rotated are the matrix's, or its columns if those are fewer.
Stmt svd(const MatrixProblem& p, const Operand& a, const View& u, const View& s, const View& v,
         const KernelContext& context) {
  const bool tall = p.rows >= p.columns;
  const int64_t few = std::min(p.rows, p.columns), many = std::max(p.rows, p.columns);
  const ScratchRows z(p, 0, many, context), turned(p, few * z.length, few, context),
      found(p, few * (z.length + turned.length), few, context);
  const PrimExpr zero = make_int(0);
  return each_matrix(p, context, [&](const Index& batch) {
    const Rotations r{p, z, turned, few};
    const Buffer sums = make_buffer("sums", p.dtype.with_lanes(z.lanes), 3, Scope::kRegister);
    auto sum = [&](int64_t which) {
      const PrimExpr all = load(sums, make_int(which));
      return z.lanes > 1 ? intrinsic(Intrinsic::k_reduce_add, {all}) : all;
    };
    auto clear = [&](int64_t which) { return store(sums, make_int(which), z.spread(r.number(0))); };
    auto add = [&](int64_t which, const PrimExpr& x, const PrimExpr& y) {
      return store(sums, make_int(which), fma(x, y, load(sums, make_int(which))));
    };
    const Stmt fill = z.fill(few, [&](const PrimExpr& i, const PrimExpr& j) {
      return a(tall ? of_batch(batch, j, i) : of_batch(batch, i, j), 1, {});
    });
    const Stmt sweeps = r.sweeps([&](const PrimExpr& i, const PrimExpr& k) {
      const Stmt products = loop("v", z.vectors(), [&](const PrimExpr& at) {
        return bind("x", z.vector(i, at), [&](const PrimExpr& x) {
          return bind("y", z.vector(k, at), [&](const PrimExpr& y) {
            return seq({add(0, x, x), add(1, y, y), add(2, x, y)});
          });
        });
      });
      const Stmt rotate = bind("first", sum(0), [&](const PrimExpr& first) {
        return bind("second", sum(1), [&](const PrimExpr& second) {
          return bind("off", sum(2), [&](const PrimExpr& off) {
            const PrimExpr least =
                r.tiny() * intrinsic(Intrinsic::k_sqrt, {first}) * intrinsic(Intrinsic::k_sqrt, {second});
            return make_if(gt(Rotations::size(off), least),
                           r.with_angle(off, second - first, [&](const PrimExpr& cosine, const PrimExpr& sine) {
                             return seq({r.mark(), r.turn(z, i, k, cosine, sine), r.turn(turned, i, k, cosine, sine)});
                           }));
          });
        });
      });
      return seq({clear(0), clear(1), clear(2), products, rotate});
    });
    const Stmt lengths = loop("i", few, [&](const PrimExpr& i) {
      const Stmt squares = loop("v", z.vectors(), [&](const PrimExpr& at) {
        return bind("x", z.vector(i, at), [&](const PrimExpr& x) { return add(0, x, x); });
      });
      return seq({clear(0), squares, found.put(zero, i, intrinsic(Intrinsic::k_sqrt, {sum(0)}))});
    });
    const View &of_rows = tall ? u : v, &of_turns = tall ? v : u;
    auto put = [&](const View& view, const PrimExpr& place, const PrimExpr& j, const PrimExpr& value) {
      return view.store(&view == &u ? of_batch(batch, j, place) : of_batch(batch, place, j), value);
    };
    const Stmt out = r.in_order(found, zero, true, [&](const PrimExpr& i, const PrimExpr& place) {
      return bind("length", found.element(zero, i), [&](const PrimExpr& length) {
        const PrimExpr none = eq(length, r.number(0));
        return seq({s.store(of_batch(batch, place), length),
                    loop("j", many,
                         [&](const PrimExpr& j) {
                           return put(
                               of_rows, place, j,
                               select(none, r.number(0), div(z.element(i, j), select(none, r.number(1), length))));
                         }),
                    loop("j", few, [&](const PrimExpr& j) { return put(of_turns, place, j, turned.element(i, j)); })});
      });
    });
    return allocate(r.changed, allocate(sums, seq({fill, r.identity(), sweeps, lengths, out})));
  });
}

}  // namespace tilewright::topi
