// SPDX-License-Identifier: Apache-2.0
#include "topi/depthwise.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "topi/conv2d_loops.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Number of registers that hold weights.
int64_t held_taps(const DepthwiseProblem& p, HeldTaps held) {
  return held == HeldTaps::kAll ? p.kernel_height * p.kernel_width : held == HeldTaps::kRow ? p.kernel_width : 1;
}

// Whether every result reads one plane, inside the data: taps held in registers are not asked which planes they meet.
bool one_plane(const DepthwiseProblem& p) {
  return p.kernel_depth == 1 && p.pad_front <= 0 && (p.out_depth - 1) * p.stride_depth - p.pad_front < p.in_depth;
}

ConvAxis columns_of(const DepthwiseProblem& p) {
  return {p.in_width, p.out_width, p.kernel_width, p.stride_width, p.dilation_width, p.pad_left};
}

double depthwise_tile_cycles(const DepthwiseProblem& p, HeldTaps held, int64_t height, int64_t width,
                             const Target& target) {
  if (height == 0 || width == 0) return 0;
  // Narrow vectors: one and a half loads per cycle, one as operands of multiply-adds.
  const bool wide = target.vector_bits >= 512;
  const double fmas = target.machine.fmas_per_cycle(target.vector_bits);
  const double n = static_cast<double>(height * width), taps = static_cast<double>(p.kernel_height * p.kernel_width);
  const int64_t loads = held == HeldTaps::kOne
                            ? p.kernel_height * p.kernel_width * (height * width + 1)
                            : p.kernel_height * (height * std::min(columns_of(p).span(width), width * p.kernel_width) +
                                                 (held == HeldTaps::kRow ? p.kernel_width : 0));
  const double sums = std::max(n / fmas, 4.2) * taps;
  return std::max(sums, static_cast<double>(loads) / (wide                     ? fmas
                                                      : held == HeldTaps::kOne ? 1
                                                                               : 1.5)) +
         (12 + 2 * n) / (wide ? fmas : 1);
}

// Of one block of channels in a plane.
double plane_cycles(const DepthwiseProblem& p, const DepthwiseConfig& c, const Target& target) {
  auto rows = [&](int64_t height) {
    const int64_t whole = p.out_width / c.tile_width;
    return static_cast<double>(whole) * depthwise_tile_cycles(p, c.held, height, c.tile_width, target) +
           depthwise_tile_cycles(p, c.held, height, p.out_width % c.tile_width, target);
  };
  const int64_t tall = p.out_height / c.tile_height;
  return static_cast<double>(tall) * rows(c.tile_height) + rows(p.out_height % c.tile_height);
}

// Of one block of channels.
double plane_bytes(const DepthwiseProblem& p) { return 4.0 * static_cast<double>(p.lanes * p.in_height * p.in_width); }
double input_bytes(const DepthwiseProblem& p) {
  return plane_bytes(p) * static_cast<double>(p.batch * ceil_div(p.channels, p.lanes) * p.in_depth);
}

}  // namespace

std::vector<DepthwiseConfig> configs(const DepthwiseProblem& p, const Target& target, size_t most) {
  DepthwiseConfig best;
  double best_weighed = std::numeric_limits<double>::infinity();
  std::vector<Weighed<DepthwiseConfig>> all;
  // Wide tiles have less loop overhead, but 7 to 8 accumulators already hide the latency, so a tile that divides the
  // row beats a wider one with a remainder. Beside a row of the window 16 registers hold as many only if the row is
  // long, or as several rows: two units wait for each other with fewer than 9. Where that gains little, one row is
  // faster than predicted beside several (measured on Zen 3).
  constexpr double kRowsMustGain = 0.87;
  for (HeldTaps held : {HeldTaps::kAll, HeldTaps::kRow, HeldTaps::kOne}) {
    if (held == HeldTaps::kAll && !one_plane(p)) continue;
    // Registers hold weights, accumulators and one loaded input.
    const int64_t room = target.vector_registers - 1 - held_taps(p, held);
    if (room < 4 && held != HeldTaps::kOne) continue;
    const int64_t most_sums = std::min<int64_t>(std::max<int64_t>(room, 1), 14);
    for (int64_t h = 1; h <= (target.vector_registers < 32 ? std::min<int64_t>(p.out_height, 4) : 1); ++h)
      for (int64_t w = 1; w <= std::min(most_sums / h, p.out_width); ++w) {
        const DepthwiseConfig c{static_cast<int>(w), held, static_cast<int>(h)};
        const double cycles = plane_cycles(p, c, target);
        const double weighed = h == 1 ? cycles : cycles / kRowsMustGain;
        if (weighed < best_weighed * 0.995) best = c, best_weighed = weighed;
        all.emplace_back(weighed, c);
      }
  }
  return best_of(best, std::move(all), most);
}

DepthwiseConfig default_config(const DepthwiseProblem& p, const Target& target) { return configs(p, target, 1)[0]; }

bool fits(const DepthwiseProblem& p, const DepthwiseConfig& c) {
  return c.tile_width >= 1 && c.tile_height >= 1 && (c.held != HeldTaps::kAll || one_plane(p));
}

Cost estimate(const DepthwiseProblem& p, const DepthwiseConfig& c, const Target& target) {
  const double taps = static_cast<double>(p.kernel_depth * p.kernel_height * p.kernel_width);
  const double blocks = static_cast<double>(ceil_div(p.channels, p.lanes));
  Cost cost;
  const double rows = static_cast<double>(p.batch * p.out_depth * p.out_height);
  cost.flops = 2 * taps * rows * p.channels * p.out_width;
  cost.bytes = input_bytes(p) + 4 * blocks * p.lanes * rows * p.out_width;
  const double planes = static_cast<double>(p.batch * p.out_depth * p.kernel_depth);
  const double cycles = planes * blocks * plane_cycles(p, c, target);
  cost.microseconds =
      overlapped_microseconds(cycles, cost.bytes, cache_gbps(cost.bytes, target.machine), target.machine);
  return cost;
}

namespace {

struct DepthwiseKernel {
  const DepthwiseProblem& p;
  const DepthwiseConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const int v = p.lanes;
  const int64_t kw = p.kernel_width, plane_taps = p.kernel_height * kw;
  const PixelStrides in = pixel_strides(data, false), to = pixel_strides(out, false);
  const int64_t row_step = p.stride_height * in.height;  // from a row's pixels to those of the row below
  const DataType vector = accumulator_dtype(data.dtype()).with_lanes(v);
  const Buffer tap = make_buffer("tap", vector, held_taps(p, c.held), Scope::kRegister);
  const Buffer pixel = make_buffer("pixel", vector, 1, Scope::kRegister);

  // Pixels (row + r, w0 + i) of the result, with sums `acc`.
  struct Tile {
    const Index& at_row;  // image, channel block, plane, first row
    PrimExpr w0, out_row, weights_at, data_at;
    int height, width;
    Buffer acc;
  };

  Stmt stmt() const {
    std::vector<int64_t> units{p.batch, ceil_div(p.channels, v), p.out_depth, ceil_div(p.out_height, c.tile_height)};
    // A window's planes leave the second cache before the next result's window reads them again; its rows do not.
    const bool along_depth = p.kernel_depth > 1 && plane_bytes(p) * static_cast<double>(p.kernel_depth) >
                                                       static_cast<double>(context.target->machine.l2_bytes) / 2;
    if (along_depth) std::swap(units[2], units[3]);
    const int64_t taps = p.kernel_depth * plane_taps;
    Stmt all = parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      Index index = unravel(unit, units);
      if (along_depth) std::swap(index[2], index[3]);
      index[3] = index[3] * c.tile_height;
      return bind_all(index, [&](Index at) {
        return bind("weights_at", at[1] * (taps * v) + weights.offset, [&](const PrimExpr& weights_at) {
          std::vector<Stmt> body;
          if (c.held == HeldTaps::kAll)
            for (int64_t t = 0; t < taps; ++t) body.push_back(store(tap, make_int(t), weight(weights_at, t)));
          body.push_back(rows(at, weights_at));
          return seq(std::move(body));
        });
      });
    });
    return allocate(tap, allocate(pixel, all));
  }

  PrimExpr widened(const PrimExpr& value) const { return value->dtype == vector ? value : cast(vector, value); }
  PrimExpr weight(const PrimExpr& at, int64_t t) const { return widened(load(weights.buffer, ramp(at + t * v, 1, v))); }
  PrimExpr input(const PrimExpr& row, int64_t column) const {
    return widened(load(data.buffer, ramp(row + column * in.width, 1, v)));
  }
  // Whole tiles, or those that are left at the bottom.
  Stmt rows(const Index& at, const PrimExpr& weights_at) const {
    const int tail = static_cast<int>(p.out_height % c.tile_height);
    if (p.out_height < c.tile_height) return row(at, weights_at, tail);
    Stmt whole = row(at, weights_at, c.tile_height);
    return tail ? make_if(eq(at[3], make_int(p.out_height - tail)), row(at, weights_at, tail), whole) : whole;
  }
  static Stmt accumulate(const Tile& t, int64_t i, const PrimExpr& input, const PrimExpr& weight) {
    return store(t.acc, make_int(i), multiply_add(input, weight, load(t.acc, make_int(i))));
  }

  // One row of taps, held from index `first` on: each input pixel is loaded once and used by all taps it meets. A
  // tile's rows take turns, so that neighbouring sums do not wait for each other.
  Stmt row_by_pixel(const Tile& t, const PrimExpr& row, int64_t first) const {
    std::vector<Stmt> steps;
    const ConvAxis columns = columns_of(p);
    for (int64_t x = 0; x < columns.span(t.width); ++x) {
      for (int64_t r = 0; r < t.height; ++r) {
        std::vector<Stmt> uses;
        for (int64_t k = 0; k < kw; ++k)
          if (const int64_t o = columns.output_of(x, k, t.width); o >= 0)
            uses.push_back(accumulate(t, r * t.width + o, load(pixel, make_int(0)), load(tap, make_int(first + k))));
        if (uses.empty()) continue;
        steps.push_back(store(pixel, make_int(0), input(row + r * row_step, x)));
        steps.insert(steps.end(), uses.begin(), uses.end());
      }
    }
    return seq(std::move(steps));
  }
  // Tap by tap, with weights from the L1 cache.
  Stmt row_by_tap(const Tile& t, const PrimExpr& row, const PrimExpr& weights_row) const {
    std::vector<Stmt> steps;
    for (int64_t k = 0; k < kw; ++k) {
      steps.push_back(store(tap, make_int(0), weight(weights_row, k)));
      for (int i = 0; i < t.height * t.width; ++i) {
        const int64_t column = i % t.width * p.stride_width + k * p.dilation_width;
        steps.push_back(accumulate(t, i, input(row + i / t.width * row_step, column), load(tap, make_int(0))));
      }
    }
    return seq(std::move(steps));
  }
  PrimExpr row_at(const PrimExpr& plane_at, const PrimExpr& kh) const {
    return plane_at + kh * (p.dilation_height * in.height);
  }
  // Prefetches what the output rows below read first at this tile, a part after each row of taps: more at once would
  // exceed the core's line fill buffers. Needed for input from beyond the L2 cache: rows are pages apart, and the
  // hardware prefetcher stops at page ends.
  Stmt ask_ahead(const Tile& t, const PrimExpr& plane_at, const PrimExpr& kh) const {
    const bool rows_ahead = input_bytes(p) > static_cast<double>(context.target->machine.l2_bytes);
    const int64_t line = 64 / static_cast<int64_t>(data.dtype().bytes()),
                  lines = ceil_div(((t.width * p.stride_width - 1) * in.width + v), line),
                  share = ceil_div(lines, p.kernel_height);
    std::vector<Stmt> hints;
    const PrimExpr from = plane_at + kh * (share * line);
    const int64_t read = (p.kernel_height - 1) * p.dilation_height + 1 + (t.height - 1) * p.stride_height;
    for (int64_t r = 0; rows_ahead && r < t.height * p.stride_height; ++r)
      for (int64_t i = 0; i < share; ++i)
        hints.push_back(prefetch(data.buffer, from + ((read + r) * in.height + i * line)));
    return seq(std::move(hints));
  }

  // Taps whose weights stay in registers.
  void sum_held(std::vector<Stmt>* body, const Tile& t) const {
    for (int64_t kh = 0; kh < p.kernel_height; ++kh) {
      body->push_back(row_by_pixel(t, row_at(t.data_at, make_int(kh)), kh * kw));
      body->push_back(ask_ahead(t, t.data_at, make_int(kh)));
    }
  }
  // Row by row of taps, over the window's planes inside the data.
  Stmt sum_rows(const Tile& t) const {
    auto plane = [&](const PrimExpr& kd) {
      const PrimExpr plane_at = t.data_at + kd * (p.dilation_depth * in.depth);
      return loop("kh", p.kernel_height, [&](PrimExpr kh) {
        return bind("row", row_at(plane_at, kh), [&](const PrimExpr& row) {
          const PrimExpr weights_row = t.weights_at + kd * (plane_taps * v) + kh * (kw * v);
          if (c.held == HeldTaps::kOne) return seq({row_by_tap(t, row, weights_row), ask_ahead(t, plane_at, kh)});
          std::vector<Stmt> steps;
          for (int64_t k = 0; k < kw; ++k) steps.push_back(store(tap, make_int(k), weight(weights_row, k)));
          steps.push_back(row_by_pixel(t, row, 0));
          steps.push_back(ask_ahead(t, plane_at, kh));
          return seq(std::move(steps));
        });
      });
    };
    Conv2dProblem depth;
    depth.in_depth = p.in_depth, depth.out_depth = p.out_depth, depth.kernel_depth = p.kernel_depth;
    depth.stride_depth = p.stride_depth, depth.dilation_depth = p.dilation_depth, depth.pad_front = p.pad_front;
    const TapRange range = depth_taps(depth, t.at_row[2], t.at_row[2]);
    return bind("plane_begin", range.begin, [&](PrimExpr begin) {
      return bind("plane_end", range.end, [&](PrimExpr end) { return loop("kd", begin, std::move(end), plane); });
    });
  }

  Stmt tile(const Index& at_row, const PrimExpr& w0, const PrimExpr& data_row, const PrimExpr& out_row,
            const PrimExpr& weights_at, int height, int width) const {
    const int sums = height * width;
    Tile t{at_row, w0, out_row, weights_at, {}, height, width, make_buffer("acc", vector, sums, Scope::kRegister)};
    return bind("data_at", data_row + w0 * (p.stride_width * in.width), [&](PrimExpr data_at) {
      t.data_at = std::move(data_at);
      std::vector<Stmt> body;
      for (int i = 0; i < sums; ++i) body.push_back(store(t.acc, make_int(i), make_const(vector, 0)));
      if (c.held == HeldTaps::kAll)
        sum_held(&body, t);
      else
        body.push_back(sum_rows(t));
      for (int i = 0; i < sums; ++i) {
        const int64_t r = i / width, x = i % width;
        Index index = pixel_index(out, at_row[0], at_row[1], at_row[2], at_row[3] + r, w0 + x, make_int(0));
        PrimExpr place = out_row + w0 * to.width + (r * to.height + x * to.width);
        body.push_back(store(out.buffer, ramp(place, 1, v), epilogue(load(t.acc, make_int(i)), index, {})));
      }
      return allocate(t.acc, seq(std::move(body)));
    });
  }

  // The tiles side by side, of `height` rows.
  Stmt row(const Index& at, const PrimExpr& weights_at, int height) const {
    const int64_t tiles = p.out_width / c.tile_width;
    const int tail = static_cast<int>(p.out_width % c.tile_width);
    PrimExpr data_origin = at[0] * in.image + at[1] * in.block + at[2] * (p.stride_depth * in.depth) +
                           at[3] * (p.stride_height * in.height) +
                           (data.offset - p.pad_front * in.depth - p.pad_top * in.height - p.pad_left * in.width);
    PrimExpr out_origin = at[0] * to.image + at[1] * to.block + at[2] * to.depth + at[3] * to.height + out.offset;
    return bind("data_row", data_origin, [&](PrimExpr data_row) {
      return bind("out_row", out_origin, [&](PrimExpr out_row) {
        std::vector<Stmt> body;
        if (tiles > 0)
          body.push_back(loop("wt", tiles, [&](const PrimExpr& wt) {
            return tile(at, wt * c.tile_width, data_row, out_row, weights_at, height, c.tile_width);
          }));
        if (tail > 0)
          body.push_back(tile(at, make_int(tiles * c.tile_width), data_row, out_row, weights_at, height, tail));
        return seq(std::move(body));
      });
    });
  }
};

}  // namespace

Stmt depthwise_conv2d_nchwc(const DepthwiseProblem& p, const DepthwiseConfig& c, const View& data, const View& weights,
                            const View& out, const Epilogue& epilogue, const KernelContext& context) {
  return DepthwiseKernel{p, c, data, weights, out, epilogue, context}.stmt();
}

}  // namespace tilewright::topi
