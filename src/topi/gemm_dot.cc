// SPDX-License-Identifier: Apache-2.0
// Products with a transposed activation and a long reduction: vectors run along K of both operands and each result is
// one horizontal sum, so nothing is transposed. The sum's price is small beside K.
#include <algorithm>

#include "topi/gemm.h"
#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

Stmt gemm_dot(const GemmProblem& p, const View& a, const View& b, const View& out, const Epilogue& epilogue,
              const KernelContext& context) {
  const DataType element = accumulator_dtype(a.dtype());
  const int v = context.target->lanes(std::max<int>(32, element.bits)), rank = out.rank();
  const DataType vector = element.with_lanes(v);
  const int64_t rows = std::min<int64_t>(p.m, context.target->vector_registers >= 32 ? 4 : 2), cols = std::min<int64_t>(p.n, 4);
  auto batch_stride = [](const View& view) { return view.rank() == 3 && view.shape[0] > 1 ? view.strides[0] : 0; };
  const int64_t a_row = a.strides[a.rank() - 2], b_row = b.strides[b.rank() - 2];
  const int64_t vectors = p.k / v, tail = p.k % v;

  auto tile = [&](const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0, int64_t r_count, int64_t c_count) {
    Buffer acc = make_buffer("acc", vector, r_count * c_count, Scope::kRegister);
    Buffer left = make_buffer("left", vector, 1, Scope::kRegister), right = make_buffer("right", vector, c_count, Scope::kRegister);
    return bind("a_at", batch * batch_stride(a) + m0 * a_row + a.offset, [&](PrimExpr a_at) {
      return bind("b_at", batch * batch_stride(b) + n0 * b_row + b.offset, [&](PrimExpr b_at) {
        std::vector<Stmt> body;
        for (int64_t i = 0; i < r_count * c_count; ++i) body.push_back(store(acc, make_int(i), make_const(vector, 0)));
        auto widened = [&](PrimExpr x) { return x->dtype == vector ? x : cast(vector, x); };
        auto step = [&](const PrimExpr& k, const PrimExpr& mask) {
          std::vector<Stmt> steps;
          for (int64_t c = 0; c < c_count; ++c)
            steps.push_back(store(right, make_int(c), widened(load(b.buffer, ramp(b_at + c * b_row + k, 1, v), mask))));
          for (int64_t r = 0; r < r_count; ++r) {
            steps.push_back(store(left, make_int(0), widened(load(a.buffer, ramp(a_at + r * a_row + k, 1, v), mask))));
            for (int64_t c = 0; c < c_count; ++c) {
              PrimExpr at = make_int(r * c_count + c);
              steps.push_back(store(acc, at, multiply_add(load(left, make_int(0)), load(right, make_int(c)), load(acc, at))));
            }
          }
          return seq(std::move(steps));
        };
        if (vectors) body.push_back(loop("k", vectors, [&](PrimExpr k) { return step(k * int64_t{v}, {}); }));
        if (tail) body.push_back(step(make_int(vectors * v), tail_mask(v, tail)));
        for (int64_t r = 0; r < r_count; ++r)
          for (int64_t c = 0; c < c_count; ++c) {
            Index index{m0 + r, n0 + c};
            if (rank == 3) index.insert(index.begin(), batch);
            PrimExpr sum = load(acc, make_int(r * c_count + c));
            if (v > 1) sum = intrinsic(Intrinsic::k_reduce_add, {sum});
            PrimExpr var = make_var("sum", sum->dtype);
            body.push_back(let_stmt(var, sum, out.store(index, epilogue(var, index, {}))));
          }
        return allocate(acc, allocate(left, allocate(right, seq(std::move(body)))));
      });
    });
  };
  auto columns = [&](const PrimExpr& batch, const PrimExpr& m0, int64_t r_count) {
    std::vector<Stmt> body;
    if (p.n / cols)
      body.push_back(loop("nt", p.n / cols, [&](PrimExpr nt) { return tile(batch, m0, nt * cols, r_count, cols); }));
    if (p.n % cols) body.push_back(tile(batch, m0, make_int(p.n / cols * cols), r_count, p.n % cols));
    return seq(std::move(body));
  };
  const std::vector<int64_t> units{p.batch, ceil_div(p.m, rows)};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      PrimExpr m0 = at[1] * rows;
      if (p.m % rows == 0) return columns(at[0], m0, rows);
      if (units[1] == 1) return columns(at[0], m0, p.m % rows);
      return make_if(eq(at[1], make_int(units[1] - 1)), columns(at[0], m0, p.m % rows), columns(at[0], m0, rows));
    });
  });
}

}  // namespace tilewright::topi
