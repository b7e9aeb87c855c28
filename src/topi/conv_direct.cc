// SPDX-License-Identifier: Apache-2.0
#include "topi/conv_direct.h"

#include <algorithm>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

ConvDirectConfig default_config(const ConvDirectProblem& p, const View& out, int64_t out_channels,
                                const Target& target) {
  const int64_t per_group = out_channels / p.groups;
  const int64_t v = target.lanes(std::max<int>(32, out.dtype().bits));
  ConvDirectConfig c;
  c.vectors = static_cast<int>(std::clamp<int64_t>(out.shape.back() / v, 1, per_group == 1 ? 4 : 2));
  int64_t best_left = per_group;
  for (int rows = 1; rows <= std::min<int64_t>(per_group, 8); ++rows) {
    if (!tile_fits(rows, c.vectors, target)) break;
    int64_t tiles = ceil_div(per_group, rows);
    if (tiles <= best_left) best_left = tiles, c.oc_rows = rows;
  }
  return c;
}

Cost estimate(const ConvDirectProblem& p, const ConvDirectConfig& c, const View& data, const View& out,
              const Target& target) {
  Cost cost;
  double taps = static_cast<double>(product(p.kernel) * (data.shape[1] / p.groups));
  double outputs = static_cast<double>(product(out.shape));
  cost.flops = 2 * taps * outputs;
  cost.bytes = 4 * (static_cast<double>(product(data.shape)) + outputs);
  const double v = target.lanes(32), width = static_cast<double>(out.shape.back());
  double fill = width / (std::max(1.0, static_cast<double>(ceil_div(out.shape.back(), static_cast<int64_t>(v)))) * v);
  // Measured: whole vectors run near the peak; strided ones are put together from two loads, or from more.
  const double most = p.strides.back() == 1 ? 0.97 : p.strides.back() == 2 ? 0.82 : 0.5;
  double rate = std::min(most, 0.22 * c.oc_rows * c.vectors);
  cost.microseconds = cost.flops / (target.gflops * 1e3 * std::max(0.01, fill * rate));
  return cost;
}

Stmt conv_direct(const ConvDirectProblem& p, const ConvDirectConfig& c, const View& data, const View& weights,
                 const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const int spatial = static_cast<int>(p.kernel.size()), rank = spatial + 2;
  TW_ICHECK(data.rank() == rank && out.rank() == rank, "conv_direct: ranks");
  const int64_t out_channels = out.shape[1], ic = data.shape[1] / p.groups, oc = out_channels / p.groups;
  const int64_t width = out.shape.back();
  const DataType element = accumulator_dtype(data.dtype());
  const int v = width == 1 ? 1 : context.target->lanes(std::max<int>(32, element.bits));
  const int64_t taps = product(p.kernel), filter = ic * taps;
  const int64_t vectors = width / v, tail = width % v, wide = std::clamp<int64_t>(vectors, 1, c.vectors);
  const int64_t rows = std::min<int64_t>(c.oc_rows, oc);
  const int64_t step_w = p.strides.back() * data.strides.back();

  auto tile = [&](const PrimExpr& data_row, const PrimExpr& oc0, Index place, const PrimExpr& w0, int oc_rows, int cols,
                  const PrimExpr& mask) {
    RegisterTile acc(oc_rows, cols, element.with_lanes(v));
    PrimExpr data_at = data_row + w0 * step_w;
    return bind("data_at", data_at, [&](PrimExpr data_at) {
      return bind("weights_at", oc0 * filter + weights.offset, [&](PrimExpr weights_at) {
        std::function<Stmt(int, PrimExpr, PrimExpr)> taps_from = [&](int d, PrimExpr from, PrimExpr tap) -> Stmt {
          if (d < spatial)
            return loop("k", p.kernel[d], [&](PrimExpr k) {
              return taps_from(d + 1, from + k * (p.dilations[d] * data.strides[d + 2]), tap * p.kernel[d] + k);
            });
          return acc.step([&](int r) { return load(weights.buffer, weights_at + tap + r * filter); },
                          [&](int col) {
                            PrimExpr at = from + int64_t{col} * v * step_w;
                            return load(data.buffer, v > 1 ? ramp(at, step_w, v) : at, mask);
                          });
        };
        Stmt sums = loop("ic", ic, [&](PrimExpr i) { return taps_from(0, data_at + i * data.strides[1], i); });
        Stmt drain = acc.drain([&](int r, int col, PrimExpr value) {
          Index index = place;
          index[1] = oc0 + r;
          index.back() = w0 + int64_t{col} * v;
          return out.store(index, epilogue(value, index, mask), mask);
        });
        return acc.scope(seq({acc.clear(), sums, drain}));
      });
    });
  };
  auto row = [&](const PrimExpr& data_row, const PrimExpr& oc0, const Index& place, int oc_rows) {
    std::vector<Stmt> body;
    if (vectors >= wide && vectors > 0)
      body.push_back(loop("wt", vectors / wide, [&](PrimExpr wt) {
        return tile(data_row, oc0, place, wt * (wide * v), oc_rows, static_cast<int>(wide), {});
      }));
    if (int64_t rest = vectors % wide)
      body.push_back(tile(data_row, oc0, place, make_int((vectors - rest) * v), oc_rows, static_cast<int>(rest), {}));
    if (tail) body.push_back(tile(data_row, oc0, place, make_int(vectors * v), oc_rows, 1, tail_mask(v, tail)));
    return seq(std::move(body));
  };

  const int64_t oc_tiles = ceil_div(oc, rows);
  std::vector<int64_t> units{out.shape[0], p.groups, oc_tiles};
  for (int d = 0; d + 1 < spatial; ++d) units.push_back(out.shape[d + 2]);
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      const PrimExpr n = at[0], group = at[1], oc_tile = at[2];
      Index place(rank);
      place[0] = n;
      PrimExpr data_row = n * data.strides[0] + group * (ic * data.strides[1]) + data.offset;
      for (int d = 0; d < spatial; ++d) {
        PrimExpr origin = make_int(-p.pads_before[d]);
        if (d + 1 < spatial) {
          place[d + 2] = at[3 + d];
          origin = at[3 + d] * p.strides[d] + (-p.pads_before[d]);
        }
        data_row = data_row + origin * data.strides[d + 2];
      }
      return bind("data_row", data_row, [&](PrimExpr data_row) {
        return bind("oc0", group * oc + oc_tile * rows, [&](PrimExpr oc0) {
          int rest = static_cast<int>(oc % rows);
          if (rest == 0) return row(data_row, oc0, place, static_cast<int>(rows));
          if (oc_tiles == 1) return row(data_row, oc0, place, rest);
          return make_if(eq(oc_tile, make_int(oc_tiles - 1)), row(data_row, oc0, place, rest),
                         row(data_row, oc0, place, static_cast<int>(rows)));
        });
      });
    });
  });
}

}  // namespace tilewright::topi
