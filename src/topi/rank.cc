// SPDX-License-Identifier: Apache-2.0
#include "topi/rank.h"

#include <algorithm>
#include <limits>

#include "topi/reduce_steps.h"
#include "topi/select_order.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostInLine = 4096;
constexpr int64_t kTogether = 4;  // vectors of elements whose places are counted at once

class Ranking {
 public:
  Ranking(const RankProblem& p, DataType element, const Operand& input, const KernelContext& context)
      : p_(p),
        element_(element),
        key_(order_dtype(element)),
        input_(input),
        n_(p.shape[p.axis]),
        lanes_(std::min<int64_t>(context.target->lanes(key_.bits), bit_ceiling(n_))),
        padded_(round_up(n_, lanes_)),
        searches_(searches(p, element, lanes_)),
        keys_(make_buffer("keys", key_, padded_, Scope::kStack, 64)),
        ranks_(make_buffer("ranks", key_, padded_, Scope::kStack, 64)),
        from_(make_buffer("from", kInt32, p.k + 1, Scope::kStack, 64)),
        before_(make_buffer("before", key_.with_lanes(static_cast<int>(lanes_)), kTogether, Scope::kRegister)) {}

  Stmt stmt(const PrimExpr& line, const View* values, const View* indices) const {
    Stmt all = loop("t", p_.k, [&](const PrimExpr& t) { return put(line, t, values, indices); });
    if (searches_) return allocate(keys_, allocate(from_, seq({fill(line), search(), all})));
    Stmt body = seq({fill(line), counts(), turn(), all});
    return allocate(keys_, allocate(ranks_, allocate(from_, allocate(before_, body))));
  }

  // In nanoseconds, as measured: each of k searches goes over the line once, a count once for every element.
  static double search_ns(const RankProblem& p, int64_t lanes) {
    return static_cast<double>(p.k) * (20 + 1.0 * static_cast<double>(ceil_div(p.shape[p.axis], lanes)));
  }
  static double count_ns(const RankProblem& p, int64_t lanes) {
    const auto n = static_cast<double>(p.shape[p.axis]);
    return n * (1.5 + 0.5 * static_cast<double>(ceil_div(p.shape[p.axis], lanes)));
  }
  // Whole numbers may have every key.
  static bool searches(const RankProblem& p, DataType element, int64_t lanes) {
    return element.is_float() && search_ns(p, lanes) < count_ns(p, lanes);
  }

 private:
  static int64_t bit_ceiling(int64_t n) {
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
  }
  int lanes() const { return static_cast<int>(lanes_); }
  Index at(const PrimExpr& line, PrimExpr j) const {
    std::vector<int64_t> others = p_.shape;
    others[p_.axis] = 1;
    Index index = unravel(line, others);
    index[p_.axis] = std::move(j);
    return index;
  }
  PrimExpr lane(const PrimExpr& first) const { return lanes() == 1 ? first : ramp(first, 1, lanes()); }

  // What stands behind the line's end precedes nothing.
  Stmt fill(const PrimExpr& line) const {
    const PrimExpr last = make_int(
        key_.bits == 64 ? std::numeric_limits<int64_t>::max() : int64_t{std::numeric_limits<int32_t>::max()}, key_);
    auto key = [&](const PrimExpr& j, int lanes) {
      const PrimExpr order = order_key(input_(at(line, j), lanes, {}), element_, p_.ascending);
      return searches_ ? min(order, broadcast(largest_key() - make_int(1, key_), lanes)) : order;
    };
    const int64_t whole = p_.axis + 1 == p_.shape.size() ? n_ / lanes_ * lanes_ : 0;
    std::vector<Stmt> body;
    if (whole > 0)
      body.push_back(loop("v", whole / lanes_,
                          [&](const PrimExpr& v) { return store(keys_, lane(v * lanes_), key(v * lanes_, lanes())); }));
    if (whole < n_)
      body.push_back(
          loop("j", make_int(whole), make_int(n_), [&](const PrimExpr& j) { return store(keys_, j, key(j, 1)); }));
    if (n_ < padded_)
      body.push_back(
          loop("j", make_int(n_), make_int(padded_), [&](const PrimExpr& j) { return store(keys_, j, last); }));
    return seq(std::move(body));
  }

  // Counts for `width` blocks at once, so that each broadcast meets several vectors whose sums do not wait for each
  // other: of the elements before a block also equal ones precede, in the block itself those before the lane.
  Stmt count(const PrimExpr& block, int64_t width) const {
    const int64_t step = std::min<int64_t>(4, lanes_);
    std::vector<PrimExpr> own;
    for (int64_t w = 0; w < width; ++w) own.push_back(make_var("own", key_.with_lanes(lanes())));
    auto add = [&](int64_t w, const PrimExpr& precedes) {
      const DataType type = key_.with_lanes(lanes());
      return store(before_, make_int(w),
                   load(before_, make_int(w)) + select(precedes, make_const(type, 1), make_const(type, 0)));
    };
    // f(theirs, lane) for all elements of the blocks [begin, end).
    auto each = [&](const PrimExpr& begin, const PrimExpr& end,
                    const std::function<Stmt(const PrimExpr& theirs, const PrimExpr& lane)>& f) {
      return loop("other", begin, end, [&](const PrimExpr& o) {
        return loop("l", lanes_ / step, [&](const PrimExpr& l) {
          std::vector<Stmt> steps;
          for (int64_t s = 0; s < step; ++s) {
            const PrimExpr theirs = make_var("theirs", key_);
            steps.push_back(
                let_stmt(theirs, load(keys_, o * lanes_ + l * step + s), f(broadcast(theirs, lanes()), l * step + s)));
          }
          return seq(std::move(steps));
        });
      });
    };
    auto all = [&](bool equal) {
      return [&, equal](const PrimExpr& theirs, const PrimExpr&) {
        std::vector<Stmt> sums;
        for (int64_t w = 0; w < width; ++w) sums.push_back(add(w, equal ? le(theirs, own[w]) : lt(theirs, own[w])));
        return seq(std::move(sums));
      };
    };
    std::vector<Stmt> body;
    for (int64_t w = 0; w < width; ++w)
      body.push_back(store(before_, make_int(w), make_const(key_.with_lanes(lanes()), 0)));
    body.push_back(each(make_int(0), block, all(true)));
    const PrimExpr places = lanes() == 1 ? make_int(0, key_) : ramp(make_int(0, key_), 1, lanes());
    for (int64_t inside = 0; inside < width; ++inside)
      body.push_back(each(block + inside, block + (inside + 1), [&](const PrimExpr& theirs, const PrimExpr& l) {
        std::vector<Stmt> sums;
        for (int64_t w = 0; w < width; ++w) {
          const PrimExpr before = lt(theirs, own[w]),
                         earlier = logical_and(eq(theirs, own[w]), lt(broadcast(cast(key_, l), lanes()), places));
          sums.push_back(add(w, w > inside ? le(theirs, own[w]) : w < inside ? before : logical_or(before, earlier)));
        }
        return seq(std::move(sums));
      }));
    body.push_back(each(block + width, make_int(padded_ / lanes_), all(false)));
    for (int64_t w = 0; w < width; ++w)
      body.push_back(store(ranks_, lane((block + w) * lanes_), load(before_, make_int(w))));
    Stmt out = seq(std::move(body));
    for (int64_t w = width; w-- > 0;) out = let_stmt(own[w], load(keys_, lane((block + w) * lanes_)), out);
    return out;
  }
  Stmt counts() const {
    const int64_t blocks = padded_ / lanes_, groups = blocks / kTogether, rest = blocks % kTogether;
    return seq({groups > 0 ? loop("group", groups, [&](const PrimExpr& g) { return count(g * kTogether, kTogether); })
                           : seq({}),
                rest > 0 ? count(make_int(groups * kTogether), rest) : seq({})});
  }

  // One after the other: the least key, and the first element that has it, which is then taken out by the largest key:
  // no number has that, since NaN is moved to the one before.
  Stmt search() const {
    const PrimExpr end = make_int(padded_, key_);
    auto key = [&](const PrimExpr& i) { return load(keys_, lane(i)); };
    auto place = [&](const PrimExpr& i) { return lanes() == 1 ? cast(key_, i) : ramp(cast(key_, i), 1, lanes()); };
    auto next = [&](const PrimExpr& t) {
      const RowReduction least({ReduceKind::kMin, key_}, lanes(), padded_),
          first({ReduceKind::kMin, key_}, lanes(), padded_);
      auto any = [&](const PrimExpr& i, int, const PrimExpr&) { return key(i); };
      return least.scope(
          seq({least.clear(), least.accumulate(any), bind("top", least.result(), [&](const PrimExpr& top) {
                 auto holding = [&](const PrimExpr& i, int, const PrimExpr&) {
                   return select(eq(key(i), broadcast(top, lanes())), place(i), broadcast(end, lanes()));
                 };
                 return first.scope(
                     seq({first.clear(), first.accumulate(holding),
                          bind("at", max(min(cast(kInt64, first.result()), make_int(n_ - 1)), make_int(0)),
                               [&](const PrimExpr& at) {
                                 return seq({store(from_, t, cast(kInt32, at)), store(keys_, at, largest_key())});
                               })}));
               })}));
    };
    return loop("t", p_.k, next);
  }
  PrimExpr largest_key() const {
    return make_int(
        key_.bits == 64 ? std::numeric_limits<int64_t>::max() : int64_t{std::numeric_limits<int32_t>::max()}, key_);
  }
  // From the place of each element to the element of each place; those behind the k-th share one place more.
  Stmt turn() const {
    return loop("j", n_, [&](const PrimExpr& j) {
      const PrimExpr place = max(min(cast(kInt64, load(ranks_, j)), make_int(p_.k)), make_int(0));
      return store(from_, place, cast(kInt32, j));
    });
  }
  Stmt put(const PrimExpr& line, const PrimExpr& t, const View* values, const View* indices) const {
    // It is below n; the clamp shows that to the verifier.
    return bind("from", max(min(cast(kInt64, load(from_, t)), make_int(n_ - 1)), make_int(0)),
                [&](const PrimExpr& from) {
                  std::vector<Stmt> out;
                  if (values) out.push_back(values->store(at(line, t), input_(at(line, from), 1, {})));
                  if (indices)
                    out.push_back(
                        indices->store(at(line, t), indices->dtype() == kInt64 ? from : cast(indices->dtype(), from)));
                  return seq(std::move(out));
                });
  }

  const RankProblem& p_;
  const DataType element_, key_;
  const Operand& input_;
  const int64_t n_, lanes_, padded_;
  const bool searches_;
  const Buffer keys_, ranks_, from_, before_;
};

int64_t lines_of(const RankProblem& p) { return product(p.shape) / std::max<int64_t>(1, p.shape[p.axis]); }

}  // namespace

bool can_rank(const RankProblem& p) { return p.shape[p.axis] <= kMostInLine; }

Stmt rank(const RankProblem& p, DataType dtype, const Operand& input, const View* values, const View* indices,
          const KernelContext& context) {
  if (product(p.shape) == 0 || p.k == 0) return seq({});
  const Ranking ranking(p, dtype, input, context);
  return parallel_for(context, "line", lines_of(p),
                      [&](const PrimExpr& line) { return ranking.stmt(line, values, indices); });
}

Cost rank_cost(const RankProblem& p, DataType dtype, const Target& target) {
  const auto n = static_cast<double>(p.shape[p.axis]), lines = static_cast<double>(lines_of(p));
  const int64_t wide = std::max(1, target.lanes(order_dtype(dtype).bits));
  Cost cost;
  cost.flops = lines * n * (Ranking::searches(p, dtype, wide) ? static_cast<double>(p.k) : n);
  cost.bytes = lines * n * dtype.bits / 8;
  cost.microseconds =
      lines *
      (20 + n * 0.5 + (Ranking::searches(p, dtype, wide) ? Ranking::search_ns(p, wide) : Ranking::count_ns(p, wide))) /
      1e3;
  return cost;
}

}  // namespace tilewright::topi
