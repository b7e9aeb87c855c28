// SPDX-License-Identifier: Apache-2.0
#include "topi/recurrent.h"

#include <algorithm>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Limit on stack elements for the states of a tile's samples.
constexpr int64_t kMaxStateElements = 8192;

PrimExpr number(const PrimExpr& like, double v) { return make_const(like->dtype, v); }

PrimExpr activate(const RecurrentActivation& f, const PrimExpr& x) {
  auto exp = [](const PrimExpr& e) { return intrinsic(Intrinsic::k_exp, {e}); };
  const PrimExpr zero = number(x, 0), one = number(x, 1), alpha = number(x, f.alpha), beta = number(x, f.beta);
  if (f.name == "Sigmoid") return intrinsic(Intrinsic::k_sigmoid, {x});
  if (f.name == "Tanh") return intrinsic(Intrinsic::k_tanh, {x});
  if (f.name == "Relu") return max(zero, x);
  if (f.name == "Affine") return alpha * x + beta;
  if (f.name == "LeakyRelu") return select(lt(x, zero), alpha * x, x);
  if (f.name == "ThresholdedRelu") return select(gt(x, alpha), x, zero);
  if (f.name == "ScaledTanh") return alpha * intrinsic(Intrinsic::k_tanh, {beta * x});
  if (f.name == "HardSigmoid") return min(max(alpha * x + beta, zero), one);
  if (f.name == "Elu") return select(lt(x, zero), alpha * (exp(min(x, zero)) - one), x);
  PrimExpr size = intrinsic(Intrinsic::k_fabs, {x});
  if (f.name == "Softsign") return div(x, one + size);
  return max(zero, x) + intrinsic(Intrinsic::k_log1p, {exp(zero - size)});  // Softplus
}

class Scan {
 public:
  Scan(const RecurrentProblem& p, const RecurrentConfig& c, const RecurrentOperands& o, const KernelContext& context)
      : p_(p),
        c_(c),
        o_(o),
        context_(context),
        v_(context.target->lanes(p.dtype.bits)),
        vector_(p.dtype.with_lanes(v_)),
        units_(ceil_div(p.hidden, v_)),
        groups_(units_ / c.blocks),
        padded_(units_ * v_),
        parallel_units_(p.steps == 1 && !p.two_passes() && !o.lengths.buffer) {}

  Stmt emit() {
    const int64_t row_tiles = ceil_div(p_.batch, c_.rows), tail = p_.batch % c_.rows;
    const std::vector<int64_t> units{p_.directions, row_tiles, parallel_units_ ? groups_ : 1};
    return parallel_for(context_, "unit", product(units), [&](const PrimExpr& unit) {
      return bind_all(unravel(unit, units), [&](Index at) {
        direction_ = at[0], sample_ = at[1] * int64_t{c_.rows}, group_ = at[2];
        auto samples = [&](int rows) {
          rows_ = rows;
          return p_.directions == 2 && !same_activations()
                     ? make_if(eq(direction_, make_int(0)), sequence(0), sequence(1))
                     : sequence(0);
        };
        if (tail == 0) return samples(c_.rows);
        if (row_tiles == 1) return samples(static_cast<int>(tail));
        return make_if(eq(at[1], make_int(row_tiles - 1)), samples(static_cast<int>(tail)), samples(c_.rows));
      });
    });
  }

 private:
  size_t activations_each() const {
    return p_.cell == RecurrentCell::kLstm ? 3 : p_.cell == RecurrentCell::kGru ? 2 : 1;
  }
  bool same_activations() const {
    for (size_t i = 0; i < activations_each(); ++i) {
      const auto &a = p_.activations[i], &b = p_.activations[activations_each() + i];
      if (a.name != b.name || a.alpha != b.alpha || a.beta != b.beta) return false;
    }
    return true;
  }
  bool lstm() const { return p_.cell == RecurrentCell::kLstm; }
  PrimExpr state_at(const View& view, const PrimExpr& r, const PrimExpr& unit) const {
    return direction_ * view.strides[0] + (sample_ + r) * view.strides[1] + unit + view.offset;
  }

  // All steps of rows_ samples, with the activations of direction `d`.
  Stmt sequence(int64_t d) {
    f_ = p_.activations.data() + static_cast<size_t>(d) * activations_each();
    temp_ = make_buffer("cell", vector_, 4, Scope::kRegister);
    if (parallel_units_) return allocate(temp_, step(make_int(0), make_int(0)));
    const int64_t states = rows_ * padded_;
    h_ = make_buffer("h", p_.dtype, 2 * states, Scope::kStack, 64);
    if (lstm()) cell_ = make_buffer("c", p_.dtype, states, Scope::kStack, 64);
    if (p_.two_passes()) {
      update_ = make_buffer("update", p_.dtype, states, Scope::kStack, 64);
      reset_ = make_buffer("reset", p_.dtype, states, Scope::kStack, 64);
    }
    // Copies a state between stack and tensor by vectors: f(stack index, tensor index, mask).
    auto copy = [&](const View& view, const std::function<Stmt(PrimExpr, PrimExpr, PrimExpr)>& f) {
      std::vector<Stmt> rows;
      for (int r = 0; r < rows_; ++r) {
        const int64_t whole = p_.hidden / v_;
        auto at = [&](const PrimExpr& unit, const PrimExpr& mask) {
          return f(unit + r * padded_, state_at(view, make_int(r), unit), mask);
        };
        if (whole) rows.push_back(loop("unit", whole, [&](const PrimExpr& u) { return at(u * int64_t{v_}, {}); }));
        if (p_.hidden % v_) rows.push_back(at(make_int(whole * v_), tail_mask(v_, p_.hidden % v_)));
      }
      return seq(std::move(rows));
    };
    auto read = [&](const View& from, const Buffer& to) {
      return copy(from, [&](const PrimExpr& stack, const PrimExpr& at, const PrimExpr& mask) {
        return store(to, ramp(stack, 1, v_), load(from.buffer, ramp(at, 1, v_), mask));
      });
    };
    auto write = [&](const Buffer& from, const PrimExpr& offset, const View& to) {
      return copy(to, [&](const PrimExpr& stack, const PrimExpr& at, const PrimExpr& mask) {
        return store(to.buffer, ramp(at, 1, v_), load(from, ramp(stack + offset, 1, v_)), mask);
      });
    };
    std::vector<Stmt> body{read(o_.h0, h_)};
    if (lstm()) body.push_back(read(o_.c0, cell_));
    auto steps = [&](const PrimExpr& count) {
      return seq({loop("s", make_int(0), count,
                       [&](const PrimExpr& s) {
                         PrimExpr last = count - 1 - s, t = p_.directions == 2 ? s + direction_ * (last - s)
                                                            : p_.reverse       ? last
                                                                               : s;
                         return bind("t", t, [&](const PrimExpr& time) { return step(s, time); });
                       }),
                  write(h_, floormod(count, 2) * states, o_.yh), lstm() ? write(cell_, make_int(0), o_.yc) : seq({})});
    };
    if (!o_.lengths.buffer) {
      body.push_back(steps(make_int(p_.steps)));
    } else {
      PrimExpr given = load(o_.lengths.buffer, sample_ * o_.lengths.strides[0] + o_.lengths.offset);
      body.push_back(
          bind("length", max(min(cast(kInt64, given), make_int(p_.steps)), make_int(0)), [&](const PrimExpr& length) {
            return seq(
                {steps(length), loop("t", length, make_int(p_.steps), [&](const PrimExpr& t) {
                   return along_row(v_, p_.hidden, 1, [&](const PrimExpr& unit, int lanes, const PrimExpr& mask) {
                     return o_.y.store({t, direction_, sample_, unit}, make_const(p_.dtype.with_lanes(lanes), 0), mask);
                   });
                 })});
          }));
    }
    Stmt all = allocate(temp_, allocate(h_, seq(std::move(body))));
    if (lstm()) all = allocate(cell_, all);
    if (p_.two_passes()) all = allocate(update_, allocate(reset_, all));
    return all;
  }

  // Iteration s, at time step t.
  Stmt step(const PrimExpr& s, const PrimExpr& t) {
    const int64_t states = rows_ * padded_;
    return bind("now", floormod(s, 2) * states, [&](const PrimExpr& now) {
      now_ = now, next_ = make_int(states) - now, time_ = t;
      return bind("gates_at",
                  t * o_.gates.strides[0] + sample_ * o_.gates.strides[1] + direction_ * (p_.gates() * p_.hidden) +
                      o_.gates.offset,
                  [&](const PrimExpr& at) {
                    gates_at_ = at;
                    if (!p_.two_passes()) return pass(0, static_cast<int>(p_.gates()));
                    return seq({pass(0, 2), pass(2, 1)});
                  });
    });
  }

  // `count` gates from `first` on for all units (or this thread's group of units).
  Stmt pass(int64_t first, int count) {
    auto group = [&](const PrimExpr& g) {
      return bind("group", g, [&](const PrimExpr& at) { return tile(at, first, count); });
    };
    return parallel_units_ ? group(group_) : loop("g", groups_, group);
  }

  Stmt tile(const PrimExpr& group, int64_t first, int count) {
    const int cols = count * c_.blocks;
    const int64_t row_width = int64_t{cols} * v_, per_direction = p_.gates() * padded_ * p_.hidden;
    RegisterTile acc(rows_, cols, vector_);
    PrimExpr origin =
        direction_ * per_direction + group * (p_.hidden * row_width) + (first * padded_ * p_.hidden + o_.r.offset);
    return bind("r_at", origin, [&](const PrimExpr& r_at) {
      auto product_step = [&](const PrimExpr& k, int u) {
        return acc.step(
            [&](int r) {
              if (parallel_units_) return load(o_.h0.buffer, state_at(o_.h0, make_int(r), k + u));
              if (first == 2) return load(reset_, k + (r * padded_ + u));
              return load(h_, now_ + k + (r * padded_ + u));
            },
            [&](int c) {
              if (p_.packed)
                return load(o_.r.buffer, ramp(r_at + k * row_width + (u * row_width + int64_t{c} * v_), 1, v_));
              const int block = c % c_.blocks;
              PrimExpr unit = group * (int64_t{c_.blocks} * v_) + int64_t{block} * v_;
              PrimExpr row = direction_ * (p_.gates() * p_.hidden) + unit + (first + c / c_.blocks) * p_.hidden;
              return load(o_.r.buffer, ramp(row * p_.hidden + k + (u + o_.r.offset), p_.hidden, v_),
                          unit_mask(block, unit));
            });
      };
      const int unroll = static_cast<int>(std::min<int64_t>(p_.hidden, cols * rows_ >= 8 ? 4 : 8));
      // A single step may be one of many that read the same weights: only those that no cache keeps come from memory.
      const bool prefetches =
          p_.packed && p_.steps == 1 &&
          p_.directions * per_direction * p_.dtype.bits / 8 > context_.target->machine.most_cached(false);
      std::vector<Stmt> body{acc.clear(), loop("k", p_.hidden / unroll, [&](const PrimExpr& k) {
                               std::vector<Stmt> steps;
                               for (int u = 0; u < unroll; ++u) {
                                 if (prefetches)
                                   prefetch_ahead(&steps, o_.r.buffer, r_at + k * (unroll * row_width), u * row_width,
                                                  row_width, kPrefetchBytesFewRows);
                                 steps.push_back(product_step(k * int64_t{unroll}, u));
                               }
                               return seq(std::move(steps));
                             })};
      for (int64_t k = p_.hidden / unroll * unroll; k < p_.hidden; ++k) body.push_back(product_step(make_int(k), 0));
      std::vector<PrimExpr> sums;
      acc.drain([&](int, int, PrimExpr value) {
        sums.push_back(std::move(value));
        return seq({});
      });
      for (int r = 0; r < rows_; ++r)
        for (int b = 0; b < c_.blocks; ++b) {
          auto sum = [&](int gate) { return sums[static_cast<size_t>(r * cols + gate * c_.blocks + b)]; };
          PrimExpr unit = group * (int64_t{c_.blocks} * v_) + int64_t{b} * v_;
          body.push_back(bind("unit", unit, [&](const PrimExpr& u) { return cell(r, b, u, first, sum); }));
        }
      return acc.scope(seq(std::move(body)));
    });
  }

  // The valid lanes from `unit` on, for block b of a group.
  PrimExpr unit_mask(int b, const PrimExpr& unit) const {
    return p_.hidden % v_ && b == c_.blocks - 1
               ? lt(ramp(make_int(0), 1, v_), broadcast(make_int(p_.hidden) - unit, v_))
               : PrimExpr();
  }

  // Computes `v_` units of sample r from the gate sums.
  Stmt cell(int r, int b, const PrimExpr& unit, int64_t first, const std::function<PrimExpr(int)>& sum) {
    const PrimExpr mask = unit_mask(b, unit);
    const PrimExpr row = make_int(r), stack = ramp(unit + r * padded_, 1, v_);
    auto input = [&](int64_t gate) {
      return load(o_.gates.buffer, ramp(gates_at_ + unit + (r * o_.gates.strides[1] + gate * p_.hidden), 1, v_), mask);
    };
    auto clipped = [&](const PrimExpr& x) {
      return p_.clip > 0 ? min(max(x, number(x, -p_.clip)), number(x, p_.clip)) : x;
    };
    auto act = [&](int which, const PrimExpr& x) { return activate(f_[which], clipped(x)); };
    auto temp = [&](int i) { return load(temp_, make_int(i)); };
    auto keep = [&](int i, const PrimExpr& value) { return store(temp_, make_int(i), value); };
    auto vector_of = [&](const View& view, int64_t part) {
      return load(view.buffer, ramp(direction_ * view.strides[0] + unit + (part * p_.hidden + view.offset), 1, v_),
                  mask);
    };
    auto old_h = [&] {
      return parallel_units_ ? load(o_.h0.buffer, ramp(state_at(o_.h0, row, unit), 1, v_), mask)
                             : load(h_, ramp(now_ + unit + r * padded_, 1, v_));
    };
    // Stores the new state for the next step and the results.
    auto done = [&](const PrimExpr& h) {
      std::vector<Stmt> body{keep(3, h)};
      body.push_back(o_.y.store({time_, direction_, sample_ + r, unit}, temp(3), mask));
      if (parallel_units_)
        body.push_back(store(o_.yh.buffer, ramp(state_at(o_.yh, row, unit), 1, v_), temp(3), mask));
      else
        body.push_back(store(h_, ramp(next_ + unit + r * padded_, 1, v_), temp(3)));
      return seq(std::move(body));
    };
    switch (p_.cell) {
      case RecurrentCell::kRnn:
        return done(act(0, sum(0) + input(0)));
      case RecurrentCell::kLstm: {
        // i o f c
        PrimExpr old_c =
            parallel_units_ ? load(o_.c0.buffer, ramp(state_at(o_.c0, row, unit), 1, v_), mask) : load(cell_, stack);
        auto peep = [&](int64_t part, const PrimExpr& x, const PrimExpr& c) {
          return o_.peephole.buffer ? fma(vector_of(o_.peephole, part), c, x) : x;
        };
        std::vector<Stmt> body{keep(0, act(0, peep(0, sum(0) + input(0), old_c)))};
        body.push_back(
            keep(1, p_.input_forget ? number(temp(0), 1) - temp(0) : act(0, peep(2, sum(2) + input(2), old_c))));
        body.push_back(keep(2, temp(1) * old_c + temp(0) * act(1, sum(3) + input(3))));
        body.push_back(parallel_units_ ? store(o_.yc.buffer, ramp(state_at(o_.yc, row, unit), 1, v_), temp(2), mask)
                                       : store(cell_, stack, temp(2)));
        body.push_back(done(act(0, peep(1, sum(1) + input(1), temp(2))) * activate(f_[2], temp(2))));
        return seq(std::move(body));
      }
      case RecurrentCell::kGru: {
        // z r h
        auto mix = [&](const PrimExpr& z, const PrimExpr& candidate) {
          return seq({keep(1, candidate), done(fma(z, old_h() - temp(1), temp(1)))});
        };
        if (first == 2) return mix(load(update_, stack), act(1, sum(0) + input(2)));
        if (p_.two_passes())
          return seq({store(update_, stack, act(0, sum(0) + input(0))),
                      store(reset_, stack, act(0, sum(1) + input(1)) * old_h())});
        std::vector<Stmt> body{keep(0, act(0, sum(0) + input(0))), keep(2, act(0, sum(1) + input(1)))};
        body.push_back(mix(temp(0), act(1, fma(temp(2), sum(2) + vector_of(o_.bias, 0), input(2)))));
        return seq(std::move(body));
      }
    }
    return {};
  }

  const RecurrentProblem& p_;
  const RecurrentConfig& c_;
  const RecurrentOperands& o_;
  const KernelContext& context_;
  const int v_;
  const DataType vector_;
  const int64_t units_, groups_, padded_;
  const bool parallel_units_;
  int rows_ = 1;
  const RecurrentActivation* f_ = nullptr;
  PrimExpr direction_, sample_, group_, now_, next_, time_, gates_at_;
  Buffer h_, cell_, update_, reset_, temp_;
};

}  // namespace

bool has_recurrent_activation(const std::string& name) {
  for (const char* known : {"Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                            "HardSigmoid", "Elu", "Softsign", "Softplus"})
    if (name == known) return true;
  return false;
}

std::vector<RecurrentConfig> configs(const RecurrentProblem& p, const Target& target, size_t most) {
  const int64_t units = ceil_div(p.hidden, target.lanes(p.dtype.bits));
  RecurrentConfig best;
  int64_t work = 0;
  std::vector<Weighed<RecurrentConfig>> all;
  // As many independent sums as possible: they hide latencies, and samples share each weight vector.
  for (int rows = 1; rows <= std::min<int64_t>(p.batch, 4); ++rows)
    for (int blocks = 1; blocks <= units; ++blocks) {
      const int cols = static_cast<int>(p.gates()) * blocks;
      if (units % blocks || cols > 8 || !tile_fits(rows, cols, target)) continue;
      if (rows > 1 && rows * units * target.lanes(p.dtype.bits) > kMaxStateElements) continue;
      const int64_t size = int64_t{rows} * 100 + rows * cols;
      if (size > work) best = {rows, blocks}, work = size;
      all.emplace_back(-static_cast<double>(size), RecurrentConfig{rows, blocks});
    }
  return best_of(best, std::move(all), most);
}

RecurrentConfig default_config(const RecurrentProblem& p, const Target& target) { return configs(p, target, 1)[0]; }

Cost estimate(const RecurrentProblem& p, const Target& target) {
  Cost cost;
  const double weights = static_cast<double>(p.gates()) * p.hidden * p.hidden,
               cells = static_cast<double>(p.directions) * p.batch * p.steps;
  cost.flops = cells * (2 * weights + 30.0 * p.hidden);
  cost.bytes = p.directions * weights * 4 + cells * p.hidden * 4 * (p.gates() + 1);
  const int rows = default_config(p, target).rows;
  const double bytes_per_us = (weights * 4 <= target.machine.l1_bytes * 0.7 ? 150
                               : weights * 4 <= target.machine.l2_bytes     ? target.machine.l2_gbps
                                                                            : target.machine.l2_gbps * 0.6) *
                              1e3;
  cost.microseconds =
      cells * (std::max(2 * weights / (target.machine.gflops * 1e3), weights * 4 / rows / bytes_per_us) +
               0.01 * p.hidden / target.lanes(p.dtype.bits) * 3);
  return cost;
}

namespace {
template <class T>
Tensor packed_recurrent(const Tensor& r, const RecurrentProblem& p, const RecurrentConfig& c, int lanes) {
  const int64_t units = ceil_div(p.hidden, lanes), groups = units / c.blocks, gates = p.gates(), hidden = p.hidden;
  Tensor packed = Tensor::zeros(p.dtype, {p.directions * gates * units * lanes * hidden});
  const T* from = reinterpret_cast<const T*>(r.raw());
  T* to = reinterpret_cast<T*>(packed.mutable_raw());
  const std::vector<std::pair<int64_t, int64_t>> passes = p.two_passes()
                                                              ? std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 1}}
                                                              : std::vector<std::pair<int64_t, int64_t>>{{0, gates}};
  for (int64_t d = 0; d < p.directions; ++d)
    for (auto [first, count] : passes)
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t k = 0; k < hidden; ++k)
          for (int64_t gate = first; gate < first + count; ++gate)
            for (int64_t i = 0; i < int64_t{c.blocks} * lanes; ++i, ++to)
              if (int64_t unit = g * c.blocks * lanes + i; unit < hidden)
                *to = from[((d * gates + gate) * hidden + unit) * hidden + k];
  return packed;
}
}  // namespace

Tensor pack_recurrent(const Tensor& r, const RecurrentProblem& p, const RecurrentConfig& c, int lanes) {
  return p.dtype == kFloat64 ? packed_recurrent<double>(r, p, c, lanes) : packed_recurrent<float>(r, p, c, lanes);
}

Stmt recurrent(const RecurrentProblem& p, const RecurrentConfig& c, const RecurrentOperands& operands,
               const KernelContext& context) {
  return Scan(p, c, operands, context).emit();
}

}  // namespace tilewright::topi
