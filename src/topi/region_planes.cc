// SPDX-License-Identifier: Apache-2.0
// Regions of planes. Means and maxima are those of columns of what they are of rows: for each row of bins the pixels of
// a region's columns are combined down the rows, in vectors along the image's rows, and bins combine what lies across.
#include <cmath>

#include "topi/reduce_steps.h"
#include "topi/region_bins.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMostTableBytes = 16 << 10, kMostLineBytes = 64 << 10, kChannelsTogether = 32;
constexpr int64_t kMostSamplesUnrolled = 8;

struct Planes : Regions {
  const Operand& data;
  const View& out;
  const KernelContext& context;
  int lanes = context.target->lanes(p.dtype.bits);
  int64_t pitch = round_up(p.data[2], lanes);  // of a line: the columns of one row of bins
  Buffer lines = make_buffer("lines", p.dtype, p.rows* pitch, Scope::kStack, 64);
  // The first column that any bin reads, and the number of columns up to the last one.
  Buffer span = make_buffer("span", kInt64, 2, Scope::kRegister);

  bool fits(int64_t table_entries) const {
    const auto bytes = static_cast<int64_t>(p.dtype.bytes());
    return p.rows * pitch * bytes <= kMostLineBytes && table_entries * (8 + bytes) <= kMostTableBytes;
  }
  // body(region, picture, c) for each channel; `tables` prepares a region for some of them.
  Stmt each(const std::function<Stmt(const PrimExpr& region)>& tables,
            const std::function<Stmt(const PrimExpr& region, const PrimExpr& picture, const PrimExpr& c)>& body) const {
    if (product({p.regions, p.rows, p.columns}) == 0 || product(p.data) == 0) return seq({});
    const std::vector<int64_t> units{p.regions, ceil_div(p.data[3], kChannelsTogether)};
    return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](const Index& at) {
        return bind("picture", picture(at[0]), [&](const PrimExpr& picture) {
          const PrimExpr first = at[1] * kChannelsTogether, end = min(first + kChannelsTogether, make_int(p.data[3]));
          Stmt all = loop("c", first, end, [&](const PrimExpr& c) { return body(at[0], picture, c); });
          return allocate(lines, allocate(span, seq({clear_span(), tables(at[0]), finish_span(), all})));
        });
      });
    });
  }
  Stmt clear_span() const {
    return seq({store(span, make_int(0), make_int(p.data[2])), store(span, make_int(1), make_int(0))});
  }
  // Columns [begin, end) are read.
  Stmt widen(const PrimExpr& begin, const PrimExpr& end) const {
    return seq({store(span, make_int(0), min(load(span, make_int(0)), begin)),
                store(span, make_int(1), max(load(span, make_int(1)), end))});
  }
  Stmt finish_span() const {
    return seq({store(span, make_int(0), max(min(load(span, make_int(0)), make_int(p.data[2] - 1)), make_int(0))),
                store(span, make_int(1), max(load(span, make_int(1)) - load(span, make_int(0)), make_int(0)))});
  }
  // Line `row`: value(column, mask) for vectors of all columns that are read.
  Stmt line(const PrimExpr& row,
            const std::function<Stmt(const PrimExpr& at, const PrimExpr& column, const PrimExpr& mask)>& vector) const {
    const PrimExpr width = load(span, make_int(1));
    return loop("v", make_int(0), floordiv(width + (lanes - 1), lanes), [&](const PrimExpr& v) {
      const PrimExpr at = v * lanes;
      const PrimExpr mask = lanes > 1 ? lt(ramp(at, 1, lanes), broadcast(width, lanes)) : PrimExpr();
      return vector(row * pitch + at, load(span, make_int(0)) + at, mask);
    });
  }
  PrimExpr pixels(const PrimExpr& picture, const PrimExpr& c, const PrimExpr& y, const PrimExpr& x,
                  const PrimExpr& mask) const {
    const PrimExpr value = data({picture, c, y, x}, lanes, mask);
    return value->dtype.element() == p.dtype ? value : cast(p.dtype.with_lanes(lanes), value);
  }
  Stmt set_line(const PrimExpr& at, const PrimExpr& value) const {
    return store(lines, lanes > 1 ? ramp(at, 1, lanes) : at, value);
  }
  PrimExpr in_line(const PrimExpr& row, const PrimExpr& column) const { return load(lines, row * pitch + column); }
  Stmt put(const PrimExpr& region, const PrimExpr& c, const PrimExpr& row, const PrimExpr& column,
           const PrimExpr& value) const {
    return out.store({region, c, row, column}, cast(out.dtype().element(), value));
  }
};

// The pixels and weights of all samples along an axis, those of a bin side by side.
struct TapTable {
  Buffer place, weight;
  int64_t each;  // of a bin
};
TapTable tap_table(const RegionProblem& p, int64_t bins) {
  const int64_t each = 2 * p.samples;
  return {make_buffer("places", kInt64, bins * each, Scope::kStack, 64),
          make_buffer("weights", p.dtype, bins * each, Scope::kStack, 64), each};
}
Stmt fill(const Planes& planes, const TapTable& table, const PrimExpr& region, const RegionAxis& axis, bool spans) {
  return loop("bin", axis.bins, [&](const PrimExpr& bin) {
    return samples_along(planes, region, bin, axis, [&](const Samples& samples) {
      return loop("sample", planes.p.samples, [&](const PrimExpr& i) {
        return with_sample(planes, samples, i, axis.extent, [&](const SampledPixels& s) {
          const PrimExpr at = bin * table.each + i * 2;
          return seq({store(table.place, at, s.before), store(table.place, at + 1, s.after),
                      store(table.weight, at, s.weight_before), store(table.weight, at + 1, s.weight_after),
                      spans ? planes.widen(s.before, s.after + 1) : seq({})});
        });
      });
    });
  });
}

}  // namespace

Stmt region_align_planes(const RegionProblem& p, const Operand& data, const Operand& regions, const View& out,
                         const KernelContext& context) {
  const Planes planes{{p, regions}, data, out, context};
  if (p.mode != RegionProblem::Mode::kAverage || p.samples <= 0 || p.samples > kMostSamplesUnrolled ||
      !planes.fits(2 * p.samples * (p.rows + p.columns)))
    return {};
  const TapTable down = tap_table(p, p.rows), across = tap_table(p, p.columns);
  auto tables = [&](const PrimExpr& region) {
    return seq(
        {fill(planes, down, region, vertical_axis(p), false), fill(planes, across, region, horizontal_axis(p), true)});
  };
  Stmt kernel = planes.each(tables, [&](const PrimExpr& region, const PrimExpr& picture, const PrimExpr& c) {
    Stmt combine = loop("row", p.rows, [&](const PrimExpr& row) {
      return planes.line(row, [&](const PrimExpr& at, const PrimExpr& column, const PrimExpr& mask) {
        PrimExpr sum;
        for (int64_t tap = 0; tap < down.each; ++tap) {
          const PrimExpr y = bounded(load(down.place, row * down.each + tap), p.data[1]);
          const PrimExpr weight = spread(load(down.weight, row * down.each + tap), planes.lanes);
          const PrimExpr x = planes.pixels(picture, c, y, column, mask);
          sum = sum ? multiply_add(weight, x, sum) : weight * x;
        }
        return planes.set_line(at, sum);
      });
    });
    // A bin's taps stay in registers for all rows.
    Stmt bins = loop("column", p.columns, [&](const PrimExpr& column) {
      Index places, weights;
      for (int64_t tap = 0; tap < across.each; ++tap) {
        const PrimExpr at = column * across.each + tap;
        places.push_back(
            max(min(load(across.place, at) - load(planes.span, make_int(0)), make_int(p.data[2] - 1)), make_int(0)));
        weights.push_back(load(across.weight, at));
      }
      return bind_all(places, [&](const Index& place) {
        return bind_all(weights, [&](const Index& weight) {
          return loop("row", p.rows, [&](const PrimExpr& row) {
            PrimExpr sum;
            for (size_t tap = 0; tap < place.size(); ++tap) {
              const PrimExpr x = planes.in_line(row, place[tap]);
              sum = sum ? multiply_add(weight[tap], x, sum) : weight[tap] * x;
            }
            return planes.put(region, c, row, column,
                              sum * planes.number(1.0 / static_cast<double>(p.samples * p.samples)));
          });
        });
      });
    });
    return seq({combine, bins});
  });
  for (const Buffer& table : {down.place, down.weight, across.place, across.weight}) kernel = allocate(table, kernel);
  return kernel;
}

Stmt region_pool_planes(const RegionProblem& p, const Operand& data, const Operand& regions, const View& out,
                        const KernelContext& context) {
  const Planes planes{{p, regions}, data, out, context};
  if (!planes.fits(2 * (p.rows + p.columns))) return {};
  const Buffer down = make_buffer("down", kInt64, 2 * p.rows, Scope::kStack, 64),
               across = make_buffer("across", kInt64, 2 * p.columns, Scope::kStack, 64);
  auto fill_ranges = [&](const Buffer& table, const PrimExpr& region, const RegionAxis& axis, bool spans) {
    return loop("bin", axis.bins, [&](const PrimExpr& bin) {
      return pooled_range(planes, region, bin, axis, [&](const PrimExpr& begin, const PrimExpr& end) {
        return seq(
            {store(table, bin * 2, begin), store(table, bin * 2 + 1, end), spans ? planes.widen(begin, end) : seq({})});
      });
    });
  };
  auto tables = [&](const PrimExpr& region) {
    return seq(
        {fill_ranges(down, region, vertical_axis(p), false), fill_ranges(across, region, horizontal_axis(p), true)});
  };
  const Buffer best = make_buffer("best", p.dtype.with_lanes(planes.lanes), 1, Scope::kRegister),
               most = make_buffer("most", p.dtype, 1, Scope::kRegister);
  const PrimExpr zero = make_int(0), lowest = planes.number(-HUGE_VAL);
  auto begin_of = [](const Buffer& table, const PrimExpr& bin) { return load(table, bin * 2); };
  auto end_of = [](const Buffer& table, const PrimExpr& bin) { return load(table, bin * 2 + 1); };
  Stmt kernel = planes.each(tables, [&](const PrimExpr& region, const PrimExpr& picture, const PrimExpr& c) {
    Stmt combine = loop("row", p.rows, [&](const PrimExpr& row) {
      return planes.line(row, [&](const PrimExpr& at, const PrimExpr& column, const PrimExpr& mask) {
        Stmt rows = loop("y", begin_of(down, row), end_of(down, row), [&](const PrimExpr& y) {
          return store(best, zero,
                       max(planes.pixels(picture, c, bounded(y, p.data[1]), column, mask), load(best, zero)));
        });
        return seq({store(best, zero, spread(lowest, planes.lanes)), rows, planes.set_line(at, load(best, zero))});
      });
    });
    Stmt bins = loop("column", p.columns, [&](const PrimExpr& column) {
      const Index ends{begin_of(across, column) - load(planes.span, zero),
                       end_of(across, column) - load(planes.span, zero)};
      return bind_all(ends, [&](const Index& x) {
        return loop("row", p.rows, [&](const PrimExpr& row) {
          Stmt pixels = loop("x", x[0], x[1], [&](const PrimExpr& at) {
            const PrimExpr inside = max(min(at, make_int(p.data[2] - 1)), zero);
            return store(most, zero, max(planes.in_line(row, inside), load(most, zero)));
          });
          const PrimExpr some = logical_and(lt(begin_of(down, row), end_of(down, row)), lt(x[0], x[1]));
          return seq({store(most, zero, lowest), pixels,
                      planes.put(region, c, row, column, select(some, load(most, zero), planes.number(0)))});
        });
      });
    });
    return seq({combine, bins});
  });
  return allocate(down, allocate(across, allocate(best, allocate(most, kernel))));
}

}  // namespace tilewright::topi
