// SPDX-License-Identifier: Apache-2.0
#include "topi/reduce_steps.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tilewright::topi {

using namespace tir;

PrimExpr Combine::operator()(const PrimExpr& a, const PrimExpr& b) const {
  // The machine's extreme is its second operand where one of both is NaN.
  if (nan_wins) return select(ne(b, b), b, kind == ReduceKind::kMax ? max(b, a) : min(b, a));
  switch (kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      return a + b;
    case ReduceKind::kProd:
      return a * b;
    case ReduceKind::kMax:
      return element.is_bool() ? logical_or(a, b) : max(a, b);
    case ReduceKind::kMin:
      return element.is_bool() ? logical_and(a, b) : min(a, b);
  }
  return a;
}

PrimExpr Combine::neutral(DataType dtype) const {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      return make_const(dtype, 0);
    case ReduceKind::kProd:
      return make_const(dtype, 1);
    case ReduceKind::kMax:
      if (dtype.is_float()) return make_const(dtype, -infinity);
      return make_int(dtype.is_int() ? -int64_t{1} << (dtype.bits - 1) : 0, dtype);
    case ReduceKind::kMin:
      if (dtype.is_float()) return make_const(dtype, infinity);
      if (dtype.is_bool()) return make_int(1, dtype);
      return make_int(dtype.is_int() ? static_cast<int64_t>(~uint64_t{0} >> (65 - dtype.bits))
                                     : static_cast<int64_t>(~uint64_t{0} >> (64 - dtype.bits)),
                      dtype);
  }
  return {};
}

PrimExpr Combine::across(const PrimExpr& vector) const {
  const int lanes = vector->dtype.lanes;
  if (lanes == 1) return vector;
  if (!element.is_bool() && !nan_wins) {
    if (kind == ReduceKind::kSum || kind == ReduceKind::kMean) return intrinsic(Intrinsic::k_reduce_add, {vector});
    if (kind == ReduceKind::kMax) return intrinsic(Intrinsic::k_reduce_max, {vector});
    if (kind == ReduceKind::kMin) return intrinsic(Intrinsic::k_reduce_min, {vector});
  }
  // Combines the upper half with the lower half until one lane is left.
  std::vector<int> low(lanes / 2), high(lanes / 2);
  for (int i = 0; i < lanes / 2; ++i) low[i] = i, high[i] = i + lanes / 2;
  return across((*this)(shuffle({vector}, low), shuffle({vector}, high)));
}

RowReduction::RowReduction(Combine combine, int lanes, int64_t extent, bool together)
    : combine_(combine), lanes_(extent < lanes / 2 ? 1 : lanes), extent_(extent) {
  const bool tracks_nan = combine.nan_wins && lanes_ > 1;
  if (tracks_nan) combine_.nan_wins = false;
  wide_ = static_cast<int>(std::clamp<int64_t>(extent / lanes_, 1, 4));
  acc_ = make_buffer("acc", combine.element.with_lanes(lanes_), wide_, Scope::kRegister);
  value_ = make_buffer("value", combine.element.with_lanes(lanes_), 1, Scope::kRegister);
  if (tracks_nan)
    nan_ =
        make_buffer("nan", (combine.element.bits == 64 ? kInt64 : kInt32).with_lanes(lanes_), wide_, Scope::kRegister);
  if (together && wide_ > 1)
    values_ = make_buffer("values", combine.element.with_lanes(lanes_ * wide_), 1, Scope::kRegister);
}

Stmt RowReduction::clear() const {
  std::vector<Stmt> body;
  for (int i = 0; i < wide_; ++i) {
    body.push_back(store(acc_, make_int(i), combine_.neutral(acc_->dtype)));
    if (nan_) body.push_back(store(nan_, make_int(i), make_const(nan_->dtype, 0)));
  }
  return seq(std::move(body));
}

// Adds a vector to a partial result.
Stmt RowReduction::add(int slot, const PrimExpr& value) const {
  const PrimExpr at = make_int(slot);
  Stmt extreme = store(acc_, at, combine_(load(acc_, at), value));
  if (!nan_) return extreme;
  const PrimExpr seen = select(ne(value, value), make_const(nan_->dtype, -1), make_const(nan_->dtype, 0));
  return seq({extreme, store(nan_, at, min(load(nan_, at), seen))});
}

Stmt RowReduction::accumulate(const Element& element,
                              const std::function<Stmt(PrimExpr, PrimExpr, const PrimExpr&)>& also) const {
  const int64_t vectors = extent_ / lanes_, tail = extent_ % lanes_;
  auto step = [&](int slot, const PrimExpr& i, const PrimExpr& mask) {
    PrimExpr value = load(value_, make_int(0));
    std::vector<Stmt> body{store(value_, make_int(0), element(i, lanes_, mask))};
    PrimExpr addend = mask ? select(mask, value, combine_.neutral(value->dtype)) : value;
    body.push_back(add(slot, addend));
    if (also) body.push_back(also(i, value, mask));
    return seq(std::move(body));
  };
  auto steps_together = [&](const PrimExpr& i) {
    const PrimExpr values = load(values_, make_int(0));
    std::vector<Stmt> body{store(values_, make_int(0), element(i, lanes_ * wide_, {}))};
    for (int s = 0; s < wide_; ++s) {
      std::vector<int> part(static_cast<size_t>(lanes_));
      std::iota(part.begin(), part.end(), s * lanes_);
      body.push_back(add(s, shuffle({values}, part)));
    }
    if (also) body.push_back(also(i, values, {}));
    return seq(std::move(body));
  };
  std::vector<Stmt> body;
  if (vectors >= wide_)
    body.push_back(loop("j", vectors / wide_, [&](const PrimExpr& j) {
      if (values_) return steps_together(j * (int64_t{wide_} * lanes_));
      std::vector<Stmt> steps;
      for (int s = 0; s < wide_; ++s) steps.push_back(step(s, j * (int64_t{wide_} * lanes_) + int64_t{s} * lanes_, {}));
      return seq(std::move(steps));
    }));
  for (int64_t j = vectors / wide_ * wide_; j < vectors; ++j)
    body.push_back(step(static_cast<int>(j % wide_), make_int(j * lanes_), {}));
  if (tail) body.push_back(step(0, make_int(vectors * lanes_), tail_mask(lanes_, tail)));
  return seq(std::move(body));
}

// All partial results and lanes as one.
PrimExpr RowReduction::joined(const Buffer& slots, const Combine& combine) const {
  std::vector<PrimExpr> parts;
  for (int i = 0; i < wide_; ++i) parts.push_back(load(slots, make_int(i)));
  while (parts.size() > 1) {
    std::vector<PrimExpr> next;
    for (size_t i = 0; i < parts.size(); i += 2)
      next.push_back(i + 1 < parts.size() ? combine(parts[i], parts[i + 1]) : parts[i]);
    parts = std::move(next);
  }
  return combine.across(parts[0]);
}

PrimExpr RowReduction::result() const {
  PrimExpr extreme = joined(acc_, combine_);
  if (!nan_) return extreme;
  const PrimExpr seen = joined(nan_, {ReduceKind::kMin, nan_->dtype.element()});
  return select(lt(seen, make_int(0, seen->dtype)),
                make_const(extreme->dtype, std::numeric_limits<double>::quiet_NaN()), extreme);
}

Stmt RowReduction::scope(Stmt body) const {
  if (values_) body = allocate(values_, std::move(body));
  if (nan_) body = allocate(nan_, std::move(body));
  return allocate(acc_, allocate(value_, std::move(body)));
}

namespace {

// How a row is walked: a loop over `wide` vectors at a time, then single vectors, the last of `tail` elements.
struct RowWalk {
  int lanes;
  int64_t extent, vectors, tail, wide;
  RowWalk(int most_lanes, int64_t n, int unroll)
      : lanes(n < most_lanes / 2 ? 1 : most_lanes),
        extent(n),
        vectors(n / lanes),
        tail(n % lanes),
        wide(std::clamp<int64_t>(vectors, 1, unroll)) {}
  int64_t step() const { return wide * lanes; }
  Stmt loop_over(const PrimExpr& first, const PrimExpr& last, const RowStep& f) const {
    return loop("j", first, last, [&](const PrimExpr& j) {
      std::vector<Stmt> steps;
      for (int64_t s = 0; s < wide; ++s) steps.push_back(f(j * step() + s * lanes, lanes, {}));
      return seq(std::move(steps));
    });
  }
  Stmt rest(const RowStep& f) const {
    std::vector<Stmt> body;
    for (int64_t j = vectors / wide * wide; j < vectors; ++j) body.push_back(f(make_int(j * lanes), lanes, {}));
    if (tail) body.push_back(f(make_int(vectors * lanes), lanes, tail_mask(lanes, tail)));
    return seq(std::move(body));
  }
};

}  // namespace

Stmt along_row(int lanes, int64_t extent, int unroll, const RowStep& f) {
  const RowWalk row(lanes, extent, unroll);
  return seq({row.vectors >= row.wide ? row.loop_over(make_int(0), make_int(row.vectors / row.wide), f) : seq({}),
              row.rest(f)});
}

Stmt along_row_share(const KernelContext& context, int lanes, int64_t extent, int unroll, const RowStep& f) {
  if (!context.tid) return along_row(lanes, extent, unroll, f);
  constexpr int64_t kLine = 64;  // elements, each at least a byte, that fill a cache line
  const RowWalk row(lanes, extent, unroll);
  const Range share = parallel_range(context, extent, ceil_div(kLine, row.step()) * row.step());
  // All but the last share end with a whole step.
  return seq({row.loop_over(floordiv(share.begin, row.step()), floordiv(share.end, row.step()), f),
              make_if(eq(share.end, make_int(extent)), row.rest(f))});
}

Stmt bind_all(const Index& index, const std::function<Stmt(Index)>& body) {
  Index named = index;
  std::function<Stmt(size_t)> from = [&](size_t i) -> Stmt {
    if (i == named.size()) return body(named);
    if (!named[i]) return from(i + 1);
    return bind("i", named[i], [&](PrimExpr var) {
      named[i] = std::move(var);
      return from(i + 1);
    });
  };
  return from(0);
}

}  // namespace tilewright::topi
