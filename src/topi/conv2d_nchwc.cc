// SPDX-License-Identifier: Apache-2.0
#include "topi/conv2d_nchwc.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/format.h"
#include "tir/walk.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// One axis of a window. Taps that meet only padding, wherever in a tile, are not summed.
struct WindowAxis {
  int64_t in, out, kernel, stride, dilation, pad;
  // Taps that some of `count` outputs from `first` on read inside the data.
  int64_t taps(int64_t first, int64_t count) const {
    auto below = [&](int64_t at, int64_t bound) {
      const int64_t room = bound - (at * stride - pad);
      return std::min(kernel, room <= 0 ? 0 : ceil_div(room, dilation));
    };
    return std::max<int64_t>(0, below(first, in) - below(first + count - 1, 0));
  }
  // Their mean over tiles of `count` outputs.
  double mean_taps(int64_t tiles, int64_t count) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < tiles; ++i) sum += taps(i * count, count);
    return tiles ? static_cast<double>(sum) / static_cast<double>(tiles) : 0;
  }
};
WindowAxis rows_of(const Conv2dProblem& p) {
  return {p.in_height, p.out_height, p.kernel_height, p.stride_height, p.dilation_height, p.pad_top};
}
WindowAxis planes_of(const Conv2dProblem& p) {
  return {p.in_depth, p.out_depth, p.kernel_depth, p.stride_depth, p.dilation_depth, p.pad_front};
}
WindowAxis columns_of(const Conv2dProblem& p) {
  return {p.in_width, p.out_width, p.kernel_width, p.stride_width, p.dilation_width, p.pad_left};
}

// Whether enough taps meet padding only to look for them: wide dilations over small maps, large kernels.
bool skips_padding(const Conv2dProblem& p, const Conv2dConfig& c) {
  if (p.plain_data || c.tap_unroll > 0 || p.kernel_height * p.kernel_width == 1) return false;
  const WindowAxis rows = rows_of(p), columns = columns_of(p);
  return rows.mean_taps(rows.out, 1) * columns.mean_taps(columns.out, 1) <
         0.95 * static_cast<double>(p.kernel_height * p.kernel_width);
}

// Extents of the loops, derived from problem and configuration.
struct Loops {
  int64_t oc_blocks, ic_blocks, ic_block;  // blocks per convolution group; channels of an input block
  int64_t oc_tiles;                        // register tiles over the output blocks of a group
  int64_t height, width;                   // output pixels, after flattening
  int64_t row_tiles, width_tiles, width_tail;
  int64_t chunk, chunks;  // width tiles of a unit of work, and units per row tile
  int64_t bands, band;    // runs of such units over the pixels, and units of a run
  int64_t panel;          // elements of one output block's weights
  int last_cols;          // blocks of the last register tile over the output channels
  bool half;              // its last block is at most half full: computed in half vectors
};

Loops derive(const Conv2dProblem& p, const Conv2dConfig& c) {
  Loops l;
  l.oc_blocks = ceil_div(p.out_channels / p.groups, p.lanes);
  l.ic_block = p.plain_data ? p.in_channels / p.groups : p.lanes;
  l.ic_blocks = ceil_div(p.in_channels / p.groups, l.ic_block);
  l.oc_tiles = ceil_div(l.oc_blocks, c.oc_blocks);
  l.height = c.flatten ? 1 : p.out_height;
  l.width = c.flatten ? p.out_height * p.out_width : p.out_width;
  l.row_tiles = l.height / c.tile_height;
  l.width_tiles = l.width / c.tile_width;
  l.width_tail = l.width % c.tile_width;
  // Long rows are cut into even parts, so that threads get even shares.
  l.chunk = ceil_div(l.width_tiles, std::max<int64_t>(1, ceil_div(l.width_tiles, c.chunk)));
  l.chunk = std::max<int64_t>(1, l.chunk);
  l.chunks = std::max<int64_t>(1, ceil_div(l.width_tiles, l.chunk));
  l.band = std::max<int64_t>(1, ceil_div(l.row_tiles * l.chunks, c.bands));
  l.bands = std::max<int64_t>(1, ceil_div(l.row_tiles * l.chunks, l.band));
  l.last_cols = static_cast<int>(l.oc_blocks - (l.oc_tiles - 1) * c.oc_blocks);
  // 512-bit operations cost twice what 256-bit ones do where the units are 256 bits wide, and no less elsewhere.
  l.half = p.lanes == 16 && p.groups == 1 && p.out_channels % 16 != 0 && p.out_channels % 16 <= 8;
  l.panel = l.ic_blocks * p.kernel_depth * p.kernel_height * p.kernel_width * l.ic_block * p.lanes;
  return l;
}

// Bytes of the planes that one plane of the output reads, as far as the windows touch them: a window less high than its
// stride leaves rows out.
double input_bytes(const Conv2dProblem& p) {
  const double rows = std::min(1.0, static_cast<double>(p.kernel_height) / static_cast<double>(p.stride_height));
  const int64_t planes = std::min(p.kernel_depth, p.in_depth);
  return 4.0 * rows * static_cast<double>(planes * p.in_channels * p.in_height * p.in_width);
}

// Whether each tile asks for the next one's pixels: the planes of an input from beyond the second level are more
// streams than hardware follows, each of them a few lines long.
bool prefetches_pixels(const Conv2dProblem& p, const Target& target) {
  const double planes = static_cast<double>(p.batch * (p.kernel_depth == 1 ? p.out_depth : 1));
  return !p.plain_data && planes * input_bytes(p) > static_cast<double>(target.l2_bytes);
}

double conv_cycles(const Conv2dProblem& p, const Conv2dConfig& c, const Target& target) {
  Loops l = derive(p, c);
  Target machine = target;
  if (p.split > 1) machine.vector_bits /= p.split;
  const WindowAxis depth = planes_of(p);
  double steps = static_cast<double>(p.in_channels / p.groups) * depth.mean_taps(depth.out, 1);
  double columns = static_cast<double>(p.kernel_width), tail_columns = columns;
  if (skips_padding(p, c)) {
    const WindowAxis across = columns_of(p);
    steps *= rows_of(p).mean_taps(l.row_tiles, c.tile_height);
    columns = across.mean_taps(l.width_tiles, c.tile_width);
    tail_columns = static_cast<double>(across.taps(l.width_tiles * c.tile_width, l.width_tail));
  } else {
    steps *= static_cast<double>(p.kernel_height);
  }
  auto row = [&](double cols) {
    double panel = static_cast<double>(l.panel) * 4 * cols;
    double cycles = l.width_tiles * tile_cycles(c.tile_height * c.tile_width, cols, steps * columns, panel, machine);
    if (l.width_tail)
      cycles += tile_cycles(c.tile_height * static_cast<int>(l.width_tail), cols, steps * tail_columns, panel, machine);
    return cycles;
  };
  double cycles = ((l.oc_tiles - 1) * row(c.oc_blocks) + row(l.last_cols - (l.half ? 0.5 : 0))) *
                  static_cast<double>(l.row_tiles * p.groups);
  // Each tile of output blocks walks the input of its band; what of it the second-level cache does not hold comes in
  // bursts that arithmetic hides in part only.
  const double input = input_bytes(p), band = input / static_cast<double>(l.bands);
  if (input > static_cast<double>(target.l2_bytes))
    cycles += static_cast<double>(band <= 0.5 * static_cast<double>(target.l2_bytes) ? 1 : l.oc_tiles) * input / 5;
  // Every band but the first takes the weights from the third level again, and the rows that windows share.
  const double again = static_cast<double>(l.bands - 1), weights = 4.0 * static_cast<double>(l.panel * l.oc_blocks);
  const double shared =
      static_cast<double>(std::max<int64_t>(0, (p.kernel_height - 1) * p.dilation_height + 1 - p.stride_height));
  cycles += again * (0.5 * weights / 16 + shared * input / static_cast<double>(p.in_height) / 5);
  return cycles * static_cast<double>(p.batch * p.out_depth);
}

// How much longer than an even share the longest of `threads` takes.
double imbalance(const Conv2dProblem& p, const Conv2dConfig& c, int threads) {
  const Loops l = derive(p, c);
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

// The longest units that still give a few threads even shares; finding a unit's place must not weigh beside its work.
void set_chunk(const Conv2dProblem& p, Conv2dConfig* c) {
  const Conv2dConfig longest = *c;
  const int64_t steps = p.in_channels / p.groups * p.kernel_depth * p.kernel_height * p.kernel_width;
  const int64_t tile = steps * c->tile_height * c->tile_width * c->oc_blocks;
  double best = 1e9;
  for (int chunk = longest.chunk; chunk >= 1; --chunk) {
    if (chunk < longest.chunk && chunk * tile < 2000) break;
    Conv2dConfig shorter = longest;
    shorter.chunk = chunk;
    const Loops l = derive(p, shorter);
    if (p.batch * p.out_depth * p.groups * l.oc_tiles * l.bands * l.band > 256) {
      if (best > 1.01) *c = shorter;
      return;
    }
    const double uneven = 0.7 * imbalance(p, shorter, 2) + 0.3 * imbalance(p, shorter, 4);
    if (uneven < best - 0.01) best = uneven, *c = shorter;
  }
}

// Loop bodies long enough to hide their loop's end: 4 channels of 16, all of a narrower block, taps of the narrowest.
void set_unroll(const Conv2dProblem& p, Conv2dConfig* c) {
  if (p.plain_data) {
    c->ic_unroll = static_cast<int>(p.in_channels / p.groups);
    return;
  }
  c->ic_unroll = static_cast<int>(std::min<int64_t>(p.lanes >= 16 ? 4 : p.lanes, p.in_channels / p.groups));
  const int64_t step = int64_t{c->ic_unroll} * c->tile_height * c->tile_width * c->oc_blocks;
  if (p.lanes < 8 && c->ic_unroll == p.lanes) {  // 8 channels are a long enough body, three taps of them a slow one
    if (step * p.kernel_width <= 512) c->tap_unroll = 1;
    if (step * p.kernel_width * p.kernel_height <= 512) c->tap_unroll = 2;
  }
}

}  // namespace

PixelStrides pixel_strides(const View& view, bool plain) {
  const std::vector<int64_t>& s = view.strides;
  const size_t rank = s.size() + (plain ? 1 : 0);
  TW_ICHECK(rank == 5 || rank == 6, "pixel_strides: rank");
  const bool depth = rank == 6;
  return {s[0], s[1], depth ? s[2] : 0, s[depth ? 3 : 2], s[depth ? 4 : 3], plain ? s[1] : s.back()};
}

Index pixel_index(const View& view, const PrimExpr& n, const PrimExpr& block, const PrimExpr& d, const PrimExpr& h,
                  const PrimExpr& w, const PrimExpr& lane) {
  if (view.rank() == 5) return {n, block, h, w, lane};
  return {n, block, d, h, w, lane};
}

TapRange depth_taps(const Conv2dProblem& p, const PrimExpr& first, const PrimExpr& last) {
  const WindowAxis axis = planes_of(p);
  if (axis.taps(0, 1) == axis.kernel && axis.taps(axis.out - 1, 1) == axis.kernel)
    return {make_int(0), make_int(axis.kernel)};
  return {taps_below(last * axis.stride - axis.pad, 0, axis.kernel, axis.dilation),
          taps_below(first * axis.stride - axis.pad, axis.in, axis.kernel, axis.dilation)};
}

bool can_flatten(const Conv2dProblem& p, const View& data, const View& out) {
  const PixelStrides from = pixel_strides(data, p.plain_data), to = pixel_strides(out, false);
  return !p.plain_data && p.kernel_height == 1 && p.kernel_width == 1 && p.stride_height == 1 && p.stride_width == 1 &&
         p.pad_top + p.pad_left + p.pad_bottom + p.pad_right == 0 && from.height == p.in_width * from.width &&
         to.height == p.out_width * to.width && p.in_width == p.out_width && p.out_height > 1;
}

namespace {
// Every tile that stays in registers, with its predicted cycles.
template <class F>
void for_each_config(const Conv2dProblem& p, const Target& target, bool may_flatten, F visit) {
  int64_t oc_blocks = ceil_div(p.out_channels / p.groups, p.lanes);
  for (int flat = 0; flat <= (may_flatten ? 1 : 0); ++flat) {
    int64_t height = flat ? 1 : p.out_height, width = flat ? p.out_height * p.out_width : p.out_width;
    for (int nr = 1; nr <= std::min<int64_t>(oc_blocks, 6); ++nr)
      for (int th = 1; th <= std::min<int64_t>(height, 14); ++th) {
        if (height % th != 0) continue;
        for (int tw = 1; tw <= width && tile_fits(th * tw, nr, target); ++tw) {
          Conv2dConfig c{th, tw, nr};
          c.flatten = flat != 0;
          set_unroll(p, &c);
          visit(c, conv_cycles(p, c, target));
          // Bands whose input stays in the second level beside a panel of weights.
          const double input = input_bytes(p), l2 = static_cast<double>(target.l2_bytes);
          const Loops l = derive(p, c);
          if (input <= l2 || l.oc_tiles == 1) continue;
          const int64_t places = l.row_tiles * l.chunks;
          const auto most = static_cast<int64_t>(0.4 * l2 / input * static_cast<double>(places));
          if (most < 1) continue;
          int64_t band = most;  // of the longer half of the sizes the one that leaves the last band least short
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
  const Loops l = derive(p, c);
  return l.height % c.tile_height == 0 && (l.ic_blocks == 1 || l.ic_block % c.ic_unroll == 0);
}

Cost estimate(const Conv2dProblem& p, const Conv2dConfig& c, const Target& target) {
  double pixels = static_cast<double>(p.batch * p.out_depth * p.out_height * p.out_width);
  double taps = static_cast<double>(p.kernel_depth * p.kernel_height * p.kernel_width * (p.in_channels / p.groups));
  Cost cost;
  cost.flops = 2 * pixels * p.out_channels * taps;
  double weights = 4 * taps * p.out_channels;
  cost.bytes =
      4.0 * p.batch * p.in_channels * p.in_depth * p.in_height * p.in_width + 4 * pixels * p.out_channels + weights;
  const double compute = conv_cycles(p, c, target) / cycles_per_microsecond(target);
  const double stream = weights / (target.dram_gbps * 1e3);
  cost.microseconds = std::max(compute, stream);
  cost.shared = std::max(compute / 2, stream) - cost.microseconds / 2;
  return cost;
}

std::vector<int64_t> packed_weight_shape(const Conv2dProblem& p) {
  Loops l = derive(p, Conv2dConfig{});
  return {p.groups * l.oc_blocks, l.ic_blocks, p.kernel_depth * p.kernel_height, p.kernel_width, l.ic_block, p.lanes};
}

HaloNeed halo_need(const Conv2dProblem& p) {
  auto after = [](int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad, int64_t in) {
    return std::max<int64_t>(0, (out - 1) * stride - pad + (kernel - 1) * dilation - (in - 1));
  };
  return {p.pad_top, p.pad_left,
          after(p.out_height, p.stride_height, p.kernel_height, p.dilation_height, p.pad_top, p.in_height),
          after(p.out_width, p.stride_width, p.kernel_width, p.dilation_width, p.pad_left, p.in_width)};
}

// Reductions up to this length wait for the lines of their results; very short ones (a few blocks) for the hints.
constexpr int64_t kShortReduction = 1024, kBlocksForHints = 4;

Stmt conv2d_nchwc(const Conv2dProblem& p, const Conv2dConfig& c, const View& data, const View& weights, const View& out,
                  const Epilogue& epilogue, const KernelContext& context) {
  const Loops l = derive(p, c);
  const int v = p.lanes;
  TW_ICHECK(l.height % c.tile_height == 0, "conv2d_nchwc: the tile's height divides the output's");
  TW_ICHECK(c.tile_height == 1 || !c.flatten, "conv2d_nchwc: flattened rows have height 1");
  TW_ICHECK(p.groups == 1 || (p.out_channels / p.groups) % v == 0, "conv2d_nchwc: groups hold whole blocks");
  const PixelStrides from = pixel_strides(data, p.plain_data), to = pixel_strides(out, false);
  const int64_t data_n = from.image, data_block = p.plain_data ? 0 : from.block, data_d = from.depth;
  const int64_t data_h = from.height, data_w = from.width, data_c = from.channel;
  // Where input block `icb` of a group begins, and output block `block`: a part of a wider one where groups are narrow.
  auto part_at = [&](const PrimExpr& block, int64_t step) {
    return floordiv(block, p.split) * step + floormod(block, p.split) * int64_t{v};
  };
  auto input_block = [&](const PrimExpr& group, const PrimExpr& icb) {
    return p.split == 1 ? icb * data_block : part_at(group * l.ic_blocks + icb, data_block);
  };
  const int64_t group_step = p.split > 1 ? 0 : p.plain_data ? l.ic_block * data_c : l.ic_blocks * data_block;
  const DataType vector = accumulator_dtype(data.dtype()).with_lanes(v);
  const int unroll = c.ic_unroll;
  const bool prefetches = l.panel * c.oc_blocks * static_cast<int64_t>(weights.dtype().bytes()) >= 8 << 10;
  const int64_t last_channels = p.in_channels / p.groups - (l.ic_blocks - 1) * l.ic_block;
  const int64_t block_steps = l.ic_block / unroll, last_steps = last_channels / unroll;
  const int last_rest = static_cast<int>(last_channels % unroll);  // channels of the last block beyond its whole steps
  TW_ICHECK(l.ic_blocks == 1 || l.ic_block % unroll == 0, "conv2d_nchwc: the unroll divides the block");

  const int64_t element = static_cast<int64_t>(data.dtype().bytes());
  const bool pixels_ahead = prefetches_pixels(p, *context.target);
  const int64_t new_taps = p.stride_width / std::gcd(p.stride_width, p.dilation_width);

  using Taps = TapRange;
  auto taps = [](const char* name, const Taps& range, bool unrolled, const std::function<Stmt(PrimExpr)>& body) {
    if (!unrolled) return loop(name, range.begin, range.end, body);
    std::vector<Stmt> all;
    for (int64_t i = 0; i < *constant_value(range.end); ++i) all.push_back(body(make_int(i)));
    return seq(std::move(all));
  };
  // Binds the taps that `count` outputs from `first` on have inside the data.
  const bool skips = skips_padding(p, c);
  auto with_taps = [&](const WindowAxis& axis, const PrimExpr& first, int64_t count,
                       const std::function<Stmt(Taps)>& body) {
    if (!skips || axis.kernel == 1) return body({make_int(0), make_int(axis.kernel)});
    const PrimExpr begin = taps_below((first + (count - 1)) * axis.stride - axis.pad, 0, axis.kernel, axis.dilation);
    const PrimExpr end = taps_below(first * axis.stride - axis.pad, axis.in, axis.kernel, axis.dilation);
    return bind("tap_begin", begin, [&](PrimExpr begin) {
      return bind("tap_end", end, [&](PrimExpr end) { return body({begin, max(begin, end)}); });
    });
  };
  auto with_planes = [&](const PrimExpr& d, const std::function<Stmt(Taps)>& body) {
    const TapRange range = depth_taps(p, d, d);
    return bind("plane_begin", range.begin, [&](PrimExpr begin) {
      return bind("plane_end", range.end, [&](PrimExpr end) {
        return body({begin, constant_value(end) ? end : max(begin, end)});
      });
    });
  };
  // The result's index of an output block's pixel.
  struct Image {
    PrimExpr n, d;  // and the plane of the result
  };
  auto image_of = [&](const PrimExpr& plane) {
    if (p.out_depth == 1) return Image{plane, make_int(0)};
    return Image{floordiv(plane, p.out_depth), floormod(plane, p.out_depth)};
  };
  auto place_of = [&](const Image& image, const PrimExpr& block, PrimExpr h, PrimExpr w) {
    if (c.flatten) {
      h = floordiv(w, p.out_width);
      w = floormod(w, p.out_width);
    }
    if (p.split == 1) return pixel_index(out, image.n, block, image.d, h, w, make_int(0));
    return pixel_index(out, image.n, floordiv(block, p.split), image.d, h, w, floormod(block, p.split) * int64_t{v});
  };
  const bool result_ahead =
      2 * product(out.shape) * static_cast<int64_t>(out.dtype().bytes()) >= context.target->l2_bytes &&
      p.kernel_depth * p.kernel_height * p.kernel_width * (p.in_channels / p.groups) <= kShortReduction &&
      l.ic_blocks >= kBlocksForHints;
  // One register tile: pixels (h0 + r, w0 + i) x blocks oc0 ... of an image's plane.
  auto tile = [&](const Image& image, PrimExpr group, PrimExpr oc0, PrimExpr h0, PrimExpr w0, int tile_w, int cols,
                  bool half) {
    RegisterTile acc(c.tile_height * tile_w, cols, vector, half ? v / 2 : v);
    auto pixel_offset = [&](int r) {
      return (r / tile_w) * p.stride_height * data_h + (r % tile_w) * p.stride_width * data_w;
    };
    // Hints for what the next tile along the row reads first with this tap.
    auto next_pixels = [&](const PrimExpr& data_k, const PrimExpr& kw) {
      std::vector<Stmt> hints;
      if (!pixels_ahead) return hints;
      const int64_t next = tile_w * p.stride_width * data_w * element;
      int64_t line = 0;
      for (int r = 0; r < c.tile_height * tile_w; ++r) {
        const int64_t byte = pixel_offset(r) * element;
        if (r % tile_w != 0 && byte < line) continue;
        hints.push_back(prefetch(data.buffer, data_k + (byte + next) / element));
        line = byte + 64;
      }
      if (new_taps < p.kernel_width) hints = {make_if(le(make_int(p.kernel_width - new_taps), kw), seq(hints))};
      return hints;
    };
    // Hints for the lines of the result, and of a residual as large, that come from beyond the second level: pixels
    // side by side, shared out over the input's blocks.
    auto result_pixels = [&](const PrimExpr& icb) {
      std::vector<Stmt> hints;
      const int64_t share = ceil_div(tile_w, l.ic_blocks);
      auto ask = [&](const Buffer& buffer, const PrimExpr& first) {
        for (int64_t i = 0; i < share; ++i) hints.push_back(prefetch(buffer, first + (icb * share + i) * to.width));
      };
      for (int r = 0; result_ahead && r < c.tile_height; ++r)
        for (int col = 0; col < cols; ++col) {
          const Index at = place_of(image, oc0 + col, h0 + r, w0);
          for_each_expr(epilogue(make_const(vector, 0), at, {}), [&](const PrimExpr& e) {
            const auto* read = as<LoadNode>(e);
            const auto* lanes = read ? as<RampNode>(read->index) : nullptr;
            if (lanes && read->buffer->size >= product(out.shape)) ask(read->buffer, lanes->base);
          });
          ask(out.buffer, out.flat(at));
        }
      return hints;
    };
    PrimExpr origin = image.n * data_n + image.d * (p.stride_depth * data_d) + group * group_step +
                      h0 * (p.stride_height * data_h) + w0 * (p.stride_width * data_w) +
                      (data.offset - p.pad_front * data_d - p.pad_top * data_h - p.pad_left * data_w);
    return bind("data_at", origin, [&](PrimExpr data_at) {
      return bind("weights_at", oc0 * l.panel + weights.offset, [&](PrimExpr weights_at) {
        auto sums = [&](const Taps& planes, const Taps& down, const Taps& across) {
          auto window = [&](const PrimExpr& icb, const PrimExpr& kd) {
            return taps("kh", down, c.tap_unroll >= 2, [&](PrimExpr kh) {
              return taps("kw", across, c.tap_unroll >= 1, [&](PrimExpr kw) {
                PrimExpr data_k = data_at + (input_block(group, icb) + kd * (p.dilation_depth * data_d) +
                                             kh * (p.dilation_height * data_h) + kw * (p.dilation_width * data_w));
                PrimExpr weights_k =
                    weights_at +
                    (((icb * p.kernel_depth + kd) * p.kernel_height + kh) * p.kernel_width + kw) * (l.ic_block * v);
                auto channels = [&](const PrimExpr& first, int count) {
                  PrimExpr data_ic = data_k + first * data_c, weights_ic = weights_k + first * int64_t{v};
                  std::vector<Stmt> body;
                  for (int u = 0; u < count; ++u) {
                    for (int col = 0; prefetches && col < cols; ++col)
                      prefetch_ahead(&body, weights.buffer, weights_ic + col * l.panel, u * v, v, kPrefetchBytes);
                    body.push_back(acc.step(
                        [&](int r) { return load(data.buffer, data_ic + (pixel_offset(r) + u * data_c)); },
                        [&](int col) {
                          return load(weights.buffer, ramp(weights_ic + (col * l.panel + u * v), 1, acc.lanes(col)));
                        }));
                  }
                  return seq(std::move(body));
                };
                const bool alike = l.ic_blocks == 1 || block_steps == last_steps;
                const PrimExpr is_last = eq(icb, make_int(l.ic_blocks - 1));
                PrimExpr steps =
                    alike ? make_int(last_steps) : select(is_last, make_int(last_steps), make_int(block_steps));
                std::vector<Stmt> parts = next_pixels(data_k, kw);
                if (alike ? last_steps > 0 : block_steps > 0)
                  parts.push_back(bind("steps", steps, [&](PrimExpr steps) {
                    return loop("ic", make_int(0), steps,
                                [&](PrimExpr ic) { return channels(ic * int64_t{unroll}, unroll); });
                  }));
                if (last_rest) {
                  Stmt rest = channels(make_int(last_steps * unroll), last_rest);
                  parts.push_back(l.ic_blocks == 1 ? rest : make_if(is_last, rest));
                }
                return seq(std::move(parts));
              });
            });
          };
          return loop("icb", l.ic_blocks, [&](PrimExpr icb) {
            std::vector<Stmt> block = result_pixels(icb);
            block.push_back(taps("kd", planes, false, [&](PrimExpr kd) { return window(icb, kd); }));
            return seq(std::move(block));
          });
        };
        Stmt reduce = with_planes(image.d, [&](Taps planes) {
          return with_taps(rows_of(p), h0, c.tile_height, [&](Taps down) {
            return with_taps(columns_of(p), w0, tile_w, [&](Taps across) { return sums(planes, down, across); });
          });
        });
        PrimExpr out_origin = image.n * to.image + (p.split == 1 ? oc0 * to.block : make_int(0)) + image.d * to.depth +
                              h0 * to.height + w0 * to.width + out.offset;
        Stmt drain = bind("out_at", out_origin, [&](PrimExpr out_at) {
          return acc.drain([&](int r, int col, PrimExpr value) {
            Index index = place_of(image, oc0 + col, h0 + (r / tile_w), w0 + (r % tile_w));
            PrimExpr at =
                make_int((r / tile_w) * to.height + (r % tile_w) * to.width + (p.split == 1 ? col * to.block : 0));
            if (p.split > 1) at = at + part_at(oc0 + col, to.block);
            return store(out.buffer, ramp(out_at + at, 1, v), epilogue(value, index, {}));
          });
        });
        return acc.scope(seq({acc.clear(), reduce, drain}));
      });
    });
  };

  // The width tiles of one unit.
  auto row = [&](const Image& image, PrimExpr group, PrimExpr oc0, PrimExpr h0, PrimExpr chunk, int cols, bool half) {
    std::vector<Stmt> body;
    if (l.width_tiles > 0) {
      PrimExpr first = chunk * l.chunk;
      PrimExpr end = l.width_tiles % l.chunk == 0 ? first + l.chunk : min(first + l.chunk, make_int(l.width_tiles));
      body.push_back(loop("wt", first, end, [&](PrimExpr wt) {
        return tile(image, group, oc0, h0, wt * c.tile_width, c.tile_width, cols, half);
      }));
    }
    if (l.width_tail) {
      Stmt tail = tile(image, group, oc0, h0, make_int(l.width_tiles * c.tile_width), static_cast<int>(l.width_tail),
                       cols, half);
      body.push_back(l.chunks == 1 ? tail : make_if(eq(chunk, make_int(l.chunks - 1)), tail));
    }
    return seq(std::move(body));
  };

  // A band's pixels for all output channels, then the next band's: its input is in the near caches meanwhile.
  const std::vector<int64_t> units{p.batch * p.out_depth, p.groups, l.bands, l.oc_tiles, l.band};
  const int64_t places = l.row_tiles * l.chunks;
  Stmt all = parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      return bind("place", at[2] * l.band + at[4], [&](PrimExpr place) {
        const Image image = image_of(at[0]);
        const PrimExpr group = at[1], oc_tile = at[3];
        Stmt one = bind("h0", floordiv(place, l.chunks) * c.tile_height, [&](PrimExpr h0) {
          return bind("chunk", floormod(place, l.chunks), [&](PrimExpr chunk) {
            return bind("oc0", group * l.oc_blocks + oc_tile * c.oc_blocks, [&](PrimExpr oc0) {
              Stmt last = row(image, group, oc0, h0, chunk, l.last_cols, l.half);
              if (l.oc_tiles == 1) return last;
              Stmt other = row(image, group, oc0, h0, chunk, c.oc_blocks, false);
              if (l.last_cols == c.oc_blocks && !l.half) return other;
              return make_if(eq(oc_tile, make_int(l.oc_tiles - 1)), last, other);
            });
          });
        });
        return l.bands * l.band == places ? one : make_if(lt(place, make_int(places)), one);
      });
    });
  });
  // The rest of the last wide block belongs to no group.
  const int64_t blocks = p.groups * l.oc_blocks;
  if (blocks % p.split == 0) return all;
  const std::vector<int64_t> pixels{p.batch * p.out_depth, p.out_height, p.out_width};
  Stmt rest = parallel_for(context, "pixel", product(pixels), [&](PrimExpr pixel) {
    Index at = unravel(pixel, pixels);
    const Image image = image_of(at[0]);
    std::vector<Stmt> parts;
    for (int64_t part = blocks; part % p.split != 0; ++part) {
      const Index index =
          pixel_index(out, image.n, make_int(part / p.split), image.d, at[1], at[2], make_int(part % p.split * v));
      parts.push_back(out.store(index, epilogue(make_const(vector, 0), index, {})));
    }
    return seq(std::move(parts));
  });
  return seq({all, rest});
}

}  // namespace tilewright::topi
