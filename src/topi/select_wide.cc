// SPDX-License-Identifier: Apache-2.0
// Top-k of 64-bit elements: order and position are two numbers instead of one key (topi/select.h).
#include <limits>
#include <utility>

#include "topi/reduce_steps.h"
#include "topi/select_wide.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostInWideList = 16;
constexpr int kWideDigits = 8;  // of eight bits each
constexpr int64_t kWideDigit = 256;

// An int64 key: the smaller, the earlier the element comes.
PrimExpr wide_order_of(const PrimExpr& x, DataType element, bool ascending) {
  const int lanes = x->dtype.lanes;
  auto constant = [&](int64_t v) { return broadcast(make_int(v), lanes); };
  const PrimExpr lowest = constant(std::numeric_limits<int64_t>::min());
  const PrimExpr most = constant(std::numeric_limits<int64_t>::max());
  PrimExpr order = x;
  if (element.is_float()) {
    PrimExpr bits = reinterpret(kInt64.with_lanes(lanes), x);
    bits = select(eq(bits, lowest), constant(0), bits);  // -0 and +0 are equal
    // Negative floats compare in reverse as integers: flip their lower bits.
    PrimExpr sign = binary(ExprKind::kShiftRight, bits, constant(63));
    order = binary(ExprKind::kBitXor, bits, binary(ExprKind::kBitAnd, sign, most));
    order = select(intrinsic(Intrinsic::k_isnan, {x}), most, order);
  } else if (!element.is_int()) {
    order = binary(ExprKind::kBitXor, cast(kInt64, x), lowest);
  }
  return ascending ? order : binary(ExprKind::kBitXor, order, constant(-1));
}

struct WideSelection {
  const RankProblem& p;
  DataType element;
  const Operand& input;
  const View *values{}, *indices{};
  const KernelContext& context;

  int64_t n() const { return p.shape[p.axis]; }
  Index at(const PrimExpr& line, PrimExpr j) const {
    auto others = p.shape;
    others[p.axis] = 1;
    Index index = unravel(line, others);
    index[p.axis] = std::move(j);
    return index;
  }
  PrimExpr order(const PrimExpr& line, const PrimExpr& j, int lanes = 1) const {
    return wide_order_of(input(at(line, j), lanes, {}), element, p.ascending);
  }
  Stmt put(const PrimExpr& line, const PrimExpr& t, const PrimExpr& place) const {
    // It is below n; the clamp shows that to the verifier.
    return bind("from", max(min(place, make_int(n() - 1)), make_int(0)), [&](const PrimExpr& from) {
      std::vector<Stmt> out;
      if (values) out.push_back(values->store(at(line, t), input(at(line, from), 1, {})));
      if (indices)
        out.push_back(indices->store(at(line, t), indices->dtype() == kInt64 ? from : cast(indices->dtype(), from)));
      return seq(std::move(out));
    });
  }

  // A sorted list that most elements do not enter. Positions ascend, so an equal element that comes later stays behind.
  Stmt list(const PrimExpr& line) const {
    const Buffer best = make_buffer("best", kInt64, p.k, Scope::kStack, 64),
                 where = make_buffer("where", kInt64, p.k, Scope::kStack, 64);
    const PrimExpr last = make_int(p.k - 1);
    // Larger elements move one place back, all from the insertion point on: equal ones keep their order.
    std::function<Stmt(int64_t, PrimExpr, PrimExpr, PrimExpr)> place = [&](int64_t t, PrimExpr key, PrimExpr of,
                                                                           PrimExpr moving) -> Stmt {
      const PrimExpr slot = make_int(t);
      return bind("held", load(best, slot), [&](PrimExpr held) {
        return bind("holder", load(where, slot), [&](PrimExpr holder) {
          PrimExpr before = lt(key, held);
          return bind("first", moving ? logical_or(moving, before) : before, [&](PrimExpr first) {
            Stmt here =
                seq({store(best, slot, select(first, key, held)), store(where, slot, select(first, of, holder))});
            if (t + 1 == p.k) return here;
            return bind("key", select(first, held, key), [&](PrimExpr rest) {
              return bind("of", select(first, holder, of), [&](PrimExpr whose) {
                return seq({here, place(t + 1, rest, std::move(whose), first)});
              });
            });
          });
        });
      });
    };
    auto insert = [&](const PrimExpr& j, const PrimExpr& order) {
      return bind("order", order,
                  [&](const PrimExpr& order) { return make_if(lt(order, load(best, last)), place(0, order, j, {})); });
    };
    // The first k elements fill the list; the largest key is a valid one and would not enter by comparison.
    std::vector<Stmt> body;
    for (int64_t t = 0; t < p.k; ++t)
      body.push_back(seq({store(best, make_int(t), make_int(std::numeric_limits<int64_t>::max())),
                          store(where, make_int(t), make_int(n()))}));
    int64_t blocked = 0;
    const int lanes = context.target->lanes(64);
    const int64_t block = p.axis + 1 == p.shape.size() ? std::min<int64_t>(4, n() / lanes) * lanes : 0;
    const Buffer orders = make_buffer("orders", kInt64, std::max<int64_t>(block, 1), Scope::kStack, 64);
    if (block > 0) {
      // A block of vectors is examined in detail only if one of its elements enters the list.
      blocked = n() / block * block;
      body.push_back(loop("block", blocked / block, [&](PrimExpr b) {
        auto at = [&](int64_t i) { return lanes > 1 ? ramp(make_int(i), 1, lanes) : make_int(i); };
        std::vector<Stmt> look;
        for (int64_t i = 0; i < block; i += lanes)
          look.push_back(store(orders, at(i), order(line, b * block + i, lanes)));
        PrimExpr least = load(orders, at(0));
        for (int64_t i = lanes; i < block; i += lanes) least = min(least, load(orders, at(i)));
        least = lanes > 1 ? intrinsic(Intrinsic::k_reduce_min, {least}) : least;
        look.push_back(make_if(lt(least, load(best, last)), loop("j", block, [&](const PrimExpr& j) {
                                 return insert(b * block + j, load(orders, j));
                               })));
        return seq(std::move(look));
      }));
    }
    if (blocked < n())
      body.push_back(
          loop("j", make_int(blocked), make_int(n()), [&](const PrimExpr& j) { return insert(j, order(line, j)); }));
    body.push_back(leftovers(line, best, where));
    body.push_back(loop("t", p.k, [&](const PrimExpr& t) { return put(line, t, load(where, t)); }));
    return allocate(best, allocate(where, allocate(orders, seq(std::move(body)))));
  }
  // Elements with the largest key never entered; they take the free places at the end, in order of position.
  Stmt leftovers(const PrimExpr& line, const Buffer& best, const Buffer& where) const {
    const PrimExpr zero = make_int(0), most = make_int(std::numeric_limits<int64_t>::max());
    const Buffer free = make_buffer("free", kInt64, 1, Scope::kRegister);
    std::vector<Stmt> body{store(free, zero, zero)};
    for (int64_t t = 0; t < p.k; ++t)
      body.push_back(
          store(free, zero, load(free, zero) + select(lt(load(where, make_int(t)), make_int(n())), make_int(1), zero)));
    body.push_back(loop("j", n(), [&](PrimExpr j) {
      PrimExpr fits = logical_and(eq(order(line, j), most), lt(load(free, zero), make_int(p.k)));
      return make_if(fits, bind("slot", min(load(free, zero), make_int(p.k - 1)), [&](const PrimExpr& slot) {
                       return seq({store(where, slot, j), store(free, zero, slot + 1)});
                     }));
    }));
    return allocate(free, make_if(eq(load(where, make_int(p.k - 1)), make_int(n())), seq(std::move(body))));
  }

  // Radix sort of the whole line, alternating between both pairs of lists (Knuth 3, 5.2.5).
  Stmt sorted(const PrimExpr& line) const {
    const Buffer& memory = context.scratch;
    TW_ICHECK(memory && memory->dtype == kInt64 && memory->size * 8 >= wide_scratch_bytes(p), "select: scratch");
    const PrimExpr zero = make_int(0);
    const Buffer below = make_buffer("below", kInt64, 1, Scope::kRegister),
                 least = make_buffer("least", kInt64, 1, Scope::kRegister),
                 most = make_buffer("most", kInt64, 1, Scope::kRegister),
                 done = make_buffer("done", kInt64, 1, Scope::kRegister);  // where the sorted lists are
    int64_t from = kWideDigit, to = kWideDigit + 2 * n();
    std::vector<Stmt> body{store(least, zero, make_int(std::numeric_limits<int64_t>::max())),
                           store(most, zero, make_int(std::numeric_limits<int64_t>::min())),
                           loop("j", n(),
                                [&](const PrimExpr& j) {
                                  return bind("order", order(line, j), [&](const PrimExpr& order) {
                                    return seq({store(memory, j + from, order), store(memory, j + (from + n()), j),
                                                store(least, zero, min(load(least, zero), order)),
                                                store(most, zero, max(load(most, zero), order))});
                                  });
                                }),
                           store(done, zero, make_int(from))};
    // From the least order on, numbers near each other have few digits.
    const PrimExpr range = cast(kUInt64, load(most, zero)) - cast(kUInt64, load(least, zero));
    for (int d = 0; d < kWideDigits; ++d) {
      auto digit = [&](const PrimExpr& order) {
        PrimExpr part = binary(ExprKind::kShiftRight, order - load(least, zero), make_int(8 * d));
        return binary(ExprKind::kBitAnd, part, make_int(kWideDigit - 1));
      };
      std::vector<Stmt> pass;
      pass.push_back(loop("c", kWideDigit / 8,
                          [&](const PrimExpr& c) { return store(memory, ramp(c * 8, 1, 8), broadcast(zero, 8)); }));
      pass.push_back(loop("i", n(), [&](const PrimExpr& i) {
        return bind("digit", digit(load(memory, i + from)),
                    [&](const PrimExpr& x) { return store(memory, x, load(memory, x) + 1); });
      }));
      pass.push_back(store(below, zero, zero));
      pass.push_back(loop("c", kWideDigit, [&](PrimExpr c) {
        return bind("count", load(memory, c), [&](const PrimExpr& count) {
          return seq({store(memory, c, load(below, zero)), store(below, zero, load(below, zero) + count)});
        });
      }));
      pass.push_back(loop("i", n(), [&](PrimExpr i) {
        return bind("order", load(memory, i + from), [&](PrimExpr order) {
          return bind("digit", digit(order), [&](PrimExpr x) {
            return bind("place", load(memory, x), [&](const PrimExpr& place) {
              return seq({store(memory, place + to, order),
                          store(memory, place + (to + n()), load(memory, i + (from + n()))),
                          store(memory, x, place + 1)});
            });
          });
        });
      }));
      pass.push_back(store(done, zero, make_int(to)));
      const PrimExpr left = binary(ExprKind::kShiftRight, range, make_int(8 * d, kUInt64));
      body.push_back(make_if(ne(left, make_int(0, kUInt64)), seq(std::move(pass))));
      std::swap(from, to);
    }
    body.push_back(loop("t", p.k, [&](const PrimExpr& t) {
      // The bounds are what the verifier can see.
      const PrimExpr at = min(max(load(done, zero), make_int(kWideDigit)), make_int(kWideDigit + 2 * n()));
      return put(line, t, load(memory, t + n() + at));
    }));
    return allocate(below, allocate(least, allocate(most, allocate(done, seq(std::move(body))))));
  }
};

}  // namespace

int64_t wide_scratch_bytes(const RankProblem& p) {
  return p.k <= kMostInWideList ? 0 : (kWideDigit + 4 * p.shape[p.axis]) * 8;
}

Stmt select_first_wide(const RankProblem& p, DataType dtype, const Operand& input, const View* values,
                       const View* indices, const KernelContext& context) {
  const WideSelection selection{p, dtype, input, values, indices, context};
  return parallel_for(context, "line", product(p.shape) / p.shape[p.axis], [&](const PrimExpr& line) {
    return p.k <= kMostInWideList ? selection.list(line) : selection.sorted(line);
  });
}

}  // namespace tilewright::topi
