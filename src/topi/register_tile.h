// SPDX-License-Identifier: Apache-2.0
// The core of all product kernels: rows x cols vector accumulators in registers, fully unrolled, updated by one outer
// product per reduction step. rows*cols + cols + 1 <= registers avoids spills.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

class RegisterTile {
 public:
  // `vector` is the accumulator's dtype with lanes. The last column may have fewer lanes (`last_lanes`), or the last of
  // every `period` columns: b is then called for as many, and drain returns whole vectors padded with zeros.
  RegisterTile(int rows, int cols, DataType vector, int last_lanes = 0, int period = 0);
  // Over words (words.h) of so many elements, 0: none: sums of int32 over four bytes, a's unsigned, b's signed, or over
  // two halves, or of float32 over two bfloat16.
  RegisterTile& of_words(int elements);
  int lanes(int col) const { return col % period_ == period_ - 1 ? last_.lanes : vector_.lanes; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  tir::Stmt clear() const;
  // acc[r][c] += a(r) * b(c): a returns a scalar (broadcast here), b a vector; both are converted to the accumulator's
  // dtype.
  tir::Stmt step(const std::function<tir::PrimExpr(int)>& a, const std::function<tir::PrimExpr(int)>& b) const;
  // One column only, using each element of a once: as memory operands where the machine has them.
  tir::Stmt update(int col, const std::function<tir::PrimExpr(int)>& a, tir::PrimExpr b) const;
  // Visits all accumulators, row by row.
  tir::Stmt drain(const std::function<tir::Stmt(int row, int col, tir::PrimExpr value)>& store) const;
  // Declares the accumulators around `body`.
  tir::Stmt scope(tir::Stmt body) const;

 private:
  int rows_, cols_, period_;
  int words_ = 0;
  DataType vector_, last_;
  DataType operand() const;  // an element of a or b
  tir::PrimExpr sum_of(const tir::PrimExpr& a, const tir::PrimExpr& b, const tir::PrimExpr& sum) const;
  tir::PrimExpr acc(int row, int col) const;
  tir::Stmt set(int row, int col, tir::PrimExpr value) const;
  bool narrow(int col) const { return lanes(col) != vector_.lanes; }
  tir::PrimExpr narrow_at(int row, int col) const { return tir::make_int(row * (cols_ / period_) + col / period_); }
  tir::Buffer acc_, a_, b_;                       // for whole vectors
  tir::Buffer narrow_acc_, narrow_a_, narrow_b_;  // for the narrower columns
};

// Appends prefetches of the cache lines that begin within `count` elements from at + first on, at a distance of
// `bytes`. The hardware prefetcher stops at page ends, and a network's weights come from memory in every run: cold
// layers gain up to 15%.
inline constexpr int64_t kPrefetchBytes = 3072, kPrefetchBytesFewRows = 8192;
void prefetch_ahead(std::vector<tir::Stmt>* body, const tir::Buffer& buffer, const tir::PrimExpr& at, int64_t first,
                    int64_t count, int64_t bytes);

// Whether such a tile fits the registers.
bool tile_fits(int rows, int cols, const Target& target);
// Cycles of one tile: `steps` reduction steps, with column vectors streaming from a panel of panel_bytes. `words`: how
// many instructions multiply a word, 0: there are none; a row's element takes a separate load, since dot4 has no
// broadcast memory operand.
double tile_cycles(int rows, double cols, double steps, double panel_bytes, const Target& target, int words = 0);

}  // namespace tilewright::topi
