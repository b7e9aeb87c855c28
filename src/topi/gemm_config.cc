// SPDX-License-Identifier: Apache-2.0
// Tile sizes and cost model of matrix products.
#include "topi/gemm_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topi/register_tile.h"
#include "topi/words.h"

namespace tilewright::topi {

namespace {

// Limit on the scratch of one transposed panel; beyond it, dot products are used.
constexpr int64_t kMaxScratchBytes = 64 << 10;
// The same of one copied panel; beyond it, rows are read where they are.
constexpr int64_t kMaxCopyBytes = 128 << 10;

// Rows whose stride is a multiple of 4 KiB map to one 8-way set of the L1 cache.
bool rows_alias(const GemmProblem& p) { return p.m > 1 && p.row_stride * p.dtype.bits / 8 % 4096 == 0; }

// The most rows a tile may have that transposes a panel
// on the way: the panel's next steps need registers, too.
constexpr int kTurningRows = 22;

// Tiles with one vector of columns that read B's rows in place and
// transpose four steps at a time: shuffles run in parallel to
// multiply-adds; loads of 128 bits and broadcasts share the load ports.
double turning_tile_cycles(int rows, double cols, double k, const Target& target) {
  const double per_cycle = target.machine.fmas_per_cycle(target.vector_bits);
  const double step = std::max({rows / per_cycle, target.vector_bits / 256.0 + rows / 2.0, 4.2});
  return cols * (k * (step + 0.3) + 30 + 2.0 * rows / per_cycle);
}

struct Rows {
  int turning = 0;  // rows of the first tile, which transposes the panel; 0: it is
                    // transposed before
  double cycles = 0;
};
// Cycles for the rows under a panel of `cols` column vectors.
Rows column_of_rows(const GemmProblem& p, const GemmConfig& c, double cols, const Target& target) {
  const double k = static_cast<double>(p.k), panel = k * lanes_of(p, target) * panel_vectors(p, c) * 4;
  auto tiles = [&](int64_t m) {
    const int64_t whole = m / c.mr;
    double cycles = static_cast<double>(whole) *
                    tile_cycles(c.mr, cols, k, panel, target, p.words() ? word_products(target, p.dtype) : 0);
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
  const int64_t v = lanes_of(p, target), width = v * panel_vectors(p, c), tile = v * c.nr;
  auto column = [&](double cols) { return column_of_rows(p, c, cols, target).cycles; };
  auto panel = [&](int64_t columns) {
    const int64_t whole = columns / tile;
    double cycles = static_cast<double>(whole) * column(c.nr);
    if (const int64_t rest = columns % tile)
      cycles += column(static_cast<double>(ceil_div(rest, v)) - (ends_in_half(rest, v, target) ? 0.5 : 0));
    return cycles;
  };
  const int64_t panels = p.n / width;
  const double cycles = static_cast<double>(panels) * panel(width) + panel(p.n % width);
  return cycles * static_cast<double>(p.batch);
}

double dots_beside_panels(const GemmProblem& rest, const Target& target) {
  const double turning = rest.b == MatrixB::kRowMajor ? 1.5 * static_cast<double>(rest.batch * rest.n * rest.k) : 0;
  return 1.1 * dot_cycles(rest, target) + turning;
}

}  // namespace

int64_t columns_of_dots(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  const int64_t half = lanes_of(p, target) / (target.vector_bits >= 512 ? 2 : 1), columns = p.n % half;
  if (p.b == MatrixB::kPacked || columns == 0 || p.n < half || p.k < lanes_of(p, target)) return 0;
  if (columns * p.k * static_cast<int64_t>(p.dtype.bytes()) > kMaxScratchBytes / 4) return 0;
  // The remaining columns belong to the last panel, which a single thread would compute.
  if (p.b == MatrixB::kRowMajor && p.batch < 8 && p.m / c.mr > kGemmChunk) return 0;
  GemmProblem whole = p, rest = p;
  whole.n -= columns, rest.n = columns;
  return panels_cycles(whole, c, target) + dots_beside_panels(rest, target) < panels_cycles(p, c, target) ? columns : 0;
}

namespace {

double gemm_cycles(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  GemmProblem whole = p, rest = p;
  rest.n = columns_of_dots(p, c, target), whole.n -= rest.n;
  return panels_cycles(whole, c, target) + (rest.n ? dots_beside_panels(rest, target) : 0);
}

// Whether a transposed panel fits: on the stack, or
// none is needed because one row tile covers all rows.
bool panel_fits(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  if (p.k * lanes_of(p, target) * c.nr * static_cast<int64_t>(p.dtype.bytes()) <= kMaxScratchBytes) return true;
  return column_of_rows(p, c, c.nr, target).turning == p.m;
}

// Few rows do not pay for transposing B, and a
// long reduction's panel does not fit the stack.
bool takes_dots(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  return p.b == MatrixB::kTransposed &&
         (!panel_fits(p, c, target) || dot_cycles(p, target) < gemm_cycles(p, c, target));
}

}  // namespace

bool ends_in_half(int64_t valid, int64_t v, const Target& target) {
  return target.vector_bits >= 512 && valid % v != 0 && valid % v * 2 <= v;
}

bool copies_panels(const GemmProblem& p, const GemmConfig& c, int64_t row_stride, const Target& target) {
  constexpr int64_t kLine = 64, kWays = 8, kLeastTiles = 8;  // a copy pays where many tiles read it
  const auto element = static_cast<int64_t>(p.dtype.bytes());
  const int64_t width = lanes_of(p, target) * c.nr * element;
  if (p.b != MatrixB::kRowMajor || p.m < kLeastTiles * c.mr || p.k * width > kMaxCopyBytes) return false;
  const int64_t sets = target.machine.l1_bytes / (kLine * kWays), stride = row_stride * element;
  // Rows come back to a set after so many, each with the lines of its part of the panel.
  const int64_t apart = stride % kLine == 0 ? sets / std::gcd(stride / kLine, sets) : sets;
  const int64_t lines = ceil_div(width, kLine);
  return p.k * lines > std::min(apart * lines, sets) * kWays;
}

int turning_rows(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  return p.b == MatrixB::kTransposed ? column_of_rows(p, c, c.nr, target).turning : 0;
}

int panel_vectors(const GemmProblem& p, const GemmConfig& c) {
  return p.b == MatrixB::kPacked && p.panel > 0 ? p.panel : c.nr;
}

int lanes_of(const GemmProblem& p, const Target& target) {
  return target.lanes(std::max<int>(32, accumulator_dtype(p.dtype).bits));
}

namespace {
// Visits every tile that fits the registers, with its predicted cycles.
template <class F>
void for_each_config(const GemmProblem& p, const Target& of, F visit) {
  const Target target = p.words() ? for_words(of, p.dtype) : of;
  int64_t v = lanes_of(p, target);
  int max_rows = static_cast<int>(std::min<int64_t>(p.m, rows_alias(p) ? 8 : 16));
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), p.panel > 0 ? p.panel : 8));
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
  if (p.b != MatrixB::kTransposed) return !c.dots && (p.panel == 0 || c.nr <= p.panel);
  return c.dots || panel_fits(p, c, target);
}

std::vector<GemmConfig> configs(const GemmProblem& p, const Target& target, size_t most) {
  const GemmConfig guess = default_config(p, target);
  std::vector<Weighed<GemmConfig>> all;
  if (most > 1)
    for_each_config(p, target, [&](GemmConfig c, double cycles) {
      if (p.b == MatrixB::kTransposed && !panel_fits(p, c, target)) return;
      c.k_unroll = unroll_of(p, c);
      all.emplace_back(cycles, c);
    });
  if (p.b == MatrixB::kTransposed && !guess.dots) all.emplace_back(dot_cycles(p, target), GemmConfig{1, 1, 1, true});
  return best_of(guess, std::move(all), most);
}

GemmConfig default_config(const GemmProblem& p, const Target& target) {
  GemmConfig best{1, 1};
  double best_cycles = std::numeric_limits<double>::infinity();
  for_each_config(p, target, [&](const GemmConfig& c, double cycles) {
    if (cycles < best_cycles * 0.999) best = c, best_cycles = cycles;
  });
  if (takes_dots(p, best, target)) return {1, 1, 1, true};
  int64_t v = lanes_of(p, target);
  int max_cols = static_cast<int>(std::min<int64_t>(ceil_div(p.n, v), 8));
  const int64_t rows = std::max<int64_t>(1, p.m);
  if (rows <= 2 && p.panel > 0) {
    if (tile_fits(static_cast<int>(rows), p.panel, target)) best.mr = static_cast<int>(rows), best.nr = p.panel;
  } else if (rows <= 2 && p.b != MatrixB::kTransposed) {
    // Few rows: panels are read once; wide ones give
    // one long stream and enough independent sums.
    best.mr = static_cast<int>(rows);
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
  double element = p.words() ? 4 : std::max<int>(8, p.dtype.bits) / 8.0;
  cost.flops = 2.0 * p.batch * p.m * p.n * (p.words() ? p.in_words : p.k);
  double b = element * p.n * p.k * (p.b == MatrixB::kPacked ? 1 : p.batch);
  cost.bytes = element * p.batch * (p.m * p.k + p.m * p.n) + b;
  const double cycles =
      c.dots ? dot_cycles(p, target) : gemm_cycles(p, c, p.words() ? for_words(target, p.dtype) : target);
  cost.microseconds = cycles / target.machine.cycles_per_microsecond();
  if (p.b == MatrixB::kPacked) cost.microseconds = std::max(cost.microseconds, b / (target.machine.dram_gbps * 1e3));
  return cost;
}

bool packed_as_dots(const GemmProblem& p, const Target& target, bool looked_up) {
  if (p.words() || p.b != MatrixB::kPacked) return false;
  // One row waits for B's bytes, of panels a tenth less long than of rows; but rows along K are what a large table has
  // that is also looked up: it is stored once.
  constexpr int64_t kFromMemory = 16 << 20;
  if (looked_up && p.m == 1 && p.dtype == kFloat32 && p.k % lanes_of(p, target) == 0 && 4 * p.n * p.k >= kFromMemory)
    return true;
  // With few rows the product only streams B; a long B is better read once for many rows.
  if (p.m < 16 || p.n > 16 || p.k < lanes_of(p, target)) return false;
  if (2 * p.n * p.k * static_cast<int64_t>(p.dtype.bytes()) > target.machine.l2_bytes) return false;
  return dot_cycles(p, target) < 0.9 * gemm_cycles(p, default_config(p, target), target);
}

std::vector<int64_t> packed_b_shape(const GemmProblem& p, const GemmConfig& c, const Target& target) {
  int64_t width = int64_t{lanes_of(p, target)} * panel_vectors(p, c);
  return {ceil_div(p.n, width), p.k, width};
}

}  // namespace tilewright::topi
