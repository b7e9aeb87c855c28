// SPDX-License-Identifier: Apache-2.0
// Lanes are columns, steps run along k. A word holds 8 (or 4) steps of a column. A step is masked in place and
// converted to float, which gives its value times a power of two; the data rows carry the inverse factor, so that no
// shifts are needed. A zero point is applied once per block, times the sum of the block's data.
#include "topi/block_dense.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Columns per panel: the same for all processors, several of which may read one packed weight.
constexpr int64_t kPanel = 32;
constexpr int kSums = 4;  // partial sums of a block's data

// Bit position at which step `i` of a word is masked: the last one would reach the sign bit, so it takes the place
// before.
int64_t place_of(int64_t i, int64_t per_word) { return std::min(i, per_word - 2); }
// The factors are centred around one, so that neither tiny nor huge data leave the range of floats.
int64_t middle_place(int64_t per_word) { return per_word / 2 - 1; }
double two_to(int64_t exponent) { return std::ldexp(1.0, static_cast<int>(exponent)); }

class BlockDense {
 public:
  BlockDense(const BlockDenseProblem& problem, const View& data, const Buffer& words, const Buffer& scales,
             const Buffer& zeros, const View& out, const Epilogue& epilogue, const KernelContext& context)
      : p_(problem),
        data_(data),
        words_(words),
        scales_(scales),
        zeros_(zeros),
        out_(out),
        epilogue_(epilogue),
        context_(context),
        v_(context.target->lanes(32)),
        vectors_(std::max<int64_t>(1, kPanel / v_)),
        chains_(std::clamp<int64_t>(context.target->vector_registers / (2 * vectors_), 1, 4)),
        row_(p_.blocks() * p_.block),
        vector_(kFloat32.with_lanes(v_)) {}

  Stmt stmt() const {
    return seq({loop("row", p_.m, [&](const PrimExpr& row) { return prepare(row); }),
                parallel_for(context_, "panel", ceil_div(p_.n, kPanel), [&](PrimExpr panel) {
                  return loop("row", p_.m, [&](const PrimExpr& row) { return product(row, panel); });
                })});
  }

 private:
  // Prepares a row of data: applies the factors, zero-pads the last block, and sums its blocks (scaled like the
  // products).
  Stmt prepare(const PrimExpr& row) const {
    const int64_t whole = p_.k / p_.block, rest = p_.k % p_.block;
    std::vector<Stmt> body;
    if (whole)
      body.push_back(loop("block", whole, [&](const PrimExpr& block) { return prepare_block(row, block, p_.block); }));
    if (rest) body.push_back(prepare_block(row, make_int(whole), rest));
    return seq(std::move(body));
  }
  Stmt prepare_block(const PrimExpr& row, const PrimExpr& block, int64_t real) const {
    const Buffer sums = make_buffer("sums", kFloat32, kSums, Scope::kRegister);
    const int64_t per = p_.per_word(), words = real / per;
    std::vector<Stmt> body;
    for (int i = 0; i < kSums; ++i) body.push_back(store(sums, make_int(i), make_float(0)));
    auto word = [&](const PrimExpr& w, int64_t steps) {
      std::vector<Stmt> parts;
      for (int64_t i = 0; i < per; ++i) {
        const PrimExpr to = row * row_ + block * p_.block + w * per + i;
        if (i >= steps) {
          parts.push_back(store(context_.scratch, to, make_float(0)));
          continue;
        }
        const double factor = two_to(p_.bits * (middle_place(per) - place_of(i, per)));
        const PrimExpr sum = make_int(i % kSums);
        parts.push_back(bind("x", data_.load({row, block * p_.block + w * per + i}), [&](const PrimExpr& x) {
          return seq({store(sums, sum, load(sums, sum) + x), store(context_.scratch, to, x * make_float(factor))});
        }));
      }
      return seq(std::move(parts));
    };
    if (words) body.push_back(loop("word", words, [&](const PrimExpr& w) { return word(w, per); }));
    for (int64_t w = words; w < p_.words(); ++w) body.push_back(word(make_int(w), w == words ? real % per : 0));
    PrimExpr sum = load(sums, make_int(0));
    for (int i = 1; i < kSums; ++i) sum = sum + load(sums, make_int(i));
    body.push_back(store(context_.scratch, sum_at(row, block), sum * make_float(two_to(p_.bits * middle_place(per)))));
    return allocate(sums, seq(std::move(body)));
  }
  PrimExpr sum_at(const PrimExpr& row, const PrimExpr& block) const { return row * p_.blocks() + block + p_.m * row_; }

  // One row of data times one panel.
  Stmt product(const PrimExpr& row, const PrimExpr& panel) const {
    const Buffer acc = make_buffer("acc", vector_, vectors_ * chains_, Scope::kRegister),
                 total = make_buffer("total", vector_, vectors_, Scope::kRegister);
    std::vector<Stmt> body;
    for (int64_t c = 0; c < vectors_; ++c) body.push_back(store(total, make_int(c), make_const(vector_, 0)));
    body.push_back(loop("block", p_.blocks(), [&](PrimExpr block) {
      std::vector<Stmt> parts;
      for (int64_t i = 0; i < vectors_ * chains_; ++i) parts.push_back(store(acc, make_int(i), make_const(vector_, 0)));
      const PrimExpr number = panel * p_.blocks() + block;
      parts.push_back(loop("word", p_.words(), [&](const PrimExpr& word) {
        return words_of(acc, (number * p_.words() + word) * kPanel,
                        row * row_ + block * p_.block + word * p_.per_word());
      }));
      for (int64_t c = 0; c < vectors_; ++c) {
        const PrimExpr at = ramp(number * kPanel + c * v_, 1, v_);
        PrimExpr sum = load(acc, make_int(c));
        for (int64_t i = 1; i < chains_; ++i) sum = sum + load(acc, make_int(i * vectors_ + c));
        const PrimExpr shift = load(zeros_, at) * broadcast(load(context_.scratch, sum_at(row, block)), v_);
        parts.push_back(
            store(total, make_int(c), multiply_add(load(scales_, at), sum - shift, load(total, make_int(c)))));
      }
      return seq(std::move(parts));
    }));
    body.push_back(results(total, row, panel));
    return allocate(acc, allocate(total, seq(std::move(body))));
  }

  // The steps in one word of each column of a panel.
  Stmt words_of(const Buffer& acc, const PrimExpr& at, const PrimExpr& x_at) const {
    const int64_t per = p_.per_word();
    const DataType ints = kInt32.with_lanes(v_);
    Index loaded;
    for (int64_t c = 0; c < vectors_; ++c) loaded.push_back(load(words_, ramp(at + c * v_, 1, v_)));
    return bind_all(loaded, [&](Index word) {
      std::vector<Stmt> steps;
      prefetch_ahead(&steps, words_, at, 0, kPanel, kPrefetchBytesFewRows);
      for (int64_t i = 0; i < per; ++i) {
        const int64_t place = place_of(i, per);
        const auto mask = static_cast<double>(((int64_t{1} << p_.bits) - 1) << (p_.bits * place));
        steps.push_back(bind("x", broadcast(load(context_.scratch, x_at + i), v_), [&](const PrimExpr& x) {
          std::vector<Stmt> sums;
          for (int64_t c = 0; c < vectors_; ++c) {
            PrimExpr bits = word[static_cast<size_t>(c)];
            if (place != i) bits = binary(ExprKind::kShiftRight, bits, make_const(ints, static_cast<double>(p_.bits)));
            const PrimExpr number = cast(vector_, binary(ExprKind::kBitAnd, bits, make_const(ints, mask)));
            const PrimExpr to = make_int(i % chains_ * vectors_ + c);
            sums.push_back(store(acc, to, multiply_add(number, x, load(acc, to))));
          }
          return seq(std::move(sums));
        }));
      }
      return seq(std::move(steps));
    });
  }

  Stmt results(const Buffer& total, const PrimExpr& row, const PrimExpr& panel) const {
    const PrimExpr factor = make_const(vector_, two_to(-p_.bits * middle_place(p_.per_word())));
    auto stores = [&](int64_t columns) {
      std::vector<Stmt> body;
      for (int64_t c = 0; c * v_ < columns; ++c) {
        const PrimExpr mask = tail_mask(v_, std::min<int64_t>(v_, columns - c * v_));
        const Index index{row, panel * kPanel + c * v_};
        body.push_back(out_.store(index, epilogue_(load(total, make_int(c)) * factor, index, mask), mask));
      }
      return seq(std::move(body));
    };
    const int64_t rest = p_.n % kPanel;
    if (rest == 0) return stores(kPanel);
    return make_if(eq(panel, make_int(p_.n / kPanel)), stores(rest), stores(kPanel));
  }

  const BlockDenseProblem& p_;
  const View& data_;
  const Buffer &words_, &scales_, &zeros_;
  const View& out_;
  const Epilogue& epilogue_;
  const KernelContext& context_;
  int v_;
  int64_t vectors_, chains_;  // vectors per panel; independent sums per vector
  int64_t row_;               // elements of a data row in scratch
  DataType vector_;
};

}  // namespace

Cost estimate(const BlockDenseProblem& p, const Target& target) {
  Cost cost;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(round_up(p.n, kPanel)),
             k = static_cast<double>(p.blocks() * p.block);
  cost.flops = 2 * m * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double weights = n * k * static_cast<double>(p.bits) / 8 + n * static_cast<double>(p.blocks()) * 8;
  cost.bytes = weights + 4 * m * (n + k);
  const double cycles = m * (k * n / target.lanes(32) * 2 / target.machine.fmas_per_cycle(target.vector_bits) + 2 * k);
  cost.microseconds = overlapped_microseconds(cycles, weights, target.machine.dram_gbps, target.machine);
  return cost;
}

int64_t block_dense_scratch_bytes(const BlockDenseProblem& p) { return p.m * p.blocks() * (p.block + 1) * 4; }

Tensor pack_block_words(const Tensor& bytes) {
  const int64_t n = bytes.shape()[0], blocks = bytes.shape()[1], words = bytes.shape()[2] / 4;
  Tensor out = Tensor::zeros(kInt32, {ceil_div(n, kPanel), blocks, words, kPanel});
  const std::byte* from = bytes.raw();
  std::byte* to = out.mutable_raw();
  for (int64_t row = 0; row < n; ++row)
    for (int64_t w = 0; w < blocks * words; ++w)
      std::memcpy(to + ((row / kPanel * blocks * words + w) * kPanel + row % kPanel) * 4,
                  from + (row * blocks * words + w) * 4, 4);
  return out;
}

Tensor pack_block_scales(const Tensor& scales) {
  const int64_t n = scales.shape()[0], blocks = scales.shape()[1];
  Tensor out = Tensor::zeros(kFloat32, {ceil_div(n, kPanel), blocks, kPanel});
  for (int64_t row = 0; row < n; ++row)
    for (int64_t b = 0; b < blocks; ++b)
      out.set_double((row / kPanel * blocks + b) * kPanel + row % kPanel, scales.at_double(row * blocks + b));
  return out;
}

Stmt block_dense(const BlockDenseProblem& problem, const View& data, const Buffer& words, const Buffer& scales,
                 const Buffer& zeros, const View& out, const Epilogue& epilogue, const KernelContext& context) {
  return BlockDense(problem, data, words, scales, zeros, out, epilogue, context).stmt();
}

}  // namespace tilewright::topi
