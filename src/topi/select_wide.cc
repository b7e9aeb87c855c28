// SPDX-License-Identifier: Apache-2.0
// Top-k of 64-bit elements, and of narrower ones whose whole line is sorted: order and position are two numbers instead
// of one key (topi/select.h).
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

constexpr int64_t kMostInWideList = 16;
constexpr int kWideDigits = 8;  // of eight bits each
constexpr int64_t kWideDigit = 256;
constexpr int kDigitBits = 8;
// So many leading digits leave few neighbours to exchange, two in lines of up to kShortLine.
constexpr int64_t kLeadingDigits = 3, kMovesOfEach = 4;

bool wide_by_threshold(const RankProblem& p) {
  return p.axis + 1 == p.shape.size() && p.shape[p.axis] >= 4 * candidates(p);
}
int64_t wide_room(const RankProblem& p) { return wide_by_threshold(p) ? candidates(p) : p.shape[p.axis]; }

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
    PrimExpr key = order_key(input(at(line, j), lanes, {}), element, p.ascending);
    if (element.bits == 64) return key;
    // Keys of less than 32 bits have zeros below.
    const PrimExpr wide = cast(kInt64.with_lanes(lanes), key);
    return binary(ExprKind::kShiftRight, wide, broadcast(make_int(std::max(0, 32 - element.bits)), lanes));
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
    const int64_t block = p.axis + 1 == p.shape.size() ? std::min<int64_t>(8, n() / lanes) * lanes : 0;
    if (block > 0) {
      // A block of vectors is examined in detail only if one of its elements enters the list.
      blocked = n() / block * block;
      body.push_back(loop("block", blocked / block, [&](const PrimExpr& b) {
        return look(
            line, b * block, block, [&] { return load(best, last); }, insert);
      }));
    }
    if (blocked < n())
      body.push_back(
          loop("j", make_int(blocked), make_int(n()), [&](const PrimExpr& j) { return insert(j, order(line, j)); }));
    body.push_back(leftovers(line, best, where));
    body.push_back(loop("t", p.k, [&](const PrimExpr& t) { return put(line, t, load(where, t)); }));
    return allocate(best, allocate(where, seq(std::move(body))));
  }
  // The least order of a block of whole vectors.
  PrimExpr least_of(const PrimExpr& line, const PrimExpr& first, int64_t block) const {
    const int lanes = context.target->lanes(64);
    std::vector<PrimExpr> parts;
    for (int64_t i = 0; i < block; i += lanes) parts.push_back(order(line, first + i, lanes));
    while (parts.size() > 1) {
      std::vector<PrimExpr> next;
      for (size_t i = 0; i < parts.size(); i += 2)
        next.push_back(i + 1 < parts.size() ? min(parts[i], parts[i + 1]) : parts[i]);
      parts = std::move(next);
    }
    return lanes > 1 ? intrinsic(Intrinsic::k_reduce_min, {parts[0]}) : parts[0];
  }
  // Examines a block: of the vectors in which an element precedes the bound, every element.
  Stmt look(const PrimExpr& line, const PrimExpr& first, int64_t block, const std::function<PrimExpr()>& bound,
            const std::function<Stmt(const PrimExpr& j, const PrimExpr& order)>& element) const {
    const int lanes = context.target->lanes(64);
    return bind("first", first, [&](const PrimExpr& from) {
      Stmt vectors = loop("vector", block / lanes, [&](const PrimExpr& v) {
        return bind("start", from + v * lanes, [&](const PrimExpr& start) {
          return make_if(lt(least_of(line, start, lanes), bound()), loop("j", lanes, [&](const PrimExpr& j) {
                           return bind("at", start + j,
                                       [&](const PrimExpr& at) { return element(at, order(line, at)); });
                         }));
        });
      });
      return make_if(lt(least_of(line, from, block), bound()), vectors);
    });
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

  // The lists of orders and places begin behind the counts of digits; a sort alternates between two pairs of them.
  struct Registers {
    Buffer below = make_buffer("below", kInt64, 1, Scope::kRegister);
    Buffer least = make_buffer("least", kInt64, 1, Scope::kRegister);
    Buffer most = make_buffer("most", kInt64, 1, Scope::kRegister);
    Buffer done = make_buffer("done", kInt64, 1, Scope::kRegister);  // where the sorted lists are
    Buffer slot = make_buffer("slot", kInt64, 1, Scope::kRegister);
    Buffer moves = make_buffer("moves", kInt64, 1, Scope::kRegister);
    Stmt scope(Stmt body) const {
      for (const Buffer& each : {below, least, most, done, slot, moves}) body = allocate(each, body);
      return body;
    }
  };
  // Appends to the first lists; radix_sort needs the range of the orders.
  Stmt keep(const Registers& r, const PrimExpr& at, const PrimExpr& order, const PrimExpr& j) const {
    const Buffer& memory = context.scratch;
    const PrimExpr zero = make_int(0);
    return seq({store(memory, at + kWideDigit, order), store(memory, at + (kWideDigit + room()), j),
                store(r.least, zero, min(load(r.least, zero), order)),
                store(r.most, zero, max(load(r.most, zero), order))});
  }
  Stmt clear_range(const Registers& r) const {
    return seq({store(r.least, make_int(0), make_int(std::numeric_limits<int64_t>::max())),
                store(r.most, make_int(0), make_int(std::numeric_limits<int64_t>::min()))});
  }

  PrimExpr lists(const Registers& r) const {
    return min(max(load(r.done, make_int(0)), make_int(kWideDigit)), make_int(kWideDigit + 2 * room()));
  }
  // One pass of a radix sort (Knuth 3, 5.2.5): from the lists at r.done to the others.
  Stmt pass(const Registers& r, const PrimExpr& count, const PrimExpr& shift, const PrimExpr& from) const {
    const Buffer& memory = context.scratch;
    const PrimExpr zero = make_int(0), to = make_int(2 * (kWideDigit + room())) - from;
    auto digit = [&](const PrimExpr& order) {
      PrimExpr part = binary(ExprKind::kShiftRight, order - load(r.least, zero), shift);
      return binary(ExprKind::kBitAnd, part, make_int(kWideDigit - 1));
    };
    std::vector<Stmt> body;
    body.push_back(loop("c", kWideDigit / 8,
                        [&](const PrimExpr& c) { return store(memory, ramp(c * 8, 1, 8), broadcast(zero, 8)); }));
    body.push_back(loop("i", zero, count, [&](const PrimExpr& i) {
      return bind("digit", digit(load(memory, i + from)),
                  [&](const PrimExpr& x) { return store(memory, x, load(memory, x) + 1); });
    }));
    body.push_back(store(r.below, zero, zero));
    body.push_back(loop("c", kWideDigit, [&](PrimExpr c) {
      return bind("count", load(memory, c), [&](const PrimExpr& count) {
        return seq({store(memory, c, load(r.below, zero)), store(r.below, zero, load(r.below, zero) + count)});
      });
    }));
    body.push_back(loop("i", zero, count, [&](PrimExpr i) {
      return bind("order", load(memory, i + from), [&](PrimExpr order) {
        return bind("digit", digit(order), [&](PrimExpr x) {
          return bind("place", load(memory, x), [&](const PrimExpr& place) {
            return seq({store(memory, place + to, order),
                        store(memory, place + (to + room()), load(memory, i + (from + room()))),
                        store(memory, x, place + 1)});
          });
        });
      });
    }));
    body.push_back(store(r.done, zero, to));
    return seq(std::move(body));
  }
  // The digits from bit `shift` on, the last one first.
  Stmt passes(const Registers& r, const PrimExpr& count, const PrimExpr& shift, const PrimExpr& digits) const {
    return loop("d", make_int(0), digits, [&](const PrimExpr& d) {
      return bind("from", lists(r), [&](const PrimExpr& from) { return pass(r, count, shift + d * kDigitBits, from); });
    });
  }
  // Moves what is out of order to its place, as long as r.moves lasts; equal elements keep their order.
  Stmt settle(const Registers& r, const PrimExpr& count, const PrimExpr& from) const {
    const Buffer& memory = context.scratch;
    const PrimExpr zero = make_int(0);
    auto slot = [&] { return min(max(load(r.slot, zero), zero), make_int(room() - 1)); };
    auto put_at = [&](const PrimExpr& at, const PrimExpr& order, const PrimExpr& place) {
      return seq({store(memory, at, order), store(memory, at + room(), place)});
    };
    return loop("i", make_int(1), count, [&](PrimExpr i) {
      return bind("order", load(memory, i + from), [&](PrimExpr order) {
        auto behind = [&](const PrimExpr& at) { return lt(order, load(memory, at - 1)); };
        Stmt shift = bind("at", from + slot(), [&](const PrimExpr& at) {
          return seq({put_at(at, load(memory, at - 1), load(memory, at - 1 + room())),
                      store(r.slot, zero, load(r.slot, zero) - 1), store(r.moves, zero, load(r.moves, zero) - 1)});
        });
        Stmt move = bind("place", load(memory, i + (from + room())), [&](const PrimExpr& place) {
          const PrimExpr on = logical_and(lt(zero, load(r.slot, zero)), lt(zero, load(r.moves, zero)));
          return seq({store(r.slot, zero, i), make_while(logical_and(on, behind(from + slot())), shift),
                      bind("at", from + slot(), [&](const PrimExpr& at) { return put_at(at, order, place); })});
        });
        return make_if(behind(i + from), move);
      });
    });
  }
  // Sorts the first `count` elements of the lists: by the leading bits of the range they have, which rarely leaves more
  // than neighbours to exchange, and by all of them where it does.
  Stmt radix_sort(const Registers& r, const PrimExpr& count) const {
    const PrimExpr zero = make_int(0);
    // From the least order on, numbers near each other have few bits; the exponent of their range counts them, or one
    // more.
    const PrimExpr range = cast(kUInt64, load(r.most, zero)) - cast(kUInt64, load(r.least, zero));
    const PrimExpr exponent = binary(ExprKind::kShiftRight, reinterpret(kInt64, cast(kFloat64, range)), make_int(52));
    return bind("bits", min(max(exponent - 1022, zero), make_int(64)), [&](const PrimExpr& bits) {
      const PrimExpr leading =
          select(le(count, make_int(kShortLine)), make_int(kLeadingDigits - 1), make_int(kLeadingDigits));
      const PrimExpr all = floordiv(bits + (kDigitBits - 1), kDigitBits);
      return bind("shift", max(bits - leading * kDigitBits, zero), [&](const PrimExpr& shift) {
        Stmt rest = seq({bind("from", lists(r), [&](const PrimExpr& from) { return settle(r, count, from); }),
                         make_if(le(load(r.moves, zero), zero), passes(r, count, zero, all))});
        return seq({store(r.done, zero, make_int(kWideDigit)), passes(r, count, shift, min(all, leading)),
                    store(r.moves, zero, count * kMovesOfEach), make_if(lt(zero, shift), rest)});
      });
    });
  }
  // Where element t of the sorted orders is; its place is room() behind. The bounds are what the verifier can see.
  PrimExpr sorted_at(const Registers& r, const PrimExpr& t) const { return t + lists(r); }
  Stmt put_first(const PrimExpr& line, const Registers& r) const {
    return loop("t", p.k,
                [&](const PrimExpr& t) { return put(line, t, load(context.scratch, sorted_at(r, t) + room())); });
  }
  void check_scratch() const {
    TW_ICHECK(context.scratch && context.scratch->dtype == kInt64 && context.scratch->size * 8 >= wide_scratch_bytes(p),
              "select: scratch");
  }

  int64_t room() const { return wide_room(p); }
  // The least and the greatest order, and those next to zero: vectors and single elements add to their own.
  struct Extent {
    explicit Extent(int lanes) : lanes(lanes) {}
    int lanes;
    Buffer least = buffer("least"), most = buffer("most"), above = buffer("above"), below = buffer("below");
    Buffer buffer(const char* name) const { return make_buffer(name, kInt64.with_lanes(lanes), 1, Scope::kRegister); }
    PrimExpr number(int64_t value) const { return broadcast(make_int(value), lanes); }
    PrimExpr lowest() const { return number(std::numeric_limits<int64_t>::min()); }
    PrimExpr highest() const { return number(std::numeric_limits<int64_t>::max()); }
    static PrimExpr held(const Buffer& b) { return load(b, make_int(0)); }
    static Stmt hold(const Buffer& b, PrimExpr value) { return store(b, make_int(0), std::move(value)); }
    Stmt clear() const {
      return seq({hold(least, highest()), hold(most, lowest()), hold(above, highest()), hold(below, lowest())});
    }
    Stmt add(const PrimExpr& order) const {
      const PrimExpr negative = lt(order, number(0));
      return seq({hold(least, min(held(least), order)), hold(most, max(held(most), order)),
                  hold(above, min(held(above), select(negative, highest(), order))),
                  hold(below, max(held(below), select(negative, order, lowest())))});
    }
    Stmt scope(Stmt body) const {
      for (const Buffer& each : {least, most, above, below}) body = allocate(each, body);
      return body;
    }
  };

  // Floats of both signs leave a gap of most bit patterns around zero, which would take the leading bits: orders count
  // from the lowest number without it.
  Stmt close_gap(const Registers& r, const Extent& one, const Extent& several) const {
    const PrimExpr zero = make_int(0), lowest = one.lowest();
    auto both = [&](const Buffer& single, const Buffer& vector, Intrinsic reduce) {
      const PrimExpr of_vectors = several.lanes > 1 ? intrinsic(reduce, {Extent::held(vector)}) : Extent::held(vector);
      return reduce == Intrinsic::k_reduce_min ? min(Extent::held(single), of_vectors)
                                               : max(Extent::held(single), of_vectors);
    };
    return bind("least", both(one.least, several.least, Intrinsic::k_reduce_min), [&](const PrimExpr& least) {
      return bind("most", both(one.most, several.most, Intrinsic::k_reduce_max), [&](const PrimExpr& most) {
        const PrimExpr around = both(one.above, several.above, Intrinsic::k_reduce_min) -
                                both(one.below, several.below, Intrinsic::k_reduce_max) - 1;
        const PrimExpr gap = select(logical_and(lt(least, zero), le(zero, most)), around, zero);
        return bind("gap", gap, [&](const PrimExpr& gap) {
          auto each = [&](const PrimExpr& first, int lanes) {
            const PrimExpr at = lanes > 1 ? ramp(first + kWideDigit, 1, lanes) : first + kWideDigit;
            return bind("order", load(context.scratch, at), [&](const PrimExpr& order) {
              const PrimExpr from = select(lt(order, broadcast(zero, lanes)), broadcast(least - lowest, lanes),
                                           broadcast(least - lowest + gap, lanes));
              return store(context.scratch, at, order - from);
            });
          };
          return seq({store(r.least, zero, lowest), store(r.most, zero, lowest + (most - least - gap)),
                      each_vector(several.lanes, each)});
        });
      });
    });
  }
  // f(first, lanes) over a line.
  Stmt each_vector(int lanes, const std::function<Stmt(const PrimExpr& first, int lanes)>& f) const {
    const int64_t whole = n() / lanes;
    Stmt vectors = loop("v", whole, [&](const PrimExpr& v) { return f(v * lanes, lanes); });
    if (whole * lanes == n()) return vectors;
    return seq(
        {vectors, loop("j", make_int(whole * lanes), make_int(n()), [&](const PrimExpr& j) { return f(j, 1); })});
  }
  Stmt sorted(const PrimExpr& line) const {
    check_scratch();
    const Registers r;
    const Extent one(1), several(p.axis + 1 == p.shape.size() ? context.target->lanes(64) : 1);
    auto keep = [&](const PrimExpr& first, int lanes) {
      return bind("order", order(line, first, lanes), [&](const PrimExpr& order) {
        auto place = [&](const PrimExpr& at) { return lanes > 1 ? ramp(at, 1, lanes) : at; };
        return seq({store(context.scratch, place(first + kWideDigit), order),
                    store(context.scratch, place(first + (kWideDigit + room())), place(first)),
                    (lanes == several.lanes ? several : one).add(order)});
      });
    };
    return r.scope(
        one.scope(several.scope(seq({one.clear(), several.clear(), each_vector(several.lanes, keep),
                                     close_gap(r, one, several), radix_sort(r, make_int(n())), put_first(line, r)}))));
  }

  // Appends the elements of a block that precede the bound, without branches: each is stored, and counted if it does.
  Stmt enter(const Registers& r, const PrimExpr& line, const PrimExpr& first, int64_t block, const Buffer& kept,
             const Buffer& bound) const {
    const Buffer& memory = context.scratch;
    const int lanes = context.target->lanes(64);
    const PrimExpr zero = make_int(0);
    const Buffer orders = make_buffer("orders", kInt64, block, Scope::kStack, 64);
    Stmt fill = loop("v", block / lanes, [&](const PrimExpr& v) {
      return store(orders, lanes > 1 ? ramp(v * lanes, 1, lanes) : v, order(line, first + v * lanes, lanes));
    });
    Stmt append = loop("j", block, [&](const PrimExpr& j) {
      return bind("order", load(orders, j), [&](const PrimExpr& order) {
        return bind("before", lt(order, load(bound, zero)), [&](const PrimExpr& before) {
          return bind("place", min(load(kept, zero), make_int(room() - 1)), [&](const PrimExpr& place) {
            return seq({store(memory, place + kWideDigit, order),
                        store(memory, place + (kWideDigit + room()), first + j),
                        store(r.least, zero, min(load(r.least, zero), order)),
                        store(r.most, zero, max(load(r.most, zero), select(before, order, load(r.most, zero)))),
                        store(kept, zero, place + select(before, make_int(1), zero))});
          });
        });
      });
    });
    return allocate(orders, seq({fill, append}));
  }

  // Elements that precede the k-th of those seen so far are candidates; full lists are sorted and cut to k. Positions
  // ascend, so equal elements that come later stay out.
  Stmt threshold(const PrimExpr& line) const {
    check_scratch();
    const Buffer& memory = context.scratch;
    const Registers r;
    const Buffer kept = make_buffer("kept", kInt64, 1, Scope::kRegister),
                 bound = make_buffer("bound", kInt64, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    const int lanes = context.target->lanes(64);
    const int64_t block = 4 * lanes, head = room() - block + (n() - room()) % block;
    // Whether an element of a block may precede the bound. Floats are compared as they are with the element that the
    // bound comes from; where one of the two is no number it may.
    const bool floats = element.is_float();
    const Buffer limit = make_buffer("limit", element, 1, Scope::kRegister);
    auto precedes = [&](const PrimExpr& first) {
      if (!floats) return lt(least_of(line, first, block), load(bound, zero));
      PrimExpr any;
      for (int64_t i = 0; i < block; i += lanes) {
        const PrimExpr x = input(at(line, first + i), lanes, {}), last = broadcast(load(limit, zero), lanes);
        const PrimExpr one =
            select(p.ascending ? le(last, x) : le(x, last), broadcast(zero, lanes), broadcast(make_int(1), lanes));
        any = any ? binary(ExprKind::kBitOr, any, one) : one;
      }
      return lt(zero, lanes > 1 ? intrinsic(Intrinsic::k_reduce_max, {any}) : any);
    };
    auto set_limit = [&](const PrimExpr& place) {
      if (!floats) return seq({});
      return store(limit, zero, input(at(line, min(max(place, zero), make_int(n() - 1))), 1, {}));
    };
    auto fill = loop("j", head, [&](const PrimExpr& j) {
      return bind("order", order(line, j), [&](const PrimExpr& order) { return keep(r, j, order, j); });
    });
    Stmt cut = seq(
        {radix_sort(r, load(kept, zero)), store(bound, zero, load(memory, sorted_at(r, make_int(p.k - 1)))),
         make_if(ne(load(r.done, zero), make_int(kWideDigit)),
                 loop("t", p.k,
                      [&](const PrimExpr& t) {
                        return seq({store(memory, t + kWideDigit, load(memory, sorted_at(r, t))),
                                    store(memory, t + (kWideDigit + room()), load(memory, sorted_at(r, t) + room()))});
                      })),
         store(r.most, zero, load(bound, zero)), set_limit(load(memory, sorted_at(r, make_int(p.k - 1)) + room())),
         store(kept, zero, make_int(p.k))});
    Stmt blocks = loop("block", (n() - head) / block, [&](const PrimExpr& b) {
      return bind("first", b * block + head, [&](const PrimExpr& first) {
        return seq({make_if(lt(make_int(room() - block), load(kept, zero)), cut),
                    make_if(precedes(first), enter(r, line, first, block, kept, bound))});
      });
    });
    Stmt no_limit =
        floats ? store(limit, zero, make_const(element, std::numeric_limits<double>::quiet_NaN())) : seq({});
    Stmt all = seq({clear_range(r), fill, store(kept, zero, make_int(head)),
                    store(bound, zero, make_int(std::numeric_limits<int64_t>::max())), no_limit, blocks,
                    radix_sort(r, load(kept, zero)), put_first(line, r)});
    return r.scope(allocate(kept, allocate(bound, floats ? allocate(limit, all) : all)));
  }
};

}  // namespace

int64_t candidates(const RankProblem& p) {
  // In random order k log(n / m) elements precede the first k of m, behind which they come.
  const int64_t least = std::max<int64_t>(512, 4 * p.k), n = std::max(least, p.shape[p.axis]);
  const double expected =
      static_cast<double>(p.k) * (1 + std::log(static_cast<double>(n) / static_cast<double>(least)));
  return round_up(std::max(least, static_cast<int64_t>(1.25 * expected)), 64);
}

int64_t wide_scratch_bytes(const RankProblem& p) {
  return p.k <= kMostInWideList ? 0 : (kWideDigit + 4 * wide_room(p)) * 8;
}

Stmt select_first_wide(const RankProblem& p, DataType dtype, const Operand& input, const View* values,
                       const View* indices, const KernelContext& context) {
  const WideSelection selection{p, dtype, input, values, indices, context};
  return parallel_for(context, "line", product(p.shape) / p.shape[p.axis], [&](const PrimExpr& line) {
    return p.k <= kMostInWideList ? selection.list(line)
           : wide_by_threshold(p) ? selection.threshold(line)
                                  : selection.sorted(line);
  });
}

}  // namespace tilewright::topi
