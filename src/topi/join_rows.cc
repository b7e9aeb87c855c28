// SPDX-License-Identifier: Apache-2.0
#include "topi/join_rows.h"

#include <algorithm>
#include <numeric>

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostVectors = 24;  // of a period: each has code of its own

// Rows repeat their places in vectors after a period, which begins and ends with a vector.
struct Period {
  int lanes;
  int64_t rows, vectors;
};
Period period_of(const View& out, const Target& target) {
  const int lanes = target.lanes(std::max<int>(8, out.dtype().bits));
  const int64_t row = out.shape.back(), rows = lanes / std::gcd<int64_t>(lanes, row);
  return {lanes, rows, rows * row / lanes};
}

// The elements of one operand that a vector takes: `count` contiguous ones from `first` on, counted from the period's
// begin, and for each lane of the vector which of them it is, or -1.
struct Source {
  int64_t first = 0, count = 0;
  std::vector<int64_t> lanes;
};
Source source_of(const View& part, int64_t before, const View& out, int64_t vector, int lanes) {
  Source s;
  const int64_t row = out.shape.back(), own = part.shape.back();
  for (int64_t at = vector * lanes; at < (vector + 1) * lanes; ++at) {
    const int64_t column = at % row - before;
    if (column < 0 || column >= own) {
      s.lanes.push_back(-1);
      continue;
    }
    const int64_t element = at / row * own + column;
    if (s.count++ == 0) s.first = element;
    s.lanes.push_back(element - s.first);
  }
  return s;
}

}  // namespace

bool can_join_rows(const std::vector<View>& parts, const View& out, const Target& target) {
  const int bits = out.dtype().bits;
  // Shuffles of narrow elements across a vector are one instruction each with VBMI only.
  if ((bits != 32 && bits != 64) || parts.size() < 2 || parts.size() > 8 || out.rank() < 2) return false;
  const Period period = period_of(out, target);
  const int64_t rows = product(out.shape) / std::max<int64_t>(1, out.shape.back());
  if (period.lanes < 4 || out.shape.back() > 2 * period.lanes || period.vectors > kMostVectors ||
      rows < 2 * period.rows)
    return false;
  auto fits = [&](const View& view) {
    return view.contiguous() && view.dtype() == out.dtype() && view.shape.back() > 0;
  };
  return fits(out) && std::all_of(parts.begin(), parts.end(), fits);
}

Stmt join_rows(const std::vector<View>& parts, const View& out, const KernelContext& context) {
  const Period period = period_of(out, *context.target);
  const int lanes = period.lanes;
  const int64_t row = out.shape.back(), rows = product(out.shape) / row, periods = rows / period.rows;
  auto vector = [&](const PrimExpr& number, int64_t v) {
    PrimExpr whole;
    std::vector<int> pick(static_cast<size_t>(lanes));
    int64_t before = 0;
    for (const View& part : parts) {
      const Source s = source_of(part, before, out, v, lanes);
      before += part.shape.back();
      if (s.count == 0) continue;
      // A load of whole vectors where it stays inside the period; the last period may end the buffer.
      const int64_t all = period.rows * part.shape.back(), start = std::max<int64_t>(0, std::min(s.first, all - lanes));
      const PrimExpr mask = tail_mask(lanes, std::min<int64_t>(lanes, all - start));
      const PrimExpr x = load(part.buffer, ramp(number * all + (part.offset + start), 1, lanes), mask);
      for (size_t l = 0; l < pick.size(); ++l)
        if (s.lanes[l] >= 0)
          pick[l] = static_cast<int>(s.first - start + s.lanes[l]) + (whole ? lanes : 0);
        else if (whole)
          pick[l] = static_cast<int>(l);
      whole = shuffle(whole ? std::vector<PrimExpr>{whole, x} : std::vector<PrimExpr>{x}, pick);
    }
    return store(out.buffer, ramp(number * (period.rows * row) + (out.offset + v * lanes), 1, lanes), whole);
  };
  Stmt joined = parallel_for(context, "period", periods, [&](const PrimExpr& number) {
    std::vector<Stmt> body;
    for (int64_t v = 0; v < period.vectors; ++v) body.push_back(vector(number, v));
    return seq(std::move(body));
  });
  const int64_t done = periods * period.rows;
  if (done == rows) return joined;
  // The rows behind the last period, by one thread.
  std::vector<Stmt> rest;
  int64_t before = 0;
  for (const View& part : parts) {
    const int64_t own = part.shape.back();
    rest.push_back(loop("row", make_int(done), make_int(rows), [&](const PrimExpr& r) {
      return loop("i", own, [&](const PrimExpr& i) {
        return store(out.buffer, r * row + i + (out.offset + before), load(part.buffer, r * own + i + part.offset));
      });
    }));
    before += own;
  }
  Stmt last = seq(std::move(rest));
  return seq({joined, context.tid ? make_if(eq(context.tid, make_int(0)), last) : last});
}

}  // namespace tilewright::topi
