// SPDX-License-Identifier: Apache-2.0
// Products with a transposed activation and few rows or a long reduction, or with few columns: vectors run along K of
// both operands, and nothing is transposed. A tile has v sums (rows x columns), which a tree of shuffles and additions
// reduces to one vector.
#include <algorithm>
#include <limits>

#include "topi/gemm.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kSumParts = 4;  // of a sum whose column is read alone

// Shape of a tile: rows x columns of the result, at most as many as a vector has lanes.
struct DotTile {
  int64_t rows, cols;
};

// Reduces v vectors to one whose lane i is the sum of vector i's lanes, by v - 1 additions of shuffled pairs. For
// distances 1 and 2 shuffles stay within 128 bits and are cheap; beyond, whole quarters are exchanged.
PrimExpr sums_of(std::vector<PrimExpr> x, int v, const std::function<PrimExpr(PrimExpr)>& keep) {
  for (int distance = 1; distance < v; distance *= 2) {
    std::vector<PrimExpr> next;
    for (size_t i = 0; i < x.size(); i += 2) {
      std::vector<int> low, high;
      for (int lane = 0; lane < v; ++lane) {
        // Bit `distance` of the lane selects which of the two sums
        // it holds; the lanes summed here differ in that bit.
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

double dot_tile_cycles(int64_t rows, int64_t cols, int64_t k, int v, double per_cycle) {
  const double step =
      std::max({static_cast<double>(rows * cols) / per_cycle, static_cast<double>(rows + cols) / per_cycle, 4.2});
  return static_cast<double>(ceil_div(k, v)) * (step + 0.5) + 3.0 * v / per_cycle + 20;
}

double cycles_with(const GemmProblem& p, const DotTile& t, const Target& target) {
  const int v = lanes_of(p, target);
  const double per_cycle = target.machine.fmas_per_cycle(target.vector_bits);
  auto row = [&](int64_t rows) {
    const int64_t whole = p.n / t.cols;
    double cycles = static_cast<double>(whole) * dot_tile_cycles(rows, t.cols, p.k, v, per_cycle);
    if (p.n % t.cols) cycles += dot_tile_cycles(rows, p.n % t.cols, p.k, v, per_cycle);
    return cycles;
  };
  const int64_t tiles = p.m / t.rows;
  return static_cast<double>(p.batch) *
         (static_cast<double>(tiles) * row(t.rows) + (p.m % t.rows ? row(p.m % t.rows) : 0));
}

// One row by a matrix that comes from memory waits for its bytes: its rows are read one after the other, as one stream,
// beside a row that stays in the first cache.
bool reads_one_stream(const GemmProblem& p, const Target& target) {
  const auto bytes = static_cast<int64_t>(p.dtype.bytes());
  return p.m == 1 && p.k % lanes_of(p, target) == 0 && p.k * bytes <= target.machine.l1_bytes / 4 &&
         p.batch * p.n * p.k * bytes >= target.machine.l3_bytes / 2;
}

DotTile dot_tile(const GemmProblem& p, const Target& target) {
  const int64_t v = lanes_of(p, target);
  if (reads_one_stream(p, target)) return {1, std::clamp<int64_t>(p.n, 1, v)};
  DotTile best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= std::clamp<int64_t>(p.m, 1, v); ++rows)
    for (int64_t cols = 1; cols <= std::clamp<int64_t>(p.n, 1, v / rows); ++cols) {
      const double cycles = cycles_with(p, {rows, cols}, target);
      if (cycles < least * 0.999) best = {rows, cols}, least = cycles;
    }
  return best;
}

}  // namespace

double dot_cycles(const GemmProblem& p, const Target& target) { return cycles_with(p, dot_tile(p, target), target); }

namespace {
// A tile of dot products at (m0, n0) of a batch's result.
Stmt tile_of_dots(const GemmProblem& p, const View& a, const View& b, const View& out, const Epilogue& epilogue,
                  const Target& target, const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0, int64_t rows,
                  int64_t cols) {
  const int v = lanes_of(p, target), rank = out.rank();
  const DataType vector = accumulator_dtype(a.dtype()).with_lanes(v);
  auto batch_stride = [](const View& view) { return view.rank() == 3 && view.shape[0] > 1 ? view.strides[0] : 0; };
  const int64_t a_row = a.strides[a.rank() - 2], b_row = b.strides[b.rank() - 2];
  // Vectors of rows that begin anywhere lie in two lines each; where both are still under way, a load starts again: 8
  // rows of 222 elements with 216 columns took 65 us, rows of 224 took 40; with the next tile's lines fetched ahead 59.
  const auto bytes = static_cast<int64_t>(b.dtype().bytes());
  const bool stream = reads_one_stream(p, target);
  const bool ahead = v * bytes == kLineBytes && b_row * bytes % kLineBytes != 0;
  const int64_t vectors = p.k / v, tail = p.k % v;
  Buffer acc = make_buffer("acc", vector, rows * cols, Scope::kRegister);
  Buffer left = make_buffer("left", vector, rows, Scope::kRegister),
         right = make_buffer("right", vector, 1, Scope::kRegister),
         parts = make_buffer("parts", vector, kSumParts, Scope::kRegister);
  return bind("a_at", batch * batch_stride(a) + m0 * a_row + a.offset, [&](PrimExpr a_at) {
    return bind("b_at", batch * batch_stride(b) + n0 * b_row + b.offset, [&](PrimExpr b_at) {
      std::vector<Stmt> body;
      for (int64_t i = 0; i < rows * cols; ++i) body.push_back(store(acc, make_int(i), make_const(vector, 0)));
      auto widened = [&](const PrimExpr& x) { return x->dtype == vector ? x : cast(vector, x); };
      auto step = [&](const PrimExpr& k, const PrimExpr& mask) {
        std::vector<Stmt> steps;
        for (int64_t r = 0; r < rows; ++r)
          steps.push_back(store(left, make_int(r), widened(load(a.buffer, ramp(a_at + r * a_row + k, 1, v), mask))));
        for (int64_t c = 0; c < cols; ++c) {
          if (ahead && !mask) steps.push_back(prefetch(b.buffer, b_at + (c + cols) * b_row + k));
          steps.push_back(store(right, make_int(0), widened(load(b.buffer, ramp(b_at + c * b_row + k, 1, v), mask))));
          for (int64_t r = 0; r < rows; ++r) {
            PrimExpr at = make_int(r * cols + c);
            steps.push_back(
                store(acc, at, multiply_add(load(left, make_int(r)), load(right, make_int(0)), load(acc, at))));
          }
        }
        return seq(std::move(steps));
      };
      // The sum of one column of a single row, in parts that do not wait for each other.
      auto column = [&](int64_t c) {
        auto product = [&](int64_t part, const PrimExpr& k) {
          const PrimExpr at = b_at + c * b_row + k;
          return seq({prefetch(b.buffer, at + kPrefetchBytesFewRows / bytes),
                      store(parts, make_int(part),
                            multiply_add(widened(load(a.buffer, ramp(a_at + k, 1, v))),
                                         widened(load(b.buffer, ramp(at, 1, v))), load(parts, make_int(part))))});
        };
        std::vector<Stmt> steps, some;
        for (int64_t i = 0; i < kSumParts; ++i) steps.push_back(store(parts, make_int(i), make_const(vector, 0)));
        steps.push_back(loop("k", vectors / kSumParts, [&](const PrimExpr& k) {
          for (int64_t i = 0; i < kSumParts; ++i) some.push_back(product(i, (k * kSumParts + i) * int64_t{v}));
          return seq(some);
        }));
        for (int64_t i = vectors / kSumParts * kSumParts; i < vectors; ++i)
          steps.push_back(product(i % kSumParts, make_int(i * v)));
        PrimExpr sum = load(parts, make_int(0));
        for (int64_t i = 1; i < kSumParts; ++i) sum = sum + load(parts, make_int(i));
        steps.push_back(store(acc, make_int(c), sum));
        return seq(std::move(steps));
      };
      if (stream)
        for (int64_t c = 0; c < cols; ++c) body.push_back(column(c));
      else if (vectors)
        body.push_back(loop("k", vectors, [&](const PrimExpr& k) { return step(k * int64_t{v}, {}); }));
      if (tail) body.push_back(step(make_int(vectors * v), tail_mask(v, tail)));
      std::vector<PrimExpr> sums;
      for (int64_t i = 0; i < v; ++i) sums.push_back(i < rows * cols ? load(acc, make_int(i)) : make_const(vector, 0));
      std::vector<std::pair<PrimExpr, PrimExpr>> lets;
      PrimExpr all = sums_of(sums, v, [&](const PrimExpr& value) -> PrimExpr {
        lets.emplace_back(make_var("pair", vector), value);
        return lets.back().first;
      });
      std::vector<Stmt> stores;
      for (int64_t r = 0; r < rows; ++r) {
        Index index{m0 + r, n0};
        if (rank == 3) index.insert(index.begin(), batch);
        // A power of two with masked remainder: other lengths have no machine type.
        int lanes = 1;
        while (lanes < cols) lanes *= 2;
        std::vector<int> own;
        for (int64_t c = 0; c < lanes; ++c) own.push_back(static_cast<int>(r * cols + std::min(c, cols - 1)));
        PrimExpr value = cols == v ? all : shuffle({all}, own), mask = tail_mask(lanes, cols);
        PrimExpr var = make_var("sums", value->dtype);
        stores.push_back(let_stmt(var, value, out.store(index, epilogue(var, index, mask), mask)));
      }
      Stmt finish = seq(std::move(stores));
      for (size_t i = lets.size(); i-- > 0;) finish = let_stmt(lets[i].first, lets[i].second, finish);
      body.push_back(finish);
      return allocate(acc, allocate(left, allocate(right, allocate(parts, seq(std::move(body))))));
    });
  });
}
}  // namespace

Stmt dots_of_batch(const GemmProblem& p, const View& a, const View& b, const View& out, const Epilogue& epilogue,
                   const Target& target, const PrimExpr& batch) {
  const DotTile size = dot_tile(p, target);
  auto columns = [&](const PrimExpr& m0, int64_t rows) {
    std::vector<Stmt> body;
    for (int64_t n0 = 0; n0 < p.n; n0 += size.cols)
      body.push_back(
          tile_of_dots(p, a, b, out, epilogue, target, batch, m0, make_int(n0), rows, std::min(size.cols, p.n - n0)));
    return seq(std::move(body));
  };
  std::vector<Stmt> body{
      loop("mt", p.m / size.rows, [&](const PrimExpr& mt) { return columns(mt * size.rows, size.rows); })};
  if (p.m % size.rows) body.push_back(columns(make_int(p.m / size.rows * size.rows), p.m % size.rows));
  return seq(std::move(body));
}

Stmt gemm_dot(const GemmProblem& p, const View& a, const View& b, const View& out, const Epilogue& epilogue,
              const KernelContext& context) {
  auto tile = [&](const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0, int64_t rows, int64_t cols) {
    return tile_of_dots(p, a, b, out, epilogue, *context.target, batch, m0, n0, rows, cols);
  };
  // A unit of work is up to kColumns columns of a row tile, in whole tiles.
  constexpr int64_t kColumns = 128;
  const DotTile size = dot_tile(p, *context.target);
  const int64_t part_tiles = kColumns / size.cols, whole = p.n / size.cols, rest = p.n % size.cols;
  const int64_t parts = std::max<int64_t>(1, ceil_div(ceil_div(p.n, size.cols), part_tiles));
  auto columns = [&](const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& part, int64_t rows) {
    std::vector<Stmt> body;
    if (whole) {
      PrimExpr first = part * part_tiles;
      body.push_back(loop("nt", first, min(first + part_tiles, make_int(whole)),
                          [&](const PrimExpr& nt) { return tile(batch, m0, nt * size.cols, rows, size.cols); }));
    }
    if (rest) {
      Stmt last = tile(batch, m0, make_int(whole * size.cols), rows, rest);
      body.push_back(parts == 1 ? last : make_if(eq(part, make_int(parts - 1)), last));
    }
    return seq(std::move(body));
  };
  const int64_t tail_rows = p.m % size.rows;
  const std::vector<int64_t> units{p.batch, parts, ceil_div(p.m, size.rows)};
  return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      PrimExpr m0 = at[2] * size.rows;
      if (tail_rows == 0) return columns(at[0], m0, at[1], size.rows);
      return make_if(eq(at[2], make_int(units[2] - 1)), columns(at[0], m0, at[1], tail_rows),
                     columns(at[0], m0, at[1], size.rows));
    });
  });
}

}  // namespace tilewright::topi
