// SPDX-License-Identifier: Apache-2.0
// Pooling of regions, bin by bin.
#include <cmath>

#include "topi/region_bins.h"

namespace tilewright::topi {

using namespace tir;

PrimExpr Regions::picture(const PrimExpr& region) const {
  PrimExpr which = cast(p.dtype, regions({region, make_int(0)}, 1, {}));
  // max and min also handle NaN
  which = max(min(which, number(static_cast<double>(p.data[0] - 1))), number(0));
  return bounded(which, p.data[0]);
}

Stmt samples_along(const Regions& regions, const PrimExpr& region, const PrimExpr& bin, const RegionAxis& axis,
                   const std::function<Stmt(Samples)>& body) {
  const RegionProblem& p = regions.p;
  auto number = [&](double v) { return regions.number(v); };
  PrimExpr start = regions.edge(region, axis.low), end = regions.edge(region, axis.high);
  if (p.half_pixel) start = start - number(0.5), end = end - number(0.5);
  return bind("start", start, [&](PrimExpr from) {
    PrimExpr length = end - from;
    if (!p.half_pixel) length = max(length, number(1));
    return bind("size", div(length, number(static_cast<double>(axis.bins))), [&](PrimExpr size) {
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
            return bind("end", max(first, place(static_cast<double>(axis.extent), 2)), [&](PrimExpr end) {
              return body({origin, size, cast(kInt64, n), std::move(first), std::move(end)});
            });
          });
        });
      });
    });
  });
}

Stmt with_sample(const Regions& regions, const Samples& s, const PrimExpr& i, int64_t extent,
                 const std::function<Stmt(SampledPixels)>& body) {
  auto number = [&](double v) { return regions.number(v); };
  auto real = [&](const PrimExpr& i) { return cast(regions.p.dtype, i); };
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

Stmt pooled_range(const Regions& regions, const PrimExpr& region, const PrimExpr& bin, const RegionAxis& axis,
                  const std::function<Stmt(PrimExpr, PrimExpr)>& body) {
  const RegionProblem& p = regions.p;
  auto number = [&](double v) { return regions.number(v); };
  // Rounds halves away from zero; far values and NaN are clamped into int32.
  auto rounded = [&](const PrimExpr& v) {
    constexpr double kFar = 1e9;
    PrimExpr held = min(max(v, number(-kFar)), number(kFar)), whole = intrinsic(Intrinsic::k_trunc, {held});
    PrimExpr rest = held - whole;
    PrimExpr step = select(ge(rest, number(0.5)), make_int(1), make_int(0)) -
                    select(le(rest, number(-0.5)), make_int(1), make_int(0));
    return cast(kInt64, whole) + step;
  };
  return bind("start", rounded(regions.edge(region, axis.low)), [&](PrimExpr start) {
    PrimExpr length = max(rounded(regions.edge(region, axis.high)) - start + 1, make_int(1));
    return bind("size", div(cast(p.dtype, length), number(static_cast<double>(axis.bins))), [&](const PrimExpr& size) {
      const PrimExpr epsilon = number(1e-5);
      PrimExpr first = intrinsic(Intrinsic::k_floor, {cast(p.dtype, bin) * size + epsilon}),
               last = intrinsic(Intrinsic::k_ceil, {cast(p.dtype, bin + 1) * size - epsilon});
      auto held = [&](const PrimExpr& v) {
        return min(max(cast(kInt64, v) + start, make_int(0)), make_int(axis.extent));
      };
      return bind("first", held(first), [&](PrimExpr begin) {
        return bind("last", held(last), [&](PrimExpr end) { return body(begin, std::move(end)); });
      });
    });
  });
}

namespace {

// Loops over a pixel's channels: whole vectors, then a masked remainder.
Stmt channels(int64_t count, int lanes, const std::function<Stmt(PrimExpr, int, PrimExpr)>& step) {
  const int64_t whole = count / lanes;
  std::vector<Stmt> parts;
  if (whole > 0) parts.push_back(loop("c", whole, [&](const PrimExpr& c) { return step(c * lanes, lanes, {}); }));
  if (count % lanes)
    parts.push_back(step(make_int(whole * lanes), lanes, lanes > 1 ? tail_mask(lanes, count % lanes) : PrimExpr()));
  return seq(std::move(parts));
}

// Channels are summed in scratch memory; those of planes, which are apart, one by one.
struct Bins : Regions {
  const Operand& data;
  const View& out;
  const KernelContext& context;
  int lanes = p.planes ? 1 : context.target->lanes(p.dtype.bits);

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
    return cast(p.dtype, data(p.planes ? Index{picture, c, y, x} : Index{picture, y, x, c}, n, mask));
  }
  Stmt write(const Index& bin, const std::function<PrimExpr(PrimExpr)>& finish) const {
    return channels(p.data[3], lanes, [&](const PrimExpr& c, int, const PrimExpr& mask) {
      PrimExpr value = finish(sum(c));
      Index at = bin;
      at.insert(p.planes ? at.begin() + 1 : at.end(), c);
      return out.store(at, cast(out.dtype().element(), value), mask);
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
            return bind("picture", picture(region), [&](const PrimExpr& picture) {
              return body({region, row, column}, picture);
            });
          });
        });
      });
    });
  }
};

}  // namespace

int64_t region_scratch_bytes(const RegionProblem& p, const Target& target) {
  return round_up(std::max<int64_t>(p.data[3], 1), target.lanes(p.dtype.bits)) * p.dtype.bits / 8;
}

Stmt region_align(const RegionProblem& p, const Operand& data, const Operand& regions, const View& out,
                  const KernelContext& context) {
  if (p.planes)
    if (Stmt rows = region_align_planes(p, data, regions, out, context)) return rows;
  const Bins bins{{p, regions}, data, out, context};
  using Mode = RegionProblem::Mode;
  auto number = [&](double v) { return bins.number(v); };
  auto real = [&](const PrimExpr& i) { return cast(p.dtype, i); };
  const PrimExpr zero = make_int(0);

  const bool average = p.mode == Mode::kAverage;
  return bins.each([&](const Index& bin, const PrimExpr& picture) {
    return samples_along(bins, bin[0], bin[1], vertical_axis(p), [&](const Samples& vertical) {
      return samples_along(bins, bin[0], bin[2], horizontal_axis(p), [&](const Samples& horizontal) {
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
  if (p.planes)
    if (Stmt rows = region_pool_planes(p, data, regions, out, context)) return rows;
  const Bins bins{{p, regions}, data, out, context};
  return bins.each([&](const Index& bin, const PrimExpr& picture) {
    return pooled_range(bins, bin[0], bin[1], vertical_axis(p), [&](const PrimExpr& y0, const PrimExpr& y1) {
      return pooled_range(bins, bin[0], bin[2], horizontal_axis(p), [&](const PrimExpr& x0, const PrimExpr& x1) {
        Stmt gather = loop("y", y0, y1, [&](PrimExpr y) {
          return loop("x", x0, x1, [&](PrimExpr x) {
            return channels(p.data[3], bins.lanes, [&](const PrimExpr& c, int n, const PrimExpr& mask) {
              return bins.set_sum(c, max(bins.pixel(picture, y, x, c, n, mask), bins.sum(c)));
            });
          });
        });
        Stmt some = seq({bins.fill(bins.number(-HUGE_VAL)), gather});
        return seq({make_if(logical_and(lt(y0, y1), lt(x0, x1)), some, bins.fill(bins.number(0))),
                    bins.write(bin, [](PrimExpr v) { return v; })});
      });
    });
  });
}

}  // namespace tilewright::topi
