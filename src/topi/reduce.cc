// SPDX-License-Identifier: Apache-2.0
#include "topi/reduce.h"

#include <algorithm>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

bool reduced(const std::vector<int>& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// Nested loops over the dimensions in `axes`, which set `index` for the body.
Stmt over(const std::vector<int64_t>& shape, const std::vector<int>& axes, size_t level, Index& index,
          const std::function<Stmt()>& body) {
  if (level == axes.size()) return body();
  return loop("r", shape[axes[level]], [&](PrimExpr r) {
    index[axes[level]] = std::move(r);
    return over(shape, axes, level + 1, index, body);
  });
}

struct Reduction {
  Reduction(const ReduceProblem& problem, const Operand& operand, const View& result, const Epilogue& last,
            const KernelContext& kernel)
      : p(problem), input(operand), out(result), epilogue(last), context(kernel) {
    for (int axis : p.axes) count *= p.shape[axis];
    for (int i = 0; i < rank; ++i)
      if (!reduced(p.axes, i)) kept.push_back(i);
  }

  // Vectors along the reduced last dimension; each output ends in one horizontal reduction.
  Stmt along_rows() const {
    std::vector<int64_t> units;
    for (int i : kept) units.push_back(p.shape[i]);
    std::vector<int> outer(p.axes.begin(), p.axes.end() - 1);
    return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
      Index at = unravel(unit, units), index(rank);
      for (size_t i = 0; i < kept.size(); ++i) index[kept[i]] = at[i];
      return bind_all(index, [&](Index index) {
        RowReduction row(combine, lanes, p.shape.back());
        Stmt sums = over(p.shape, outer, 0, index, [&] {
          return row.accumulate([&](PrimExpr i, int n, const PrimExpr& mask) {
            Index from = index;
            from.back() = std::move(i);
            return operand(from, n, mask);
          });
        });
        return row.scope(seq({row.clear(), sums, finish(index, row.result(), {})}));
      });
    });
  }

  // Vectors along a kept last dimension: each lane is a separate sum.
  Stmt along_lanes() const {
    const int64_t inner = p.shape.back(), vectors = inner / lanes, tail = inner % lanes;
    std::vector<int64_t> units;
    for (int i : kept)
      if (i != rank - 1) units.push_back(p.shape[i]);
    const int wide = static_cast<int>(std::clamp<int64_t>(vectors, 1, 4));
    const int64_t groups = vectors / wide, rest = vectors % wide, parts = groups + (rest ? 1 : 0) + (tail ? 1 : 0);
    units.push_back(std::max<int64_t>(1, parts));
    return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
      Index at = unravel(unit, units), index(rank);
      for (int i = 0, j = 0; i < rank - 1; ++i)
        if (!reduced(p.axes, i)) index[i] = at[j++];
      PrimExpr part = at.back();
      index.back() = part;
      return bind_all(index, [&](Index index) {
        PrimExpr part = index.back();
        Stmt body = groups > 0 ? span(index, part * (int64_t{wide} * lanes), wide, {}) : Stmt();
        auto also = [&](int64_t number, Stmt other) {
          body = body ? make_if(eq(part, make_int(number)), other, body) : other;
        };
        if (rest) also(groups, span(index, make_int(groups * wide * lanes), static_cast<int>(rest), {}));
        if (tail) also(groups + (rest ? 1 : 0), span(index, make_int(vectors * lanes), 1, tail_mask(lanes, tail)));
        return body;
      });
    });
  }

  // The same over many long lines: blocks of a row are summed in memory that stays in the first cache, a few lines at a
  // time, since lines far apart are read the faster the longer each piece is.
  Stmt along_blocks() const {
    const int64_t inner = p.shape.back(), vectors = inner / lanes, tail = inner % lanes, block = block_vectors();
    std::vector<int64_t> units;
    for (int i : kept)
      if (i != rank - 1) units.push_back(p.shape[i]);
    const int64_t blocks = ceil_div(vectors, block);
    units.push_back(blocks + (tail ? 1 : 0));
    const Buffer sums = make_buffer("sums", element, block * lanes, Scope::kStack, 64);
    Stmt all = parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
      Index at = unravel(unit, units), index(rank);
      for (int i = 0, j = 0; i < rank - 1; ++i)
        if (!reduced(p.axes, i)) index[i] = at[j++];
      index.back() = at.back();
      return bind_all(index, [&](Index index) {
        const PrimExpr number = index.back();
        Stmt body = bind("first", number * block, [&](const PrimExpr& first) {
          return block_of(index, first, min(make_int(vectors) - first, make_int(block)), sums);
        });
        if (!tail) return body;
        return make_if(eq(number, make_int(blocks)), span(index, make_int(vectors * lanes), 1, tail_mask(lanes, tail)),
                       body);
      });
    });
    return allocate(sums, all);
  }
  bool has_long_lines() const {
    const int64_t bytes = product(p.shape) * static_cast<int64_t>(p.dtype.bytes());
    return p.shape.back() / lanes >= block_vectors() / 4 && p.shape[p.axes.back()] >= 2 * kLinesTogether &&
           bytes > 2 * context.target->machine.l2_bytes;
  }

  Index out_index(const Index& index) const {
    Index result;
    for (int i = 0; i < rank; ++i)
      if (!reduced(p.axes, i))
        result.push_back(index[i]);
      else if (keeps_dims)
        result.push_back(make_int(0));
    return result;
  }
  Stmt finish(const Index& index, PrimExpr value, const PrimExpr& mask) const {
    if (p.kind == ReduceKind::kMean) value = div(value, make_const(value->dtype, static_cast<double>(count)));
    Index to = out_index(index);
    return out.store(to, epilogue(value, to, mask), mask);
  }
  PrimExpr operand(const Index& index, int n, const PrimExpr& mask) const {
    PrimExpr value = input(index, n, mask);
    DataType wanted = element.with_lanes(n);
    return value->dtype == wanted ? value : cast(wanted, value);
  }
  Stmt span(Index index, const PrimExpr& from, int n, const PrimExpr& mask) const {
    DataType vector = element.with_lanes(lanes);
    Buffer acc = make_buffer("acc", vector, n, Scope::kRegister);
    std::vector<Stmt> body;
    for (int i = 0; i < n; ++i) body.push_back(store(acc, make_int(i), combine.neutral(vector)));
    body.push_back(over(p.shape, p.axes, 0, index, [&] {
      std::vector<Stmt> steps;
      for (int i = 0; i < n; ++i) {
        index.back() = from + int64_t{i} * lanes;
        steps.push_back(store(acc, make_int(i), combine(load(acc, make_int(i)), operand(index, lanes, mask))));
      }
      return seq(std::move(steps));
    }));
    for (int i = 0; i < n; ++i) {
      index.back() = from + int64_t{i} * lanes;
      body.push_back(finish(index, load(acc, make_int(i)), mask));
    }
    return allocate(acc, seq(std::move(body)));
  }

  static constexpr int64_t kBlockBytes = 16384, kLinesTogether = 4;
  int64_t block_vectors() const { return kBlockBytes / (int64_t{lanes} * element.bytes()); }
  // Columns of `count` vectors from vector `first` on.
  Stmt block_of(Index index, const PrimExpr& first, const PrimExpr& count_here, const Buffer& sums) const {
    const DataType vector = element.with_lanes(lanes);
    auto place = [&](const PrimExpr& v) { return ramp(v * lanes, 1, lanes); };
    auto each = [&](const std::function<Stmt(const PrimExpr&)>& step) {
      return loop("vector", make_int(0), count_here, step);
    };
    auto column = [&](const PrimExpr& v) { return (first + v) * lanes; };
    const int last = p.axes.back();
    const std::vector<int> outer(p.axes.begin(), p.axes.end() - 1);
    const int64_t lines = p.shape[last], groups = lines / kLinesTogether;
    auto add = [&](const PrimExpr& line, int64_t n) {
      return each([&](const PrimExpr& v) {
        PrimExpr sum = load(sums, place(v));
        for (int64_t i = 0; i < n; ++i) {
          index[last] = line + i, index.back() = column(v);
          sum = combine(sum, operand(index, lanes, {}));
        }
        return store(sums, place(v), sum);
      });
    };
    Stmt clear = each([&](const PrimExpr& v) { return store(sums, place(v), combine.neutral(vector)); });
    Stmt total = over(p.shape, outer, 0, index, [&] {
      Stmt most = loop("lines", groups, [&](const PrimExpr& g) { return add(g * kLinesTogether, kLinesTogether); });
      if (lines % kLinesTogether == 0) return most;
      return seq({most, loop("line", make_int(groups * kLinesTogether), make_int(lines),
                             [&](const PrimExpr& line) { return add(line, 1); })});
    });
    Stmt result = each([&](const PrimExpr& v) {
      Index to = index;
      to.back() = column(v);
      return finish(to, load(sums, place(v)), {});
    });
    return seq({clear, total, result});
  }

  const ReduceProblem& p;
  const Operand& input;
  const View& out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const int rank = static_cast<int>(p.shape.size());
  const bool extremum = p.kind == ReduceKind::kMax || p.kind == ReduceKind::kMin;
  const DataType element = extremum ? p.dtype : accumulator_dtype(p.dtype);
  const bool keeps_dims = out.rank() == rank;
  const int lanes = context.target->lanes(std::max<int>(32, element.bits));
  const Combine combine{p.kind, element, extremum&& element.is_float()};
  int64_t count = 1;
  std::vector<int> kept;
};

}  // namespace

Stmt reduce(const ReduceProblem& p, const Operand& input, const View& out, const Epilogue& epilogue,
            const KernelContext& context) {
  TW_ICHECK(!p.axes.empty() && !p.shape.empty(), "reduce: axes");
  const Reduction reduction(p, input, out, epilogue, context);
  if (reduced(p.axes, static_cast<int>(p.shape.size()) - 1)) return reduction.along_rows();
  return reduction.has_long_lines() ? reduction.along_blocks() : reduction.along_lanes();
}

Stmt min_max(const std::vector<int64_t>& shape, DataType dtype, const Operand& input, const View& least,
             const View& most, const KernelContext& context) {
  // Pieces that stay in the first cache until they are read for the second time.
  constexpr int64_t kPiece = 1024;
  const int64_t width = shape.back(), pieces = width / kPiece, rest = width % kPiece;
  const int lanes = context.target->lanes(std::max<int>(32, dtype.bits));
  const bool nan_wins = dtype.is_float();
  const Combine low{ReduceKind::kMin, dtype, nan_wins}, high{ReduceKind::kMax, dtype, nan_wins};
  const std::vector<int64_t> lines(shape.begin(), shape.end() - 1);
  const int64_t whole = std::min(width, kPiece), left = std::max<int64_t>(1, rest);
  const RowReduction whole_low(low, lanes, whole), whole_high(high, lanes, whole), rest_low(low, lanes, left),
      rest_high(high, lanes, left);
  auto both = [&](const RowReduction& a, const RowReduction& b, const PrimExpr& line, const PrimExpr& first) {
    auto element = [&](const PrimExpr& i, int n, const PrimExpr& mask) {
      Index index = unravel(line, lines);
      index.push_back(first + i);
      PrimExpr value = input(index, n, mask);
      const DataType wanted = dtype.with_lanes(n);
      return value->dtype == wanted ? value : cast(wanted, value);
    };
    return seq({a.accumulate(element), b.accumulate(element)});
  };
  return parallel_for(context, "unit", 1, [&](const PrimExpr&) {
    std::vector<Stmt> body{whole_low.clear(), whole_high.clear(), rest_low.clear(), rest_high.clear()};
    body.push_back(loop("line", product(lines), [&](const PrimExpr& line) {
      std::vector<Stmt> parts;
      if (pieces > 0)
        parts.push_back(
            loop("piece", pieces, [&](const PrimExpr& i) { return both(whole_low, whole_high, line, i * kPiece); }));
      if (rest > 0) parts.push_back(both(rest_low, rest_high, line, make_int(pieces * kPiece)));
      return seq(std::move(parts));
    }));
    body.push_back(least.store({}, low(whole_low.result(), rest_low.result())));
    body.push_back(most.store({}, high(whole_high.result(), rest_high.result())));
    Stmt all = seq(std::move(body));
    for (const RowReduction* each : {&whole_low, &whole_high, &rest_low, &rest_high}) all = each->scope(std::move(all));
    return all;
  });
}

Cost estimate(const ReduceProblem& p, const Target& target) {
  Cost cost;
  double elements = static_cast<double>(product(p.shape));
  cost.flops = elements;
  cost.bytes = elements * p.dtype.bits / 8;
  cost.microseconds = cost.bytes / (target.machine.l3_gbps * 1e3);
  return cost;
}

}  // namespace tilewright::topi
