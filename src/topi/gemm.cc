// SPDX-License-Identifier: Apache-2.0
#include "topi/gemm.h"

#include <algorithm>
#include <limits>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"
#include "topi/transpose.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Scratch of one transposed panel; beyond it the dot-product form is used.
constexpr int64_t kMaxScratchBytes = 64 << 10;

// Rows whose stride is a multiple of 4 KiB share one 8-way set of the L1 cache.
bool rows_alias(const GemmProblem& p) { return p.m > 1 && p.row_stride * p.dtype.bits / 8 % 4096 == 0; }

// Whether `valid` columns leave the last vector at most half full: it is computed in half vectors then. 512-bit
// operations cost twice what 256-bit ones do where the units are 256 bits wide, and no less elsewhere.
bool ends_in_half(int64_t valid, int64_t v, const Target& target) {
  return target.vector_bits >= 512 && valid % v != 0 && valid % v * 2 <= v;
}

// Rows that the tile which turns a panel of B on its way may have: the panel's next steps need registers too.
constexpr int kTurningRows = 22;

// Tiles of so many rows and one vector of columns, which read B's rows as they lie and turn four steps of them at a
// time: shuffles run beside the multiply-adds, pieces of 128 bits and broadcasts share the loads.
double turning_tile_cycles(int rows, double cols, double k, const Target& target) {
  const double per_cycle = target.vector_bits >= 512 ? 1 : 2;
  const double step = std::max({rows / per_cycle, target.vector_bits / 256.0 + rows / 2.0, 4.2});
  return cols * (k * (step + 0.3) + 30 + 2.0 * rows / per_cycle);
}

struct Rows {
  int turning = 0;  // rows of the first tile, which turns the panel; 0: it is turned before
  double cycles = 0;
};
// What the rows under a panel of so many column vectors take.
Rows column_of_rows(const GemmProblem& p, const GemmConfig& c, double cols, const Target& target) {
  const double k = static_cast<double>(p.k), panel = k * lanes_of(p, target) * c.nr * 4;
  auto tiles = [&](int64_t m) {
    double cycles = static_cast<double>(m / c.mr) * tile_cycles(c.mr, cols, k, panel, target);
    if (m % c.mr) cycles += tile_cycles(static_cast<int>(m % c.mr), cols, k, panel, target);
    return cycles;
  };
  if (p.b != MatrixB::kTransposed) return {0, tiles(p.m)};
  Rows best{0, tiles(p.m) + 0.16 * cols * lanes_of(p, target) * k};
  if (target.vector_registers < 32 || p.k < 4) return best;
  const int most = static_cast<int>(std::min<int64_t>(p.m, kTurningRows));
  for (int rows = 1; rows <= most; ++rows) {
    const double cycles = turning_tile_cycles(rows, cols, k, target) + (p.m > rows ? tiles(p.m - rows) : 0);
    if (cycles < best.cycles) best = {rows, cycles};
  }
  return best;
}

double panels_cycles(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  int64_t v = lanes_of(p, target), width = v * c.nr;
  auto column = [&](double cols) { return column_of_rows(p, c, cols, target).cycles; };
  double cycles = (p.n / width) * column(c.nr);
  if (int64_t rest = p.n % width)
    cycles += column(static_cast<double>(ceil_div(rest, v)) - (ends_in_half(rest, v, target) ? 0.5 : 0));
  return cycles * static_cast<double>(p.batch);
}

// Rows of A under a panel are shared out in such chunks; B's turned panel serves all of them.
constexpr int64_t kChunk = 8;

double dots_beside_panels(const GemmProblem& rest, const Target& target) {
  const double turning = rest.b == MatrixB::kRowMajor ? 1.5 * static_cast<double>(rest.batch * rest.n * rest.k) : 0;
  return 1.1 * dot_cycles(rest, target) + turning;
}

// Columns of an activation B beyond whole (half) vectors that are dearer in one of their own than as dot products: one
// to three, mostly.
int64_t columns_of_dots(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  const int64_t half = lanes_of(p, target) / (target.vector_bits >= 512 ? 2 : 1), columns = p.n % half;
  if (p.b == MatrixB::kPacked || columns == 0 || p.n < half || p.k < lanes_of(p, target)) return 0;
  if (columns * p.k * static_cast<int64_t>(p.dtype.bytes()) > kMaxScratchBytes / 4) return 0;
  // They belong to the last panel, which one thread computes.
  if (p.b == MatrixB::kRowMajor && p.batch < 8 && p.m / c.mr > kChunk) return 0;
  GemmProblem whole = p, rest = p;
  whole.n -= columns, rest.n = columns;
  return panels_cycles(whole, c, target) + dots_beside_panels(rest, target) < panels_cycles(p, c, target) ? columns : 0;
}

double gemm_cycles(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  GemmProblem whole = p, rest = p;
  rest.n = columns_of_dots(p, c, target), whole.n -= rest.n;
  return panels_cycles(whole, c, target) + (rest.n ? dots_beside_panels(rest, target) : 0);
}

// Whether a turned panel has a place: on the stack, or nowhere because one tile of rows is all that needs it.
bool panel_fits(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  if (p.k * lanes_of(p, target) * c.nr * static_cast<int64_t>(p.dtype.bytes()) <= kMaxScratchBytes) return true;
  return column_of_rows(p, c, c.nr, target).turning == p.m;
}

// Few rows do not pay for turning B, and a long reduction's panel does not fit the stack.
bool takes_dots(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  return p.b == MatrixB::kTransposed &&
         (!panel_fits(p, c, target) || dot_cycles(p, target) < gemm_cycles(p, c, target));
}

}  // namespace

int lanes_of(const GemmProblem& p, const Target& target) {
  return target.lanes(std::max<int>(32, accumulator_dtype(p.dtype).bits));
}

namespace {
// Every tile that stays in registers, with its predicted cycles.
template <class F>
void for_each_config(const GemmProblem& p, const Target& target, F visit) {
  int64_t v = lanes_of(p, target);
  int max_rows = static_cast<int>(std::min<int64_t>(p.m, rows_alias(p) ? 8 : 16));
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), 8));
  for (int nr = 1; nr <= max_cols; ++nr)
    for (int mr = 1; mr <= max_rows && tile_fits(mr, nr, target); ++mr) {
      if (p.b == MatrixB::kTransposed && nr > 1 && !panel_fits(p, {mr, nr, 4}, target)) continue;
      visit(GemmConfig{mr, nr, 4}, gemm_cycles(p, {mr, nr, 4}, target));
    }
}

int unroll_of(const GemmProblem& p, const GemmConfig& c) {
  return static_cast<int>(std::min<int64_t>(c.mr * c.nr >= 8 ? 4 : 8, std::max<int64_t>(1, p.k)));
}
}  // namespace

bool fits(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  if (c.mr < 1 || c.nr < 1 || c.k_unroll < 1) return false;
  if (p.b != MatrixB::kTransposed) return !c.dots;
  return c.dots || panel_fits(p, c, target);
}

std::vector<GemmConfig> configs(const GemmProblem& p, const Target& target, size_t most, int only) {
  const GemmConfig guess = default_config(p, target, only);
  std::vector<Weighed<GemmConfig>> all;
  if (most > 1)
    for_each_config(p, target, [&](GemmConfig c, double cycles) {
      if ((only != 0 && c.nr != only) || (p.b == MatrixB::kTransposed && !panel_fits(p, c, target))) return;
      c.k_unroll = unroll_of(p, c);
      all.emplace_back(cycles, c);
    });
  if (p.b == MatrixB::kTransposed && !guess.dots) all.emplace_back(dot_cycles(p, target), GemmConfig{1, 1, 1, true});
  return best_of(guess, std::move(all), most);
}

GemmConfig default_config(const GemmProblem& p, const Target& target, int only) {
  GemmConfig best;
  if (only > 0) best = {1, only};
  double best_cycles = std::numeric_limits<double>::infinity();
  for_each_config(p, target, [&](const GemmConfig& c, double cycles) {
    if ((only == 0 || c.nr == only) && cycles < best_cycles * 0.999) best = c, best_cycles = cycles;
  });
  if (takes_dots(p, best, target)) return {1, 1, 1, true};
  int64_t v = lanes_of(p, target);
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), 8));
  if (p.m <= 2 && only == 0 && p.b != MatrixB::kTransposed) {
    // Few rows: the panels stream past once, and wide ones are one long stream with enough sums in flight.
    best.mr = static_cast<int>(std::max<int64_t>(1, p.m));
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int nr = max_cols; nr >= std::min(max_cols, 4); --nr) {
      if (!tile_fits(best.mr, nr, target)) continue;
      int64_t vectors = round_up(ceil_div(p.n, v), nr);
      if (vectors < least) least = vectors, best.nr = nr;
    }
  }
  best.k_unroll = unroll_of(p, best);
  return best;
}

Cost estimate(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  Cost cost;
  double element = std::max<int>(8, p.dtype.bits) / 8.0;
  cost.flops = 2.0 * p.batch * p.m * p.n * p.k;
  double b = element * p.n * p.k * (p.b == MatrixB::kPacked ? 1 : p.batch);
  cost.bytes = element * p.batch * (p.m * p.k + p.m * p.n) + b;
  const double cycles = c.dots ? dot_cycles(p, target) : gemm_cycles(p, c, target);
  cost.microseconds = cycles / cycles_per_microsecond(target);
  if (p.b == MatrixB::kPacked) cost.microseconds = std::max(cost.microseconds, b / (target.dram_gbps * 1e3));
  return cost;
}

bool packed_as_dots(const GemmProblem& p, const Target& target) {
  // Few rows are streams of B; a long B is better read once for many rows.
  if (p.b != MatrixB::kPacked || p.m < 16 || p.n > 16 || p.k < lanes_of(p, target)) return false;
  if (2 * p.n * p.k * static_cast<int64_t>(p.dtype.bytes()) > target.l2_bytes) return false;
  return dot_cycles(p, target) < 0.9 * gemm_cycles(p, default_config(p, target), target);
}

std::vector<int64_t> packed_b_shape(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  int64_t width = int64_t{lanes_of(p, target)} * c.nr;
  return {ceil_div(p.n, width), p.k, width};
}

Stmt gemm(const GemmProblem& p, const GemmConfig& c, const View& a, const View& b, const View& out,
          const Epilogue& epilogue, const KernelContext& context) {
  const int v = lanes_of(p, *context.target);
  const int64_t dots = columns_of_dots(p, c, *context.target), columns = p.n - dots;
  const int64_t width = int64_t{v} * c.nr, panels = ceil_div(columns, width), last = columns - (panels - 1) * width;
  const DataType vector = accumulator_dtype(a.dtype()).with_lanes(v);
  if (c.dots) return gemm_dot(p, a, b, out, epilogue, context);
  const int a_rank = a.rank(), out_rank = out.rank();
  const int64_t a_batch = a_rank == 3 && a.shape[0] > 1 ? a.strides[0] : 0, a_row = a.strides[a_rank - 2];
  const bool packed = p.b == MatrixB::kPacked, transposed = p.b == MatrixB::kTransposed;
  const int64_t b_batch = !packed && b.rank() == 3 && b.shape[0] > 1 ? b.strides[0] : 0;
  const int64_t out_batch = out_rank == 3 ? out.strides[0] : 0, out_row = out.strides[out_rank - 2];
  const Buffer scratch = transposed ? make_buffer("panel", b.dtype(), p.k * width, Scope::kStack, 64) : Buffer();
  // How a panel's row of column vectors is found: (buffer, stride of k).
  const Buffer b_buffer = transposed ? scratch : b.buffer;
  const int64_t b_k = packed || transposed ? width : b.strides[b.rank() - 2];
  const int unroll = static_cast<int>(std::min<int64_t>(c.k_unroll, p.k));

  // What comes from beyond the second level is asked for ahead where hardware does not follow it: rows of B lie apart,
  // as do the rows of a tile in A and C. Few rows of A wait for B's own next rows, more rows get on with the next
  // batch's.
  const int64_t element = static_cast<int64_t>(p.dtype.bytes()), l2 = context.target->l2_bytes;
  const bool row_major = p.b == MatrixB::kRowMajor, b_is_far = !packed && p.batch * p.k * p.n * element > l2;
  const bool rows_ahead = row_major && b_is_far && p.m <= 8;
  const bool batch_ahead = row_major && b_is_far && b_batch > 0 && p.m > 8 && p.m <= 64;
  const bool a_ahead = !packed && a_row == p.k && a_batch > 0 && p.m > 2 * c.mr && p.batch * p.m * p.k * element > l2;
  const bool out_ahead = !packed && out_batch > 0 && p.m > 2 * c.mr && p.batch * p.m * p.n * element > l2;

  // A tile's sums at (m0, n0) of C; `valid` columns are real.
  auto drain = [&](const RegisterTile& acc, PrimExpr batch, PrimExpr m0, PrimExpr n0, int64_t valid) {
    const PrimExpr mask = tail_mask(v, valid - int64_t{acc.cols() - 1} * v);
    return bind("out_at", batch * out_batch + m0 * out_row + n0 + out.offset, [&](PrimExpr out_at) {
      return acc.drain([&](int r, int col, PrimExpr value) {
        Index index{m0 + r, n0 + int64_t{col} * v};
        if (out_rank == 3) index.insert(index.begin(), batch);
        PrimExpr lane_mask = col == acc.cols() - 1 ? mask : PrimExpr();
        return store(out.buffer, ramp(out_at + (r * out_row + int64_t{col} * v), 1, v),
                     epilogue(value, index, lane_mask), lane_mask);
      });
    });
  };
  // Four steps of `lanes` rows of B from element `at` on as vectors along the rows, of which `real` exist: the others
  // repeat the last one, which is finite work and never stored.
  auto turned = [&](PrimExpr at, int64_t b_row, int lanes, int64_t real,
                    const std::function<Stmt(const std::vector<PrimExpr>&)>& use) {
    return transpose_quads(
        lanes, [&](int row) { return load(b.buffer, ramp(at + std::min<int64_t>(row, real - 1) * b_row, 1, 4)); }, use);
  };
  // A turned vector's place in the panel.
  auto put = [&](PrimExpr k, PrimExpr column, PrimExpr value) {
    return store(scratch, ramp(k * width + column, 1, value->dtype.lanes), value);
  };

  // rows x cols vectors of C at (m0, n0); b_at: element of B's first vector. `valid` columns are real.
  auto tile = [&](PrimExpr batch, PrimExpr m0, PrimExpr n0, PrimExpr b_at, int rows, int64_t valid) {
    const int cols = static_cast<int>(ceil_div(valid, v));
    const int64_t rest = valid - int64_t{cols - 1} * v;
    RegisterTile acc(rows, cols, vector, ends_in_half(valid, v, *context.target) ? v / 2 : v);
    return bind("a_at", batch * a_batch + m0 * a_row + a.offset, [&](PrimExpr a_at) {
      auto step = [&](PrimExpr a_k, PrimExpr b_k_at, int u) {
        return acc.step([&](int r) { return load(a.buffer, a_k + (r * a_row + u)); },
                        [&](int col) {
                          const int lanes = acc.lanes(col);
                          PrimExpr at = ramp(b_k_at + (u * b_k + int64_t{col} * v), 1, lanes);
                          const bool masked = p.b == MatrixB::kRowMajor && col == cols - 1;
                          return load(b_buffer, at, masked ? tail_mask(lanes, rest) : PrimExpr());
                        });
      };
      const int64_t ahead = p.m <= 2 ? kPrefetchBytesFewRows : kPrefetchBytes;
      const bool prefetches = packed && p.k * width * static_cast<int64_t>(b.dtype().bytes()) >= 8 << 10;
      std::vector<Stmt> body{acc.clear()};
      if (p.k >= unroll && unroll > 0)
        body.push_back(loop("k", p.k / unroll, [&](PrimExpr k) {
          std::vector<Stmt> steps;
          if (a_ahead)
            for (int64_t line = 0; line < ceil_div(rows * unroll * element, 64); ++line)
              steps.push_back(
                  prefetch(a.buffer, a_at + (k + p.k / unroll) * int64_t{rows} * unroll + line * (64 / element)));
          if (out_ahead)
            for (int64_t i = 0; i < ceil_div(rows, p.k / unroll); ++i)
              for (int64_t line = 0; line <= valid * element / 64; ++line)
                steps.push_back(
                    prefetch(out.buffer, batch * out_batch + n0 + out.offset + line * (64 / element) +
                                             (m0 + rows + min(k + i * (p.k / unroll), make_int(rows))) * out_row));
          for (int u = 0; u < unroll; ++u) {
            if (prefetches) prefetch_ahead(&steps, b_buffer, b_at + k * (unroll * b_k), u * width, width, ahead);
            if (rows_ahead)
              prefetch_ahead(&steps, b_buffer, b_at + (k * unroll + u) * b_k, 0, valid, 16 * b_k * element);
            if (batch_ahead) {
              // The tiles under a panel share its lines.
              const int64_t lines = ceil_div(valid * element, 64) + 1, share = ceil_div(lines, ceil_div(p.m, c.mr));
              for (int64_t line = 0; line < share; ++line)
                steps.push_back(prefetch(b_buffer, b_at + (k * unroll + u) * b_k + b_batch +
                                                       (floordiv(m0, make_int(c.mr)) * share + line) * (64 / element)));
            }
            steps.push_back(step(a_at + k * unroll, b_at + k * (unroll * b_k), u));
          }
          return seq(std::move(steps));
        }));
      if (unroll > 0)
        for (int64_t k = p.k / unroll * unroll; k < p.k; ++k) body.push_back(step(a_at + k, b_at + k * b_k, 0));
      body.push_back(drain(acc, batch, m0, n0, valid));
      return acc.scope(seq(std::move(body)));
    });
  };
  // The first rows of C under a vector of columns of B^T, whose steps are turned on their way and kept for the other
  // rows. One vector at a time: with several, their common broadcasts would take the registers.
  auto turning_tile = [&](PrimExpr batch, PrimExpr n0, PrimExpr column, int rows, int64_t valid, bool keep) {
    const int64_t b_row = b.strides[b.rank() - 2];
    RegisterTile acc(rows, 1, vector, ends_in_half(valid, v, *context.target) ? v / 2 : v);
    return bind_all({batch * a_batch + a.offset, batch * b_batch + (n0 + column) * b_row + b.offset}, [&](Index at) {
      auto steps = [&](PrimExpr k0, int first) {
        std::vector<Stmt> ahead;
        // The next vector of columns is the next rows, one after another.
        if (b_is_far && first == 0 && b_row == p.k)
          for (int64_t line = 0; line < v * 4 * element / 64; ++line)
            ahead.push_back(prefetch(b.buffer, at[1] + int64_t{v} * b_row + k0 * int64_t{v} + line * (64 / element)));
        ahead.push_back(turned(at[1] + k0, b_row, acc.lanes(0), valid, [&](const std::vector<PrimExpr>& values) {
          std::vector<Stmt> parts;
          for (int i = first; i < 4; ++i) {
            if (keep) parts.push_back(put(k0 + i, column, values[i]));
            parts.push_back(acc.update(
                0, [&](int r) { return load(a.buffer, at[0] + k0 + (r * a_row + i)); }, values[i]));
          }
          return seq(std::move(parts));
        }));
        return seq(std::move(ahead));
      };
      std::vector<Stmt> body{acc.clear(), loop("k", p.k / 4, [&](PrimExpr k) { return steps(k * 4, 0); })};
      if (p.k % 4) body.push_back(steps(make_int(p.k - 4), static_cast<int>(4 - p.k % 4)));
      body.push_back(drain(acc, batch, make_int(0), n0 + column, valid));
      return acc.scope(seq(std::move(body)));
    });
  };

  const int turning = transposed ? column_of_rows(p, c, c.nr, *context.target).turning : 0;
  const int64_t row_tiles = (p.m - turning) / c.mr, row_tail = (p.m - turning) % c.mr;
  const int64_t chunk = std::max<int64_t>(1, transposed || dots ? row_tiles : std::min<int64_t>(row_tiles, kChunk));
  const int64_t chunks = std::max<int64_t>(1, ceil_div(row_tiles, chunk));
  // The row tiles of one unit under one panel.
  auto column = [&](PrimExpr batch, PrimExpr panel, PrimExpr part, int64_t valid) {
    PrimExpr n0 = panel * width;
    PrimExpr b_origin = packed       ? panel * (p.k * width) + b.offset
                        : transposed ? make_int(0)
                                     : batch * b_batch + n0 + b.offset;
    return bind("b_at", b_origin, [&](PrimExpr b_at) {
      std::vector<Stmt> body;
      if (turning) {
        auto turn = [&](PrimExpr column, int64_t real) {
          return turning_tile(batch, n0, column, turning, real, p.m > turning);
        };
        body.push_back(loop("column", valid / v, [&](PrimExpr column) { return turn(column * int64_t{v}, v); }));
        if (valid % v) body.push_back(turn(make_int(valid / v * v), valid % v));
      } else if (transposed) {
        const int64_t b_row = b.strides[b.rank() - 2];
        auto turn = [&](const PrimExpr& column, int64_t real) {
          const int lanes = ends_in_half(real, v, *context.target) ? v / 2 : v;
          return bind("rows_at", batch * b_batch + (n0 + column) * b_row + b.offset, [&](PrimExpr rows_at) {
            auto steps = [&](PrimExpr k0, int first, int end) {
              return turned(rows_at + k0, b_row, lanes, real, [&](const std::vector<PrimExpr>& values) {
                std::vector<Stmt> parts;
                for (int i = first; i < end; ++i) parts.push_back(put(k0 + i, column, values[i]));
                return seq(std::move(parts));
              });
            };
            std::vector<Stmt> parts{loop("k", p.k / 4, [&](PrimExpr k) { return steps(k * 4, 0, 4); })};
            if (p.k % 4) parts.push_back(steps(make_int(p.k - 4), static_cast<int>(4 - p.k % 4), 4));
            return seq(std::move(parts));
          });
        };
        auto turn_few = [&](int64_t columns) {
          std::vector<Stmt> parts;
          for (int64_t n = 0; n < columns; ++n)
            for (int64_t k = 0; k < p.k; ++k)
              parts.push_back(store(scratch, make_int(k * width + n),
                                    load(b.buffer, batch * b_batch + (n0 + n) * b_row + (b.offset + k))));
          return seq(std::move(parts));
        };
        if (p.k < 4) {
          body.push_back(turn_few(valid));
        } else {
          body.push_back(loop("column", valid / v, [&](PrimExpr column) { return turn(column * int64_t{v}, v); }));
          if (valid % v) body.push_back(turn(make_int(valid / v * v), valid % v));
        }
      }
      if (row_tiles > 0) {
        PrimExpr first = part * chunk;
        PrimExpr end = row_tiles % chunk == 0 ? first + chunk : min(first + chunk, make_int(row_tiles));
        body.push_back(loop("mt", first, end, [&](PrimExpr mt) {
          return bind("m0", mt * c.mr + turning, [&](PrimExpr m0) { return tile(batch, m0, n0, b_at, c.mr, valid); });
        }));
      }
      if (row_tail) {
        Stmt tail = tile(batch, make_int(turning + row_tiles * c.mr), n0, b_at, static_cast<int>(row_tail), valid);
        body.push_back(chunks == 1 ? tail : make_if(eq(part, make_int(chunks - 1)), tail));
      }
      Stmt all = seq(std::move(body));
      return transposed && p.m > turning ? allocate(scratch, all) : all;
    });
  };

  // What the dot products of the last columns read beside A: B's rows, or a turned copy of few columns.
  auto rest = [&](PrimExpr batch) {
    GemmProblem few = p;
    few.n = dots;
    View rows = b, result = out;
    result.offset += columns, result.shape.back() = dots;
    auto shifted = [&](PrimExpr value, Index index, const PrimExpr& mask) {
      index.back() = index.back() + columns;
      return epilogue(std::move(value), index, mask);
    };
    if (transposed) {
      rows.offset += columns * b.strides[b.rank() - 2], rows.shape[b.rank() - 2] = dots;
      return dots_of_batch(few, a, rows, result, shifted, *context.target, batch);
    }
    const Buffer copy = make_buffer("few", b.dtype(), dots * p.k, Scope::kStack, 64);
    Stmt turn = loop("k", p.k, [&](PrimExpr k) {
      std::vector<Stmt> body;
      for (int64_t n = 0; n < dots; ++n)
        body.push_back(store(copy, k + n * p.k, load(b.buffer, batch * b_batch + k * b_k + (b.offset + columns + n))));
      return seq(std::move(body));
    });
    return allocate(
        copy,
        seq({turn, dots_of_batch(few, a, make_view(copy, {dots, p.k}), result, shifted, *context.target, batch)}));
  };

  const std::vector<int64_t> units{p.batch, panels, chunks};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    Index at = unravel(unit, units);
    return bind("batch", at[0], [&](PrimExpr batch) {
      return bind("panel_number", at[1], [&](PrimExpr panel) {
        return bind("part", at[2], [&](PrimExpr part) {
          if (panels == 1) return seq({column(batch, panel, part, last), dots ? rest(batch) : seq({})});
          if (last == width && !dots) return column(batch, panel, part, width);
          return make_if(eq(panel, make_int(panels - 1)),
                         seq({column(batch, panel, part, last), dots ? rest(batch) : seq({})}),
                         column(batch, panel, part, width));
        });
      });
    });
  });
}

}  // namespace tilewright::topi
