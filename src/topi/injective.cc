// SPDX-License-Identifier: Apache-2.0
#include "topi/injective.h"

#include <algorithm>

namespace tilewright::topi {

using namespace tir;

namespace {

// A run of the last dimension and how to compute it.
struct Run {
  int64_t first, last;
  Operand value;
  int64_t extent() const { return last - first; }
};

class Injective {
 public:
  Injective(const View& out, std::vector<Run> runs, int lanes, const InjectiveConfig& config,
            const KernelContext& context)
      : out_(out),
        runs_(std::move(runs)),
        lanes_(lanes),
        unroll_(std::max(1, config.unroll)),
        together_(config.together),
        stores_late_(config.stores_late),
        overlaps_(config.overlaps),
        context_(context) {}

  Stmt stmt() const {
    std::vector<int64_t> outer(out_.shape.begin(), out_.shape.end() - 1);
    // With a short last dimension (channel blocks), the one before it is also inside a unit of work, so that the unit's
    // index, and operands that do not change along it, are computed once for many vectors.
    const bool paired = !outer.empty() && vectors_of_row() <= (runs_.size() > 1 ? 4 : 2) && outer.back() > 1;
    const int64_t columns = paired ? outer.back() : 0;
    if (paired) outer.pop_back();

    // Little work outside the innermost loop: split that one into parts of several vectors.
    const int64_t rows = product(outer), whole = runs_[0].extent() / lanes_;
    const int64_t length = paired ? columns : runs_.size() > 1 ? 1 : whole;
    const int64_t part =
        rows >= 64 || length < 16 ? std::max<int64_t>(1, length) : std::max<int64_t>(8, length / 64 / 8 * 8);
    const int64_t parts = std::max<int64_t>(1, ceil_div(length, part));
    std::vector<int64_t> units = outer;
    units.push_back(parts);
    return parallel_for(context_, "unit", product(units), [&](const PrimExpr& unit) {
      Index at = unravel(unit, units);
      // Bound to names, since operands use each several times.
      std::function<Stmt(size_t)> named = [&](size_t i) -> Stmt {
        if (i < at.size())
          return bind("i", at[i], [&](PrimExpr var) {
            at[i] = std::move(var);
            return named(i + 1);
          });
        Index place(at.begin(), at.end() - 1);
        PrimExpr number = at.back();
        if (paired) return cells(place, number, columns, part, parts);
        if (parts == 1) return row(place);
        PrimExpr first = number * part;
        Stmt body = vectors(place, runs_[0], first, min(first + part, make_int(whole)), 0);
        if (Stmt rest = tail(place, runs_[0])) body = seq({body, make_if(eq(number, make_int(parts - 1)), rest)});
        return body;
      };
      return named(0);
    });
  }

 private:
  int64_t vectors_of_row() const {
    int64_t n = 0;
    for (const Run& run : runs_) n += ceil_div(run.extent(), lanes_);
    return n;
  }
  Stmt span(const Index& at, const Run& run, PrimExpr from, int lanes, const PrimExpr& mask) const {
    Index index = at;
    index.push_back(std::move(from));
    return out_.store(index, run.value(index, lanes, mask), mask);
  }
  // Vectors [first, end) of a run, unrolled if their number is known.
  Stmt vectors(const Index& at, const Run& run, const PrimExpr& first, const PrimExpr& end, int64_t count) const {
    if (together_ > 1 && (count == 0 || count >= together_)) return vectors_together(at, run, first, end, count);
    if (stores_late_) return stored_late(at, run, first, end, lanes_);
    int64_t unroll = count > 0 ? std::min<int64_t>(unroll_, count) : 1;
    while (count > 0 && count % unroll != 0) --unroll;
    PrimExpr groups = unroll == 1 ? end : make_int(count / unroll);
    return loop("vector", unroll == 1 ? first : make_int(0), groups, [&](const PrimExpr& i) {
      std::vector<Stmt> stores;
      for (int64_t u = 0; u < unroll; ++u)
        stores.push_back(span(at, run, i * (lanes_ * unroll) + (run.first + u * lanes_), lanes_, {}));
      return seq(std::move(stores));
    });
  }
  // Vectors [first, end) of `lanes` elements, one or more, each stored behind the loads of the next one.
  Stmt stored_late(const Index& at, const Run& run, const PrimExpr& first, const PrimExpr& end, int lanes) const {
    auto place = [&](const PrimExpr& i) {
      Index index = at;
      index.push_back(i * int64_t{lanes} + run.first);
      return index;
    };
    const PrimExpr zero = make_int(0), value = run.value(place(first), lanes, {});
    Buffer held = make_buffer("held", value->dtype, 1, Scope::kRegister);
    Buffer next = make_buffer("next", value->dtype, 1, Scope::kRegister);
    Stmt others = loop("vector", first + 1, end, [&](const PrimExpr& i) {
      return seq({store(next, zero, run.value(place(i), lanes, {})), out_.store(place(i - 1), load(held, zero)),
                  store(held, zero, load(next, zero))});
    });
    return allocate(held, allocate(next, seq({store(held, zero, value), std::move(others),
                                              out_.store(place(end - 1), load(held, zero))})));
  }
  // `first` is a multiple of their number.
  Stmt vectors_together(const Index& at, const Run& run, const PrimExpr& first, const PrimExpr& end,
                        int64_t count) const {
    const int64_t t = together_;
    const PrimExpr from = count > 0 ? make_int(0) : floordiv(first, t), to = floordiv(end, t);
    auto some = [&](const PrimExpr& vector, int64_t n) {
      return span(at, run, vector * int64_t{lanes_} + run.first, static_cast<int>(n) * lanes_, {});
    };
    Stmt wide = stores_late_ ? stored_late(at, run, from, to, lanes_ * together_)
                             : loop("vectors", from, to, [&](const PrimExpr& i) { return some(i * t, t); });
    if (stores_late_ && count == 0) wide = make_if(lt(from, to), wide);
    if (count > 0 && count % t == 0) return wide;
    return seq({wide, loop("vector", to * t, end, [&](const PrimExpr& i) { return some(i, 1); })});
  }
  // The remainder of a run behind its whole vectors; null if there is none.
  Stmt tail(const Index& at, const Run& run) const {
    const int64_t left = run.extent() % lanes_;
    if (left == 0) return {};
    const bool overlaps = overlaps_ && left > 1 && run.extent() > lanes_;
    const PrimExpr from = make_int(run.last - (overlaps ? lanes_ : left));
    if (overlaps) return span(at, run, from, lanes_, {});
    return left == 1 ? span(at, run, from, 1, {}) : span(at, run, from, lanes_, tail_mask(lanes_, left));
  }
  Stmt row(const Index& at) const {
    std::vector<Stmt> stmts;
    for (const Run& run : runs_) {
      const int64_t whole = run.extent() / lanes_;
      if (whole > 0) stmts.push_back(vectors(at, run, make_int(0), make_int(whole), whole));
      if (Stmt rest = tail(at, run)) stmts.push_back(rest);
    }
    return seq(std::move(stmts));
  }
  // One short row, vector by vector.
  Stmt cell(Index at, PrimExpr column) const {
    at.push_back(std::move(column));
    std::vector<Stmt> stores;
    for (const Run& run : runs_) {
      for (int64_t i = 0; i < run.extent() / lanes_; ++i)
        stores.push_back(span(at, run, make_int(run.first + i * lanes_), lanes_, {}));
      if (Stmt rest = tail(at, run)) stores.push_back(rest);
    }
    return seq(std::move(stores));
  }
  Stmt cells(const Index& at, const PrimExpr& number, int64_t columns, int64_t part, int64_t parts) const {
    if (parts > 1) {
      PrimExpr first = number * part;
      return loop("column", first, columns % part == 0 ? first + part : min(first + part, make_int(columns)),
                  [&](const PrimExpr& w) { return cell(at, w); });
    }
    const int64_t unroll = std::min<int64_t>(columns, unroll_), whole = columns / unroll;
    std::vector<Stmt> stmts;
    stmts.push_back(loop("columns", whole, [&](const PrimExpr& group) {
      std::vector<Stmt> some;
      for (int64_t u = 0; u < unroll; ++u) some.push_back(cell(at, group * unroll + u));
      return seq(std::move(some));
    }));
    for (int64_t w = whole * unroll; w < columns; ++w) stmts.push_back(cell(at, make_int(w)));
    return seq(std::move(stmts));
  }

  const View& out_;
  const std::vector<Run> runs_;
  const int lanes_, unroll_, together_;
  const bool stores_late_, overlaps_;
  const KernelContext& context_;
};

}  // namespace

Stmt injective(const View& out, const RunOperand& value, const std::vector<int64_t>& cuts,
               const InjectiveConfig& config, const KernelContext& context) {
  if (product(out.shape) == 0) return seq({});
  if (out.rank() == 0)
    return parallel_for(context, "unit", 1, [&](const PrimExpr&) { return out.store({}, value(0, 1)({}, 1, {})); });
  int lanes = config.lanes > 0 ? config.lanes : context.target->lanes(std::max<int>(32, out.dtype().bits));
  const int64_t inner = out.shape.back();
  if (inner == 1) lanes = 1;
  std::vector<Run> runs;
  int64_t first = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const int64_t last = i < cuts.size() ? cuts[i] : inner;
    runs.push_back({first, last, value(first, last)});
    first = last;
  }
  // Few long rows: run by run, each divided among threads.
  if (runs.size() > 1 && product(out.shape) / inner < 64 && inner >= 16 * lanes) {
    std::vector<Stmt> stmts;
    for (const Run& run : runs) stmts.push_back(Injective(out, {run}, lanes, config, context).stmt());
    return seq(std::move(stmts));
  }
  return Injective(out, std::move(runs), lanes, config, context).stmt();
}

Stmt injective(const View& out, const Operand& value, const InjectiveConfig& config, const KernelContext& context) {
  return injective(
      out, [&](int64_t, int64_t) { return value; }, {}, config, context);
}

Cost injective_cost(const View& out, double operand_bytes, double flops_per_element, const Target& target) {
  double elements = static_cast<double>(product(out.shape));
  Cost cost;
  cost.flops = elements * flops_per_element;
  cost.bytes = operand_bytes + elements * out.dtype().bits / 8.0;
  double rate = cost.bytes <= target.machine.l2_bytes ? target.machine.l2_gbps / 2 : target.machine.l3_gbps / 2;
  cost.microseconds = std::max(cost.bytes / (rate * 1e3), cost.flops / (target.machine.gflops * 0.4e3));
  return cost;
}

}  // namespace tilewright::topi
