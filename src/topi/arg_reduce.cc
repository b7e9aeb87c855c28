// SPDX-License-Identifier: Apache-2.0
// Arg-reductions. Each lane keeps the best element so far and its index. If the axis is not the last dimension, lanes
// run across lines; if it is, along the line, and are combined at its end.
#include <algorithm>
#include <utility>

#include "topi/reduce.h"
#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

class ArgReduction {
 public:
  ArgReduction(const ArgReduceProblem& p, const Operand& input, const View* out, const View* values,
               const KernelContext& context)
      : p_(p),
        input_(input),
        out_(out),
        values_(values),
        context_(context),
        // Narrow elements are widened to the width of the indices they are compared beside.
        element_(p.dtype.bits >= 32   ? p.dtype
                 : p.dtype.is_float() ? kFloat32
                                      : kInt32),
        place_(element_.bits == 64 || p.shape[p.axis] > INT32_MAX ? kInt64 : kInt32) {}

  // Each unit of work is one line.
  Stmt lines() const {
    std::vector<int64_t> units = p_.shape;
    units[p_.axis] = 1;
    const int lanes = lanes_of_line();
    return parallel_for(context_, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units),
                      [&](const Index& index) { return lanes > 1 ? line(index, lanes) : scalar(index); });
    });
  }

  // Vectors across lines.
  Stmt columns(int lanes) const {
    const int rank = static_cast<int>(p_.shape.size());
    const int64_t inner = p_.shape.back(), vectors = inner / lanes, tail = inner % lanes;
    const int64_t wide = std::clamp<int64_t>(vectors, 1, 4), groups = vectors / wide, rest = vectors % wide;
    const int64_t parts = groups + (rest ? 1 : 0) + (tail ? 1 : 0);
    std::vector<int64_t> units = p_.shape;
    units[p_.axis] = 1;
    units.back() = parts;
    return parallel_for(context_, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](Index index) {
        const PrimExpr part = index[rank - 1];
        Stmt body = groups > 0 ? span(index, part * (wide * lanes), static_cast<int>(wide), lanes, {}) : Stmt();
        auto also = [&](int64_t number, const Stmt& other) {
          body = body ? make_if(eq(part, make_int(number)), other, body) : other;
        };
        if (rest) also(groups, span(index, make_int(groups * wide * lanes), static_cast<int>(rest), lanes, {}));
        if (tail)
          also(groups + (rest ? 1 : 0), span(index, make_int(vectors * lanes), 1, lanes, tail_mask(lanes, tail)));
        return body;
      });
    });
  }

  int lanes_across() const { return context_.target->lanes(std::max(element_.bits, place_.bits)); }

 private:
  int lanes_of_line() const {
    int lanes = lanes_across();
    while (lanes > 1 && p_.shape[p_.axis] < 2 * lanes) lanes /= 2;
    return p_.axis + 1 == static_cast<int>(p_.shape.size()) && lanes >= 4 ? lanes : 1;
  }

  PrimExpr value(const Index& index, int lanes, const PrimExpr& mask) const {
    PrimExpr x = input_(index, lanes, mask);
    const DataType wanted = element_.with_lanes(lanes);
    return x->dtype == wanted ? x : cast(wanted, x);
  }
  // Whether a value that comes later in the line replaces the held one.
  PrimExpr better(const PrimExpr& value, const PrimExpr& held) const {
    if (!element_.is_float())
      return p_.largest ? (p_.last_index ? ge(value, held) : gt(value, held))
                        : (p_.last_index ? le(value, held) : lt(value, held));
    // NaN counts as most extreme: "not below" selects it, and a held NaN is replaced by another at most.
    PrimExpr below = p_.largest ? (p_.last_index ? lt(value, held) : le(value, held))
                                : (p_.last_index ? gt(value, held) : ge(value, held));
    PrimExpr yields = eq(held, held);
    if (p_.last_index) yields = logical_or(yields, ne(value, value));
    return logical_and(logical_not(below), yields);
  }
  // Whether the best element of lane b beats that of lane a; ties are decided by index.
  PrimExpr prefer(const PrimExpr& a, const PrimExpr& place_a, const PrimExpr& b, const PrimExpr& place_b) const {
    PrimExpr beyond = p_.largest ? gt(b, a) : lt(b, a), equal = eq(a, b);
    if (element_.is_float()) {
      PrimExpr nan_a = ne(a, a), nan_b = ne(b, b);
      beyond = logical_or(beyond, logical_and(nan_b, logical_not(nan_a)));
      equal = logical_or(equal, logical_and(nan_a, nan_b));
    }
    return logical_or(beyond, logical_and(equal, p_.last_index ? gt(place_b, place_a) : lt(place_b, place_a)));
  }
  PrimExpr place(const PrimExpr& i, int lanes) const {
    return broadcast(place_ == kInt64 ? i : cast(place_, i), lanes);
  }
  // `extreme` is null when it has to be loaded first.
  Stmt put(Index index, const PrimExpr& place, PrimExpr extreme, const PrimExpr& mask) const {
    const auto axis = static_cast<size_t>(p_.axis);
    if (values_ && !extreme) {
      // It is below the extent; the clamp shows that to the verifier.
      Index from = index;
      from[axis] = max(min(cast(kInt64, place), make_int(p_.shape[axis] - 1)), make_int(0));
      extreme = input_(from, 1, {});
    }
    const bool keeps_dims = (out_ ? out_ : values_)->rank() == static_cast<int>(p_.shape.size());
    if (keeps_dims)
      index[axis] = make_int(0);
    else
      index.erase(index.begin() + p_.axis);
    std::vector<Stmt> stores;
    if (out_) stores.push_back(out_->store(index, cast(out_->dtype(), place), mask));
    if (values_) {
      const DataType wanted = values_->dtype().with_lanes(extreme->dtype.lanes);
      stores.push_back(values_->store(index, extreme->dtype == wanted ? extreme : cast(wanted, extreme), mask));
    }
    return seq(std::move(stores));
  }
  // Updates `count` vectors of best elements and their indices with the elements at index i.
  Stmt step(const Buffer& best, const Buffer& where, int slot, const PrimExpr& value, const PrimExpr& at,
            const PrimExpr& mask) const {
    const PrimExpr s = make_int(slot);
    return bind("value", value, [&](PrimExpr x) {
      PrimExpr take = better(x, load(best, s));
      if (mask) take = logical_and(take, mask);
      return bind("take", take, [&](const PrimExpr& take) {
        return seq({store(where, s, select(take, at, load(where, s))), store(best, s, select(take, x, load(best, s)))});
      });
    });
  }

  Stmt span(Index index, const PrimExpr& from, int n, int lanes, const PrimExpr& mask) const {
    const size_t axis = static_cast<size_t>(p_.axis);
    Buffer best = make_buffer("best", element_.with_lanes(lanes), n, Scope::kRegister),
           where = make_buffer("where", place_.with_lanes(lanes), n, Scope::kRegister);
    std::vector<Stmt> body;
    auto each = [&](const PrimExpr& i, const std::function<Stmt(int, PrimExpr)>& use) {
      std::vector<Stmt> out;
      for (int s = 0; s < n; ++s) {
        index[axis] = i;
        index.back() = from + int64_t{s} * lanes;
        out.push_back(use(s, value(index, lanes, mask)));
      }
      return seq(std::move(out));
    };
    body.push_back(each(make_int(0), [&](int s, PrimExpr x) {
      return seq(
          {store(best, make_int(s), std::move(x)), store(where, make_int(s), make_const(place_.with_lanes(lanes), 0))});
    }));
    if (p_.shape[axis] > 1)
      body.push_back(loop("i", make_int(1), make_int(p_.shape[axis]), [&](PrimExpr i) {
        return bind("at", place(i, lanes), [&](PrimExpr at) {
          return each(i, [&](int s, const PrimExpr& x) { return step(best, where, s, x, at, {}); });
        });
      }));
    for (int s = 0; s < n; ++s) {
      index.back() = from + int64_t{s} * lanes;
      body.push_back(put(index, load(where, make_int(s)), load(best, make_int(s)), mask));
    }
    return allocate(best, allocate(where, seq(std::move(body))));
  }

  Stmt line(Index index, int lanes) const {
    const size_t axis = static_cast<size_t>(p_.axis);
    const int64_t n = p_.shape[axis], vectors = n / lanes, tail = n % lanes;
    const int wide = static_cast<int>(std::clamp<int64_t>(vectors / 2, 1, 4));
    Buffer best = make_buffer("best", element_.with_lanes(lanes), wide, Scope::kRegister),
           where = make_buffer("where", place_.with_lanes(lanes), wide, Scope::kRegister);
    auto at = [&](const PrimExpr& i) { return ramp(place_ == kInt64 ? i : cast(place_, i), 1, lanes); };
    auto element = [&](const PrimExpr& i, const PrimExpr& mask) {
      Index from = index;
      from[axis] = i;
      return value(from, lanes, mask);
    };
    std::vector<Stmt> body;
    for (int s = 0; s < wide; ++s) {
      const PrimExpr i = make_int(int64_t{s} * lanes);
      body.push_back(seq({store(best, make_int(s), element(i, {})), store(where, make_int(s), at(i))}));
    }
    auto go = [&](const PrimExpr& i, int s, const PrimExpr& mask) {
      return step(best, where, s, element(i, mask), at(i), mask);
    };
    if (vectors / wide > 1)
      body.push_back(loop("j", make_int(1), make_int(vectors / wide), [&](const PrimExpr& j) {
        std::vector<Stmt> steps;
        for (int s = 0; s < wide; ++s) steps.push_back(go(j * (int64_t{wide} * lanes) + int64_t{s} * lanes, s, {}));
        return seq(std::move(steps));
      }));
    for (int64_t j = vectors / wide * wide; j < vectors; ++j)
      body.push_back(go(make_int(j * lanes), static_cast<int>(j % wide), {}));
    if (tail) body.push_back(go(make_int(vectors * lanes), 0, tail_mask(lanes, tail)));
    body.push_back(meet(best, where, wide, lanes, [&](const PrimExpr& found) { return put(index, found, {}, {}); }));
    return allocate(best, allocate(where, seq(std::move(body))));
  }

  // Combines all slots and lanes: slots pairwise, then the upper half of the lanes with the lower.
  Stmt meet(const Buffer& best, const Buffer& where, int wide, int lanes,
            const std::function<Stmt(PrimExpr)>& use) const {
    std::vector<Stmt> body;
    for (int half = 1; half < wide; half *= 2)
      for (int s = 0; s + half < wide; s += 2 * half) {
        const PrimExpr a = make_int(s), b = make_int(s + half);
        body.push_back(
            bind("take", prefer(load(best, a), load(where, a), load(best, b), load(where, b)), [&](const PrimExpr& t) {
              return seq({store(best, a, select(t, load(best, b), load(best, a))),
                          store(where, a, select(t, load(where, b), load(where, a)))});
            }));
      }
    std::function<Stmt(PrimExpr, PrimExpr, int)> fold = [&](const PrimExpr& x, const PrimExpr& at, int n) -> Stmt {
      if (n == 1) return use(at);
      std::vector<int> low(static_cast<size_t>(n) / 2), high(low.size());
      for (int i = 0; i < n / 2; ++i) low[static_cast<size_t>(i)] = i, high[static_cast<size_t>(i)] = i + n / 2;
      PrimExpr xa = shuffle({x}, low), xb = shuffle({x}, high), pa = shuffle({at}, low), pb = shuffle({at}, high);
      return bind("take", prefer(xa, pa, xb, pb), [&](PrimExpr t) {
        return bind("x", select(t, xb, xa), [&](PrimExpr x2) {
          return bind("at", select(t, pb, pa), [&](PrimExpr at2) { return fold(x2, std::move(at2), n / 2); });
        });
      });
    };
    body.push_back(bind("x", load(best, make_int(0)), [&](PrimExpr x) {
      return bind("at", load(where, make_int(0)), [&](PrimExpr at) { return fold(x, std::move(at), lanes); });
    }));
    return seq(std::move(body));
  }

  Stmt scalar(Index index) const {
    const size_t axis = static_cast<size_t>(p_.axis);
    Buffer best = make_buffer("best", element_, 1, Scope::kRegister),
           where = make_buffer("where", kInt64, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    index[axis] = zero;
    Stmt start = seq({store(best, zero, value(index, 1, {})), store(where, zero, zero)});
    Stmt walk =
        p_.shape[axis] <= 1 ? seq({}) : loop("i", make_int(1), make_int(p_.shape[axis]), [&](const PrimExpr& i) {
          index[axis] = i;
          return step(best, where, 0, value(index, 1, {}), i, {});
        });
    return allocate(best, allocate(where, seq({start, walk, put(index, load(where, zero), {}, {})})));
  }

  const ArgReduceProblem& p_;
  const Operand& input_;
  const View *const out_, *const values_;
  const KernelContext& context_;
  const DataType element_, place_;
};

}  // namespace

Stmt extremes(const ArgReduceProblem& p, const Operand& input, const View* values, const View* places,
              const KernelContext& context) {
  const ArgReduction reduction(p, input, places, values, context);
  int lanes = reduction.lanes_across();
  while (lanes > 1 && p.shape.back() < lanes) lanes /= 2;
  return p.axis + 1 < static_cast<int>(p.shape.size()) && lanes >= 4 ? reduction.columns(lanes) : reduction.lines();
}

Stmt arg_reduce(const ArgReduceProblem& p, const Operand& input, const View& out, const KernelContext& context) {
  return extremes(p, input, nullptr, &out, context);
}

}  // namespace tilewright::topi
