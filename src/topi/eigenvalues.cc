// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of matrices that need not be symmetric, by complex numbers: rotations of neighbouring
// rows and columns leave one diagonal below the main one, and shifted QR steps empty it (Golub, Van Loan, Matrix
// Computations, 7.4 and 7.5). The shift is subtracted and added again: passed on implicitly it would be lost where two
// entries below the diagonal are small.
#include "topi/matrix_rows.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kStepsPerRow = 40;         // far more than any known matrix needs
constexpr int64_t kStepsBetweenShoves = 10;  // with the same last row, until a shift that is not the nearest eigenvalue

struct Complex {
  PrimExpr re, im;
};
Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
PrimExpr squared(const Complex& a) { return a.re * a.re + a.im * a.im; }
PrimExpr magnitude(const PrimExpr& v) { return intrinsic(Intrinsic::k_fabs, {v}); }
PrimExpr root(const PrimExpr& v) { return intrinsic(Intrinsic::k_sqrt, {v}); }
// Within a factor of two of the absolute value.
PrimExpr size(const Complex& a) { return magnitude(a.re) + magnitude(a.im); }

using WithComplex = std::function<Stmt(const Complex&)>;
Stmt bind_parts(const char* name, const Complex& value, const WithComplex& f) {
  return bind(name, value.re, [&](const PrimExpr& re) {
    return bind(name, value.im, [&](const PrimExpr& im) { return f({re, im}); });
  });
}

struct ComplexRows {
  ScratchRows re, im;
  ComplexRows(const MatrixProblem& p, int64_t from, int64_t rows, const KernelContext& context)
      : re(p, from, p.columns, context), im(p, from + rows * re.length, p.columns, context) {}
  Complex operator()(const PrimExpr& i, const PrimExpr& j) const { return {re.element(i, j), im.element(i, j)}; }
  Stmt put(const PrimExpr& i, const PrimExpr& j, const Complex& value) const {
    return seq({re.put(i, j, value.re), im.put(i, j, value.im)});
  }
};

class Eigenvalues {
 public:
  Eigenvalues(const MatrixProblem& p, const KernelContext& context)
      : p_(p),
        n_(p.rows),
        h_(p, 0, n_, context),
        q_(p, 2 * n_ * h_.re.length, n_, context),
        rows_(p, 4 * n_ * h_.re.length, kRows, context) {}
  static int64_t scratch(const MatrixProblem& p, const Target& target) {
    return (4 * p.rows + 2 * kRows) * row_length(p.dtype, p.columns, target);
  }

  Stmt of(const Operand& a, const View& values, const View& vectors, const Index& batch) const {
    auto part = [&](int64_t which) {
      return [&, which](const PrimExpr& i, const PrimExpr& j) {
        Index at = of_batch(batch, i, j);
        at.push_back(make_int(which));
        return a(at, 1, {});
      };
    };
    const Stmt fill = seq(
        {h_.re.fill(n_, part(0)), h_.im.fill(n_, part(1)),
         q_.re.fill(n_, [&](const PrimExpr& i, const PrimExpr& j) { return select(eq(i, j), number(1), number(0)); }),
         q_.im.fill(n_, [&](const PrimExpr&, const PrimExpr&) { return number(0); })});
    return allocate(at_, allocate(held_, seq({fill, reduced(), emptied(), stored(values, vectors, batch)})));
  }

 private:
  enum Row { kCosines, kSines, kVector, kCombined, kRows };  // of rows_
  enum At { kLow, kHigh, kSteps, kPlaces };                  // of at_
  enum Held { kRe, kIm, kLargest, kSmall, kNumbers };        // of held_

  PrimExpr number(double v) const { return make_const(p_.dtype, v); }
  Complex one() const { return {number(1), number(0)}; }
  PrimExpr tiny() const { return number(p_.dtype == kFloat64 ? 0x1p-52 : 0x1p-23); }
  PrimExpr at(At which) const { return load(at_, make_int(which)); }
  Stmt put(At which, const PrimExpr& value) const { return store(at_, make_int(which), value); }
  PrimExpr held(Held which) const { return load(held_, make_int(which)); }
  Stmt hold(Held which, const PrimExpr& value) const { return store(held_, make_int(which), value); }
  Complex held() const { return {held(kRe), held(kIm)}; }
  Stmt hold(const Complex& value) const { return seq({hold(kRe, value.re), hold(kIm, value.im)}); }
  Complex conjugate(const Complex& a) const { return {a.re, number(0) - a.im}; }
  Complex scaled(const Complex& a, const PrimExpr& by) const { return {a.re * by, a.im * by}; }
  // By the larger of the divisor's parts first, so that no square leaves the numbers.
  Stmt quotient(const Complex& a, const Complex& b, const WithComplex& f) const {
    return bind("scale", div(number(1), size(b)), [&](const PrimExpr& scale) {
      return bind_parts("by", scaled(b, scale), [&](const Complex& by) {
        return bind("inverse", div(scale, squared(by)), [&](const PrimExpr& inverse) {
          return bind_parts("quotient", scaled(a * conjugate(by), inverse), f);
        });
      });
    });
  }

  // ---- rotations: [conj(c) conj(s); -s c] makes (x, y) (length, 0)

  Stmt with_rotation(const Complex& x, const Complex& y,
                     const std::function<Stmt(const Complex& c, const Complex& s)>& f) const {
    return bind("inverse", div(number(1), root(squared(x) + squared(y))), [&](const PrimExpr& inverse) {
      return bind_parts("cosine", scaled(x, inverse), [&](const Complex& c) {
        return bind_parts("sine", scaled(y, inverse), [&](const Complex& s) { return f(c, s); });
      });
    });
  }
  Stmt turn_rows(const ComplexRows& z, const PrimExpr& k, const Complex& c, const Complex& s,
                 const PrimExpr& from) const {
    auto spread = [&](const Complex& a) { return Complex{z.re.spread(a.re), z.re.spread(a.im)}; };
    return loop("v", from, make_int(z.re.vectors()), [&](const PrimExpr& v) {
      auto row = [&](const PrimExpr& i) { return Complex{z.re.vector(i, v), z.im.vector(i, v)}; };
      auto put = [&](const PrimExpr& i, const Complex& value) {
        return seq({z.re.put_vector(i, v, value.re), z.im.put_vector(i, v, value.im)});
      };
      return bind_parts("a", row(k), [&](const Complex& a) {
        return bind_parts("b", row(k + 1), [&](const Complex& b) {
          return seq(
              {put(k, spread(conjugate(c)) * a + spread(conjugate(s)) * b), put(k + 1, spread(c) * b - spread(s) * a)});
        });
      });
    });
  }
  // The same of the columns k and k + 1 of h, rows [0, end), from the other side, and of the rows of q, which are the
  // columns of what is found.
  Stmt turn_columns(const PrimExpr& k, const Complex& c, const Complex& s, const PrimExpr& end) const {
    const Stmt columns = loop("i", make_int(0), end, [&](const PrimExpr& i) {
      return bind_parts("a", h_(i, k), [&](const Complex& a) {
        return bind_parts("b", h_(i, k + 1), [&](const Complex& b) {
          return seq({h_.put(i, k, c * a + s * b), h_.put(i, k + 1, conjugate(c) * b - conjugate(s) * a)});
        });
      });
    });
    return seq({columns, turn_rows(q_, k, conjugate(c), conjugate(s), make_int(0))});
  }
  PrimExpr is_nothing(const Complex& a) const { return eq(size(a), number(0)); }

  // ---- zeros below the first diagonal under the main one

  Stmt reduced() const {
    return loop("k", std::max<int64_t>(n_ - 2, 0), [&](const PrimExpr& k) {
      return loop("up", make_int(0), make_int(n_ - 2) - k, [&](const PrimExpr& up) {
        const PrimExpr i = make_int(n_ - 2) - up;
        return bind_parts("x", h_(i, k), [&](const Complex& x) {
          return bind_parts("y", h_(i + 1, k), [&](const Complex& y) {
            return make_if(
                logical_not(is_nothing(y)), with_rotation(x, y, [&](const Complex& c, const Complex& s) {
                  return seq({turn_rows(h_, i, c, s, h_.re.vector_of(k)), turn_columns(i, c, s, make_int(n_)),
                              h_.put(i + 1, k, {number(0), number(0)})});
                }));
          });
        });
      });
    });
  }

  // ---- QR steps

  // The first row of the block that ends at kHigh: entries before it are zero, or count as such.
  Stmt find_low() const {
    return seq({put(kLow, at(kHigh)), loop("up", n_ - 1, [&](const PrimExpr& up) {
                  const PrimExpr i = make_int(n_ - 1) - up;
                  const PrimExpr is_small = le(size(h_(i, i - 1)), tiny() * (size(h_(i - 1, i - 1)) + size(h_(i, i))));
                  return make_if(eq(i, at(kLow)),
                                 make_if(is_small, h_.put(i, i - 1, {number(0), number(0)}), put(kLow, i - 1)));
                })});
  }
  // The eigenvalue of the last two rows and columns that is nearer to the last entry (Wilkinson's shift).
  Stmt find_shift() const {
    return bind("last", row_in(at(kHigh), n_), [&](const PrimExpr& last) {
      return bind("before", row_in(last - 1, n_), [&](const PrimExpr& before) {
        return bind_parts("d", h_(last, last), [&](const Complex& d) {
          const Complex half = scaled(h_(before, before) - d, number(0.5));
          const Stmt nearest = bind_parts("t", half, [&](const Complex& t) {
            return bind_parts("product", h_(before, last) * h_(last, before), [&](const Complex& product) {
              return with_root(t * t + product, [&](const Complex& r) {
                const PrimExpr turns = lt(t.re * r.re + t.im * r.im, number(0));
                const Complex away{select(turns, t.re - r.re, t.re + r.re), select(turns, t.im - r.im, t.im + r.im)};
                return bind_parts("away", away, [&](const Complex& apart) {
                  return make_if(is_nothing(apart), hold(d),
                                 quotient(product, apart, [&](const Complex& less) { return hold(d - less); }));
                });
              });
            });
          });
          const Stmt other = hold({d.re + size(h_(last, before)), d.im});
          return make_if(eq(floormod(at(kSteps), make_int(kStepsBetweenShoves)), make_int(0)), other, nearest);
        });
      });
    });
  }
  Stmt with_root(const Complex& a, const WithComplex& f) const {
    return bind_parts("a", a, [&](const Complex& z) {
      return bind("larger", root((root(squared(z)) + magnitude(z.re)) * number(0.5)), [&](const PrimExpr& larger) {
        const PrimExpr none = eq(larger, number(0));
        const PrimExpr other = select(none, number(0), div(z.im, select(none, number(1), larger) * number(2)));
        return bind("other", other, [&](const PrimExpr& smaller) {
          const PrimExpr right = ge(z.re, number(0));
          const PrimExpr signed_larger = select(lt(z.im, number(0)), number(0) - larger, larger);
          return bind_parts("root", {select(right, larger, magnitude(smaller)), select(right, smaller, signed_larger)},
                            f);
        });
      });
    });
  }
  Stmt each_of_block(const char* name, int64_t count, const std::function<Stmt(const PrimExpr&)>& f, bool last) const {
    return loop(name, count, [&](const PrimExpr& k) {
      return make_if(logical_and(ge(k, at(kLow)), last ? le(k, at(kHigh)) : lt(k, at(kHigh))), f(k));
    });
  }
  Stmt step() const {
    auto add_shift = [&](double sign) {
      return each_of_block(
          "k", n_, [&](const PrimExpr& k) { return h_.put(k, k, h_(k, k) + scaled(held(), number(sign))); }, true);
    };
    const PrimExpr cosines = make_int(kCosines), sines = make_int(kSines);
    const Stmt rows = each_of_block(
        "k", n_ - 1,
        [&](const PrimExpr& k) {
          return bind_parts("x", h_(k, k), [&](const Complex& x) {
            return bind_parts("y", h_(k + 1, k), [&](const Complex& y) {
              const Stmt nothing = seq({rows_.put(cosines, k, one()), rows_.put(sines, k, {number(0), number(0)})});
              return make_if(is_nothing(y), nothing, with_rotation(x, y, [&](const Complex& c, const Complex& s) {
                               return seq({rows_.put(cosines, k, c), rows_.put(sines, k, s),
                                           turn_rows(h_, k, c, s, h_.re.vector_of(k))});
                             }));
            });
          });
        },
        false);
    const Stmt columns = each_of_block(
        "k", n_ - 1,
        [&](const PrimExpr& k) {
          return bind_parts("c", rows_(cosines, k), [&](const Complex& c) {
            return bind_parts("s", rows_(sines, k), [&](const Complex& s) { return turn_columns(k, c, s, k + 2); });
          });
        },
        false);
    return seq({put(kSteps, at(kSteps) + 1), find_shift(), add_shift(-1), rows, columns, add_shift(1)});
  }
  Stmt emptied() const {
    const Stmt next = seq({put(kHigh, at(kHigh) - 1), put(kSteps, make_int(0))});
    return seq(
        {put(kHigh, make_int(n_ - 1)), put(kSteps, make_int(0)), loop("step", kStepsPerRow * n_, [&](const PrimExpr&) {
           return make_if(gt(at(kHigh), make_int(0)),
                          seq({find_low(), make_if(eq(at(kLow), at(kHigh)), next, step())}));
         })});
  }

  // ---- results

  // v of (h - h[k, k]) v = 0, v[k] = 1: from row k - 1 up. What differs by nothing differs by what rounding leaves.
  Stmt solve(const PrimExpr& k) const {
    const PrimExpr row = make_int(kVector);
    const Stmt clear = loop("i", n_, [&](const PrimExpr& i) {
      return rows_.put(row, i, {select(eq(i, k), number(1), number(0)), number(0)});
    });
    const PrimExpr most = number(p_.dtype == kFloat64 ? 0x1p+300 : 0x1p+40);
    const Stmt up = loop("up", make_int(0), k, [&](const PrimExpr& up) {
      return bind("i", row_in(k - 1 - up, n_), [&](const PrimExpr& i) {
        const Stmt sum = loop("j", i + 1, k + 1, [&](const PrimExpr& j) {
          return bind("j", row_in(j, n_),
                      [&](const PrimExpr& in) { return hold(held() + h_(i, in) * rows_(row, in)); });
        });
        const Stmt put = bind_parts("apart", h_(k, k) - h_(i, i), [&](const Complex& apart) {
          const PrimExpr same = lt(size(apart), held(kSmall));
          return quotient(held(), {select(same, held(kSmall), apart.re), select(same, number(0), apart.im)},
                          [&](const Complex& v) {
                            return seq({rows_.put(row, i, v), hold(kLargest, size(v))});
                          });
        });
        const Stmt shrink = bind("by", div(number(1), held(kLargest)), [&](const PrimExpr& by) {
          return loop("j", n_, [&](const PrimExpr& j) { return rows_.put(row, j, scaled(rows_(row, j), by)); });
        });
        return seq({hold({number(0), number(0)}), sum, put, make_if(gt(held(kLargest), most), shrink)});
      });
    });
    return seq({clear, up});
  }
  // Column k of the vectors: q's rows times v, of length 1, its largest entry real.
  Stmt store_vector(const PrimExpr& k, const View& vectors, const Index& batch) const {
    const PrimExpr row = make_int(kCombined);
    const Stmt clear = loop("j", n_, [&](const PrimExpr& j) { return rows_.put(row, j, {number(0), number(0)}); });
    const Stmt combine = loop("i", n_, [&](const PrimExpr& i) {
      return bind_parts("v", rows_(make_int(kVector), i), [&](const Complex& v) {
        return loop("j", n_, [&](const PrimExpr& j) { return rows_.put(row, j, rows_(row, j) + v * q_(i, j)); });
      });
    });
    const Stmt measure = loop("j", n_, [&](const PrimExpr& j) {
      return bind_parts("v", rows_(row, j), [&](const Complex& v) {
        return bind("square", squared(v), [&](const PrimExpr& square) {
          return seq({hold(kSmall, held(kSmall) + square),
                      make_if(gt(square, held(kLargest)), seq({hold(kLargest, square), hold(v)}))});
        });
      });
    });
    const PrimExpr length = root(held(kSmall)) * root(held(kLargest));
    const Stmt put =
        bind_parts("by", {div(held(kRe), length), div(number(0) - held(kIm), length)}, [&](const Complex& by) {
          return loop("j", n_, [&](const PrimExpr& j) {
            return bind_parts("v", rows_(row, j) * by,
                              [&](const Complex& v) { return store_parts(vectors, of_batch(batch, j, k), v); });
          });
        });
    return seq({clear, combine, hold(kSmall, number(0)), hold(kLargest, number(0)), hold(one()), measure, put});
  }
  static Stmt store_parts(const View& view, const Index& index, const Complex& v) {
    return seq({view.store(of_batch(index, make_int(0)), v.re), view.store(of_batch(index, make_int(1)), v.im)});
  }
  Stmt stored(const View& values, const View& vectors, const Index& batch) const {
    const Stmt largest = loop("i", n_, [&](const PrimExpr& i) {
      return loop("j", n_, [&](const PrimExpr& j) { return hold(kLargest, max(held(kLargest), size(h_(i, j)))); });
    });
    // Above 0, so that nothing is divided by it.
    const PrimExpr small = max(held(kLargest) * tiny(), number(p_.dtype == kFloat64 ? 0x1p-900 : 0x1p-110));
    return loop("k", n_, [&](const PrimExpr& k) {
      return seq({store_parts(values, of_batch(batch, k), h_(k, k)), hold(kLargest, number(0)), largest,
                  hold(kSmall, small), solve(k), store_vector(k, vectors, batch)});
    });
  }

  const MatrixProblem& p_;
  int64_t n_;
  ComplexRows h_, q_, rows_;
  Buffer at_ = make_buffer("at", kInt64, kPlaces, Scope::kRegister);
  Buffer held_ = make_buffer("held", p_.dtype, kNumbers, Scope::kRegister);
};

}  // namespace

int64_t eig_scratch(const MatrixProblem& p, const Target& target) { return Eigenvalues::scratch(p, target); }
Stmt eig(const MatrixProblem& p, const Operand& a, const View& values, const View& vectors,
         const KernelContext& context) {
  if (p.rows == 0) return seq({});
  const Eigenvalues all(p, context);
  return each_matrix(p, context, [&](const Index& batch) { return all.of(a, values, vectors, batch); });
}

}  // namespace tilewright::topi
