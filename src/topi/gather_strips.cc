// SPDX-License-Identifier: Apache-2.0
#include "topi/gather_strips.h"

#include <algorithm>

namespace tilewright::topi {

using namespace tir;

namespace {
constexpr int64_t kLine = 64, kRowsAhead = 8;
}

int64_t gather_strip(const GatherProblem& p, const Target& target) {
  const auto bytes = static_cast<int64_t>(p.dtype.bytes());
  const int64_t room = target.machine.l2_bytes / 2;
  // Copying pays where most of the table is used, and a line's worth of columns has room.
  if (p.dtype.bits < 8 || p.rows * p.columns * bytes <= room || p.rows * kLine > room || p.out_rows < p.rows) return 0;
  int64_t strip = kLine / bytes;
  while (2 * strip <= p.columns && 2 * strip * p.rows * bytes <= room) strip *= 2;
  return p.columns >= strip ? strip : 0;
}

int64_t gather_scratch_bytes(const GatherProblem& p, const Target& target) {
  return p.rows * gather_strip(p, target) * static_cast<int64_t>(p.dtype.bytes());
}

Stmt gather_strips(const GatherProblem& p, const View& table, const View& places,
                   const std::function<PrimExpr(PrimExpr)>& bounded, const View& out, const KernelContext& context) {
  const int64_t strip = gather_strip(p, *context.target), strips = ceil_div(p.columns, strip);
  auto as_rows = [&](const View& view, int64_t rows) {
    View planes = make_view(view.buffer, {p.batch, rows, p.columns});
    planes.offset = view.offset;
    return planes;
  };
  const View from = as_rows(table, p.rows), to = as_rows(out, p.out_rows), where = as_rows(places, p.out_rows);
  const View copied = make_view(context.scratch, {p.rows, strip});
  const auto wide = static_cast<int>(std::min<int64_t>(strip, context.target->lanes(p.dtype.bits)));
  const auto lanes = static_cast<int>(std::min<int64_t>(strip, context.target->lanes(std::max<int>(32, p.dtype.bits))));
  auto copy = [&](const PrimExpr& batch, const PrimExpr& first) {
    return loop("row", p.rows, [&](const PrimExpr& row) {
      return loop("vector", strip / wide, [&](const PrimExpr& v) {
        const PrimExpr column = v * int64_t{wide};
        return copied.store({row, column}, from.load({batch, row, first + column}, wide));
      });
    });
  };
  auto take = [&](const PrimExpr& batch, const PrimExpr& first) {
    return loop("row", p.out_rows, [&](const PrimExpr& row) {
      const auto width = static_cast<int64_t>(where.dtype().bytes());
      std::vector<Stmt> body;
      for (int64_t i = 0; i < strip * width; i += kLine)
        body.push_back(prefetch(where.buffer, where.flat({batch, row + kRowsAhead, first + i / width})));
      body.push_back(loop("vector", strip / lanes, [&](const PrimExpr& v) {
        const PrimExpr column = v * int64_t{lanes}, rows = make_var("rows", kInt64.with_lanes(lanes));
        std::vector<PrimExpr> elements;
        std::vector<int> order;
        for (int l = 0; l < lanes; ++l) {
          elements.push_back(copied.load({lanes == 1 ? rows : shuffle({rows}, {l}), column + l}));
          order.push_back(l);
        }
        const PrimExpr value = lanes == 1 ? elements[0] : shuffle(std::move(elements), std::move(order));
        const Index at{batch, row, first + column};
        return to.store(at, let(rows, bounded(where.load(at, lanes)), value));
      }));
      return seq(std::move(body));
    });
  };
  // The last strip ends with the table: it may share columns with the one before it.
  return parallel_for(context, "unit", p.batch * strips, [&](const PrimExpr& unit) {
    const Index at = unravel(unit, {p.batch, strips});
    return bind("batch", at[0], [&](const PrimExpr& batch) {
      return bind("first", min(at[1] * strip, make_int(p.columns - strip)), [&](const PrimExpr& first) {
        return seq({copy(batch, first), take(batch, first)});
      });
    });
  });
}

}  // namespace tilewright::topi
