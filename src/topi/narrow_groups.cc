// SPDX-License-Identifier: Apache-2.0
#include "topi/narrow_groups.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "topi/conv2d_loops.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

int64_t group_width(const Conv2dProblem& p) { return p.in_channels / p.groups; }
// A group fills a block: all lanes take the same channel, by a broadcast from memory, and there are no shuffles.
bool fills_block(const Conv2dProblem& p) { return group_width(p) == p.lanes; }
// Groups of 12 channels do not end at block borders: a lane's group may extend into the previous or next block.
bool crosses_blocks(const Conv2dProblem& p) { return p.lanes % group_width(p) != 0; }

// Pixels of a row that `width` adjacent outputs read.
int64_t used_pixels(const Conv2dProblem& p, int64_t width) {
  const ConvAxis columns = columns_of(p);
  int64_t used = 0;
  for (int64_t x = 0; x < columns.span(width); ++x)
    for (int64_t k = 0; k < p.kernel_width; ++k)
      if (columns.output_of(x, k, width) >= 0) {
        ++used;
        break;
      }
  return used;
}

double narrow_tile_cycles(const Conv2dProblem& p, const NarrowGroupsConfig& c, int64_t height, int64_t width,
                          const Target& target) {
  if (height == 0 || width == 0) return 0;
  const MachineModel& machine = target.machine;
  const double fmas = machine.fmas_per_cycle(target.vector_bits), loads = machine.loads_per_cycle(target.vector_bits);
  const double pixels = static_cast<double>(height * width), w = static_cast<double>(group_width(p)),
               kw = static_cast<double>(p.kernel_width);
  const double pixels_in = static_cast<double>(height * used_pixels(p, width));
  // Two shuffles if channels come from another part of the block; the first is shared by several channels.
  const double part = 4, moves = w > part ? 1 / std::min(part, static_cast<double>(c.channels)) : 0;
  const double sums = pixels * w * kw;
  if (crosses_blocks(p)) {  // a vector is assembled from two elements in memory
    const double crossing = std::max({sums / fmas, (2 * pixels_in * w + w * kw) / loads, 4.4 * w * kw});
    return static_cast<double>(p.kernel_height) * (crossing + 1 + kw * w / 4) + 24 + 2 * pixels / fmas;
  }
  if (fills_block(p)) {
    const double row = std::max({sums / fmas, 0.7 * pixels_in * w + w * kw / loads, 4.4 * w * kw});
    return static_cast<double>(p.kernel_height) * (row + 1 + kw * w / 4) + 24 + 2 * pixels / fmas;
  }
  const double shuffles = pixels_in * w * (1 + moves);
  // Shuffles, one per cycle, share a port with multiplies.
  const double row = std::max({sums / fmas, (sums + shuffles) / (1.5 * fmas), shuffles, 4.4 * w * kw,
                               (pixels_in * w / c.channels + w * kw) / loads});
  return static_cast<double>(p.kernel_height) * (row + 1 + kw * w / 4) + 24 + 2 * pixels / fmas;
}

double image_cycles(const Conv2dProblem& p, const NarrowGroupsConfig& c, const Target& target) {
  const int64_t down = p.out_height / c.tile_height, across = p.out_width / c.tile_width;
  auto rows = [&](int64_t height) {
    return static_cast<double>(across) * narrow_tile_cycles(p, c, height, c.tile_width, target) +
           narrow_tile_cycles(p, c, height, p.out_width % c.tile_width, target);
  };
  return static_cast<double>(down) * rows(c.tile_height) +
         (p.out_height % c.tile_height ? rows(p.out_height % c.tile_height) : 0);
}

}  // namespace

bool is_narrow_group(int64_t in, int64_t out, int64_t lanes) {
  // A group that fills a block has direct's kernel, too; of AVX2's, where each broadcast is an instruction and costs
  // more than the one multiply-add that direct's follows it with. With 512 bits it is an operand of the multiply-add.
  const bool held = in < lanes ? lanes % in == 0 || (in == 12 && lanes == 16) : in == lanes && lanes == 8;
  return in == out && in > 1 && held;
}

std::vector<NarrowGroupsConfig> narrow_groups_configs(const Conv2dProblem& p, const Target& target, size_t most) {
  NarrowGroupsConfig best;
  double best_cycles = std::numeric_limits<double>::infinity();
  std::vector<Weighed<NarrowGroupsConfig>> all;
  for (int64_t channels = 1; channels <= group_width(p) && group_width(p) % channels == 0; channels *= 2)
    for (int64_t height = 1; height <= std::min<int64_t>(p.out_height, 4); ++height)
      for (int64_t width = 1; width <= p.out_width; ++width) {
        // Registers hold sums, weights, a pixel and its shuffled form.
        if (height * width + channels * p.kernel_width + 2 > target.vector_registers) break;
        const NarrowGroupsConfig c{static_cast<int>(height), static_cast<int>(width), static_cast<int>(channels)};
        const double cycles = image_cycles(p, c, target);
        if (cycles < best_cycles * 0.995) best = c, best_cycles = cycles;
        all.emplace_back(cycles, c);
      }
  return best_of(best, std::move(all), most);
}

bool fits(const Conv2dProblem& p, const NarrowGroupsConfig& c) {
  return c.tile_height >= 1 && c.tile_width >= 1 && c.channels >= 1 && group_width(p) % c.channels == 0;
}

Cost estimate(const Conv2dProblem& p, const NarrowGroupsConfig& c, const Target& target) {
  const double taps = static_cast<double>(p.kernel_height * p.kernel_width * group_width(p));
  const double blocks = static_cast<double>(p.batch * ceil_div(p.out_channels, p.lanes));
  Cost cost;
  cost.flops = 2 * taps * static_cast<double>(p.batch * p.out_channels * p.out_height * p.out_width);
  cost.bytes = 4 * blocks * p.lanes * static_cast<double>(p.in_height * p.in_width + p.out_height * p.out_width);
  cost.microseconds = overlapped_microseconds(blocks * image_cycles(p, c, target), cost.bytes,
                                              cache_gbps(cost.bytes, target.machine), target.machine);
  return cost;
}

namespace {

struct NarrowGroupsKernel {
  const Conv2dProblem& p;
  const NarrowGroupsConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const int v = p.lanes;
  const int64_t width_of_group = group_width(p);
  const PixelStrides in = pixel_strides(data, false), to = pixel_strides(out, false);
  const DataType vector = accumulator_dtype(data.dtype()).with_lanes(v);
  const Buffer tap = make_buffer("tap", vector, c.channels* p.kernel_width, Scope::kRegister);
  const Buffer pixel = make_buffer("pixel", vector, 1, Scope::kRegister);

  // A block's position: where its first lane lies within
  // its group, and how many of its lanes belong to groups.
  struct Block {
    int64_t start, lanes;
  };
  // Pixels (h0 + r, w0 + i) of a channel block, with sums `acc`.
  struct Tile {
    const Index& at;  // image, channel block, row tile
    Block block;
    PrimExpr h0, w0, data_at, weights_at;
    int height, width;
    Buffer acc;
  };

  Stmt stmt() const {
    const std::vector<int64_t> units{p.batch, ceil_div(p.out_channels, v), ceil_div(p.out_height, c.tile_height)};
    const int64_t panel = p.kernel_height * p.kernel_width * width_of_group * v;
    Stmt all = parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](Index at) {
        return bind("weights_at", at[1] * panel + weights.offset, [&](const PrimExpr& weights_at) {
          return each_kind_of_block(at[1], [&](const Block& block) {
            const int tail = static_cast<int>(p.out_height % c.tile_height);
            if (p.out_height < c.tile_height) return row(at, block, weights_at, tail);
            Stmt whole = row(at, block, weights_at, c.tile_height);
            if (tail == 0) return whole;
            return make_if(eq(at[2], make_int(units[2] - 1)), row(at, block, weights_at, tail), whole);
          });
        });
      });
    });
    return allocate(tap, allocate(pixel, all));
  }

  // Blocks that begin at the same position within a group share code, except the last, which may have unused lanes.
  Stmt each_kind_of_block(const PrimExpr& block, const std::function<Stmt(const Block&)>& body) const {
    if (!crosses_blocks(p)) return body({0, v});
    const int64_t kinds = width_of_group / std::gcd(width_of_group, int64_t{v}), blocks = ceil_div(p.out_channels, v);
    auto start = [&](int64_t i) { return i * v % width_of_group; };
    const bool cut = p.out_channels % v != 0;
    const int64_t whole = blocks - (cut ? 1 : 0), used = std::min(kinds, whole);
    Stmt out = cut ? body({start(blocks - 1), p.out_channels % v}) : body({start(used - 1), v});
    for (int64_t i = cut ? used : used - 1; i-- > 0;) {
      PrimExpr is = eq(floormod(block, kinds), make_int(i));
      if (cut) is = logical_and(lt(block, make_int(whole)), is);
      out = make_if(is, body({start(i), v}), out);
    }
    return out;
  }

  Stmt row(const Index& at, const Block& block, const PrimExpr& weights_at, int height) const {
    const int64_t tiles = p.out_width / c.tile_width;
    const int tail = static_cast<int>(p.out_width % c.tile_width);
    return bind("h0", at[2] * c.tile_height, [&](PrimExpr h0) {
      std::vector<Stmt> body;
      if (tiles > 0)
        body.push_back(loop("wt", tiles, [&](const PrimExpr& wt) {
          return tile(at, block, h0, wt * c.tile_width, weights_at, height, c.tile_width);
        }));
      if (tail > 0) body.push_back(tile(at, block, h0, make_int(tiles * c.tile_width), weights_at, height, tail));
      return seq(std::move(body));
    });
  }

  Stmt tile(const Index& at, const Block& block, const PrimExpr& h0, const PrimExpr& w0, const PrimExpr& weights_at,
            int height, int width) const {
    Tile t{at,     block, h0,
           w0,     {},    weights_at,
           height, width, make_buffer("acc", vector, int64_t{height} * width, Scope::kRegister)};
    const PrimExpr from = at[0] * in.image + at[1] * in.block + h0 * (p.stride_height * in.height) +
                          w0 * (p.stride_width * in.width) +
                          (data.offset - p.pad_top * in.height - p.pad_left * in.width);
    const PrimExpr into = at[0] * to.image + at[1] * to.block + h0 * to.height + w0 * to.width + out.offset;
    return bind("data_at", from, [&](PrimExpr data_at) {
      return bind("out_at", into, [&](const PrimExpr& out_at) {
        t.data_at = data_at;
        std::vector<Stmt> body;
        for (int i = 0; i < height * width; ++i) body.push_back(store(t.acc, make_int(i), make_const(vector, 0)));
        body.push_back(loop("kh", p.kernel_height, [&](const PrimExpr& kh) { return taps_of_row(t, kh); }));
        for (int i = 0; i < height * width; ++i) {
          const int64_t r = i / width, x = i % width;
          Index index = pixel_index(out, at[0], at[1], make_int(0), h0 + r, w0 + x, make_int(0));
          body.push_back(store(out.buffer, ramp(out_at + (r * to.height + x * to.width), 1, v),
                               epilogue(load(t.acc, make_int(i)), index, {})));
        }
        return allocate(t.acc, seq(std::move(body)));
      });
    });
  }

  // A row of the window: for some of a group's channels at a time, with weights in registers while pixels are read.
  Stmt taps_of_row(const Tile& t, const PrimExpr& kh) const {
    return bind("row", t.data_at + kh * (p.dilation_height * in.height), [&](const PrimExpr& row) {
      const PrimExpr weights_row = t.weights_at + kh * (p.kernel_width * width_of_group * v);
      std::vector<Stmt> steps;
      for (int64_t first = 0; first < width_of_group; first += c.channels) {
        for (int64_t k = 0; k < p.kernel_width; ++k)
          for (int64_t i = 0; i < c.channels; ++i)
            steps.push_back(
                store(tap, make_int(k * c.channels + i),
                      widened(load(weights.buffer, ramp(weights_row + (k * width_of_group + first + i) * v, 1, v)))));
        for (int r = 0; r < t.height; ++r)
          for (int64_t x = 0; x < columns_of(p).span(t.width); ++x) pixel_passes(&steps, t, row, first, r, x);
      }
      return seq(std::move(steps));
    });
  }
  void pixel_passes(std::vector<Stmt>* steps, const Tile& t, const PrimExpr& row, int64_t first, int r,
                    int64_t x) const {
    const PrimExpr at_pixel = row + (r * p.stride_height * in.height + x * in.width);
    PrimExpr block;
    if (!crosses_blocks(p) && !fills_block(p)) block = widened(load(data.buffer, ramp(at_pixel, 1, v)));
    for (int64_t i = 0; i < c.channels; ++i) {
      std::vector<Stmt> uses;
      for (int64_t k = 0; k < p.kernel_width; ++k)
        if (const int64_t o = columns_of(p).output_of(x, k, t.width); o >= 0) {
          const PrimExpr at = make_int(r * t.width + o);
          uses.push_back(
              store(t.acc, at,
                    multiply_add(load(pixel, make_int(0)), load(tap, make_int(k * c.channels + i)), load(t.acc, at))));
        }
      if (uses.empty()) return;
      steps->push_back(store(pixel, make_int(0),
                             fills_block(p)      ? everywhere(load(data.buffer, at_pixel + (first + i)))
                             : crosses_blocks(p) ? own_element(t.block, at_pixel, first + i)
                                                 : own_channel(block, first + i)));
      steps->insert(steps->end(), uses.begin(), uses.end());
    }
  }
  // Brings each lane its group's channel: first a shuffle of 128-bit parts, shared by several channels, then one within
  // the parts.
  PrimExpr own_channel(const PrimExpr& block, int64_t channel) const {
    const int part = 16 / static_cast<int>(vector.element().bytes());
    std::vector<int> parts, lanes;
    for (int l = 0; l < v; ++l) {
      const int from = static_cast<int>(l / width_of_group * width_of_group + channel);
      parts.push_back(from / part * part + l % part);
      lanes.push_back(l / part * part + from % part);
    }
    bool in_place = true;
    for (int l = 0; l < v; ++l) in_place = in_place && parts[static_cast<size_t>(l)] == l;
    return shuffle({in_place ? block : shuffle({block}, parts)}, lanes);
  }
  // The same where groups cross block borders: each group's channel is loaded and broadcast to the group's lanes.
  // Unused lanes are zero.
  PrimExpr own_element(const Block& block, const PrimExpr& at_pixel, int64_t channel) const {
    PrimExpr out;
    auto take = [&](int64_t from_lane, const PrimExpr& value) {
      std::vector<int> lanes;
      for (int l = 0; l < v; ++l) lanes.push_back(l < from_lane ? l : v + l);
      out = out ? shuffle({out, value}, lanes) : value;
    };
    for (int64_t group = -block.start; group < block.lanes; group += width_of_group) {
      const int64_t from = group + channel, others = from < 0 ? -1 : from / v;
      const PrimExpr element = load(data.buffer, at_pixel + (others * in.block + (from - others * v)));
      take(std::max<int64_t>(0, group), everywhere(element));
    }
    if (block.lanes < v) take(block.lanes, make_const(vector, 0));
    return out;
  }
  PrimExpr everywhere(const PrimExpr& element) const {
    return broadcast(element->dtype == vector.element() ? element : cast(vector.element(), element), v);
  }
  PrimExpr widened(const PrimExpr& value) const { return value->dtype == vector ? value : cast(vector, value); }
};

}  // namespace

Stmt narrow_groups_conv2d_nchwc(const Conv2dProblem& p, const NarrowGroupsConfig& c, const View& data,
                                const View& weights, const View& out, const Epilogue& epilogue,
                                const KernelContext& context) {
  return NarrowGroupsKernel{p, c, data, weights, out, epilogue, context}.stmt();
}

}  // namespace tilewright::topi
