// SPDX-License-Identifier: Apache-2.0
#include "topi/gemm.h"

#include <algorithm>
#include <limits>

#include "base/format.h"
#include "topi/register_tile.h"
#include "topi/transpose.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Scratch of one transposed panel; beyond it the dot-product form is used.
constexpr int64_t kMaxScratchBytes = 64 << 10;

int lanes_of(const GemmProblem& p, const Target& target) {
  return target.lanes(std::max<int>(32, accumulator_dtype(p.dtype).bits));
}

// Rows whose stride is a multiple of 4 KiB share one 8-way set of the L1 cache.
bool rows_alias(const GemmProblem& p) { return p.m > 1 && p.row_stride * p.dtype.bits / 8 % 4096 == 0; }

// Whether `valid` columns leave the last vector at most half full: it is computed in half vectors then. 512-bit
// operations cost twice what 256-bit ones do where the units are 256 bits wide, and no less elsewhere.
bool ends_in_half(int64_t valid, int64_t v, const Target& target) {
  return target.vector_bits >= 512 && valid % v != 0 && valid % v * 2 <= v;
}

double gemm_cycles(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  int64_t v = lanes_of(p, target), width = v * c.nr;
  double panel = static_cast<double>(p.k) * width * 4;
  auto column = [&](double cols) {
    double cycles = (p.m / c.mr) * tile_cycles(c.mr, cols, static_cast<double>(p.k), panel, target);
    if (p.m % c.mr) cycles += tile_cycles(static_cast<int>(p.m % c.mr), cols, static_cast<double>(p.k), panel, target);
    return cycles;
  };
  double cycles = (p.n / width) * column(c.nr);
  if (int64_t rest = p.n % width)
    cycles += column(static_cast<double>(ceil_div(rest, v)) - (ends_in_half(rest, v, target) ? 0.5 : 0));
  return cycles * static_cast<double>(p.batch);
}

// What turning B's panels costs before they are multiplied.
double transposing_cycles(const GemmProblem& p) { return 0.3 * static_cast<double>(p.batch * p.n * p.k); }

// Few rows do not pay for turning B, and a long reduction's panel does not fit the stack.
bool takes_dots(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  const int64_t width = int64_t{lanes_of(p, target)} * c.nr;
  return p.k * width * static_cast<int64_t>(p.dtype.bytes()) > kMaxScratchBytes ||
         dot_cycles(p, target) < gemm_cycles(p, c, target) + transposing_cycles(p);
}

}  // namespace

namespace {
// Every tile that stays in registers, with its predicted cycles.
template <class F>
void for_each_config(const GemmProblem& p, const Target& target, F visit) {
  int64_t v = lanes_of(p, target);
  int max_rows = static_cast<int>(std::min<int64_t>(p.m, rows_alias(p) ? 8 : 16));
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), 8));
  for (int nr = 1; nr <= max_cols; ++nr)
    for (int mr = 1; mr <= max_rows && tile_fits(mr, nr, target); ++mr) {
      visit(GemmConfig{mr, nr, 4}, gemm_cycles(p, {mr, nr, 4}, target));
    }
}
}  // namespace

std::string to_text(const GemmConfig& c) { return format("{} rows x {} vectors", c.mr, c.nr); }

std::vector<RankedConfig> ranked_configs(const GemmProblem& p, const Target& target) {
  std::vector<RankedConfig> out;
  for_each_config(p, target, [&](const GemmConfig& c, double) {
    out.push_back({to_text(c), estimate(p, c, target).microseconds});
  });
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.microseconds < b.microseconds; });
  return out;
}

GemmConfig default_config(const GemmProblem& p, const Target& target, int only) {
  GemmConfig best;
  if (only > 0) best = {1, only};
  double best_cycles = std::numeric_limits<double>::infinity();
  for_each_config(p, target, [&](const GemmConfig& c, double cycles) {
    if ((only == 0 || c.nr == only) && cycles < best_cycles * 0.999) best = c, best_cycles = cycles;
  });
  int64_t v = lanes_of(p, target);
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), 8));
  if (p.m <= 2 && only == 0) {
    // Few rows: the panels stream past once, and wide ones are one long stream with enough sums in flight.
    best.mr = static_cast<int>(std::max<int64_t>(1, p.m));
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int nr = max_cols; nr >= std::min(max_cols, 4); --nr) {
      if (!tile_fits(best.mr, nr, target)) continue;
      int64_t vectors = round_up(ceil_div(p.n, v), nr);
      if (vectors < least) least = vectors, best.nr = nr;
    }
  }
  best.k_unroll = static_cast<int>(std::min<int64_t>(best.mr * best.nr >= 8 ? 4 : 8, std::max<int64_t>(1, p.k)));
  return best;
}

Cost estimate(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  Cost cost;
  double element = std::max<int>(8, p.dtype.bits) / 8.0;
  cost.flops = 2.0 * p.batch * p.m * p.n * p.k;
  double b = element * p.n * p.k * (p.b == MatrixB::kPacked ? 1 : p.batch);
  cost.bytes = element * p.batch * (p.m * p.k + p.m * p.n) + b;
  double cycles = gemm_cycles(p, c, target);
  if (p.b == MatrixB::kTransposed)
    cycles = takes_dots(p, c, target) ? dot_cycles(p, target) : cycles + transposing_cycles(p);
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
  const int64_t width = int64_t{v} * c.nr, panels = ceil_div(p.n, width), last = p.n - (panels - 1) * width;
  const DataType vector = accumulator_dtype(a.dtype()).with_lanes(v);
  if (p.b == MatrixB::kTransposed && takes_dots(p, c, *context.target))
    return gemm_dot(p, a, b, out, epilogue, context);
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

  // rows x cols vectors of C at (m0, n0); b_at: element of B's first vector. `valid` columns are real.
  auto tile = [&](PrimExpr batch, PrimExpr m0, PrimExpr n0, PrimExpr b_at, int rows, int64_t valid) {
    const int cols = static_cast<int>(ceil_div(valid, v));
    const int64_t rest = valid - int64_t{cols - 1} * v;
    const PrimExpr mask = tail_mask(v, rest);
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
      // Rows of an activation that comes from beyond the caches lie apart: hardware does not follow them. Few rows of A
      // wait.
      const bool rows_ahead = p.b == MatrixB::kRowMajor && p.m <= 8 &&
                              p.batch * p.k * p.n * static_cast<int64_t>(b.dtype().bytes()) > context.target->l2_bytes;
      const bool prefetches = packed && p.k * width * static_cast<int64_t>(b.dtype().bytes()) >= 8 << 10;
      std::vector<Stmt> body{acc.clear()};
      if (p.k >= unroll && unroll > 0)
        body.push_back(loop("k", p.k / unroll, [&](PrimExpr k) {
          std::vector<Stmt> steps;
          for (int u = 0; u < unroll; ++u) {
            if (prefetches) prefetch_ahead(&steps, b_buffer, b_at + k * (unroll * b_k), u * width, width, ahead);
            if (rows_ahead)
              prefetch_ahead(&steps, b_buffer, b_at + (k * unroll + u) * b_k, 0, valid,
                             16 * b_k * static_cast<int64_t>(b.dtype().bytes()));
            steps.push_back(step(a_at + k * unroll, b_at + k * (unroll * b_k), u));
          }
          return seq(std::move(steps));
        }));
      if (unroll > 0)
        for (int64_t k = p.k / unroll * unroll; k < p.k; ++k) body.push_back(step(a_at + k, b_at + k * b_k, 0));
      PrimExpr out_origin = batch * out_batch + m0 * out_row + n0 + out.offset;
      body.push_back(bind("out_at", out_origin, [&](PrimExpr out_at) {
        return acc.drain([&](int r, int col, PrimExpr value) {
          Index index{m0 + r, n0 + int64_t{col} * v};
          if (out_rank == 3) index.insert(index.begin(), batch);
          PrimExpr lane_mask = col == cols - 1 ? mask : PrimExpr();
          return store(out.buffer, ramp(out_at + (r * out_row + int64_t{col} * v), 1, v),
                       epilogue(value, index, lane_mask), lane_mask);
        });
      }));
      return acc.scope(seq(std::move(body)));
    });
  };

  const int64_t row_tiles = p.m / c.mr, row_tail = p.m % c.mr;
  const int64_t chunk =
      transposed ? std::max<int64_t>(1, row_tiles) : std::max<int64_t>(1, std::min<int64_t>(row_tiles, 8));
  const int64_t chunks = std::max<int64_t>(1, ceil_div(row_tiles, chunk));
  // The row tiles of one unit under one panel.
  auto column = [&](PrimExpr batch, PrimExpr panel, PrimExpr part, int64_t valid) {
    PrimExpr n0 = panel * width;
    PrimExpr b_origin = packed       ? panel * (p.k * width) + b.offset
                        : transposed ? make_int(0)
                                     : batch * b_batch + n0 + b.offset;
    return bind("b_at", b_origin, [&](PrimExpr b_at) {
      std::vector<Stmt> body;
      if (transposed) {
        // v rows of B at a time, through registers. Padding columns repeat the last real one: finite work, never
        // stored.
        const int64_t b_row = b.strides[b.rank() - 2], k_tail = p.k % v;
        body.push_back(loop("column", ceil_div(valid, v), [&](PrimExpr column) {
          auto turn = [&](PrimExpr k, int64_t real_k) {
            PrimExpr mask = tail_mask(v, real_k);
            return transpose_tile(
                b.dtype().element(), v,
                [&](int r) {
                  PrimExpr n = column * int64_t{v} + r;
                  if (valid % v != 0) n = min(n, make_int(valid - 1));
                  return load(b.buffer, ramp(batch * b_batch + (n0 + n) * b_row + k + b.offset, 1, v), mask);
                },
                [&](int i, PrimExpr value) {
                  if (i >= real_k) return seq({});
                  return store(scratch, ramp((k + i) * width + column * int64_t{v}, 1, v), value);
                });
          };
          std::vector<Stmt> parts;
          if (p.k >= v) parts.push_back(loop("k", p.k / v, [&](PrimExpr k) { return turn(k * int64_t{v}, v); }));
          if (k_tail) parts.push_back(turn(make_int(p.k - k_tail), k_tail));
          return seq(std::move(parts));
        }));
      }
      if (row_tiles > 0) {
        PrimExpr first = part * chunk;
        PrimExpr end = row_tiles % chunk == 0 ? first + chunk : min(first + chunk, make_int(row_tiles));
        body.push_back(loop("mt", first, end, [&](PrimExpr mt) {
          return bind("m0", mt * c.mr, [&](PrimExpr m0) { return tile(batch, m0, n0, b_at, c.mr, valid); });
        }));
      }
      if (row_tail) {
        Stmt tail = tile(batch, make_int(row_tiles * c.mr), n0, b_at, static_cast<int>(row_tail), valid);
        body.push_back(chunks == 1 ? tail : make_if(eq(part, make_int(chunks - 1)), tail));
      }
      Stmt all = seq(std::move(body));
      return transposed ? allocate(scratch, all) : all;
    });
  };

  const std::vector<int64_t> units{p.batch, panels, chunks};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    Index at = unravel(unit, units);
    return bind("batch", at[0], [&](PrimExpr batch) {
      return bind("panel_number", at[1], [&](PrimExpr panel) {
        return bind("part", at[2], [&](PrimExpr part) {
          if (last == width) return column(batch, panel, part, width);
          if (panels == 1) return column(batch, panel, part, last);
          return make_if(eq(panel, make_int(panels - 1)), column(batch, panel, part, last),
                         column(batch, panel, part, width));
        });
      });
    });
  });
}

}  // namespace tilewright::topi
