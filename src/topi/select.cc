// SPDX-License-Identifier: Apache-2.0
#include "topi/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "topi/reduce_steps.h"
#include "topi/select_order.h"
#include "topi/select_wide.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostInList = 16;
constexpr int64_t kLeastByDigits = 64;
constexpr int kLeadingBits = 11, kDigits = 4;  // of a 32-bit order; its digits have 8 bits
constexpr int64_t kLeading = int64_t{1} << kLeadingBits, kDigit = 256;
// Scratch layout: histogram of leading bits, histogram of digits, two lists of candidates.
constexpr int64_t kCounts = kLeading, kFirstList = kLeading + kDigits * kDigit;

bool by_list(const RankProblem& p) { return p.k <= kMostInList; }

// The number of digits in which elements can differ.
int digits_of(DataType element) {
  const bool half = element == kFloat16 || element == kBFloat16;
  return element.is_float() && !half ? kDigits : std::max(1, element.bits / 8);
}

bool by_threshold(const RankProblem& p, DataType element) {
  return !by_list(p) && p.axis + 1 == p.shape.size() && digits_of(element) % 2 == 0 &&
         p.shape[p.axis] >= 4 * candidates(p);
}

// In nanoseconds, as measured: what sorting a whole line takes, of whole numbers that differ in few digits mostly, and
// what finding its first k by digits does.
double whole_ns(const RankProblem& p, DataType element) {
  const auto n = static_cast<double>(p.shape[p.axis]);
  if (element.bits == 64 && !element.is_float()) return 200 + n * 2.2;
  return p.shape[p.axis] <= kShortLine ? 280 + n * 4.3 : n * 7;
}
double digits_ns(const RankProblem& p) {
  return 1700 + static_cast<double>(p.shape[p.axis]) * 2 + static_cast<double>(p.k) * 16;
}

// Lines of 64-bit elements are sorted whole, others where that is less work.
bool sorted_whole(const RankProblem& p, DataType element) {
  if (element.bits == 64) return true;
  return !by_list(p) && !by_threshold(p, element) && whole_ns(p, element) < digits_ns(p);
}

struct Selection {
  const RankProblem& p;
  DataType element;
  const Operand& input;
  const View *values{}, *indices{};
  const KernelContext& context;

  int64_t n() const { return p.shape[p.axis]; }
  std::vector<int64_t> others() const {
    auto out = p.shape;
    out[p.axis] = 1;
    return out;
  }
  Index at(const PrimExpr& line, PrimExpr j) const {
    Index index = unravel(line, others());
    index[p.axis] = std::move(j);
    return index;
  }
  PrimExpr order(const PrimExpr& line, const PrimExpr& j, int lanes = 1) const {
    return order_key(input(at(line, j), lanes, {}), element, p.ascending);
  }
  static PrimExpr numbered(const PrimExpr& order, const PrimExpr& j) {
    return binary(ExprKind::kBitOr, binary(ExprKind::kShiftLeft, cast(kInt64, order), make_int(32)), j);
  }
  // Stores the element with rank t.
  Stmt put(const PrimExpr& line, const PrimExpr& t, const PrimExpr& number) const {
    PrimExpr low = binary(ExprKind::kBitAnd, number, make_int(0xffffffff));
    // It is below n; the clamp shows that to the verifier.
    return bind("from", max(min(low, make_int(n() - 1)), make_int(0)), [&](const PrimExpr& from) {
      std::vector<Stmt> out;
      if (values) out.push_back(values->store(at(line, t), input(at(line, from), 1, {})));
      if (indices)
        out.push_back(indices->store(at(line, t), indices->dtype() == kInt64 ? from : cast(indices->dtype(), from)));
      return seq(std::move(out));
    });
  }

  Stmt list(const PrimExpr& line) const {
    const Buffer best = make_buffer("best", kInt64, p.k, Scope::kStack, 64);
    const PrimExpr last = make_int(p.k - 1);
    auto insert = [&](const PrimExpr& j) {
      return bind("number", numbered(order(line, j), j), [&](const PrimExpr& number) {
        // Larger elements move one place back.
        std::function<Stmt(int64_t, PrimExpr)> place = [&](int64_t t, PrimExpr carried) -> Stmt {
          return bind("old", load(best, make_int(t)), [&](const PrimExpr& old) {
            Stmt put = store(best, make_int(t), min(carried, old));
            if (t + 1 == p.k) return put;
            return bind("carried", max(carried, old), [&](PrimExpr rest) {
              return seq({put, place(t + 1, std::move(rest))});
            });
          });
        };
        return make_if(lt(number, load(best, last)), place(0, number));
      });
    };
    std::vector<Stmt> body;
    for (int64_t t = 0; t < p.k; ++t)
      body.push_back(store(best, make_int(t), make_int(std::numeric_limits<int64_t>::max())));
    int64_t blocked = 0;
    if (p.axis + 1 == p.shape.size()) {
      // A block of vectors is examined in detail only if one of its elements enters the list.
      const int lanes = context.target->lanes(32);
      const int64_t block = std::min<int64_t>(4, n() / lanes) * lanes;
      if (block > 0) {
        blocked = n() / block * block;
        body.push_back(loop("block", blocked / block, [&](const PrimExpr& b) {
          PrimExpr first = b * block, least = order(line, first, lanes);
          for (int64_t i = lanes; i < block; i += lanes) least = min(least, order(line, first + i, lanes));
          least = lanes > 1 ? intrinsic(Intrinsic::k_reduce_min, {least}) : least;
          auto reaches = [&](const PrimExpr& order) {
            return le(order, cast(kInt32, binary(ExprKind::kShiftRight, load(best, last), make_int(32))));
          };
          Stmt vectors = loop("vector", block / lanes, [&](const PrimExpr& v) {
            return bind("start", first + v * int64_t{lanes}, [&](const PrimExpr& start) {
              PrimExpr own = order(line, start, lanes);
              if (lanes > 1) own = intrinsic(Intrinsic::k_reduce_min, {own});
              return make_if(reaches(own), loop("j", lanes, [&](const PrimExpr& j) { return insert(start + j); }));
            });
          });
          return make_if(reaches(least), vectors);
        }));
      }
    }
    if (blocked < n()) body.push_back(loop("j", make_int(blocked), make_int(n()), insert));
    body.push_back(loop("t", p.k, [&](const PrimExpr& t) { return put(line, t, load(best, t)); }));
    return allocate(best, seq(std::move(body)));
  }

  Stmt clear(int64_t first, int64_t count) const {
    return loop("c", count / 8, [&](const PrimExpr& c) {
      return store(context.scratch, ramp(c * 8 + first, 1, 8), broadcast(make_int(0), 8));
    });
  }

  // Radix sort of the first list, alternating between both lists; digit counts must be zero before.
  Stmt sort(const Buffer& kept, const Buffer& below) const {
    const Buffer& memory = context.scratch;
    const PrimExpr zero = make_int(0);
    auto add_one = [&](const PrimExpr& place) { return store(memory, place, load(memory, place) + 1); };
    // Digit d of a key; the last one is signed.
    auto digit = [&](const PrimExpr& number, int d) {
      PrimExpr part = binary(ExprKind::kShiftRight, number, make_int(32 + 8 * d));
      return d + 1 == kDigits ? part + kDigit / 2 : binary(ExprKind::kBitAnd, part, make_int(kDigit - 1));
    };
    const int first = kDigits - digits_of(element);
    std::vector<Stmt> body;
    body.push_back(loop("i", zero, load(kept, zero), [&](const PrimExpr& i) {
      return bind("number", load(memory, i + kFirstList), [&](const PrimExpr& number) {
        std::vector<Stmt> out;
        for (int d = first; d < kDigits; ++d)
          out.push_back(bind("place", digit(number, d) + (kCounts + d * kDigit),
                             [&](const PrimExpr& place) { return add_one(place); }));
        return seq(std::move(out));
      });
    }));
    int64_t from = kFirstList, to = kFirstList + n();
    for (int d = first; d < kDigits; ++d) {
      const int64_t counts = kCounts + d * kDigit;
      body.push_back(store(below, zero, zero));
      body.push_back(loop("c", kDigit, [&](PrimExpr c) {
        return bind("count", load(memory, c + counts), [&](const PrimExpr& count) {
          return seq({store(memory, c + counts, load(below, zero)), store(below, zero, load(below, zero) + count)});
        });
      }));
      body.push_back(loop("i", zero, load(kept, zero), [&](const PrimExpr& i) {
        return bind("number", load(memory, i + from), [&](PrimExpr number) {
          return bind("digit", digit(number, d) + counts, [&](PrimExpr digit) {
            return bind("place", load(memory, digit), [&](const PrimExpr& place) {
              return seq({store(memory, place + to, number), store(memory, digit, place + 1)});
            });
          });
        });
      }));
      std::swap(from, to);
    }
    return seq(std::move(body));
  }

  // The first elements are candidates; others become candidates if they precede the current k-th one, which is tested
  // for blocks of vectors. A full list is sorted and cut to k. Where the order of the line admits too many, the
  // histogram is used instead.
  Stmt threshold(const PrimExpr& line) const {
    const Buffer& memory = context.scratch;
    TW_ICHECK(memory && memory->dtype == kInt64 && memory->size * 8 >= select_scratch_bytes(p, element),
              "select: scratch");
    const Buffer kept = make_buffer("kept", kInt64, 1, Scope::kRegister),
                 below = make_buffer("below", kInt64, 1, Scope::kRegister),
                 sorts = make_buffer("sorts", kInt64, 1, Scope::kRegister),
                 bound = make_buffer("bound", kInt32, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    const int64_t capacity = candidates(p), most_sorts = std::max<int64_t>(8, n() / 8 / (capacity - p.k));
    const int lanes = context.target->lanes(32);
    const int64_t block = 4 * lanes;
    auto keep = [&](const PrimExpr& order, const PrimExpr& j) {
      return bind("place", load(kept, zero), [&](const PrimExpr& place) {
        return seq({store(memory, place + kFirstList, numbered(order, j)), store(kept, zero, place + 1)});
      });
    };
    auto look = [&](PrimExpr j) {
      return bind("order", order(line, j),
                  [&](const PrimExpr& order) { return make_if(lt(order, load(bound, zero)), keep(order, j)); });
    };
    auto reaches = [&](const PrimExpr& order) {
      return lt(lanes > 1 ? intrinsic(Intrinsic::k_reduce_min, {order}) : order, load(bound, zero));
    };
    // Without branches, of which few would be foreseen: each element is stored, and counted if it is a candidate.
    const Buffer orders = make_buffer("orders", kInt32, lanes, Scope::kStack, 64);
    auto enter = [&](const PrimExpr& at, const PrimExpr& own) {
      Stmt append = loop("j", lanes, [&](const PrimExpr& j) {
        return bind("order", load(orders, j), [&](const PrimExpr& order) {
          return bind("place", load(kept, zero), [&](const PrimExpr& place) {
            const PrimExpr more = select(lt(order, load(bound, zero)), make_int(1), zero);
            return seq({store(memory, place + kFirstList, numbered(order, at + j)), store(kept, zero, place + more)});
          });
        });
      });
      return seq({store(orders, lanes > 1 ? ramp(zero, 1, lanes) : zero, own), append});
    };
    auto refine = [&] {
      return seq({clear(kCounts, kDigits * kDigit), sort(kept, below), store(kept, zero, make_int(p.k)),
                  store(bound, zero,
                        cast(kInt32, binary(ExprKind::kShiftRight, load(memory, make_int(kFirstList + p.k - 1)),
                                            make_int(32)))),
                  store(sorts, zero, load(sorts, zero) + 1)});
    };
    std::vector<Stmt> body{store(kept, zero, zero), store(sorts, zero, zero),
                           loop("j", capacity,
                                [&](PrimExpr j) {
                                  return bind("order", order(line, j),
                                              [&](const PrimExpr& order) { return keep(order, j); });
                                }),
                           refine()};
    // Positions ascend, so equal elements that come later stay out.
    const int64_t head = capacity + (n() - capacity) % block;
    if (head > capacity) body.push_back(loop("j", make_int(capacity), make_int(head), look));
    const int64_t blocks = (n() - head) / block;
    body.push_back(loop("block", blocks, [&](const PrimExpr& b) {
      PrimExpr first = b * block + head, least = order(line, first, lanes);
      for (int64_t i = lanes; i < block; i += lanes) least = min(least, order(line, first + i, lanes));
      Stmt closely = loop("vector", block / lanes, [&](const PrimExpr& i) {
        return bind("at", first + i * int64_t{lanes}, [&](const PrimExpr& at) {
          return bind("own", order(line, at, lanes),
                      [&](const PrimExpr& own) { return make_if(reaches(own), enter(at, own)); });
        });
      });
      Stmt full = make_if(le(make_int(capacity - block), load(kept, zero)), refine());
      return make_if(logical_and(reaches(least), lt(load(sorts, zero), make_int(most_sorts))), seq({closely, full}));
    }));
    body.push_back(
        make_if(lt(load(sorts, zero), make_int(most_sorts)),
                seq({clear(kCounts, kDigits * kDigit), sort(kept, below),
                     loop("t", p.k, [&](const PrimExpr& t) { return put(line, t, load(memory, t + kFirstList)); })}),
                digits(line)));
    return allocate(orders, allocate(kept, allocate(below, allocate(sorts, allocate(bound, seq(std::move(body)))))));
  }

  Stmt digits(const PrimExpr& line) const {
    const Buffer& memory = context.scratch;
    TW_ICHECK(memory && memory->dtype == kInt64 && memory->size * 8 >= select_scratch_bytes(p, element),
              "select: scratch");
    const Buffer kept = make_buffer("kept", kInt64, 1, Scope::kRegister),
                 below = make_buffer("below", kInt64, 1, Scope::kRegister),
                 bound = make_buffer("bound", kInt64, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    auto add_one = [&](const PrimExpr& place) { return store(memory, place, load(memory, place) + 1); };
    auto leading = [&](const PrimExpr& order) {
      return cast(kInt64, binary(ExprKind::kShiftRight, order, make_int(32 - kLeadingBits, kInt32))) + kLeading / 2;
    };
    auto keep = [&](const PrimExpr& order, const PrimExpr& j) {
      PrimExpr place = load(kept, zero);
      return seq({store(memory, place + kFirstList, numbered(order, j)), store(kept, zero, place + 1)});
    };
    std::vector<Stmt> body{store(kept, zero, zero), clear(0, kFirstList)};
    body.push_back(loop("j", n(), [&](const PrimExpr& j) {
      return bind("place", leading(order(line, j)), [&](const PrimExpr& place) { return add_one(place); });
    }));
    // Finds the leading bits of the k-th element.
    body.push_back(store(below, zero, zero));
    body.push_back(store(bound, zero, zero));
    body.push_back(loop("c", kLeading, [&](const PrimExpr& c) {
      return seq({store(bound, zero, select(lt(load(below, zero), make_int(p.k)), c, load(bound, zero))),
                  store(below, zero, load(below, zero) + load(memory, c))});
    }));
    body.push_back(loop("j", n(), [&](PrimExpr j) {
      return bind("order", order(line, j), [&](const PrimExpr& order) {
        return make_if(le(leading(order), load(bound, zero)), keep(order, j));
      });
    }));
    body.push_back(sort(kept, below));
    const int64_t from = kFirstList + (digits_of(element) % 2 ? n() : 0);
    body.push_back(loop("t", p.k, [&](const PrimExpr& t) { return put(line, t, load(memory, t + from)); }));
    return allocate(kept, allocate(below, allocate(bound, seq(std::move(body)))));
  }
};

}  // namespace

bool can_select(const RankProblem& p, DataType dtype) {
  if (dtype.bits == 64 && p.k >= 1) return p.k <= kMostInList || p.shape[p.axis] > kLeastByDigits;
  if (dtype.bits > 32 || p.k < 1 || p.shape[p.axis] > std::numeric_limits<int32_t>::max()) return false;
  return by_list(p) || p.shape[p.axis] > kLeastByDigits;
}

int64_t select_scratch_bytes(const RankProblem& p, DataType dtype) {
  if (sorted_whole(p, dtype)) return wide_scratch_bytes(p);
  return by_list(p) ? 0 : (kFirstList + 2 * p.shape[p.axis]) * 8;
}

Stmt select_first(const RankProblem& p, DataType dtype, const Operand& input, const View* values, const View* indices,
                  const KernelContext& context) {
  if (product(p.shape) == 0 || p.k == 0) return seq({});
  if (sorted_whole(p, dtype)) return select_first_wide(p, dtype, input, values, indices, context);
  const Selection selection{p, dtype, input, values, indices, context};
  return parallel_for(context, "line", product(selection.others()), [&](const PrimExpr& line) {
    return by_list(p)               ? selection.list(line)
           : by_threshold(p, dtype) ? selection.threshold(line)
                                    : selection.digits(line);
  });
}

Cost select_cost(const RankProblem& p, DataType dtype) {
  const auto n = static_cast<double>(p.shape[p.axis]), k = static_cast<double>(p.k),
             lines = static_cast<double>(product(p.shape)) / std::max(1.0, n);
  Cost cost;
  cost.bytes = lines * n * 4;
  // Measured, in nanoseconds: with random order, about log(n / k) elements per list place enter a full list.
  const bool wide = dtype.bits == 64;
  double each = 0;
  if (by_list(p))
    each = n * (p.axis + 1 == p.shape.size() ? 0.1 : 1) + k * (1 + std::log(n / k)) * (k + 15) * (wide ? 2 : 1);
  else if (by_threshold(p, dtype))
    each = n * 0.15 + static_cast<double>(candidates(p)) * 8 * std::log2(n / static_cast<double>(candidates(p)));
  else
    each = sorted_whole(p, dtype) ? whole_ns(p, dtype) : digits_ns(p);
  cost.microseconds = lines * each / 1e3;
  return cost;
}

}  // namespace tilewright::topi
