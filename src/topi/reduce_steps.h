// SPDX-License-Identifier: Apache-2.0
// Building blocks of reductions, softmax and normalisation.
#pragma once
#include "topi/reduce.h"

namespace tilewright::topi {

// A reduction's operation and initial value.
struct Combine {
  ReduceKind kind;
  DataType element;
  bool nan_wins = false;  // an extreme of floats is NaN where one of them is; else it may be lost
  tir::PrimExpr operator()(const tir::PrimExpr& a, const tir::PrimExpr& b) const;
  tir::PrimExpr neutral(DataType dtype) const;
  tir::PrimExpr across(const tir::PrimExpr& vector) const;  // reduces the lanes
};

// A reduction along a row of `extent` elements: up to 4 vector accumulators over whole vectors, then one masked vector.
class RowReduction {
 public:
  using Element = std::function<tir::PrimExpr(tir::PrimExpr i, int lanes, const tir::PrimExpr& mask)>;
  // `together`: asks for as many elements at once as there are partial results, which suits long expressions.
  RowReduction(Combine combine, int lanes, int64_t extent, bool together = false);
  tir::Stmt clear() const;
  // Can be called for several rows in turn; `also` receives each vector for another use (a store).
  tir::Stmt accumulate(
      const Element& element,
      const std::function<tir::Stmt(tir::PrimExpr i, tir::PrimExpr value, const tir::PrimExpr& mask)>& also = {}) const;
  tir::PrimExpr result() const;  // a scalar
  tir::Stmt scope(tir::Stmt body) const;

 private:
  tir::Stmt add(int slot, const tir::PrimExpr& value) const;
  tir::PrimExpr joined(const tir::Buffer& slots, const Combine& combine) const;

  // Where NaN wins, vectors are combined as if there were none; which lanes had one is remembered beside them, off the
  // chain of the extremes: -1 in nan_.
  Combine combine_;
  int lanes_, wide_;
  int64_t extent_;
  tir::Buffer acc_, nan_, value_, values_;
};

using RowStep = std::function<tir::Stmt(tir::PrimExpr i, int lanes, const tir::PrimExpr& mask)>;
// Vectors along a row of `extent` elements: f(i, lanes, mask).
tir::Stmt along_row(int lanes, int64_t extent, int unroll, const RowStep& f);
// The thread's share of them; shares are of whole cache lines where rows begin with one.
tir::Stmt along_row_share(const KernelContext& context, int lanes, int64_t extent, int unroll, const RowStep& f);
// Binds all elements of an index to names (null ones stay null).
tir::Stmt bind_all(const Index& index, const std::function<tir::Stmt(Index)>& body);

}  // namespace tilewright::topi
