// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "topi/conv2d_transpose.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

int64_t taps_of(const Conv2dTransposeProblem& p) { return p.out_channels * p.kernel_height * p.kernel_width; }

int64_t width_of(const Conv2dTransposeProblem& p) {
  int64_t width = 2;
  while (width < taps_of(p)) width *= 2;
  return width;
}

}  // namespace

bool paints_plain_rows(const Conv2dTransposeProblem& p) {
  return p.groups == 1 && p.kernel_height == p.stride_height && p.kernel_width == p.stride_width && p.pad_top == 0 &&
         p.pad_left == 0 && p.out_height == p.in_height * p.stride_height &&
         p.out_width == p.in_width * p.stride_width && taps_of(p) <= p.lanes;
}

Tensor pack_plain_rows_weights(const Tensor& weights, const Conv2dTransposeProblem& p) {
  const int64_t taps = taps_of(p), width = width_of(p);
  Tensor packed = Tensor::zeros(weights.dtype(), {round_up(p.in_channels, p.lanes), width});
  const size_t row = static_cast<size_t>(taps) * weights.dtype().bytes(),
               stride = static_cast<size_t>(width) * weights.dtype().bytes();
  for (int64_t i = 0; i < p.in_channels; ++i)
    __builtin_memcpy(packed.mutable_raw() + static_cast<size_t>(i) * stride,
                     weights.raw() + static_cast<size_t>(i) * row, row);
  return packed;
}

Stmt conv2d_transpose_plain_rows(const Conv2dTransposeProblem& p, const View& data, const View& weights,
                                 const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(paints_plain_rows(p), "conv2d_transpose_plain_rows: the shape");
  const int64_t v = p.lanes, width = width_of(p), blocks = ceil_div(p.in_channels, v), s = p.stride_width;
  const DataType element = accumulator_dtype(data.dtype());
  const int pixels =
      static_cast<int>(std::min<int64_t>(p.in_width, std::min<int64_t>(16, context.target->vector_registers - 3)));
  const int unroll = 4 <= v ? 4 : 1;
  auto tile = [&](const Index& at, const PrimExpr& w0, int count) {
    RegisterTile acc(count, 1, element.with_lanes(static_cast<int>(width)));
    PrimExpr origin = at[0] * data.strides[0] + at[1] * data.strides[2] + w0 * data.strides[3] + data.offset;
    return bind("data_at", origin, [&](PrimExpr data_at) {
      Stmt reduce = loop("icb", blocks, [&](PrimExpr icb) {
        return loop("ic", v / unroll, [&](PrimExpr ic) {
          std::vector<Stmt> steps;
          for (int u = 0; u < unroll; ++u)
            steps.push_back(acc.step(
                [&](int r) {
                  return load(data.buffer,
                              data_at + icb * data.strides[1] + ic * int64_t{unroll} + (r * data.strides[3] + u));
                },
                [&](int) {
                  PrimExpr row = (icb * v + ic * int64_t{unroll}) * width + (weights.offset + u * width);
                  return load(weights.buffer, ramp(row, 1, static_cast<int>(width)));
                }));
          return seq(std::move(steps));
        });
      });
      std::vector<PrimExpr> sums;
      acc.drain([&](int, int, PrimExpr value) {
        sums.push_back(std::move(value));
        return seq({});
      });
      std::vector<Stmt> rows;
      for (int64_t oc = 0; oc < p.out_channels; ++oc)
        for (int64_t kh = 0; kh < p.kernel_height; ++kh)
          for (int64_t x0 = 0; x0 < count * s; x0 += v) {
            const int64_t valid = std::min<int64_t>(v, count * s - x0), first = x0 / s, last = (x0 + valid - 1) / s;
            std::vector<PrimExpr> parts(sums.begin() + first, sums.begin() + last + 1);
            std::vector<int> lanes;
            for (int64_t x = x0; x < x0 + v; ++x) {
              int64_t real = std::min(x, x0 + valid - 1);
              lanes.push_back(static_cast<int>((real / s - first) * width +
                                               (oc * p.kernel_height + kh) * p.kernel_width + real % s));
            }
            PrimExpr mask = tail_mask(static_cast<int>(v), valid);
            Index index{at[0], make_int(oc), at[1] * p.stride_height + kh, w0 * s + x0};
            rows.push_back(out.store(index, epilogue(shuffle(parts, lanes), index, mask), mask));
          }
      return acc.scope(seq({acc.clear(), reduce, seq(std::move(rows))}));
    });
  };
  const std::vector<int64_t> units{p.batch, p.in_height};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      std::vector<Stmt> body;
      const int64_t whole = p.in_width / pixels, rest = p.in_width % pixels;
      if (whole > 0)
        body.push_back(loop("wt", whole, [&](PrimExpr wt) { return tile(at, wt * int64_t{pixels}, pixels); }));
      if (rest > 0) body.push_back(tile(at, make_int(whole * pixels), static_cast<int>(rest)));
      return seq(std::move(body));
    });
  });
}

}  // namespace tilewright::topi
