// SPDX-License-Identifier: Apache-2.0
#include "topi/grid_sample.h"

#include <algorithm>
#include <utility>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

using Method = GridSampleProblem::Method;
using Padding = GridSampleProblem::Padding;

int64_t taps_of_axis(Method method) { return method == Method::kNearest ? 1 : method == Method::kLinear ? 2 : 4; }

// Pixel positions and their weights for vectors of points, by the formulas of the operator's reference.
struct Sampler {
  const GridSampleProblem& p;
  DataType t;  // vector dtype

  PrimExpr number(double v) const { return make_const(t, v); }
  PrimExpr whole(int64_t v) const { return broadcast(make_int(v), t.lanes); }
  PrimExpr reflect(const PrimExpr& x, int64_t n) const {
    const double low = p.align_corners ? 0 : -0.5,
                 span = p.align_corners ? static_cast<double>(n - 1) : static_cast<double>(n);
    if (span <= 0) return number(0);
    PrimExpr d = intrinsic(Intrinsic::k_fmod, {intrinsic(Intrinsic::k_fabs, {x - number(low)}), number(2 * span)});
    return select(gt(d, number(span)), number(2 * span) - d, d) + number(low);
  }
  PrimExpr clamp(const PrimExpr& x, double low, double high) const { return min(max(x, number(low)), number(high)); }
  PrimExpr coordinate(const PrimExpr& v, int64_t n) const {
    const double extent = static_cast<double>(n);
    PrimExpr x = p.align_corners ? (v + number(1)) * number((extent - 1) / 2)
                                 : ((v + number(1)) * number(extent) - number(1)) * number(0.5);
    if (p.method != Method::kCubic) {
      if (p.padding == Padding::kBorder) x = clamp(x, 0, extent - 1);
      if (p.padding == Padding::kReflection) x = clamp(reflect(x, n), 0, extent - 1);
    }
    constexpr double kFar = 1e9;  // outside any image; keeps infinities and NaN out of integer conversions
    return select(intrinsic(Intrinsic::k_isnan, {x}), number(-kFar), clamp(x, -kFar, kFar));
  }
  PrimExpr position(const PrimExpr& i, int64_t n) const {
    PrimExpr x = i;
    if (p.padding == Padding::kReflection)
      x = cast(kInt64.with_lanes(t.lanes), intrinsic(Intrinsic::k_round, {reflect(cast(t, i), n)}));
    return max(min(x, whole(n - 1)), whole(0));
  }
  PrimExpr weight(const PrimExpr& distance) const {
    PrimExpr x = intrinsic(Intrinsic::k_fabs, {distance});
    if (p.method == Method::kLinear) return number(1) - x;
    const double c = -0.75;
    PrimExpr near = ((x * number(c + 2) - number(c + 3)) * x) * x + number(1);
    PrimExpr far = ((x * number(c) - number(5 * c)) * x + number(8 * c)) * x - number(4 * c);
    return select(le(x, number(1)), near, select(lt(x, number(2)), far, number(0)));
  }
  PrimExpr inside(const PrimExpr& i, int64_t n) const { return logical_and(le(whole(0), i), lt(i, whole(n))); }
};

// The taps along one axis for a vector of points: positions (integral, unbounded) and weights.
struct AxisTaps {
  std::vector<PrimExpr> at, weight;
};

// Points whose taps are found together: so many rows of a run of points along the last dimension. The tables of taps
// fit the first cache; where the second does not hold all channels' planes they fit a part of it, since points far
// apart would otherwise fetch each plane again for every run.
struct Points {
  int lanes;
  int64_t taps, rows, run, at_once;  // rows of the output, and how many of them go together
  bool far;                          // the second cache does not hold all channels' planes
  Points(const GridSampleProblem& p, const Target& target) {
    const int64_t width = p.out.back(), each = p.dtype.bits / 8;
    lanes = width < target.lanes(p.dtype.bits) / 2 ? 1 : target.lanes(p.dtype.bits);
    taps = product(std::vector<int64_t>(p.data.size() - 2, taps_of_axis(p.method)));
    rows = product({p.out.begin() + 2, p.out.end() - 1});
    far = product(p.data) / std::max<int64_t>(1, p.data[0]) * each > target.machine.l2_bytes / 2;
    const int64_t room = std::max<int64_t>(far ? target.machine.l2_bytes / 3 / (2 * each * taps) : 1024 / taps, 16);
    run = std::min(round_up(width, lanes), round_up(room, lanes));
    at_once = far ? std::clamp<int64_t>(std::min(room / run, rows * p.out[0] / kLeastShares), 1, rows) : 1;
  }
  // Elements of one table: weights, then places as integers as wide.
  int64_t table() const { return at_once * taps * run; }

 private:
  static constexpr int64_t kLeastShares = 16;  // for threads
};

struct GridKernel {
  const GridSampleProblem& p;
  const View& data;
  const Operand& grid;
  const View& out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const size_t axes = p.data.size() - 2;
  const Points points{p, *context.target};
  const int lanes = points.lanes;
  const int64_t each = taps_of_axis(p.method), taps = points.taps, run = points.run, width = p.out.back();
  const Sampler s{p, p.dtype.with_lanes(lanes)};

  // Taps along axis d of the data for the points at `point`; `keep` binds a value to a name.
  AxisTaps taps_along(size_t d, const Index& batch, const Index& point, const PrimExpr& mask,
                      const std::function<PrimExpr(const char*, PrimExpr)>& keep) const {
    AxisTaps found;
    const int64_t n = p.data[d + 2];
    Index from{batch[0], make_int(static_cast<int64_t>(axes - 1 - d))};
    from.insert(from.end(), point.begin(), point.end());
    PrimExpr v = grid(from, lanes, mask);
    if (v->dtype != s.t) v = cast(s.t, v);
    const PrimExpr x = keep("x", s.coordinate(v, n));
    if (p.method == Method::kNearest) {
      found.at.push_back(keep("i", cast(kInt64.with_lanes(lanes), intrinsic(Intrinsic::k_round, {x}))));
      return found;
    }
    const PrimExpr floor = keep("floor", intrinsic(Intrinsic::k_floor, {x}));
    const PrimExpr base = keep("i", cast(kInt64.with_lanes(lanes), floor));
    for (int64_t k = 0; k < each; ++k) {
      const int64_t offset = k + 1 - each / 2;
      found.at.push_back(base + s.whole(offset));
      found.weight.push_back(keep("w", s.weight(s.number(static_cast<double>(offset)) - (x - floor))));
    }
    return found;
  }
  // Computes weights and indices for the points at `point` (out's index without batch and channel).
  Stmt find(const Index& batch, const Index& point, const PrimExpr& slot, const PrimExpr& mask) const {
    std::vector<AxisTaps> found(axes);
    std::vector<std::pair<PrimExpr, PrimExpr>> lets;
    auto keep = [&](const char* name, PrimExpr value) {
      lets.emplace_back(make_var(name, value->dtype), std::move(value));
      return lets.back().first;
    };
    for (size_t d = 0; d < axes; ++d) found[d] = taps_along(d, batch, point, mask, keep);
    std::vector<Stmt> stores;
    for (int64_t t = 0; t < taps; ++t) {
      PrimExpr weight, place = s.whole(0), inside;
      int64_t rest = t;
      for (size_t d = axes; d-- > 0; rest /= each) {
        const auto k = static_cast<size_t>(rest % each);
        if (!found[d].weight.empty()) weight = weight ? found[d].weight[k] * weight : found[d].weight[k];
        place = place + s.position(found[d].at[k], p.data[d + 2]) * s.whole(data.strides[d + 2]);
        PrimExpr real = s.inside(found[d].at[k], p.data[d + 2]);
        inside = inside ? logical_and(inside, real) : real;
      }
      if (!weight) weight = s.number(1);
      if (p.padding == Padding::kZeros) weight = select(inside, weight, s.number(0));
      auto at = [&](const PrimExpr& i) { return lanes == 1 ? i : ramp(i, 1, lanes); };
      const DataType whole = context.scratch->dtype.with_lanes(lanes);
      stores.push_back(store(context.scratch, at(slot + t * run), reinterpret(whole, weight)));
      stores.push_back(store(context.scratch, at(slot + (t * run + points.table())), cast(whole, place)));
    }
    Stmt body = seq(std::move(stores));
    for (size_t i = lets.size(); i-- > 0;) body = let_stmt(lets[i].first, lets[i].second, body);
    return body;
  }
  // Prefetches of each vector's share of the next channels' planes: points lie anywhere, and each line of a plane that
  // is not in the second cache yet would be waited for.
  std::vector<Stmt> hints(const std::vector<PrimExpr>& planes, const PrimExpr& slot) const {
    constexpr int64_t kMost = 12;
    const int64_t line = 64 * 8 / p.dtype.bits, of_row = run / lanes, vectors = points.at_once * of_row;
    const auto count = static_cast<int64_t>(planes.size());
    const int64_t share = ceil_div(ceil_div(count * data.strides[1], line), vectors);
    if (!points.far || share > kMost) return {};
    const PrimExpr vector =
        floordiv(slot, make_int(taps * run)) * of_row + floordiv(floormod(slot, make_int(run)), make_int(lanes));
    std::vector<Stmt> all;
    for (int64_t i = 0; i < share; ++i)
      all.push_back(prefetch(data.buffer, planes[0] + count * data.strides[1] + (vector * share + i) * line));
    return all;
  }
  // The samples of one vector of points in some channels, whose planes begin at `planes`: `at` is the first one's
  // index.
  Stmt gather(const std::vector<PrimExpr>& planes, const Index& at, const PrimExpr& slot, const PrimExpr& mask) const {
    std::vector<PrimExpr> sums(planes.size());
    for (int64_t t = 0; t < taps; ++t) {
      PrimExpr weight = load(context.scratch, lanes == 1 ? slot + t * run : ramp(slot + t * run, 1, lanes));
      weight = reinterpret(s.t, weight);
      for (size_t c = 0; c < planes.size(); ++c) {
        std::vector<PrimExpr> values;
        std::vector<int> order;
        for (int l = 0; l < lanes; ++l) {
          const PrimExpr place = load(context.scratch, slot + (t * run + points.table() + l));
          values.push_back(load(data.buffer, planes[c] + cast(kInt64, place)));
          order.push_back(l);
        }
        PrimExpr value = lanes == 1 ? values[0] : shuffle(values, order);
        if (value->dtype != s.t) value = cast(s.t, value);
        PrimExpr term = select(eq(weight, s.number(0)), s.number(0), weight * value);
        sums[c] = sums[c] ? sums[c] + term : term;
      }
    }
    // All are computed before the first is stored: places are read once.
    std::vector<PrimExpr> named;
    std::vector<Stmt> stores = hints(planes, slot);
    for (size_t c = 0; c < planes.size(); ++c) {
      named.push_back(make_var("sum", sums[c]->dtype));
      Index here = at;
      here[1] = at[1] + static_cast<int64_t>(c);
      stores.push_back(out.store(here, epilogue(named[c], here, mask), mask));
    }
    Stmt body = seq(std::move(stores));
    for (size_t c = planes.size(); c-- > 0;) body = let_stmt(named[c], sums[c], body);
    return body;
  }
  // The rows of a chunk, whose tables lie behind each other, and in each the vectors of a run: f(index without batch
  // and channel, slot in the tables, mask).
  Stmt each_vector(const PrimExpr& chunk, const PrimExpr& part,
                   const std::function<Stmt(Index, const PrimExpr&, const PrimExpr&)>& f) const {
    const int64_t runs = ceil_div(width, run), tail = width % lanes;
    const std::vector<int64_t> outer(p.out.begin() + 2, p.out.end() - 1);
    const PrimExpr first_row = chunk * points.at_once, first = part * run;
    const PrimExpr rows = points.rows % points.at_once == 0
                              ? make_int(points.at_once)
                              : min(make_int(points.at_once), make_int(points.rows) - first_row);
    const PrimExpr vectors =
        runs == 1 ? make_int(width / lanes) : min(make_int(run / lanes), floordiv(make_int(width) - first, lanes));
    return loop("row", make_int(0), rows, [&](const PrimExpr& row) {
      return bind_all(unravel(first_row + row, outer), [&](const Index& at) {
        auto here = [&](const PrimExpr& i, const PrimExpr& mask) {
          Index point = at;
          point.push_back(first + i);
          return f(std::move(point), row * (taps * run) + i, mask);
        };
        Stmt all = loop("v", make_int(0), vectors, [&](const PrimExpr& i) { return here(i * int64_t{lanes}, {}); });
        if (tail == 0) return all;
        Stmt rest = here(make_int(width % run / lanes * lanes), tail_mask(lanes, tail));
        return seq({all, runs == 1 ? rest : make_if(eq(part, make_int(runs - 1)), rest)});
      });
    });
  }
  Stmt stmt() const {
    TW_ICHECK(context.scratch && context.scratch->size >= 2 * points.table(), "grid_sample: scratch");
    const std::vector<int64_t> units{p.out[0], ceil_div(points.rows, points.at_once), ceil_div(width, run)};
    return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](const Index& u) {
        Stmt tables = each_vector(u[1], u[2], [&](const Index& point, const PrimExpr& slot, const PrimExpr& mask) {
          return find({u[0]}, point, slot, mask);
        });
        auto channels = [&](const PrimExpr& c, int64_t count) {
          const PrimExpr first = u[0] * data.strides[0] + c * data.strides[1] + data.offset;
          return bind("plane", first, [&](const PrimExpr& plane) {
            std::vector<PrimExpr> planes;
            for (int64_t i = 0; i < count; ++i) planes.push_back(plane + i * data.strides[1]);
            return each_vector(u[1], u[2], [&](const Index& point, const PrimExpr& slot, const PrimExpr& mask) {
              Index at{u[0], c};
              at.insert(at.end(), point.begin(), point.end());
              return gather(planes, at, slot, mask);
            });
          });
        };
        constexpr int64_t kTogether = 4;  // channels for which places and weights are read once
        std::vector<Stmt> all{tables, loop("c", p.out[1] / kTogether,
                                           [&](const PrimExpr& c) { return channels(c * kTogether, kTogether); })};
        if (const int64_t rest = p.out[1] % kTogether) all.push_back(channels(make_int(p.out[1] - rest), rest));
        return seq(std::move(all));
      });
    });
  }
};

}  // namespace

Stmt grid_sample(const GridSampleProblem& p, const View& data, const Operand& grid, const View& out,
                 const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(p.out.size() >= 3, "grid_sample: a grid has points");
  return GridKernel{p, data, grid, out, epilogue, context}.stmt();
}

DataType grid_sample_scratch_dtype(const GridSampleProblem& p) { return p.dtype == kFloat32 ? kInt32 : kInt64; }

int64_t grid_sample_scratch_bytes(const GridSampleProblem& p, const Target& target) {
  return 2 * Points(p, target).table() * p.dtype.bits / 8;
}

Cost estimate(const GridSampleProblem& p, const Target& target) {
  Cost cost;
  double taps = 1;
  for (size_t d = 2; d < p.data.size(); ++d) taps *= static_cast<double>(taps_of_axis(p.method));
  const double samples = static_cast<double>(product(p.out));
  cost.flops = 2 * taps * samples;
  cost.bytes = (samples + static_cast<double>(product(p.data))) * p.dtype.bits / 8.0;
  cost.microseconds = taps * samples * 0.15e-3;
  return cost;
}

}  // namespace tilewright::topi
