// SPDX-License-Identifier: Apache-2.0
#include "topi/byte_tiles.h"

#include <algorithm>
#include <cmath>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Pixels [begin, end) of an output row whose windows are inside the map.
struct Inside {
  int64_t begin, end;
};
Inside inside_columns(const ConvBytesProblem& p) {
  const int64_t last = p.in_width - 1 + p.pad_left - (p.kernel_width - 1) * p.dilation_width;
  const int64_t begin = std::min(ceil_div(p.pad_left, p.stride_width), p.out_width);
  const int64_t end = last < 0 ? begin : std::clamp(last / p.stride_width + 1, begin, p.out_width);
  return {begin, end};
}

}  // namespace

Stmt ByteTiles::tile(const BytePlace& t, int oc_rows, int pixels) const {
  const PrimExpr origin = t.n * data.strides[0] + t.group * (p.channels * data.strides[1]) +
                          (t.y * p.stride_height - p.pad_top) * data.strides[2] +
                          (t.x * p.stride_width - p.pad_left) * data.strides[3] + data.offset;
  return bind("data_at", origin, [&](const PrimExpr& data_at) {
    // The epilogue is longer than a step, so it is emitted once, in a loop over an array of sums, not per sum.
    const Buffer sum = make_buffer("sums", kInt32, int64_t{oc_rows} * pixels, Scope::kStack);
    const Stmt stores = loop("r", oc_rows, [&](const PrimExpr& r) {
      return loop("col", pixels, [&](const PrimExpr& col) {
        const Index index{t.n, t.oc + r, t.y, t.x + col};
        return out.store(index, epilogue(load(sum, r * pixels + col), index, {}), {});
      });
    });
    return allocate(sum, seq({sums_(t, oc_rows, pixels, data_at, sum), stores}));
  });
}

// A loop, not unrolled: code size matters on these devices.
Stmt ByteTiles::columns(BytePlace t, int oc_rows) const {
  const Inside in = inside_columns(p);
  const int64_t whole = (in.end - in.begin) / c.pixels, rest = (in.end - in.begin) % c.pixels;
  const BytePlace::Taps all{make_int(0), make_int(p.kernel_width)};
  std::vector<Stmt> body;
  auto inner = [&](const PrimExpr& x, int pixels) {
    BytePlace at = t;
    at.x = x, at.columns = all;
    return tile(at, oc_rows, pixels);
  };
  if (whole > 0)
    body.push_back(loop("tile", whole, [&](const PrimExpr& i) { return inner(i * c.pixels + in.begin, c.pixels); }));
  if (rest > 0) body.push_back(inner(make_int(in.end - rest), static_cast<int>(rest)));
  if (const int64_t border = p.out_width - (in.end - in.begin); border > 0)
    body.push_back(loop("border", border, [&](const PrimExpr& i) {
      return bind("x", select(lt(i, make_int(in.begin)), i, i + (in.end - in.begin)), [&](const PrimExpr& x) {
        const PrimExpr start = x * p.stride_width - p.pad_left;
        BytePlace at = t;
        at.x = x, at.whole_row = false;
        at.columns = {taps_below(start, 0, p.kernel_width, p.dilation_width),
                      taps_below(start, p.in_width, p.kernel_width, p.dilation_width)};
        return tile(at, oc_rows, 1);
      });
    }));
  return seq(std::move(body));
}

// Whether the windows of all output rows are inside the map.
bool ByteTiles::rows_inside() const {
  const int64_t end = (p.out_height - 1) * p.stride_height + (p.kernel_height - 1) * p.dilation_height - p.pad_top;
  return p.pad_top == 0 && end < p.in_height;
}

Stmt ByteTiles::stmt() const {
  const int64_t tiles = ceil_div(p.outputs, c.oc_rows), last = p.outputs % c.oc_rows;
  const std::vector<int64_t> units{p.batch, p.groups, tiles, p.out_height};
  return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
    return bind_all(unravel(unit, units), [&](const Index& at) {
      return bind("oc", at[1] * p.outputs + at[2] * c.oc_rows, [&](const PrimExpr& oc) {
        const PrimExpr start = at[3] * p.stride_height - p.pad_top;
        BytePlace t{at[0], at[1], oc, at[3], {}, {make_int(0), make_int(p.kernel_height)}, {}};
        auto with_rows = [&](const std::function<Stmt(const BytePlace&)>& body) {
          if (rows_inside()) return body(t);
          return bind("ky_begin", taps_below(start, 0, p.kernel_height, p.dilation_height), [&](const PrimExpr& b) {
            return bind("ky_end", taps_below(start, p.in_height, p.kernel_height, p.dilation_height),
                        [&](const PrimExpr& e) {
                          t.rows = {b, e};
                          return body(t);
                        });
          });
        };
        return with_rows([&](const BytePlace& placed) {
          if (last == 0) return columns(placed, c.oc_rows);
          if (tiles == 1) return columns(placed, static_cast<int>(last));
          return make_if(eq(at[2], make_int(tiles - 1)), columns(placed, static_cast<int>(last)),
                         columns(placed, c.oc_rows));
        });
      });
    });
  });
}

double byte_tiles_instructions(const ConvBytesProblem& p, const ConvBytesConfig& c, const TileInstructions& tile) {
  auto over = [](int64_t extent, int64_t size, auto&& f) {
    const int64_t whole = extent / size;
    double sum = static_cast<double>(whole) * f(static_cast<double>(size));
    if (extent % size != 0) sum += f(static_cast<double>(extent % size));
    return sum;
  };
  const Inside in = inside_columns(p);
  const double row = over(p.outputs, c.oc_rows, [&](double rows) {
    double sum = static_cast<double>(p.out_width - (in.end - in.begin)) * tile(rows, 1, false);
    if (in.end > in.begin)
      sum += over(in.end - in.begin, c.pixels, [&](double pixels) { return tile(rows, pixels, true); });
    return sum;
  });
  return row * static_cast<double>(p.batch * p.groups * p.out_height);
}

std::vector<ConvBytesConfig> byte_tile_configs(const ConvBytesProblem& p, int sums, size_t most,
                                               const std::function<bool(const ConvBytesConfig&)>& fits,
                                               const TileInstructions& tile) {
  std::vector<Weighed<ConvBytesConfig>> all;
  ConvBytesConfig best;
  double best_instructions = HUGE_VAL;
  for (int rows = 1; rows <= std::min<int64_t>(p.outputs, sums); ++rows)
    for (int pixels = 1; pixels <= std::min<int64_t>(p.out_width, sums) && rows * pixels <= sums; ++pixels) {
      const ConvBytesConfig c{rows, pixels};
      if (!fits(c)) continue;
      // Each tile size has separate code.
      const Inside in = inside_columns(p);
      const int kinds =
          1 + static_cast<int>(p.outputs % rows != 0) + static_cast<int>((in.end - in.begin) % pixels != 0);
      const double instructions = byte_tiles_instructions(p, c, tile) * (1 + 0.02 * kinds);
      if (instructions < best_instructions) best = c, best_instructions = instructions;
      all.emplace_back(instructions, c);
    }
  if (all.empty()) return {};
  return best_of(best, std::move(all), most);
}

Cost byte_tiles_cost(const ConvBytesProblem& p, double instructions, const Target& target) {
  Cost cost;
  const auto outputs = static_cast<double>(p.batch * p.groups * p.outputs * p.out_height * p.out_width);
  cost.flops = 2 * outputs * static_cast<double>(p.channels * p.kernel_height * p.kernel_width);
  cost.bytes = static_cast<double>(p.batch * p.groups * p.channels * p.in_height * p.in_width) + outputs;
  cost.microseconds = instructions / target.machine.cycles_per_microsecond();
  return cost;
}

}  // namespace tilewright::topi
