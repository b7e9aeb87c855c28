// SPDX-License-Identifier: Apache-2.0
#include "topi/gemm.h"

#include <algorithm>
#include <utility>

#include "topi/gemm_plan.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"
#include "topi/transpose.h"
#include "topi/words.h"

namespace tilewright::topi {

using namespace tir;

namespace {

int64_t batch_stride(const View& view) { return view.rank() == 3 && view.shape[0] > 1 ? view.strides[0] : 0; }
int64_t row_stride(const View& view) { return view.strides[view.strides.size() - 2]; }

class GemmKernel {
 public:
  GemmKernel(const GemmProblem& problem, const GemmConfig& config, const View& a, const View& b, const View& out,
             const Epilogue& epilogue, const KernelContext& context)
      : p_(problem), c_(config), a_(a), b_(b), out_(out), epilogue_(epilogue), context_(context) {
    const Target& target = *context.target;
    v_ = lanes_of(p_, target);
    dots_ = columns_of_dots(p_, c_, target), columns_ = p_.n - dots_;
    width_ = int64_t{v_} * panel_vectors(p_, c_), panels_ = ceil_div(columns_, width_);
    last_ = columns_ - (panels_ - 1) * width_;
    vector_ = accumulator_dtype(a.dtype()).with_lanes(v_);
    packed_ = p_.b == MatrixB::kPacked, transposed_ = p_.b == MatrixB::kTransposed;
    a_batch_ = batch_stride(a), a_row_ = row_stride(a);
    b_batch_ = packed_ ? 0 : batch_stride(b);
    out_batch_ = out.rank() == 3 ? out.strides[0] : 0, out_row_ = row_stride(out);
    copied_ = copies_panels(p_, c_, row_stride(b), target);
    const bool in_scratch = transposed_ || copied_;
    if (in_scratch) scratch_ = make_buffer("panel", b.dtype(), p_.k * width_, Scope::kStack, 64);
    panel_ = in_scratch ? scratch_ : b.buffer;
    b_k_ = packed_ || in_scratch ? width_ : row_stride(b);
    unroll_ = static_cast<int>(std::min<int64_t>(c_.k_unroll, p_.k));
    element_ = static_cast<int64_t>(p_.dtype.bytes());
    turning_ = turning_rows(p_, c_, target);
    row_tiles_ = (p_.m - turning_) / c_.mr, row_tail_ = (p_.m - turning_) % c_.mr;
    chunk_ = std::max<int64_t>(1, in_scratch || dots_ ? row_tiles_ : std::min<int64_t>(row_tiles_, kGemmChunk));
    chunks_ = std::max<int64_t>(1, ceil_div(row_tiles_, chunk_));
    plan_hints(target.machine.l2_bytes);
  }

  // A unit of work is the row tiles under a panel, or a chunk of them; the last panel's unit also computes the columns
  // of dot products.
  Stmt stmt() const {
    const std::vector<int64_t> units{p_.batch, panels_, chunks_};
    return parallel_for(context_, "unit", product(units), [&](const PrimExpr& unit) {
      Index at = unravel(unit, units);
      return bind("batch", at[0], [&](PrimExpr batch) {
        return bind("panel_number", at[1], [&](PrimExpr panel) {
          return bind("part", at[2], [&](const PrimExpr& part) {
            if (panels_ == 1) return seq({column(batch, panel, part, last_), dots_ ? rest(batch) : seq({})});
            if (last_ == width_ && !dots_) return column(batch, panel, part, width_);
            return make_if(eq(panel, make_int(panels_ - 1)),
                           seq({column(batch, panel, part, last_), dots_ ? rest(batch) : seq({})}),
                           column(batch, panel, part, width_));
          });
        });
      });
    });
  }

 private:
  // Prefetches what comes from beyond the L2 cache where the hardware prefetcher fails: rows of B, and the rows of a
  // tile in A and C, are far apart. With few rows of A, B's next rows are prefetched, with more the next batch's.
  void plan_hints(int64_t l2) {
    const bool row_major = p_.b == MatrixB::kRowMajor && !copied_;
    b_is_far_ = !packed_ && p_.batch * p_.k * p_.n * element_ > l2;
    panel_ahead_ = packed_ && p_.k * width_ * static_cast<int64_t>(b_.dtype().bytes()) >= 8 << 10;
    rows_ahead_ = row_major && b_is_far_ && p_.m <= 8;
    batch_ahead_ = row_major && b_is_far_ && b_batch_ > 0 && p_.m > 8 && p_.m <= 64;
    a_ahead_ = !packed_ && a_row_ == p_.k && a_batch_ > 0 && p_.m > 2 * c_.mr && p_.batch * p_.m * p_.k * element_ > l2;
    out_ahead_ = !packed_ && out_batch_ > 0 && p_.m > 2 * c_.mr && p_.batch * p_.m * p_.n * element_ > l2;
  }

  // Stores a tile's sums at (m0, n0) of C; `valid` columns exist.
  Stmt drain(const RegisterTile& acc, const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0,
             int64_t valid) const {
    const PrimExpr mask = tail_mask(v_, valid - int64_t{acc.cols() - 1} * v_);
    return bind("out_at", batch * out_batch_ + m0 * out_row_ + n0 + out_.offset, [&](PrimExpr out_at) {
      return acc.drain([&](int r, int col, PrimExpr value) {
        Index index{m0 + r, n0 + int64_t{col} * v_};
        if (out_.rank() == 3) index.insert(index.begin(), batch);
        PrimExpr lane_mask = col == acc.cols() - 1 ? mask : PrimExpr();
        return store(out_.buffer, ramp(out_at + (r * out_row_ + int64_t{col} * v_), 1, v_),
                     epilogue_(std::move(value), index, lane_mask), lane_mask);
      });
    });
  }

  // Prefetches before the k-th iteration of a tile's loop: the next rows of A and C.
  void ask_for_rows(std::vector<Stmt>* steps, const PrimExpr& k, const PrimExpr& a_at, const PrimExpr& batch,
                    const PrimExpr& m0, const PrimExpr& n0, int rows, int64_t valid) const {
    const int64_t turns = p_.k / unroll_;
    if (a_ahead_)
      for (int64_t line = 0; line < ceil_div(rows * unroll_ * element_, 64); ++line)
        steps->push_back(prefetch(a_.buffer, a_at + (k + turns) * int64_t{rows} * unroll_ + line * (64 / element_)));
    if (out_ahead_)
      for (int64_t i = 0; i < ceil_div(rows, turns); ++i)
        for (int64_t line = 0; line <= valid * element_ / 64; ++line)
          steps->push_back(prefetch(out_.buffer, batch * out_batch_ + n0 + out_.offset + line * (64 / element_) +
                                                     (m0 + rows + min(k + i * turns, make_int(rows))) * out_row_));
  }

  // Prefetches before step u of an iteration: the next part of B.
  void ask_for_panel(std::vector<Stmt>* steps, const PrimExpr& k, int u, const PrimExpr& b_at, const PrimExpr& m0,
                     int64_t valid) const {
    const int64_t ahead = p_.m <= 2 ? kPrefetchBytesFewRows : kPrefetchBytes;
    const int64_t wanted = std::min(width_, int64_t{v_} * c_.nr);
    if (panel_ahead_) prefetch_ahead(steps, panel_, b_at + k * (unroll_ * b_k_), u * width_, wanted, ahead);
    if (rows_ahead_) prefetch_ahead(steps, panel_, b_at + (k * unroll_ + u) * b_k_, 0, valid, 16 * b_k_ * element_);
    if (!batch_ahead_) return;
    // The tiles below a panel divide its lines among them.
    const int64_t lines = ceil_div(valid * element_, 64) + 1, share = ceil_div(lines, ceil_div(p_.m, c_.mr));
    for (int64_t line = 0; line < share; ++line)
      steps->push_back(prefetch(panel_, b_at + (k * unroll_ + u) * b_k_ + b_batch_ +
                                            (floordiv(m0, make_int(c_.mr)) * share + line) * (64 / element_)));
  }

  // A register tile of C at (m0, n0), rows x cols vectors;
  // b_at: offset of B's first vector. `valid` columns exist.
  Stmt tile(const PrimExpr& batch, const PrimExpr& m0, const PrimExpr& n0, const PrimExpr& b_at, int rows,
            int64_t valid) const {
    const int cols = static_cast<int>(ceil_div(valid, v_));
    const int64_t rest = valid - int64_t{cols - 1} * v_;
    RegisterTile acc(rows, cols, vector_, ends_in_half(valid, v_, *context_.target) ? v_ / 2 : v_);
    acc.of_words(p_.words() ? static_cast<int>(word_elements(p_.dtype)) : 0);
    // The last word of bytes may be partial.
    const int64_t a_step = p_.words() ? word_elements(p_.dtype) : 1, part = p_.in_words % a_step,
                  whole = p_.k - (part ? 1 : 0);
    return bind("a_at", batch * a_batch_ + m0 * a_row_ + a_.offset, [&](PrimExpr a_at) {
      auto step = [&](PrimExpr a_k, PrimExpr b_k_at, int u, int64_t real = kWordBytes) {
        return acc.step(
            [&](int r) {
              const PrimExpr at = a_k + (r * a_row_ + u * a_step);
              return p_.words() ? word_at(a_.buffer, at, real) : load(a_.buffer, at);
            },
            [&](int col) {
              const int lanes = acc.lanes(col);
              PrimExpr at = ramp(b_k_at + (u * b_k_ + int64_t{col} * v_), 1, lanes);
              const bool masked = p_.b == MatrixB::kRowMajor && !copied_ && col == cols - 1;
              return load(panel_, at, masked ? tail_mask(lanes, rest) : PrimExpr());
            });
      };
      std::vector<Stmt> body{acc.clear()};
      if (whole >= unroll_ && unroll_ > 0)
        body.push_back(loop("k", whole / unroll_, [&](const PrimExpr& k) {
          std::vector<Stmt> steps;
          ask_for_rows(&steps, k, a_at, batch, m0, n0, rows, valid);
          for (int u = 0; u < unroll_; ++u) {
            ask_for_panel(&steps, k, u, b_at, m0, valid);
            steps.push_back(step(a_at + k * (unroll_ * a_step), b_at + k * (unroll_ * b_k_), u));
          }
          return seq(std::move(steps));
        }));
      if (unroll_ > 0)
        for (int64_t k = whole / unroll_ * unroll_; k < whole; ++k)
          body.push_back(step(a_at + k * a_step, b_at + k * b_k_, 0));
      if (part) body.push_back(step(a_at + whole * a_step, b_at + whole * b_k_, 0, part));
      body.push_back(drain(acc, batch, m0, n0, valid));
      return acc.scope(seq(std::move(body)));
    });
  }

  // Transposes four steps of `lanes` rows of B, from element `at` on,
  // to vectors along the rows. Only `real` rows exist: the others
  // repeat the last one, which stays finite and is never stored.
  Stmt turned(const PrimExpr& at, int lanes, int64_t real,
              const std::function<Stmt(const std::vector<PrimExpr>&)>& use) const {
    return transpose_quads(
        lanes,
        [&](int row) { return load(b_.buffer, ramp(at + std::min<int64_t>(row, real - 1) * row_stride(b_), 1, 4)); },
        use);
  }
  // Stores a transposed vector to the panel.
  Stmt put(const PrimExpr& k, const PrimExpr& column, const PrimExpr& value) const {
    return store(scratch_, ramp(k * width_ + column, 1, value->dtype.lanes), value);
  }

  // The first rows of C under one vector of B^T's columns: transposes
  // B's steps as it goes and stores them for the other rows. One vector
  // at a time: several would need too many registers for broadcasts.
  Stmt turning_tile(const PrimExpr& batch, const PrimExpr& n0, const PrimExpr& column, int64_t valid) const {
    const int64_t b_row = row_stride(b_);
    const bool keep = p_.m > turning_;
    RegisterTile acc(turning_, 1, vector_, ends_in_half(valid, v_, *context_.target) ? v_ / 2 : v_);
    return bind_all(
        {batch * a_batch_ + a_.offset, batch * b_batch_ + (n0 + column) * b_row + b_.offset}, [&](Index at) {
          auto steps = [&](PrimExpr k0, int first) {
            std::vector<Stmt> ahead;
            // The next vector of columns is the next rows of B, which are consecutive.
            if (b_is_far_ && first == 0 && b_row == p_.k)
              for (int64_t line = 0; line < v_ * 4 * element_ / 64; ++line)
                ahead.push_back(
                    prefetch(b_.buffer, at[1] + int64_t{v_} * b_row + k0 * int64_t{v_} + line * (64 / element_)));
            ahead.push_back(turned(at[1] + k0, acc.lanes(0), valid, [&](const std::vector<PrimExpr>& values) {
              std::vector<Stmt> parts;
              for (int i = first; i < 4; ++i) {
                if (keep) parts.push_back(put(k0 + i, column, values[i]));
                parts.push_back(acc.update(
                    0, [&](int r) { return load(a_.buffer, at[0] + k0 + (r * a_row_ + i)); }, values[i]));
              }
              return seq(std::move(parts));
            }));
            return seq(std::move(ahead));
          };
          std::vector<Stmt> body{acc.clear(), loop("k", p_.k / 4, [&](const PrimExpr& k) { return steps(k * 4, 0); })};
          if (p_.k % 4) body.push_back(steps(make_int(p_.k - 4), static_cast<int>(4 - p_.k % 4)));
          body.push_back(drain(acc, batch, make_int(0), n0 + column, valid));
          return acc.scope(seq(std::move(body)));
        });
  }

  // Transposes one vector of B^T's columns to the panel.
  Stmt turn_columns(const PrimExpr& batch, const PrimExpr& n0, const PrimExpr& column, int64_t real) const {
    const int lanes = ends_in_half(real, v_, *context_.target) ? v_ / 2 : v_;
    return bind("rows_at", batch * b_batch_ + (n0 + column) * row_stride(b_) + b_.offset, [&](PrimExpr rows_at) {
      auto steps = [&](PrimExpr k0, int first, int end) {
        return turned(rows_at + k0, lanes, real, [&](const std::vector<PrimExpr>& values) {
          std::vector<Stmt> parts;
          for (int i = first; i < end; ++i) parts.push_back(put(k0 + i, column, values[i]));
          return seq(std::move(parts));
        });
      };
      std::vector<Stmt> parts{loop("k", p_.k / 4, [&](const PrimExpr& k) { return steps(k * 4, 0, 4); })};
      if (p_.k % 4) parts.push_back(steps(make_int(p_.k - 4), static_cast<int>(4 - p_.k % 4), 4));
      return seq(std::move(parts));
    });
  }
  // The same for reductions shorter than four steps.
  Stmt turn_short(const PrimExpr& batch, const PrimExpr& n0, int64_t columns) const {
    std::vector<Stmt> parts;
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < p_.k; ++k)
        parts.push_back(store(scratch_, make_int(k * width_ + n),
                              load(b_.buffer, batch * b_batch_ + (n0 + n) * row_stride(b_) + (b_.offset + k))));
    return seq(std::move(parts));
  }

  // Copies a panel of B with `valid` columns; what is behind them is 0.
  Stmt copied_panel(const PrimExpr& batch, const PrimExpr& n0, int64_t valid) const {
    const int64_t row = row_stride(b_);
    return bind("panel_at", batch * b_batch_ + n0 + b_.offset, [&](const PrimExpr& at) {
      auto step = [&](const PrimExpr& k) {
        std::vector<Stmt> parts;
        for (int64_t n = 0; n < valid; n += v_)
          parts.push_back(
              put(k, make_int(n),
                  load(b_.buffer, ramp(at + k * row + n, 1, v_), tail_mask(v_, std::min<int64_t>(v_, valid - n)))));
        return seq(std::move(parts));
      };
      return loop("k", p_.k, step);
    });
  }

  // Transposes a panel of B^T with `valid` columns,
  // computing the first rows of C on the way.
  void turn_panel(std::vector<Stmt>* body, const PrimExpr& batch, const PrimExpr& n0, int64_t valid) const {
    if (turning_ == 0 && p_.k < 4) {
      body->push_back(turn_short(batch, n0, valid));
      return;
    }
    auto turn = [&](const PrimExpr& column, int64_t real) {
      return turning_ ? turning_tile(batch, n0, column, real) : turn_columns(batch, n0, column, real);
    };
    body->push_back(loop("column", valid / v_, [&](const PrimExpr& column) { return turn(column * int64_t{v_}, v_); }));
    if (valid % v_) body->push_back(turn(make_int(valid / v_ * v_), valid % v_));
  }

  // A unit's row tiles under the columns of one tile.
  Stmt row_tiles(const PrimExpr& batch, const PrimExpr& part, const PrimExpr& n0, const PrimExpr& b_at,
                 int64_t valid) const {
    std::vector<Stmt> body;
    if (row_tiles_ > 0) {
      PrimExpr first = part * chunk_;
      PrimExpr end = row_tiles_ % chunk_ == 0 ? first + chunk_ : min(first + chunk_, make_int(row_tiles_));
      body.push_back(loop("mt", first, end, [&](const PrimExpr& mt) {
        return bind("m0", mt * c_.mr + turning_,
                    [&](const PrimExpr& m0) { return tile(batch, m0, n0, b_at, c_.mr, valid); });
      }));
    }
    if (row_tail_) {
      Stmt tail = tile(batch, make_int(turning_ + row_tiles_ * c_.mr), n0, b_at, static_cast<int>(row_tail_), valid);
      body.push_back(chunks_ == 1 ? tail : make_if(eq(part, make_int(chunks_ - 1)), tail));
    }
    return seq(std::move(body));
  }

  // A unit's row tiles under one panel.
  Stmt column(const PrimExpr& batch, const PrimExpr& panel, const PrimExpr& part, int64_t valid) const {
    PrimExpr n0 = panel * width_;
    PrimExpr b_origin = packed_                  ? panel * (p_.k * width_) + b_.offset
                        : transposed_ || copied_ ? make_int(0)
                                                 : batch * b_batch_ + n0 + b_.offset;
    return bind("b_at", b_origin, [&](PrimExpr b_at) {
      std::vector<Stmt> body;
      if (transposed_) turn_panel(&body, batch, n0, valid);
      if (copied_) body.push_back(copied_panel(batch, n0, valid));
      const int64_t wide = int64_t{v_} * c_.nr, whole = valid / wide;
      if (valid <= wide) {
        body.push_back(row_tiles(batch, part, n0, b_at, valid));
      } else {
        body.push_back(loop("tiles", whole, [&](const PrimExpr& i) {
          return bind_all({n0 + i * wide, b_at + i * wide},
                          [&](Index at) { return row_tiles(batch, part, at[0], at[1], wide); });
        }));
        if (valid % wide) body.push_back(row_tiles(batch, part, n0 + whole * wide, b_at + whole * wide, valid % wide));
      }
      Stmt all = seq(std::move(body));
      return copied_ || (transposed_ && p_.m > turning_) ? allocate(scratch_, all) : all;
    });
  }

  // The last columns as dot products; they read B's
  // rows in place, or a transposed copy of few columns.
  Stmt rest(const PrimExpr& batch) const {
    GemmProblem few = p_;
    few.n = dots_;
    View rows = b_, result = out_;
    result.offset += columns_, result.shape.back() = dots_;
    auto shifted = [&](PrimExpr value, Index index, const PrimExpr& mask) {
      index.back() = index.back() + columns_;
      return epilogue_(std::move(value), index, mask);
    };
    if (transposed_) {
      rows.offset += columns_ * row_stride(b_), rows.shape[b_.rank() - 2] = dots_;
      return dots_of_batch(few, a_, rows, result, shifted, *context_.target, batch);
    }
    const Buffer copy = make_buffer("few", b_.dtype(), dots_ * p_.k, Scope::kStack, 64);
    Stmt turn = loop("k", p_.k, [&](const PrimExpr& k) {
      std::vector<Stmt> body;
      for (int64_t n = 0; n < dots_; ++n)
        body.push_back(store(copy, k + n * p_.k,
                             load(b_.buffer, batch * b_batch_ + k * row_stride(b_) + (b_.offset + columns_ + n))));
      return seq(std::move(body));
    });
    return allocate(
        copy,
        seq({turn, dots_of_batch(few, a_, make_view(copy, {dots_, p_.k}), result, shifted, *context_.target, batch)}));
  }

  const GemmProblem& p_;
  const GemmConfig& c_;
  const View &a_, &b_, &out_;
  const Epilogue& epilogue_;
  const KernelContext& context_;
  int v_ = 0;                       // lanes of an accumulator vector
  int64_t dots_ = 0, columns_ = 0;  // columns computed by dot products; by panels
  int64_t width_ = 0, panels_ = 0,
          last_ = 0;                               // columns per panel; panels; columns of the last panel
  DataType vector_;                                // dtype of accumulator vectors
  bool packed_ = false, transposed_ = false;       // kind of p_.b
  bool copied_ = false;                            // its panels are copied first
  int64_t a_batch_ = 0, a_row_ = 0, b_batch_ = 0;  // element strides
  int64_t out_batch_ = 0, out_row_ = 0;            // element strides of out
  Buffer scratch_, panel_;                         // a panel made here; the buffer from which tiles read B
  int64_t b_k_ = 0;                                // stride between steps in panel_
  int unroll_ = 1;                                 // steps per iteration of a tile's loop
  int64_t element_ = 4;                            // bytes per element
  int turning_ = 0;                                // turning_rows
  int64_t row_tiles_ = 0, row_tail_ = 0;           // for the rows that do not transpose
  int64_t chunk_ = 1,
          chunks_ = 1;  // row tiles per unit; units under a panel
  bool b_is_far_ = false, panel_ahead_ = false, rows_ahead_ = false,
       batch_ahead_ = false;  // prefetching, see plan_hints
  bool a_ahead_ = false, out_ahead_ = false;
};

}  // namespace

Stmt gemm(const GemmProblem& p, const GemmConfig& c, const View& a, const View& b, const View& out,
          const Epilogue& epilogue, const KernelContext& context) {
  if (c.dots) return gemm_dot(p, a, b, out, epilogue, context);
  return GemmKernel(p, c, a, b, out, epilogue, context).stmt();
}

}  // namespace tilewright::topi
