// SPDX-License-Identifier: Apache-2.0
#include "topi/detection.h"

#include <array>
#include <utility>

#include "topi/region_bins.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Scratch layout: one list per component of the kept boxes.
enum Part : uint8_t { kLeft, kTop, kRight, kBottom, kArea, kClass, kParts };
int64_t list_length(const SuppressProblem& p, const Target& target) {
  return round_up(std::max<int64_t>(p.count, 1), target.lanes(p.dtype.bits));
}

struct Suppression {
  const SuppressProblem& p;
  const SuppressOperands& o;
  const View& keep;
  const KernelContext& context;
  int lanes;
  int64_t length;

  PrimExpr number(double v) const { return make_const(p.dtype, v); }
  PrimExpr number(double v, int n) const { return spread(number(v), n); }
  PrimExpr element(int part, const PrimExpr& at, int n) const {
    return load(context.scratch, n > 1 ? ramp(at + part * length, 1, n) : at + part * length);
  }

  // 1 in each lane whose box, from list position `first` on, suppresses this one.
  PrimExpr hits(const std::array<PrimExpr, kParts>& box, const PrimExpr& first, const PrimExpr& listed,
                const PrimExpr& threshold) const {
    auto other = [&](int part) { return element(part, first, lanes); };
    auto mine = [&](int part) { return spread(box[static_cast<size_t>(part)], lanes); };
    const double end = p.pixels ? 1 : 0;
    auto side = [&](int low, int high) {
      PrimExpr extent = min(mine(high), other(high)) - max(mine(low), other(low));
      if (p.pixels) extent = extent + number(end, lanes);
      return max(number(0, lanes), extent);
    };
    PrimExpr inner = side(kTop, kBottom) * side(kLeft, kRight), all = mine(kArea) + other(kArea) - inner;
    PrimExpr overlap = div(inner, all), least = spread(threshold, lanes);
    PrimExpr hit =
        p.pixels ? gt(overlap, least) : ge(select(le(all, number(0, lanes)), number(0, lanes), overlap), least);
    PrimExpr place = cast(kInt32, first), last = cast(kInt32, listed);
    hit = logical_and(hit, lt(lanes > 1 ? ramp(place, 1, lanes) : place, spread(last, lanes)));
    if (p.classes && !p.force) hit = logical_and(hit, eq(mine(kClass), other(kClass)));
    return select(hit, spread(make_int(1, kInt32), lanes), spread(make_int(0, kInt32), lanes));
  }

  Stmt row(const PrimExpr& r) const {
    const PrimExpr zero = make_int(0), picture = floordiv(r, p.rows / p.pictures);
    const PrimExpr flag_zero = make_int(0, kInt32), flag_one = make_int(1, kInt32);
    const Buffer counts = make_buffer("counts", kInt64, 2, Scope::kRegister);  // boxes kept, boxes in the list
    const Buffer flags = make_buffer("flags", kInt32, 2, Scope::kRegister);    // kept, suppressed
    const Buffer found = make_buffer("found", kInt32.with_lanes(lanes), 1, Scope::kRegister);  // suppressed by a lane
    auto add_one = [&](int which) { return store(counts, make_int(which), load(counts, make_int(which)) + 1); };
    auto stays = [&] { return store(flags, zero, flag_one); };
    auto value = [&](const Operand& operand, const Index& at) { return cast(p.dtype, operand(at, 1, {})); };

    auto compare = [&](const PrimExpr& i, const PrimExpr& kind, const PrimExpr& threshold) {
      auto corner = [&](int c) { return value(o.boxes, {picture, i, make_int(c)}); };
      return bind("x0", corner(0), [&](PrimExpr x0) {
        return bind("y0", corner(1), [&](PrimExpr y0) {
          return bind("x1", corner(2), [&](PrimExpr x1) {
            return bind("y1", corner(3), [&](const PrimExpr& y1) {
              std::array<PrimExpr, kParts> box{p.pixels ? x0 : min(x0, x1), p.pixels ? y0 : min(y0, y1),
                                               p.pixels ? x1 : max(x0, x1), p.pixels ? y1 : max(y0, y1)};
              const double end = p.pixels ? 1 : 0;
              PrimExpr width = box[kRight] - box[kLeft], height = box[kBottom] - box[kTop];
              if (p.pixels) width = width + number(end), height = height + number(end);
              box[kClass] = kind ? kind : number(0);
              return bind("area", width * height, [&](PrimExpr area) {
                box[kArea] = std::move(area);
                Stmt look =
                    loop("k", zero, floordiv(load(counts, make_int(1)) + (lanes - 1), lanes), [&](const PrimExpr& k) {
                      PrimExpr hit = hits(box, k * lanes, load(counts, make_int(1)), threshold);
                      return store(found, zero, binary(ExprKind::kBitOr, load(found, zero), hit));
                    });
                const PrimExpr any = load(found, zero);
                look = seq({store(found, zero, spread(flag_zero, lanes)), look,
                            store(flags, make_int(1), lanes > 1 ? intrinsic(Intrinsic::k_reduce_max, {any}) : any)});
                // Appends to the list; a vector newly begun is zeroed first.
                std::vector<Stmt> put;
                Stmt list = bind("at", min(load(counts, make_int(1)), make_int(p.count - 1)), [&](const PrimExpr& at) {
                  std::vector<Stmt> clear, parts;
                  for (int part = 0; part < kParts; ++part) {
                    PrimExpr to = at + part * length;
                    clear.push_back(store(context.scratch, lanes > 1 ? ramp(to, 1, lanes) : to, number(0, lanes)));
                    parts.push_back(store(context.scratch, to, box[static_cast<size_t>(part)]));
                  }
                  parts.insert(parts.begin(), make_if(eq(floormod(at, lanes), zero), seq(std::move(clear))));
                  parts.push_back(add_one(1));
                  return seq(std::move(parts));
                });
                put.push_back(kind ? make_if(ge(kind, number(0)), list) : list);
                put.push_back(add_one(0));
                put.push_back(stays());
                return seq({look, make_if(eq(load(flags, make_int(1)), flag_zero), seq(std::move(put)))});
              });
            });
          });
        });
      });
    };
    auto whole = [&](PrimExpr v) { return cast(kInt64, std::move(v)); };
    return bind("valid", max(min(whole(o.valid({r}, 1, {})), make_int(p.count)), zero), [&](PrimExpr valid) {
      return bind("limit", whole(o.max_output_size({}, 1, {})), [&](PrimExpr limit) {
        return bind("threshold", value(o.iou_threshold, {}), [&](PrimExpr threshold) {
          Stmt greedy = loop("j", p.count, [&](const PrimExpr& j) {
            Stmt look = bind("i", bounded(o.order({r, j}, 1, {}), p.count), [&](PrimExpr i) {
              Stmt rest = p.count_all ? seq({add_one(0), stays()}) : stays();
              Stmt better = p.classes ? bind("class", value(o.classes, {r, i}),
                                             [&](const PrimExpr& kind) { return compare(i, kind, threshold); })
                                      : compare(i, {}, threshold);
              return make_if(gt(value(o.scores, {r, i}), number(0)), better, rest);
            });
            PrimExpr room = ne(load(counts, zero), limit);
            return seq({store(flags, zero, flag_zero), store(flags, make_int(1), flag_zero),
                        make_if(logical_and(lt(j, valid), room), look), keep.store({r, j}, load(flags, zero))});
          });
          if (!p.pixels) {
            Stmt all = loop("j", p.count, [&](const PrimExpr& j) {
              return keep.store({r, j}, select(lt(j, valid), flag_one, flag_zero));
            });
            greedy = make_if(gt(threshold, number(0)), greedy, all);
          }
          const Stmt begin = seq({store(counts, zero, zero), store(counts, make_int(1), zero)});
          return allocate(counts, allocate(flags, allocate(found, seq({begin, greedy}))));
        });
      });
    });
  }
};

}  // namespace

int64_t suppress_scratch_bytes(const SuppressProblem& p, const Target& target) {
  return kParts * list_length(p, target) * p.dtype.bits / 8;
}

Stmt suppress(const SuppressProblem& p, const SuppressOperands& o, const View& keep, const KernelContext& context) {
  if (p.rows == 0 || p.count == 0) return seq({});
  TW_ICHECK(context.scratch &&
                context.scratch->size * context.scratch->dtype.bits / 8 >= suppress_scratch_bytes(p, *context.target),
            "suppress: scratch");
  const Suppression loops{p, o, keep, context, context.target->lanes(p.dtype.bits), list_length(p, *context.target)};
  return parallel_for(context, "row", p.rows, [&](const PrimExpr& row) { return loops.row(row); });
}

Stmt compact(int64_t rows, int64_t count, const Operand& flags, const View& places, const View& counts,
             const KernelContext& context) {
  if (rows == 0) return seq({});
  return parallel_for(context, "row", rows, [&](PrimExpr row) {
    const Buffer found = make_buffer("found", kInt64, 1, Scope::kRegister);
    const PrimExpr zero = make_int(0);
    Stmt collect = loop("j", count, [&](PrimExpr j) {
      PrimExpr flag = flags({row, j}, 1, {});
      if (!flag->dtype.is_bool()) flag = ne(flag, make_int(0, flag->dtype));
      // It is at most j; the clamp shows that to the verifier.
      Stmt put = bind("at", min(load(found, zero), make_int(count - 1)), [&](PrimExpr at) {
        return seq({places.store({row, std::move(at)}, cast(kInt32, j)), store(found, zero, load(found, zero) + 1)});
      });
      return make_if(flag, put);
    });
    Stmt rest = bind("found_all", load(found, zero), [&](const PrimExpr& all) {
      return seq({loop("j", all, make_int(count),
                       [&](PrimExpr j) {
                         return places.store({row, std::move(j)}, make_int(-1, kInt32));
                       }),
                  counts.store({row}, cast(kInt32, all))});
    });
    return allocate(found, seq({store(found, zero, zero), collect, rest}));
  });
}

}  // namespace tilewright::topi
