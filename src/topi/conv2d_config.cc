// SPDX-License-Identifier: Apache-2.0
// Tile sizes and cost model of direct convolutions.
#include <algorithm>
#include <limits>

#include "topi/conv2d_loops.h"
#include "topi/register_tile.h"
#include "topi/words.h"

namespace tilewright::topi {

ConvAxis rows_of(const Conv2dProblem& p) {
  return {p.in_height, p.out_height, p.kernel_height, p.stride_height, p.dilation_height, p.pad_top};
}
ConvAxis planes_of(const Conv2dProblem& p) {
  return {p.in_depth, p.out_depth, p.kernel_depth, p.stride_depth, p.dilation_depth, p.pad_front};
}
ConvAxis columns_of(const Conv2dProblem& p) {
  return {p.in_width, p.out_width, p.kernel_width, p.stride_width, p.dilation_width, p.pad_left};
}

bool skips_padding(const Conv2dProblem& p, const Conv2dConfig& c) {
  // Words in the padding hold the zero point, for which the sums are corrected, so padding cannot be skipped.
  if (p.words() || p.plain_data || c.tap_unroll > 0 || p.kernel_height * p.kernel_width == 1) return false;
  const ConvAxis rows = rows_of(p), columns = columns_of(p);
  return rows.mean_taps(rows.out, 1) * columns.mean_taps(columns.out, 1) <
         0.95 * static_cast<double>(p.kernel_height * p.kernel_width);
}

Conv2dLoops conv2d_loops(const Conv2dProblem& p, const Conv2dConfig& c) {
  Conv2dLoops l{};
  l.oc_blocks = ceil_div(p.out_channels / p.groups, p.lanes);
  l.ic_block = p.plain_data ? p.in_channels / p.groups : p.lanes;
  l.ic_blocks = ceil_div(p.in_channels / p.groups, l.ic_block);
  l.last_ic = p.in_channels / p.groups - (l.ic_blocks - 1) * l.ic_block;
  l.columns = p.kernel_width;
  if (p.words() && p.plain_data) l.columns = ceil_div(p.kernel_width, p.word);
  if (p.words() && !p.plain_data) l.ic_block /= p.word, l.last_ic = ceil_div(l.last_ic, p.word);
  l.oc_tiles = ceil_div(l.oc_blocks, c.oc_blocks);
  l.height = c.flatten ? 1 : p.out_height;
  l.width = c.flatten ? p.out_height * p.out_width : p.out_width;
  l.row_tiles = l.height / c.tile_height;
  l.width_tiles = l.width / c.tile_width;
  l.width_tail = l.width % c.tile_width;
  // Splits long rows evenly, so that threads get equal shares.
  l.chunk = ceil_div(l.width_tiles, std::max<int64_t>(1, ceil_div(l.width_tiles, c.chunk)));
  l.chunk = std::max<int64_t>(1, l.chunk);
  l.chunks = std::max<int64_t>(1, ceil_div(l.width_tiles, l.chunk));
  l.band = std::max<int64_t>(1, ceil_div(l.row_tiles * l.chunks, c.bands));
  l.bands = std::max<int64_t>(1, ceil_div(l.row_tiles * l.chunks, l.band));
  l.last_cols = static_cast<int>(l.oc_blocks - (l.oc_tiles - 1) * c.oc_blocks);
  // Half vectors for a last block that is at most half full: 512-bit operations cost twice as much as 256-bit ones on
  // 256-bit units, and no less elsewhere.
  l.half = p.lanes == 16 && p.groups == 1 && p.out_channels % 16 != 0 && p.out_channels % 16 <= 8;
  l.panel = l.ic_blocks * p.kernel_depth * p.kernel_height * l.columns * l.ic_block * p.lanes;
  return l;
}

namespace {

// Bytes of the input planes that one output plane
// reads; a window lower than its stride skips rows.
double input_bytes(const Conv2dProblem& p) {
  const double rows = std::min(1.0, static_cast<double>(p.kernel_height) / static_cast<double>(p.stride_height));
  const int64_t planes = std::min(p.kernel_depth, p.in_depth);
  return (p.words() ? 4.0 / p.word : 4.0) * rows *
         static_cast<double>(planes * p.in_channels * p.in_height * p.in_width);
}

}  // namespace

bool prefetches_pixels(const Conv2dProblem& p, const Target& target) {
  const double planes = static_cast<double>(p.batch * (p.kernel_depth == 1 ? p.out_depth : 1));
  return !p.plain_data && planes * input_bytes(p) > static_cast<double>(target.machine.l2_bytes);
}

namespace {

// Reduction steps per tap.
int64_t steps_of_tap(const Conv2dProblem& p) {
  const Conv2dLoops l = conv2d_loops(p, Conv2dConfig{});
  return (l.ic_blocks - 1) * l.ic_block + l.last_ic;
}

constexpr double kStreamLoss = 0.03;

double conv_cycles(const Conv2dProblem& p, const Conv2dConfig& c, const Target& target) {
  Conv2dLoops l = conv2d_loops(p, c);
  Target machine = p.words() ? for_words(target, p.word_of) : target;
  const int words = p.words() ? word_products(target, p.word_of) : 0;
  if (p.split > 1) machine.vector_bits /= p.split;
  const ConvAxis depth = planes_of(p);
  double steps = static_cast<double>(steps_of_tap(p)) * depth.mean_taps(depth.out, 1);
  double columns = static_cast<double>(l.columns), tail_columns = columns;
  if (skips_padding(p, c)) {
    const ConvAxis across = columns_of(p);
    steps *= rows_of(p).mean_taps(l.row_tiles, c.tile_height);
    columns = across.mean_taps(l.width_tiles, c.tile_width);
    tail_columns = static_cast<double>(across.taps(l.width_tiles * c.tile_width, l.width_tail));
  } else {
    steps *= static_cast<double>(p.kernel_height);
  }
  auto row = [&](double cols) {
    double panel = static_cast<double>(l.panel) * 4 * cols;
    double cycles =
        l.width_tiles * tile_cycles(c.tile_height * c.tile_width, cols, steps * columns, panel, machine, words);
    if (l.width_tail)
      cycles += tile_cycles(c.tile_height * static_cast<int>(l.width_tail), cols, steps * tail_columns, panel, machine,
                            words);
    return cycles;
  };
  double cycles = ((l.oc_tiles - 1) * row(c.oc_blocks) + row(l.last_cols - (l.half ? 0.5 : 0))) *
                  static_cast<double>(l.row_tiles * p.groups);
  // Every tile of output blocks reads its band's input
  // again; the part that does not fit the L2 cache comes
  // in bursts, which arithmetic hides only partly.
  const double input = input_bytes(p), band = input / static_cast<double>(l.bands), burst = target.machine.l2_rate / 5;
  if (input > static_cast<double>(target.machine.l2_bytes))
    cycles += static_cast<double>(band <= 0.5 * static_cast<double>(target.machine.l2_bytes) ? 1 : l.oc_tiles) * input /
              burst;
  // Every band but the first reads the weights again from the
  // L3 cache, and the rows that windows of two bands share.
  const double again = static_cast<double>(l.bands - 1), weights = 4.0 * static_cast<double>(l.panel * l.oc_blocks);
  const double shared =
      static_cast<double>(std::max<int64_t>(0, (p.kernel_height - 1) * p.dilation_height + 1 - p.stride_height));
  cycles += again * (0.5 * weights / 16 + shared * input / static_cast<double>(p.in_height) / burst);
  // Rows of a tile that share no input are as many more streams from beyond the L2 cache.
  if (p.kernel_height == 1 && prefetches_pixels(p, target)) cycles *= 1 + kStreamLoss * (c.tile_height - 1);
  return cycles * static_cast<double>(p.batch * p.out_depth);
}

// How much longer than an even share the slowest of `threads` takes.
double imbalance(const Conv2dProblem& p, const Conv2dConfig& c, int threads) {
  const Conv2dLoops l = conv2d_loops(p, c);
  const int64_t per_tile = l.bands * l.band, units = p.batch * p.out_depth * p.groups * l.oc_tiles * per_tile;
  std::vector<int64_t> work(static_cast<size_t>(threads), 0);
  int64_t all = 0;
  for (int t = 0; t < threads; ++t) {
    for (int64_t unit = t * units / threads; unit < (t + 1) * units / threads; ++unit) {
      const int64_t inner = unit % (l.band * l.oc_tiles),
                    place = unit / (l.band * l.oc_tiles) % l.bands * l.band + inner % l.band;
      if (place >= l.row_tiles * l.chunks) continue;
      const int64_t chunk = place % l.chunks, first = chunk * l.chunk;
      int64_t pixels = (std::min(l.width_tiles, first + l.chunk) - first) * c.tile_width;
      if (chunk == l.chunks - 1) pixels += l.width_tail;
      work[static_cast<size_t>(t)] += pixels * (inner / l.band == l.oc_tiles - 1 ? l.last_cols : c.oc_blocks);
    }
    all += work[static_cast<size_t>(t)];
  }
  const int64_t most = *std::max_element(work.begin(), work.end());
  return all == 0 ? 1 : static_cast<double>(most * threads) / static_cast<double>(all);
}

// The longest units that still give a few threads
// even shares: the overhead per unit must not matter.
void set_chunk(const Conv2dProblem& p, Conv2dConfig* c) {
  const Conv2dConfig longest = *c;
  const int64_t steps = steps_of_tap(p) * p.kernel_depth * p.kernel_height * p.kernel_width;
  const int64_t tile = steps * c->tile_height * c->tile_width * c->oc_blocks;
  double best = 1e9;
  for (int chunk = longest.chunk; chunk >= 1; --chunk) {
    if (chunk < longest.chunk && chunk * tile < 2000) break;
    Conv2dConfig shorter = longest;
    shorter.chunk = chunk;
    const Conv2dLoops l = conv2d_loops(p, shorter);
    if (p.batch * p.out_depth * p.groups * l.oc_tiles * l.bands * l.band > 256) {
      if (best > 1.01) *c = shorter;
      return;
    }
    const double uneven = 0.7 * imbalance(p, shorter, 2) + 0.3 * imbalance(p, shorter, 4);
    if (uneven < best - 0.01) best = uneven, *c = shorter;
  }
}

// Makes the loop body long enough to hide loop overhead: 4 channels of 16, all of a narrower block, whole tap rows of
// the narrowest, up to `most` steps.
void set_unroll(const Conv2dProblem& p, int64_t most, Conv2dConfig* c) {
  if (p.plain_data) {
    c->ic_unroll = static_cast<int>(p.in_channels / p.groups);
    return;
  }
  const Conv2dLoops l = conv2d_loops(p, *c);
  const int64_t block = p.words() ? l.ic_block : p.lanes;
  c->ic_unroll = static_cast<int>(std::min<int64_t>(p.lanes >= 16 ? 4 : block, steps_of_tap(p)));
  const int64_t step = int64_t{c->ic_unroll} * c->tile_height * c->tile_width * c->oc_blocks;
  if (block < 8 && c->ic_unroll == block) {  // with 8 channels the body is long enough; three
                                             // taps of them would make it too long
    if (step * p.kernel_width <= most) c->tap_unroll = 1;
    if (step * p.kernel_width * p.kernel_height <= most) c->tap_unroll = 2;
  }
}

}  // namespace

namespace {
// Visits every tile that fits the registers, with its predicted cycles.
template <class F>
void for_each_config(const Conv2dProblem& p, const Target& target, bool may_flatten, F visit) {
  int64_t oc_blocks = ceil_div(p.out_channels / p.groups, p.lanes);
  const Target machine = p.words() ? for_words(target, p.word_of) : target;
  const int64_t most_steps = target.is_portable_c() ? 96 : 512;
  for (int flat = 0; flat <= (may_flatten ? 1 : 0); ++flat) {
    int64_t height = flat ? 1 : p.out_height, width = flat ? p.out_height * p.out_width : p.out_width;
    for (int nr = 1; nr <= std::min<int64_t>(oc_blocks, 6); ++nr)
      for (int th = 1; th <= std::min<int64_t>(height, 14); ++th) {
        if (height % th != 0) continue;
        for (int tw = 1; tw <= width && tile_fits(th * tw, nr, machine); ++tw) {
          Conv2dConfig c{th, tw, nr};
          c.flatten = flat != 0;
          set_unroll(p, most_steps, &c);
          visit(c, conv_cycles(p, c, target));
          // Bands whose input stays in the L2
          // cache beside a panel of weights.
          const double input = input_bytes(p), l2 = static_cast<double>(target.machine.l2_bytes);
          const Conv2dLoops l = conv2d_loops(p, c);
          if (input <= l2 || l.oc_tiles == 1) continue;
          const int64_t places = l.row_tiles * l.chunks;
          const auto most = static_cast<int64_t>(0.4 * l2 / input * static_cast<double>(places));
          if (most < 1) continue;
          int64_t band = most;  // among band sizes in the upper half, the one
                                // with the fullest last band
          for (int64_t shorter = most; 2 * shorter > most; --shorter)
            if (round_up(places, shorter) < round_up(places, band)) band = shorter;
          c.bands = static_cast<int>(ceil_div(places, band));
          visit(c, conv_cycles(p, c, target));
        }
      }
  }
}
}  // namespace

std::vector<Conv2dConfig> configs(const Conv2dProblem& p, const Target& target, bool may_flatten, size_t most) {
  Conv2dConfig best;
  double best_cycles = std::numeric_limits<double>::infinity();
  std::vector<Weighed<Conv2dConfig>> all;
  for_each_config(p, target, may_flatten, [&](const Conv2dConfig& c, double cycles) {
    if (cycles < best_cycles * 0.999) best = c, best_cycles = cycles;
    if (most > 1) all.emplace_back(cycles, c);
  });
  std::vector<Conv2dConfig> out = best_of(best, std::move(all), most);
  for (Conv2dConfig& c : out) set_chunk(p, &c);
  return out;
}

Conv2dConfig default_config(const Conv2dProblem& p, const Target& target, bool may_flatten) {
  return configs(p, target, may_flatten, 1)[0];
}

bool fits(const Conv2dProblem& p, const Conv2dConfig& c) {
  for (int field : {c.tile_height, c.tile_width, c.oc_blocks, c.ic_unroll, c.bands, c.chunk})
    if (field < 1) return false;
  if (c.tap_unroll < 0 || c.tap_unroll > 2 || (c.flatten && c.tile_height > 1)) return false;
  const Conv2dLoops l = conv2d_loops(p, c);
  return l.height % c.tile_height == 0 && (l.ic_blocks == 1 || l.ic_block % c.ic_unroll == 0);
}

Cost estimate(const Conv2dProblem& p, const Conv2dConfig& c, const Target& target) {
  double pixels = static_cast<double>(p.batch * p.out_depth * p.out_height * p.out_width);
  const int64_t channels = p.in_channels / p.groups;
  double taps = static_cast<double>(p.kernel_depth * p.kernel_height * p.kernel_width * channels);
  Cost cost;
  cost.flops = 2 * pixels * p.out_channels * taps;
  const double element = p.words() ? 4.0 / p.word : 4;
  double weights = element * taps * p.out_channels;
  cost.bytes = element * p.batch * p.in_channels * p.in_depth * p.in_height * p.in_width +
               element * pixels * p.out_channels + weights;
  const double compute = conv_cycles(p, c, target) / target.machine.cycles_per_microsecond();
  const double stream = weights / (target.machine.dram_gbps * 1e3);
  cost.microseconds = std::max(compute, stream);
  cost.shared = std::max(compute / 2, stream) - cost.microseconds / 2;
  return cost;
}

std::vector<int64_t> packed_weight_shape(const Conv2dProblem& p) {
  Conv2dLoops l = conv2d_loops(p, Conv2dConfig{});
  return {p.groups * l.oc_blocks, l.ic_blocks, p.kernel_depth * p.kernel_height, l.columns, l.ic_block, p.lanes};
}

HaloNeed halo_need(const Conv2dProblem& p) {
  auto after = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad, int64_t in) {
    return std::max<int64_t>(0, (out - 1) * stride - pad + (kernel - 1) * dilation - (in - 1));
  };
  // Words of taps extend beyond the window; the excess is multiplied by zero.
  const int64_t width = p.words() && p.plain_data ? round_up(p.kernel_width, p.word) : p.kernel_width;
  return {p.pad_top, p.pad_left,
          after(p.out_height, p.stride_height, p.kernel_height, p.dilation_height, p.pad_top, p.in_height),
          after(p.out_width, p.stride_width, width, p.dilation_width, p.pad_left, p.in_width)};
}

}  // namespace tilewright::topi
