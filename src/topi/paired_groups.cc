// SPDX-License-Identifier: Apache-2.0
#include "topi/paired_groups.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Channels per group and blocks per pair of groups: output blocks before `middle` belong to the first group, those
// behind it to the second.
struct Pairs {
  explicit Pairs(const Conv2dProblem& p)
      : in(p.in_channels / p.groups),
        out(p.out_channels / p.groups),
        v(int64_t{2} * p.lanes),
        count(ceil_div(p.groups, 2)),
        cols(static_cast<int>(2 * out / v)),
        middle(cols / 2),
        lone(p.groups % 2 != 0) {}
  int64_t in, out, v, count;
  int cols, middle;
  bool lone;  // the last pair has one group only
};

// Unrolled input channels of the reduction loop; those of one iteration are in one block.
constexpr int64_t kChannelsUnrolled = 4;

// Registers besides the sums: the weights of a step, both groups' elements, and the two combined.
bool pair_fits(int width, int cols, const Target& target) { return width * cols + cols + 3 <= target.vector_registers; }

double pair_tile_cycles(const Conv2dProblem& p, int64_t width, int first, int cols, const Target& target) {
  if (width == 0 || cols == 0) return 0;
  const Pairs pairs(p);
  const MachineModel& machine = target.machine;
  const double fmas = machine.fmas_per_cycle(target.vector_bits), loads = machine.loads_per_cycle(target.vector_bits);
  const bool blends = first <= pairs.middle && pairs.middle < first + cols;
  const double elements = (first <= pairs.middle ? 1 : 0) + (first + cols > pairs.middle ? 1 : 0);
  const auto rows = static_cast<double>(width);
  // A blend can run in parallel to multiply-adds, but still costs issue slots.
  const double sums = (rows * cols + (blends ? 0.3 * rows : 0)) / fmas;
  const double step = std::max({sums, (cols + rows * elements * 1.1) / loads, 4.6}) + 0.15;
  return step * static_cast<double>(p.kernel_height * p.kernel_width * pairs.in) + 30 + 2.0 * rows * cols / fmas;
}

double pair_row_cycles(const Conv2dProblem& p, const PairedGroupsConfig& c, const Target& target) {
  const Pairs pairs(p);
  const int64_t whole = p.out_width / c.tile_width;
  double cycles = 0;
  for (int first = 0; first < pairs.cols; first += c.cols) {
    const int cols = std::min(c.cols, pairs.cols - first);
    cycles += static_cast<double>(whole) * pair_tile_cycles(p, c.tile_width, first, cols, target) +
              pair_tile_cycles(p, p.out_width % c.tile_width, first, cols, target);
  }
  return cycles;
}

}  // namespace

bool has_paired_groups(const Conv2dProblem& p) {
  if (p.split != 2 || p.groups < 2 || p.plain_data || p.words() || p.kernel_depth != 1 || p.in_depth != 1) return false;
  const Pairs pairs(p);
  return pairs.in % p.lanes == 0 && pairs.out % p.lanes == 0 && pairs.out % pairs.v != 0;
}

std::vector<PairedGroupsConfig> paired_groups_configs(const Conv2dProblem& p, const Target& target, size_t most) {
  const Pairs pairs(p);
  PairedGroupsConfig best;
  double best_cycles = std::numeric_limits<double>::infinity();
  std::vector<Weighed<PairedGroupsConfig>> all;
  for (int cols = 1; cols <= pairs.cols; ++cols)
    for (int width = 1; width <= p.out_width && pair_fits(width, cols, target); ++width) {
      const PairedGroupsConfig c{width, cols};
      const double cycles = pair_row_cycles(p, c, target);
      if (cycles < best_cycles * 0.995) best = c, best_cycles = cycles;
      all.emplace_back(cycles, c);
    }
  return best_of(best, std::move(all), most);
}

bool fits(const Conv2dProblem& p, const PairedGroupsConfig& c) {
  return c.tile_width >= 1 && c.cols >= 1 && c.cols <= Pairs(p).cols;
}

Cost estimate(const Conv2dProblem& p, const PairedGroupsConfig& c, const Target& target) {
  const Pairs pairs(p);
  const double taps = static_cast<double>(p.kernel_height * p.kernel_width * pairs.in);
  const auto pixels = static_cast<double>(p.batch * p.out_height * p.out_width);
  Cost cost;
  cost.flops = 2 * taps * pixels * static_cast<double>(p.out_channels);
  const double weights = 4 * taps * static_cast<double>(pairs.count * pairs.cols * pairs.v);
  cost.bytes = 4 * static_cast<double>(p.batch * p.in_channels * p.in_height * p.in_width) +
               4 * pixels * static_cast<double>(p.out_channels) + weights;
  const double rows = static_cast<double>(p.batch * p.out_height) * static_cast<double>(pairs.count);
  cost.microseconds = std::max(rows * pair_row_cycles(p, c, target) / target.machine.cycles_per_microsecond(),
                               weights / (target.machine.dram_gbps * 1e3));
  return cost;
}

std::vector<int64_t> paired_weight_shape(const Conv2dProblem& p) {
  const Pairs pairs(p);
  return {pairs.count, p.kernel_height, p.kernel_width, pairs.in, pairs.cols, pairs.v};
}

Tensor pack_paired_weights(const Tensor& halves, const Conv2dProblem& p) {
  const Pairs pairs(p);
  const int64_t lanes = p.lanes, ic_blocks = pairs.in / lanes, taps = p.kernel_height * p.kernel_width;
  const auto element = static_cast<int64_t>(halves.dtype().bytes()), half = lanes * element;
  TW_ICHECK(halves.size() == p.out_channels * pairs.in * taps, "pack_paired_weights: halves of blocks");
  Tensor packed = Tensor::zeros(halves.dtype(), paired_weight_shape(p));
  const std::byte* from = halves.raw();
  std::byte* to = packed.mutable_raw();
  const int64_t per_pair = 2 * pairs.cols;  // half blocks
  for (int64_t block = 0; block < p.out_channels / lanes; ++block)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t ic = 0; ic < pairs.in; ++ic) {
        const int64_t source = (((block * ic_blocks + ic / lanes) * taps + tap) * lanes + ic % lanes) * half;
        const int64_t place = ((block / per_pair * taps + tap) * pairs.in + ic) * per_pair + block % per_pair;
        std::memcpy(to + place * half, from + source, static_cast<size_t>(half));
      }
  return packed;
}

namespace {

struct PairedGroupsKernel {
  const Conv2dProblem& p;
  const PairedGroupsConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const Pairs pairs{p};
  const int v = static_cast<int>(pairs.v);
  const PixelStrides in = pixel_strides(data, false), to = pixel_strides(out, false);
  const DataType vector = accumulator_dtype(data.dtype()).with_lanes(v);
  const Buffer first_element = make_buffer("first_element", vector, 1, Scope::kRegister),
               second_element = make_buffer("second_element", vector, 1, Scope::kRegister),
               both_elements = make_buffer("both_elements", vector, 1, Scope::kRegister);

  // Pixels of a row from w0 on, by output blocks of a pair from `first` on.
  struct Tile {
    const Index& at;  // image, pair, row
    PrimExpr w0, data_at, weights_at;
    int width, first, cols;
    bool alone;  // the pair has one group only
    Buffer acc, held;
    bool takes_first(int middle) const { return first <= middle; }
    bool takes_second(int middle) const { return first + cols > middle && !alone; }
    bool takes_both(int middle) const { return first <= middle && middle < first + cols; }
  };

  Stmt stmt() const {
    const std::vector<int64_t> units{p.batch, pairs.count, p.out_height};
    Stmt all = parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](Index at) {
        Stmt whole = row(at, false);
        return pairs.lone ? make_if(eq(at[1], make_int(pairs.count - 1)), row(at, true), whole) : whole;
      });
    });
    return allocate(first_element, allocate(second_element, allocate(both_elements, all)));
  }

  Stmt row(const Index& at, bool alone) const {
    std::vector<Stmt> body;
    // A single group has its own blocks and the middle one.
    const int columns = alone ? pairs.middle + 1 : pairs.cols;
    for (int first = 0; first < columns; first += c.cols) {
      const int cols = std::min(c.cols, columns - first);
      const int64_t tiles = p.out_width / c.tile_width;
      const int tail = static_cast<int>(p.out_width % c.tile_width);
      if (tiles > 0)
        body.push_back(loop("wt", tiles, [&](const PrimExpr& wt) {
          return tile(at, wt * c.tile_width, c.tile_width, first, cols, alone);
        }));
      if (tail > 0) body.push_back(tile(at, make_int(tiles * c.tile_width), tail, first, cols, alone));
    }
    return seq(std::move(body));
  }

  Stmt tile(const Index& at, const PrimExpr& w0, int width, int first, int cols, bool alone) const {
    Tile t{at,
           w0,
           {},
           {},
           width,
           first,
           cols,
           alone,
           make_buffer("acc", vector, int64_t{width} * cols, Scope::kRegister),
           make_buffer("held", vector, cols, Scope::kRegister)};
    const PrimExpr from = at[0] * in.image + at[1] * (2 * pairs.in / v * in.block) +
                          at[2] * (p.stride_height * in.height) + w0 * (p.stride_width * in.width) +
                          (data.offset - p.pad_top * in.height - p.pad_left * in.width);
    const int64_t panel = p.kernel_height * p.kernel_width * pairs.in * pairs.cols * v;
    const PrimExpr into = at[0] * to.image + (at[1] * int64_t{pairs.cols} + first) * to.block + at[2] * to.height +
                          w0 * to.width + out.offset;
    return bind_all({from, at[1] * panel + (weights.offset + first * v), into}, [&](Index base) {
      t.data_at = base[0], t.weights_at = base[1];
      std::vector<Stmt> body;
      for (int i = 0; i < width * cols; ++i) body.push_back(store(t.acc, make_int(i), make_const(vector, 0)));
      body.push_back(sums(t));
      for (int i = 0; i < width; ++i)
        for (int col = 0; col < cols; ++col) {
          Index index = pixel_index(out, at[0], at[1] * int64_t{pairs.cols} + (first + col), make_int(0), at[2], w0 + i,
                                    make_int(0));
          body.push_back(store(out.buffer, ramp(base[2] + (col * to.block + i * to.width), 1, v),
                               epilogue(load(t.acc, make_int(i * cols + col)), index, {})));
        }
      return allocate(t.acc, allocate(t.held, seq(std::move(body))));
    });
  }

  Stmt sums(const Tile& t) const {
    const int64_t steps = pairs.in / kChannelsUnrolled, per_block = v / kChannelsUnrolled;
    return loop("kh", p.kernel_height, [&](const PrimExpr& kh) {
      return loop("kw", p.kernel_width, [&](const PrimExpr& kw) {
        const PrimExpr tap_at = t.data_at + (kh * (p.dilation_height * in.height) + kw * (p.dilation_width * in.width));
        const PrimExpr weights_at = t.weights_at + (kh * p.kernel_width + kw) * (pairs.in * pairs.cols * v);
        return loop("ic", steps, [&](const PrimExpr& ic) {
          // The second group's channels follow the first's, beginning half a block further.
          auto place = [&](const PrimExpr& step) {
            return tap_at + (floordiv(step, per_block) * in.block + floormod(step, per_block) * kChannelsUnrolled);
          };
          return bind_all({place(ic), place(ic + steps), weights_at + ic * (kChannelsUnrolled * pairs.cols * v)},
                          [&](Index at) { return channels(t, at[0], at[1], at[2]); });
        });
      });
    });
  }

  Stmt channels(const Tile& t, const PrimExpr& first_at, const PrimExpr& second_at, const PrimExpr& weights_at) const {
    std::vector<Stmt> body;
    const PrimExpr zero = make_int(0);
    auto element = [&](const PrimExpr& at) {
      PrimExpr value = load(data.buffer, at);
      if (value->dtype != vector.element()) value = cast(vector.element(), value);
      return broadcast(value, v);
    };
    for (int64_t u = 0; u < kChannelsUnrolled; ++u) {
      for (int col = 0; col < t.cols; ++col) {
        PrimExpr w = load(weights.buffer, ramp(weights_at + (u * pairs.cols + col) * v, 1, v));
        body.push_back(store(t.held, make_int(col), w->dtype == vector ? w : cast(vector, w)));
      }
      for (int i = 0; i < t.width; ++i) {
        const int64_t pixel = i * p.stride_width * in.width + u;
        if (t.takes_first(pairs.middle)) body.push_back(store(first_element, zero, element(first_at + pixel)));
        if (t.takes_second(pairs.middle)) body.push_back(store(second_element, zero, element(second_at + pixel)));
        if (t.takes_both(pairs.middle)) body.push_back(store(both_elements, zero, both(t.alone)));
        for (int col = 0; col < t.cols; ++col) {
          const int block = t.first + col;
          const Buffer& own = block < pairs.middle    ? first_element
                              : block == pairs.middle ? both_elements
                                                      : second_element;
          const PrimExpr at = make_int(i * t.cols + col);
          body.push_back(store(t.acc, at, multiply_add(load(own, zero), load(t.held, make_int(col)), load(t.acc, at))));
        }
      }
    }
    return seq(std::move(body));
  }
  // The first group's element in the lower half, the second's in the upper. Zero without a second group: anything else
  // there, times zero weights, could give NaN.
  PrimExpr both(bool alone) const {
    std::vector<int> lanes;
    for (int l = 0; l < v; ++l) lanes.push_back(l < v / 2 ? l : v + l);
    const PrimExpr zero = make_int(0);
    return shuffle({load(first_element, zero), alone ? make_const(vector, 0) : load(second_element, zero)}, lanes);
  }
};

}  // namespace

Stmt paired_groups_conv2d_nchwc(const Conv2dProblem& p, const PairedGroupsConfig& c, const View& data,
                                const View& weights, const View& out, const Epilogue& epilogue,
                                const KernelContext& context) {
  TW_ICHECK(has_paired_groups(p), "paired_groups_conv2d_nchwc: problem");
  return PairedGroupsKernel{p, c, data, weights, out, epilogue, context}.stmt();
}

}  // namespace tilewright::topi
