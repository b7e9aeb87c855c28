// SPDX-License-Identifier: Apache-2.0
#include "topi/attention.h"

#include <algorithm>
#include <limits>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"
#include "topi/transpose.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int64_t kMaxKeys = 384, kBlockKeys = 256;

// Rows of a register tile with `cols` vectors, for `rows` rows and `steps` steps: the fastest, remainder included.
int pick_rows(int64_t rows, int cols, int64_t steps, int limit, const Target& target) {
  int best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int mr = 1; mr <= std::min<int64_t>(rows, limit) && tile_fits(mr, cols, target); ++mr) {
    auto cycles = [&](int64_t r) {
      return tile_cycles(static_cast<int>(r), cols, static_cast<double>(steps), 0, target);
    };
    double all = static_cast<double>(rows / mr) * cycles(mr) + (rows % mr ? cycles(rows % mr) : 0);
    if (all < least * 0.999) best = mr, least = all;
  }
  return best;
}

// One block of queries: `cols` vectors, the last with `real` valid lanes.
class Block {
 public:
  Block(const AttentionProblem& p, const View& q, const View& k, const View& v, const View& mask, const View& out,
        const Epilogue& epilogue, const Target& target, int cols, int real)
      : p_(p),
        q_(q),
        k_(k),
        v_(v),
        mask_(mask),
        out_(out),
        epilogue_(epilogue),
        target_(target),
        cols_(cols),
        real_(real),
        lanes_(target.lanes(32)),
        width_(int64_t{cols} * lanes_),
        vector_(kFloat32.with_lanes(lanes_)),
        flash_(p.keys > kMaxKeys),
        block_(flash_ ? kBlockKeys : p.keys),
        queries_(make_buffer("queries", kFloat32, p.size * width_, Scope::kStack, 64)),
        scores_(make_buffer("scores", kFloat32, block_ * width_, Scope::kStack, 64)),
        sums_(make_buffer("values", kFloat32, p.value_size * width_, Scope::kStack, 64)),
        top_(make_buffer("top", vector_, cols, Scope::kRegister)),
        fresh_(make_buffer("fresh", vector_, cols, Scope::kRegister)),
        total_(make_buffer("total", vector_, cols, Scope::kRegister)),
        factor_(make_buffer("factor", vector_, cols, Scope::kRegister)),
        share_(make_buffer("share", vector_, 1, Scope::kRegister)) {}

  Stmt emit(PrimExpr batch, PrimExpr head, PrimExpr first) {
    batch_ = std::move(batch), head_ = std::move(head), first_ = std::move(first);
    std::vector<Stmt> body{transpose_queries()};
    for (int c = 0; c < cols_; ++c) {
      body.push_back(store(top_, make_int(c), make_const(vector_, -std::numeric_limits<float>::max())));
      body.push_back(store(total_, make_int(c), make_const(vector_, 0)));
    }
    PrimExpr kv_head = p_.group == 1 ? head_ : floordiv(head_, p_.group);
    Stmt work = bind("key_at", batch_ * k_.strides[0] + kv_head * k_.strides[1] + k_.offset, [&](PrimExpr key_at) {
      return bind("value_at", batch_ * v_.strides[0] + kv_head * v_.strides[1] + v_.offset, [&](PrimExpr value_at) {
        key_at_ = key_at, value_at_ = value_at;
        if (!flash_) return keys(make_int(0), p_.keys);
        std::vector<Stmt> blocks;
        blocks.push_back(loop("d", p_.value_size * cols_, [&](PrimExpr d) {
          return store(sums_, ramp(d * int64_t{lanes_}, 1, lanes_), make_const(vector_, 0));
        }));
        blocks.push_back(loop("block", p_.keys / block_, [&](PrimExpr b) {
          return bind("k0", b * block_, [&](PrimExpr k0) { return keys(k0, block_); });
        }));
        if (p_.keys % block_) blocks.push_back(keys(make_int(p_.keys / block_ * block_), p_.keys % block_));
        return seq(std::move(blocks));
      });
    });
    body.push_back(work);
    body.push_back(store_rows());
    Stmt all = seq(std::move(body));
    for (const Buffer& b : {queries_, scores_, sums_, top_, fresh_, total_, factor_, share_}) all = allocate(b, all);
    return all;
  }

 private:
  PrimExpr at(const PrimExpr& row, int col) const { return ramp(row * width_ + int64_t{col} * lanes_, 1, lanes_); }
  bool mask_per_query() const { return mask_.buffer && mask_.shape[2] > 1; }
  PrimExpr mask_at(const PrimExpr& query, const PrimExpr& key) const {
    auto part = [&](size_t d, const PrimExpr& i) { return mask_.shape[d] == 1 ? make_int(0) : i * mask_.strides[d]; };
    return part(0, batch_) + part(1, head_) + part(2, query) + part(3, key) + mask_.offset;
  }

  // queries[d][lane] = scale * query[lane][d]. Lanes past the end repeat the last query, so that they stay finite; they
  // are never stored.
  Stmt transpose_queries() const {
    std::vector<Stmt> body;
    auto source = [&](int col, int r) {
      int lane = col == cols_ - 1 ? std::min(r, real_ - 1) : r;
      return batch_ * q_.strides[0] + head_ * q_.strides[1] +
             (first_ + (int64_t{col} * lanes_ + lane)) * q_.strides[2] + q_.offset;
    };
    const PrimExpr scale = make_const(vector_, p_.scale);
    for (int c = 0; c < cols_; ++c) {
      auto turn = [&](const PrimExpr& d0, int64_t real) {
        return transpose_tile(
            kFloat32, lanes_,
            [&](int r) { return load(q_.buffer, ramp(source(c, r) + d0, 1, lanes_), tail_mask(lanes_, real)); },
            [&](int i, PrimExpr value) { return i < real ? store(queries_, at(d0 + i, c), value * scale) : seq({}); });
      };
      if (p_.size >= lanes_)
        body.push_back(loop("d", p_.size / lanes_, [&](PrimExpr d) { return turn(d * int64_t{lanes_}, lanes_); }));
      if (p_.size % lanes_) body.push_back(turn(make_int(p_.size / lanes_ * lanes_), p_.size % lanes_));
    }
    return seq(std::move(body));
  }

  // Adds the contribution of `count` keys from k0 on.
  Stmt keys(const PrimExpr& k0, int64_t count) {
    std::vector<Stmt> body;
    for (int c = 0; c < cols_; ++c) body.push_back(store(fresh_, make_int(c), load(top_, make_int(c))));
    body.push_back(score(k0, count));
    if (mask_per_query()) body.push_back(add_mask(k0, count));
    for (int c = 0; c < cols_; ++c) {
      if (flash_) {
        // Rescales earlier sums to the new maximum.
        body.push_back(
            store(factor_, make_int(c),
                  intrinsic(Intrinsic::k_exp_nonpositive, {load(top_, make_int(c)) - load(fresh_, make_int(c))})));
        body.push_back(store(total_, make_int(c), load(total_, make_int(c)) * load(factor_, make_int(c))));
      }
      body.push_back(store(top_, make_int(c), load(fresh_, make_int(c))));
    }
    body.push_back(loop("key", count, [&](PrimExpr key) {
      std::vector<Stmt> step;
      for (int c = 0; c < cols_; ++c) {
        step.push_back(
            store(share_, make_int(0),
                  intrinsic(Intrinsic::k_exp_nonpositive, {load(scores_, at(key, c)) - load(top_, make_int(c))})));
        step.push_back(store(scores_, at(key, c), load(share_, make_int(0))));
        step.push_back(store(total_, make_int(c), load(total_, make_int(c)) + load(share_, make_int(0))));
      }
      return seq(std::move(step));
    }));
    if (!flash_)
      for (int c = 0; c < cols_; ++c)
        body.push_back(store(factor_, make_int(c), div(make_const(vector_, 1), load(total_, make_int(c)))));
    body.push_back(mix(k0, count));
    return seq(std::move(body));
  }

  // Computes scores[key][lane] and their maximum, from k0 on.
  Stmt score(const PrimExpr& k0, int64_t count) const {
    const int limit = k_.strides[2] * 4 % 4096 == 0 ? 8 : 16, rows = pick_rows(count, cols_, p_.size, limit, target_);
    auto tile = [&](const PrimExpr& key, int rows_here) {
      RegisterTile acc(rows_here, cols_, vector_);
      return bind("at", key_at_ + (k0 + key) * k_.strides[2], [&](PrimExpr from) {
        auto step = [&](const PrimExpr& d, int u) {
          return acc.step(
              [&](int r) {
                return load(k_.buffer, from + d * k_.strides[3] + (r * k_.strides[2] + u * k_.strides[3]));
              },
              [&](int c) { return load(queries_, at(d + u, c)); });
        };
        return acc.scope(seq(
            {acc.clear(), reduction(p_.size, step), acc.drain([&](int r, int c, PrimExpr value) {
               PrimExpr row = key + r;
               if (mask_.buffer && !mask_per_query())
                 value = value + broadcast(load(mask_.buffer, mask_at(first_, k0 + row)), lanes_);
               Stmt put =
                   seq({store(share_, make_int(0), value), store(scores_, at(row, c), load(share_, make_int(0)))});
               if (mask_per_query()) return put;
               return seq({put, store(fresh_, make_int(c), max(load(share_, make_int(0)), load(fresh_, make_int(c))))});
             })}));
      });
    };
    return tiles(count, rows, tile);
  }

  // A mask with one row per query is loaded across the lanes.
  Stmt add_mask(const PrimExpr& k0, int64_t count) const {
    std::vector<Stmt> body;
    for (int c = 0; c < cols_; ++c) {
      auto turn = [&](const PrimExpr& key, int64_t real) {
        return transpose_tile(
            kFloat32, lanes_,
            [&](int r) {
              int lane = c == cols_ - 1 ? std::min(r, real_ - 1) : r;
              PrimExpr query = first_ + (int64_t{c} * lanes_ + lane);
              if (mask_.shape[3] == 1) return broadcast(load(mask_.buffer, mask_at(query, make_int(0))), lanes_);
              return load(mask_.buffer, ramp(mask_at(query, k0 + key), 1, lanes_), tail_mask(lanes_, real));
            },
            [&](int i, PrimExpr value) {
              if (i >= real) return seq({});
              return seq({store(share_, make_int(0), load(scores_, at(key + i, c)) + value),
                          store(scores_, at(key + i, c), load(share_, make_int(0))),
                          store(fresh_, make_int(c), max(load(share_, make_int(0)), load(fresh_, make_int(c))))});
            });
      };
      if (count >= lanes_)
        body.push_back(loop("key", count / lanes_, [&](PrimExpr k) { return turn(k * int64_t{lanes_}, lanes_); }));
      if (count % lanes_) body.push_back(turn(make_int(count / lanes_ * lanes_), count % lanes_));
    }
    return seq(std::move(body));
  }

  // values[d][lane] = or += softmax weights times the values of these keys.
  Stmt mix(const PrimExpr& k0, int64_t count) const {
    const int rows = pick_rows(p_.value_size, cols_, count, 16, target_);
    auto tile = [&](const PrimExpr& d0, int rows_here) {
      RegisterTile acc(rows_here, cols_, vector_);
      return bind("at", value_at_ + k0 * v_.strides[2] + d0 * v_.strides[3], [&](PrimExpr from) {
        auto step = [&](const PrimExpr& key, int u) {
          return acc.step(
              [&](int r) {
                return load(v_.buffer, from + key * v_.strides[2] + (r * v_.strides[3] + u * v_.strides[2]));
              },
              [&](int c) { return load(scores_, at(key + u, c)); });
        };
        return acc.scope(seq({acc.clear(), reduction(count, step), acc.drain([&](int r, int c, PrimExpr value) {
                                PrimExpr factor = load(factor_, make_int(c));
                                value = flash_ ? fma(load(sums_, at(d0 + r, c)), factor, value) : value * factor;
                                return store(sums_, at(d0 + r, c), value);
                              })}));
      });
    };
    return tiles(p_.value_size, rows, tile);
  }

  // Transposes back to one row per query.
  Stmt store_rows() const {
    std::vector<Stmt> body;
    if (flash_)
      for (int c = 0; c < cols_; ++c)
        body.push_back(store(factor_, make_int(c), div(make_const(vector_, 1), load(total_, make_int(c)))));
    for (int c = 0; c < cols_; ++c) {
      auto turn = [&](const PrimExpr& d0, int64_t real) {
        return transpose_tile(
            kFloat32, lanes_,
            [&](int r) {
              PrimExpr value = load(sums_, at(d0 + std::min<int64_t>(r, real - 1), c));
              return flash_ ? value * load(factor_, make_int(c)) : value;
            },
            [&](int lane, PrimExpr value) {
              if (c == cols_ - 1 && lane >= real_) return seq({});
              PrimExpr mask = tail_mask(lanes_, real);
              Index index{batch_, head_, first_ + (int64_t{c} * lanes_ + lane), d0};
              return out_.store(index, epilogue_(value, index, mask), mask);
            });
      };
      if (p_.value_size >= lanes_)
        body.push_back(
            loop("d", p_.value_size / lanes_, [&](PrimExpr d) { return turn(d * int64_t{lanes_}, lanes_); }));
      if (p_.value_size % lanes_)
        body.push_back(turn(make_int(p_.value_size / lanes_ * lanes_), p_.value_size % lanes_));
    }
    return seq(std::move(body));
  }

  static Stmt reduction(int64_t count, const std::function<Stmt(const PrimExpr&, int)>& step) {
    const int unroll = static_cast<int>(std::min<int64_t>(count, 4));
    std::vector<Stmt> body{loop("i", count / unroll, [&](PrimExpr i) {
      std::vector<Stmt> steps;
      for (int u = 0; u < unroll; ++u) steps.push_back(step(i * int64_t{unroll}, u));
      return seq(std::move(steps));
    })};
    for (int64_t i = count / unroll * unroll; i < count; ++i) body.push_back(step(make_int(i), 0));
    return seq(std::move(body));
  }
  static Stmt tiles(int64_t count, int rows, const std::function<Stmt(const PrimExpr&, int)>& tile) {
    std::vector<Stmt> body{loop("tile", count / rows, [&](PrimExpr t) {
      return bind("row", t * int64_t{rows}, [&](PrimExpr row) { return tile(row, rows); });
    })};
    if (count % rows) body.push_back(tile(make_int(count / rows * rows), static_cast<int>(count % rows)));
    return seq(std::move(body));
  }

  const AttentionProblem& p_;
  const View &q_, &k_, &v_, &mask_, &out_;
  const Epilogue& epilogue_;
  const Target& target_;
  const int cols_, real_, lanes_;
  const int64_t width_;
  const DataType vector_;
  const bool flash_;
  const int64_t block_;
  const Buffer queries_, scores_, sums_, top_, fresh_, total_, factor_, share_;
  PrimExpr batch_, head_, first_, key_at_, value_at_;
};

// Vectors of queries per block: with two, both operands of the products stay in registers and the scores in the L1/L2
// cache.
int block_vectors(const AttentionProblem& p, const Target& target) {
  int64_t vectors = ceil_div(p.queries, target.lanes(32));
  if (vectors == 3 && target.vector_registers >= 32) return 3;
  return static_cast<int>(std::min<int64_t>(vectors, 2));
}

}  // namespace

Stmt attention(const AttentionProblem& p, const View& query, const View& key, const View& value, const View& mask,
               const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const int lanes = context.target->lanes(32), cols = block_vectors(p, *context.target);
  const int64_t vectors = ceil_div(p.queries, lanes), blocks = ceil_div(vectors, cols);
  const int real = static_cast<int>(p.queries - (vectors - 1) * lanes),
            last = static_cast<int>(vectors - (blocks - 1) * cols);
  const std::vector<int64_t> units{p.batch, p.heads, blocks};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      auto block = [&](int cols_here, int real_here) {
        return Block(p, query, key, value, mask, out, epilogue, *context.target, cols_here, real_here)
            .emit(at[0], at[1], at[2] * (int64_t{cols} * lanes));
      };
      if (blocks == 1) return block(last, real);
      if (last == cols && real == lanes) return block(cols, lanes);
      return make_if(eq(at[2], make_int(blocks - 1)), block(last, real), block(cols, lanes));
    });
  });
}

Cost estimate(const AttentionProblem& p, const Target& target) {
  Cost cost;
  const double pairs = static_cast<double>(p.batch) * p.heads * p.queries * p.keys, lanes = target.lanes(32);
  const double padded = pairs / p.queries * round_up(p.queries, target.lanes(32));
  cost.flops = 2 * pairs * (p.size + p.value_size);
  cost.bytes = 4.0 * p.batch * p.heads *
               (p.queries * (p.size + p.value_size) + p.keys * (p.size + p.value_size) / static_cast<double>(p.group));
  const double flops_per_cycle = target.machine.flops_per_cycle(), exp_cycles = 12 * 32 / flops_per_cycle;
  cost.microseconds = (2 * padded * (p.size + p.value_size) / flops_per_cycle * 1.05 + padded / lanes * exp_cycles) /
                      target.machine.cycles_per_microsecond();
  return cost;
}

}  // namespace tilewright::topi
