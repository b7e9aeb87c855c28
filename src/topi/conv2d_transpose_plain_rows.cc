// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "topi/conv2d_transpose.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Number of phases of the stride, over all channels.
int64_t row_phases_of(const Conv2dTransposeProblem& p) { return p.out_channels * p.stride_height * p.stride_width; }

// Cells of stride x stride pixels, along one axis: cell q holds the pixels from q * stride - pad on and reads inputs q,
// q - 1, ... with taps phase, phase + stride, ...
struct Cells {
  int64_t count, taps;
  bool cut;  // the first or last cell is partly outside the output
};
Cells cells_of(int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t count = ceil_div(out + pad, stride);
  return {count, ceil_div(kernel, stride), pad > 0 || count * stride != out};
}
Cells rows_of(const Conv2dTransposeProblem& p) {
  return cells_of(p.out_height, p.kernel_height, p.stride_height, p.pad_top);
}
Cells columns_of(const Conv2dTransposeProblem& p) {
  return cells_of(p.out_width, p.kernel_width, p.stride_width, p.pad_left);
}

// Lane layout: for each channel and row of a cell, its columns, for one tap or, if there is room, all taps along the
// width. In the latter case an input is multiplied once, and cells add up lanes of neighbours.
struct Lanes {
  int64_t taps;     // taps along the width held in one vector
  int64_t turns;    // and processed one after another
  int64_t columns;  // per row and channel
  int64_t width;    // lanes of the vector
};
Lanes lanes_of(const Conv2dTransposeProblem& p) {
  const int64_t taps = columns_of(p).taps, together = taps <= 4 && row_phases_of(p) * taps <= p.lanes ? taps : 1;
  Lanes l{together, taps / together, together * p.stride_width, 2};
  while (l.width < row_phases_of(p) * together) l.width *= 2;
  return l;
}

}  // namespace

bool paints_plain_rows(const Conv2dTransposeProblem& p) {
  return p.groups == 1 && p.kernel_depth == 1 && p.stride_depth == 1 && row_phases_of(p) <= p.lanes;
}

HaloNeed plain_rows_halo(const Conv2dTransposeProblem& p) {
  const Cells rows = rows_of(p), columns = columns_of(p);
  return {rows.taps - 1, columns.taps - 1, std::max<int64_t>(0, rows.count - p.in_height),
          std::max<int64_t>(0, columns.count - p.in_width)};
}

Tensor pack_plain_rows_weights(const Tensor& weights, const Conv2dTransposeProblem& p) {
  const Lanes l = lanes_of(p);
  const int64_t sh = p.stride_height, sw = p.stride_width;
  Tensor packed =
      Tensor::zeros(weights.dtype(), {rows_of(p).taps * l.turns, round_up(p.in_channels, p.lanes), l.width});
  const size_t element = weights.dtype().bytes();
  for (int64_t i = 0; i < p.in_channels; ++i)
    for (int64_t oc = 0; oc < p.out_channels; ++oc)
      for (int64_t kh = 0; kh < p.kernel_height; ++kh)
        for (int64_t kw = 0; kw < p.kernel_width; ++kw) {
          const int64_t tap = kh / sh * l.turns + (l.turns > 1 ? kw / sw : 0),
                        lane = (oc * sh + kh % sh) * l.columns + kw % l.columns;
          const int64_t to = (tap * packed.shape()[1] + i) * l.width + lane,
                        from = ((i * p.out_channels + oc) * p.kernel_height + kh) * p.kernel_width + kw;
          __builtin_memcpy(packed.mutable_raw() + static_cast<size_t>(to) * element,
                           weights.raw() + static_cast<size_t>(from) * element, element);
        }
  return packed;
}

Stmt conv2d_transpose_plain_rows(const Conv2dTransposeProblem& p, const View& data, const View& weights,
                                 const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(paints_plain_rows(p), "conv2d_transpose_plain_rows: the shape");
  const Lanes l = lanes_of(p);
  const int64_t v = p.lanes, width = l.width, blocks = ceil_div(p.in_channels, v), s = p.stride_width;
  const DataType element = accumulator_dtype(data.dtype());
  const Cells rows = rows_of(p), columns = columns_of(p);
  // Splits cells into even tiles; each further tap needs one more input beside the tile.
  const int64_t before = l.taps - 1, most = std::min<int64_t>(16, context.target->vector_registers - 3) - before;
  const int pixels = static_cast<int>(ceil_div(columns.count, ceil_div(columns.count, most)));
  const int unroll = 4 <= v ? 4 : 1;
  auto tile = [&](const Index& at, const PrimExpr& w0, int count) {
    RegisterTile acc(count + static_cast<int>(before), 1, element.with_lanes(static_cast<int>(width)));
    PrimExpr origin = at[0] * data.strides[0] + at[1] * data.strides[2] + w0 * data.strides[3] +
                      (data.offset - before * data.strides[3]);
    return bind("data_at", origin, [&](PrimExpr data_at) {
      auto tap = [&](const PrimExpr& th, const PrimExpr& tw) {
        return loop("icb", blocks, [&](PrimExpr icb) {
          const PrimExpr tap_at = data_at + icb * data.strides[1] - th * data.strides[2] - tw * data.strides[3];
          const PrimExpr first = ((th * l.turns + tw) * blocks + icb) * v;
          const int64_t last_steps = ceil_div(p.in_channels - (blocks - 1) * v, unroll);
          const PrimExpr steps =
              blocks == 1 || last_steps == v / unroll
                  ? make_int(last_steps)
                  : select(eq(icb, make_int(blocks - 1)), make_int(last_steps), make_int(v / unroll));
          return loop("ic", make_int(0), steps, [&](PrimExpr ic) {
            std::vector<Stmt> steps;
            for (int u = 0; u < unroll; ++u)
              steps.push_back(acc.step(
                  [&](int r) { return load(data.buffer, tap_at + ic * int64_t{unroll} + (r * data.strides[3] + u)); },
                  [&](int) {
                    PrimExpr row = (first + ic * int64_t{unroll}) * width + (weights.offset + u * width);
                    return load(weights.buffer, ramp(row, 1, static_cast<int>(width)));
                  }));
            return seq(std::move(steps));
          });
        });
      };
      Stmt reduce = loop("th", rows.taps,
                         [&](PrimExpr th) { return loop("tw", l.turns, [&](PrimExpr tw) { return tap(th, tw); }); });
      std::vector<PrimExpr> sums;
      acc.drain([&](int, int, PrimExpr value) {
        sums.push_back(std::move(value));
        return seq({});
      });
      std::vector<Stmt> stores;
      for (int64_t oc = 0; oc < p.out_channels; ++oc)
        for (int64_t kh = 0; kh < p.stride_height; ++kh) {
          const PrimExpr row = at[1] * p.stride_height + (kh - p.pad_top);
          std::vector<Stmt> vectors;
          for (int64_t x0 = 0; x0 < count * s; x0 += v) {
            const int64_t valid = std::min<int64_t>(v, count * s - x0), first = x0 / s, last = (x0 + valid - 1) / s;
            PrimExpr value;
            for (int64_t t = 0; t < l.taps; ++t) {
              const auto cells = sums.begin() + before - t;
              std::vector<PrimExpr> parts(cells + first, cells + last + 1);
              std::vector<int> lanes;
              for (int64_t x = x0; x < x0 + v; ++x) {
                const int64_t real = std::min(x, x0 + valid - 1);
                lanes.push_back(static_cast<int>((real / s - first) * width + (oc * p.stride_height + kh) * l.columns +
                                                 t * s + real % s));
              }
              PrimExpr part = shuffle(parts, lanes);
              value = value ? value + part : part;
            }
            PrimExpr mask = tail_mask(static_cast<int>(v), valid);
            const PrimExpr column = w0 * s + (x0 - p.pad_left);
            if (columns.cut) {
              const PrimExpr x = ramp(column, 1, static_cast<int>(v));
              auto all = [&](int64_t bound) { return broadcast(make_int(bound), static_cast<int>(v)); };
              const PrimExpr inside = logical_and(le(all(0), x), lt(x, all(p.out_width)));
              mask = mask ? logical_and(mask, inside) : inside;
            }
            const Index index{at[0], make_int(oc), row, column};
            vectors.push_back(out.store(index, epilogue(value, index, mask), mask));
          }
          Stmt one = seq(std::move(vectors));
          const PrimExpr inside = logical_and(le(make_int(0), row), lt(row, make_int(p.out_height)));
          stores.push_back(rows.cut ? make_if(inside, one) : one);
        }
      return acc.scope(seq({acc.clear(), reduce, seq(std::move(stores))}));
    });
  };
  const std::vector<int64_t> units{p.batch, rows.count};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      std::vector<Stmt> body;
      const int64_t whole = columns.count / pixels, rest = columns.count % pixels;
      if (whole > 0)
        body.push_back(loop("wt", whole, [&](PrimExpr wt) { return tile(at, wt * int64_t{pixels}, pixels); }));
      if (rest > 0) body.push_back(tile(at, make_int(whole * pixels), static_cast<int>(rest)));
      return seq(std::move(body));
    });
  });
}

}  // namespace tilewright::topi
