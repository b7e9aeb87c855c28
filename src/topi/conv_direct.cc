// SPDX-License-Identifier: Apache-2.0
#include "topi/conv_direct.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Loop extents: output and input channels of a group, and the output's last two dimensions.
struct Extents {
  int64_t oc, ic, height, width;
  int lanes;
  int64_t vectors;  // along the width; the last may be partial
  int last_lanes;   // lanes of the last vector: half, if that is enough
  bool wide;        // uses 512-bit vectors
};

Extents extents_of(const ConvDirectProblem& p, const View& data, const View& out, const Target& target) {
  Extents e{};
  e.oc = out.shape[1] / p.groups, e.ic = data.shape[1] / p.groups;
  e.height = p.kernel.size() > 1 ? out.shape[out.shape.size() - 2] : 1;
  e.width = out.shape.back();
  e.lanes = e.width == 1 ? 1 : target.lanes(std::max<int>(32, accumulator_dtype(data.dtype()).bits));
  // 512-bit operations cost twice as much as 256-bit ones on 256-bit units, and no less elsewhere.
  const int bits = accumulator_dtype(data.dtype()).bits;
  if (e.lanes * bits == 512 && 2 * e.width <= e.lanes) e.lanes /= 2;
  e.wide = e.lanes * bits == 512;
  e.vectors = ceil_div(e.width, int64_t{e.lanes});
  const int64_t left = e.width % e.lanes;
  e.last_lanes = e.wide && e.width > e.lanes && left != 0 && 2 * left <= e.lanes ? e.lanes / 2 : e.lanes;
  return e;
}

double conv_direct_cycles(const ConvDirectProblem& p, const ConvDirectConfig& c, const View& data, const View& out,
                          const Target& target) {
  const Extents e = extents_of(p, data, out, target);
  const int bits = e.wide ? 512 : std::min(target.vector_bits, 256);
  const double per_cycle = target.machine.fmas_per_cycle(bits);
  const double half = e.last_lanes < e.lanes && target.machine.halves_pay(bits) ? 0.5 : 0;
  const double steps = static_cast<double>(product(p.kernel) * e.ic);
  // Vectors are unaligned: half of them cross a cache line. Stride 2 is assembled from two vectors, larger strides lane
  // by lane.
  const int64_t stride = p.strides.back();
  const double vector_load = e.lanes == 1                        ? 1
                             : stride == 1                       ? 1.4
                             : stride == 2 && e.width >= e.lanes ? 4
                                                                 : 2.0 * e.lanes;
  auto tile = [&](double rows, double cols) {
    const double step = std::max({rows * cols / per_cycle, (cols * vector_load + rows * 0.7) / per_cycle, 4.2});
    return steps * (step + 0.3) + 30 + 2 * rows * cols / (e.wide ? per_cycle : 1);
  };
  auto over = [](int64_t extent, int64_t size, auto&& f) {
    const int64_t whole = extent / size;
    double cycles = static_cast<double>(whole) * f(size);
    if (extent % size) cycles += f(extent % size);
    return cycles;
  };
  const double image = over(e.oc, c.oc_rows, [&](int64_t oc) {
    return over(e.height, c.rows, [&](int64_t rows) {
      auto of = [&](double vectors) { return tile(static_cast<double>(oc), static_cast<double>(rows) * vectors); };
      const double cycles =
          over(e.vectors, c.vectors, [&](int64_t vectors) { return of(static_cast<double>(vectors)); });
      if (half == 0) return cycles;
      const int64_t last = e.vectors % c.vectors ? e.vectors % c.vectors : c.vectors;
      return cycles - of(static_cast<double>(last)) + of(static_cast<double>(last) - half);
    });
  });
  const int64_t images = product(out.shape) / (out.shape[1] * e.height * e.width);
  return image * static_cast<double>(images * p.groups);
}

}  // namespace

std::vector<ConvDirectConfig> configs(const ConvDirectProblem& p, const View& data, const View& out,
                                      const Target& target, size_t most) {
  const Extents e = extents_of(p, data, out, target);
  ConvDirectConfig best;
  double best_cycles = std::numeric_limits<double>::infinity();
  std::vector<Weighed<ConvDirectConfig>> all;
  for (int vectors = 1; vectors <= std::min<int64_t>(e.vectors, 6); ++vectors)
    for (int rows = 1; rows <= std::min<int64_t>(e.height, 6); ++rows)
      for (int oc = 1; oc <= std::min<int64_t>(e.oc, 8) && tile_fits(oc, rows * vectors, target); ++oc) {
        const ConvDirectConfig c{oc, rows, vectors};
        const double cycles = conv_direct_cycles(p, c, data, out, target);
        if (cycles < best_cycles * 0.995) best = c, best_cycles = cycles;
        all.emplace_back(cycles, c);
      }
  return best_of(best, std::move(all), most);
}

ConvDirectConfig default_config(const ConvDirectProblem& p, const View& data, const View& out, const Target& target) {
  return configs(p, data, out, target, 1)[0];
}

Cost estimate(const ConvDirectProblem& p, const ConvDirectConfig& c, const View& data, const View& out,
              const Target& target) {
  Cost cost;
  const int64_t channels = data.shape[1] / p.groups;
  const auto taps = static_cast<double>(product(p.kernel) * channels);
  const double outputs = static_cast<double>(product(out.shape));
  cost.flops = 2 * taps * outputs;
  cost.bytes = 4 * (static_cast<double>(product(data.shape)) + outputs);
  cost.microseconds = overlapped_microseconds(conv_direct_cycles(p, c, data, out, target), cost.bytes,
                                              target.machine.l3_gbps, target.machine);
  return cost;
}

namespace {

struct DirectKernel {
  const ConvDirectProblem& p;
  const ConvDirectConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const int spatial = static_cast<int>(p.kernel.size()), rank = spatial + 2;
  const Extents e = extents_of(p, data, out, *context.target);
  const int v = e.lanes;
  const int64_t step_w = p.strides.back() * data.strides.back();
  const int64_t step_h = spatial > 1 ? p.strides[spatial - 2] * data.strides[rank - 2] : 0;
  const DataType vector = accumulator_dtype(data.dtype()).with_lanes(v);
  // The remainder of a row: a full vector that overlaps its predecessor, since strided loads with masks would go lane
  // by lane; not possible in rows shorter than a vector.
  const int64_t left = e.width % v;
  const bool overlaps = left != 0 && e.width > v;
  const PrimExpr short_row = e.width < v ? tail_mask(v, e.width) : PrimExpr();
  const PrimExpr own_lanes = lanes_of_last();

  PrimExpr lanes_of_last() const {
    PrimExpr own = overlaps ? le(broadcast(make_int(e.last_lanes - left), v), ramp(make_int(0), 1, v)) : short_row;
    return e.last_lanes < v ? logical_and(own, tail_mask(v, e.last_lanes)) : own;
  }

  // Output channels from oc0, output rows from place's, vectors
  // from w0 / v; `ends`: includes the row's last vector.
  struct Tile {
    PrimExpr oc0, w0;
    const Index& place;
    int oc_rows, rows, vectors;
    bool ends;
    const RegisterTile& acc;
    bool is_last(int col) const { return ends && col % vectors == vectors - 1; }
  };
  // Columns relative to w0.
  int64_t column(const Tile& t, int col) const {
    return int64_t{col % t.vectors} * v - (overlaps && t.is_last(col) ? e.last_lanes - left : 0);
  }
  bool unrolled(const Tile& t, int d) const {
    int64_t steps = int64_t{t.oc_rows} * t.rows * t.vectors;
    for (int i = d; i < spatial; ++i) steps *= p.kernel[i];
    return steps <= 128;
  }
  // The taps of dimensions d and beyond, with data at `from` and weights at `tap`. Weights computed in the same kernel
  // may lie in a larger tensor: all strides are the view's.
  Stmt taps_from(const Tile& t, int d, const PrimExpr& from, const PrimExpr& tap) const {
    if (d < spatial) {
      auto inner = [&](const PrimExpr& k) {
        return taps_from(t, d + 1, from + k * (p.dilations[d] * data.strides[d + 2]), tap + k * weights.strides[d + 2]);
      };
      if (!unrolled(t, d)) return loop("k", p.kernel[d], inner);
      std::vector<Stmt> all;
      for (int64_t k = 0; k < p.kernel[d]; ++k) all.push_back(inner(make_int(k)));
      return seq(std::move(all));
    }
    return t.acc.step([&](int r) { return load(weights.buffer, tap + r * weights.strides[0]); },
                      [&](int col) {
                        PrimExpr at = from + (int64_t{col / t.vectors} * step_h + column(t, col) * step_w);
                        return load(data.buffer, v > 1 ? ramp(at, step_w, t.acc.lanes(col)) : at, short_row);
                      });
  }
  Stmt drain(const Tile& t) const {
    return t.acc.drain([&](int r, int col, PrimExpr value) {
      Index index = t.place;
      index[1] = t.oc0 + r;
      if (spatial > 1) index[rank - 2] = t.place[rank - 2] + col / t.vectors;
      index.back() = t.w0 + column(t, col);
      const PrimExpr mask = t.is_last(col) ? own_lanes : PrimExpr();
      return out.store(index, epilogue(std::move(value), index, mask), mask);
    });
  }
  Stmt tile(const PrimExpr& data_row, const PrimExpr& oc0, const Index& place, const PrimExpr& w0, int oc_rows,
            int rows, int vectors, bool ends) const {
    const RegisterTile acc(oc_rows, rows * vectors, vector, ends ? e.last_lanes : v, vectors);
    const Tile t{oc0, w0, place, oc_rows, rows, vectors, ends, acc};
    return bind("data_at", data_row + w0 * step_w, [&](PrimExpr data_at) {
      return bind("weights_at", oc0 * weights.strides[0] + weights.offset, [&](PrimExpr weights_at) {
        Stmt sums = loop("ic", e.ic, [&](const PrimExpr& i) {
          return taps_from(t, 0, data_at + i * data.strides[1], weights_at + i * weights.strides[1]);
        });
        Stmt stores = drain(t);
        return acc.scope(seq({acc.clear(), sums, stores}));
      });
    });
  }
  Stmt row(const PrimExpr& data_row, const PrimExpr& oc0, const Index& place, int oc_rows, int rows) const {
    std::vector<Stmt> body;
    auto vectors_from = [&](const PrimExpr& first, int64_t count, bool ends) {
      return tile(data_row, oc0, place, first * int64_t{v}, oc_rows, rows, static_cast<int>(count), ends);
    };
    // The last tile has separate code if it is narrower or its last vector partial.
    const int64_t last = e.vectors % c.vectors    ? e.vectors % c.vectors
                         : own_lanes && c.vectors ? int64_t{c.vectors}
                                                  : 0;
    if (const int64_t tiles = (e.vectors - last) / c.vectors)
      body.push_back(
          loop("wt", tiles, [&](const PrimExpr& wt) { return vectors_from(wt * c.vectors, c.vectors, false); }));
    if (last) body.push_back(vectors_from(make_int(e.vectors - last), last, static_cast<bool>(own_lanes)));
    return seq(std::move(body));
  }

  // `size` elements, or fewer in the last tile.
  static Stmt sized(int64_t extent, int64_t size, const PrimExpr& is_last, const std::function<Stmt(int)>& body) {
    const int64_t rest = extent % size;
    if (rest == 0 || extent < size) return body(static_cast<int>(rest ? rest : size));
    return make_if(is_last, body(static_cast<int>(rest)), body(static_cast<int>(size)));
  }
  // at: image, group, tile of output channels, then the tile's position in every dimension but the width.
  Stmt one_unit(Index at, int64_t oc_tiles) const {
    const PrimExpr n = at[0], group = at[1], oc_tile = at[2];
    Index place(rank);
    place[0] = n;
    if (spatial > 1) at.back() = at.back() * int64_t{c.rows};
    PrimExpr origin_of_row = n * data.strides[0] + group * (e.ic * data.strides[1]) + data.offset;
    for (int d = 0; d < spatial; ++d) {
      PrimExpr origin = make_int(-p.pads_before[d]);
      if (d + 1 < spatial) {
        place[d + 2] = at[3 + d];
        origin = at[3 + d] * p.strides[d] + (-p.pads_before[d]);
      }
      origin_of_row = origin_of_row + origin * data.strides[d + 2];
    }
    return bind("data_row", origin_of_row, [&](PrimExpr data_row) {
      return bind("oc0", group * e.oc + oc_tile * int64_t{c.oc_rows}, [&](PrimExpr oc0) {
        return sized(e.oc, c.oc_rows, eq(oc_tile, make_int(oc_tiles - 1)), [&](int oc_rows) {
          if (spatial == 1) return row(data_row, oc0, place, oc_rows, 1);
          const PrimExpr first = place[rank - 2], last = make_int(e.height / c.rows * c.rows);
          return sized(e.height, c.rows, eq(first, last),
                       [&](int rows) { return row(data_row, oc0, place, oc_rows, rows); });
        });
      });
    });
  }
  Stmt stmt() const {
    const int64_t oc_tiles = ceil_div(e.oc, int64_t{c.oc_rows});
    std::vector<int64_t> units{out.shape[0], p.groups, oc_tiles};
    for (int d = 0; d + 1 < spatial; ++d) units.push_back(out.shape[d + 2]);
    if (spatial > 1) units.back() = ceil_div(e.height, int64_t{c.rows});
    return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](const Index& at) { return one_unit(at, oc_tiles); });
    });
  }
};

}  // namespace

Stmt conv_direct(const ConvDirectProblem& p, const ConvDirectConfig& c, const View& data, const View& weights,
                 const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const int rank = static_cast<int>(p.kernel.size()) + 2;
  TW_ICHECK(data.rank() == rank && out.rank() == rank, "conv_direct: ranks");
  return DirectKernel{p, c, data, weights, out, epilogue, context}.stmt();
}

}  // namespace tilewright::topi
