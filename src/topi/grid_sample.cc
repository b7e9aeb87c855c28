// SPDX-License-Identifier: Apache-2.0
#include "topi/grid_sample.h"

#include <algorithm>

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

struct GridKernel {
  const GridSampleProblem& p;
  const View& data;
  const Operand& grid;
  const View& out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const size_t axes = p.data.size() - 2;
  const int lanes = p.out.back() < context.target->lanes(p.dtype.bits) / 2 ? 1 : context.target->lanes(p.dtype.bits);
  const int64_t each = taps_of_axis(p.method), taps = product(std::vector<int64_t>(axes, each));
  // A run of points along the last dimension, whose taps fit the L1 cache.
  const int64_t width = p.out.back(),
                run = std::min(round_up(width, lanes), round_up(std::max<int64_t>(16, 1024 / taps), lanes));
  const Buffer weights = make_buffer("weights", p.dtype, taps*run, Scope::kStack, 64),
               places = make_buffer("places", kInt64, taps*run, Scope::kStack, 64);
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
      stores.push_back(store(weights, at(slot + t * run), weight));
      stores.push_back(store(places, at(slot + t * run), place));
    }
    Stmt body = seq(std::move(stores));
    for (size_t i = lets.size(); i-- > 0;) body = let_stmt(lets[i].first, lets[i].second, body);
    return body;
  }
  // The samples of one vector of points in one channel.
  Stmt gather(const PrimExpr& plane, const Index& at, const PrimExpr& slot, const PrimExpr& mask) const {
    PrimExpr sum;
    for (int64_t t = 0; t < taps; ++t) {
      std::vector<PrimExpr> values;
      std::vector<int> order;
      for (int l = 0; l < lanes; ++l) {
        values.push_back(load(data.buffer, plane + load(places, slot + (t * run + l))));
        order.push_back(l);
      }
      PrimExpr value = lanes == 1 ? values[0] : shuffle(values, order);
      if (value->dtype != s.t) value = cast(s.t, value);
      PrimExpr weight = load(weights, lanes == 1 ? slot + t * run : ramp(slot + t * run, 1, lanes));
      PrimExpr term = select(eq(weight, s.number(0)), s.number(0), weight * value);
      sum = sum ? sum + term : term;
    }
    return out.store(at, epilogue(sum, at, mask), mask);
  }
  Stmt stmt() const {
    const int64_t runs = ceil_div(width, run);
    std::vector<int64_t> units{p.out[0]};
    units.insert(units.end(), p.out.begin() + 2, p.out.end() - 1);
    units.push_back(runs);
    const int64_t tail = width % lanes;
    Stmt body = parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
      return bind_all(unravel(unit, units), [&](Index u) {
        Index point(u.begin() + 1, u.end() - 1);
        return bind("first", u.back() * run, [&](PrimExpr first) {
          const PrimExpr vectors = runs == 1 ? make_int(width / lanes)
                                             : min(make_int(run / lanes), floordiv(make_int(width) - first, lanes));
          auto each_vector = [&](const std::function<Stmt(PrimExpr, PrimExpr)>& f) {
            Stmt all = loop("v", make_int(0), vectors, [&](PrimExpr i) { return f(i * int64_t{lanes}, {}); });
            if (tail == 0) return all;
            Stmt rest = f(make_int(width % run / lanes * lanes), tail_mask(lanes, tail));
            return seq({all, runs == 1 ? rest : make_if(eq(u.back(), make_int(runs - 1)), rest)});
          };
          Stmt taps_of_run = each_vector([&](const PrimExpr& slot, const PrimExpr& mask) {
            Index at = point;
            at.push_back(first + slot);
            return find({u[0]}, at, slot, mask);
          });
          Stmt channels = loop("c", p.out[1], [&](PrimExpr c) {
            return bind("plane", u[0] * data.strides[0] + c * data.strides[1] + data.offset, [&](PrimExpr plane) {
              return each_vector([&](const PrimExpr& slot, const PrimExpr& mask) {
                Index at{u[0], c};
                at.insert(at.end(), point.begin(), point.end());
                at.push_back(first + slot);
                return gather(plane, at, slot, mask);
              });
            });
          });
          return seq({taps_of_run, channels});
        });
      });
    });
    return allocate(weights, allocate(places, body));
  }
};

}  // namespace

Stmt grid_sample(const GridSampleProblem& p, const View& data, const Operand& grid, const View& out,
                 const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(p.out.size() >= 3, "grid_sample: a grid has points");
  return GridKernel{p, data, grid, out, epilogue, context}.stmt();
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
