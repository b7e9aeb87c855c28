// SPDX-License-Identifier: Apache-2.0
#include "topi/detection.h"

#include <array>
#include <cmath>
#include <utility>

namespace tilewright::topi {

using namespace tir;

namespace {

PrimExpr as_type(PrimExpr value, DataType dtype) {
  return value->dtype.element() == dtype ? value : cast(dtype, std::move(value));
}
// Clamps to [0, extent).
PrimExpr bounded(PrimExpr value, int64_t extent) {
  return max(min(as_type(std::move(value), kInt64), make_int(extent - 1)), make_int(0));
}
PrimExpr spread(const PrimExpr& value, int lanes) { return lanes > 1 ? broadcast(value, lanes) : value; }

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
    auto add_one = [&](int which) { return store(counts, make_int(which), load(counts, make_int(which)) + 1); };
    auto stays = [&] { return store(flags, zero, flag_one); };
    auto value = [&](const Operand& operand, const Index& at) { return as_type(operand(at, 1, {}), p.dtype); };

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
                      if (lanes > 1) hit = intrinsic(Intrinsic::k_reduce_max, {hit});
                      return store(flags, make_int(1), max(load(flags, make_int(1)), hit));
                    });
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
    auto whole = [&](PrimExpr v) { return as_type(std::move(v), kInt64); };
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
          return allocate(counts,
                          allocate(flags, seq({store(counts, zero, zero), store(counts, make_int(1), zero), greedy})));
        });
      });
    });
  }
};

// Loops over a pixel's channels: whole vectors, then a masked remainder.
Stmt channels(int64_t count, int lanes, const std::function<Stmt(PrimExpr, int, PrimExpr)>& step) {
  const int64_t whole = count / lanes;
  std::vector<Stmt> parts;
  if (whole > 0) parts.push_back(loop("c", whole, [&](const PrimExpr& c) { return step(c * lanes, lanes, {}); }));
  if (count % lanes)
    parts.push_back(step(make_int(whole * lanes), lanes, lanes > 1 ? tail_mask(lanes, count % lanes) : PrimExpr()));
  return seq(std::move(parts));
}

struct Bins {
  const RegionProblem& p;
  const Operand &data, &regions;
  const View& out;
  const KernelContext& context;
  int lanes = context.target->lanes(p.dtype.bits);

  PrimExpr number(double v) const { return make_const(p.dtype, v); }
  PrimExpr edge(const PrimExpr& region, int i) const {
    return as_type(regions({region, make_int(i)}, 1, {}), p.dtype) * number(p.scale);
  }
  PrimExpr sum(const PrimExpr& at) const { return load(context.scratch, lanes > 1 ? ramp(at, 1, lanes) : at); }
  Stmt set_sum(const PrimExpr& at, PrimExpr value) const {
    return store(context.scratch, lanes > 1 ? ramp(at, 1, lanes) : at, std::move(value));
  }
  Stmt fill(const PrimExpr& value) const {
    return channels(p.data[3], lanes,
                    [&](const PrimExpr& c, int n, const PrimExpr&) { return set_sum(c, spread(value, n)); });
  }
  PrimExpr pixel(const PrimExpr& picture, const PrimExpr& y, const PrimExpr& x, const PrimExpr& c, int n,
                 const PrimExpr& mask) const {
    return as_type(data({picture, y, x, c}, n, mask), p.dtype);
  }
  Stmt write(const Index& bin, const std::function<PrimExpr(PrimExpr)>& finish) const {
    return channels(p.data[3], lanes, [&](const PrimExpr& c, int n, const PrimExpr& mask) {
      PrimExpr value = finish(sum(c));
      Index at = bin;
      at.push_back(c);
      return out.store(at, as_type(value, out.dtype().element()), mask);
    });
  }
  // Loops over all bins: (region, row, column) and the image of the region.
  Stmt each(const std::function<Stmt(const Index&, const PrimExpr& picture)>& body) const {
    const std::vector<int64_t> extents{p.regions, p.rows, p.columns};
    if (product(extents) == 0 || product(p.data) == 0) return seq({});
    return parallel_for(context, "bin", product(extents), [&](const PrimExpr& unit) {
      const Index at = unravel(unit, extents);
      return bind("region", at[0], [&](PrimExpr region) {
        return bind("row", at[1], [&](PrimExpr row) {
          return bind("column", at[2], [&](PrimExpr column) {
            PrimExpr which = as_type(regions({region, make_int(0)}, 1, {}), p.dtype);
            // max and min also handle NaN
            which = max(min(which, number(static_cast<double>(p.data[0] - 1))), number(0));
            return bind("picture", bounded(which, p.data[0]), [&](const PrimExpr& picture) {
              return body({region, row, column}, picture);
            });
          });
        });
      });
    });
  }
};

// The sampling of a bin along one axis.
struct Samples {
  PrimExpr start, size, count;  // of the bin, in pixels; count is int64
  PrimExpr first, end;          // of the samples that may be near the map
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

int64_t region_scratch_bytes(const RegionProblem& p, const Target& target) {
  return round_up(std::max<int64_t>(p.data[3], 1), target.lanes(p.dtype.bits)) * p.dtype.bits / 8;
}

namespace {

// Start, size and number of samples of a bin along an axis, from region edges `low` and `high` and the number of bins.
Stmt samples_along(const Bins& bins, const PrimExpr& region, const PrimExpr& bin, int low, int high, int64_t count,
                   int64_t extent, const std::function<Stmt(Samples)>& body) {
  const RegionProblem& p = bins.p;
  auto number = [&](double v) { return bins.number(v); };
  PrimExpr start = bins.edge(region, low), end = bins.edge(region, high);
  if (p.half_pixel) start = start - number(0.5), end = end - number(0.5);
  return bind("start", start, [&](PrimExpr from) {
    PrimExpr length = end - from;
    if (!p.half_pixel) length = max(length, number(1));
    return bind("size", div(length, number(static_cast<double>(count))), [&](PrimExpr size) {
      return bind("origin", from + cast(p.dtype, bin) * size, [&](PrimExpr origin) {
        if (p.samples > 0) return body({origin, size, make_int(p.samples), make_int(0), make_int(p.samples)});
        // max(NaN, 1) is 1. Regions smaller than a pixel may also have no samples.
        PrimExpr many = intrinsic(Intrinsic::k_ceil, {size});
        many = min(max(many, number(p.half_pixel ? 0 : 1)), number(kMostSamples));
        return bind("samples", many, [&](PrimExpr n) {
          // Of a region of any size only so many samples are near the map; the margin is for roundings.
          auto place = [&](double at, double margin) {
            const PrimExpr i = div((number(at) - origin) * n, size) + number(margin);
            return cast(kInt64, min(max(intrinsic(Intrinsic::k_floor, {i}), number(0)), n));
          };
          return bind("first", place(-1, -2), [&](PrimExpr first) {
            return bind("end", max(first, place(static_cast<double>(extent), 2)), [&](PrimExpr end) {
              return body({origin, size, cast(kInt64, n), std::move(first), std::move(end)});
            });
          });
        });
      });
    });
  });
}

// The pixels around a sample, their weights, and 1 if the sample is valid.
struct SampledPixels {
  PrimExpr before, after, weight_before, weight_after;
};
Stmt with_sample(const Bins& bins, const Samples& s, const PrimExpr& i, int64_t extent,
                 const std::function<Stmt(SampledPixels)>& body) {
  auto number = [&](double v) { return bins.number(v); };
  auto real = [&](const PrimExpr& i) { return cast(bins.p.dtype, i); };
  PrimExpr position = s.start + div((real(i) + number(0.5)) * s.size, real(s.count));
  return bind("position", position, [&](const PrimExpr& at) {
    const double last = static_cast<double>(extent - 1);
    PrimExpr inside = logical_and(ge(at, number(-1)), le(at, number(last + 1)));
    // max(NaN, 0) is 0.
    return bind("held", min(max(at, number(0)), number(last)), [&](PrimExpr held) {
      return bind("before", bounded(cast(kInt64, held), extent), [&](PrimExpr before) {
        return bind("part", held - real(before), [&](PrimExpr part) {
          return bind("counts", select(inside, number(1), number(0)), [&](PrimExpr counts) {
            return bind("after", min(before + 1, make_int(extent - 1)), [&](PrimExpr after) {
              return body({before, std::move(after), (number(1) - part) * counts, part * counts});
            });
          });
        });
      });
    });
  });
}

}  // namespace

Stmt region_align(const RegionProblem& p, const Operand& data, const Operand& regions, const View& out,
                  const KernelContext& context) {
  const Bins bins{p, data, regions, out, context};
  using Mode = RegionProblem::Mode;
  auto number = [&](double v) { return bins.number(v); };
  auto real = [&](const PrimExpr& i) { return cast(p.dtype, i); };
  const PrimExpr zero = make_int(0);

  const bool average = p.mode == Mode::kAverage;
  return bins.each([&](const Index& bin, const PrimExpr& picture) {
    return samples_along(bins, bin[0], bin[1], 2, 4, p.rows, p.data[1], [&](const Samples& vertical) {
      return samples_along(bins, bin[0], bin[2], 1, 3, p.columns, p.data[2], [&](const Samples& horizontal) {
        // Adds the contribution of one row of samples, or one sample, to the channels.
        auto add = [&](const SampledPixels& y, const std::vector<SampledPixels>& row) {
          return channels(p.data[3], bins.lanes, [&](PrimExpr c, int n, const PrimExpr& mask) {
            PrimExpr all;
            for (const SampledPixels& x : row) {
              auto term = [&](const PrimExpr& line, const PrimExpr& column, const PrimExpr& weight) {
                return spread(weight, n) * bins.pixel(picture, line, column, c, n, mask);
              };
              const PrimExpr v00 = term(y.before, x.before, y.weight_before * x.weight_before),
                             v01 = term(y.before, x.after, y.weight_before * x.weight_after),
                             v10 = term(y.after, x.before, y.weight_after * x.weight_before),
                             v11 = term(y.after, x.after, y.weight_after * x.weight_after);
              const PrimExpr value =
                  p.mode == Mode::kMaxPixel ? max(max(v00, v01), max(v10, v11)) : v00 + v01 + v10 + v11;
              all = !all ? value : average ? all + value : max(all, value);
            }
            return bins.set_sum(c, average ? bins.sum(c) + all : max(bins.sum(c), all));
          });
        };
        std::vector<SampledPixels> row;
        std::function<Stmt(const SampledPixels&, int64_t)> whole_row = [&](const SampledPixels& y, int64_t ix) -> Stmt {
          if (ix == p.samples) return add(y, row);
          return with_sample(bins, horizontal, make_int(ix), p.data[2], [&](const SampledPixels& x) {
            row.push_back(x);
            Stmt rest = whole_row(y, ix + 1);
            row.pop_back();
            return rest;
          });
        };
        Stmt gather = loop("iy", vertical.first, vertical.end, [&](const PrimExpr& iy) {
          return with_sample(bins, vertical, iy, p.data[1], [&](const SampledPixels& y) {
            if (p.samples > 0 && p.samples <= 4) return whole_row(y, 0);
            return loop("ix", horizontal.first, horizontal.end, [&](const PrimExpr& ix) {
              return with_sample(bins, horizontal, ix, p.data[2], [&](const SampledPixels& x) { return add(y, {x}); });
            });
          });
        });
        return bind("all", vertical.count * horizontal.count, [&](PrimExpr all) {
          // A bin without samples is 0, as are samples outside of the map.
          const PrimExpr met = (vertical.end - vertical.first) * (horizontal.end - horizontal.first);
          const PrimExpr only = logical_and(gt(all, zero), ge(met, all));
          PrimExpr first = average ? number(0) : select(only, number(-HUGE_VAL), number(0));
          Stmt put = bins.write(bin, [&](const PrimExpr& v) {
            return average ? div(v, spread(real(max(all, make_int(1))), bins.lanes)) : v;
          });
          return seq({bins.fill(first), gather, put});
        });
      });
    });
  });
}

Stmt region_pool(const RegionProblem& p, const Operand& data, const Operand& regions, const View& out,
                 const KernelContext& context) {
  const Bins bins{p, data, regions, out, context};
  auto number = [&](double v) { return bins.number(v); };
  // Rounds halves away from zero; far values and NaN are clamped into int32.
  auto rounded = [&](const PrimExpr& v) {
    constexpr double kFar = 1e9;
    PrimExpr held = min(max(v, number(-kFar)), number(kFar)), whole = intrinsic(Intrinsic::k_trunc, {held});
    PrimExpr rest = held - whole;
    PrimExpr step = select(ge(rest, number(0.5)), make_int(1), make_int(0)) -
                    select(le(rest, number(-0.5)), make_int(1), make_int(0));
    return cast(kInt64, whole) + step;
  };
  auto range = [&](const PrimExpr& region, const PrimExpr& bin, int low, int high, int64_t count, int64_t extent,
                   const std::function<Stmt(PrimExpr, PrimExpr)>& body) {
    return bind("start", rounded(bins.edge(region, low)), [&](PrimExpr start) {
      PrimExpr length = max(rounded(bins.edge(region, high)) - start + 1, make_int(1));
      return bind("size", div(cast(p.dtype, length), number(static_cast<double>(count))), [&](const PrimExpr& size) {
        const PrimExpr epsilon = number(1e-5);
        PrimExpr first = intrinsic(Intrinsic::k_floor, {cast(p.dtype, bin) * size + epsilon}),
                 last = intrinsic(Intrinsic::k_ceil, {cast(p.dtype, bin + 1) * size - epsilon});
        auto held = [&](const PrimExpr& v) { return min(max(cast(kInt64, v) + start, make_int(0)), make_int(extent)); };
        return bind("first", held(first), [&](PrimExpr begin) {
          return bind("last", held(last), [&](PrimExpr end) { return body(begin, std::move(end)); });
        });
      });
    });
  };
  return bins.each([&](const Index& bin, const PrimExpr& picture) {
    return range(bin[0], bin[1], 2, 4, p.rows, p.data[1], [&](const PrimExpr& y0, const PrimExpr& y1) {
      return range(bin[0], bin[2], 1, 3, p.columns, p.data[2], [&](const PrimExpr& x0, const PrimExpr& x1) {
        Stmt gather = loop("y", y0, y1, [&](PrimExpr y) {
          return loop("x", x0, x1, [&](PrimExpr x) {
            return channels(p.data[3], bins.lanes, [&](const PrimExpr& c, int n, const PrimExpr& mask) {
              return bins.set_sum(c, max(bins.pixel(picture, y, x, c, n, mask), bins.sum(c)));
            });
          });
        });
        Stmt some = seq({bins.fill(number(-HUGE_VAL)), gather});
        return seq({make_if(logical_and(lt(y0, y1), lt(x0, x1)), some, bins.fill(number(0))),
                    bins.write(bin, [](PrimExpr v) { return v; })});
      });
    });
  });
}

}  // namespace tilewright::topi
