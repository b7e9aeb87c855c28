// SPDX-License-Identifier: Apache-2.0
// Products with a transposed activation and few rows or a long reduction: vectors run along K of both operands, nothing
// is transposed. A tile is v sums (rows x columns); a tree of shuffles and additions makes one vector of them.
#include <algorithm>

#include "topi/gemm.h"
#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Columns of a tile of so many rows: v sums, or three quarters of them.
int64_t columns_of(int64_t rows, int64_t v) { return rows == 3 ? v / 4 : v / rows; }
int64_t most_rows(int64_t v) { return v >= 16 ? 4 : v >= 8 ? 2 : 1; }
int lanes_of(const GemmProblem& p, const Target& target) {
  return target.lanes(std::max<int>(32, accumulator_dtype(p.dtype).bits));
}

// v vectors -> one vector whose lane i is the sum of vector i's lanes, by v - 1 additions of shuffled pairs. While
// pairs are 1 or 2 apart they stay within 128 bits, where shuffles are cheap; then whole quarters change places.
PrimExpr sums_of(std::vector<PrimExpr> x, int v, const std::function<PrimExpr(PrimExpr)>& keep) {
  for (int distance = 1; distance < v; distance *= 2) {
    std::vector<PrimExpr> next;
    for (size_t i = 0; i < x.size(); i += 2) {
      std::vector<int> low, high;
      for (int lane = 0; lane < v; ++lane) {
        // Lane bit `distance` says which of the two sums the lane belongs to; the summed half of the lane's other bit
        // goes.
        const bool second = lane & distance;
        int from = lane & ~distance;
        low.push_back(second ? v + from : from);
        high.push_back(second ? v + from + distance : from + distance);
      }
      next.push_back(keep(shuffle({x[i], x[i + 1]}, low) + shuffle({x[i], x[i + 1]}, high)));
    }
    x = std::move(next);
  }
  return x[0];
}

}  // namespace

double dot_cycles(const GemmProblem& p, const Target& target) {
  const int v = lanes_of(p, target);
  const double per_cycle = target.vector_bits >= 512 ? 1 : 2;
  auto row = [&](int64_t rows) {
    const int64_t cols = columns_of(rows, v);
    const double step =
        std::max({static_cast<double>(rows * cols) / per_cycle, static_cast<double>(rows + cols) / per_cycle, 4.2});
    return static_cast<double>(ceil_div(p.n, cols)) *
           (static_cast<double>(ceil_div(p.k, v)) * (step + 0.5) + 3.0 * v / per_cycle + 20);
  };
  const int64_t most = most_rows(v), rest = p.m % most;
  return static_cast<double>(p.batch) * (static_cast<double>(p.m / most) * row(most) + (rest ? row(rest) : 0));
}

Stmt gemm_dot(const GemmProblem& p, const View& a, const View& b, const View& out, const Epilogue& epilogue,
              const KernelContext& context) {
  const int v = lanes_of(p, *context.target), rank = out.rank();
  const DataType vector = accumulator_dtype(a.dtype()).with_lanes(v);
  auto batch_stride = [](const View& view) { return view.rank() == 3 && view.shape[0] > 1 ? view.strides[0] : 0; };
  const int64_t a_row = a.strides[a.rank() - 2], b_row = b.strides[b.rank() - 2];
  const int64_t vectors = p.k / v, tail = p.k % v;

  // `valid` columns are real; the others repeat the last one and are not stored.
  auto tile = [&](const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0, int64_t rows, int64_t cols,
                  int64_t valid) {
    Buffer acc = make_buffer("acc", vector, rows * cols, Scope::kRegister);
    Buffer left = make_buffer("left", vector, rows, Scope::kRegister),
           right = make_buffer("right", vector, 1, Scope::kRegister);
    return bind("a_at", batch * batch_stride(a) + m0 * a_row + a.offset, [&](PrimExpr a_at) {
      return bind("b_at", batch * batch_stride(b) + n0 * b_row + b.offset, [&](PrimExpr b_at) {
        std::vector<Stmt> body;
        for (int64_t i = 0; i < rows * cols; ++i) body.push_back(store(acc, make_int(i), make_const(vector, 0)));
        auto widened = [&](PrimExpr x) { return x->dtype == vector ? x : cast(vector, x); };
        auto step = [&](const PrimExpr& k, const PrimExpr& mask) {
          std::vector<Stmt> steps;
          for (int64_t r = 0; r < rows; ++r)
            steps.push_back(store(left, make_int(r), widened(load(a.buffer, ramp(a_at + r * a_row + k, 1, v), mask))));
          for (int64_t c = 0; c < cols; ++c) {
            steps.push_back(
                store(right, make_int(0),
                      widened(load(b.buffer, ramp(b_at + std::min(c, valid - 1) * b_row + k, 1, v), mask))));
            for (int64_t r = 0; r < rows; ++r) {
              PrimExpr at = make_int(r * cols + c);
              steps.push_back(
                  store(acc, at, multiply_add(load(left, make_int(r)), load(right, make_int(0)), load(acc, at))));
            }
          }
          return seq(std::move(steps));
        };
        if (vectors) body.push_back(loop("k", vectors, [&](PrimExpr k) { return step(k * int64_t{v}, {}); }));
        if (tail) body.push_back(step(make_int(vectors * v), tail_mask(v, tail)));
        std::vector<PrimExpr> sums;
        for (int64_t i = 0; i < v; ++i)
          sums.push_back(i < rows * cols ? load(acc, make_int(i)) : make_const(vector, 0));
        std::vector<std::pair<PrimExpr, PrimExpr>> lets;
        PrimExpr all = sums_of(sums, v, [&](PrimExpr value) -> PrimExpr {
          lets.emplace_back(make_var("pair", vector), value);
          return lets.back().first;
        });
        std::vector<Stmt> stores;
        for (int64_t r = 0; r < rows; ++r) {
          Index index{m0 + r, n0};
          if (rank == 3) index.insert(index.begin(), batch);
          std::vector<int> own;
          for (int64_t c = 0; c < cols; ++c) own.push_back(static_cast<int>(r * cols + c));
          PrimExpr value = cols == v ? all : shuffle({all}, own), mask = tail_mask(static_cast<int>(cols), valid);
          PrimExpr var = make_var("sums", value->dtype);
          stores.push_back(let_stmt(var, value, out.store(index, epilogue(var, index, mask), mask)));
        }
        Stmt finish = seq(std::move(stores));
        for (size_t i = lets.size(); i-- > 0;) finish = let_stmt(lets[i].first, lets[i].second, finish);
        body.push_back(finish);
        return allocate(acc, allocate(left, allocate(right, seq(std::move(body)))));
      });
    });
  };
  // A unit of work is up to kColumns columns of a row tile.
  constexpr int64_t kColumns = 128;
  const int64_t chunks = ceil_div(p.n, kColumns);
  auto columns = [&](const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& part, int64_t rows) {
    const int64_t cols = columns_of(rows, v), whole = p.n / cols, rest = p.n % cols;
    std::vector<Stmt> body;
    if (whole) {
      PrimExpr first = part * (kColumns / cols);
      body.push_back(loop("nt", first, min(first + kColumns / cols, make_int(whole)),
                          [&](PrimExpr nt) { return tile(batch, m0, nt * cols, rows, cols, cols); }));
    }
    if (rest) {
      Stmt last = tile(batch, m0, make_int(whole * cols), rows, cols, rest);
      body.push_back(chunks == 1 ? last : make_if(eq(part, make_int(chunks - 1)), last));
    }
    return seq(std::move(body));
  };
  const int64_t most = most_rows(v), tail_rows = p.m % most;
  const std::vector<int64_t> units{p.batch, chunks, ceil_div(p.m, most)};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      PrimExpr m0 = at[2] * most;
      if (tail_rows == 0) return columns(at[0], m0, at[1], most);
      if (p.m < most) return columns(at[0], m0, at[1], tail_rows);
      return make_if(eq(at[2], make_int(units[2] - 1)), columns(at[0], m0, at[1], tail_rows),
                     columns(at[0], m0, at[1], most));
    });
  });
}

}  // namespace tilewright::topi
