// SPDX-License-Identifier: Apache-2.0
// The heart of every product kernel: rows x cols vector accumulators in registers, fully unrolled here, updated by one
// outer product per reduction step. The rule rows*cols + cols + 1 <= registers keeps the code generator from spilling.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

class RegisterTile {
 public:
  // `vector` is the accumulator's dtype, lanes included. The last column may be narrower (`last_lanes`), or the last of
  // every `period` columns: b is asked for that many lanes, and drain gives whole vectors whose other lanes are zero.
  RegisterTile(int rows, int cols, DataType vector, int last_lanes = 0, int period = 0);
  // Sums of int32 over words of four bytes: a's unsigned, b's signed.
  RegisterTile& of_words(bool words = true) {
    words_ = words;
    return *this;
  }
  int lanes(int col) const { return col % period_ == period_ - 1 ? last_.lanes : vector_.lanes; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  tir::Stmt clear() const;
  // acc[r][c] += a(r) * b(c): a gives a scalar (broadcast here), b a vector; both are converted to the accumulator's
  // dtype.
  tir::Stmt step(const std::function<tir::PrimExpr(int)>& a, const std::function<tir::PrimExpr(int)>& b) const;
  // The same for one column, a's elements used once each: memory operands where the machine has them.
  tir::Stmt update(int col, const std::function<tir::PrimExpr(int)>& a, tir::PrimExpr b) const;
  // Every accumulator once, row by row.
  tir::Stmt drain(const std::function<tir::Stmt(int row, int col, tir::PrimExpr value)>& store) const;
  // The accumulators live in `body`.
  tir::Stmt scope(tir::Stmt body) const;

 private:
  int rows_, cols_, period_;
  bool words_ = false;
  DataType vector_, last_;
  tir::PrimExpr sum_of(const tir::PrimExpr& a, const tir::PrimExpr& b, const tir::PrimExpr& sum) const;
  tir::PrimExpr acc(int row, int col) const;
  tir::Stmt set(int row, int col, tir::PrimExpr value) const;
  bool narrow(int col) const { return lanes(col) != vector_.lanes; }
  tir::PrimExpr narrow_at(int row, int col) const { return tir::make_int(row * (cols_ / period_) + col / period_); }
  tir::Buffer acc_, a_, b_;                       // whole vectors
  tir::Buffer narrow_acc_, narrow_a_, narrow_b_;  // the narrower columns'
};

// Appends hints for the cache lines that start among the `count` elements from at + first on, `bytes` further. Hardware
// follows a stream within a page only, and a network's weights come from memory every time: cold layers gain up to 15%.
inline constexpr int64_t kPrefetchBytes = 3072, kPrefetchBytesFewRows = 8192;
void prefetch_ahead(std::vector<tir::Stmt>* body, const tir::Buffer& buffer, const tir::PrimExpr& at, int64_t first,
                    int64_t count, int64_t bytes);

// Whether such a tile stays in registers.
bool tile_fits(int rows, int cols, const Target& target);
// Cycles of one tile: `steps` reduction steps with column vectors streaming from a panel of panel_bytes.
// `words`: a row's element is loaded into a register of its own, and dot4 takes no other operand from memory.
double tile_cycles(int rows, double cols, double steps, double panel_bytes, const Target& target, bool words = false);

}  // namespace tilewright::topi
