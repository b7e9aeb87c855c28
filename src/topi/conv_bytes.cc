// SPDX-License-Identifier: Apache-2.0
#include "topi/conv_bytes.h"

#include <algorithm>
#include <cmath>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Sums, a weight and a tile's data stay in the thirteen registers that a Cortex-M has beside two addresses and a count:
// with eight sums GCC 12 spills.
constexpr int kSumRegisters = 6;
// Of a loop over channels, where a step is short.
int64_t channels_together(const ConvBytesProblem& p) { return p.kernel_width == 1 && p.channels % 4 == 0 ? 4 : 1; }

// Pixels [begin, end) of an output row whose windows lie in the map.
struct Inside {
  int64_t begin, end;
};
Inside inside_columns(const ConvBytesProblem& p) {
  const int64_t last = p.in_width - 1 + p.pad_left - (p.kernel_width - 1) * p.dilation_width;
  const int64_t begin = std::min(ceil_div(p.pad_left, p.stride_width), p.out_width);
  const int64_t end = last < 0 ? begin : std::clamp(last / p.stride_width + 1, begin, p.out_width);
  return {begin, end};
}

double tile_instructions(const ConvBytesProblem& p, double rows, double pixels) {
  const double taps = static_cast<double>(p.kernel_width), distinct = pixels + taps - 1;
  const bool shared = p.stride_width == 1 && p.dilation_width == 1;  // neighbours read the same data
  const double loads = shared ? distinct : pixels * taps;
  const double body = loads * (p.zero != 0 ? 2 : 1) + rows * taps + rows * pixels * taps;
  const double steps = static_cast<double>(p.channels * p.kernel_height);
  return steps * (body + 3.0 / static_cast<double>(channels_together(p))) + 12 + rows * pixels * 22;
}

double conv_bytes_instructions(const ConvBytesProblem& p, const ConvBytesConfig& c) {
  auto over = [](int64_t extent, int64_t size, auto&& f) {
    const int64_t whole = extent / size;
    double sum = static_cast<double>(whole) * f(static_cast<double>(size));
    if (extent % size != 0) sum += f(static_cast<double>(extent % size));
    return sum;
  };
  const Inside in = inside_columns(p);
  const double row = over(p.outputs, c.oc_rows, [&](double rows) {
    double sum = static_cast<double>(p.out_width - (in.end - in.begin)) * tile_instructions(p, rows, 1) * 1.2;
    if (in.end > in.begin)
      sum += over(in.end - in.begin, c.pixels, [&](double pixels) { return tile_instructions(p, rows, pixels); });
    return sum;
  });
  return row * static_cast<double>(p.batch * p.groups * p.out_height);
}

struct BytesKernel {
  const ConvBytesProblem& p;
  const ConvBytesConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;

  struct Taps {
    PrimExpr begin, end;
  };
  // Where a tile stands: image, group, first output channel (of all), output row, first pixel, and its taps.
  struct Place {
    PrimExpr n, group, oc, y, x;
    Taps rows, columns;
    bool whole_row = true;  // every tap of a row lies in the map
  };

  PrimExpr centred(const PrimExpr& at) const {
    PrimExpr value = cast(kInt32, load(data.buffer, at));
    return p.zero != 0 ? value - make_int(p.zero, kInt32) : value;
  }
  Stmt step(const RegisterTile& acc, const PrimExpr& from, const PrimExpr& tap) const {
    const int64_t per_output = p.channels * p.kernel_height * p.kernel_width;
    return acc.step([&](int r) { return load(weights.buffer, tap + r * per_output); },
                    [&](int col) { return centred(from + col * p.stride_width * data.strides[3]); });
  }
  // All taps of a row and some channels, one after another.
  Stmt row_of_taps(const Place& t, const RegisterTile& acc, const PrimExpr& from, const PrimExpr& tap) const {
    const int64_t in_row = p.dilation_width * data.strides[3];
    if (!t.whole_row || p.kernel_width > 16)
      return loop("kx", t.columns.begin, t.columns.end,
                  [&](const PrimExpr& k) { return step(acc, from + k * in_row, tap + k); });
    std::vector<Stmt> all;
    for (int64_t k = 0; k < p.kernel_width; ++k) all.push_back(step(acc, from + k * in_row, tap + k));
    return seq(std::move(all));
  }
  Stmt sums(const Place& t, const RegisterTile& acc, const PrimExpr& data_at, const PrimExpr& weights_at) const {
    const int64_t taps = p.kernel_height * p.kernel_width;
    const int64_t together = channels_together(p);
    return loop("ky", t.rows.begin, t.rows.end, [&](const PrimExpr& k) {
      return bind("row_at", data_at + k * (p.dilation_height * data.strides[2]), [&](const PrimExpr& row_at) {
        return bind("taps_at", weights_at + k * p.kernel_width, [&](const PrimExpr& taps_at) {
          return loop("ic", p.channels / together, [&](const PrimExpr& i) {
            std::vector<Stmt> all;
            for (int64_t part = 0; part < together; ++part)
              all.push_back(row_of_taps(t, acc, row_at + (i * together + part) * data.strides[1],
                                        taps_at + (i * together + part) * taps));
            return seq(std::move(all));
          });
        });
      });
    });
  }
  Stmt tile(const Place& t, int oc_rows, int pixels) const {
    const RegisterTile acc(oc_rows, pixels, kInt32);
    const int64_t per_output = p.channels * p.kernel_height * p.kernel_width;
    const PrimExpr origin = t.n * data.strides[0] + t.group * (p.channels * data.strides[1]) +
                            (t.y * p.stride_height - p.pad_top) * data.strides[2] +
                            (t.x * p.stride_width - p.pad_left) * data.strides[3] + data.offset;
    return bind("data_at", origin, [&](const PrimExpr& data_at) {
      return bind("weights_at", t.oc * per_output + weights.offset, [&](const PrimExpr& weights_at) {
        // What follows a sum is longer than a step: it is there once, behind an array, and not for each sum.
        const Buffer sum = make_buffer("sums", kInt32, int64_t{oc_rows} * pixels, Scope::kStack);
        const Stmt keep = acc.drain([&](int r, int col, const PrimExpr& value) {
          return store(sum, make_int(int64_t{r} * pixels + col), value);
        });
        const Stmt stores = loop("r", oc_rows, [&](const PrimExpr& r) {
          return loop("col", pixels, [&](const PrimExpr& col) {
            const Index index{t.n, t.oc + r, t.y, t.x + col};
            return out.store(index, epilogue(load(sum, r * pixels + col), index, {}), {});
          });
        });
        return allocate(sum, seq({acc.scope(seq({acc.clear(), sums(t, acc, data_at, weights_at), keep})), stores}));
      });
    });
  }
  // One after another, not unrolled: code is memory, too.
  Stmt columns(Place t, int oc_rows) const {
    const Inside in = inside_columns(p);
    const int64_t whole = (in.end - in.begin) / c.pixels, rest = (in.end - in.begin) % c.pixels;
    const Taps all{make_int(0), make_int(p.kernel_width)};
    std::vector<Stmt> body;
    auto inner = [&](const PrimExpr& x, int pixels) {
      Place at = t;
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
          Place at = t;
          at.x = x, at.whole_row = false;
          at.columns = {taps_below(start, 0, p.kernel_width, p.dilation_width),
                        taps_below(start, p.in_width, p.kernel_width, p.dilation_width)};
          return tile(at, oc_rows, 1);
        });
      }));
    return seq(std::move(body));
  }
  // Whether every window of every output row lies in the map.
  bool rows_inside() const {
    const int64_t end = (p.out_height - 1) * p.stride_height + (p.kernel_height - 1) * p.dilation_height - p.pad_top;
    return p.pad_top == 0 && end < p.in_height;
  }
  Stmt stmt() const {
    const int64_t tiles = ceil_div(p.outputs, c.oc_rows), last = p.outputs % c.oc_rows;
    const std::vector<int64_t> units{p.batch, p.groups, tiles, p.out_height};
    return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](const Index& at) {
        return bind("oc", at[1] * p.outputs + at[2] * c.oc_rows, [&](const PrimExpr& oc) {
          const PrimExpr start = at[3] * p.stride_height - p.pad_top;
          Place t{at[0], at[1], oc, at[3], {}, {make_int(0), make_int(p.kernel_height)}, {}};
          auto with_rows = [&](const std::function<Stmt(const Place&)>& body) {
            if (rows_inside()) return body(t);
            return bind("ky_begin", taps_below(start, 0, p.kernel_height, p.dilation_height), [&](const PrimExpr& b) {
              return bind("ky_end", taps_below(start, p.in_height, p.kernel_height, p.dilation_height),
                          [&](const PrimExpr& e) {
                            t.rows = {b, e};
                            return body(t);
                          });
            });
          };
          return with_rows([&](const Place& placed) {
            if (last == 0) return columns(placed, c.oc_rows);
            if (tiles == 1) return columns(placed, static_cast<int>(last));
            return make_if(eq(at[2], make_int(tiles - 1)), columns(placed, static_cast<int>(last)),
                           columns(placed, c.oc_rows));
          });
        });
      });
    });
  }
};

}  // namespace

bool fits(const ConvBytesProblem&, const ConvBytesConfig& c) {
  return c.oc_rows >= 1 && c.pixels >= 1 && c.oc_rows * c.pixels <= 64;
}

std::vector<ConvBytesConfig> configs(const ConvBytesProblem& p, size_t most) {
  std::vector<Weighed<ConvBytesConfig>> all;
  ConvBytesConfig best;
  double best_instructions = HUGE_VAL;
  for (int rows = 1; rows <= std::min<int64_t>(p.outputs, kSumRegisters); ++rows)
    for (int pixels = 1; pixels <= std::min<int64_t>(p.out_width, kSumRegisters) && rows * pixels <= kSumRegisters;
         ++pixels) {
      const ConvBytesConfig c{rows, pixels};
      // A tile of another size is code of its own.
      const Inside in = inside_columns(p);
      const int kinds =
          1 + static_cast<int>(p.outputs % rows != 0) + static_cast<int>((in.end - in.begin) % pixels != 0);
      const double instructions = conv_bytes_instructions(p, c) * (1 + 0.02 * kinds);
      if (instructions < best_instructions) best = c, best_instructions = instructions;
      all.emplace_back(instructions, c);
    }
  return best_of(best, std::move(all), most);
}

Cost estimate(const ConvBytesProblem& p, const ConvBytesConfig& c, const Target& target) {
  Cost cost;
  const auto outputs = static_cast<double>(p.batch * p.groups * p.outputs * p.out_height * p.out_width);
  cost.flops = 2 * outputs * static_cast<double>(p.channels * p.kernel_height * p.kernel_width);
  cost.bytes = static_cast<double>(p.batch * p.groups * p.channels * p.in_height * p.in_width) + outputs;
  cost.microseconds = conv_bytes_instructions(p, c) / target.machine.cycles_per_microsecond();
  return cost;
}

Stmt conv_bytes(const ConvBytesProblem& p, const ConvBytesConfig& c, const View& data, const View& weights,
                const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(data.rank() == 4 && out.rank() == 4, "conv_bytes: ranks");
  return BytesKernel{p, c, data, weights, out, epilogue, context}.stmt();
}

}  // namespace tilewright::topi
