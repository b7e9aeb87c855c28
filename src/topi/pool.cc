// SPDX-License-Identifier: Apache-2.0
#include "topi/pool.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

PrimExpr lowest(DataType dtype) {
  if (dtype.is_float()) return make_const(dtype, -std::numeric_limits<double>::infinity());
  if (dtype.is_uint() || dtype.is_bool()) return make_int(0, dtype);
  return make_int(dtype.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (dtype.bits - 1)), dtype);
}

// The taps [lo, hi) of a window along one axis inside [0, extent); `counted` includes those in the padding, if the
// divisor does.
struct Window {
  PrimExpr lo, hi, counted;
};
Window clamp_window(const PrimExpr& at, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad_before,
                    int64_t pad_after, int64_t extent) {
  PrimExpr start = at * stride + (-pad_before);  // position of tap 0
  auto below = [&](int64_t bound) { return taps_below(start, bound, kernel, dilation); };
  PrimExpr lo = pad_before > 0 ? below(0) : make_int(0);
  return {lo, max(below(extent), lo), below(extent + pad_after)};
}

// The outputs [first, last) of an axis whose windows are entirely inside.
struct Interior {
  int64_t first, last;
};
Interior interior(int64_t out, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad, int64_t in) {
  int64_t first = std::min(out, ceil_div(pad, stride));
  int64_t room = in + pad - (kernel - 1) * dilation - 1;  // the largest start offset that stays inside
  int64_t last = room < 0 ? first : std::min(out, room / stride + 1);
  return {first, std::max(first, last)};
}

Stmt bind_window(const std::string& name, const Window& window, const std::function<Stmt(Window)>& body) {
  return bind((name + "_lo").c_str(), window.lo, [&](PrimExpr lo) {
    return bind((name + "_hi").c_str(), window.hi, [&](PrimExpr hi) { return body({lo, hi, window.counted}); });
  });
}

class Pool {
 public:
  Pool(const PoolProblem& p, const View& data, const View& out, const Epilogue& epilogue, bool blocked, int lanes)
      : p_(p),
        data_(data),
        out_(out),
        epilogue_(epilogue),
        blocked_(blocked),
        volume_(data.rank() == (blocked ? 6 : 5)),
        depth_stride_(volume_ ? data.strides[2] : 0),
        height_stride_(data.strides[volume_ ? 3 : 2]),
        width_stride_(data.strides[volume_ ? 4 : 3]),
        lanes_(lanes),
        acc_type_(p.kind == PoolKind::kMax ? data.dtype() : accumulator_dtype(data.dtype())) {}

  Stmt row(const PrimExpr& n, const PrimExpr& c, const PrimExpr& d, const PrimExpr& h) const {
    Window planes =
        clamp_window(d, p_.stride_depth, p_.kernel_depth, p_.dilation_depth, p_.pad_front, p_.pad_back, p_.in_depth);
    Window rows = clamp_window(h, p_.stride_height, p_.kernel_height, p_.dilation_height, p_.pad_top, p_.pad_bottom,
                               p_.in_height);
    Interior middle =
        interior(p_.out_width, p_.stride_width, p_.kernel_width, p_.dilation_width, p_.pad_left, p_.in_width);
    PrimExpr data_row = n * data_.strides[0] + c * data_.strides[1] + data_.offset +
                        (d * p_.stride_depth + (-p_.pad_front)) * depth_stride_ +
                        (h * p_.stride_height + (-p_.pad_top)) * height_stride_;
    return bind_window("kd", planes, [&](Window planes) {
      return bind_window("kh", rows, [&](Window rows) {
        return bind("data_row", data_row, [&](PrimExpr data_row) {
          Place place{n, c, d, h, planes, rows, data_row};
          if (!blocked_ && lanes_ > 1 && p_.stride_width == 1 && p_.kernel_width <= 16) return sliding_row(place);
          std::vector<Stmt> body;
          if (middle.first > 0) body.push_back(border(place, 0, middle.first));
          body.push_back(inner(place, middle));
          if (middle.last < p_.out_width) body.push_back(border(place, middle.last, p_.out_width));
          return seq(std::move(body));
        });
      });
    });
  }

 private:
  struct Place {
    PrimExpr n, c, d, h;
    Window planes, rows;
    PrimExpr data_row;
  };

  // A row with stride 1, a few vectors at a time: each column is combined down the window's rows once, then the
  // windows' columns by shifts in registers.
  Stmt sliding_row(const Place& place) const {
    const int64_t reach = (p_.kernel_width - 1) * p_.dilation_width, vectors = ceil_div(p_.out_width, lanes_);
    const int64_t most = lanes_ * acc_type_.bits >= 512 ? 8 : 4, group = std::min(vectors, most);
    auto whole = [&](int64_t k) {  // no column of group k is outside
      const int64_t first = k * group * lanes_ - p_.pad_left;
      return first >= 0 && first + round_up(group * lanes_ + reach, lanes_) <= p_.in_width &&
             (k + 1) * group * lanes_ <= p_.out_width;
    };
    const int64_t groups = ceil_div(vectors, group);
    std::vector<Stmt> body;
    for (int64_t k = 0; k < groups; ++k) {
      int64_t end = k;
      while (end < groups && whole(end)) ++end;
      if (end > k) {
        body.push_back(loop("g", make_int(k), make_int(end),
                            [&](const PrimExpr& g) { return windows(place, g * (group * lanes_), {}, group); }));
        k = end - 1;
      } else {
        const int64_t first = k * group;
        body.push_back(windows(place, make_int(first * lanes_), first * lanes_, std::min(group, vectors - first)));
      }
    }
    return seq(std::move(body));
  }

  // `count` vectors of outputs from column w on. `fixed`: w, where windows may extend past the row.
  Stmt windows(const Place& place, const PrimExpr& w, std::optional<int64_t> fixed, int64_t count) const {
    const DataType vector = acc_type_.with_lanes(lanes_);
    const bool largest = p_.kind == PoolKind::kMax;
    const PrimExpr neutral = largest ? lowest(vector) : make_const(vector, 0);
    auto both = [&](const PrimExpr& a, const PrimExpr& b) { return largest ? max(a, b) : a + b; };
    const int64_t reach = (p_.kernel_width - 1) * p_.dilation_width, all = count + ceil_div(reach, lanes_);
    const Buffer columns = make_buffer("columns", vector, all, Scope::kRegister);
    std::vector<Stmt> body;
    for (int64_t i = 0; i < all; ++i) body.push_back(store(columns, make_int(i), neutral));
    const PrimExpr start = place.data_row + (w - p_.pad_left) * width_stride_;
    body.push_back(over_rows(place, start, [&](const PrimExpr& at) {
      std::vector<Stmt> steps;
      for (int64_t i = 0; i < all; ++i) {
        PrimExpr real;
        if (fixed) {
          const int64_t first = *fixed - p_.pad_left + i * lanes_;
          const PrimExpr column = ramp(make_int(first), 1, lanes_);
          if (first + lanes_ <= 0 || first >= p_.in_width) continue;
          if (first < 0) real = le(broadcast(make_int(0), lanes_), column);
          if (first + lanes_ > p_.in_width) {
            const PrimExpr before_end = lt(column, broadcast(make_int(p_.in_width), lanes_));
            real = real ? logical_and(real, before_end) : before_end;
          }
        }
        PrimExpr value = load(data_.buffer, ramp(at + i * lanes_ * width_stride_, 1, lanes_), real);
        if (value->dtype != vector) value = cast(vector, value);
        if (largest && real) value = select(real, value, neutral);
        steps.push_back(store(columns, make_int(i), both(load(columns, make_int(i)), value)));
      }
      return seq(std::move(steps));
    }));
    for (int64_t i = 0; i < count; ++i) {
      PrimExpr value;
      for (int64_t k = 0; k < p_.kernel_width; ++k) {
        const int64_t shift = k * p_.dilation_width, from = i + shift / lanes_, rest = shift % lanes_;
        PrimExpr tap = load(columns, make_int(from));
        if (rest > 0) {
          std::vector<int> pick(static_cast<size_t>(lanes_));
          std::iota(pick.begin(), pick.end(), static_cast<int>(rest));
          tap = shuffle({tap, load(columns, make_int(from + 1))}, pick);
        }
        value = value ? both(value, tap) : tap;
      }
      const PrimExpr mask = fixed ? tail_mask(lanes_, p_.out_width - (*fixed + i * lanes_)) : PrimExpr();
      if (!largest) value = div(value, row_divisor(place, fixed ? *fixed + i * lanes_ : -1));
      const Index index = index_of(place, w + i * lanes_);
      body.push_back(out_.store(index, epilogue_(value, index, mask), mask));
    }
    return allocate(columns, seq(std::move(body)));
  }

  // What the sums of outputs from column w on are divided by; w < 0: of windows that are inside the row.
  PrimExpr row_divisor(const Place& place, int64_t w) const {
    const DataType vector = acc_type_.with_lanes(lanes_);
    std::vector<PrimExpr> counts;
    std::vector<int> order;
    bool same = true;
    for (int l = 0; l < lanes_; ++l) {
      int64_t taps = w < 0 ? p_.kernel_width : 0;
      for (int64_t k = 0; w >= 0 && k < p_.kernel_width; ++k) {
        const int64_t column = w + l - p_.pad_left + k * p_.dilation_width;
        taps += p_.count_include_pad ? column < p_.in_width + p_.pad_right : column >= 0 && column < p_.in_width;
      }
      same = same && taps == p_.kernel_width;
      counts.push_back(make_const(acc_type_, static_cast<double>(taps)));
      order.push_back(l);
    }
    const PrimExpr outer = outer_taps(place);
    if (same) return broadcast(cast(acc_type_, max(outer * p_.kernel_width, make_int(1))), lanes_);
    return max(shuffle(counts, order) * broadcast(cast(acc_type_, outer), lanes_), make_const(vector, 1));
  }

  // Calls body(address of column 0) for every row (and plane) of the windows inside the data.
  Stmt over_rows(const Place& place, const PrimExpr& from, const std::function<Stmt(PrimExpr)>& body) const {
    PrimExpr kd = make_var("kd"), kh = make_var("kh");
    PrimExpr at = from + kh * (p_.dilation_height * height_stride_);
    if (p_.kernel_depth > 1) at = at + kd * (p_.dilation_depth * depth_stride_);
    Stmt rows = make_for(kh, place.rows.lo, place.rows.hi - place.rows.lo, body(at));
    if (p_.kernel_depth == 1) return rows;
    return make_for(kd, place.planes.lo, place.planes.hi - place.planes.lo, rows);
  }
  // The number of taps, except along the row, that an average's divisor counts.
  PrimExpr outer_taps(const Place& place) const {
    PrimExpr taps = p_.count_include_pad ? place.rows.counted : place.rows.hi - place.rows.lo;
    if (p_.kernel_depth > 1)
      taps = taps * (p_.count_include_pad ? place.planes.counted : place.planes.hi - place.planes.lo);
    return taps;
  }
  Index index_of(const Place& place, const PrimExpr& w) const {
    Index index{place.n, place.c};
    if (volume_) index.push_back(place.d);
    index.insert(index.end(), {place.h, w});
    if (blocked_) index.push_back(make_int(0));
    return index;
  }

  Stmt border(const Place& place, int64_t first, int64_t last) const {
    constexpr int64_t kFew = 3;  // unrolled, so that taps are known
    if (last - first > 1 && last - first <= kFew) {
      std::vector<Stmt> columns;
      for (int64_t w = first; w < last; ++w) columns.push_back(border(place, w, w + 1));
      return seq(std::move(columns));
    }
    return loop("w", make_int(first), make_int(last), [&](PrimExpr w) {
      Window columns =
          clamp_window(w, p_.stride_width, p_.kernel_width, p_.dilation_width, p_.pad_left, p_.pad_right, p_.in_width);
      return bind_window("kw", columns,
                         [&](Window columns) { return tile(place, w, 1, blocked_ ? lanes_ : 1, {}, columns); });
    });
  }

  Stmt inner(const Place& place, Interior middle) const {
    const Window all{make_int(0), make_int(p_.kernel_width), make_int(p_.kernel_width)};
    const int64_t step = blocked_ ? 1 : lanes_;
    const int64_t pixels = middle.last - middle.first, vectors = pixels / step;
    std::vector<Stmt> body;
    int64_t wide = std::min<int64_t>(vectors, 4), done = 0;
    if (wide > 0) {
      body.push_back(loop("wt", vectors / wide, [&](PrimExpr wt) {
        return tile(place, wt * (wide * step) + middle.first, static_cast<int>(wide), lanes_, {}, all);
      }));
      done = vectors / wide * wide;
      if (vectors > done)
        body.push_back(
            tile(place, make_int(middle.first + done * step), static_cast<int>(vectors - done), lanes_, {}, all));
    }
    int64_t rest = pixels - vectors * step;
    if (rest > 0 && p_.stride_width == 1) {
      body.push_back(tile(place, make_int(middle.last - rest), 1, lanes_, tail_mask(lanes_, rest), all));
      rest = 0;
    }
    // With a stride there are no masked loads: narrower vectors finish the row.
    for (int lanes = lanes_ / 2; rest > 0; lanes /= 2)
      if (rest >= lanes) {
        body.push_back(tile(place, make_int(middle.last - rest), 1, lanes, {}, all));
        rest -= lanes;
      }
    return seq(std::move(body));
  }

  // `count` vectors of outputs from column w on.
  Stmt tile(const Place& place, const PrimExpr& w, int count, int lanes, const PrimExpr& mask,
            const Window& columns) const {
    const DataType vector = acc_type_.with_lanes(lanes);
    const int64_t step = blocked_ ? 1 : lanes;
    Buffer acc = make_buffer("acc", vector, count, Scope::kRegister);
    auto tap = [&](PrimExpr at) {
      std::vector<Stmt> uses;
      for (int i = 0; i < count; ++i) {
        PrimExpr from = at + i * step * p_.stride_width * width_stride_;
        if (lanes > 1) from = ramp(from, blocked_ ? 1 : p_.stride_width * width_stride_, lanes);
        PrimExpr value = load(data_.buffer, from, mask), old = load(acc, make_int(i));
        if (value->dtype != vector) value = cast(vector, value);
        uses.push_back(store(acc, make_int(i), p_.kind == PoolKind::kMax ? max(old, value) : old + value));
      }
      return seq(std::move(uses));
    };
    std::vector<Stmt> body;
    PrimExpr neutral = p_.kind == PoolKind::kMax ? lowest(vector) : make_const(vector, 0);
    for (int i = 0; i < count; ++i) body.push_back(store(acc, make_int(i), neutral));
    PrimExpr column = (w * p_.stride_width + (-p_.pad_left)) * width_stride_;
    body.push_back(bind("column_at", place.data_row + column, [&](PrimExpr column_at) {
      return over_rows(place, column_at, [&](const PrimExpr& at) {
        PrimExpr kw = make_var("kw");
        const int64_t* whole = constant_value(columns.hi);
        if (!constant_value(columns.lo) || !whole || *whole * count > 32)
          return make_for(kw, columns.lo, columns.hi - columns.lo, tap(at + kw * (p_.dilation_width * width_stride_)));
        std::vector<Stmt> steps;
        for (int64_t k = *constant_value(columns.lo); k < *whole; ++k)
          steps.push_back(tap(at + k * p_.dilation_width * width_stride_));
        return seq(std::move(steps));
      });
    }));
    PrimExpr divisor;
    if (p_.kind == PoolKind::kAverage) {
      PrimExpr taps = outer_taps(place) * (p_.count_include_pad ? columns.counted : columns.hi - columns.lo);
      divisor = broadcast(cast(acc_type_, max(taps, make_int(1))), lanes);
    }
    for (int i = 0; i < count; ++i) {
      const Index index = index_of(place, w + i * step);
      PrimExpr value = load(acc, make_int(i));
      if (divisor) value = div(value, divisor);
      body.push_back(out_.store(index, epilogue_(value, index, mask), mask));
    }
    return allocate(acc, seq(std::move(body)));
  }

  const PoolProblem& p_;
  const View &data_, &out_;
  const Epilogue& epilogue_;
  const bool blocked_, volume_;
  const int64_t depth_stride_, height_stride_, width_stride_;
  const int lanes_;
  const DataType acc_type_;
};

Stmt each_row(const Pool& pool, const PoolProblem& p, const View& out, const KernelContext& context) {
  const std::vector<int64_t> units{out.shape[0], out.shape[1], p.out_depth, p.out_height};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) { return pool.row(at[0], at[1], at[2], at[3]); });
  });
}

}  // namespace

Stmt pool_nchwc(const PoolProblem& p, const View& data, const View& out, const Epilogue& epilogue,
                const KernelContext& context) {
  return each_row(Pool(p, data, out, epilogue, true, static_cast<int>(out.shape.back())), p, out, context);
}

Stmt pool_nchw(const PoolProblem& p, const View& data, const View& out, const Epilogue& epilogue,
               const KernelContext& context) {
  // A stride of two is two loads and a shuffle; larger strides would need gathers, slower than scalar code.
  bool vectors = p.stride_width <= 2 && data.strides.back() == 1 && out.strides.back() == 1 && p.out_width > 1;
  int lanes = vectors ? context.target->lanes(std::max<int>(32, data.dtype().bits)) : 1;
  return each_row(Pool(p, data, out, epilogue, false, lanes), p, out, context);
}

Stmt global_pool_nchwc(PoolKind kind, const View& data, const View& out, const Epilogue& epilogue,
                       const KernelContext& context) {
  const int v = static_cast<int>(data.shape[4]);
  const int64_t height = data.shape[2], width = data.shape[3];
  const DataType vector = (kind == PoolKind::kMax ? data.dtype() : accumulator_dtype(data.dtype())).with_lanes(v);
  const bool rows_touch = data.strides[2] == width * data.strides[3];
  const int64_t rows = rows_touch ? 1 : height, columns = rows_touch ? height * width : width;
  const int wide = static_cast<int>(std::min<int64_t>(columns, 8));
  Buffer acc = make_buffer("acc", vector, wide, Scope::kRegister);
  auto combine = [&](PrimExpr a, PrimExpr b) { return kind == PoolKind::kMax ? max(a, b) : a + b; };
  auto add = [&](PrimExpr at, int count) {
    std::vector<Stmt> uses;
    for (int i = 0; i < count; ++i) {
      PrimExpr value = load(data.buffer, ramp(at + i * data.strides[3], 1, v));
      if (value->dtype != vector) value = cast(vector, value);
      uses.push_back(store(acc, make_int(i), combine(load(acc, make_int(i)), value)));
    }
    return seq(std::move(uses));
  };
  const std::vector<int64_t> units{data.shape[0], data.shape[1]};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    Index at = unravel(unit, units);
    return bind("n", at[0], [&](PrimExpr n) {
      return bind("c", at[1], [&](PrimExpr c) {
        std::vector<Stmt> body;
        PrimExpr neutral = kind == PoolKind::kMax ? lowest(vector) : make_const(vector, 0);
        for (int i = 0; i < wide; ++i) body.push_back(store(acc, make_int(i), neutral));
        PrimExpr origin = n * data.strides[0] + c * data.strides[1] + data.offset;
        body.push_back(bind("plane", origin, [&](PrimExpr plane) {
          return loop("h", rows, [&](PrimExpr h) {
            return bind("row", plane + h * data.strides[2], [&](PrimExpr row) {
              Stmt whole =
                  loop("w", columns / wide, [&](PrimExpr w) { return add(row + w * (wide * data.strides[3]), wide); });
              int64_t rest = columns % wide;
              return rest ? seq({whole, add(row + (columns - rest) * data.strides[3], static_cast<int>(rest))}) : whole;
            });
          });
        }));
        for (int half = 1; half < wide; half *= 2)
          for (int i = 0; i + half < wide; i += 2 * half)
            body.push_back(store(acc, make_int(i), combine(load(acc, make_int(i)), load(acc, make_int(i + half)))));
        PrimExpr value = load(acc, make_int(0));
        if (kind == PoolKind::kAverage) value = div(value, make_const(vector, static_cast<double>(height * width)));
        Index index{n, c, make_int(0), make_int(0), make_int(0)};
        body.push_back(out.store(index, epilogue(value, index, {})));
        return allocate(acc, seq(std::move(body)));
      });
    });
  });
}

Cost estimate(const PoolProblem& p, double planes, const Target& target) {
  Cost cost;
  double outputs = planes * p.out_depth * p.out_height * p.out_width;
  cost.flops = outputs * p.kernel_depth * p.kernel_height * p.kernel_width;
  cost.bytes = 4 * (planes * p.in_depth * p.in_height * p.in_width + outputs);
  cost.microseconds =
      std::max(cost.bytes / (target.machine.l3_gbps * 1e3), cost.flops / (target.machine.gflops * 0.3e3));
  return cost;
}

}  // namespace tilewright::topi
