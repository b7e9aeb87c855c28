// SPDX-License-Identifier: Apache-2.0
// Block sizes and cost model of Winograd convolutions.
#include <algorithm>
#include <limits>

#include "topi/register_tile.h"
#include "topi/winograd_loops.h"
#include "topi/words.h"

namespace tilewright::topi {

WinogradLoops winograd_loops(const Conv2dProblem& p, const WinogradConfig& c) {
  WinogradLoops l;
  l.dilation_height = p.kernel_height == 1 ? 1 : p.dilation_height;
  l.dilation_width = p.kernel_width == 1 ? 1 : p.dilation_width;
  l.comb_tiles_high = ceil_div(ceil_div(p.out_height, l.dilation_height), c.tile_height);
  l.comb_tiles_wide = ceil_div(ceil_div(p.out_width, l.dilation_width), c.tile_width);
  l.tiles_high = std::min(l.dilation_height, p.out_height) * l.comb_tiles_high;
  l.tiles_wide = std::min(l.dilation_width, p.out_width) * l.comb_tiles_wide;
  l.tiles = p.batch * l.tiles_high * l.tiles_wide;
  l.depth = p.out_depth;
  l.remainders = p.kernel_depth == 1 ? 1 : p.stride_depth;
  l.slots_each = p.out_depth + (p.kernel_depth - 1) * p.dilation_depth / p.stride_depth;
  l.slots = l.remainders * l.slots_each;
  l.blocks = ceil_div(l.tiles, c.block_tiles);
  l.last_tiles = l.tiles - (l.blocks - 1) * c.block_tiles;
  l.down = winograd_axis(c.tile_height, static_cast<int>(p.kernel_height), static_cast<int>(p.stride_height));
  l.across = winograd_axis(c.tile_width, static_cast<int>(p.kernel_width), static_cast<int>(p.stride_width));
  l.points = int64_t{l.down.products()} * l.across.products();
  l.slices = int64_t{l.down.slices()} * l.across.slices();
  l.phases = p.stride_height * p.stride_width;
  l.ic_blocks = ceil_div(p.in_channels, p.lanes);
  l.oc_blocks = ceil_div(p.out_channels, p.lanes);
  l.oc_tiles = ceil_div(l.oc_blocks, c.oc_blocks);
  l.last_cols = static_cast<int>(l.oc_blocks - (l.oc_tiles - 1) * c.oc_blocks);
  // With phases a partial last block would end every phase's range: it is processed in full then.
  const int64_t word = p.words() ? 2 : 1, last_block = p.in_channels - (l.ic_blocks - 1) * p.lanes;
  l.block = p.lanes / word;
  l.last_steps = l.phases > 1 ? p.lanes / c.ic_unroll : ceil_div(ceil_div(last_block, word), c.ic_unroll);
  l.ic_padded = (l.ic_blocks - 1) * l.block + l.last_steps * c.ic_unroll;
  l.panel = p.kernel_depth * l.ic_padded * p.lanes;
  // Points are an odd number of cache lines apart: a tile's points are accessed together and must not map to the same
  // cache sets.
  auto odd_lines = [&](int64_t elements) {
    const int64_t line = 16;
    return (ceil_div(elements, line) | 1) * line;
  };
  l.data_stride = odd_lines(l.phases * l.ic_blocks * l.slots * c.block_tiles * l.block);
  l.product_stride = odd_lines(c.oc_blocks * l.rows(c.block_tiles) * p.lanes);
  l.half = p.lanes == 16 && p.out_channels % 16 != 0 && p.out_channels % 16 <= 8;
  l.turns = ceil_div(l.rows(l.blocks == 1 ? l.last_tiles : c.block_tiles), c.rows);
  l.prefetches = l.panel * c.oc_blocks * 4 >= 8 << 10;
  return l;
}

bool winograd_applies(const Conv2dProblem& p, int tile_height, int tile_width) {
  auto axis = [](int64_t kernel, int64_t stride, int64_t dilation, int tile) {
    if (kernel == 1) return stride == 1 && tile == 1;
    return stride <= (dilation > 1 ? 1 : 2) && kernel > stride && tile > 1 && ceil_div(kernel, stride) + tile - 1 <= 8;
  };
  return p.groups == 1 && !p.plain_data && axis(p.kernel_height, p.stride_height, p.dilation_height, tile_height) &&
         axis(p.kernel_width, p.stride_width, p.dilation_width, tile_width) && p.kernel_height * p.kernel_width > 1;
}

bool winograd_of_bytes(const Conv2dProblem& p, const Target& target) {
  // The sums, four times the convolution's, must not leave int32; up to there they may wrap.
  constexpr int64_t kMostChannels = (int64_t{1} << 31) / (kWinogradWordScale * kWinogradWordScale * 9 * 255 * 128);
  return p.words() && p.word_of == kUInt8 && word_products(target, kUInt8) > word_products(target, kInt16) &&
         p.kernel_height == 3 && p.kernel_width == 3 && p.stride_height == 1 && p.stride_width == 1 &&
         p.in_channels < kMostChannels && winograd_applies(p, 2, 2);
}

HaloNeed winograd_halo(const Conv2dProblem& p, const WinogradConfig& c) {
  // Based on the last tile of the last comb.
  auto after = [](int64_t out, int64_t dilation, int64_t tile, const WinogradAxis& axis, int64_t pad, int64_t in) {
    const int64_t first = (round_up(ceil_div(out, dilation), tile) - tile) * axis.stride;
    return std::max<int64_t>(0, std::min(dilation, out) + (first + axis.slices() - 1) * dilation - pad - in);
  };
  const WinogradLoops l = winograd_loops(p, c);
  return {p.pad_top, p.pad_left, after(p.out_height, l.dilation_height, c.tile_height, l.down, p.pad_top, p.in_height),
          after(p.out_width, l.dilation_width, c.tile_width, l.across, p.pad_left, p.in_width)};
}

int64_t winograd_scratch_bytes(const Conv2dProblem& p, const WinogradConfig& c, DataType dtype) {
  return winograd_loops(p, c).scratch() * static_cast<int64_t>(dtype.bytes());
}

namespace {

// Cycles of applying a program along both axes of a tile: an operation counts as a multiply-add, loads are free, a
// store counts twice.
double transform_cycles(const LinearProgram& down, const LinearProgram& across, const Target& target) {
  const double wide = across.inputs, high = static_cast<double>(down.results.size());
  const double operations = down.operations() * wide + across.operations() * high;
  const double loads = down.inputs * wide, stores = high * static_cast<double>(across.results.size());
  return (operations + 0.5 * loads + 2 * stores) / target.machine.fmas_per_cycle(target.vector_bits) + 8;
}

struct Prediction {
  double microseconds = 0;  // of one thread
  double data = 0;          // the part for the data transform
  double shared = 0;        // as in Cost
};

// Memory time counts only where it exceeds the arithmetic that hides it.
Prediction predict(const Conv2dProblem& p, const WinogradConfig& c, bool weights_from_memory, const Target& of,
                   double data_cycles, double result_cycles) {
  const Target target = p.words() ? for_words(of, kInt16) : of;
  const WinogradLoops l = winograd_loops(p, c);
  const double v = p.lanes, per_point = static_cast<double>(l.slices) / static_cast<double>(l.points);
  // Taps along the depth that only read zero planes are skipped, if a register tile lies within one plane.
  double deep = static_cast<double>(p.kernel_depth);
  if (p.kernel_depth > 1) {
    int64_t inside = 0;
    for (int64_t d = 0; d < p.out_depth; ++d)
      for (int64_t k = 0; k < p.kernel_depth; ++k) {
        const int64_t plane = d * p.stride_depth + k * p.dilation_depth - p.pad_front;
        inside += plane >= 0 && plane < p.in_depth;
      }
    const double mean = static_cast<double>(inside) / static_cast<double>(p.out_depth);
    const double apart = std::min(1.0, static_cast<double>(c.block_tiles) / static_cast<double>(c.rows));
    deep = mean * apart + deep * (1 - apart);
  }
  const double ic = static_cast<double>(l.ic_padded) * per_point * deep;
  auto products = [&](double cols) {
    const double panel = static_cast<double>(l.panel) * 4 * cols * per_point;
    auto block = [&](int64_t tiles) {
      const int64_t rows = l.rows(tiles), whole = rows / c.rows, rest = rows % c.rows;
      double cycles = static_cast<double>(whole) * tile_cycles(c.rows, cols, ic, panel, target, p.words() ? 1 : 0);
      if (rest) cycles += tile_cycles(static_cast<int>(rest), cols, ic, panel, target, p.words() ? 1 : 0);
      return cycles;
    };
    return static_cast<double>(l.points) *
           (static_cast<double>(l.blocks - 1) * block(c.block_tiles) + block(l.last_tiles));
  };
  const double per_microsecond = target.machine.cycles_per_microsecond();
  const double gemm =
      (static_cast<double>(l.oc_tiles - 1) * products(c.oc_blocks) + products(l.last_cols - (l.half ? 0.5 : 0))) /
      per_microsecond;
  const int64_t planes = std::min(l.slots, p.in_depth);
  const double transforms = static_cast<double>(l.tiles) *
                            (static_cast<double>(l.ic_blocks * planes) * data_cycles +
                             static_cast<double>(l.oc_blocks * l.depth) * result_cycles) /
                            per_microsecond;
  // Weights are read once per block of tiles: from memory the first time, then from the cache where they fit beside the
  // scratch.
  const double bytes = static_cast<double>(l.slices * l.panel * l.oc_blocks) * 4,
               scratch = static_cast<double>(l.scratch()) * 4;
  const double l2 = static_cast<double>(target.machine.l2_bytes);
  const bool near = bytes + scratch <= 0.9 * l2;
  const double again = near            ? target.machine.l2_gbps
                       : bytes <= 16e6 ? target.machine.l3_gbps
                                       : target.machine.dram_gbps;
  // A stream in parallel to other work reaches four fifths of the bandwidth of a stream alone. Two threads share the
  // bandwidth and come closer to its limit.
  const double from_there = static_cast<double>(l.blocks - 1) * bytes / (again * 1e3);
  const double traffic = bytes / ((weights_from_memory ? 0.8 * target.machine.dram_gbps : again) * 1e3) + from_there;
  const double traffic_of_two =
      weights_from_memory ? bytes / (target.machine.dram_gbps * 1e3) + from_there / 2 : traffic / 2;
  // Repeated passes over wide panels from outer caches evict the L1 cache.
  const double panel_bytes = static_cast<double>(l.panel * c.oc_blocks) * 4 * per_point;
  const double displaced =
      l.turns > 1 && !near && panel_bytes > 0.75 * static_cast<double>(target.machine.l1_bytes) ? 0.5 * traffic : 0;
  // The transforms wait for maps beyond the L2 cache: reads, and writes that read first.
  const double maps = (p.words() ? 1 : 4) * static_cast<double>(p.batch) * v *
                      static_cast<double>(l.ic_blocks * p.in_depth * p.in_height * p.in_width +
                                          2 * l.oc_blocks * p.out_depth * p.out_height * p.out_width);
  const double passage =
      maps <= l2 ? 0 : maps / ((maps <= 8e6 ? target.machine.l3_gbps : target.machine.dram_gbps) * 1e3);
  // Scratch beyond the L2 cache is written and read through the L3 cache.
  double spill = 0;
  if (scratch > 0.75 * l2) {
    const double data = static_cast<double>(l.slices * l.tiles * l.slots * l.ic_blocks) * v * 4;
    const double in_second = static_cast<double>(l.points * l.product_stride) * 4 > 0.4 * l2 ? 1 : 0;
    const double result = static_cast<double>(l.points * l.rows(l.tiles) * l.oc_blocks) * v * 4 * in_second;
    spill = (data + 2 * result) / (target.machine.l3_gbps * 1e3) +
            0.1 * static_cast<double>(l.oc_tiles) * data / (target.machine.l3_gbps * 1e3);
  }
  auto together = [](double a, double b) {
    const double most = std::max(a, b), least = std::min(a, b);
    return most + 0.5 * least * least / most;
  };
  const double data = static_cast<double>(l.tiles * planes * l.ic_blocks) * data_cycles / per_microsecond;
  const double alone = together(gemm, traffic);
  return {alone + transforms + spill + displaced + passage, data, together(gemm / 2, traffic_of_two) - alone / 2};
}

// How much longer than an even share the slowest of `threads` takes: units are also divided between channel tiles, and
// both sides of such a cut transform the block's data.
double imbalance(const Conv2dProblem& p, const WinogradConfig& c, const Prediction& prediction, int threads) {
  const WinogradLoops l = winograd_loops(p, c);
  const int64_t units = l.blocks * l.oc_tiles;
  const double per_tile = prediction.data / static_cast<double>(l.tiles);
  const double per_unit = (prediction.microseconds - prediction.data) / static_cast<double>(l.tiles * l.oc_blocks);
  double worst = 0;
  for (int t = 0; t < threads; ++t) {
    const int64_t begin = t * units / threads, end = (t + 1) * units / threads;
    if (begin == end) continue;
    auto tiles_of = [&](int64_t block) {
      return static_cast<double>(block == l.blocks - 1 ? l.last_tiles : c.block_tiles);
    };
    double time = 0;
    for (int64_t block = begin / l.oc_tiles; block * l.oc_tiles < end; ++block) {
      const int64_t first = std::max(begin - block * l.oc_tiles, int64_t{0}),
                    last = std::min(end - block * l.oc_tiles, l.oc_tiles);
      const double cols = static_cast<double>(std::min(last * c.oc_blocks, l.oc_blocks) - first * c.oc_blocks);
      time += tiles_of(block) * (per_tile + per_unit * cols);
    }
    worst = std::max(worst, time);
  }
  return worst * threads / prediction.microseconds;
}

struct TransformCycles {
  double data, result;
};
TransformCycles transforms_of(const Conv2dProblem& p, int tile_height, int tile_width, const Target& target) {
  const WinogradAxis down =
      winograd_axis(tile_height, static_cast<int>(p.kernel_height), static_cast<int>(p.stride_height));
  const WinogradAxis across =
      winograd_axis(tile_width, static_cast<int>(p.kernel_width), static_cast<int>(p.stride_width));
  TransformCycles cycles{0, transform_cycles(down.transform->result, across.transform->result, target)};
  for (int i = 0; i < down.stride; ++i)
    for (int j = 0; j < across.stride; ++j) cycles.data += transform_cycles(down.data(i), across.data(j), target);
  return cycles;
}

}  // namespace

namespace {

// Numbers of tiles per block: whole register tiles within a plane; fewer if every plane of a volume multiplies them.
std::vector<int64_t> block_sizes(int64_t tiles, int64_t rows, int64_t depth) {
  std::vector<int64_t> sizes{tiles};
  if (depth == 1) {
    for (int64_t blocks = 2; blocks <= 64 && sizes.back() != rows; ++blocks) {
      const int64_t size = round_up(ceil_div(tiles, blocks), rows);
      if (size != sizes.back() && size < tiles) sizes.push_back(size);
    }
    return sizes;
  }
  // Even blocks, at most 24 different sizes.
  for (int64_t blocks = 2; sizes.back() > 1; blocks += 1 + blocks / 6)
    if (const int64_t size = ceil_div(tiles, blocks); size != sizes.back()) sizes.push_back(size);
  return sizes;
}

// Visits every configuration with its time, scaled by the imbalance over a few threads.
void weigh(const Conv2dProblem& p, int tile_height, int tile_width, bool weights_from_memory, const Target& target,
           const std::function<void(const WinogradConfig&, double)>& visit) {
  const Target machine = p.words() ? for_words(target, kInt16) : target;
  const TransformCycles cycles = transforms_of(p, tile_height, tile_width, target);
  WinogradConfig base;
  base.tile_height = tile_height, base.tile_width = tile_width;
  base.ic_unroll = static_cast<int>(std::min<int64_t>(4, p.words() ? p.lanes / 2 : p.lanes));
  while (base.ic_unroll > 1 && base.ic_unroll / 2 >= p.in_channels) base.ic_unroll /= 2;
  base.block_tiles = 1;
  const int64_t tiles = winograd_loops(p, base).tiles, oc_blocks = ceil_div(p.out_channels, p.lanes);
  for (int cols = 1; cols <= std::min<int64_t>(oc_blocks, 6); ++cols)
    for (int rows = 1; rows <= tiles * p.out_depth && tile_fits(rows, cols, machine) && rows <= 16; ++rows)
      for (const int64_t block_tiles : block_sizes(tiles, rows, p.out_depth)) {
        WinogradConfig c = base;
        c.rows = rows, c.oc_blocks = cols, c.block_tiles = block_tiles;
        const Prediction prediction = predict(p, c, weights_from_memory, target, cycles.data, cycles.result);
        const double uneven = 0.4 * (imbalance(p, c, prediction, 2) - 1) + 0.1 * (imbalance(p, c, prediction, 4) - 1);
        visit(c, prediction.microseconds * (1 + std::max(uneven, 0.0)) + prediction.shared);
      }
}

}  // namespace

std::vector<WinogradConfig> winograd_configs(const Conv2dProblem& p, int tile_height, int tile_width,
                                             bool weights_from_memory, const Target& target, size_t most) {
  WinogradConfig best;
  double best_time = std::numeric_limits<double>::infinity();
  std::vector<Weighed<WinogradConfig>> all;
  weigh(p, tile_height, tile_width, weights_from_memory, target, [&](const WinogradConfig& c, double time) {
    if (time < best_time * 0.999) best_time = time, best = c;
    if (most > 1) all.emplace_back(time, c);
  });
  return best_of(best, std::move(all), most);
}

WinogradConfig winograd_config(const Conv2dProblem& p, int tile_height, int tile_width, bool weights_from_memory,
                               const Target& target) {
  return winograd_configs(p, tile_height, tile_width, weights_from_memory, target, 1)[0];
}

std::vector<Weighed<WinogradConfig>> winograd_config_of_columns(const Conv2dProblem& p, int tile_height, int tile_width,
                                                                bool weights_from_memory, const Target& target) {
  std::vector<Weighed<WinogradConfig>> best;
  // They are visited in order of the number of columns.
  weigh(p, tile_height, tile_width, weights_from_memory, target, [&](const WinogradConfig& c, double time) {
    if (best.empty() || best.back().second.oc_blocks != c.oc_blocks)
      best.emplace_back(time, c);
    else if (time < best.back().first * 0.999)
      best.back() = {time, c};
  });
  return best;
}

bool fits(const Conv2dProblem& p, const WinogradConfig& c) {
  return c.block_tiles >= 1 && c.rows >= 1 && c.oc_blocks >= 1 && c.ic_unroll >= 1 &&
         p.lanes / (p.words() ? 2 : 1) % c.ic_unroll == 0 && winograd_applies(p, c.tile_height, c.tile_width);
}

Cost winograd_cost(const Conv2dProblem& p, const WinogradConfig& c, bool weights_from_memory, const Target& target) {
  const TransformCycles cycles = transforms_of(p, c.tile_height, c.tile_width, target);
  const WinogradLoops l = winograd_loops(p, c);
  Cost cost = estimate(p, Conv2dConfig{}, target);  // flops of the direct algorithm, so that rates are comparable
  cost.bytes +=
      4 * (static_cast<double>(l.slices * l.panel * l.oc_blocks) -
           static_cast<double>(p.in_channels * p.out_channels * p.kernel_depth * p.kernel_height * p.kernel_width));
  const Prediction prediction = predict(p, c, weights_from_memory, target, cycles.data, cycles.result);
  cost.microseconds = prediction.microseconds;
  cost.shared = prediction.shared;
  return cost;
}

}  // namespace tilewright::topi
